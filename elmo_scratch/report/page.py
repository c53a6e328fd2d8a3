"""Writes a report as one HTML page that needs nothing else: no network, no other file."""

import base64
import hashlib
import io
import re
from pathlib import Path
from typing import Any, Dict
from xml.etree import ElementTree

from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.report.charts import FAINT, FONT_SIZE, INK, SERIES, check_matplotlib, drawing
from elmo_scratch.report.document import Chart, Report, Table

TEMPLATES = Path(__file__).parent / "templates"

SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"

COLORS = {INK: "var(--ink)", FAINT: "var(--faint)", SERIES[0]: "var(--blue)"}
"""What colours of a picture become on a page, so that it is light or dark as the page is."""

FONT, FAMILY = re.compile(r"font: ([\d.]+)px [^;]*"), re.compile(r"font-family: [^;]*;? ?")
"""
Match the fonts that Matplotlib names, in its older way and since 3.11, for the page has its own.
"""

POINTS_PER_INCH = 72


def write_page(report: Report, path: Path) -> None:
    """
    Writes the page whole or not at all. Raises `ConfigurationError` if Matplotlib or Jinja2 is
    missing.
    """
    check_matplotlib()
    text = _page(report)
    with atomic_write(path) as part:
        part.write_text(text, encoding="utf-8")


def _page(report: Report) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("page.html.jinja").render(
        report=report,
        kind_of=lambda block: type(block).__name__,
        picture=_Pictures().of,
        style=_markup((TEMPLATES / "page.css").read_text(encoding="utf-8")),
        script=_markup(script),
        # A browser runs no other script, even if one came through.
        script_digest=f"sha256-{digest}",
        is_plain=_is_plain,
    )


def _is_plain(table: Table) -> bool:
    """Whether it has no titles of columns, by which it could be sorted."""
    return not any(column.title for column in table.columns)


def _markup(text: str) -> Any:
    """Text that is HTML already."""
    from markupsafe import Markup

    return Markup(text)


class _Pictures:
    """Draws charts as SVG whose names of elements differ on one page."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, chart: Chart) -> Any:
        from matplotlib.figure import Figure

        self._count += 1
        file = io.BytesIO()
        with drawing(FONT_SIZE):
            figure = Figure(figsize=chart.size)
            width, height = chart.size
            left, below = chart.margins
            box = (left / width, below / height, 1 - (left + 0.12) / width)
            axes = figure.add_axes((*box, 1 - (below + 0.1) / height))
            axes.patch.set_visible(False)
            figure.patch.set_visible(False)
            chart.draw(axes)
            figure.savefig(file, format="svg", metadata={"Date": None})
        return _markup(_inline(file.getvalue(), chart, f"picture{self._count}-"))


def _inline(svg: bytes, chart: Chart, beginning: str) -> str:
    """The SVG as part of a page: described, in the page's colours and font, its names its own."""
    root = ElementTree.fromstring(svg)
    for child in list(root):
        if child.tag == f"{SVG}metadata":
            root.remove(child)
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        attributes: Dict[str, str] = {}
        for name, value in element.attrib.items():
            if name == "id":
                value = beginning + value
            elif name in (f"{LINK}href", "href"):
                name, value = "href", value.replace("#", f"#{beginning}", 1)
            elif name == "style":
                for color, variable in COLORS.items():
                    value = value.replace(color, variable)
                value = FAMILY.sub("", FONT.sub(r"font-size: \1px", value))
            attributes[name] = value.replace("url(#", f"url(#{beginning}")
        element.attrib.clear()
        element.attrib.update(attributes)
    width, height = (inches * POINTS_PER_INCH for inches in chart.size)
    root.attrib.clear()
    root.attrib.update(
        {
            "viewBox": f"0 0 {width:g} {height:g}",
            # In CSS an inch has 96 pixels.
            "width": f"{chart.size[0] * 96:.0f}",
            "role": "img",
            "aria-label": chart.alternative,
        }
    )
    return ElementTree.tostring(root, encoding="unicode")
