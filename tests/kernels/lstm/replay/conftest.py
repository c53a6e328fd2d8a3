from importlib.util import find_spec

import pytest
import torch

from elmo_scratch.kernels import gpu
from elmo_scratch.kernels.lstm import cuda_graphs

HAS_TRITON = torch.cuda.is_available() and find_spec("triton") is not None


@pytest.fixture(params=["reference", "fused"] if HAS_TRITON else ["reference"])
def record_everywhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Also on a processor, where work that is recorded is done anew; on a GPU in each way, by Triton's
    kernels too.
    """
    monkeypatch.setattr(cuda_graphs, "DEVICES", ("cpu", "cuda"))
    monkeypatch.setattr(gpu, "STOPPED", {})
    monkeypatch.setattr(gpu, "FUSES", "1" if request.param == "fused" else "0")
