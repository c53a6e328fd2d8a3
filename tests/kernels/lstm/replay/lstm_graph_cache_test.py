import copy
import logging
import pickle
import threading
from collections import OrderedDict
from typing import Any, List, Optional, Type

import pytest
import torch

from elmo_scratch.kernels.lstm import cuda_graphs
from elmo_scratch.kernels.lstm.cuda_graphs import LstmGraphCache, RecordedSteps
from elmo_scratch.kernels.lstm.run import LstmRun, LstmWeights
from tests.gpu import needs_gpu
from tests.kernels.lstm.random_run import CELLS, of_sentences, on, random_run


def recorded(
    recordings: LstmGraphCache, run: LstmRun, needs_grad: bool = True
) -> Optional[RecordedSteps]:
    return recordings.of(run, needs_grad)


@pytest.fixture
def run(record_everywhere: None) -> LstmRun:
    return random_run([5, 4, 4, 1])


def test_recordings_are_for_gpus() -> None:
    assert recorded(LstmGraphCache(), random_run([5, 4])) is None


@needs_gpu
def test_on_a_gpu_there_are_some() -> None:
    assert recorded(LstmGraphCache(), on("cuda", random_run([5, 4]))) is not None


def test_what_fits_is_not_recorded_again(run: LstmRun) -> None:
    recordings = LstmGraphCache()
    first = recorded(recordings, run)
    assert first is not None
    run.weights.recurrent_weight.mul_(2.0)
    assert recorded(recordings, run) is first
    fewer = of_sentences(run, 0, 2)
    assert recorded(recordings, fewer) is first


def test_what_does_not_fit_is(run: LstmRun) -> None:
    recordings = LstmGraphCache()
    first = recorded(recordings, run)
    others: List[LstmRun] = [
        run._replace(dtype=torch.bfloat16),
        run._replace(clips=run.clips._replace(cell=None)),
        run._replace(recurrent_dropout_mask=torch.ones(5, run.state.hidden.size(1))),
        random_run([33, 2])._replace(weights=run.weights),
    ]
    for other in others:
        assert recorded(recordings, other) not in (None, first)
    ahead = recorded(recordings, run, needs_grad=False)
    assert ahead is not None and ahead.backward is None
    assert recorded(recordings, run) is first


def test_what_is_none_of_its_is_left_alone(run: LstmRun, monkeypatch: pytest.MonkeyPatch) -> None:
    recordings = LstmGraphCache()
    assert recorded(recordings, random_run([257, 1])) is None
    with monkeypatch.context() as patch:
        patch.setattr(cuda_graphs, "MAX_GATES", 8 * 4 * CELLS - 1)
        assert recorded(recordings, run) is None
    assert recorded(recordings, run._replace(batch_sizes=[])) is None
    assert recorded(recordings, run._replace(inputs=run.inputs.double())) is None
    with torch.autocast("cpu"):
        assert recorded(recordings, run) is None


def test_the_last_ones_are_kept(run: LstmRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_graphs, "MAX_RECORDINGS", 2)
    recordings = LstmGraphCache()
    runs = {rows: random_run([rows])._replace(weights=run.weights) for rows in (1, 33, 65)}
    many = [recorded(recordings, runs[rows]) for rows in (1, 33, 1, 65)]
    assert many[0] is many[2]
    assert recorded(recordings, runs[65]) is many[3]
    assert len(recordings._kept) == 2
    recordings.forget()
    assert not recordings._kept


def test_another_thread_lets_go_of_them_when_one_is_found(run: LstmRun) -> None:
    recordings = LstmGraphCache()
    first = recorded(recordings, run)
    thread = threading.Thread(target=recordings.forget)

    class Disturbed(OrderedDict):
        def get(self, *arguments: Any) -> Any:
            thread.start()
            thread.join(timeout=0.2)
            return super().get(*arguments)

    recordings._kept = Disturbed(recordings._kept)
    assert recorded(recordings, run) is first
    thread.join()
    assert not recordings._kept


def test_products_that_are_rounded_otherwise_are_recorded_anew(run: LstmRun) -> None:
    recordings, settings = LstmGraphCache(), torch.backends.cuda.matmul
    settings.allow_tf32 = False
    first = recorded(recordings, run)
    try:
        settings.allow_tf32 = True
        assert recorded(recordings, run) not in (None, first)
    finally:
        settings.allow_tf32 = False
    assert recorded(recordings, run) is first


def elsewhere(run: LstmRun) -> LstmRun:
    """With weights at another place, where they stay."""
    return run._replace(weights=LstmWeights(*(weight.clone() for weight in run.weights)))


def test_of_weights_that_lay_elsewhere_nothing_is_kept(run: LstmRun) -> None:
    recordings, other = LstmGraphCache(), elsewhere(run)
    assert recorded(recordings, run) is not None
    found = recorded(recordings, other)
    assert found is not None and list(recordings._kept.values()) == [found]


def test_weights_that_never_stay_end_it(
    run: LstmRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cuda_graphs, "MAX_MOVES", 2)
    recordings, runs = LstmGraphCache(), [elsewhere(run) for _ in range(5)]
    with caplog.at_level(logging.WARNING):
        found = [recorded(recordings, other) is not None for other in runs]
    assert found == [True, True, False, False, False]
    assert [record.getMessage() for record in caplog.records] == [
        "The steps of an LSTM are not replayed by CUDA graphs from now on, and take longer: its "
        "weights don't stay where they are"
    ]


@pytest.mark.parametrize("error", [RuntimeError, torch.cuda.OutOfMemoryError])
def test_what_cannot_be_recorded_goes_another_way(
    error: Type[RuntimeError],
    run: LstmRun,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: Any) -> None:
        raise error("there is not enough of it\nin detail")

    recordings = LstmGraphCache()
    assert recorded(recordings, run) is not None
    monkeypatch.setattr(cuda_graphs, "Recording", fail)
    with caplog.at_level(logging.WARNING):
        assert recorded(recordings, random_run([40])) is None
    assert recorded(recordings, run) is None and not recordings._kept
    (record,) = caplog.records
    assert record.getMessage().endswith("take longer: there is not enough of it")


def test_copies_start_empty(run: LstmRun) -> None:
    recordings = LstmGraphCache()
    recorded(recordings, run)
    for other in (copy.deepcopy(recordings), pickle.loads(pickle.dumps(recordings))):
        assert isinstance(other, LstmGraphCache) and not other._kept
