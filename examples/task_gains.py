"""
What ELMo brings to tasks, at its input, and at its input and output, beside the same model without
it and with a biLM that has learned nothing:

    python examples/task_gains.py DATA --folder runs/gains

DATA holds the published files, as far as they are there; tasks without any are left out:

    sst/train.txt             Stanford Sentiment Treebank, a bracketed tree a line (and dev.txt)
    conll2003/eng.train       named entities (and eng.testa)
    conll2000/train.txt       chunks; a tenth of it is held out as dev
    ud_ewt/en_ewt-ud-train.conllu   Universal Dependencies, English EWT (and en_ewt-ud-dev.conllu)
    wikitext103/*.txt         running text, a paragraph a line, tokens between spaces
    ag_news/train.csv         news: class, title, description

A biLM over characters is pre-trained on all the text there is, without labels and without dev. Then
each task is trained on all of its training set and on shares of it, in four forms, with several
seeds, and everything but the form equal. Two of the smaller shares are trained in more forms, which
tell what it is that helps: more text, more training on the task's own text, other mixes. gains.md
has the tables, gains.json every number. Started again after it was stopped, it goes on where it
was; in another folder or on another machine, with `--results gains.json` of the first, it trains
what that lacks.
"""

import argparse
import json
import math
import random
import re
import sys
from pathlib import Path
from statistics import mean, stdev
from types import MappingProxyType
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from allennlp.common.checks import ConfigurationError
from tqdm import tqdm

from elmo_scratch.data import SpacyBlankTokenizer
from elmo_scratch.data.ag_news_reader import ag_news_rows
from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.files.identity import identity_of
from elmo_scratch.files.machine import num_processors
from elmo_scratch.search.tasks import Task, config_of_training, run_all, study_in

CONFIGS = Path(__file__).resolve().parent.parent / "training_config"
SEEDS = ("random_seed", "numpy_seed", "pytorch_seed")


class Form(NamedTuple):
    """
    A way to train a task.

    # Parameters

    config : `str`, optional (default = `"input_output"`)
        Which of the task's configs it is trained by.
    bilm : `str`, optional (default = `"biLM"`)
        The biLM that it reads, empty for none.
    elmo : `Mapping[str, object]`, optional (default = none)
        Changes to the config of its ELMo.
    settings : `Mapping[str, object]`, optional (default = none)
        Changes to the rest of the config.
    """

    config: str = "input_output"
    bilm: str = "biLM"
    elmo: Mapping[str, object] = MappingProxyType({})
    settings: Mapping[str, object] = MappingProxyType({})


WHOLE = "input and output"
"""The form that `HELPS` compares others with."""

FORMS = {
    "none": Form("none", ""),
    "untrained": Form(bilm="untrained biLM"),
    "input": Form("input"),
    WHOLE: Form(),
}
"""What is compared in all tasks."""


def both_mixes(kind: str) -> Dict[str, object]:
    """The config of an ELMo whose two vectors are both made by one kind of mix."""
    return {"mix": {"type": kind}, "output_mix": {"type": kind}}


FINE_TUNED = "fine-tuned biLM"
"""What each task of `HELPS` has its own of."""

ANYWHERE = {
    "a tenth of the text": Form(bilm="biLM of a tenth"),
    "the biLM fine-tuned on the task's text": Form(bilm=FINE_TUNED),
    "the top layer alone": Form(elmo=both_mixes("top")),
    "the mean of the layers": Form(elmo=both_mixes("mean")),
}

WEIGHTS = r".*mix(es\.\d+)?\.weights"
TEN_TIMES = {"type": "l2", "alpha": 1.0}

HELPS = {
    ("named entities", 0.1): {
        **ANYWHERE,
        "no L2 on the weights of layers": Form(settings={"model.regularizer": None}),
        "ten times that L2": Form(settings={"model.regularizer.regexes": [[WEIGHTS, TEN_TIMES]]}),
    },
    ("dependencies", 0.1): ANYWHERE,
}
"""What else is tried, to see what it is that helps."""


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
    published: Optional[Tuple[float, float]] = None


