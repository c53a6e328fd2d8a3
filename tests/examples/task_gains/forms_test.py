from pathlib import Path
from types import ModuleType
from typing import Any, Dict

import pytest

from tests.examples.task_gains import SMALL


@pytest.fixture
def forms(modules: Dict[str, ModuleType]) -> Any:
    return modules["forms"]


@pytest.fixture(scope="module")
def plan(
    modules: Dict[str, ModuleType], data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """All trainings of the study: their configs take seconds to read."""
    forms = modules["forms"]
    folder = tmp_path_factory.mktemp("study")
    texts = modules["labelled"].write_texts(data, folder / "texts")
    plan = forms.Plan(folder, SMALL, {})
    plan.add_bilms(texts)
    for (name, share), files in texts.tasks.items():
        for title, form in {**forms.FORMS, **forms.HELPS.get((name, share), {})}.items():
            plan.add_form(name, share, title, form, files, 0)
    return plan


def test_whatever_a_training_needs_is_chosen_with_it(forms: Any, plan: Any) -> None:
    names = [task.name for task in forms.chosen(plan.tasks, "named entities, 1%: the biLM", {})]
    own = "fine-tuned biLM, named entities"
    assert names[:2] == ["biLM", own]
    assert names[2:] == ["named entities, 1%: the biLM fine-tuned on the task's text, seed 0"]
    # Not for what has been trained already.
    (task,) = (task for task in plan.tasks if task.name == own)
    task.folder.mkdir(parents=True)
    (task.folder / "done").touch()
    names = [task.name for task in forms.chosen(plan.tasks, "named entities, 1%: the biLM", {})]
    assert "biLM" not in names


def test_trainings_differ_by_their_forms(forms: Any, plan: Any) -> None:
    assert len({task.fingerprint() for task in plan.tasks}) == len(plan.tasks)
    assert len({task.folder for task in plan.tasks}) == len(plan.tasks)
    configs = {
        task.row: task.settings["config"]
        for task in plan.tasks
        if task.part == "named entities, 1%"
    }
    elmo = "text_field_embedder", "token_embedders", "elmo"

    def mixes(form: str) -> Any:
        config = configs[form]["model"]
        for key in elmo:
            config = config[key]
        return [config[key]["type"] for key in ("mix", "output_mix")]

    assert mixes("input and output") == ["trainable", "trainable"]
    assert mixes("the top layer alone") == ["top", "top"]
    (rule,) = configs["input and output"]["model"]["regularizer"]["regexes"]
    (other,) = configs["ten times that L2"]["model"]["regularizer"]["regexes"]
    assert rule[0] == other[0] and 10 * rule[1]["alpha"] == other[1]["alpha"]
    assert configs["no L2 on the weights of layers"]["model"]["regularizer"] is None
    # Each share is read as often as it is to be, however often dev is looked at: a sentence is a
    # batch here, and dev is looked at five times.
    none = configs["none"]
    assert none["data_loader"]["batches_per_epoch"] * none["trainer"]["num_epochs"] == 100
