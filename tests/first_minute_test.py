"""What docs/first_minute.md shows is what the model says."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Dict

from elmo_scratch import nearest_by_layer
from elmo_scratch.interop.named_models import PACKAGED_MODELS
from tests import PROJECT_ROOT
from tests.commands.conftest import Allennlp, allennlp  # noqa: F401  (a fixture)

PAGE = (PROJECT_ROOT / "docs" / "first_minute.md").read_text("utf-8")
CARD = (PACKAGED_MODELS["tiny"] / "README.md").read_text("utf-8")


def test_the_snippets_print_what_the_page_shows() -> None:
    shown = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(shown) == 3
    names: Dict[str, Any] = {}
    for snippet, expected in shown:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(snippet, names)
        assert printed.getvalue() == expected


def test_neighbours_differ_by_more_than_rounding() -> None:
    # Otherwise another processor might print them in another order.
    for sentence in re.findall(r'"([^"\n]* \.)"', PAGE):
        for layer in nearest_by_layer("tiny", sentence, "bank", k=4).layers:
            cosines = [neighbour.cosine for neighbour in layer]
            assert min(a - b for a, b in zip(cosines, cosines[1:])) > 2e-5, sentence


def test_the_figures_are_those_of_the_card() -> None:
    for row in ("all", "chance"):
        found = re.findall(rf"^\| {row} \|[ 96]*\| (.*) \|$", CARD, re.MULTILINE)[0]
        assert f"| {found} |" in PAGE
    assert "84.3 (WikiText) and 120.5 (EWT)" in PAGE
    for source, figure in (("WikiText-103", "84.3"), ("UD English EWT", "120.5")):
        assert re.search(rf"^\| {source} .* {figure}\d \|$", CARD, re.MULTILINE)
    assert "721,891 words" in PAGE and "721,891 words" in CARD


def test_the_commands_work(allennlp: Allennlp, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "text.txt").write_text("The river bank .\nThe bank lent money .\n")
    block = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)[0]
    for command in block.splitlines():
        program, *words = command.split()
        assert program == "allennlp"
        allennlp(*words)
    assert (tmp_path / "layers.html").exists()
