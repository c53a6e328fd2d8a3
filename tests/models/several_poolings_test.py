import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.modules.seq2vec_encoders import Seq2VecEncoder

MEAN = {"type": "boe", "embedding_dim": 4, "averaged": True}
NGRAMS = {"type": "cnn", "embedding_dim": 4, "num_filters": 3, "ngram_filter_sizes": [1, 2]}


def encoder_of(*encoders: dict) -> Seq2VecEncoder:
    params = {"type": "elmo_scratch_several", "encoders": [dict(one) for one in encoders]}
    return Seq2VecEncoder.from_params(Params(params))


def test_what_the_encoders_make_lies_side_by_side() -> None:
    encoder = encoder_of(NGRAMS, MEAN)
    assert (encoder.get_input_dim(), encoder.get_output_dim()) == (4, 10)
    tokens, mask = torch.randn(2, 3, 4), torch.tensor([[True] * 3, [True, True, False]])
    pooled = encoder(tokens, mask)
    ngrams, mean = encoder.encoders  # type: ignore[misc]
    assert torch.equal(pooled[:, :6], ngrams(tokens, mask))
    assert torch.equal(pooled[:, 6:], mean(tokens, mask))
    assert torch.allclose(pooled[1, 6:], tokens[1, :2].mean(dim=0))


@pytest.mark.parametrize("encoders", [[], [MEAN, {**NGRAMS, "embedding_dim": 5}]])
def test_encoders_read_the_same(encoders: list) -> None:
    with pytest.raises(ConfigurationError, match="expected encoders that read vectors of one size"):
        encoder_of(*encoders)
