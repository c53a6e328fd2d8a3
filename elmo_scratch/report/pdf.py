"""Writes a report as a PDF, by Matplotlib alone."""

import io
import logging
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    FrozenSet,
    Iterator,
    List,
    NamedTuple,
    Sequence,
    Set,
    Tuple,
)

from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.report.charts import FAINT, FONT_SIZE, INK, check_matplotlib, drawing
from elmo_scratch.report.document import Block, Chart, Folded, Paragraph, Report, Table
from elmo_scratch.terminal import without_information

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIRST_FONT = "DejaVu Sans"
"""Which Matplotlib brings with it, for most alphabets."""

INVISIBLE = frozenset("\u200c\u200d") | frozenset(map(chr, range(0xFE00, 0xFE10)))
"""Joiners and selectors of variants: without a glyph nothing is missed."""

LABEL = 14
"""Characters of a label in a picture for which there is room in any case."""

OUTLINES = 3
"""
The type of PDF fonts that holds the outlines of any font. Matplotlib's other one, 42, is wrong for
those of PostScript outlines, as fonts for Chinese, Japanese and Korean often are.
"""


class Fonts(NamedTuple):
    """
    # Parameters

    families : `Tuple[str, ...]`
        Their names, in the order in which a letter is looked for in them.
    letters : `FrozenSet[str]`
        The letters that one of them has.
    """

    families: Tuple[str, ...]
    letters: FrozenSet[str]

    def have(self, letter: str) -> bool:
        """Whether a letter can be shown as it is."""
        return letter in self.letters or letter.isspace()

    def written(self, text: str) -> str:
        """The text, with `U+9280` in the place of a letter that no font has."""
        written = ""
        for is_shown, letters in groupby(text, self.have):
            if is_shown:
                written += "".join(letters)
                continue
            codes = [f"U+{ord(one):04X}" for one in letters if one not in INVISIBLE]
            # Apart from the word before, so that a line can be broken there.
            gap = " " if codes and written and not written[-1].isspace() else ""
            written += gap + " ".join(codes)
        return written

    def use(self) -> None:
        """Makes Matplotlib write in them, until its settings are changed again."""
        from matplotlib import rcParams

        rcParams["font.family"] = list(self.families)
        if len(self.families) > 1:
            rcParams["pdf.fonttype"] = OUTLINES

    def write_labels(self, axes: "Axes") -> None:
        """Writes the letters that no font has in the labels of a drawn picture as `written`."""
        from matplotlib.text import Text
        from matplotlib.ticker import FuncFormatter

        for text in axes.findobj(Text):
            text.set_text(self._label(text.get_text()))
        for axis in (axes.xaxis, axes.yaxis):
            formatter = axis.get_major_formatter()
            # Other formatters make numbers.
            if isinstance(formatter, FuncFormatter):
                axis.set_major_formatter(FuncFormatter(self._labels_by(formatter)))

    def _labels_by(self, formatter: Any) -> Any:
        return lambda value, place: self._label(formatter(value, place))

    def _label(self, text: str) -> str:
        """As `written`, and cut where there would be no room for it."""
        written, most = self.written(text), max(len(text), LABEL)
        return written if len(written) <= most else f"{written[: most - 1]}…"


def fonts_for(content: object) -> Fonts:
    """
    # Parameters

    content : `object`
        What is to be written: texts, in tuples and lists of any depth; what else is in them counts
        for nothing.

    # Returns

    `Fonts`
        As few as have all letters that any font of the system has.
    """
    fonts = Fonts((FIRST_FONT,), _letters_of(_file_of_first()))
    lacking = {letter for text in _texts_of(content) for letter in text}
    lacking = {one for one in lacking if not fonts.have(one) and one not in INVISIBLE}
    while lacking:
        found = {name: _drawn(file, lacking) for name, file in _families().items()}
        best = min(found, key=lambda name: (-len(found[name]), name), default="")
        if not best or not found[best]:
            break
        fonts = Fonts((*fonts.families, best), fonts.letters | found[best])
        lacking -= found[best]
    return fonts


def _texts_of(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, (tuple, list)):
        for part in content:
            yield from _texts_of(part)


def _file_of_first() -> str:
    from matplotlib.font_manager import findfont

    return findfont(FIRST_FONT)


def _families() -> Dict[str, str]:
    """
    The upright fonts of the system and a file of each. Matplotlib's own are left out: DejaVu is
    there already, and one of the others has a box for every letter.
    """
    from matplotlib import get_data_path
    from matplotlib.font_manager import fontManager

    own = Path(get_data_path())
    files: Dict[str, Set[str]] = {}
    for font in fontManager.ttflist:
        if font.style == "normal" and own not in Path(font.fname).parents:
            files.setdefault(font.name, set()).add(font.fname)
    return {name: min(found) for name, found in files.items()}


