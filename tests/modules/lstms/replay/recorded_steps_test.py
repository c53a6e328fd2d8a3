import torch

from elmo_scratch.modules import LstmState
from elmo_scratch.modules.lstms.replay.recorded_steps import NUM_STEPS, StepRecorder, address_of
from elmo_scratch.modules.lstms.steps import LstmProducts, run_steps
from tests.gpu import each_device
from tests.modules.lstms.random_run import random_run
from tests.modules.lstms.replay.recording_test import replayed

ROWS = 8


@each_device
def test_it_records_whole_steps(device: str) -> None:
    run = random_run([ROWS] * NUM_STEPS, dropout=0.3).to(device)
    assert run.output_scale is not None
    tensors = [run.inputs, *run.state, run.bias, run.output_scale]
    recorder = StepRecorder(run.weights, run.dtype, ROWS, run.clips, stream=0)
    products = LstmProducts.of(run.weights, run.dtype)
    expected = run_steps(products, *run[2:8], keeps_steps=True)
    ahead, back = (recorder.recorded(tensors, goes_back) for goes_back in (False, True))
    assert ahead.backward is None and back.backward is not None
    cells = torch.cat([step.opened.cell for step in expected.steps])
    for recorded, number in ((ahead, 2), (back, 5)):
        outputs, after, *kept = replayed(recorded.forward, tensors)
        assert len(kept) == number - 2
        assert torch.allclose(outputs, expected.outputs, atol=1e-5)
        assert torch.allclose(after, cells, atol=1e-5)
    given = [run.state.cell, after, *kept, run.output_gradients]
    zeros = LstmState(*(torch.zeros_like(part) for part in run.state))
    made = replayed(back.backward, [*given, *zeros, run.output_scale])
    stepwise = run._replace(state_gradients=None)
    gradients = stepwise.back(stepwise.stepwise())
    for ours, theirs in zip(made, [*gradients[:2], *gradients.state], strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_an_address_is_a_place_and_a_layout() -> None:
    weight = torch.randn(3, 4)
    assert address_of(weight) == address_of(weight.detach())
    assert (
        len({address_of(other) for other in (weight, weight.t(), weight.clone(), weight[1:])}) == 4
    )
