import pytest

from elmo_scratch.search import tasks
from tests.forked import ForkedAllennlp


@pytest.fixture
def forked_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The commands of a study run in copies of this process, which need no imports. Those of the AG
    News study run as processes of their own in the tutorial, which `.ci/run` follows.
    """
    monkeypatch.setattr(tasks, "ProcessGroup", ForkedAllennlp)
