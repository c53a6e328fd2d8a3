"""
What each command prints in a terminal of 80 columns, before and after AllenNLP was made quiet:

    python -m benchmarks.terminal            # prints the document
    python -m benchmarks.terminal --write    # writes docs/terminal.md

"Before" is a command with `--verbose --debug`, which bring back what AllenNLP itself prints. Times,
speeds and the folder of the runs are masked, so that the document changes only with what is
printed. It takes some minutes: each command is a copy of one process that has imported everything.
"""

import argparse
import contextlib
import fcntl
import json
import logging
import os
import pty
import re
import shlex
import shutil
import struct
import sys
import tempfile
import termios
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

from allennlp.common.plugins import import_plugins

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "terminal.md"
WIDTH = 80

FILES = {
    "NEWS_TRAIN": "fixtures/news/train.csv",
    "NEWS_DEV": "fixtures/news/dev.csv",
    "AG_NEWS_TRAIN": "fixtures/news/train.csv",
    "AG_NEWS_DEV": "fixtures/news/dev.csv",
    "BILM_ARCHIVE": "runs/bilm/model.tar.gz",
}
"""The environment variables that the configs ask for."""

BILM = "training_config/bilm/fixture.jsonnet"
CLASSIFIER = "training_config/ag_news/elmo_trainable.jsonnet"
TINY = json.dumps({"trainer.num_epochs": 3, "data_loader.batch_sampler.batch_size": 8})
TEXT = "fixtures/text/tour.txt"


class Command(NamedTuple):
    """
    A command of the document: what it is for, the words after `allennlp`, and the environment
    variables that are others for it, or `""` where they aren't set.
    """

    title: str
    words: Sequence[str]
    variables: Dict[str, str] = {}


RESULTS = (
    Command("Pre-train", ("train", BILM, "-s", "runs/bilm")),
    Command(
        "Pre-train on a text of your own",
        ("elmo-train", "fixtures/text/sentences.txt", "-s", "runs/own", "--epochs", "2"),
    ),
    Command("Train a classifier", ("train", CLASSIFIER, "-s", "runs/news", "-o", TINY)),
    Command("Evaluate", ("evaluate", "runs/news/model.tar.gz", "fixtures/news/dev.csv")),
    Command("Predict", ("predict", "runs/news/model.tar.gz", "runs/texts.jsonl")),
    Command(
        "Export layers",
        ("elmo", TEXT, "runs/layers.hdf5", "--all", "--weight-file", "runs/bilm/model.tar.gz"),
    ),
    Command("Look into layers", ("elmo-explore", "runs/layers.hdf5", "-o", "runs/layers.html")),
    Command("Neighbours of a word", ("elmo-explore", "runs/layers.hdf5", "--word", "bank")),
    Command(
        "Score a text",
        ("elmo-score", "runs/bilm/model.tar.gz", TEXT, "-o", "runs/scores.jsonl"),
    ),
    Command("Write official files", ("elmo-export", "runs/bilm/model.tar.gz", "runs/official")),
)
"""In an order in which each finds what it needs."""

MISTAKES = (
    Command(
        "A class that there is not",
        ("train", CLASSIFIER, "-s", "runs/1"),
        {"AG_NEWS_TRAIN": "fixtures/bad/bad_class.csv"},
    ),
    Command(
        "A missing column",
        ("train", CLASSIFIER, "-s", "runs/2"),
        {"AG_NEWS_TRAIN": "fixtures/bad/missing_column.csv"},
    ),
    Command(
        "A width that doesn't fit",
        ("train", CLASSIFIER, "-s", "runs/3", "-o", '{"model.seq2vec_encoder.embedding_dim": 99}'),
    ),
    Command("A missing variable", ("train", CLASSIFIER, "-s", "runs/4"), {"BILM_ARCHIVE": ""}),
    Command("A folder in use", ("train", BILM, "-s", "runs/bilm")),
    Command("An unknown key", ("train", BILM, "-s", "runs/5", "-o", '{"trainer.num_epoch": 1}')),
)

MASKS = (
    (r"\d+:\d\d:\d\d", "0:00:00"),
    (r" in \d+\.\d s\b", " in 0.0 s"),
    (r": [\d,]+ (tokens|words)/s", r": 0 \1/s"),
    (r"\[\d\d:\d\d[^]\r\n]*\]?", "[00:00]"),
    (r"about [\d.]+ (seconds?|minutes)", "about 0 seconds"),
)
"""What differs from run to run, and what stands in its place."""

STOCK = "runs/stock"
"""Where a training writes that prints what AllenNLP itself prints."""

HEAD = """\
# The terminal

What the commands print in a terminal of 80 columns, on the fixtures, with times and speeds masked.
`python -m benchmarks.terminal --write` wrote this page. "Before" is the same command with
`--verbose --debug`, which bring back what AllenNLP itself prints. The package's own commands take
`--verbose` too, and are shown as they are. Each command begins with the line
`loading AllenNLP …`, and on a slow machine with more such lines, which are left out here. What is
longer than 80 columns breaks where the terminal ends. AllenNLP itself ignores an unknown key, and
trains for its default of 20 epochs.

| command | rows before | rows now |
|---|---:|---:|"""


