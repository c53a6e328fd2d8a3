from types import ModuleType
from typing import Any, Dict, List

import pytest

from tests.examples.ag_news_study import DEV, STUDY, TRAIN
from tests.examples.run_program import modules_of


@pytest.fixture(scope="module")
def modules() -> Dict[str, ModuleType]:
    """The study's modules by name."""
    return modules_of(STUDY)


@pytest.fixture(scope="module")
def one_seed(modules: Dict[str, ModuleType], tmp_path_factory: pytest.TempPathFactory) -> List[Any]:
    """What a study of one seed trains: its configs take seconds to read. Not to be changed."""
    return modules["plan"].planned_tasks(TRAIN, DEV, tmp_path_factory.mktemp("study"), [0], {})
