"""
How long each command leaves one without a word:

    python -m benchmarks.silence             # all commands of docs/terminal.md
    python -m benchmarks.silence Evaluate    # those with such a title

Each is a process of its own in a terminal of 80 columns, from the start of Python on. The table has
the longest time in which it printed nothing, what stood there meanwhile, and what it took in all.
"""

import argparse
import contextlib
import json
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import time
from fcntl import ioctl
from pathlib import Path
from typing import NamedTuple

from benchmarks.terminal import FILES, MISTAKES, RESULTS, ROOT, WIDTH, Command, prepare, rows_of

LIMIT = 3.0
"""The seconds of silence after which people wonder whether anything is going on."""


class Silence(NamedTuple):
    """The longest one of a command, the last row above it, and the time of the whole command."""

    title: str
    longest: float
    row: str
    seconds: float


def silence_of(command: Command, folder: Path) -> Silence:
    """Runs a command and listens to it."""
    variables = {**FILES, **command.variables}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.update({name: value for name, value in variables.items() if value})
    for name, value in variables.items():
        if not value:
            environment.pop(name, None)
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    start = last = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "allennlp", *command.words],
        cwd=folder,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    printed, found = b"", (0.0, b"")
    with contextlib.suppress(OSError):  # at the end
        while piece := os.read(ours, 2**16):
            now = time.perf_counter()
            found = max(found, (now - last, printed), key=lambda one: one[0])
            printed, last = printed + piece, now
    process.wait()
    os.close(ours)
    end = time.perf_counter()
    longest, before = max(found, (end - last, printed), key=lambda one: one[0])
    rows = [row for row in rows_of(before.decode("utf-8", "replace")) if row]
    return Silence(command.title, longest, rows[-1] if rows else "", end - start)


def main() -> None:
    """Prints a table, and one line of JSON."""
    commands = {command.title: command for command in (*RESULTS, *MISTAKES)}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("titles", nargs="*", metavar="TITLE", help=f"of {', '.join(commands)}")
    titles = sorted(set(parser.parse_args().titles))
    for title in titles:
        if title not in commands:
            parser.error(f"expected some of {', '.join(commands)}, got {title}")
    wanted = titles or list(commands)
    found = []
    print(f"{'silent':>7}  {'in all':>7}  command")
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        for command in commands.values():
            # Also those in between: each needs what those before it have written.
            one = silence_of(command, Path(name))
            if one.title in wanted:
                found.append(one)
                print(f"{one.longest:5.1f} s  {one.seconds:5.1f} s  {one.title}: {one.row}")
            if len(found) == len(wanted):
                break
    too_long = [one.title for one in found if one.longest > LIMIT]
    print(json.dumps({"longest": max(one.longest for one in found), "too_long": too_long}))


if __name__ == "__main__":
    main()
