import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import List

import pytest

from elmo_scratch.report import Contents, Report, read_run, report_of, write_pdf
from elmo_scratch.report.charts import dots
from elmo_scratch.report.document import Block, Cell, Column, Folded, Paragraph, Section, Table
from elmo_scratch.report.pdf import Fonts, fonts_for, shared_out, wrapped
from tests.forked import run_forked
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


LETTERS = "Hindi नमस्ते, Chinese 銀行, emoji 🦩, Hebrew שלום"


def report_on(letters: str) -> Report:
    """A report that has these letters everywhere."""
    chart = dots(letters, "accuracy", [(letters, [0.5])])
    table = Table(letters, [Column(letters)], [[Cell(letters)]])
    return Report(letters, [Section(letters, [Paragraph(letters), table, chart])])


@pytest.fixture
def no_other_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system with Matplotlib's own fonts alone."""
    from matplotlib import get_data_path
    from matplotlib.font_manager import fontManager

    own = [font for font in fontManager.ttflist if font.fname.startswith(get_data_path())]
    monkeypatch.setattr(fontManager, "ttflist", own)


def test_letters_of_no_font_are_written_as_numbers_and_named_at_the_end(
    tmp_path: Path,
    no_other_fonts: None,
    recwarn: pytest.WarningsRecorder,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pages = []
    for letters in (LETTERS, "Latin, Ελληνικά"):
        write_pdf(report_on(letters), tmp_path / "letters.pdf")
        pages.append(text_of(tmp_path / "letters.pdf"))
    assert not recwarn.list and not caplog.records
    assert ["written as their numbers" in page for page in pages] == [True, False]
    # Title, footer, sentence, caption, head, cell, and the picture's caption.
    assert pages[0].count("Chinese U+9280 U+884C, emoji U+1F9A9, Hebrew") == 7
    assert "U+" not in pages[1]


def font_of(letters: str, file: Path, is_blank: bool = False) -> Path:
    """A font in which each of these letters is a filled square, or nothing."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    pen = TTGlyphPen(None)
    if not is_blank:
        for place, point in enumerate([(100, 0), (100, 700), (800, 700), (800, 0)]):
            (pen.lineTo if place else pen.moveTo)(point)
        pen.closePath()
    names = [".notdef", *(f"uni{ord(letter):04X}" for letter in letters)]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(letter): name for letter, name in zip(letters, names[1:])})
    builder.setupGlyf(dict.fromkeys(names, pen.glyph()))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (900, 100)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": file.stem, "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=800, usWinAscent=800, usWinDescent=200)
    builder.setupPost()
    builder.save(file)
    return file


@pytest.fixture
def fonts(tmp_path: Path, no_other_fonts: None) -> None:
    """Fonts of the system: for Chinese, with less of it, with coloured pictures, a damaged one."""
    from matplotlib.font_manager import fontManager

    fontManager.addfont(font_of("銀行", tmp_path / "Whole.ttf"))
    fontManager.addfont(font_of("銀", tmp_path / "Half.ttf"))
    fontManager.addfont(font_of("🦩", tmp_path / "Colours.ttf", is_blank=True))
    fontManager.addfont(font_of("🦩", tmp_path / "Damaged.ttf"))
    (tmp_path / "Damaged.ttf").write_bytes(b"no font")


def test_letters_that_dejavu_lacks_come_from_a_font_of_the_system(
    tmp_path: Path,
    fonts: None,
    recwarn: pytest.WarningsRecorder,
    caplog: pytest.LogCaptureFixture,
) -> None:
    report = report_on("Chinese 銀行, emoji 🦩\ufe0f")
    assert fonts_for(report).families == ("DejaVu Sans", "Whole")
    for name in ("a", "b"):
        write_pdf(report, tmp_path / f"{name}.pdf")
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert not recwarn.list and not caplog.records
    # Matplotlib 3.10, the last for Python 3.10, draws them, but not as text that can be copied.
    pytest.importorskip("matplotlib", minversion="3.11")
    text = text_of(tmp_path / "a.pdf")
    assert text.count("Chinese 銀行, emoji U+1F9A9") == 8 and "FE0F" not in text


def test_a_text_is_written_in_letters_that_fonts_have() -> None:
    fonts = Fonts(("DejaVu Sans",), frozenset("Bankof "))
    assert fonts.written("Bank of\n") == "Bank of\n"
    assert fonts.written("Bank銀行of 銀") == "Bank U+9280 U+884Cof U+9280"
    assert fonts.written("銀\u200d\ufe0f") == "U+9280"
    assert fonts.written("\u200d") == ""


def test_labels_of_pictures_stay_short(no_other_fonts: None) -> None:
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    axes.set_title("銀行" * 9)
    axes.set_yticks([0, 1], ["Bank", "銀行"])
    fonts_for([]).write_labels(axes)
    assert axes.get_title() == "U+9280 U+884C U+9…"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Bank", "U+9280 U+884C"]


def pages_of(file: Path) -> List[str]:
    program = shutil.which("pdftotext")
    if program is None:
        pytest.skip("there is no pdftotext here: apt install poppler-utils")
    told = subprocess.run([program, str(file), "-"], check=True, capture_output=True, text=True)
    return [" ".join(page.split()) for page in told.stdout.split("\f")]


def text_of(file: Path) -> str:
    return " ".join(pages_of(file))


def test_pictures_are_told_in_words_at_the_end(tmp_path: Path) -> None:
    charts = [dots("First.", "accuracy", [("a", [0.5])]), dots("Other.", "loss", [("b", [7.0])])]
    folded = Folded("On demand", charts[1:])
    write_pdf(Report("Both", [Section("Both", [charts[0], folded])]), tmp_path / "both.pdf")
    text = text_of(tmp_path / "both.pdf")
    assert "Picture 1. First." in text and "On demand" in text and "Picture 2. Other." in text
    words = text.partition("The pictures in words")[2]
    assert "Picture 1. Means of accuracy: a 50.00 % (of 1). Picture 2. Means of loss: b 7" in words


@pytest.mark.parametrize("num_lines", range(30, 34))
def test_a_title_stands_on_the_page_of_its_picture(num_lines: int, tmp_path: Path) -> None:
    folded = Folded("On demand", [dots("Other.", "loss", [("b", [7.0])])])
    lines: List[Block] = [Paragraph("Words.")] * num_lines
    write_pdf(Report("Long", [Section("Long", [*lines, folded])]), tmp_path / "long.pdf")
    (page,) = [page for page in pages_of(tmp_path / "long.pdf") if "On demand" in page]
    assert "Picture 1. Other." in page


def test_text_is_broken_at_spaces_and_within_long_words() -> None:
    assert wrapped("one two three", 9, 0.6) == ["one two", "three"]
    assert "".join(wrapped("x" * 50, 9, 1.0)) == "x" * 50
    assert len(wrapped("x" * 50, 9, 1.0)) == 4
    assert wrapped("", 9, 1.0) == [""]


def test_bold_letters_are_as_wide_as_they_are() -> None:
    words = "validation, last epoch"
    width = next(size / 100 for size in range(1, 400) if len(wrapped(words, 7.5, size / 100)) == 1)
    assert wrapped(words, 7.5, width) == [words]
    assert wrapped(words, 7.5, width, "bold") == ["validation, last", "epoch"]


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


def test_a_file_that_may_not_grow_is_an_error_of_the_system(tmp_path: Path) -> None:
    """Matplotlib, which compresses while it writes, would end by an error of zlib."""
    words = " ".join(f"word{number * 7919 % 10007}" for number in range(1500))
    long = Report("Long", [Section("Long", [Paragraph(words)])])

    def write_both() -> None:
        write_pdf(long, tmp_path / "first.pdf")
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        with pytest.raises(OSError, match="File too large"):
            write_pdf(long, tmp_path / "second.pdf")

    with TemporaryDirectory() as folder:
        ended = run_forked(write_both, Path(folder) / "errors")
    assert ended.status == 0, ended.errors[-1000:]
    assert [path.name for path in tmp_path.iterdir()] == ["first.pdf"]
