import logging

import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import layer_cache
from elmo_scratch.embedders.layer_cache import MemoryStore


def test_it_keeps_as_much_as_its_share_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(layer_cache, "machine_memory", lambda: 100.0)
    store = MemoryStore(share=0.5)
    with caplog.at_level(logging.WARNING):
        for key in (b"a", b"b", b"c", b"d"):
            store.put({key: numpy.ones(5, dtype="float32")})  # 20 bytes
    assert [store.get(key) is not None for key in (b"a", b"b", b"c", b"d")] == [
        True,
        True,
        False,
        False,
    ]
    (warning,) = caplog.messages
    assert warning.startswith("The layers of 2 texts are in memory")


def test_it_keeps_nothing_where_others_have_left_hardly_any(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(layer_cache, "machine_memory", lambda: 1000.0)
    free = iter([100.0, 99.0])
    monkeypatch.setattr(layer_cache, "free_memory", lambda: next(free))
    store = MemoryStore()
    for key in (b"a", b"b"):
        store.put({key: numpy.ones(5, dtype="float32")})
    assert store.get(b"a") is not None and store.get(b"b") is None
    assert "and hardly any memory is left" in caplog.text


@pytest.mark.parametrize("share", [0.0, 1.1, float("nan")])
def test_a_share_that_is_none_is_an_error(share: float) -> None:
    with pytest.raises(ConfigurationError, match="above 0 and at most 1, but got"):
        MemoryStore(share=share)
