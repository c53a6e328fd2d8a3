"""On the site, links to files of the checkout that are no pages become the names of these files."""

import importlib.util
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Callable

import pytest

from tests import PROJECT_ROOT


@pytest.fixture
def shown(tmp_path: Path) -> Callable[[str], str]:
    """What becomes of the text of a page `docs/using/page.md`."""
    hook = PROJECT_ROOT / "docs/theme/outside.py"
    spec = importlib.util.spec_from_file_location("outside", hook)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/step.py").touch()
    page = SimpleNamespace(file=SimpleNamespace(src_uri="using/page.md"))
    config = SimpleNamespace(docs_dir=str(tmp_path / "docs"))
    return lambda text: module.on_page_markdown(text, page, config, [])


@pytest.mark.parametrize(
    "link, name",
    [
        ("[one step](../../examples/step.py#top)", "one step (`examples/step.py`)"),
        ("[step.py](../../examples/step.py)", "`examples/step.py`"),
        ("[`examples/step.py`](../../examples/step.py)", "`examples/step.py`"),
        ("[all](../../examples)", "all (`examples/`)"),
    ],
)
def test_a_file_outside_is_named(link: str, name: str, shown: Callable[[str], str]) -> None:
    assert shown(f"See {link}, please.") == f"See {name}, please."


@pytest.mark.parametrize(
    "text",
    [
        "[page](../layers.md#top) [here](#there) [far](https://example.org/a.py)",
        "```text\n[one step](../../examples/step.py)\n```",
    ],
)
def test_other_links_and_code_stay(text: str, shown: Callable[[str], str]) -> None:
    assert shown(text) == text


def test_a_file_that_is_not_there_is_warned_of(
    shown: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "mkdocs"):
        shown("[gone](../../examples/gone.py)")
    assert "using/page.md: there is no ../../examples/gone.py in the checkout" in caplog.text
