import pytest
from allennlp.common import Lazy, Params

from elmo_scratch.modules.softmaxes import FullSoftmax, OutputSoftmax


def test_it_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        OutputSoftmax()  # type: ignore[abstract]


def test_softmaxes_are_built_by_name() -> None:
    softmax = Lazy(OutputSoftmax, Params({"type": "full"})).construct(num_words=11, dim=3)
    assert isinstance(softmax, FullSoftmax)
    assert softmax.weight.shape == (11, 3)
