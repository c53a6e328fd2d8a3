"""
Draws what the model `tiny` finds near to a word in two sentences, layer by layer.

    python examples/tiny_model/tiny_picture.py docs/pictures/bank.svg

Sentences of `read_senses` are shown in the colour of the word's sense there, so that a neighbour in
the wrong sense has the other column's colour. All letters are outlines: the picture looks the same
everywhere.
"""

import argparse
import io
import re
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

import matplotlib
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch
from matplotlib.textpath import TextToPath

from elmo_scratch import nearest_by_layer
from elmo_scratch.explore import ContextNeighbour, read_senses
from elmo_scratch.files.atomic import atomic_write

WORD = "bank"
QUESTIONS = {
    "river": "She sat on the bank of the river .",
    "money": "The bank lent him money .",
}
"""A sentence for each sense, by the name of the sense in `read_senses`."""

COLOURS = {"river": "#0072b2", "money": "#c04a00"}  # told apart with any colour vision
NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}

INK, FAINT, PAPER = "#24292f", "#57606a", "#ffffff"

LAYERS = ("layer 0\nspelling alone", "layer 1\nfirst LSTMs", "layer 2\nsecond LSTMs")
WIDTH, HEIGHT = 10.4, 3.75  # inches
COLUMNS = (1.35, 5.95)  # where the two columns begin, inches
BEFORE, AFTER = 1.55, 2.75  # inches for the words before and from the word on
LINE, SIZE = 0.27, 10.5  # inches, points


def main() -> None:
    """Writes the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("picture", type=Path, help="the SVG file to write, or replace")
    parser.add_argument("--model", default="tiny", help="of any kind (default: tiny)")
    args = parser.parse_args()
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "elmo_scratch"}):
        figure = drawn(args.model)
        drawing = io.StringIO()
        figure.savefig(drawing, format="svg", metadata=NO_METADATA, transparent=True)
        with atomic_write(args.picture) as temporary:
            temporary.write_text(compact(drawing.getvalue()), encoding="utf-8")


def compact(svg: str) -> str:
    """The same picture in fewer bytes: hundredths at most, short names, no indents."""
    lines = (line.strip() for line in re.sub("<!--.*?-->", "", svg).splitlines())
    shown = "\n".join(line for line in lines if line)
    shown = shown.replace("DejaVuSans-Bold-", "b").replace("DejaVuSans-", "r")
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", shown) + "\n"


def drawn(model: str) -> Figure:
    """The picture of a model."""
    figure = Figure(figsize=(WIDTH, HEIGHT))
    # A page of its own colour, to be read on light and on dark ground.
    page = FancyBboxPatch(
        (0.004, 0.01),
        0.992,
        0.98,
        boxstyle="round,pad=0,rounding_size=0.012",
        transform=figure.transFigure,
        facecolor=PAPER,
        edgecolor="#d0d7de",
    )
    figure.add_artist(page)
    senses = {tuple(row.sentence): row.sense for row in read_senses() if row.word == WORD}
    for left, (sense, sentence) in zip(COLUMNS, QUESTIONS.items()):
        found = nearest_by_layer(model, sentence, WORD)
        top = HEIGHT - 0.42
        _context(figure, left, top, found.sentence, found.position, COLOURS[sense], is_bold=True)
        for number, neighbours in enumerate(found.layers):
            top = _layer_top(number)
            if number == 0:
                words = ",  ".join(neighbour.word for neighbour in neighbours)
                _text(figure, left + BEFORE, top, words, FAINT)
                continue
            for neighbour in neighbours:
                _neighbour(figure, left, top, neighbour, senses)
                top -= LINE
    for number, name in enumerate(LAYERS):
        title, role = name.split("\n")
        top = _layer_top(number)
        _text(figure, 0.25, top, title, INK, is_bold=True)
        _text(figure, 0.25, top - 0.2, role, FAINT, size=8.5)
        figure.add_artist(
            Line2D(
                [0.25 / WIDTH, 1 - 0.25 / WIDTH],
                [(top + 0.27) / HEIGHT] * 2,
                color="#d0d7de",
                linewidth=0.8,
            )
        )
    return figure


def _layer_top(number: int) -> float:
    """The height of a layer's first line, in inches."""
    return HEIGHT - 0.98 - (0 if number == 0 else 0.72 + (number - 1) * (3 * LINE + 0.3))


def _neighbour(
    figure: Figure,
    left: float,
    top: float,
    neighbour: ContextNeighbour,
    senses: Dict[Tuple[str, ...], str],
) -> None:
    sense = senses.get(tuple(neighbour.sentence)) if neighbour.word == WORD else None
    colour = FAINT if sense is None else COLOURS[sense]
    _context(figure, left, top, neighbour.sentence, neighbour.position, colour)


def _context(
    figure: Figure,
    left: float,
    top: float,
    sentence: Sequence[str],
    position: int,
    colour: str,
    is_bold: bool = False,
) -> None:
    """A word in its sentence, the word always at the same place of the column."""
    before = _fitting(list(sentence[:position])[::-1], BEFORE - 0.1, is_bold)[::-1]
    shown = " ".join(before)
    _text(figure, left + BEFORE - 0.07 - _width(shown, is_bold), top, shown, INK, is_bold)
    _text(figure, left + BEFORE, top, sentence[position], colour, is_bold=True)
    after = left + BEFORE + _width(sentence[position], True) + 0.07
    rest = _fitting(list(sentence[position + 1 :]), AFTER - (after - left - BEFORE), is_bold)
    _text(figure, after, top, " ".join(rest), INK, is_bold)


def _fitting(words: List[str], width: float, is_bold: bool) -> List[str]:
    """The first words, as many as fit into `width` inches, and "…" for the others."""
    for count in range(len(words), 0, -1):
        shown = words[:count] + ["…"] * (count < len(words))
        if _width(" ".join(shown), is_bold) <= width:
            return shown
    return []


def _font(is_bold: bool, size: float = SIZE) -> FontProperties:
    return FontProperties(family="DejaVu Sans", weight="bold" if is_bold else "normal", size=size)


def _width(text: str, is_bold: bool) -> float:
    """The width of a line of text, in inches."""
    if not text:
        return 0.0
    width, _, _ = TextToPath().get_text_width_height_descent(text, _font(is_bold), False)
    return float(width) / 72


def _text(
    figure: Figure,
    left: float,
    bottom: float,
    text: str,
    colour: str,
    is_bold: bool = False,
    size: float = SIZE,
) -> None:
    font = _font(is_bold, size)
    figure.text(left / WIDTH, bottom / HEIGHT, text, color=colour, fontproperties=font)


if __name__ == "__main__":
    main()
