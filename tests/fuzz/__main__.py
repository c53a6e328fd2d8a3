"""
Looks for bytes that a reader can't cope with, by atheris: libFuzzer, guided by the coverage of
Python code.

    python -m tests.fuzz --seconds 3600
    python -m tests.fuzz layers sweep --seconds 60
    python -m tests.fuzz --runs 200

With `--runs` each reader gets so many files, the same ones each time. Otherwise the readers share
the seconds. What is found lies in `tests/fuzz/findings/` then, where `readers_test.py` reads it
ever after; the corpus in `build/fuzz/` serves the next run. Prints a line for each reader, and ends
with status 1 if anything was found.
"""

import argparse
import io
import logging
import os
import re
import shutil
import sys
import tempfile
import warnings
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from tests import PROJECT_ROOT

CORPUS = PROJECT_ROOT / "build" / "fuzz"

SECONDS_A_FILE, MEGABYTES = 20, 4096
"""What reading a file of at most `LARGEST` bytes may take."""

LARGEST = 2**18

NUM_UNITS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def main() -> None:
    """Runs each reader in a process of its own, a copy of this one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("readers", nargs="*", help="(default: all)")
    parser.add_argument("--seconds", type=int, default=3600, help="in all (default: 3600)")
    parser.add_argument("--runs", type=int, help="files of each reader, in place of seconds")
    args = parser.parse_args()
    import atheris  # only this program needs it

    instrumented = atheris.instrument_imports(include=["elmo_scratch", "elmo_scratch_compat"])
    # It names each module.
    with redirect_stderr(io.StringIO()), instrumented:
        from tests.fuzz import targets
    readers = args.readers or [*targets.TARGETS]
    unknown = sorted({*readers} - {*targets.TARGETS})
    if unknown:
        told = ", ".join(targets.TARGETS)
        parser.error(f"expected readers among {told}, but got {', '.join(unknown)}")
    bound = f"-max_total_time={max(1, args.seconds // len(readers))}"
    if args.runs is not None:
        bound = f"-runs={args.runs}"
    findings = targets.FINDINGS
    are_fine = [
        _is_fine(atheris, name, targets.TARGETS[name], findings / name, bound) for name in readers
    ]
    sys.exit(0 if all(are_fine) else 1)


def _is_fine(atheris: Any, name: str, target: Any, findings: Path, bound: str) -> bool:
    """Fuzzes a reader, prints what was done, and returns whether nothing was found."""
    findings.mkdir(exist_ok=True)
    before = {*findings.iterdir()}
    # A `TemporaryDirectory` would go when the copy of this process ends, and the log with it.
    folder = Path(tempfile.mkdtemp())
    log = folder / "log"
    process = os.fork()
    if process == 0:
        # A corpus that an earlier run has grown would change the files of this one.
        corpus = folder / "corpus" if bound.startswith("-runs") else CORPUS / name
        _fuzz(atheris, target, folder, log, corpus, findings, bound)
    _, status = os.waitpid(process, 0)
    told = log.read_text(encoding="utf-8", errors="replace")
    shutil.rmtree(folder)
    count = NUM_UNITS.search(told)
    num_files = int(count[1]) if count else 0
    print(f"{name:<20} {num_files:>10,} files", flush=True)
    new = sorted({*findings.iterdir()} - before)
    for path in new:
        print(f"    {path.relative_to(PROJECT_ROOT)}", flush=True)
    if not any(findings.iterdir()):
        findings.rmdir()
    is_fine = status == 0 and not new
    if not is_fine:
        print("\n".join(f"    {line}" for line in told.splitlines()[-40:]), flush=True)
    return is_fine


def _fuzz(
    atheris: Any,
    target: Any,
    folder: Path,
    log: Path,
    corpus: Path,
    findings: Path,
    bound: str,
) -> None:
    """Fuzzes a reader in this process, which ends with it."""
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ["ELMO_SCRATCH_CACHE"] = str(folder / "cache")
    tempfile.tempdir = str(folder)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.prepare(folder / "read")):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = [
        bound,
        "-seed=1",
        f"-max_len={LARGEST}",
        f"-timeout={SECONDS_A_FILE}",
        f"-rss_limit_mb={MEGABYTES}",
        f"-artifact_prefix={findings}{os.sep}",
        "-print_final_stats=1",
    ]
    atheris.Setup(
        [sys.argv[0], *options, str(corpus)],
        lambda content: target.check(folder / "read", content),
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
