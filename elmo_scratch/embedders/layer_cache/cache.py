"""A frozen biLM that reads each text once and finds its layers in a store from then on."""

import logging
from hashlib import blake2b, sha256
from typing import Any, List

import numpy
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders.layer_cache.stores import LayerStore
from elmo_scratch.kernels import (
    FrozenWeightCache,
    MixedPrecision,
    rows_are_independent,
    without_autocast,
)
from elmo_scratch.modules import BiLm, BiLmOutput
from elmo_scratch.modules.bilm import eval_mode
from elmo_scratch.modules.sequences import sentence_lengths
from elmo_scratch.modules.token_encoders.token_encoder import check_ids

logger = logging.getLogger(__name__)

COMPUTATION = 1
"""
Goes up when the package computes other numbers from the same weights: older entries are ignored.
"""

OF_ALL = frozenset(vars(torch.nn.Module()))
"""Attributes that every module has: its mode, its hooks, and tensors that are read separately."""


class KeptLayers(torch.nn.Module):
    """
    Runs a frozen biLM and caches the layers of each text in a store. Caching begins with the first
    batch of a training. A model that only evaluates or predicts caches nothing, nor do replicas of
    `torch.nn.DataParallel`, which can't tell which biLM they copy.

    Raises `ConfigurationError` if a sentence's layers depend on earlier sentences, or the biLM is
    trained.
    """

    def __init__(self, store: LayerStore, bilm: BiLm) -> None:
        super().__init__()
        _check_state(bilm)
        _check_frozen(bilm)
        self._store = store
        self._has_begun = False
        self._has_said = False
        self._identity = FrozenWeightCache[bytes]()

    def forward(self, bilm: BiLm, ids: torch.Tensor, mask: torch.Tensor) -> BiLmOutput:
        """
        Returns the output of `bilm`, which is not a submodule. `ids` have the shape `(batch,
        tokens)` or `(batch, tokens, characters)`, `mask` `(batch, tokens)`; real tokens come first
        in each row.

        Raises `ConfigurationError` if the layers can't be stored, or the biLM is trained or carries
        its state by now; `ValueError` if the ids are of an unsuitable type, or real tokens don't
        come first.
        """
        check_ids(ids, "tokens")
        self._has_begun = self._has_begun or self.training
        # The weights of a `DataParallel` replica are no parameters.
        if not self._has_begun or next(bilm.parameters(), None) is None:
            return bilm(ids, mask)
        _check_state(bilm)
        _check_frozen(bilm)
        lengths: List[int] = sentence_lengths(mask).tolist()
        keys = self._keys(bilm, ids, lengths)
        kept = {key: self._store.get(key) for key in keys}
        found = {key: layers for key, layers in kept.items() if layers is not None}
        # A text that comes twice in the batch is read once.
        missing = {key: row for row, key in enumerate(keys) if key not in found}
        if missing:
            self._say_what_is_equal(bilm)
            rows = list(missing.values())
            layers = self._read(bilm, ids[rows], mask[rows], [lengths[row] for row in rows])
            read = dict(zip(missing, layers))
            self._store.put(read)
            found.update(read)
        texts = [found[key] for key in keys]
        return self._together(texts, lengths, ids.size(1) + 2, bilm, ids.device)

    def _keys(self, bilm: BiLm, ids: torch.Tensor, lengths: List[int]) -> List[bytes]:
        """Returns the key of each text, made of its ids and the biLM."""
        # Workers of a distributed training write all buffers anew before each batch: they are
        # compared by their numbers.
        settings = (settings_of(bilm), *map(_bytes_of, bilm.buffers()))
        identity = self._identity.of(list(bilm.parameters()), settings, lambda: identity_of(bilm))
        rows = ids.cpu().to(torch.int32).numpy()
        return [
            identity + blake2b(row[:length].tobytes(), digest_size=16).digest()
            for row, length in zip(rows, lengths)
        ]

    def _say_what_is_equal(self, bilm: BiLm) -> None:
        """
        Logs once that a text's layers may depend on its batch in the last bits, where that is so.
        """
        if self._has_said:
            return
        self._has_said = True
        device = next(bilm.parameters()).device
        is_rounded = MixedPrecision.is_asked_for(bilm) and (
            MixedPrecision.used("bfloat16", device) == "bfloat16"
        )
        dtype = torch.bfloat16 if is_rounded else torch.float32
        if device.type != "cpu" or not rows_are_independent(dtype):
            logger.info(
                "On this machine the layers of a text depend within rounding on the texts that it "
                "is read with: those that are kept are of the batch in which it was read first."
            )

    def _read(
        self, bilm: BiLm, ids: torch.Tensor, mask: torch.Tensor, lengths: List[int]
    ) -> List[numpy.ndarray]:
        """Returns for each text an array of shape `(layers, positions of the text, width)`."""
        longest = max(lengths)
        # Layers that are cached for all epochs, or for other trainings, keep their full precision.
        with eval_mode(bilm), without_autocast(ids.device):
            output: BiLmOutput = bilm(ids[:, :longest], mask[:, :longest])
        layers = output.layers.float().cpu().numpy()
        return [
            numpy.ascontiguousarray(layers[:, row, : length + 2])
            for row, length in enumerate(lengths)
        ]

    def _together(
        self,
        found: List[numpy.ndarray],
        lengths: List[int],
        positions: int,
        bilm: BiLm,
        device: torch.device,
    ) -> BiLmOutput:
        """Pads the layers of texts to a batch of `positions` positions."""
        ends = torch.tensor(lengths, device="cpu").unsqueeze(1) + 2
        mask = torch.arange(positions, device="cpu") < ends  # (batch, positions)
        layers = numpy.zeros((bilm.num_layers, *mask.shape, bilm.width), dtype="float32")
        for row, (one, length) in enumerate(zip(found, lengths)):
            layers[:, row, : length + 2] = one.reshape(bilm.num_layers, length + 2, bilm.width)
        numbers = torch.from_numpy(layers).to(device, next(bilm.parameters()).dtype)
        return BiLmOutput(numbers, mask.to(device))


