import copy

import pytest
import torch
from allennlp.common import Lazy, Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.modules.softmaxes import (
    AdaptiveSoftmax,
    FullSoftmax,
    OutputSoftmax,
    SampledSoftmax,
    ScoredWords,
)
from elmo_scratch.scoring.scores import likely_words

WORDS, DIM = 64, 32


def test_softmaxes_are_built_by_name() -> None:
    softmax = Lazy(OutputSoftmax, Params({"type": "full"})).construct(num_words=11, dim=3)
    assert isinstance(softmax, FullSoftmax)
    assert softmax.weight.shape == (11, 3)


every_kind = pytest.mark.parametrize(
    "softmax",
    [
        AdaptiveSoftmax(num_words=WORDS, dim=DIM),
        FullSoftmax(num_words=WORDS, dim=DIM),
        SampledSoftmax(num_words=WORDS, dim=DIM, num_samples=8, sparse=False),
    ],
    ids=lambda softmax: type(softmax).__name__,
)


@every_kind
def test_only_in_training_products_run_in_less_precision(softmax: OutputSoftmax) -> None:
    states, targets = torch.randn(WORDS, DIM), torch.arange(WORDS)

    def losses(is_training: bool, matmul_dtype: str) -> torch.Tensor:
        MixedPrecision.set_everywhere(softmax, matmul_dtype)
        torch.manual_seed(13)
        # A copy, for each draws samples of its own at each step.
        return copy.deepcopy(softmax).train(is_training)(states, targets).losses

    assert torch.equal(losses(False, "bfloat16"), losses(False, "float32"))
    assert not torch.equal(losses(True, "bfloat16"), losses(True, "float32"))


@every_kind
def test_the_distribution_is_the_one_that_is_measured(softmax: OutputSoftmax) -> None:
    softmax = copy.deepcopy(softmax).eval()
    states = torch.randn(1, DIM)
    with torch.no_grad():
        found = softmax.log_probabilities(states)
        # Padding, id 0, is no target.
        losses = softmax(states.expand(WORDS - 1, DIM), torch.arange(1, WORDS)).losses
    assert found.shape == (1, WORDS)
    assert torch.allclose(found[0, 1:], -losses, atol=1e-5)
    assert found.exp().sum().item() == pytest.approx(1, abs=1e-5)


def test_a_softmax_of_another_package_may_have_no_distribution() -> None:
    class Measuring(OutputSoftmax):
        def forward(self, states: torch.Tensor, targets: torch.Tensor) -> ScoredWords:
            raise AssertionError

    states = torch.zeros(1, DIM)
    with pytest.raises(ConfigurationError, match="Measuring lists no likely words.*Leave --top"):
        likely_words(Measuring(), states, states, 1, num_words=WORDS, excluded=(0,))
