"""All that a config can name is found, in whichever way a program comes to look for it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import pytest
from allennlp.commands import Subcommand
from allennlp.common import Registrable

import elmo_scratch.registered  # noqa: F401  (all names that configs know)
from tests import FIXTURES_ROOT

SHOW = """
import json
from allennlp.common import Registrable

# The registries themselves: asking AllenNLP would be a look-up.
names = {}
for base, known in Registrable._registry.items():
    for name, (registered, _) in known.items():
        if registered.__module__.startswith("elmo_scratch.") and base.__name__ != "Subcommand":
            names.setdefault(f"{base.__module__}.{base.__name__}", []).append(name)
print(json.dumps({base: sorted(known) for base, known in names.items()}))
"""


RUN = """
import json, os, runpy, sys

# Other people's libraries take most of the time, and are not what is asked about.
import cached_path, fairscale.nn, h5py, lmdb, spacy, tensorboardX, torch

for name in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        os.chdir(name)
        for file, stream in (("output", sys.stdout), ("errors", sys.stderr)):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), stream.fileno())
        sys.path[0] = os.getcwd()
        runpy.run_path("program.py", run_name="__main__")
        sys.stdout.flush()
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(f"{name}: " + open(f"{name}/errors").read())
"""
"""Runs the program of each folder in a copy of an interpreter that has not imported the package."""


def outputs_of(programs: Dict[str, str], folder: Path) -> Dict[str, str]:
    """The last line that each program prints, in a process and a folder of its own."""
    for name, program in programs.items():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "program.py").write_text(program, encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(list(programs))],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    outputs = {name: (folder / name / "output").read_text(encoding="utf-8") for name in programs}
    return {name: output.splitlines()[-1] for name, output in outputs.items()}


@pytest.fixture(scope="module")
def all_names() -> Dict[str, List[str]]:
    """Those of configs that this process knows, which has imported everything."""
    names: Dict[str, List[str]] = {}
    for base, known in Registrable._registry.items():
        for name, (registered, _) in known.items():
            if registered.__module__.startswith("elmo_scratch.") and base is not Subcommand:
                names.setdefault(f"{base.__module__}.{base.__name__}", []).append(name)
    return {base: sorted(known) for base, known in names.items()}


WAYS = {
    "itself": "import elmo_scratch.registered",
    # What `--include-package elmo_scratch` does.
    "include": "from allennlp.common.util import import_module_and_submodules\n"
    "import_module_and_submodules('elmo_scratch')",
    # What every command does first; the other plugins take long.
    "plugin": "from allennlp.common import plugins\n"
    "plugins.DEFAULT_PLUGINS = ('elmo_scratch',)\n"
    "plugins.import_plugins()\n"
    "from allennlp.data import DatasetReader\n"
    "DatasetReader.list_available()",
    # In this order nothing tells the package that it was imported.
    "by_name": "from allennlp.data import DatasetReader\n"
    "import elmo_scratch\n"
    "assert DatasetReader.by_name('ag_news').__name__ == 'AgNewsReader'",
    "from_params": "import elmo_scratch\n"
    "from allennlp.common import FromParams, Params\n"
    "from allennlp.data import Tokenizer\n"
    "class Splitter(FromParams):\n"
    "    def __init__(self, tokenizer: Tokenizer) -> None:\n"
    "        self.tokenizer = tokenizer\n"
    "splitter = Splitter.from_params(Params({'tokenizer': 'spacy_blank'}))\n"
    "assert len(splitter.tokenizer.tokenize('Two words')) == 2",
}
"""Programs in which each name that there is has to be found."""

ANSWERS = {
    # What `.allennlp_plugins` does, and then every command.
    "subcommands": (
        "import sys, elmo_scratch\n"
        "from allennlp.commands import Subcommand\n"
        "assert 'elmo' in Subcommand.list_available()\n"
        "print('elmo_scratch.registered' in sys.modules)",
        "False",
    ),
    "archive": (
        "import elmo_scratch\n"
        "from allennlp.models import Model\n"
        "print(type(Model.from_archive({archive!r})).__name__)",
        "Classifier",
    ),
    "unused": (
        "import sys\n"
        "from allennlp.data import DatasetReader, Vocabulary\n"
        "DatasetReader.list_available(), Vocabulary.by_name('from_files')\n"
        "print('elmo_scratch' in sys.modules)",
        "False",
    ),
    "own_names": (
        "import sys\n"
        "from elmo_scratch import LayerMix, TokenEncoder\n"
        "assert {{'frozen', 'function', 'trainable'}} <= set(LayerMix.list_available())\n"
        "assert TokenEncoder.by_name('char_cnn')\n"
        "print('elmo_scratch.registered' in sys.modules)",
        "False",
    ),
}
"""Other programs, and what they print."""


@pytest.fixture(scope="module")
def outputs(classifier_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Dict[str, str]:
    """What all programs print, one of them beside a stranger's modules of the same names."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("data", "models", "training"):
        module = folder / "itself" / name / "__init__.py"
        module.parent.mkdir(parents=True)
        module.write_text("raise SystemExit('imported')\n")
    programs = {name: program + SHOW for name, program in WAYS.items()}
    for name, (program, _) in ANSWERS.items():
        programs[name] = program.format(archive=str(classifier_archive))
    return outputs_of(programs, folder)


@pytest.mark.parametrize("way", WAYS)
def test_all_names_are_found(
    way: str, outputs: Dict[str, str], all_names: Dict[str, List[str]]
) -> None:
    assert json.loads(outputs[way]) == all_names


@pytest.mark.parametrize("name", ANSWERS)
def test_no_more_is_imported_than_is_needed(name: str, outputs: Dict[str, str]) -> None:
    assert outputs[name] == ANSWERS[name][1]


@pytest.mark.exhaustive
def test_objects_reach_processes_that_start_anew(tmp_path: Path) -> None:
    program = (
        "import multiprocessing\n"
        "import elmo_scratch\n"
        "from elmo_scratch.data import AgNewsReader, CharacterIndexer\n"
        "def count(reader, path):\n"
        "    return len(list(reader.read(path)))\n"
        "if __name__ == '__main__':\n"
        "    reader = AgNewsReader(token_indexers={'elmo': CharacterIndexer()})\n"
        f"    path = {str(FIXTURES_ROOT / 'news' / 'dev.csv')!r}\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.apply(count, (reader, path)) == count(reader, path) > 0)"
    )
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"
