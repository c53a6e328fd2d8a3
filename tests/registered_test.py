"""All that a config can name is found, in whichever way a program comes to look for it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import pytest
from allennlp.common import Registrable

import elmo_scratch.registered  # noqa: F401  (all names that there are)
from tests import FIXTURES_ROOT

SHOW = """
import json
from allennlp.common import Registrable

# The registries themselves: asking AllenNLP would be a look-up.
names = {}
for base, known in Registrable._registry.items():
    for name, (registered, _) in known.items():
        if registered.__module__.startswith("elmo_scratch."):
            names.setdefault(f"{base.__module__}.{base.__name__}", []).append(name)
print(json.dumps({base: sorted(known) for base, known in names.items()}))
"""


def output_of(program: str, folder: Path) -> str:
    """The last line that a program in a process of its own prints."""
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, path.name], cwd=folder, capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()[-1]


def names_after(program: str, folder: Path) -> Dict[str, List[str]]:
    """The names of the package that are registered when a program has run."""
    return json.loads(output_of(program + SHOW, folder))


@pytest.fixture(scope="module")
def all_names() -> Dict[str, List[str]]:
    """Those of this process, which has imported everything."""
    names: Dict[str, List[str]] = {}
    for base, known in Registrable._registry.items():
        for name, (registered, _) in known.items():
            if registered.__module__.startswith("elmo_scratch."):
                names.setdefault(f"{base.__module__}.{base.__name__}", []).append(name)
    return {base: sorted(known) for base, known in names.items()}


@pytest.mark.parametrize(
    "program",
    [
        "import elmo_scratch.registered",
        # What `--include-package elmo_scratch` does.
        "from allennlp.common.util import import_module_and_submodules\n"
        "import_module_and_submodules('elmo_scratch')",
        # What every command does first; the other plugins take long.
        "from allennlp.common import plugins\n"
        "plugins.DEFAULT_PLUGINS = ('elmo_scratch',)\n"
        "plugins.import_plugins()",
        # What `.allennlp_plugins` does, and then every command.
        "import elmo_scratch\n"
        "from allennlp.commands import Subcommand\n"
        "assert 'elmo' in Subcommand.list_available()",
        # In this order nothing tells the package that it was imported.
        "from allennlp.data import DatasetReader\n"
        "import elmo_scratch\n"
        "assert DatasetReader.by_name('ag_news').__name__ == 'AgNewsReader'",
        "import elmo_scratch\n"
        "from allennlp.common import FromParams, Params\n"
        "from allennlp.data import Tokenizer\n"
        "class Splitter(FromParams):\n"
        "    def __init__(self, tokenizer: Tokenizer) -> None:\n"
        "        self.tokenizer = tokenizer\n"
        "splitter = Splitter.from_params(Params({'tokenizer': 'spacy_blank'}))\n"
        "assert len(splitter.tokenizer.tokenize('Two words')) == 2",
    ],
    ids=["itself", "include", "plugin", "named plugin", "by_name", "from_params"],
)
def test_all_names_are_found(program: str, all_names: Dict[str, List[str]], tmp_path: Path) -> None:
    assert names_after(program, tmp_path) == all_names


def test_an_archive_loads_in_a_script(classifier_archive: Path, tmp_path: Path) -> None:
    program = (
        "import elmo_scratch\n"
        "from allennlp.models import Model\n"
        f"print(type(Model.from_archive({str(classifier_archive)!r})).__name__)"
    )
    assert output_of(program, tmp_path) == "Classifier"


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
    assert output_of(program, tmp_path) == "True"


def test_who_does_not_use_the_package_does_not_import_it(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from allennlp.data import DatasetReader, Vocabulary\n"
        "DatasetReader.list_available(), Vocabulary.by_name('from_files')\n"
        "print('elmo_scratch' in sys.modules)"
    )
    assert output_of(program, tmp_path) == "False"


def test_the_packages_own_names_need_no_more(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from elmo_scratch import LayerMix, TokenEncoder\n"
        "assert {'frozen', 'function', 'trainable'} <= set(LayerMix.list_available())\n"
        "assert TokenEncoder.by_name('char_cnn')\n"
        "print('elmo_scratch.registered' in sys.modules)"
    )
    assert output_of(program, tmp_path) == "False"


def test_a_strangers_modules_of_the_same_names_are_left_alone(tmp_path: Path) -> None:
    for name in ("data", "models", "training"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('imported')\n")
    assert names_after("import elmo_scratch.registered", tmp_path)
