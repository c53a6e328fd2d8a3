import re
from pathlib import Path
from typing import List

import pytest

from tests import PROJECT_ROOT
from tests.pages import RUN, blocks_of, missing_of, mostly_missing_of, run_blocks

CHECKED_OTHERWISE = {
    "docs/coming_from.md": "tests/coming_from_test.py",
    "docs/install.md": "tests/install_test.py",
    "docs/results.md": "its data sets are not part of the project",
    "docs/tutorial.md": "`.ci/run` runs it on the fixtures",
}
"""Pages that `.ci/run` doesn't compare with what their commands print, and why."""


def test_every_page_that_shows_commands_is_run() -> None:
    script = (PROJECT_ROOT / ".ci" / "run").read_text("utf-8").replace("\\\n", " ")
    commands = re.findall(r"python -m tests\.pages (.+)", script)
    run = set(re.findall(r"(?:docs/[\w/]+|README)\.md", " ".join(commands)))
    pages = [PROJECT_ROOT / "README.md", *(PROJECT_ROOT / "docs").rglob("*.md")]
    shows = {
        str(page.relative_to(PROJECT_ROOT))
        for page in pages
        if any(block.language in RUN for block in blocks_of(page))
    }
    assert shows - run == CHECKED_OTHERWISE.keys()


PAGE = """# Page

```bash
export WORD=river
mkdir -p runs
```

It prints the word:

```python
import os
print("the", os.environ["WORD"], "in 0.25 s")
print("left out")
print({"probability": 0.1234})
```

```text
the river in 3.5 s
...
{"probability": …}
```

<!-- not run: it needs an account -->

```bash
exit 3
```
"""


def test_a_page_is_run_and_its_output_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace('{"probability"', "{'probability'"), "utf-8")
    blocks = list(blocks_of(page))
    assert [block.heading for block in blocks] == ["Page"] * 4
    assert run_blocks(blocks, tmp_path, {"PATH": "/usr/bin:/bin"}) == 0
    assert (tmp_path / "runs").is_dir()
    assert f"{page}:25: not run: it needs an account" in capsys.readouterr().out
    page.write_text(PAGE.replace("the river in", "a river in"), "utf-8")
    assert run_blocks(list(blocks_of(page)), tmp_path, {"PATH": "/usr/bin:/bin"}) == 1
    with pytest.raises(SystemExit, match="page.md:23: ended with status 3"):
        page.write_text(re.sub("<!--.*-->\n\n", "", PAGE), "utf-8")
        run_blocks(list(blocks_of(page)), tmp_path, {"PATH": "/usr/bin:/bin"})


@pytest.mark.parametrize(
    "shown, is_printed",
    [
        ("one\ntwo", True),
        ("one\n...\nthree 3.25", True),
        ("two\nthree 1,000 s", True),
        ("one\nthree 3", False),
        ("two\n...\none", False),
        ("o…e\n…\nthr… 3", True),
        ("perplexity ▁▂▁", False),
    ],
)
def test_shown_lines_are_printed_one_after_the_other(shown: str, is_printed: bool) -> None:
    assert (missing_of(shown, "one\ntwo\n\nthree 4\n") == []) == is_printed


@pytest.mark.parametrize(
    ("shown", "is_printed"),
    [
        ("'one' 0.5\n(2, 64)", True),
        ("'two' 0.7\n(2, 32)\nthe end", True),
        ("the end\nno\n(3, 4)", True),
        ("the end\n(3, 4)\nyes", False),
        ("the end", False),
    ],
)
def test_where_output_varies_half_of_the_lines_are_printed(shown: str, is_printed: bool) -> None:
    assert (mostly_missing_of(shown, "'six' 0.25\n\n(2, 16)\nno\n") == []) == is_printed


@pytest.mark.parametrize(("has_same_words", "expected"), [(False, [0, 1]), (True, [1, 1])])
def test_output_that_varies_is_compared_by_half_of_its_lines(
    has_same_words: bool, expected: List[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.pages.prints_same_words", lambda: has_same_words)
    page = tmp_path / "page.md"
    text = (
        "# Page\n\n<!-- output varies: why -->\n```bash\necho one\necho 2\n```\n\n"
        "```text\ntwo\n3\n```\n"
    )
    for shown, num_missed in zip((text, text.replace("\n3\n", "\nthree\n")), expected):
        page.write_text(shown, "utf-8")
        blocks = list(blocks_of(page))
        assert run_blocks(blocks, tmp_path, {"PATH": "/usr/bin:/bin"}) == num_missed
