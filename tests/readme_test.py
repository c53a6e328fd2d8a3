"""README.md stays short, and what it and the pages of docs/ show as configs can be one."""

import re
from typing import List, Tuple

import allennlp_models.classification  # noqa: F401  (blocks of pages configure its models)
import allennlp_models.tagging  # noqa: F401
import pytest
from _jsonnet import evaluate_snippet  # type: ignore[import-not-found]
from allennlp.common import Registrable

import elmo_scratch.registered  # noqa: F401  (all names that there are)
from tests import PROJECT_ROOT

README = PROJECT_ROOT / "README.md"
PAGES = [README, *sorted((PROJECT_ROOT / "docs").rglob("*.md"))]
CONFIGS: List[Tuple[str, str]] = [
    (page.relative_to(PROJECT_ROOT).as_posix(), block)
    for page in PAGES
    for block in re.findall(r"^```jsonnet\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.M)
]


def test_readme_installs_as_the_page_does_that_is_tested() -> None:
    (lines,) = re.findall(r"```bash\n(pip install .*?)```", README.read_text("utf-8"), re.DOTALL)
    assert lines in (PROJECT_ROOT / "docs/install.md").read_text(encoding="utf-8")


def test_readme_has_at_most_150_lines() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page, config", CONFIGS)
def test_configs_name_what_there_is(page: str, config: str) -> None:
    known = {name for names in Registrable._registry.values() for name in names}
    found = evaluate_snippet(page, "{" + config + "}")
    assert set(re.findall(r'"type": "([^"]+)"', found)) <= known


def test_configs_are_found_in_readme_and_docs() -> None:
    assert {"README.md", "docs/processes.md"} <= {page for page, _ in CONFIGS}
