"""ELMo as a token embedder, from a file of layers."""

import hashlib
from typing import Any, Optional

import numpy
import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.modules.token_embedders import TokenEmbedder

from elmo_scratch.embedders.layer_file.token_layers import (
    LayersInMemory,
    LayersOnDisk,
    TokenLayers,
    shared_token_numbers,
)
from elmo_scratch.embedders.output_encoder import mixed_vectors
from elmo_scratch.interop import LayerFile
from elmo_scratch.modules.mixes import LayerMix, TrainableMix


@TokenEmbedder.register("elmo_scratch_layer_file")
class LayerFileEmbedder(TokenEmbedder):
    """
    Mixes the layers that a file holds of each text, so that no biLM runs in training. The vectors
    are those of `elmo_scratch` with a frozen biLM, as it was when the file was written. Its indexer
    is `elmo_scratch_layer_file`, with the same `file`.

    The layers are not saved in the task's archive: wherever it is loaded, a file must hold the
    layers of the new texts.

    Registered as a `TokenEmbedder` with name "elmo_scratch_layer_file".

    # Parameters

    file : `str`
        The file, as `allennlp elmo` writes it.
    mix : `Lazy[LayerMix]`, optional (default = `TrainableMix`)
        Combines the layers. A file with one layer, made by `--top` or `--average`, needs no mix.
    output_mix : `Lazy[LayerMix]`, optional (default = `None`)
        Makes a second vector, as in `elmo_scratch`.
    dropout : `float`, optional (default = `0.0`)
        Share of the mixed vectors that is dropped in training.
    in_memory : `bool`, optional (default = `False`)
        Read the whole file at the start. Otherwise each sentence is read when it is needed.

    # Raises

    ConfigurationError
        If the file can't be read, has no vectors of tokens or no index of its sentences, there is a
        `mix` for one layer, or no room in memory; later, if the file comes from another biLM than
        the one that the task was trained with.

    # Source

    Peters et al. 2018, section 3.2.
    """

    _origin: torch.Tensor

    def __init__(
        self,
        file: str,
        *,
        mix: Optional[Lazy[LayerMix]] = None,
        output_mix: Optional[Lazy[LayerMix]] = None,
        dropout: float = 0.0,
        in_memory: bool = False,
    ) -> None:
        super().__init__()
        self.file = file
        numbers = shared_token_numbers(file)
        layer_file = LayerFile(file)
        self._facts = layer_file.facts
        self._layers: TokenLayers = (
            LayersInMemory(layer_file, numbers) if in_memory else LayersOnDisk(layer_file, numbers)
        )
        self.mix: Optional[LayerMix] = None
        self.output_mix: Optional[LayerMix] = None
        if self._facts.kept == "all":
            sizes = {"num_layers": self._facts.layers, "width": self._facts.width}
            self.mix = (mix or Lazy(TrainableMix)).construct(**sizes)
            self.output_mix = None if output_mix is None else output_mix.construct(**sizes)
        elif mix is not None or output_mix is not None:
            raise ConfigurationError(
                f"{file}: there is nothing to mix, the file holds one layer. Leave out `mix` and "
                "`output_mix`, or export the text with --all."
            )
        self.dropout = torch.nn.Dropout(dropout)
        self.register_buffer("_origin", self._digest())
        self.register_load_state_dict_post_hook(_check_origin)

    def get_output_dim(self) -> int:
        return self._facts.width if self.output_mix is None else 2 * self._facts.width

    def forward(self, token_numbers: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        token_numbers : `torch.Tensor`
            Shape `(batch, tokens)`, or with more axes first: the indexer's numbers, 0 where a row
            has ended.

        # Returns

        `torch.Tensor`
            Shape `(batch, tokens, get_output_dim())`.
        """
        numbers = token_numbers.flatten(0, -2)
        layers = self._read(numbers).to(numbers.device)
        if self.mix is None:
            mixed = self.dropout(layers[0])  # (batch, tokens, width)
        else:
            mixed = mixed_vectors(layers, numbers != 0, self.mix, self.output_mix, self.dropout)
        return mixed.unflatten(0, token_numbers.shape[:-1])

    def _read(self, token_numbers: torch.Tensor) -> torch.Tensor:
        """Returns layers of shape `(layers, batch, tokens, width)`, zero where a row has ended."""
        numbers = token_numbers.cpu().numpy()
        num_layers = self._facts.layers if self._facts.kept == "all" else 1
        layers = numpy.zeros((num_layers, *numbers.shape, self._facts.width), dtype="float32")
        is_token = numbers != 0
        if is_token.any():
            layers[:, is_token] = self._layers.of(numbers[is_token])
        return torch.from_numpy(layers)

    def _digest(self) -> torch.Tensor:
        """
        Returns a digest of the biLM, its state and the layers that are kept; zeros if it isn't
        known.
        """
        digest, facts = bytes(32), self._facts
        if facts.model:
            digest = hashlib.sha256(f"{facts.model} {facts.kept} {facts.state}".encode()).digest()
        return torch.tensor(list(digest), dtype=torch.uint8)


def _check_origin(embedder: LayerFileEmbedder, _: Any) -> None:
    """Refuses weights that were trained with the layers of another biLM."""
    trained, here = embedder._origin.cpu(), embedder._digest()
    if trained.any() and here.any() and not torch.equal(trained, here):
        raise ConfigurationError(
            f"{embedder.file}: expected the layers that the model was trained with, but these come "
            f"from another biLM ({embedder._facts.model}), others of its layers were kept, or "
            "sentences started from another state. Export the text as the one of the training was: "
            "with the same `--weight-file` and `--state`, and where that is warm with the same "
            "`--warm-up-file`."
        )
