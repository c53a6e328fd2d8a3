import torch

from elmo_scratch.interop.archives.archive import fill_with_nan
from tests.modules.tiny_bilms import bilm_of, read

IDS = torch.tensor([[3, 4, 5], [4, 0, 0]])


def test_no_vector_passes_for_a_right_one() -> None:
    bilm = bilm_of()
    assert not read(bilm, IDS).layers.isnan().any()
    assert fill_with_nan(bilm) is bilm
    output = read(bilm, IDS)
    assert output.layers[:, output.mask].isnan().all()
