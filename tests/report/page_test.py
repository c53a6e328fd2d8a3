import re
from pathlib import Path
from typing import Any, List
from xml.etree import ElementTree

from elmo_scratch.report import Contents, read_run, report_of, write_page
from tests.report.run_folders import write_json, write_run

HOSTILE = '<script>document.title = "hijacked"</script>'


def page_of(output: Path, *folders: Path) -> str:
    write_page(report_of(Contents([read_run(folder) for folder in folders])), output)
    return output.read_text(encoding="utf-8")


def hostile_run(folder: Path) -> Path:
    """Wherever data gets into a page there is HTML, TeX or a control character."""
    names = [HOSTILE, "$\\frac{$ & \x00\x1b \ud800"]
    more = {
        "best_validation_confusion_classes": names,
        f"best_validation_{HOSTILE}": 1.0,
        f"layer_share_{HOSTILE}.0": 1.0,
    }
    model = {"type": f'"><img src=x onerror="{HOSTILE}">'}
    return write_run(folder, config={HOSTILE: HOSTILE, "model": model}, more=more)


def test_what_comes_from_data_is_text(tmp_path: Path) -> None:
    page = page_of(tmp_path / "report.html", hostile_run(tmp_path / "<b>run"))
    assert re.findall("<script", page) == ["<script"]
    assert "<img" not in page and "<b>" not in page
    assert "&lt;script&gt;document.title" in page
    assert "\x00" not in page and "\x1b" not in page


def test_several_texts_and_one_thread_are_told_as_people_do(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", config={"train_data_path": ["a.txt", "b.txt"]})
    write_json(run / "environment.json", {"num_processors": 2, "num_threads": 1})
    page = page_of(tmp_path / "report.html", run)
    assert "a.txt, b.txt" in page and "2 processors, 1 thread<" in page


def test_pictures_are_described_and_take_the_colours_of_the_page(tmp_path: Path) -> None:
    page = page_of(tmp_path / "report.html", write_run(tmp_path / "run"))
    pictures = [ElementTree.fromstring(svg) for svg in re.findall("<svg.*?</svg>", page, re.DOTALL)]
    assert len(pictures) == len(re.findall("<figcaption>.{20}", page)) == 3
    names: List[str] = []
    for picture in pictures:
        assert picture.get("role") == "img" and len(picture.get("aria-label", "")) > 20
        names += [element.get("id", "") for element in picture.iter() if element.get("id")]
        used = re.findall(r'(?:url\(|href=")#([^")]+)', ElementTree.tostring(picture, "unicode"))
        assert set(used) <= set(names)
    assert len(set(names)) == len(names)
    styles = " ".join(re.findall(r'style="([^"]*)"', page))
    assert "var(--ink)" in styles and "var(--faint)" in styles
    assert not {"#1a1a1b", "#c9c9ca", "#0072b2"} & set(re.findall("#[0-9a-f]{6}", styles))
    assert "DejaVu" not in styles and "font-size" in styles


def test_the_same_trainings_give_the_same_bytes(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    assert page_of(tmp_path / "a.html", folder) == page_of(tmp_path / "b.html", folder)


def test_a_browser_shows_and_sorts_it(tmp_path: Path, browser: Any) -> None:
    accuracies = {"a": [0.5, 0.75], "b": [0.5], "c": [0.9, 0.3, 0.4]}
    folders = [write_run(tmp_path / name, values) for name, values in accuracies.items()]
    output = tmp_path / "report.html"
    begun = write_run(tmp_path / "e", [], is_over=False)
    page_of(output, *folders, hostile_run(tmp_path / "d"), begun)
    page = browser.new_page(viewport={"width": 390, "height": 800})
    complaints: List[str] = []
    requests: List[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(output.as_uri())
    assert complaints == []
    assert requests == [output.as_uri()]
    assert page.title() == "5 trainings"
    # On a phone nothing but tables and large pictures goes beyond the edge.
    assert page.evaluate("document.documentElement.scrollWidth") == 390

    def sorted_by(title: str) -> str:
        table = page.locator("table").first
        table.get_by_role("button", name=title).click()
        return "".join(table.locator("tbody th").all_inner_texts())

    assert sorted_by("best on validation data") == "cadbe"
    assert sorted_by("best on validation data") == "badce"
    assert sorted_by("epochs") == "cadbe"
    assert sorted_by("training") == "abcde"
    assert sorted_by("training") == "edcba"
    head = page.locator("thead th").first
    assert head.get_attribute("aria-sort") == "descending"
