"""The device that a number stands for."""

import torch
from allennlp.common.checks import ConfigurationError


def device_of(cuda_device: int) -> torch.device:
    """
    Returns the GPU of that number, or the processor for -1. Raises `ConfigurationError` if
    `cuda_device` is no number or there is no such GPU.
    """
    if isinstance(cuda_device, bool) or not isinstance(cuda_device, int):
        raise ConfigurationError(
            f"expected the number of a GPU, or -1 for the processor, but got {cuda_device!r}"
        )
    count = torch.cuda.device_count()
    if not -1 <= cuda_device < count:
        seen = f"those from 0 to {count - 1}" if count else "none"
        raise ConfigurationError(
            f"expected a GPU with the number {cuda_device}, but PyTorch sees {seen}; -1 stands for "
            "the processor"
        )
    return torch.device("cuda", cuda_device) if cuda_device >= 0 else torch.device("cpu")
