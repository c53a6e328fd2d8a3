"""The table of bounds in the docs is that of the code."""

import re

from elmo_scratch_compat import bounds
from tests import PROJECT_ROOT

ROW = re.compile(r"^\| `([A-Z0-9_]+)` \| (\S+) \| .+ \|$", re.MULTILINE)


def test_the_docs_tell_each_bound() -> None:
    told = dict(ROW.findall((PROJECT_ROOT / "docs" / "strangers.md").read_text("utf-8")))
    there = {name: str(value) for name, value in vars(bounds).items() if name.isupper()}
    assert told == there


def test_bounds_stand_in_one_table() -> None:
    """No other file of the readers defines one of these names."""
    names = "|".join(name for name in vars(bounds) if name.isupper())
    defined = re.compile(rf"^({names}) =", re.MULTILINE)
    for package in ("elmo_scratch", "elmo_scratch_compat"):
        for path in (PROJECT_ROOT / package).rglob("*.py"):
            if path.name != "bounds.py":
                assert not defined.search(path.read_text("utf-8")), path
