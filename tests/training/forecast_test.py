from types import SimpleNamespace
from typing import Any, List

import pytest

from elmo_scratch.training import callbacks
from elmo_scratch.training.callbacks import Forecast, in_words


@pytest.mark.parametrize(
    "seconds, words",
    [
        (0.2, "about 1 second"),
        (40, "about 40 seconds"),
        (119, "about 2.0 minutes"),
        (720, "about 12 minutes"),
        (9000, "about 2.5 hours"),
        (200_000, "about 2.3 days"),
    ],
)
def test_a_time_is_said_as_people_do(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_it_tells_twice_how_long_a_training_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    told: List[str] = []
    now = iter(range(1000, 2000))
    monkeypatch.setattr(callbacks, "tell", told.append)
    monkeypatch.setattr(callbacks, "time", SimpleNamespace(monotonic=lambda: next(now)))
    trainer: Any = SimpleNamespace(
        data_loader=[None] * 100, _num_epochs=5, _num_gradient_accumulation_steps=2
    )
    callback = Forecast("")
    callback.on_start(trainer)
    for batch in range(1, 51):
        for is_training, is_primary in ((True, True), (False, True), (True, False)):
            callback.on_batch(trainer, [], [], {}, 0, batch, is_training, is_primary)
    # Of a second each 24 are left in this epoch after the first 26, and 200 in the others.
    assert told == ["about 3.7 minutes to go, by the first 25 batches"]
    for epoch in range(5):
        callback.on_epoch(trainer, {}, epoch)
    assert told[1:] == ["about 108 seconds to go, by the first epoch"]
