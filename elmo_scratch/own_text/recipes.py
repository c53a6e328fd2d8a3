"""Chooses a config of `training_config/bilm/` by the size of a text, and fits it to the text."""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

from allennlp.common import Params

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
