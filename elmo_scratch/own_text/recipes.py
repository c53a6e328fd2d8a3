"""
Measures a text, holds a part of it out for validation, and chooses and fits a config of
`training_config/bilm/` by its size.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from allennlp.common import Params, Tqdm
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.lines import split_lines

PACKED = Path(__file__).parent / "configs"
"""Where an installation has the configs; a checkout has them in `training_config/bilm/`."""

CONFIGS = PACKED if PACKED.is_dir() else Path(__file__).parents[2] / "training_config" / "bilm"

RECIPES: Dict[str, int] = {"own_small": 0, "ptb": 400_000, "small": 5_000_000}
"""The configs, and from how many words of text on each is chosen."""

LARGER = "original"
"""A config that is never chosen: it takes weeks without a GPU."""

STEPS_OF_AN_EPOCH, MOST_STREAMS = 100, 16
"""A small text is read in fewer streams, so that an epoch has as many steps or more."""

DEV_TOKENS_OF_A_STREAM, MOST_DEV_STREAMS = 1000, 16
"""Each stream of validation starts from nothing, which costs perplexity if streams are short."""

STEPS_OF_A_TRAINING, FEWEST_EPOCHS, MOST_EPOCHS = 3000, 10, 20
"""
A small text is read more often, but not until it is known by heart: of 48,000 words validation
grew worse from epoch 17 on.
"""


class OwnText(NamedTuple):
    """
    What a config has to know of a text.

    # Parameters

    train : `List[str]`
        The files that are trained on.
    dev : `str`
        What is validated on: a file, or a pattern.
    train_tokens, dev_tokens : `int`
        How many words they have, between white space.
    language : `str`, optional (default = `None`)
        A language whose rules of spaCy cut the sentences into tokens, such as `"en"`; by default
        tokens stand between white space.
    """

    train: List[str]
    dev: str
    train_tokens: int
    dev_tokens: int
    language: Optional[str] = None


def recipe_for(num_tokens: int) -> str:
    """The name of the recipe for so many words of training text."""
    return [name for name, fewest in RECIPES.items() if fewest <= num_tokens][-1]


def fitted_recipe(name: str, text: OwnText, num_epochs: Optional[int] = None) -> Dict[str, Any]:
    """
    # Parameters

    name : `str`
        A name in `RECIPES`, or `LARGER`.
    text : `OwnText`
        What it is fitted to.
    num_epochs : `int`, optional (default = what suits the text)
        The number of epochs.

    # Returns

    `Dict[str, Any]`
        The config: streams that are long enough, words that are seen once or twice as one unknown
        word, and for `own_small` as many epochs as make some thousand steps.
    """
    variables = {
        f"{corpus}_{part}": "" for corpus in ("CORPUS", "PTB") for part in ("TRAIN", "DEV")
    }
    config = Params.from_file(str(CONFIGS / f"{name}.jsonnet"), ext_vars=variables).as_dict(
        quiet=True
    )
    config["train_data_path"] = config["vocabulary"]["data_path"] = text.train
    config["validation_data_path"] = text.dev
    config["vocabulary"].setdefault("min_count", 3)
    if text.language is not None:
        tokenizer = {"type": "spacy_blank", "language": text.language}
        config["dataset_reader"]["tokenizer"] = config["vocabulary"]["tokenizer"] = tokenizer
    loader, dev_loader = config["data_loader"], config["validation_data_loader"]
    tokens_of_a_stream = loader["unroll_steps"] * STEPS_OF_AN_EPOCH
    streams = max(1, text.train_tokens // tokens_of_a_stream)
    loader["batch_size"] = min(loader["batch_size"], streams)
    dev_streams = max(1, text.dev_tokens // DEV_TOKENS_OF_A_STREAM)
    dev_loader["batch_size"] = min(dev_loader["batch_size"], dev_streams)
    trainer = config["trainer"]
    if num_epochs is not None:
        trainer["num_epochs"] = num_epochs
    elif name == "own_small":
        steps = text.train_tokens / (loader["batch_size"] * loader["unroll_steps"])
        wanted = round(STEPS_OF_A_TRAINING / steps)
        trainer["num_epochs"] = min(max(wanted, FEWEST_EPOCHS), MOST_EPOCHS)
    trainer["callbacks"].append({"type": "elmo_scratch_forecast"})
    return config


FEWEST_TOKENS, FEWEST_SENTENCES = 2000, 20
"""A smaller text teaches a biLM nothing, and what is held out of it measures nothing."""

HELD_SHARE, MOST_HELD = 1 / 20, 20_000
"""The share of the sentences that is held out, and how many at the most."""

END_MARKS = tuple(".,;:!?…。、，؟।")

RAW_SHARE = 0.03
"""
From this share of words that end in a mark on, tokens aren't cut: "word," is no word. In English
news it is 12 %, and below 1 % once it is cut, where "Mr." is left.
"""


class TextSize(NamedTuple):
    """
    # Parameters

    sentences : `List[int]`
        Of each file: its lines that aren't blank.
    tokens : `int`
        The words between white space of all files.
    raw_share : `float`
        The share of the words that end in a punctuation mark.
    """

    sentences: List[int]
    tokens: int
    raw_share: float

    @property
    def num_sentences(self) -> int:
        """The sentences of all files together."""
        return sum(self.sentences)

    @property
    def held_share(self) -> float:
        """The share of the sentences to hold out: a twentieth, or less of a large text."""
        return min(HELD_SHARE, MOST_HELD / self.num_sentences)

    @property
    def is_raw(self) -> bool:
        """Whether punctuation marks seem to stand at words, and not between white space."""
        return self.raw_share >= RAW_SHARE


def measure(files: Sequence[Path]) -> TextSize:
    """
    Reads a text once.

    # Parameters

    files : `Sequence[Path]`
        One sentence a line, plain or compressed as all texts may be.

    # Raises

    ConfigurationError
        If a file can't be read or holds no word.
    """
    sentences: List[int] = []
    tokens = marked = 0
    with Tqdm.tqdm(desc="measuring", unit=" sentences") as progress:
        for file in files:
            sentences.append(0)
            for words in split_lines(file):
                sentences[-1] += 1
                tokens += len(words)
                marked += sum(len(word) > 1 and word.endswith(END_MARKS) for word in words)
                progress.update()
    return TextSize(sentences, tokens, marked / tokens)


def check_size(size: TextSize, name: str) -> None:
    """Raises `ConfigurationError` if the text `name` is too small to be trained on."""
    if size.tokens < FEWEST_TOKENS:
        raise ConfigurationError(
            f"{name}: expected a text of at least {FEWEST_TOKENS:,} words, got {size.tokens:,}. "
            "Give more text, or go on from a trained biLM by training_config/bilm/fine_tune.jsonnet"
        )
    if size.num_sentences < FEWEST_SENTENCES:
        raise ConfigurationError(
            f"{name}: expected one sentence a line, but the text has {size.tokens:,} words in "
            f"{size.num_sentences} lines"
        )


def hold_out(files: Sequence[Path], size: TextSize, train: Path, dev: Path) -> None:
    """
    Writes the end of each file, `size.held_share` of its sentences and at least one, to `dev`, and
    what comes before to `train`. Neighbours in a text share words and names, so that sentences
    drawn at random would flatter.

    # Parameters

    files : `Sequence[Path]`
        The files of the text.
    size : `TextSize`
        What `measure` has found in them.
    train, dev : `Path`
        The files to write, one sentence a line.

    # Raises

    ConfigurationError
        If a file can't be read, or has changed since it was measured.
    """
    with ExitStack() as stack:
        parts = [
            stack.enter_context(open(path, "w", encoding="utf-8", newline="\n"))
            for path in (train, dev)
        ]
        progress = stack.enter_context(
            Tqdm.tqdm(desc="holding out", total=size.num_sentences, unit=" sentences")
        )
        for file, num_sentences in zip(files, size.sentences, strict=True):
            last_trained = num_sentences - max(1, round(num_sentences * size.held_share))
            number = 0
            for number, words in enumerate(split_lines(file), start=1):
                parts[number > last_trained].write(" ".join(words) + "\n")
                progress.update()
            if number != num_sentences:
                raise ConfigurationError(
                    f"{file}: expected {num_sentences:,} sentences, as when it was measured, got "
                    f"{number:,}. Let it be written to its end first."
                )
