"""Layer mixes: they combine all layers of a biLM into the one vector a token that a task sees."""

from abc import ABC, abstractmethod
from typing import List, Optional, Tuple

import torch
from allennlp.common import Registrable
from allennlp.common.checks import ConfigurationError


def normalize_layers(layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """
    Shifts and scales each layer to mean 0 and variance 1 over all real positions of the batch, as
    `weight_layers` of `bilm-tf` does (Peters et al. 2018, section 3.2). A sentence's vectors then
    depend on the other sentences of its batch.

    `layers` and the result have the shape `(layers, batch, positions, width)`; the result is zero
    where `mask`, shape `(batch, positions)`, is `False`.
    """
    real = mask.unsqueeze(-1)  # (batch, positions, 1)
    count = (mask.sum() * layers.size(-1)).clamp(min=1)
    # The sums and `TINY` are out of the range of half precision.
    wide = layers if layers.dtype.itemsize > 2 else layers.float()
    wide = wide.masked_fill(~real, 0.0)
    mean = wide.sum(dim=(1, 2, 3), keepdim=True) / count  # (layers, 1, 1, 1)
    centred = (wide - mean).masked_fill(~real, 0.0)
    variance = centred.square().sum(dim=(1, 2, 3), keepdim=True) / count
    return (centred / torch.sqrt(variance + TINY)).to(layers.dtype)


TINY = 1e-13
"""Prevents a division by zero for a layer of equal numbers; AllenNLP's value."""


class LayerMix(torch.nn.Module, Registrable, ABC):
    """
    Combines the layers of a biLM into one vector a token. Abstract.

    # Parameters

    num_layers : `int`
        How many layers `forward` gets, including the token layer.
    do_layer_norm : `bool`, optional (default = `False`)
        Normalise each layer before they are combined (see `normalize_layers`). A text's vectors
        then depend on the other texts of its batch.

    # Source

    Peters et al. 2018, section 3.2.
    """

    default_implementation = "trainable"

    def __init__(self, num_layers: int, *, do_layer_norm: bool = False) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.do_layer_norm = do_layer_norm

    def forward(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        layers : `torch.Tensor`
            Shape `(layers, batch, tokens, width)`.
        mask : `torch.BoolTensor`
            Shape `(batch, tokens)`.

        # Returns

        `torch.Tensor`
            Shape `(batch, tokens, width)`; undefined where `mask` is `False`.

        # Raises

        ConfigurationError
            If there are not as many layers as the mix was made for.
        """
        if len(layers) != self.num_layers:
            raise ConfigurationError(
                f"expected {self.num_layers} layers to mix, the token layer included, but got "
                f"{len(layers)}"
            )
        if self.do_layer_norm:
            layers = normalize_layers(layers, mask)
        return self.combine(layers, mask)

    @abstractmethod
    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        Combines layers, after any normalisation: `(layers, batch, tokens, width)`, with a mask of
        shape `(batch, tokens)`, → `(batch, tokens, width)`.
        """

    @abstractmethod
    def shares(self) -> torch.Tensor:
        """How much of the result each layer makes up: shape `(layers,)`, sums to one."""


def weighted_sum(weights: torch.Tensor, layers: torch.Tensor) -> torch.Tensor:
    """Shapes `(layers,)` and `(layers, batch, tokens, width)` → `(batch, tokens, width)`."""
    # A single product would first copy layers whose sentence boundaries were removed.
    (weight, layer), *others = zip(weights.unbind(), layers.unbind())
    total = weight * layer
    for weight, layer in others:
        total += weight * layer
    return total


class LayerDropout(torch.nn.Module):
    """
    Chooses the layers that a mix goes without in a training batch, so that it doesn't come to rely
    on one of them (Kondratyuk & Straka 2019, UDify, section 3.2, "layer dropout"). In evaluation it
    keeps all. `share`, the probability that a layer is dropped, is in `[0, 1)`; else a
    `ConfigurationError` is raised.
    """

    def __init__(self, num_layers: int, share: float) -> None:
        super().__init__()
        if not 0.0 <= share < 1.0:
            raise ConfigurationError(
                f"expected a `layer_dropout` of 0 or more and below 1, but got {share}"
            )
        self.num_layers = num_layers
        self.share = share

    @property
    def is_active(self) -> bool:
        """Whether any layers are dropped now."""
        return self.training and self.share > 0.0

    def forward(self, device: torch.device) -> torch.Tensor:
        """Shape `(layers,)`: whether each layer is kept. If all would be dropped, all are kept."""
        if not self.is_active:
            return torch.ones(self.num_layers, dtype=torch.bool, device=device)
        kept = torch.rand(self.num_layers, device=device) >= self.share
        return kept | ~kept.any()


@LayerMix.register("trainable")
class TrainableMix(LayerMix):
    """
    A learned convex combination of the layers times one scale, `γ Σ softmax(s) h`.

    Registered as a `LayerMix` with name "trainable".

    # Parameters

    num_layers : `int`
        How many layers `forward` gets, including the token layer.
    initial_weights : `List[float]`, optional (default = `None`)
        The weights before training: one number a layer, before the softmax. -10000 leaves a layer
        out for good. `None` stands for equal weights.
    gamma : `float`, optional (default = `None`)
        Fixes γ to this number. With `None` it is learned, starting from 1.
    layer_dropout : `float`, optional (default = `0.0`)
        The probability that a layer is left out of a training batch; the weights of the others then
        sum to one.
    do_layer_norm : `bool`, optional (default = `False`)
        See `LayerMix`.

    # Raises

    ConfigurationError
        If there are not as many `initial_weights` as layers, they or `gamma` are not finite, or
        `layer_dropout` is not a probability.

    # Source

    Peters et al. 2018, section 3.2, equation 1.
    """

    allennlp_names = {"weights": "scalar_parameters.0"}
    """Parts of parameters' names, and what they are called in AllenNLP's ELMo. Regular expressions
    of regularizers match these too."""

    def __init__(
        self,
        num_layers: int,
        *,
        initial_weights: Optional[List[float]] = None,
        gamma: Optional[float] = None,
        layer_dropout: float = 0.0,
        do_layer_norm: bool = False,
    ) -> None:
        super().__init__(num_layers, do_layer_norm=do_layer_norm)
        if initial_weights is None:
            initial_weights = [0.0] * num_layers
        if len(initial_weights) != num_layers:
            raise ConfigurationError(
                f"expected one weight for each of the {num_layers} layers, the token layer "
                f"included, but got {len(initial_weights)}"
            )
        self.weights = torch.nn.Parameter(torch.tensor(initial_weights, dtype=torch.float))
        # Jsonnet writes 1.0 as 1, which would make a tensor of whole numbers.
        scale = torch.tensor(1.0 if gamma is None else gamma, dtype=torch.float)
        self.gamma = torch.nn.Parameter(scale, requires_grad=gamma is None)
        if not (self.weights.isfinite().all() and self.gamma.isfinite()):
            raise ConfigurationError(
                "expected `initial_weights` and a `gamma` that are finite (-10000 leaves a layer "
                f"out), but got {initial_weights} and {scale.item()}"
            )
        self.layer_dropout = LayerDropout(num_layers, layer_dropout)

    @property
    def scalar_parameters(self) -> Tuple[torch.Tensor, ...]:
        """
        The weights one by one, each of shape `(1,)`; AllenNLP's `ScalarMix` has the same attribute.
        """
        return self.weights.split(1)

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        weights: torch.Tensor = self.weights
        if self.training:
            kept = self.layer_dropout(layers.device)
            # If only layers without weight would be left, all are kept.
            is_left_with_none = (self.shares() * kept).sum() == 0
            weights = weights.masked_fill(~(kept | is_left_with_none), float("-inf"))
        return self.gamma * weighted_sum(torch.softmax(weights, dim=0), layers)

    def shares(self) -> torch.Tensor:
        """The softmax of the learned weights, shape `(layers,)`."""
        return torch.softmax(self.weights.detach(), dim=0)


@LayerMix.register("mean")
class MeanMix(LayerMix):
    """
    The mean of all layers, as in `allennlp elmo --average`.

    Registered as a `LayerMix` with name "mean". Its parameters are those of `LayerMix`.
    """

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return layers.mean(dim=0)

    def shares(self) -> torch.Tensor:
        """Equal shares, shape `(layers,)`."""
        return torch.full((self.num_layers,), 1 / self.num_layers)


@LayerMix.register("top")
class TopMix(LayerMix):
    """
    The last layer alone.

    Registered as a `LayerMix` with name "top". Its parameters are those of `LayerMix`.

    # Source

    Peters et al. 2017 (TagLM), section 2.3.
    """

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return layers[-1]

    def shares(self) -> torch.Tensor:
        """Shape `(layers,)`: 1 for the last layer, else 0."""
        return torch.eye(self.num_layers)[-1]


@LayerMix.register("frozen")
class FrozenMix(LayerMix):
    """
    A convex combination of the layers whose weights λ are never trained.

    Registered as a `LayerMix` with name "frozen".

    # Parameters

    num_layers : `int`
        How many layers `forward` gets, including the token layer.
    weights : `List[float]`, optional (default = `None`)
        One number a layer, 0 or more; λ is each one's share of their sum. With `None`, λ is drawn
        at random: the softmax of one standard normal number a layer.
    seed : `int`, optional (default = `0`)
        The seed of the draw, which neither depends on the seeds of the training nor affects them.
    do_layer_norm : `bool`, optional (default = `False`)
        See `LayerMix`.

    # Raises

    ConfigurationError
        If there are not as many `weights` as layers, or they have no shares.
    """

    weights: torch.Tensor

    def __init__(
        self,
        num_layers: int,
        *,
        weights: Optional[List[float]] = None,
        seed: int = 0,
        do_layer_norm: bool = False,
    ) -> None:
        super().__init__(num_layers, do_layer_norm=do_layer_norm)
        if weights is None:
            generator = torch.Generator().manual_seed(seed)
            drawn = torch.randn(num_layers, generator=generator, device="cpu")
            self.register_buffer(
                "weights", torch.softmax(drawn, dim=0).to(torch.get_default_device())
            )
            return
        given = torch.tensor(weights, dtype=torch.float)
        if len(given) != num_layers or bool((given < 0).any()) or not 0 < given.sum() < torch.inf:
            raise ConfigurationError(
                f"expected one weight for each of the {num_layers} layers, the token layer "
                f"included, none below 0 and one above it, but got {weights}"
            )
        self.register_buffer("weights", given / given.sum())

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return weighted_sum(self.weights, layers)

    def shares(self) -> torch.Tensor:
        """The weights λ, shape `(layers,)`."""
        return self.weights


@LayerMix.register("gate")
class GateMix(LayerMix):
    """
    A weighted sum of the layers whose weights are a learned function of the token, `γ Σ g_l h_l`
    with `g = softmax([h_0; h_1; ...] A + a)`. It starts from equal weights. In distributed
    training, `shares` counts only the texts of its own process.

    Registered as a `LayerMix` with name "gate".

    # Parameters

    num_layers : `int`
        How many layers `forward` gets, including the token layer.
    width : `int`
        The size of a layer's vector.
    layer_dropout : `float`, optional (default = `0.0`)
        The probability that a layer is left out of a training batch; the weights of the others then
        sum to one.
    do_layer_norm : `bool`, optional (default = `False`)
        See `LayerMix`.

    # Raises

    ConfigurationError
        If `layer_dropout` is not a probability.
    """

    _share_sums: torch.Tensor
    _num_tokens: torch.Tensor

    def __init__(
        self,
        num_layers: int,
        width: int,
        *,
        layer_dropout: float = 0.0,
        do_layer_norm: bool = False,
    ) -> None:
        super().__init__(num_layers, do_layer_norm=do_layer_norm)
        self.gate = torch.nn.Linear(num_layers * width, num_layers)
        torch.nn.init.zeros_(self.gate.weight)
        torch.nn.init.zeros_(self.gate.bias)
        self.gamma = torch.nn.Parameter(torch.tensor(1.0))
        self.layer_dropout = LayerDropout(num_layers, layer_dropout)
        self.register_buffer("_share_sums", torch.zeros(num_layers), persistent=False)
        self.register_buffer("_num_tokens", torch.tensor(0), persistent=False)
        self._summed_in_training = True

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = self.gate(layers.permute(1, 2, 0, 3).flatten(2))  # (batch, tokens, layers)
        kept = self.layer_dropout(layers.device)
        gates = torch.softmax(scores.masked_fill(~kept, float("-inf")), dim=-1)
        with torch.no_grad():
            self._note_shares(torch.softmax(scores, dim=-1), mask)
        return self.gamma * torch.einsum("btl,lbtw->btw", gates, layers)

    def shares(self) -> torch.Tensor:
        """
        The mean weights, shape `(layers,)`, over the tokens of the last training batch, as if no
        layer had been dropped, or of all evaluation batches since then. Equal before the first
        batch.
        """
        if self._num_tokens == 0:
            return torch.full_like(self._share_sums, 1 / self.num_layers)
        return self._share_sums / self._num_tokens

    def _note_shares(self, gates: torch.Tensor, mask: torch.Tensor) -> None:
        """
        Adds the weights of all tokens of a batch, shape `(batch, tokens, layers)`, to the sums.
        """
        if self.training or self._summed_in_training:
            if not mask.any():
                return
            self._share_sums.zero_()
            self._num_tokens.zero_()
        self._summed_in_training = self.training
        self._share_sums += gates.masked_fill(~mask.unsqueeze(-1), 0.0).sum(dim=(0, 1))
        self._num_tokens += mask.sum()


@LayerMix.register("function")
class FunctionMix(LayerMix):
    """
    A perceptron with one hidden layer over the layers of a token laid side by side,
    `relu([h_0; h_1; ...] A + a) B + b`.

    Registered as a `LayerMix` with name "function".

    # Parameters

    num_layers : `int`
        How many layers `forward` gets, including the token layer.
    width : `int`
        The size of a layer's vector.
    hidden_dim : `int`, optional (default = `width`)
        The size of the hidden layer.
    layer_dropout : `float`, optional (default = `0.0`)
        The probability that a layer is zero in a training batch; the others are scaled up to make
        up for it.
    do_layer_norm : `bool`, optional (default = `False`)
        See `LayerMix`.

    # Raises

    ConfigurationError
        If `hidden_dim` is below 1, or `layer_dropout` is not a probability.
    """

    def __init__(
        self,
        num_layers: int,
        width: int,
        *,
        hidden_dim: Optional[int] = None,
        layer_dropout: float = 0.0,
        do_layer_norm: bool = False,
    ) -> None:
        super().__init__(num_layers, do_layer_norm=do_layer_norm)
        hidden_dim = width if hidden_dim is None else hidden_dim
        if hidden_dim < 1:
            raise ConfigurationError(f"expected a `hidden_dim` of 1 or more, but got {hidden_dim}")
        self.width = width
        self.hidden = torch.nn.Linear(num_layers * width, hidden_dim)
        self.output = torch.nn.Linear(hidden_dim, width)
        self.layer_dropout = LayerDropout(num_layers, layer_dropout)

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if self.layer_dropout.is_active:
            kept = self.layer_dropout(layers.device)
            scale = kept * (self.num_layers / kept.sum())  # (layers,)
            layers = layers * scale.view(-1, 1, 1, 1)
        beside = layers.permute(1, 2, 0, 3).flatten(2)  # (batch, tokens, layers * width)
        return self.output(torch.relu(self.hidden(beside)))

    def shares(self) -> torch.Tensor:
        """
        Each layer's share of the norms of the weights that read it, shape `(layers,)`. A hint at
        where the function looks, not a weight that it applies. Equal if all norms are zero.
        """
        by_layer = self.hidden.weight.detach().unflatten(1, (self.num_layers, self.width))
        norms = by_layer.norm(dim=(0, 2))  # (layers,)
        total = norms.sum()
        return torch.where(total > 0, norms / total, 1 / self.num_layers)
