"""The tasks, their labelled sentences, and the text of biLMs that these and other files hold."""

import random
import re
from pathlib import Path
from types import MappingProxyType
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from allennlp.common.checks import ConfigurationError
from tqdm import tqdm

from elmo_scratch.data import SpacyBlankTokenizer
from elmo_scratch.data.readers import ag_news_rows
from elmo_scratch.files.atomic import atomic_write


class Labelled(NamedTuple):
    """
    A task.

    # Parameters

    config : `str`
        Its folder in training_config/.
    variables : `Tuple[str, str]`
        Which of the config's variables name the files to train on and to measure on.
    train, dev : `str`
        These files, below the folder of the data. An empty `dev` holds a tenth of `train` out.
    score : `str`
        Of the metrics that AllenNLP writes, a share of what could be right.
    budget : `Dict[float, Tuple[int, int]]`
        The shares of the training set, how many times each is read, and how many times the model is
        measured on dev meanwhile.
    elmo : `str`, optional (default = an embedder called `elmo`)
        Where the config has its ELMo.
    settings : `Mapping[str, object]`, optional (default = none)
        Changes to the config.
    batch_size : `int`, optional (default = 32)
        Sentences of a batch.
    most : `int`, optional (default = `None`)
        Sentences that all of the training set shall mean.
    share_settings : `Mapping[float, Mapping[str, object]]`, optional (default = none)
        Changes to the config for single shares.
    published : `Tuple[float, float]`, optional (default = `None`)
        The paper's scores without and with ELMo, on the test set.
    """

    config: str
    variables: Tuple[str, str]
    train: str
    dev: str
    score: str
    budget: Dict[float, Tuple[int, int]]
    elmo: str = "model.text_field_embedder.token_embedders.elmo"
    settings: Mapping[str, object] = MappingProxyType({})
    batch_size: int = 32
    most: Optional[int] = None
    share_settings: Mapping[float, Mapping[str, object]] = MappingProxyType({})
    published: Optional[Tuple[float, float]] = None


AVERAGED = {"trainer.moving_average": {"type": "exponential", "decay": 0.998}}
"""
What counts is the average of the weights over the last 500 steps: after few passes over much text,
what the last steps alone do leaves the seeds of one form more than a point apart.
"""

TASKS = {
    "SST-5": Labelled(
        *("sst", ("SST_TRAIN", "SST_DEV"), "sst/train.txt", "sst/dev.txt", "accuracy"),
        {1.0: (5, 5), 0.1: (15, 5)},
        elmo="model.elmo",
        # 37 times as many texts, all of them parts of others.
        settings={"dataset_reader.use_subtrees": False},
        published=(0.514, 0.547),
    ),
    "named entities": Labelled(
        *("ner", ("NER_TRAIN", "NER_DEV"), "conll2003/eng.train", "conll2003/eng.testa"),
        *("f1-measure-overall", {1.0: (6, 3), 0.1: (24, 6), 0.01: (100, 5)}),
        share_settings={1.0: AVERAGED},
        published=(0.9015, 0.9222),
    ),
    "chunks": Labelled(
        *("chunking", ("CHUNKING_TRAIN", "CHUNKING_DEV"), "conll2000/train.txt", ""),
        *("f1-measure-overall", {1.0: (5, 5), 0.1: (24, 6)}),
    ),
    "parts of speech": Labelled(
        *("pos", ("UD_TRAIN", "UD_DEV"), "ud_ewt/en_ewt-ud-train.conllu"),
        *("ud_ewt/en_ewt-ud-dev.conllu", "accuracy", {1.0: (5, 5), 0.1: (20, 5)}),
    ),
    "dependencies": Labelled(
        *("dependencies", ("UD_TRAIN", "UD_DEV")),
        *("ud_ewt/en_ewt-ud-train.conllu", "ud_ewt/en_ewt-ud-dev.conllu", "LAS"),
        {1.0: (15, 5), 0.1: (100, 5)},
        # The best tree of each sentence of dev takes longer than all of training; each word's best
        # head does as well for a comparison.
        settings={"model.use_mst_decoding_for_validation": False},
        most=1500,
    ),
}

HELD_OUT = 0.02
"""The share of a text that its biLM is measured on."""


def sentences_of(path: Path) -> List[str]:
    """
    The labelled sentences of a file, each as it stands there: a line of trees, or the lines up to
    an empty one. What only divides documents is left out.
    """
    text = path.read_text(encoding="utf-8")
    blocks = text.splitlines() if text.startswith("(") else re.split(r"\n[ \t]*\n", text)
    blocks = [block.strip("\n") for block in blocks]
    return [block for block in blocks if block.strip() and not block.startswith("-DOCSTART-")]


def join_sentences(blocks: Sequence[str]) -> str:
    """The text of a file that holds these sentences."""
    end = "\n" if blocks and blocks[0].startswith("(") else "\n\n"
    return "".join(block + end for block in blocks)


