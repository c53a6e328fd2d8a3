import copy

import pytest
import torch
from allennlp.common import Lazy, Params

from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.modules.softmaxes import (
    AdaptiveSoftmax,
    FullSoftmax,
    OutputSoftmax,
    SampledSoftmax,
)

WORDS, DIM = 64, 32


def test_softmaxes_are_built_by_name() -> None:
    softmax = Lazy(OutputSoftmax, Params({"type": "full"})).construct(num_words=11, dim=3)
    assert isinstance(softmax, FullSoftmax)
    assert softmax.weight.shape == (11, 3)


@pytest.mark.parametrize(
    "softmax",
    [
        AdaptiveSoftmax(num_words=WORDS, dim=DIM),
        FullSoftmax(num_words=WORDS, dim=DIM),
        SampledSoftmax(num_words=WORDS, dim=DIM, num_samples=8, sparse=False),
    ],
    ids=lambda softmax: type(softmax).__name__,
)
def test_only_in_training_products_run_in_less_precision(softmax: OutputSoftmax) -> None:
    states, targets = torch.randn(WORDS, DIM), torch.arange(WORDS)

    def losses(is_training: bool, matmul_dtype: str) -> torch.Tensor:
        MixedPrecision.set_everywhere(softmax, matmul_dtype)
        torch.manual_seed(13)
        # A copy, for each draws samples of its own at each step.
        return copy.deepcopy(softmax).train(is_training)(states, targets).losses

    assert torch.equal(losses(False, "bfloat16"), losses(False, "float32"))
    assert not torch.equal(losses(True, "bfloat16"), losses(True, "float32"))
