import pytest
import torch

from elmo_scratch.modules.bilm import eval_mode


def test_each_part_gets_its_mode_back_whatever_happens() -> None:
    module = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Dropout())
    module[1].eval()
    with pytest.raises(KeyError), eval_mode(module):
        assert not any(part.training for part in module.modules())
        raise KeyError
    assert [part.training for part in module.modules()] == [True, True, False]
