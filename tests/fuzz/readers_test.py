import warnings
from pathlib import Path

import pytest

from tests.fuzz.mutations import mutated
from tests.fuzz.targets import FINDINGS, TARGETS

CHANGES = 8
"""How many changed files each reader gets here; `make fuzz` makes more."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_an_answer_or_one_documented_error(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    folder = tmp_path / "read"
    seeds = target.prepare(folder)
    assert seeds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            (folder / target.file).write_bytes(seed)
            target.read(folder / target.file)
        found = sorted((FINDINGS / name).glob("*"))
        changed = (mutated(seeds, number) for number in range(CHANGES))
        for content in (b"", *(file.read_bytes() for file in found), *changed):
            target.check(folder, content)


def test_findings_are_of_readers() -> None:
    assert {folder.name for folder in FINDINGS.iterdir()} <= set(TARGETS)
