import shutil
from pathlib import Path
from types import ModuleType
from typing import Dict

import pytest

from tests import FIXTURES_ROOT
from tests.examples.run_program import modules_of
from tests.examples.task_gains import STUDY


@pytest.fixture(scope="module")
def modules() -> Dict[str, ModuleType]:
    """The study's modules by name."""
    return modules_of(STUDY)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fixtures under the names of the published files. Not to be changed."""
    folder = tmp_path_factory.mktemp("data")
    for name, fixture in {
        "sst/train.txt": "sst/train.txt",
        "sst/dev.txt": "sst/dev.txt",
        "conll2003/eng.train": "conll2003/train.txt",
        "conll2003/eng.testa": "conll2003/dev.txt",
        "conll2000/train.txt": "conll2000/train.txt",
        "ud_ewt/en_ewt-ud-train.conllu": "ud/train.conllu",
        "ud_ewt/en_ewt-ud-dev.conllu": "ud/dev.conllu",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FIXTURES_ROOT / "tasks" / fixture, folder / name)
    return folder
