import torch

from elmo_scratch.modules.mixes import MeanMix

LAYERS = torch.tensor([1.0, 2.0, 6.0]).view(3, 1, 1, 1)
MASK = torch.ones(1, 1, dtype=torch.bool)


def test_it_takes_the_mean_of_all_layers() -> None:
    assert MeanMix(3)(LAYERS, MASK).item() == 3.0
    assert torch.equal(MeanMix(3).shares(), torch.full((3,), 1 / 3))


def test_it_has_nothing_to_train_or_to_keep() -> None:
    assert not MeanMix(3).state_dict()
