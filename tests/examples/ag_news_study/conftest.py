from types import ModuleType
from typing import Dict

import pytest

from tests.examples.ag_news_study import STUDY
from tests.examples.run_program import modules_of


@pytest.fixture(scope="module")
def modules() -> Dict[str, ModuleType]:
    """The study's modules by name."""
    return modules_of(STUDY)
