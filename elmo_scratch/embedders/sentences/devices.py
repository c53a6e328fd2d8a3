"""Devices by the numbers that AllenNLP gives them."""

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.machine import num_processors


def device_of(cuda_device: int) -> torch.device:
    """
    # Parameters

    cuda_device : `int`
        The number of a GPU, or -1 for the processor.

    # Raises

    ConfigurationError
        If it is no number, or there is no such GPU.
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


def leaves_a_processor(device: torch.device, is_alone: bool = True) -> bool:
    """
    Whether PyTorch's work on a device leaves a processor to other threads: on a GPU always, on
    processors where it has fewer threads than there are of them, and no other process is to compute
    on the rest.
    """
    if device.type != "cpu":
        return True
    return is_alone and torch.get_num_threads() < num_processors()
