"""Programs of examples/, run in the process of the tests: their imports cost seconds."""

import importlib
import io
import runpy
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Dict, NamedTuple
from unittest.mock import patch

from tests.tiny_training import logging_as_before


class Ended(NamedTuple):
    """How a program ended."""

    status: int
    output: str
    errors: str


def run_program(program: Path, *arguments: str) -> Ended:
    """As `python program arguments` in a process of its own; the program's modules go with it."""
    output, errors, status = io.StringIO(), io.StringIO(), 0
    before = set(sys.modules)
    argv = [str(program), *arguments]
    # Its neighbours are found as they are by `python program`; a folder adds itself.
    beside = [str(program.parent)] if program.is_file() else []
    with patch.object(sys, "argv", argv), patch.object(sys, "path", [*beside, *sys.path]):
        with redirect_stdout(output), redirect_stderr(errors), logging_as_before():
            try:
                runpy.run_path(str(program), run_name="__main__")
            except SystemExit as stop:
                status = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
                if isinstance(stop.code, str):
                    print(stop.code, file=errors)
    for name in set(sys.modules) - before:
        file = str(getattr(sys.modules[name], "__file__", ""))
        if file.startswith(tuple(f"{folder}/" for folder in [program, *beside])):
            del sys.modules[name]
    return Ended(status, output.getvalue(), errors.getvalue())


def modules_of(program: Path) -> Dict[str, ModuleType]:
    """Imports the modules of a program that is a folder, as `python program` does; by name."""
    with patch.object(sys, "path", [str(program), *sys.path]):
        names = [file.stem for file in program.glob("*.py") if file.stem != "__main__"]
        return {name: importlib.import_module(name) for name in names}
