import importlib
import sys
from types import ModuleType
from typing import Dict

import pytest

from tests.examples.ag_news_study import STUDY


@pytest.fixture(scope="module")
def modules() -> Dict[str, ModuleType]:
    """Those of the study by name, as `python examples/ag_news_study` imports them."""
    sys.path.insert(0, str(STUDY))
    try:
        names = [file.stem for file in STUDY.glob("*.py") if file.stem != "__main__"]
        return {name: importlib.import_module(name) for name in names}
    finally:
        sys.path.remove(str(STUDY))
