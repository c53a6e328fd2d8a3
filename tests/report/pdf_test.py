import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from elmo_scratch.report import Contents, Report, read_run, report_of, write_pdf
from elmo_scratch.report.charts import dots
from elmo_scratch.report.document import Block, Cell, Column, Folded, Paragraph, Section, Table
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


LETTERS = "Hindi नमस्ते, Chinese 銀行, emoji 😀, Hebrew שלום"


def test_other_scripts_are_written_without_a_warning_and_named_at_the_end(
    tmp_path: Path, recwarn: pytest.WarningsRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    pages = []
    for letters in (LETTERS, "Latin, Ελληνικά"):
        chart = dots(letters, "accuracy", [(letters, [0.5])])
        table = Table(letters, [Column(letters)], [[Cell(letters)]])
        report = Report(letters, [Section(letters, [Paragraph(letters), table, chart])])
        write_pdf(report, tmp_path / "letters.pdf")
        pages.append(text_of(tmp_path / "letters.pdf"))
    assert not recwarn.list and not caplog.records
    assert ["shown as boxes" in page for page in pages] == [True, False]


def text_of(file: Path) -> str:
    program = shutil.which("pdftotext")
    if program is None:
        pytest.skip("there is no pdftotext here: apt install poppler-utils")
    told = subprocess.run([program, str(file), "-"], check=True, capture_output=True, text=True)
    return " ".join(told.stdout.split())


def test_pictures_are_told_in_words_at_the_end(tmp_path: Path) -> None:
    charts = [dots("First.", "accuracy", [("a", [0.5])]), dots("Other.", "loss", [("b", [7.0])])]
    folded = Folded("On demand", charts[1:])
    write_pdf(Report("Both", [Section("Both", [charts[0], folded])]), tmp_path / "both.pdf")
    text = text_of(tmp_path / "both.pdf")
    assert "Picture 1. First." in text and "On demand" in text and "Picture 2. Other." in text
    words = text.partition("The pictures in words")[2]
    assert "Picture 1. Means of accuracy: a 50.00 % (of 1). Picture 2. Means of loss: b 7" in words


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
