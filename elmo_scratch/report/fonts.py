"""The fonts of a PDF: DejaVu Sans, and those of the system that have letters which it lacks."""

from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, FrozenSet, Iterator, NamedTuple, Set, Tuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIRST = "DejaVu Sans"
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
    fonts = Fonts((FIRST,), _letters_of(_file_of_first()))
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

    return findfont(FIRST)


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
