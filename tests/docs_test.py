"""Links of all pages lead somewhere, and what CONTRIBUTING.md shows works."""

import re
import sys
from pathlib import Path
from typing import List, Set

import pytest
import torch

from elmo_scratch import LayerMix
from tests import PROJECT_ROOT

FOLDERS = ("benchmarks", "docs", "elmo_scratch", "examples", "fixtures", "tests", "training_config")
PAGES = sorted(
    [*PROJECT_ROOT.glob("*.md")]
    + [page for folder in FOLDERS for page in (PROJECT_ROOT / folder).rglob("*.md")]
)


def prose_of(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors_of(page: Path) -> Set[str]:
    """What links to headings end with, as GitHub makes it of their texts."""
    headings = re.findall(r"^#+ (.*)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> List[str]:
    """The links of a page that lead to no file, or to no heading."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if "://" not in link and not (
            target.exists() and (not anchor or anchor in anchors_of(target))
        ):
            broken.append(f"{page.relative_to(PROJECT_ROOT)}: {link}")
    return broken


def test_links_lead_to_files_and_headings() -> None:
    assert len(PAGES) > 10
    assert [link for page in PAGES for link in broken_links(page)] == []
    assert "](docs/strangers.md)" in (PROJECT_ROOT / "SECURITY.md").read_text("utf-8")


def test_a_broken_link_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PROJECT_ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# One, two\n[a](#one-two) [b](#three) [c](page.md) [d](none.md)\n", "utf-8")
    assert broken_links(page) == ["page.md: #three", "page.md: none.md"]


def test_a_mix_of_a_package_of_ones_own_is_known_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(LayerMix._registry, LayerMix, dict(LayerMix._registry[LayerMix]))
    page = (PROJECT_ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (source,) = re.findall(r"^```python\n(import torch\n.*?)^```", page, re.DOTALL | re.MULTILINE)
    exec(compile(source, "my_mixes.py", "exec"), {"__name__": "my_mixes"})
    mix = LayerMix.by_name("first_and_last")(3)
    layers = torch.tensor([1.0, 50.0, 4.0]).view(3, 1, 1, 1)
    assert mix(layers, torch.ones(1, 1, dtype=torch.bool)).item() == 2.5
    assert mix.shares().tolist() == [0.5, 0.0, 0.5]