def _drawn(file: str, letters: Set[str]) -> FrozenSet[str]:
    """Returns the letters that a font has outlines of: coloured ones are pictures, and blank."""
    from matplotlib.font_manager import get_font

    having = _letters_of(file) & letters
    return frozenset(one for one in having if get_font(file).load_char(ord(one)).width > 0)


@lru_cache(maxsize=None)
def _letters_of(file: str) -> FrozenSet[str]:
    """The letters of a font; none of a damaged one."""
    from matplotlib.font_manager import get_font

    try:
        return frozenset(map(chr, get_font(file).get_charmap()))
    except (OSError, RuntimeError, ValueError):
        return frozenset()


if TYPE_CHECKING:
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure

PAGE = (8.27, 11.69)
"""Width and height of a page in inches: A4."""

MARGIN = 0.65
"""Inches around what is on a page."""

SCALE = 0.78
"""The size of pictures and their fonts, as a share of those on a page of HTML."""

GAP = 0.12
"""Inches between blocks."""

SOFT = "#55555a"
"""Of captions."""

LINE = 1.35
"""The height of a line as a multiple of its font's size."""

TEXT, SMALL, HEADING, TITLE = 9.0, 7.5, 13.0, 18.0
"""Points."""

MAX_CELL_LINES = 6
"""Lines of a cell of a table; the rest of it is left out."""

CELL_GAP = 0.2
"""Inches between columns."""

MISSING_LETTERS = (
    "Letters that no font here has are written as their numbers, such as U+9280; the page (.html) "
    "has them in the reader's own fonts, and so has a PDF where a font for them is installed."
)

MAX_TITLE = 1.1
"""Inches from which on the title of a column is broken into lines."""


@without_information("fontTools.subset", "fontTools.subset.timer")
def write_pdf(report: Report, path: Path) -> None:
    """
    Writes the PDF whole or not at all. Raises `ConfigurationError` if Matplotlib is missing.

    Matplotlib writes no tags into a PDF, which would give a picture its alternative text. So
    pictures have numbers, and the end says in words what each shows. It says too where letters are
    missing: Matplotlib brings DejaVu Sans alone, in which Hindi and Chinese have none, and what the
    system's fonts lack as well is written as numbers.
    """
    check_matplotlib()
    from matplotlib.backends.backend_pdf import PdfPages

    # Without a date, the same report gives the same bytes.
    metadata = {"Title": report.title, "Creator": "elmo_scratch", "CreationDate": None}
    # Matplotlib would end by an error of zlib if the disk were full.
    written = io.BytesIO()
    with (
        drawing(FONT_SIZE * SCALE),
        _without_advice(),
        PdfPages(written, metadata=metadata) as file,
    ):
        fonts = fonts_for(report)
        fonts.use()
        pages = _Pages(file, report.title, fonts)
        pages.heading(report.title, TITLE)
        for section in report.sections:
            if len(report.sections) > 1:
                pages.heading(section.title, HEADING)
            _write_blocks(pages, section.blocks)
        pages.words_for_pictures()
        pages.missing_letters()
        pages.finish()
    with atomic_write(path) as part:
        part.write_bytes(written.getvalue())


def _write_blocks(pages: "_Pages", blocks: Sequence[Block]) -> None:
    """Charts that fit beside each other are put there."""
    waiting: List[Chart] = []
    for block in blocks:
        if isinstance(block, Chart):
            if waiting and _width([*waiting, block]) > PAGE[0] - 2 * MARGIN:
                pages.charts(waiting)
                waiting = []
            waiting.append(block)
            continue
        if waiting:
            pages.charts(waiting)
            waiting = []
        if isinstance(block, Paragraph):
            pages.text(block.text, TEXT, INK)
            pages.skip(GAP)
        elif isinstance(block, Folded):
            pages.title(block.title, _room(block.blocks[0]))
            _write_blocks(pages, block.blocks)
        else:
            pages.table(block)
    if waiting:
        pages.charts(waiting)


def _room(block: Block) -> float:
    """Inches that the beginning of a block needs: a picture and its caption, or a few lines."""
    return SCALE * block.size[1] + 1.0 if isinstance(block, Chart) else 1.0


def _width(charts: Sequence[Chart]) -> float:
    return SCALE * sum(chart.size[0] for chart in charts)


@contextmanager
def _without_advice() -> Iterator[None]:
    """Matplotlib warns where a font has no bold face; the ordinary one is as good."""
    logger = logging.getLogger("matplotlib.font_manager")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def _text_width(text: str, size: float, weight: str = "normal") -> float:
    """Inches, in the fonts that are set."""
    from matplotlib import rcParams

    return _width_in(tuple(rcParams["font.family"]), text, size, weight)


