"""A biLM whose weights are to come."""

import torch

from elmo_scratch.modules import BiLm


def without_weights(bilm: BiLm) -> BiLm:
    """
    Makes each weight of a biLM no number: if none are loaded, because an archive lacks them, no
    vector passes for a right one.

    # Parameters

    bilm : `BiLm`
        Changed, and returned.
    """
    with torch.no_grad():
        for weight in bilm.parameters():
            weight.fill_(float("nan"))
    return bilm
