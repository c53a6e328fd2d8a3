"""What the study trains."""

import json
import re
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Set

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.identity import identity_of
from elmo_scratch.search.tasks import Task, TrainingConfigs

CONFIGS = Path(__file__).parent.parent.parent / "training_config"
ALLENNLP = [sys.executable, "-m", "allennlp"]

SEEDS = ("random_seed", "numpy_seed", "pytorch_seed")
"""Where a config has its seeds."""

METHODS = {"word2vec": ["--epochs", "20"], "svd": []}
"""The static vectors, and what they need: word2vec learns too little of so small a text in five."""

STILL = {
    "trainer.optimizer.lr": 0.0,
    "trainer.num_epochs": 1,
    "data_loader.batches_per_epoch": 1,
}
"""Leaves a biLM untrained: one step, of length zero."""

MIXES = ["trainable", "frozen", "function", "top", "mean"]

BILMS = {
    "words": "words",
    "words from word2vec": "words",
    "characters": "characters",
    "untrained words": "words",
}
"""Each biLM, and which `STUDY_VECTORS` of study.jsonnet reads it."""


class Best(NamedTuple):
    """
    One of the best classifiers.

    # Parameters

    config : `str`
        Of training_config/ag_news/.
    bilm, vectors : `str`
        What it reads, by the names of their own rows; an empty name for no biLM.
    is_frozen : `bool`
        Whether the biLM is, so that all seeds can read the same layers.
    """

    config: str
    bilm: str = "words with titles"
    vectors: str = "word2vec with titles"
    is_frozen: bool = True


FROZEN, TITLES_TOO, TRAINED_ON = "frozen biLM", "frozen biLM, of titles too", "biLM trained on"
WITHOUT = "no biLM"

BEST = {
    "descriptions": {
        WITHOUT: Best("word2vec", "", "word2vec"),
        FROZEN: Best("elmo_word2vec", "words from word2vec", "word2vec"),
        TITLES_TOO: Best("elmo_word2vec"),
        TRAINED_ON: Best("elmo_fine_tuned", is_frozen=False),
    },
    "titles": {
        WITHOUT: Best("word2vec_titles", ""),
        FROZEN: Best("elmo_word2vec_titles"),
        TRAINED_ON: Best("elmo_fine_tuned_titles", is_frozen=False),
    },
}
"""The parts that compare the best classifiers, by their rows."""

QUICK = "^mixes: (words from word2vec, .*|word2vec|svd)$"
"""The rows over one biLM, and those of static vectors, by a regular expression."""


def planned_tasks(
    train: Path, dev: Path, folder: Path, seeds: Sequence[int], overrides: Dict[str, object]
) -> List[Task]:
    """
    # Parameters

    train, dev : `Path`
        AG News files.
    folder : `Path`
        Of the study.
    seeds : `Sequence[int]`
        Those of the trainings of each classifier.
    overrides : `Dict[str, object]`
        For each training.

    # Returns

    `List[Task]`
        All of them, those that others need first.

    # Raises

    ConfigurationError
        If a config can't take the overrides, or they set what the study itself does.
    """
    plan = Plan(train.resolve(), dev.resolve(), folder.resolve(), overrides)
    for method in METHODS:
        plan.add_vectors(method, method, {"max_tokens": 100})
    plan.add_bilm("words", "ag_news", {})
    plan.add_bilm("characters", "ag_news_characters", {})
    plan.add_bilm("words from word2vec", "ag_news", {}, ["word2vec"])
    plan.add_bilm("untrained words", "ag_news", STILL)
    for seed in seeds:
        for bilm, vectors in BILMS.items():
            for mix in MIXES if bilm != "untrained words" else ["trainable"]:
                plan.add_classifier(f"{bilm}, {mix}", vectors, plan.archive(bilm), bilm, mix, seed)
        for method in METHODS:
            plan.add_classifier(method, "static", plan.vectors(method), method, "", seed)
        plan.add_classifier("random vectors", "random", Path(), "", "", seed)
    plan.add_vectors("word2vec with titles", "word2vec", {"max_tokens": 120, "use_title": True})
    plan.add_bilm("words with titles", "ag_news_titles", {}, ["word2vec with titles"])
    for seed in seeds:
        for part, rows in BEST.items():
            for row, best in rows.items():
                plan.add_best(part, row, best, seed)
    return plan.tasks


def seeds_there(folder: Path) -> Set[int]:
    """The seeds that the trainings in a study's folder have, now or from before."""
    names = (re.search(r"seed_(\d+)$", path.name) for path in folder.glob("*/*seed_*"))
    return {int(name[1]) for name in names if name}


def chosen_tasks(tasks: Sequence[Task], only: str) -> List[Task]:
    """
    # Parameters

    tasks : `Sequence[Task]`
        All there are, those that others need first.
    only : `str`
        A regular expression.

    # Returns

    `List[Task]`
        Those in whose parts and rows, such as `mixes: words, top`, it is found, and what they need.
    """
    chosen: List[Task] = []
    wanted: Set[str] = set()
    for task in reversed(tasks):
        if task.name in wanted or (task.row and re.search(only, f"{task.part}: {task.row}")):
            chosen.append(task)
            wanted.update(task.needs)
    return chosen[::-1]


