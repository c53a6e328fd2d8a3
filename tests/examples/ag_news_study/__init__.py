"""What tests of the study of examples/ag_news_study share."""

from tests import FIXTURES_ROOT, PROJECT_ROOT

STUDY = PROJECT_ROOT / "examples" / "ag_news_study"
TRAIN, DEV = (FIXTURES_ROOT / "news" / name for name in ("train.csv", "dev.csv"))
