import json
from pathlib import Path

import pytest

from tests.search.stub_training import STUB


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the stub trains, which takes the place of AllenNLP."""
    monkeypatch.setattr("elmo_scratch.search.search.ALLENNLP", STUB)
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"x": 0.5, "epochs": 4}), encoding="utf-8")
    return file
