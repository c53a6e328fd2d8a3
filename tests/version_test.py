import re

import yaml

from elmo_scratch import VERSION
from tests import PROJECT_ROOT


def test_the_newest_release_in_the_changelog_is_this_version() -> None:
    changelog = (PROJECT_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(\d[^\]]*)\] - \d{4}-\d{2}-\d{2}$", changelog, re.MULTILINE)
    assert headings[0] == VERSION


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((PROJECT_ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == VERSION
    assert citation["license"] == "Apache-2.0"


def test_lines_of_the_changelog_are_short() -> None:
    lines = (PROJECT_ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 120] == []


def test_the_changelog_has_room_for_what_comes_next() -> None:
    changelog = (PROJECT_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[([^\]]*)\]", changelog, re.MULTILINE)[0] == "Unreleased"
