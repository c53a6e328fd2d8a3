"""`part.py`: the part of AG News that the study is of."""

import hashlib
from pathlib import Path
from types import ModuleType
from typing import Dict, List

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.readers import CLASS_NAMES, AgNewsRow, ag_news_rows
from tests.examples.ag_news_study import STUDY, TRAIN
from tests.examples.run_program import run_program

PART = STUDY / "part.py"


def rows_of_each_class(count: int) -> List[AgNewsRow]:
    return [
        AgNewsRow(name, f"title {number}", f"{name} text {number}")
        for number in range(count)
        for name in CLASS_NAMES.values()
    ]


def test_the_smallest_digests_of_a_class_are_taken_dev_first(
    modules: Dict[str, ModuleType],
) -> None:
    rows = rows_of_each_class(5)
    train, dev = modules["part"].balanced_part(rows, 8, 4)

    def digest(row: AgNewsRow) -> str:
        return hashlib.sha256(f"{row.title}\n{row.description}".encode()).hexdigest()

    for name in CLASS_NAMES.values():
        drawn = sorted((row for row in rows if row.label == name), key=digest)
        assert [row for row in dev if row.label == name] == drawn[:1]
        assert sorted(row for row in train if row.label == name) == sorted(drawn[1:3])
    assert train == [row for row in rows if row in train]


def test_the_order_of_the_rows_decides_nothing_but_their_order(
    modules: Dict[str, ModuleType],
) -> None:
    rows = rows_of_each_class(7)
    one = modules["part"].balanced_part(rows, 16, 8)
    other = modules["part"].balanced_part(rows[::-1], 16, 8)
    assert other == tuple(part[::-1] for part in one)


def test_descriptions_that_differ_by_case_and_space_are_one_text(
    modules: Dict[str, ModuleType],
) -> None:
    rows = rows_of_each_class(2)
    again = [AgNewsRow(row.label, "other", f"{row.description.upper()} ") for row in rows]
    train, dev = modules["part"].balanced_part([*rows, *again], 4, 4)
    assert len({row.description.strip().lower() for row in [*train, *dev]}) == 8
    with pytest.raises(ConfigurationError, match="expected 3 different texts of the class World"):
        modules["part"].balanced_part([*rows, *again], 8, 4)


def test_the_written_files_hold_the_rows_of_the_full_one(tmp_path: Path) -> None:
    full = tmp_path / "full.csv"
    full.write_text("Class Index,Title,Description\n" + TRAIN.read_text("utf-8"), "utf-8")
    folder = tmp_path / "new" / "part"
    done = run_program(PART, str(full), str(folder), "--train", "160", "--dev", "40")
    assert done.status == 0, done.errors
    assert f"{folder / 'dev.csv'}: 40 rows, 10 of each of four classes" in done.output
    train, dev = (list(ag_news_rows(folder / f"{name}.csv")) for name in ("train", "dev"))
    assert (len(train), len(dev)) == (160, 40)
    # Fields are written as they were, so that each line is one of the full file.
    lines = [(folder / f"{name}.csv").read_text("utf-8").splitlines() for name in ("train", "dev")]
    assert set(lines[0]) | set(lines[1]) <= set(full.read_text("utf-8").splitlines())
    assert not set(lines[0]) & set(lines[1])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--train", "10"), "expected multiples of four as --train and --dev"),
        (("--train", "400", "--dev", "8"), "class World, but found 60. Ask for fewer"),
    ],
)
def test_what_cant_be_balanced_is_an_error(words: List[str], told: str, tmp_path: Path) -> None:
    done = run_program(PART, str(TRAIN), str(tmp_path / "part"), *words)
    assert done.status == 2
    assert told in done.errors
    assert not (tmp_path / "part").exists()


def test_files_that_are_there_stay(tmp_path: Path) -> None:
    (tmp_path / "dev.csv").write_text("mine")
    done = run_program(PART, str(TRAIN), str(tmp_path), "--train", "8", "--dev", "4")
    assert done.status == 2
    assert "dev.csv is there already" in done.errors
    assert [path.name for path in tmp_path.iterdir()] == ["dev.csv"]
