import os
import re
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from elmo_scratch.report import Contents, Report, read_run, report_of, write_pdf
from elmo_scratch.report.document import Block, Cell, Column, Paragraph, Section, Table
from elmo_scratch.report.pdf import shared_out, wrapped
from tests.report.page_test import hostile_run
from tests.report.run_folders import write_run


def num_pages(file: Path) -> int:
    return len(re.findall(rb"/Type /Page\b", file.read_bytes()))


def test_each_training_gets_its_pages(tmp_path: Path) -> None:
    runs = [read_run(write_run(tmp_path / "one")), read_run(hostile_run(tmp_path / "two"))]
    write_pdf(report_of(Contents(runs[:1])), tmp_path / "one.pdf")
    write_pdf(report_of(Contents(runs)), tmp_path / "two.pdf")
    assert num_pages(tmp_path / "one.pdf") == 2
    assert num_pages(tmp_path / "two.pdf") == 4


def test_a_long_table_goes_on_on_the_next_page(tmp_path: Path) -> None:
    rows = [[Cell(f"{number}")] for number in range(100)]
    blocks: List[Block] = [Paragraph("Words. " * 50), Table("Numbers.", [Column("number")], rows)]
    write_pdf(Report("Long", [Section("Long", blocks)]), tmp_path / "long.pdf")
    assert num_pages(tmp_path / "long.pdf") == 3


PROGRAM = """
import sys
from pathlib import Path
from typing import List
from elmo_scratch.report import Contents, read_run, report_of, write_page, write_pdf

report = report_of(Contents([read_run(Path(sys.argv[1]))]))
write_page(report, Path(sys.argv[2] + ".html"))
write_pdf(report, Path(sys.argv[2] + ".pdf"))
"""


@pytest.mark.exhaustive
def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    for seed in "12":
        command = [sys.executable, "-c", PROGRAM, str(folder), str(tmp_path / seed)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
    for end in (".html", ".pdf"):
        assert (tmp_path / f"1{end}").read_bytes() == (tmp_path / f"2{end}").read_bytes()


def test_the_same_trainings_give_the_same_bytes(tmp_path: Path) -> None:
    report = report_of(Contents([read_run(write_run(tmp_path / "run"))]))
    for name in ("a", "b"):
        write_pdf(report, tmp_path / f"{name}.pdf")
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert b"CreationDate" not in (tmp_path / "a.pdf").read_bytes()


def test_text_is_broken_at_spaces_and_within_long_words() -> None:
    assert wrapped("one two three", 9, 0.6) == ["one two", "three"]
    assert "".join(wrapped("x" * 50, 9, 1.0)) == "x" * 50
    assert len(wrapped("x" * 50, 9, 1.0)) == 4
    assert wrapped("", 9, 1.0) == [""]


@pytest.mark.parametrize(
    "wanted, widths",
    [
        ([1.0, 2.0], [1.0, 2.0]),
        ([1.0, 9.0, 5.0], [1.0, 3.0, 3.0]),
        ([9.0, 9.0], [3.5, 3.5]),
        ([0.5, 0.5, 7.0], [0.5, 0.5, 6.0]),
    ],
)
def test_the_widest_columns_share_what_the_others_leave(wanted: list, widths: list) -> None:
    assert shared_out(wanted, 7.0) == pytest.approx(widths)
