"""Which tests run which lines of the package, or import which files."""

import ast
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple
from xml.etree import ElementTree

import coverage

from benchmarks.checkout_copy import Copy
from benchmarks.coverage_contexts import TEST_FILE
from benchmarks.mutable_code import PACKAGES, Mutation, python_files, read_text

DATA = "coverage"
"""The file that coverage writes, and with endings of its own those of each process."""


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


class Imports:
    """
    Which file imports which.

    # Parameters

    root : `Path`
        A checkout.
    """

    def __init__(self, root: Path) -> None:
        files = python_files(root, (*PACKAGES, "tests"))
        self._files = {
            file.removesuffix(".py").removesuffix("/__init__").replace("/", "."): file
            for file in files
        }
        self._imported = {file: list(imported_names(read_text(root / file))) for file in files}

    def tests_that_reach(self, file: str) -> Set[str]:
        """The test files from which imports lead to a file."""
        tests = (name for name in self._imported if name.endswith("_test.py"))
        return {test for test in tests if file in self._reached_from(test)}

    def _reached_from(self, file: str) -> Set[str]:
        """All to which imports lead, directly or by other files."""
        reached: Set[str] = set()
        ahead = [file]
        while ahead:
            for module, name in self._imported[ahead.pop()]:
                for other in set(self._origins(module, name)) - reached:
                    reached.add(other)
                    # What an `__init__.py` hands on is followed name by name.
                    if not other.endswith("__init__.py"):
                        ahead.append(other)
        return reached

    def _origins(self, module: str, name: str) -> Iterator[str]:
        """The files from which a name comes that is imported from a module."""
        for file in (self._files.get(f"{module}.{name}"), self._files.get(module)):
            if file is not None:
                yield file
                if file.endswith("__init__.py"):
                    for source, handed_on in self._imported[file]:
                        if handed_on == name and source != module:
                            yield from self._origins(source, name)


def imported_names(text: str) -> Iterator[Tuple[str, str]]:
    """The modules and the names that are imported anywhere."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((node.module, alias.name) for alias in node.names)


class CoverageMap(NamedTuple):
    """
    Which test files run which lines.

    # Parameters

    seconds : `Dict[str, float]`
        How long each test file took.
    slowest : `Dict[str, float]`
        How long the slowest test of each file took.
    failed : `List[str]`
        The tests that failed.
    sources : `Dict[str, str]`
        A hash of each file of the package.
    lines : `Dict[str, Dict[str, List[int]]]`
        For each file of the package and each of its lines, places in `seconds`.
    """

    seconds: Dict[str, float]
    slowest: Dict[str, float]
    failed: List[str]
    sources: Dict[str, str]
    lines: Dict[str, Dict[str, List[int]]]

    @classmethod
    def of_run(cls, copy: Copy, arguments: Sequence[str]) -> "CoverageMap":
        """Runs the tests that these arguments of pytest choose."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            settings, report = folder / "settings.ini", folder / "report.xml"
            settings.write_text(
                "[run]\n"
                f"source = {','.join(str(copy.folder / package) for package in PACKAGES)}\n"
                f"data_file = {folder / DATA}\n"
                f"context = ${{{TEST_FILE}-}}\n"
                "parallel = true\npatch = _exit, fork\n"
            )
            options = ["-p", "benchmarks.coverage_contexts", f"--junitxml={report}"]
            run = copy.run_tests(
                [*options, "-o", "junit_family=xunit1", *arguments],
                # Python 3.14 would measure in a way that knows no contexts.
                COVERAGE_CORE="ctrace",
                COVERAGE_PROCESS_START=str(settings),
            )
            seconds, slowest = times(report) if report.is_file() else ({}, {})
            if not seconds:
                sys.exit(f"the tests don't run:\n{run.output[-3000:]}")
            files = python_files(copy.folder, PACKAGES)
            sources = {file: hash_of(read_text(copy.folder / file)) for file in files}
            lines = lines_by_test_file(folder, copy.folder, list(seconds))
        # Coverage, and several tests at once, may be too much for some.
        failed = copy.run_tests(run.failed).failed if run.failed else []
        return cls(seconds, slowest, failed, sources, lines)

    @classmethod
    def read(cls, path: Path) -> "CoverageMap":
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self._asdict()) + "\n", encoding="utf-8")

    def selected(self, mutation: Mutation, text: str, imports: Imports) -> List[str]:
        """The test files that can notice a mutation of a file's text, the fastest first."""
        found: Set[str] = set()
        if hash_of(text) == self.sources.get(mutation.file) and not mutation.runs_at_import:
            found = self._that_run(mutation, mutation.first_line, mutation.last_line)
        if not found:
            found = self._that_run(mutation, 0, sys.maxsize)
            found |= imports.tests_that_reach(mutation.file) & set(self.seconds)
        return sorted(found, key=lambda name: (self.seconds[name], name))

    def _that_run(self, mutation: Mutation, first: int, last: int) -> Set[str]:
        """The test files that run one of these lines."""
        names = list(self.seconds)
        known = self.lines.get(mutation.file, {})
        return {
            names[place]
            for line, places in known.items()
            if first <= int(line) <= last
            for place in places
        }


def times(report: Path) -> Tuple[Dict[str, float], Dict[str, float]]:
    """The seconds of each test file, and of its slowest test, by a report of pytest."""
    seconds: Dict[str, float] = {}
    slowest: Dict[str, float] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        if (file := case.get("file")) is not None:
            taken = float(case.get("time", 0))
            seconds[file] = seconds.get(file, 0.0) + taken
            slowest[file] = max(slowest.get(file, 0.0), taken)
    return seconds, slowest


def lines_by_test_file(
    data_folder: Path, root: Path, tests: List[str]
) -> Dict[str, Dict[str, List[int]]]:
    """For each file and line that a test runs the places of its file, by what coverage measured."""
    measured = coverage.Coverage(data_file=str(data_folder / DATA), config_file=False)
    measured.combine([str(data_folder)])
    data = measured.get_data()
    place_of = {test: place for place, test in enumerate(tests)}
    lines: Dict[str, Dict[str, List[int]]] = {}
    for path in data.measured_files():
        file = Path(path).relative_to(root).as_posix()
        for line, contexts in data.contexts_by_lineno(path).items():
            # In a process that a test has started, tests that run there have theirs behind its.
            names = {name for context in contexts for name in context.split("|")}
            places = sorted(place_of[name] for name in names if name in place_of)
            if places:
                lines.setdefault(file, {})[str(line)] = places
    return lines