TASKS = {
    "SST-5": Labelled(
        *("sst", ("SST_TRAIN", "SST_DEV"), "sst/train.txt", "sst/dev.txt", "accuracy"),
        {1.0: (6, 6), 0.1: (15, 5)},
        elmo="model.elmo",
        # 37 times as many texts, all of them parts of others.
        settings={"dataset_reader.use_subtrees": False},
        published=(0.514, 0.547),
    ),
    "named entities": Labelled(
        *("ner", ("NER_TRAIN", "NER_DEV"), "conll2003/eng.train", "conll2003/eng.testa"),
        *("f1-measure-overall", {1.0: (10, 5), 0.1: (24, 6), 0.01: (100, 5)}),
        published=(0.9015, 0.9222),
    ),
    "chunks": Labelled(
        *("chunking", ("CHUNKING_TRAIN", "CHUNKING_DEV"), "conll2000/train.txt", ""),
        *("f1-measure-overall", {1.0: (8, 4), 0.1: (24, 6)}),
    ),
    "parts of speech": Labelled(
        *("pos", ("UD_TRAIN", "UD_DEV"), "ud_ewt/en_ewt-ud-train.conllu"),
        *("ud_ewt/en_ewt-ud-dev.conllu", "accuracy", {1.0: (8, 4), 0.1: (20, 5)}),
    ),
    "dependencies": Labelled(
        *("dependencies", ("UD_TRAIN", "UD_DEV")),
        *("ud_ewt/en_ewt-ud-train.conllu", "ud_ewt/en_ewt-ud-dev.conllu", "LAS"),
        {1.0: (20, 5), 0.1: (100, 5)},
        most=1500,
    ),
}

BILM = {
    "vocabulary.min_count": 3,
    "model.bilm.token_encoder.dim": 256,
    "model.bilm.cell_size": 640,
    "model.softmax": {"type": "adaptive"},
    "trainer.num_epochs": 6,
    "data_loader.batch_size": 64,
}
"""How the biLM differs from training_config/bilm/ptb.jsonnet, which was made for half the text."""

HELD_OUT = 0.02
"""The share of a text that its biLM is measured on."""

TENTH = {"trainer.num_epochs": 18}
"""
Of a biLM of a tenth of the text: less than a third of the steps, since after more of them it would
know its text by heart.
"""

FINE_TUNING = {
    "data_loader.batch_size": 32,
    "data_loader.unroll_steps": 35,
    "trainer.num_epochs": 2,
}
"""How that differs from training_config/bilm/fine_tune.jsonnet."""


# --------------------------------------------------------------------------------------------------
# Text and shares of it


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
        if name in {name for name, _ in HELPS}:
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


# --------------------------------------------------------------------------------------------------
# Trainings


def file_name(title: str) -> str:
    """What a folder is called after this."""
    return re.sub(r"\W+", "_", title)


