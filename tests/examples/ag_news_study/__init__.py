"""What tests of the study of examples/ag_news_study share."""

from types import ModuleType
from typing import Any, Dict, List

from tests import FIXTURES_ROOT, PROJECT_ROOT

STUDY = PROJECT_ROOT / "examples" / "ag_news_study"
TRAIN, DEV = (FIXTURES_ROOT / "news" / name for name in ("train.csv", "dev.csv"))


def trained(
    modules: Dict[str, ModuleType],
    settings: str,
    seed: int,
    accuracy: float,
    confusion: List[List[int]],
) -> Any:
    """One training of a row, by all scores and its accuracy after the last epoch."""
    scores = dict.fromkeys(modules["training"].SCORES, accuracy)
    classes, shares = ["dull", "fine"], [0.25, 0.75]
    return modules["training"].Training(
        settings, seed, scores, 60.0, classes, confusion, shares, accuracy - 0.005
    )