def _check_state(bilm: BiLm) -> None:
    """Refuses a biLM that starts each text from where the one before ended."""
    if bilm.state_memory.state == "carry":
        raise ConfigurationError(
            '`keep_layers` needs a biLM with the `state` "reset" or "warm": with "carry" '
            'the layers of a text depend on what was read before it. Set `state: "reset"`'
        )


def _check_frozen(bilm: BiLm) -> None:
    """Refuses a biLM that is trained: its layers of a text change from step to step."""
    if any(weight.requires_grad for weight in bilm.parameters()):
        raise ConfigurationError(
            "`keep_layers` needs a frozen biLM, but this one is trained. Leave `requires_grad` "
            "out (of a `module` of your own: `module.requires_grad_(False)`), or set `keep_layers` "
            "to null"
        )


def identity_of(bilm: BiLm) -> bytes:
    """
    Returns 16 bytes that are the same for biLMs that compute the same layers of every text. They
    are a digest of the weights, of all settings, and of the precision of products on this device.
    """
    digest = sha256(str(COMPUTATION).encode())
    if MixedPrecision.is_asked_for(bilm):
        device = next(bilm.parameters()).device
        digest.update(MixedPrecision.used("bfloat16", device).encode())
    digest.update(settings_of(bilm).encode())
    # Not those of `state_dict` alone: some are made anew by the constructor.
    for name, tensor in (*bilm.named_parameters(), *bilm.named_buffers()):
        digest.update(f"{name} {tuple(tensor.shape)} ".encode())
        digest.update(_bytes_of(tensor))
    return digest.digest()[:16]


def _bytes_of(tensor: torch.Tensor) -> bytes:
    """Returns a tensor's numbers; as bytes, because NumPy lacks some types of numbers."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes()


def settings_of(bilm: BiLm) -> str:
    """
    Returns the class of each module and the numbers, strings and types that it is set to, also
    within lists and maps. Other objects count by their class alone.
    """
    described = [
        (
            name,
            type(module).__name__,
            sorted((key, _told(value)) for key, value in vars(module).items() if key not in OF_ALL),
        )
        for name, module in bilm.named_modules()
    ]
    return repr(described)


def _told(value: Any) -> str:
    """Returns a setting in a form that is the same in each process."""
    if isinstance(value, (bool, int, float, str, bytes, type(None))):
        return repr(value)
    if isinstance(value, (torch.dtype, torch.device)):
        return str(value)
    if isinstance(value, torch.Tensor):
        return repr((str(value.dtype), value.tolist()))
    if isinstance(value, dict):
        return repr(sorted((repr(key), _told(one)) for key, one in value.items()))
    if isinstance(value, (list, tuple)):
        return repr([_told(one) for one in value])
    if isinstance(value, (set, frozenset)):
        return repr(sorted(map(_told, value)))
    return type(value).__name__