class Plan:
    """
    Collects trainings.

    # Parameters

    folder : `Path`
        Of the study.
    bilm, overrides : `Dict[str, object]`
        Changes to the configs of biLMs, and to those of tasks.
    """

    def __init__(self, folder: Path, bilm: Dict[str, object], overrides: Dict[str, object]) -> None:
        self.tasks: List[Task] = []
        self._folder = folder
        self._bilm = bilm
        self._overrides = overrides

    def add_bilms(self, texts: Texts) -> None:
        """All that any form reads."""
        # Steps of length zero, over the shorter text.
        still = {
            "trainer.optimizer.lr": 0.0,
            "trainer.num_epochs": 1,
            "train_data_path": str(texts.corpus[1]),
        }
        for name, files, changes in (
            ("biLM", texts.corpus, {}),
            ("untrained biLM", texts.corpus, still),
            ("biLM of a tenth", texts.tenth, TENTH),
        ):
            variables = dict(zip(("PTB_TRAIN", "PTB_DEV"), map(str, files)))
            self._add(
                Task(name, "", "", [], variables, self._place(name), [], None, True),
                "bilm/ptb",
                {**BILM, **changes, **self._bilm},
            )
        for task, files in texts.own.items():
            name = f"fine-tuned biLM, {task}"
            variables = dict(zip(("CORPUS_TRAIN", "CORPUS_DEV"), map(str, files)))
            variables["BILM_ARCHIVE"] = str(self._archive("biLM"))
            loaders = {key: one for key, one in self._bilm.items() if "data_loader" in key}
            self._add(
                Task(name, "", "", [], variables, self._place(name), ["biLM"], None, True),
                "bilm/fine_tune",
                {**FINE_TUNING, **loaders},
            )

    def add_form(
        self, name: str, share: float, title: str, form: Form, files: Sequence[Path], seed: int
    ) -> None:
        """One training of a task."""
        task, part = TASKS[name], f"{name}, {share:.0%}"
        passes, looks = task.budget[share]
        # What AllenNLP calls an epoch ends by a look at dev, which takes longer than a small share.
        batches = math.ceil(len(sentences_of(files[0])) / task.batch_size) * passes // looks
        settings: Dict[str, object] = {
            "data_loader.batch_sampler.batch_size": task.batch_size,
            "data_loader.batches_per_epoch": batches,
            "trainer.num_epochs": looks,
            "trainer.patience": None,
            **task.settings,
            **form.settings,
            **self._overrides,
            **dict.fromkeys(SEEDS, seed),
        }
        variables = dict(zip(task.variables, map(str, files)))
        needs: List[str] = []
        if form.bilm:
            needs = [f"{form.bilm}, {name}" if form.bilm == FINE_TUNED else form.bilm]
            archive = self._archive(needs[0])
            width = 2 * int(str({**BILM, **self._bilm}["model.bilm.token_encoder.dim"]))
            variables.update(BILM_ARCHIVE=str(archive), BILM_WIDTH=str(width))
            # All trainings read the same layers.
            changes = {**form.elmo, "keep_layers": {"type": "file", "path": f"{archive}.layers"}}
            settings.update({f"{task.elmo}.{key}": value for key, value in changes.items()})
        folder = self._folder / task.config / f"{share:g}_{file_name(title)}_{seed}"
        self._add(
            Task(
                *(f"{part}: {title}, seed {seed}", part, title, [], variables, folder, needs),
                *(None, True),
            ),
            f"{task.config}/{form.config}",
            settings,
        )

    def _place(self, name: str) -> Path:
        """Where a biLM is trained."""
        return self._folder / file_name(name)

    def _archive(self, name: str) -> Path:
        """Where that biLM is, when it has been trained."""
        return self._place(name) / "run" / "model.tar.gz"

    def _add(self, task: Task, config: str, settings: Dict[str, object]) -> None:
        """Completes a task by its command, and by what decides on its result."""
        path = CONFIGS / f"{config}.jsonnet"
        command = [sys.executable, "-m", "allennlp", "train", str(path)]
        command += ["-s", str(task.folder / "run"), "--include-package", "elmo_scratch"]
        command += ["--overrides", json.dumps(settings)]
        evaluated = config_of_training(path, settings, task.variables)
        # What is in files counts, not where they are.
        text = json.dumps(evaluated).replace(json.dumps(str(self._folder))[1:-1], "FOLDER")
        files = [
            Path(value)
            for name, value in task.variables.items()
            if "_TRAIN" in name or "_DEV" in name
        ]
        decisive = {
            "config": json.loads(text),
            "data": identity_of(files),
            "needs": {
                other.name: other.settings for other in self.tasks if other.name in task.needs
            },
        }
        self.tasks.append(task._replace(command=command, settings=decisive))


# --------------------------------------------------------------------------------------------------
# Results


class Score(NamedTuple):
    """
    What one training reached.

    # Parameters

    part, form : `str`
        The task with its share of the training set, and the form.
    seed : `int`
        Of the draws of weights and of the order of sentences.
    best : `float`
        The score of the best epoch on dev, between 0 and 1.
    last : `float`
        After the last epoch, which dev has not chosen.
    seconds : `float`
        What it took, in all its runs.
    settings : `str`
        `Task.fingerprint`: the same one means the same training, on any machine.
    """

    part: str
    form: str
    seed: int
    best: float
    last: float
    seconds: float
    settings: str


