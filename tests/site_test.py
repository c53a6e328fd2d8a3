"""The site that mkdocs makes of the docs, built and opened from files in a headless browser."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, List

import pytest

from tests import PROJECT_ROOT

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built so that any warning is an error."""
    for module in ("material", "mkdocstrings"):
        pytest.importorskip(
            module, reason=f"{module} is not installed: requirements-dev.txt has it"
        )
    folder = tmp_path_factory.mktemp("site")
    words = ["build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", *words],
        cwd=PROJECT_ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture
def complaints() -> List[str]:
    """Errors in the console of a page, and requests for anything else than files."""
    return []


@pytest.fixture
def page(browser: Any, complaints: List[str]) -> Iterator[Any]:
    """An empty page of a phone."""
    page = browser.new_page(viewport=PHONE)

    def console(message: Any) -> None:
        if message.type in ("error", "warning"):
            complaints.append(f"{page.url}: {message.text}")

    def requested(request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            complaints.append(f"{page.url}: asks for {request.url}")

    page.on("console", console)
    page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
    page.on("request", requested)
    yield page
    page.close()


def check_width(page: Any, complaints: List[str]) -> None:
    """Complains where the page must be scrolled to the side."""
    width = page.evaluate("document.documentElement.scrollWidth")
    if width > PHONE["width"]:
        complaints.append(f"{page.url}: is {width} pixels wide")


@pytest.mark.exhaustive
def test_a_registered_name_is_found_without_a_server(
    site: Path, page: Any, complaints: List[str]
) -> None:
    page.goto((site / "index.html").as_uri())
    check_width(page, complaints)
    page.locator("label.md-header__button[for='__search']").click()
    page.locator("input.md-search__input").press_sequentially("elmo_scratch_adagrad")
    heading = "optimizer-elmo_scratch_adagrad"
    page.locator(f".md-search-result__item a[href*='{heading}']").first.click()
    page.locator(f"h3[id='{heading}']").wait_for()
    assert page.url.startswith((site / "reference" / "settings.html").as_uri())
    check_width(page, complaints)
    assert complaints == []


@pytest.mark.exhaustive
def test_each_page_fits_a_phone_and_needs_no_network(
    site: Path, page: Any, complaints: List[str]
) -> None:
    files = sorted(file for file in site.rglob("*.html") if file.name != "404.html")
    assert len(files) > 20
    for file in files:
        page.goto(file.as_uri())
        check_width(page, complaints)
    assert complaints == []