class Plan:
    """
    Collects tasks. The arguments and errors are those of `planned_tasks`, but for seeds; all paths
    are absolute.
    """

    def __init__(self, train: Path, dev: Path, folder: Path, overrides: Dict[str, object]) -> None:
        for key in SEEDS:
            if key in overrides:
                raise ConfigurationError(
                    f"the overrides set `{key}`, but each training has its own"
                )
        self.tasks: List[Task] = []
        self._data = {"AG_NEWS_TRAIN": str(train), "AG_NEWS_DEV": str(dev)}
        places = {"FOLDER": str(folder), **self._data}
        # The longest first: one may be in another.
        self._places = sorted(places.items(), key=lambda item: -len(item[1]))
        self._digests = identity_of([train, dev])
        self._folder = folder
        self._overrides = overrides
        self._configs = TrainingConfigs()

    def vectors(self, name: str) -> Path:
        """A file of word vectors."""
        return self._folder / name.replace(" ", "_") / "vectors.txt"

    def archive(self, bilm: str) -> Path:
        """The archive of a biLM."""
        return self._folder / bilm.replace(" ", "_") / "run" / "model.tar.gz"

    def add_vectors(self, name: str, method: str, reading: Dict[str, object]) -> None:
        """Word vectors as wide as the biLMs' token layers."""
        output = self.vectors(name)
        command = [*ALLENNLP, "elmo-vectors", self._data["AG_NEWS_TRAIN"], str(output)]
        command += ["--method", method, *METHODS[method]]
        command += ["--dim", "256", "--min-count", "3", "--lowercase"]
        command += ["--reader", json.dumps({"type": "ag_news", **reading}), "--overwrite"]
        made_by = self._placeless(command[len(ALLENNLP) :])
        settings = {"command": made_by, "data": self._digests}
        self.tasks.append(Task(name, "", "", command, {}, output.parent, [], settings))

    def add_bilm(
        self, name: str, config: str, settings: Mapping[str, object], needs: Sequence[str] = ()
    ) -> None:
        """A biLM; its words start from the vectors that it needs, if it needs any."""
        folder = self.archive(name).parent.parent
        if needs:
            settings = {**settings, "model.pretrained_file": str(self.vectors(needs[0]))}
        variables = {**self._data, "WORD_VECTORS": ""}
        file = CONFIGS / "bilm" / f"{config}.jsonnet"
        self._add_training(name, "", "", file, settings, variables, folder, list(needs))

    def reading(self, train: Path, dev: Path) -> "Plan":
        """A plan of other texts, for classifiers over the same vectors and biLMs."""
        other = Plan(train, dev, self._folder, self._overrides)
        other.tasks, other._configs = self.tasks, self._configs
        return other

    def add_classifier(
        self,
        row: str,
        vectors: str,
        file: Path,
        need: str,
        mix: str,
        seed: int,
        part: str = "mixes",
        settings: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """A classifier of the descriptions, by default of the part that compares mixes."""
        variables = {
            "STUDY_VECTORS": vectors,
            "STUDY_FILE": str(file),
            "STUDY_MIX": mix,
            "STUDY_SEED": str(seed),
        }
        needs = [need] if need else []
        self._add_seed(part, row, "study", seed, variables, dict(settings), needs)

    def add_best(self, part: str, row: str, best: Best, seed: int) -> None:
        """A classifier of the other parts."""
        variables = {"WORD_VECTORS": str(self.vectors(best.vectors))}
        settings: Dict[str, object] = dict.fromkeys(SEEDS, seed)
        if best.bilm:
            archive = variables["BILM_ARCHIVE"] = str(self.archive(best.bilm))
            if best.is_frozen:
                # All seeds read the same layers.
                embedder = "model.text_field_embedder.token_embedders.elmo"
                store = {"type": "file", "path": f"{archive}.layers"}
                settings[f"{embedder}.keep_layers"] = store
        needs = [best.bilm or best.vectors]
        self._add_seed(part, row, best.config, seed, variables, settings, needs)

    def _add_seed(
        self,
        part: str,
        row: str,
        config: str,
        seed: int,
        variables: Dict[str, str],
        settings: Dict[str, object],
        needs: List[str],
    ) -> None:
        """One training of a row."""
        name = f"{part}: {row}, seed {seed}"
        words = f"{row}, seed {seed}".replace(", ", "-").replace(" ", "_")
        folder = self._folder / part.replace(" ", "_") / words
        file = CONFIGS / "ag_news" / f"{config}.jsonnet"
        self._add_training(
            name, part, row, file, settings, {**self._data, **variables}, folder, needs
        )

    def _add_training(
        self,
        name: str,
        part: str,
        row: str,
        config: Path,
        settings: Mapping[str, object],
        variables: Dict[str, str],
        folder: Path,
        needs: List[str],
    ) -> None:
        """`allennlp train` into `folder/run`, from where an earlier one was stopped."""
        # What makes a row what it is goes first.
        overrides = {**self._overrides, **settings}
        command = [*ALLENNLP, "train", str(config), "-s", str(folder / "run")]
        command += ["--overrides", json.dumps(overrides)]
        evaluated = self._configs.changed(config, overrides, variables)
        made = {task.name: task.settings for task in self.tasks if task.name in needs}
        decisive = {
            "config": self._placeless(evaluated),
            "data": self._digests,
            "needs": made,
        }
        self.tasks.append(
            Task(name, part, row, command, variables, folder, needs, decisive, is_training=True)
        )

    def _placeless(self, settings: Any) -> Any:
        """Settings without where the files are: what is in them counts, and they may be moved."""
        text = json.dumps(settings)
        for name, place in self._places:
            text = text.replace(json.dumps(place)[1:-1], name)
        return json.loads(text)
