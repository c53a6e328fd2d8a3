"""The page of layers in a headless browser."""

from pathlib import Path
from typing import Any, Iterator, List

import pytest

from elmo_scratch.explore import ExportedTokens, Neighbour, layer_page, nearest
from elmo_scratch.interop import LayerFile
from tests.explore.tiny_explorations import SENTENCES, write_explored

LABELS = ["river", "money", "animal", "</script>", "river", "money"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_explored(tmp_path_factory.mktemp("explored") / "layers.hdf5")


@pytest.fixture
def complaints() -> List[str]:
    """What a page writes to the console, and the requests that it makes."""
    return []


@pytest.fixture
def page(browser: Any, path: Path, tmp_path: Path, complaints: List[str]) -> Iterator[Any]:
    """The page of `path`, opened."""
    with LayerFile(path) as layers:
        made = layer_page(ExportedTokens(layers), k=3, labels=LABELS)
    file = tmp_path / "layers.html"
    file.write_bytes(made)
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on("request", lambda request: complaints.append(request.url))
    page.goto(file.as_uri())
    assert complaints.pop(0) == file.as_uri()
    yield page
    page.close()


def choose(page: Any, button: Any) -> None:
    """Presses `button`, and waits until the page shows the word that it leads to."""
    button.click()
    wait_for_chosen(page)


def wait_for_chosen(page: Any) -> None:
    row = page.evaluate("location.hash.slice(1)")
    page.locator(f"#sentence [aria-pressed=true][data-row='{row}']").wait_for()


def shown(page: Any) -> List[List[str]]:
    """The cosines and marked words of each layer of the page, from the top."""
    sections = page.locator("#neighbours section").all()
    return [
        [
            f"{row.locator('.cosine').inner_text()} {row.locator('mark').inner_text()}"
            for row in section.locator(".row").all()
        ]
        for section in sections
    ]


def told(neighbours: List[Neighbour]) -> List[str]:
    return [f"{one.cosine:.3f} {one.word}" for one in neighbours]


def test_a_click_on_a_word_shows_its_neighbours(
    page: Any, path: Path, complaints: List[str]
) -> None:
    choose(page, page.locator("#sentences").get_by_text(SENTENCES[2]))
    choose(page, page.locator("#sentence button", has_text="bank"))
    assert page.locator("#word-title").inner_text() == "Nearest neighbours of “bank”"
    assert page.locator("#sentence-title").inner_text() == "Sentence 2, labelled “animal”"
    assert shown(page) == [
        told(nearest(path, 2, 8, layer, k=3, each_word_once=layer == 0)) for layer in (2, 1, 0)
    ]
    # A neighbour leads to its own neighbours, and the browser's button back.
    (upper, *_) = nearest(path, 2, 8, 2, k=1)
    choose(page, page.locator("#neighbours .row").first)
    assert page.locator("#sentence [aria-pressed=true]").inner_text() == upper.word
    assert shown(page)[0] == told(nearest(path, upper.sentence, upper.position, 2, k=3))
    page.go_back()
    wait_for_chosen(page)
    assert page.locator("#word-title").inner_text() == "Nearest neighbours of “bank”"
    assert complaints == []


def test_occurrences_have_maps_and_cosines(page: Any, path: Path, complaints: List[str]) -> None:
    choose(page, page.locator("#sentence button", has_text="bank"))
    maps = page.locator("#maps svg")
    assert maps.count() == 2
    for picture in maps.all():
        assert picture.locator("path.point").count() == 4
        assert "4 occurrences of “bank” in layer" in picture.get_attribute("aria-label")
    assert page.locator("#legend").inner_text().split("\n") == [
        "river (2)",
        "money (1)",
        "animal (1)",
    ]
    rows = [row.inner_text().split() for row in page.locator("#pairs tbody tr").all()]
    others = [one for one in nearest(path, 0, 4, 2, k=100) if one.word == "bank"]
    assert [row[0] for row in rows] == [f"{one.cosine:.2f}" for one in others]
    choose(page, page.locator("#sentence button", has_text="sat"))
    assert not page.locator("#occurrences").is_visible()
    assert complaints == []


def test_it_is_worked_by_the_keyboard(page: Any, complaints: List[str]) -> None:
    page.locator("#search").focus()
    page.keyboard.type("slept")
    page.locator("#found", has_text="1 to 1 of 1 sentence").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    wait_for_chosen(page)
    assert page.url.endswith("#15")
    assert page.locator("#sentence-title").inner_text().startswith("Sentence 2")
    page.keyboard.press("Tab")  # from the sentence's first word to the next
    page.keyboard.press("Enter")
    wait_for_chosen(page)
    assert page.url.endswith("#16")
    assert page.locator("#sentence [aria-pressed=true]").inner_text() == "bat"
    assert page.evaluate("document.activeElement.textContent") == "bat"
    assert complaints == []


def test_hostile_sentences_and_labels_are_text(page: Any, complaints: List[str]) -> None:
    choose(page, page.locator("#sentences li").nth(3).locator("button"))
    assert page.locator("#sentence button").all_inner_texts() == SENTENCES[3].split()
    assert page.locator("#sentence-title").inner_text() == "Sentence 3, labelled “</script>”"
    assert page.locator("script").count() == 2
    page.evaluate("location.hash = '<img src=x onerror=alert(1)>'")
    page.locator("#sentence-title", has_text="Sentence 0").wait_for()
    assert complaints == []


def test_nothing_is_wider_than_a_phone(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_policy_of_the_page_runs_no_other_script(page: Any, complaints: List[str]) -> None:
    page.evaluate(
        "const s = document.createElement('script'); s.textContent = 'window.stolen = 1';"
        "document.body.append(s)"
    )
    assert page.evaluate("window.stolen") is None
    assert "Content Security Policy" in complaints.pop()