@lru_cache(maxsize=2**16)
def _width_in(families: Tuple[str, ...], text: str, size: float, weight: str) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=list(families), size=size, weight=weight)
    width: float = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
    return width / 72


def wrapped(text: str, size: float, width: float, weight: str = "normal") -> List[str]:
    """The lines of a text, broken at spaces, and within words that are longer than a line."""
    lines: List[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if _text_width(longer, size, weight) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        line = word
        while len(line) > 1 and _text_width(line, size, weight) > width:
            fitting = _num_fitting(line, size, width, weight)
            lines.append(line[:fitting])
            line = line[fitting:]
    return [*lines, line] if line or not lines else lines


def _num_fitting(word: str, size: float, width: float, weight: str) -> int:
    """How many of a word's characters fit into a line, at least one."""
    least, most = 1, len(word)
    while least < most:
        middle = (least + most + 1) // 2
        if _text_width(word[:middle], size, weight) <= width:
            least = middle
        else:
            most = middle - 1
    return least


class _Row(NamedTuple):
    cells: List[List[str]]
    height: float
    weight: str


class _Pages:
    """Fills pages from top to bottom."""

    def __init__(self, file: "PdfPages", title: str, fonts: Fonts) -> None:
        self._file = file
        self._title = fonts.written(title)
        self._fonts = fonts
        self._number = 0
        self._alternatives: List[str] = []
        self._lacks_letters = False
        self._figure: "Figure" = self._new_page()

    def _new_page(self) -> "Figure":
        from matplotlib.figure import Figure

        self._number += 1
        self._figure = Figure(figsize=PAGE)
        self._y = PAGE[1] - MARGIN
        """Inches from the bottom of the page to where the next block begins."""
        footer = f"{self._title} · {self._number}"
        self._put(footer, PAGE[0] / 2, MARGIN / 2, SMALL, SOFT, ha="center")
        return self._figure

    def finish(self) -> None:
        """Writes the last page."""
        self._file.savefig(self._figure)

    def skip(self, height: float) -> None:
        """Leaves so many inches free."""
        self._y -= height

    def _need(self, height: float) -> None:
        """Begins a new page if so many inches are not left on this one."""
        if self._y - height < MARGIN and self._y < PAGE[1] - MARGIN:
            self.finish()
            self._new_page()

    def words_for_pictures(self) -> None:
        """What each picture shows, for those who can't see it."""
        if self._alternatives:
            self.heading("The pictures in words", HEADING)
        for number, alternative in enumerate(self._alternatives):
            self.text(f"Picture {number + 1}. {alternative}", SMALL, INK)
            self.skip(GAP / 2)

    def missing_letters(self) -> None:
        """A line on the letters that are written as numbers, if there are any."""
        if self._lacks_letters:
            self.skip(GAP)
            self.text(MISSING_LETTERS, SMALL, SOFT)

    def _put(self, text: str, x: float, y: float, size: float, color: str, **how: Any) -> None:
        self._figure.text(x / PAGE[0], y / PAGE[1], text, fontsize=size, color=color, **how)

    def _written(self, text: str) -> str:
        """The text in letters that the fonts have."""
        written = self._fonts.written(text)
        self._lacks_letters = self._lacks_letters or written != text
        return written

    def heading(self, text: str, size: float) -> None:
        """With room for something below it on the same page."""
        self._need(2.0)
        if self._y < PAGE[1] - MARGIN:
            self.skip(2 * GAP)
        self.text(text, size, INK)
        self.skip(GAP / 2)

    def title(self, text: str, room: float) -> None:
        """Writes a title above what follows, which needs `room` inches on the same page."""
        self._need(LINE * TEXT / 72 + GAP + room)
        self.text(text, TEXT, INK)
        self.skip(GAP)

    def text(self, text: str, size: float, color: str) -> None:
        """Over the whole width."""
        for line in wrapped(self._written(text), size, PAGE[0] - 2 * MARGIN):
            height = LINE * size / 72
            self._need(height)
            self.skip(height)
            self._put(line, MARGIN, self._y, size, color)

    def charts(self, charts: Sequence[Chart]) -> None:
        """Beside each other, each with its caption below it."""
        room = PAGE[0] - 2 * MARGIN
        widths = [min(SCALE * chart.size[0], room) for chart in charts]
        first = len(self._alternatives) + 1
        self._alternatives += [chart.alternative for chart in charts]
        captions = [
            wrapped(
                self._written(f"Picture {number}. {chart.caption}"),
                SMALL,
                width if len(charts) > 1 else room,
            )
            for number, (chart, width) in enumerate(zip(charts, widths), first)
        ]
        top = max(SCALE * chart.size[1] for chart in charts)
        self._need(top + max(map(len, captions)) * LINE * SMALL / 72 + GAP)
        left = MARGIN
        for chart, width, caption in zip(charts, widths, captions):
            self._draw(chart, left, width)
            for number, line in enumerate(caption):
                y = self._y - top - (number + 1) * LINE * SMALL / 72
                self._put(line, left, y, SMALL, SOFT)
            left += width + max(room - sum(widths), 0.0) * (len(charts) > 1)
        self.skip(top + max(map(len, captions)) * LINE * SMALL / 72 + 2 * GAP)

    def _draw(self, chart: Chart, left: float, width: float) -> None:
        height = SCALE * chart.size[1]
        beside, below = (SCALE * margin for margin in chart.margins)
        axes = self._figure.add_axes(
            (
                (left + beside) / PAGE[0],
                (self._y - height + below) / PAGE[1],
                (width - beside - 0.1) / PAGE[0],
                (height - below - 0.08) / PAGE[1],
            )
        )
        chart.draw(axes)
        self._fonts.write_labels(axes)

    def table(self, table: Table) -> None:
        """In full; the titles of its columns again on each page."""
        table = table._replace(
            columns=[one._replace(title=self._written(one.title)) for one in table.columns],
            rows=[
                [cell._replace(text=self._written(cell.text)) for cell in row] for row in table.rows
            ],
        )
        widths = _column_widths(table)
        has_titles = any(column.title for column in table.columns)
        head = _row([column.title for column in table.columns], widths, "bold")
        rows = [_row([cell.text for cell in row], widths, "normal") for row in table.rows]
        first = sum(row.height for row in [head, *rows[:2]])
        self._need(first + 2 * LINE * SMALL / 72)
        self.text(table.caption, SMALL, SOFT)
        self.skip(0.04)
        is_number = [column.is_number for column in table.columns]
        if has_titles:
            self._draw_row(head, widths, is_number)
        for row in rows:
            page = self._number
            self._need(row.height)
            if page != self._number and has_titles:
                self._draw_row(head, widths, is_number)
            self._draw_row(row, widths, is_number)
        self.skip(2 * GAP)

    def _draw_row(self, row: _Row, widths: Sequence[float], is_number: Sequence[bool]) -> None:
        from matplotlib.lines import Line2D

        left = MARGIN
        for lines, width, to_right in zip(row.cells, widths, is_number):
            for number, line in enumerate(lines):
                y = self._y - (number + 1) * LINE * SMALL / 72
                x, side = (left + width, "right") if to_right else (left, "left")
                self._put(line, x, y, SMALL, INK, ha=side, fontweight=row.weight)
            left += width + CELL_GAP
        self.skip(row.height)
        ends = [MARGIN / PAGE[0], (left - CELL_GAP) / PAGE[0]]
        y = (self._y + 0.015) / PAGE[1]
        self._figure.add_artist(Line2D(ends, [y, y], color=FAINT, linewidth=0.4))


def _row(texts: Sequence[str], widths: Sequence[float], weight: str) -> _Row:
    cells = []
    for text, width in zip(texts, widths):
        lines = wrapped(text, SMALL, width, weight)
        if len(lines) > MAX_CELL_LINES:
            lines = [*lines[: MAX_CELL_LINES - 1], f"{lines[MAX_CELL_LINES - 1][:-1]}…"]
        cells.append(lines)
    height = max(map(len, cells)) * LINE * SMALL / 72 + 0.05
    return _Row(cells, height, weight)


def _column_widths(table: Table) -> List[float]:
    """
    As wide as the widest cell; where that is too much for a page, the widest columns share what the
    others leave.
    """
    natural: List[float] = []
    for place, column in enumerate(table.columns):
        texts = {row[place].text for row in table.rows}
        longest = sorted(texts, key=len)[-8:]
        title = min(_text_width(column.title, SMALL, "bold"), MAX_TITLE)
        words = [_text_width(word, SMALL, "bold") for word in column.title.split()]
        natural.append(max(title, *words, *(_text_width(text, SMALL) for text in longest)) + 0.02)
    room = PAGE[0] - 2 * MARGIN - CELL_GAP * (len(natural) - 1)
    return shared_out(natural, room)


def shared_out(wanted: Sequence[float], room: float) -> List[float]:
    """
    Gives each what it wants, or the same to all that want more than there is for each of them.
    """
    widths, left = list(wanted), room
    for place, width in sorted(enumerate(wanted), key=lambda pair: pair[1]):
        num_left = sum(1 for other in wanted if other > width) + _rank(wanted, place)
        widths[place] = min(width, left / num_left)
        left -= widths[place]
    return widths


def _rank(wanted: Sequence[float], place: int) -> int:
    """How many of those that want the same come from this place on, it included."""
    return sum(1 for other in wanted[place:] if other == wanted[place])
