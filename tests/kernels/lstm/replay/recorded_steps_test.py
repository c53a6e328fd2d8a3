import torch

from elmo_scratch.kernels.lstm.cuda_graphs import (
    NUM_STEPS,
    StepRecorder,
    addresses_of,
    batch_tensors,
)
from elmo_scratch.modules import LstmState
from tests.gpu import each_device
from tests.kernels.lstm.random_run import (
    Incoming,
    back,
    on,
    random_gradients,
    random_run,
    reference,
)
from tests.kernels.lstm.replay.recording_test import replayed

ROWS = 8


@each_device
def test_it_records_whole_steps(device: str) -> None:
    run = on(device, random_run([ROWS] * NUM_STEPS, dropout=0.3))
    recorder, expected = StepRecorder.like(run, ROWS, stream=0), reference(run)
    ahead, there = (recorder.recorded(needs_grad) for needs_grad in (False, True))
    assert ahead.backward is None and there.backward is not None
    cells = torch.cat(list(expected.kept[::4]))
    for recorded, number in ((ahead, 2), (there, 5)):
        outputs, after, *kept = replayed(recorded.forward, batch_tensors(run))
        assert len(kept) == number - 2
        assert torch.allclose(outputs, expected.outputs, atol=1e-5)
        assert torch.allclose(after, cells, atol=1e-5)
    d_outputs = on(device, random_gradients(run).outputs)
    zeros = LstmState(*(torch.zeros_like(part) for part in run.state))
    given = [run.state.cell, after, *kept, d_outputs, *zeros, run.recurrent_dropout_mask]
    gradients = back(run, expected, Incoming(d_outputs, None))
    made = replayed(there.backward, given)
    for ours, theirs in zip(made, [*gradients[:2], *gradients.state], strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_an_address_is_a_place_and_a_layout() -> None:
    run = random_run([3])
    weight = run.weights.projection_weight

    def address(other: torch.Tensor) -> object:
        return addresses_of(run._replace(weights=run.weights._replace(projection_weight=other)))

    assert address(weight) == address(weight.detach())
    others = (weight, weight.t(), weight.clone(), weight[1:])
    assert len({address(other) for other in others}) == 4
