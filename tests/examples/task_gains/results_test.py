"""The results beside the study, and what is told of them elsewhere."""

from types import ModuleType
from typing import Any, Dict

import pytest

from tests import PROJECT_ROOT
from tests.examples.task_gains import STUDY

CALLED = {"accuracy": "accuracy", "f1-measure-overall": "F1", "LAS": "LAS"}
"""The scores, as AllenNLP names them and as the heads of configs do."""


@pytest.fixture
def scores(modules: Dict[str, ModuleType]) -> Any:
    return list(modules["gains"].read_scores(STUDY / "gains.json").values())


def test_the_tables_are_those_of_the_numbers(modules: Dict[str, ModuleType], scores: Any) -> None:
    gains = modules["gains"]
    assert (STUDY / "gains.md").read_text(encoding="utf-8") == gains.markdown(scores)
    page = (PROJECT_ROOT / "docs/results.md").read_text(encoding="utf-8")
    assert gains.glance(scores) in page and gains.what_helps(scores) in page


def reached(modules: Dict[str, ModuleType], scores: Any, name: str, form: str) -> str:
    """What the head of a config says of its scores."""
    gains, task = modules["gains"], modules["labelled"].TASKS[name]
    lines = ["// Reached on dev, with the biLM and the budget of examples/task_gains:"]
    for share in task.budget:
        best = gains.best_of(scores, f"{name}, {share:.0%}", form)
        if best:
            of = "all" if share == 1 else f"{share:.0%}"
            lines.append(
                f"// - {CALLED[task.score]} {gains.points(best)}, {of} of the training set"
            )
    if len(lines) == 1:
        return "// Not measured here: it has been tried on the fixtures only."
    return "\n".join(lines)


def test_the_heads_of_configs_tell_what_they_reached(
    modules: Dict[str, ModuleType], scores: Any
) -> None:
    for name, task in modules["labelled"].TASKS.items():
        for form in ("none", "input", "input and output"):
            config = modules["forms"].FORMS[form].config
            path = PROJECT_ROOT / "training_config" / task.config / f"{config}.jsonnet"
            told = reached(modules, scores, name, form)
            assert f"\n//\n{told}\nlocal " in path.read_text(encoding="utf-8")