def words_of(block: str) -> List[str]:
    """The words of a labelled sentence."""
    if block.startswith("("):
        leaves = " ".join(re.findall(r"([^\s()]+)\)", block))
        return leaves.replace("\\/", "/").replace("-LRB-", "(").replace("-RRB-", ")").split()
    lines = [line for line in block.splitlines() if not line.startswith("# ")]
    if "\t" not in lines[0]:
        return [line.split()[0] for line in lines]
    # Of CoNLL-U: neither what is written together nor what isn't written at all.
    rows = [line.split("\t") for line in lines]
    return [row[1] for row in rows if row[0].isdecimal()]


def unlabelled(data: Path) -> Iterator[List[str]]:
    """All sentences of the texts that are there, but for those of dev."""
    for path in sorted((data / "wikitext103").glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            words = line.replace(" @-@ ", " - ").replace(" @,@ ", ",").replace(" @.@ ", ".").split()
            if words and not line.startswith(" ="):
                yield words
    labelled = {task.train: task for task in TASKS.values()}
    for name, task in labelled.items():
        if (data / name).exists():
            train, _ = labelled_sentences(data, task)
            yield from map(words_of, train)
    news = data / "ag_news" / "train.csv"
    if news.exists():
        tokenizer = SpacyBlankTokenizer()
        for row in ag_news_rows(news):
            yield [str(token) for token in tokenizer.tokenize(row.description)]


def labelled_sentences(data: Path, task: Labelled) -> Tuple[List[str], List[str]]:
    """The sentences of a task to train on, and those to measure on."""
    train = sentences_of(data / task.train)
    if task.dev:
        return train, sentences_of(data / task.dev)
    random.Random(0).shuffle(train)
    count = len(train) // 10
    return train[count:], train[:count]


class Texts(NamedTuple):
    """
    The files that trainings read.

    # Parameters

    corpus, tenth : `Tuple[Path, Path]`
        All the text of the biLM and a tenth of it, and what they are measured on.
    tasks : `Dict[Tuple[str, float], Tuple[Path, Path]]`
        By task and share: what to train on, and what to measure on.
    own : `Dict[str, Tuple[Path, Path]]`
        By task: its text without labels, and what a biLM of it is measured on.
    """

    corpus: Tuple[Path, Path]
    tenth: Tuple[Path, Path]
    tasks: Dict[Tuple[str, float], Tuple[Path, Path]]
    own: Dict[str, Tuple[Path, Path]]


def write_texts(data: Path, folder: Path) -> Texts:
    """Writes the text of the biLM, and the shares of each training set that is there."""
    tasks: Dict[Tuple[str, float], Tuple[Path, Path]] = {}
    own: Dict[str, Tuple[Path, Path]] = {}
    for name, task in TASKS.items():
        if not (data / task.train).exists():
            continue
        train, dev = labelled_sentences(data, task)
        place = folder / task.config
        own[name] = write_corpus([[" ".join(words_of(one))] for one in train], place / "text")
        random.Random(1).shuffle(train)
        train = train[: task.most]
        for share in task.budget:
            file = place / f"train_{share:g}.txt"
            write(file, join_sentences(train[: max(1, round(share * len(train)))]))
            tasks[name, share] = (file, place / "dev.txt")
        write(place / "dev.txt", join_sentences(dev))
    if not tasks:
        files = ", ".join(sorted({task.train for task in TASKS.values()}))
        raise ConfigurationError(f"{data}: expected at least one of {files}, but there is none")
    lines = [" ".join(words) for words in tqdm(unlabelled(data), desc="text", unit=" sentences")]
    # Blocks of neighbours, so that what belongs together stays so.
    blocks = [lines[start : start + 50] for start in range(0, len(lines), 50)]
    random.Random(2).shuffle(blocks)
    corpus = write_corpus(blocks, folder / "corpus")
    # Measured on the same, so that perplexities can be compared.
    tenth = (folder / "corpus" / "tenth.txt", corpus[1])
    write(tenth[0], join_blocks(blocks[-max(1, len(blocks) // 10) :]))
    return Texts(corpus, tenth, tasks, own)


def write_corpus(blocks: Sequence[Sequence[str]], folder: Path) -> Tuple[Path, Path]:
    """Writes what a biLM is to read, and what it is measured on: a part held out at the start."""
    count = max(1, round(HELD_OUT * len(blocks)))
    files = (folder / "train.txt", folder / "dev.txt")
    write(files[0], join_blocks(blocks[count:] or blocks))
    write(files[1], join_blocks(blocks[:count]))
    return files


def join_blocks(blocks: Sequence[Sequence[str]]) -> str:
    """The text of a file that has the sentences of these blocks, one a line."""
    return "".join(f"{line}\n" for block in blocks for line in block)


def write(path: Path, text: str) -> None:
    """Writes a file whole, and leaves one alone that holds the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        with atomic_write(path) as part:
            part.write_text(text, encoding="utf-8")
