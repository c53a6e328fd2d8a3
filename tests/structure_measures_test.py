import sys
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Dict

import pytest

from benchmarks.structure import PACKAGE, WORKS, Entered, counted, entered_by
from tests import PROJECT_ROOT
from tests.tiny_training import logging_as_before

FILES: Dict[str, str] = {
    "__init__.py": '"""A package."""\n',
    "ground.py": '''
        """
        Constants.
        """

        ONE = 1
        """A number."""
        '''
    + "\n" * 40,
    "modules/__init__.py": "from house.modules.run import run\n",
    "modules/run.py": '''
        from house.ground import ONE

        def run(weights, bias, *, state):
            """As in `other`."""
            return [step(weight) for weight in weights]

        def step(weight):
            from house.modules.filling import filled
            # No code.
            return filled(weight).masked_fill(bias, ONE)
        ''',
    "modules/filling.py": '''
        from house.modules import run as door
        import house.top

        def filled(weight):
            """
            # Parameters

            weight : `float`
                As in `run`.
            bias : `float`
                As in `run`, but larger.
                It is never empty.
            """
            from house.modules.run import run
            return Weight(weight)

        class _Weight:
            def masked_fill(self, weights, bias): ...
        ''',
    "top.py": """
        from house.ground import ONE
        from house.modules.run import run

        def outer():
            return inner()

        def inner():
            return max(number for number in map(lambda number: number + ONE, range(2)))
        """,
}
"""Functions of `modules` import each other; its file `filling` imports from the floor above."""

FLOORS = '''
FLOORS = [["ground"], ["modules"], ["top"]]
"""From the ground up."""
'''


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A checkout with the package `house`."""
    for name, text in FILES.items():
        path = tmp_path / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    test = tmp_path / "tests" / "architecture_test.py"
    test.parent.mkdir()
    test.write_text(FLOORS, encoding="utf-8")
    return tmp_path


def test_what_is_counted_in_sources(house: Path) -> None:
    found = counted(house, "house")
    assert found == {
        "Python files": 6,
        "with one public function only": 1,  # filling
        "with exactly one importer": 2,  # filling by run, top by filling
        "under 40 lines": 3,  # all but ground
        "circles of files": 1,  # run, filling, top
        "arrows up": 1,  # filling to top
        "lines of modules/": 1 + 10 + 18,
        "functions with 3 run arguments": 1,  # run
        "docstring lines per line of code": round((1 + 4 + 1 + 9) / (1 + 1 + 6 + 7 + 6), 3),
        'docstrings that only say "As in"': 2,
        "identifiers with the stem fill": 4,  # filled three times, filling
    }


def test_without_floors_no_arrow_is_counted(house: Path) -> None:
    (house / "tests" / "architecture_test.py").write_text("")
    assert counted(house, "house")["arrows up"] is None


def test_what_is_entered(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(house)
    top = import_module("house.top")
    # outer, inner, a generator expression and a lambda
    assert entered_by(top.outer, house / "house") == Entered(files=1, functions=2, depth=4)
    assert sys.getprofile() is None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive if name.startswith("allennlp") else [])
        for name in WORKS
    ],
)
def test_each_work_can_be_followed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [])
    with logging_as_before():
        found = entered_by(WORKS[name](PROJECT_ROOT, tmp_path), PROJECT_ROOT / PACKAGE)
    assert found.functions > found.files > 1
    assert found.depth > 1
