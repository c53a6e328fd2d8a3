import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.interop import PretrainedBiLm

LAYERS, WIDTH = 3, 64
SENTENCES = [
    "the bank of the river".split(),
    "goal".split(),
    "a mouse ran over the old stone wall at night".split(),
]


@pytest.fixture
def embed(pretrained: PretrainedBiLm) -> SentenceLayers:
    return SentenceLayers(pretrained)


def test_each_sentence_has_its_own_length(embed: SentenceLayers) -> None:
    arrays = embed(SENTENCES)
    assert [layers.shape for layers in arrays] == [
        (LAYERS, 5, WIDTH),
        (LAYERS, 1, WIDTH),
        (LAYERS, 10, WIDTH),
    ]
    assert {layers.dtype for layers in arrays} == {numpy.dtype("float32")}


def test_layers_are_those_of_the_bilm_without_the_boundaries(
    embed: SentenceLayers, pretrained: PretrainedBiLm
) -> None:
    words = pretrained.blueprint.words.words
    ids = torch.tensor([[words.index(word) for word in SENTENCES[0]]])
    with torch.no_grad():
        layers = pretrained.bilm(ids, ids > 0).layers[:, 0, 1:-1]
    assert numpy.allclose(embed(SENTENCES[:1])[0], layers.numpy(), atol=1e-6)


def test_a_sentence_alone_equals_itself_among_others(embed: SentenceLayers) -> None:
    for sentence, among in zip(SENTENCES, embed(SENTENCES), strict=True):
        assert numpy.allclose(embed([sentence])[0], among, atol=1e-6)


def test_sentences_before_change_nothing(embed: SentenceLayers) -> None:
    first = embed(SENTENCES)
    embed(SENTENCES[::-1])
    assert all(
        numpy.array_equal(one, other) for one, other in zip(first, embed(SENTENCES), strict=True)
    )


def test_words_are_treated_as_in_the_bilms_training(embed: SentenceLayers) -> None:
    assert numpy.array_equal(embed([["The", "BANK"]])[0], embed([["the", "bank"]])[0])


def test_a_word_that_the_bilm_does_not_know_is_the_unknown_word(
    embed: SentenceLayers, pretrained: PretrainedBiLm
) -> None:
    vectors = pretrained.bilm.token_encoder.state_dict()["embedding.weight"]
    unknown = vectors[pretrained.blueprint.words.words.index("@@UNKNOWN@@")]
    token_layer = embed([["zzyzx"]])[0][0, 0]
    assert token_layer.tolist() == [*unknown.tolist(), *unknown.tolist()]


def test_a_long_sentence_is_not_shortened(pretrained: PretrainedBiLm) -> None:
    pretrained.reader.max_tokens = 3  # type: ignore[attr-defined]
    assert SentenceLayers(pretrained)([["the"] * 211])[0].shape == (LAYERS, 211, WIDTH)


def test_nothing_is_dropped_even_if_the_bilm_came_in_training_mode(
    pretrained: PretrainedBiLm,
) -> None:
    pretrained.bilm.train()
    embed = SentenceLayers(pretrained)
    assert numpy.array_equal(embed(SENTENCES[:1])[0], embed(SENTENCES[:1])[0])


def test_a_gpu_that_is_not_there_is_an_error(pretrained: PretrainedBiLm) -> None:
    with pytest.raises(ConfigurationError, match="a GPU with the number 97, but PyTorch sees"):
        SentenceLayers(pretrained, cuda_device=97)
