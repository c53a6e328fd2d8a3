import re

import allennlp_models.classification  # noqa: F401  (blocks of the README configure its models)
import allennlp_models.tagging  # noqa: F401
import pytest
from _jsonnet import evaluate_snippet  # type: ignore[import-not-found]
from allennlp.common import Registrable

import elmo_scratch.registered  # noqa: F401  (all names that there are)
from tests import PROJECT_ROOT

README = (PROJECT_ROOT / "README.md").read_text(encoding="utf-8")
CONFIGS = re.findall(r"```jsonnet\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("config", CONFIGS)
def test_configs_name_what_there_is(config: str) -> None:
    known = {name for names in Registrable._registry.values() for name in names}
    found = evaluate_snippet("README.md", "{" + config + "}")
    assert set(re.findall(r'"type": "([^"]+)"', found)) <= known


def test_there_are_such_configs() -> None:
    assert len(CONFIGS) >= 7