def in_terminal(run: Callable[[], object]) -> str:
    """Calls `run` in a copy of this process, in a terminal of 80 columns; returns its output."""
    process, terminal = pty.fork()
    if process == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)
        logging.getLogger().handlers.clear()
        try:
            run()
        except SystemExit as stop:
            print(stop.code if isinstance(stop.code, str) else "", end="", file=sys.stderr)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
    pieces = []
    with contextlib.suppress(OSError):  # at the end
        while piece := os.read(terminal, 2**16):
            pieces.append(piece)
    os.close(terminal)
    os.waitpid(process, 0)
    return b"".join(pieces).decode("utf-8", "replace")


def run_allennlp(words: Sequence[str], folder: Path, variables: Dict[str, str]) -> None:
    """Does in this process what the program `allennlp` does."""
    os.chdir(folder)
    for name, value in variables.items():
        if value:
            os.environ[name] = value
        else:
            os.environ.pop(name, None)
    sys.argv = ["allennlp", *words]
    from allennlp.__main__ import run  # sets logging up

    run()


def rows_of(output: str) -> List[str]:
    """Returns what stands on a terminal of 80 columns, row by row, after it has got `output`."""
    rows: List[List[str]] = [[]]
    row = column = 0
    for sign in re.findall(r"\x1b\[[\d;]*[A-Za-z]|.", output, re.DOTALL):
        if sign == "\r":
            column = 0
        elif sign == "\n":
            row += 1
        elif sign == "\x1b[A":
            row = max(0, row - 1)
        elif not sign.startswith("\x1b"):
            if column == WIDTH:
                row, column = row + 1, 0
            rows += [[] for _ in range(row + 1 - len(rows))]
            rows[row] += [" "] * (column + 1 - len(rows[row]))
            rows[row][column] = sign
            column += 1
    shown = ["".join(line).rstrip() for line in rows]
    while shown and not shown[-1]:
        del shown[-1]
    return shown


class Captured(NamedTuple):
    """
    A command, how many rows it takes with all that AllenNLP itself prints, if it can print that,
    and the rows of today.
    """

    command: Command
    before: Optional[int]
    rows: List[str]


def captured(command: Command, folder: Path) -> Captured:
    """Runs a command, once as AllenNLP would have it and once as it is."""
    variables = {**FILES, **command.variables}
    words, before = list(command.words), None
    if not words[0].startswith("elmo"):  # AllenNLP itself doesn't have these
        stock = [*words, "--verbose", "--debug"]
        # Into a folder of its own, unless the mistake is that the folder is in use.
        if "-s" in words and not (folder / words[words.index("-s") + 1]).exists():
            stock[words.index("-s") + 1] = STOCK
        before = len(rows_of(in_terminal(partial(run_allennlp, stock, folder, variables))))
        shutil.rmtree(folder / STOCK, ignore_errors=True)
    output = in_terminal(partial(run_allennlp, words, folder, variables))
    output = output.replace(str(folder.resolve()), "/home/me")
    for pattern, mask in MASKS:
        output = re.sub(pattern, mask, output)
    return Captured(command, before, rows_of(output))


def prepare(folder: Path) -> None:
    """Lays out a folder from which the paths of all commands are short."""
    for name in ("fixtures", "training_config"):
        (folder / name).symlink_to(ROOT / name)
    runs = folder / "runs"
    runs.mkdir()
    (runs / "texts.jsonl").write_text('{"description": "The striker scored twice ."}\n', "utf-8")


def document_of(captures: Sequence[Captured]) -> Iterator[str]:
    """Yields the lines of the page."""
    yield from HEAD.splitlines()
    for command, before, rows in captures:
        yield f"| {command.title} | {'–' if before is None else f'{before:,}'} | {len(rows)} |"
    for command, _, rows in captures:
        typed = shlex.join(["allennlp", *command.words])
        unset = [f"unset {name}" for name, value in command.variables.items() if not value]
        set_to = [f"{name}={value}" for name, value in command.variables.items() if value]
        yield from ("", f"## {command.title}", "", "```text")
        yield "$ " + "; ".join([*unset, " ".join([*set_to, typed])])
        yield from rows
        yield "```"


def main() -> None:
    """Captures all commands and prints or writes the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.relative_to(ROOT)}")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # The copies of this process find all of it imported.
    import_plugins()
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        captures = []
        for command in (*RESULTS, *MISTAKES):
            print(command.title, file=sys.stderr)
            captures.append(captured(command, Path(name)))
    page = "\n".join(document_of(captures)) + "\n"
    if args.write:
        DOCUMENT.write_text(page, encoding="utf-8")
    else:
        print(page, end="")


if __name__ == "__main__":
    main()