def score_of(task: Task) -> Score:
    """By the metrics that AllenNLP's trainer wrote."""
    name = TASKS[task.part.rpartition(",")[0]].score
    run = task.folder / "run"
    ending = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    epochs = {int(path.stem.rpartition("_")[2]): path for path in run.glob("metrics_epoch_*.json")}
    last = json.loads(epochs[max(epochs)].read_text(encoding="utf-8"))
    return Score(
        task.part,
        task.row,
        task.settings["config"]["random_seed"],
        ending[f"best_validation_{name}"],
        last[f"validation_{name}"],
        task.seconds(),
        task.fingerprint(),
    )


def read_scores(path: Path) -> Dict[str, Score]:
    """
    The scores of a gains.json, by their `settings`. Raises `ConfigurationError` if it is none.
    """
    try:
        scores = [Score(**one) for one in json.loads(path.read_text(encoding="utf-8"))]
        for score in scores:
            if not 0.0 <= score.best <= 1.0:
                raise ValueError(f"a score of {score.best}")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{path}: expected the `gains.json` of such a study, but it is none ({error})"
        ) from None
    return {score.settings: score for score in scores}


def markdown(scores: Sequence[Score]) -> str:
    """
    Two tables. The first has a row for each task, share and form, with mean and standard deviation
    over the seeds, and what ELMo changes; the second what other forms change of ELMo at input and
    output.
    """
    head = (
        "| task, share of the training set | form | seeds | score on dev | after the last epoch |"
    )
    gains = [f"{head} gain | errors less | of the paper's | time |", f"|---|---|{7 * '---:|'}"]
    helps = [f"{head} difference | time |", f"|---|---|{5 * '---:|'}"]
    for part in dict.fromkeys(score.part for score in scores):
        here = [score for score in scores if score.part == part]
        for form in dict.fromkeys(score.form for score in here):
            ones = [score for score in here if score.form == form]
            without = [score.best for score in here if score.form == "none" != form]
            whole = [score.best for score in here if score.form == WHOLE != form]
            best = [score.best for score in ones]
            cells = [part, form, str(len(ones)), points(best), points([one.last for one in ones])]
            seconds = f"{mean(score.seconds for score in ones):.0f} s"
            if form in FORMS:
                cells += [difference(best, without), *errors_less(best, without, part), seconds]
                gains.append(f"| {' | '.join(cells)} |")
            if form not in FORMS or form == WHOLE:
                helps.append(f"| {' | '.join([*cells[:5], difference(best, whole), seconds])} |")
    tables = [*gains, "", NOTE, ""]
    if any(score.form not in FORMS for score in scores):
        tables += ["What helps, beside ELMo at input and output as it is above:", "", *helps, ""]
    return "\n".join(tables)


def difference(best: Sequence[float], others: Sequence[float]) -> str:
    """Between two means, in points and in standard deviations; empty where there are no others."""
    if not others:
        return ""
    text = f"{100 * (mean(best) - mean(others)):+.2f}"
    if len(best) == 1 or len(others) == 1:
        return text
    noise = math.sqrt(stdev(best) ** 2 + stdev(others) ** 2)
    return f"{text} ({(mean(best) - mean(others)) / noise:+.1f} sd)" if noise else text


def errors_less(best: Sequence[float], without: Sequence[float], part: str) -> Tuple[str, str]:
    """The share of the errors that are gone, and how much of the paper's share this is."""
    if not without:
        return "", ""
    reduction = (mean(best) - mean(without)) / (1 - mean(without))
    published = TASKS[part.rpartition(",")[0]].published
    if published is None:
        return f"{reduction:.1%}", ""
    return (
        f"{reduction:.1%}",
        f"{reduction * (1 - published[0]) / (published[1] - published[0]):.0%}",
    )


