"""The forms in which tasks are trained, and their trainings."""

import json
import math
import re
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Set

from labelled import TASKS, Texts, sentences_of

from elmo_scratch.files.identity import identity_of
from elmo_scratch.search.tasks import Task, TrainingConfigs

CONFIGS = Path(__file__).resolve().parents[2] / "training_config"
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
"""What each task has its own of."""

WEIGHTS = r".*mix(es\.\d+)?\.weights"
TEN_TIMES = {"type": "l2", "alpha": 1.0}

HELPS = {
    ("named entities", 0.01): {
        "a tenth of the text": Form(bilm="biLM of a tenth"),
        "the biLM fine-tuned on the task's text": Form(bilm=FINE_TUNED),
        "the top layer alone": Form(elmo=both_mixes("top")),
        "the mean of the layers": Form(elmo=both_mixes("mean")),
        "no L2 on the weights of layers": Form(settings={"model.regularizer": None}),
        "ten times that L2": Form(settings={"model.regularizer.regexes": [[WEIGHTS, TEN_TIMES]]}),
    },
}
"""What else is tried, to see what it is that helps."""

BILM = {
    "vocabulary.min_count": 3,
    "model.bilm.token_encoder.dim": 256,
    "model.bilm.cell_size": 640,
    "model.softmax": {"type": "adaptive"},
    "trainer.num_epochs": 6,
    "data_loader.batch_size": 64,
}
"""How the biLM differs from training_config/bilm/ptb.jsonnet, which was made for half the text."""

TENTH = {"trainer.num_epochs": 18}
"""
A biLM of a tenth of the text takes less than a third of the steps: after more of them it would know
its text by heart.
"""

FINE_TUNING = {
    "data_loader.batch_size": 32,
    "data_loader.unroll_steps": 35,
    "trainer.num_epochs": 2,
}
"""How that differs from training_config/bilm/fine_tune.jsonnet."""


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
        self._configs = TrainingConfigs()

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
            **task.share_settings.get(share, {}),
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
        command += ["-s", str(task.folder / "run"), "--overrides", json.dumps(settings)]
        evaluated = self._configs.changed(path, settings, task.variables)
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


def chosen(tasks: Sequence[Task], only: Any, known: Mapping[str, object]) -> List[Task]:
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
