"""
Runs what pages of the docs show, block by block, and compares what it prints with what they show:

    python -m tests.pages FOLDER PAGE[#HEADING]…

Blocks of bash and Python run in FOLDER, in the order of the pages. What bash exports holds for the
blocks after it. A section that other blocks need is named first, by its heading, and then not run
again with its page. A block of text shows what the block before it, below the same heading, prints
on standard output.

A comment before a block, `<!-- not run: why -->` or `<!-- output varies: why -->`, says so where a
block can't be run, or where other processors may print other words. The pages show those of
processors with AVX-512; on others half of the shown lines must then be printed, whatever word
stands in quotes. Install lines are run by `tests/install_test.py`.

Of numbers and sparklines only their places are compared: times depend on the machine, and a
training on another processor ends a little elsewhere.
"""

import os
import re
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Set

OUTPUT = "text"
RUN = {"bash": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}
"""How a block runs, by its language."""

INSTALLS = re.compile(r"(python3 -m venv|pip install|uv pip install) ")
COMMENT = re.compile(r"<!-- (not run|output varies): (.+) -->")
LEFT_OUT = re.compile(r"\.\.\.|…")
"""What a page leaves out: lines if it is a line of its own, else a part of its line."""

MASKS = (
    (re.compile(r"file://\S+"), "file://"),
    (re.compile(r"[▁▂▃▄▅▆▇█]+"), "▁"),
    (re.compile(r"\d[\d,.:]*(e-\d+)?( s\b| seconds\b| minutes\b| \(h:min:s\))?"), "0"),
    (re.compile(r"-0|\bnan\b"), "0"),
    (re.compile(r"\b[KMG]B\b"), "B"),
    (re.compile(r" +"), " "),
)
"""What depends on the machine, and what stands for it. Times: `0.3 s`, `46 seconds`, `1:10`."""


QUOTED = re.compile(r"'\w+'|\"\w+\"")
"""A word that another processor may replace, in an output that varies."""


class Block(NamedTuple):
    """A fenced block: where it is, its language, its text, and the comment before it."""

    place: str
    heading: str
    language: str
    text: str
    comment: str
    why: str


def blocks_of(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page in its order."""
    heading, comment, why, start, language = "", "", "", 0, ""
    text: List[str] = []
    for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
        if start:
            if line == "```":
                yield Block(f"{page}:{start}", heading, language, "\n".join(text), comment, why)
                comment, why, start = "", "", 0
            else:
                text.append(line)
        elif line.startswith("```"):
            start, language, text = number, line[3:], []
        elif line.startswith("#"):
            heading = line.lstrip("# ")
        elif found := COMMENT.fullmatch(line):
            comment, why = found.groups()


def masked(line: str) -> str:
    """A line without what depends on the machine."""
    for pattern, stands in MASKS:
        line = pattern.sub(stands, line)
    return line.rstrip()


def missing_of(shown: str, printed: str) -> List[str]:
    """
    The first run of shown lines that was not printed, one after the other and after those shown
    before; none if all were. Empty lines don't count.
    """
    lines, at = list(filter(None, map(masked, printed.splitlines()))), 0
    for is_left_out, group in groupby(
        shown.splitlines(), lambda line: bool(LEFT_OUT.fullmatch(line.strip()))
    ):
        wanted = [line for line in group if line.strip()]
        if is_left_out:
            continue
        patterns = [
            re.compile(".*".join(map(re.escape, LEFT_OUT.split(masked(line))))) for line in wanted
        ]
        last = len(lines) - len(patterns)
        for first in range(at, last + 1):
            if all(one.fullmatch(line) for one, line in zip(patterns, lines[first:])):
                at = first + len(patterns)
                break
        else:
            return wanted
    return []


def prints_same_words() -> bool:
    """Whether a small training ends here as on the processors whose words the pages show."""
    import torch

    return torch.backends.cpu.get_cpu_capability() == "AVX512"


def mostly_missing_of(shown: str, printed: str) -> List[str]:
    """The shown lines that were not printed, if they are more than half; else none."""

    def without_words(text: str) -> Set[str]:
        return {QUOTED.sub("word", masked(line)) for line in text.splitlines() if line.strip()}

    wanted = without_words(shown)
    missing = wanted - without_words(printed)
    return sorted(missing) if 2 * len(missing) > len(wanted) else []


def run_blocks(blocks: List[Block], folder: Path, environment: Dict[str, str]) -> int:
    """Runs blocks in their order. Returns how many outputs were not printed as shown."""
    printed, num_missed, compared, find_missing = "", 0, None, missing_of
    for block in blocks:
        if block.language == OUTPUT and block.heading == compared:
            compared = None
            missing = find_missing(block.text, printed)
            if missing:
                num_missed += 1
                print(f"{block.place}: expected among the output:", *missing, sep="\n  ")
        if block.language not in RUN or INSTALLS.match(block.text):
            continue
        compared = None if block.comment == "not run" else block.heading
        varies = block.comment == "output varies" and not prints_same_words()
        find_missing = mostly_missing_of if varies else missing_of
        if block.comment:
            print(f"{block.place}: {block.comment}: {block.why}")
        if block.comment == "not run":
            continue
        print(f"{block.place}:", *block.text.splitlines(), sep="\n  ", flush=True)
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as exported:
            text = block.text
            if block.language == "bash":
                text += f"\nenv -0 > {exported.name}"
            done = subprocess.run(
                [*RUN[block.language], text],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            variables = exported.read().split("\0")
        printed = done.stdout
        if done.returncode:
            sys.exit(f"{block.place}: ended with status {done.returncode}\n{printed}")
        print(f"{block.place}: it printed:", *printed.splitlines(), sep="\n  ", flush=True)
        environment.update(variable.split("=", 1) for variable in variables if variable)
    return num_missed


def main() -> None:
    folder, *names = sys.argv[1:]
    environment, num_missed = dict(os.environ), 0
    done: Set[str] = set()
    for name in names:
        page, _, heading = name.partition("#")
        blocks = [
            block
            for block in blocks_of(Path(page))
            if block.place not in done and heading in ("", block.heading)
        ]
        if not blocks:
            sys.exit(f"{name}: there is nothing to run")
        num_missed += run_blocks(blocks, Path(folder), environment)
        done.update(block.place for block in blocks)
    if num_missed:
        sys.exit(f"{num_missed} outputs are not printed as shown")
    print("All blocks ran, and printed what is shown")


if __name__ == "__main__":
    main()
