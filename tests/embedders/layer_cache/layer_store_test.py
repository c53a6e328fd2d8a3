from pathlib import Path
from typing import Dict

import numpy
import pytest
from allennlp.common import Params

from elmo_scratch.embedders.layer_cache import FileStore, LayerStore, MemoryStore


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> LayerStore:
    settings: Dict[str, object] = {"type": request.param}
    if request.param == "file":
        settings["path"] = str(tmp_path / "folder" / "layers.lmdb")
    return LayerStore.from_params(Params(settings))


def test_what_was_put_is_got(store: LayerStore) -> None:
    layers = numpy.arange(6, dtype="float32").reshape(1, 2, 3)
    assert store.get(b"one") is None
    store.put({b"one": layers, b"two": 2 * layers})
    store.put({b"three": 3 * layers})
    for factor, key in enumerate([b"one", b"two", b"three"], start=1):
        found = store.get(key)
        assert found is not None and found.dtype == numpy.float32
        assert numpy.array_equal(found, factor * layers.ravel())
    assert store.get(b"four") is None


def test_stores_are_built_by_name() -> None:
    assert type(LayerStore.from_params(Params({"type": "memory"}))) is MemoryStore
    assert type(LayerStore.from_params(Params({"type": "file", "path": "x"}))) is FileStore
