import torch

from elmo_scratch.modules.mixes import TopMix

LAYERS = torch.tensor([1.0, 2.0, 6.0]).view(3, 1, 1, 1)
MASK = torch.ones(1, 1, dtype=torch.bool)


def test_it_takes_the_last_layer() -> None:
    assert TopMix(3)(LAYERS, MASK).item() == 6.0
    assert TopMix(3).shares().tolist() == [0.0, 0.0, 1.0]


def test_it_has_nothing_to_train_or_to_keep() -> None:
    assert not TopMix(3).state_dict()