NOTE = (
    "Mean ± standard deviation over the seeds, in percent, of the best epoch on dev: dev flatters "
    "all forms alike. A gain of 1 sd is one standard deviation of the difference between one "
    "training with ELMo and one without. Errors less: the share of the errors without ELMo that "
    "are gone; beside it how much that is of the paper's share, on its test set, with all of its "
    "training set and a biLM of a billion words."
)


def points(numbers: Sequence[float]) -> str:
    """Mean and standard deviation, in percent."""
    text = f"{100 * mean(numbers):.2f}"
    return text if len(numbers) == 1 else f"{text} ± {100 * stdev(numbers):.2f}"


# --------------------------------------------------------------------------------------------------
# The command


def parse_arguments() -> Tuple[argparse.ArgumentParser, argparse.Namespace]:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder of the published files")
    parser.add_argument("--folder", type=Path, required=True, help="where everything is written")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each (default: 3)")
    parser.add_argument(
        "--jobs",
        type=int,
        default=num_processors(),
        help="trainings at a time, each with its share of the processors (default: one each)",
    )
    parser.add_argument(
        "--only",
        type=re.compile,
        metavar="REGEX",
        default="",
        help="the trainings in whose name it is found, such as 'named entities, 1%%: ' or 'seed 0'",
    )
    for name, what in (("--bilm", "biLM"), ("--overrides", "task")):
        parser.add_argument(
            name,
            type=json.loads,
            default={},
            metavar="JSON",
            help=f"changes to the config of each {what}",
        )
    parser.add_argument(
        "--results",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a gains.json from another folder or machine: what it has is not trained again",
    )
    return parser, parser.parse_args()


def main() -> None:
    """Runs what has not been run yet, and writes the results."""
    parser, args = parse_arguments()
    if args.seeds < 1 or args.jobs < 1:
        parser.error("expected at least one of `--seeds` and of `--jobs`")
    folder = args.folder.resolve()
    with study_in(folder, parser):
        try:
            known = {key: one for path in args.results for key, one in read_scores(path).items()}
            texts = write_texts(args.data, folder / "texts")
            plan = Plan(folder, args.bilm, args.overrides)
            plan.add_bilms(texts)
            for (name, share), files in texts.tasks.items():
                for title, form in {**FORMS, **HELPS.get((name, share), {})}.items():
                    for seed in range(args.seeds):
                        plan.add_form(name, share, title, form, files, seed)
        except ConfigurationError as error:
            parser.error(error.message)
        others = [task.folder for task in plan.tasks if task.is_another()]
        if others:
            parser.error(
                f"{others[0]} and {len(others) - 1} other folders hold what other settings or "
                "texts have made. Take another `--folder`, or remove them"
            )
        undone = run_all(chosen(plan.tasks, args.only, known), args.jobs)
        done = {
            task.fingerprint(): score_of(task) for task in plan.tasks if task.row and task.is_done
        }
        scores = [{**known, **done}.get(task.fingerprint()) for task in plan.tasks]
        write_results([score for score in scores if score is not None], folder)
    if undone.failed:
        sys.exit(f"failed: {', '.join(undone.failed)}. Their logs are in {folder}")


def chosen(tasks: Sequence[Task], only: Any, known: Dict[str, Score]) -> List[Task]:
    """The trainings that are asked for and not known, and what they need."""
    wanted = [
        task
        for task in tasks
        if task.row and re.search(only, task.name) and task.fingerprint() not in known
    ]
    needed: Set[str] = set()
    # Whatever is needed stands before what needs it.
    for task in reversed(tasks):
        if (task in wanted or task.name in needed) and not task.is_done:
            needed.update(task.needs)
    return [task for task in tasks if task.name in needed or task in wanted]


def write_results(scores: Sequence[Score], folder: Path) -> None:
    """Writes gains.json and gains.md, and prints the latter."""
    write(folder / "gains.json", json.dumps([one._asdict() for one in scores], indent=1) + "\n")
    table = markdown(scores)
    write(folder / "gains.md", table)
    print(table)


if __name__ == "__main__":
    main()
