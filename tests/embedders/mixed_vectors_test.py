import torch

from elmo_scratch.embedders.output_encoder import mixed_vectors
from elmo_scratch.modules.mixes import MeanMix, TopMix

LAYERS = torch.tensor([[[[1.0], [2.0]]], [[[3.0], [4.0]]]])  # (2 layers, 1 text, 2 tokens, 1)
MASK = torch.tensor([[True, False]])


def test_one_mix_gives_one_vector() -> None:
    vectors = mixed_vectors(LAYERS, MASK, TopMix(2), None, torch.nn.Dropout(0.0))
    assert vectors.tolist() == [[[3.0], [0.0]]]


def test_two_mixes_give_two_one_behind_the_other() -> None:
    vectors = mixed_vectors(LAYERS, MASK, TopMix(2), MeanMix(2), torch.nn.Dropout(0.0))
    assert vectors.tolist() == [[[3.0, 2.0], [0.0, 0.0]]]


def test_each_of_them_is_dropped_from_by_itself() -> None:
    torch.manual_seed(13)
    layers = torch.ones(2, 1, 1, 1000)
    vectors = mixed_vectors(layers, MASK[:, :1], TopMix(2), TopMix(2), torch.nn.Dropout(0.5))
    first, second = vectors.flatten().chunk(2)
    assert set(vectors.flatten().tolist()) == {0.0, 2.0}
    assert not torch.equal(first, second)
