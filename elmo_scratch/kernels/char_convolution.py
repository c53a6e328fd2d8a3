"""Convolutions over characters and their maxima over a word: the reference, and compiled code."""

import ctypes
from functools import partial
from types import ModuleType
from typing import Any, Callable, List, Optional, Sequence, Set, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_scratch.kernels.gpu import agree, fused_kernels, made_by_triton, may_fuse
from elmo_scratch.kernels.library import (
    COUNT,
    HAS_TILES,
    INPUTS_TOGETHER,
    INSTRUCTIONS,
    LIBRARY,
    POINTER,
    SIZE,
    ConvolutionFilters,
    ConvolutionWords,
    functions,
    is_plain,
    pack_weights,
    simd_functions,
)
from elmo_scratch.kernels.memory import FrozenWeightCache

NUMBERS_TOGETHER = 16
"""A character's vector must have a multiple of so many numbers."""

MOST_WINDOWS = 256
"""The window of each maximum is stored in one byte."""


_STRUCTS = map(ctypes.POINTER, (ConvolutionWords, ConvolutionFilters))
_OF_ALL = [*_STRUCTS, SIZE, POINTER, POINTER]
CONVOLVE = simd_functions(LIBRARY, "convolve", INSTRUCTIONS, [*_OF_ALL, COUNT, COUNT])
CONVOLVE_BACKWARD = simd_functions(
    LIBRARY, "convolve_backward", INSTRUCTIONS, [*_OF_ALL, POINTER, POINTER, COUNT]
)


def can_convolve(
    characters: torch.Tensor,
    lengths: torch.Tensor,
    most_characters: int,
    dtype: torch.dtype,
    weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor],
) -> bool:
    """
    Whether there is compiled code for these arguments of `convolved_maxima`. Of the first two, the
    vectors of all characters and the ids of words' characters may take the place.
    """
    dim, tensors = characters.size(-1), (characters, *weights, *biases)
    return (
        dtype in CONVOLVE
        and characters.numel() > 0
        and dim % NUMBERS_TOGETHER == 0
        and most_characters < MOST_WINDOWS
        and _fit(weights, biases, dim, most_characters)
        and all(tensor.dtype == torch.float32 for tensor in tensors)
        and not torch.is_autocast_enabled("cpu")
        and is_plain(*tensors, lengths, on="cpu")
    )


def _fit(
    weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor],
    dim: int,
    most_characters: int,
) -> bool:
    """
    Whether each width's weights, shape `(filters, width * dim)`, and biases, shape `(filters,)`,
    belong together, and its windows have room in a word.
    """
    return all(
        weight.size(1) in range(dim, most_characters * dim + 1, dim)
        and bias.shape == (len(weight),)
        for weight, bias in zip(weights, biases)
    )


def convolved_maxima(
    characters: torch.Tensor,
    lengths: torch.Tensor,
    most_characters: int,
    dtype: torch.dtype,
    weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor],
    packed: Optional[FrozenWeightCache[List[torch.Tensor]]] = None,
) -> Optional[torch.Tensor]:
    """
    The highest response of each filter to a window of a word. A word passes through all filters
    while its characters are in the L1 cache, and only the highest responses are kept: in the
    backward pass a filter's gradient comes from one window per word.

    # Parameters

    characters : `torch.Tensor`
        Shape `(words, positions, character_dim)`, in float32. After the longest word there must be
        at least as many positions as the widest filter has, or all positions up to
        `most_characters`.
    lengths : `torch.Tensor`
        Shape `(words,)`: the positions before a word's padding.
    most_characters : `int`
        How many characters a word has with its padding.
    dtype : `torch.dtype`
        The precision of products: characters and weights are rounded to it, gradients are not.
    weights : `Sequence[torch.Tensor]`
        Each of shape `(filters, width * character_dim)`.
    biases : `Sequence[torch.Tensor]`
        Each of shape `(filters,)`.
    packed : `FrozenWeightCache[List[torch.Tensor]]`, optional (default = `None`)
        Keeps the packed weights while they are frozen. `None` packs them for this call alone.

    # Returns

    `Optional[torch.Tensor]`
        Shape `(words, filters)`, over all widths. Among equal responses the first gets the
        gradient. `None` if there is no compiled code for these arguments.
    """
    if not can_convolve(characters, lengths, most_characters, dtype, weights, biases):
        return None
    cache = FrozenWeightCache[List[torch.Tensor]]() if packed is None else packed
    panels = cache.of(weights, dtype, partial(_pack_filters, weights, dtype))
    return _ConvolvedMaxima.apply(
        characters, lengths, most_characters, dtype, panels, *weights, *biases
    )


def _pack_filters(weights: Sequence[torch.Tensor], dtype: torch.dtype) -> List[torch.Tensor]:
    """The weights of each width in panels."""
    panels: List[torch.Tensor] = []
    for weight in weights:
        missing = -weight.size(1) % INPUTS_TOGETHER if dtype == torch.bfloat16 else 0
        padded = torch.nn.functional.pad(weight.detach(), (0, missing))
        panels.append(pack_weights(padded, dtype, HAS_TILES))
    return panels


def maxima_on_gpu(
    ids: torch.Tensor,
    padding_id: int,
    vectors: torch.Tensor,
    weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor],
    dtype: torch.dtype,
) -> Optional[torch.Tensor]:
    """
    The highest response of each filter to a window of a word by one kernel; see `fused_maxima` for
    the arguments and the result. `None` where there is no such kernel.
    """
    if not may_fuse("char_convolution", ids.device):
        return None
    tensors, dim = (vectors, *weights, *biases), vectors.size(1)
    is_known = (
        dtype in (torch.float32, torch.bfloat16)
        and len(ids) > 0
        and all(part.dtype == torch.float32 for part in tensors)
        and all(part.device == ids.device for part in tensors)
        and _fit(weights, biases, dim, ids.size(1))
        and is_plain(ids, *tensors)
        and not torch.is_autocast_enabled(ids.device.type)
    )
    fused = fused_kernels("char_convolution", ids.device) if is_known else None
    if fused is None:
        return None
    given = (ids, padding_id, vectors, weights, biases, dtype)
    sizes = (ids.device, dtype, ids.size(1), *(part.shape for part in tensors))
    with torch.cuda.device_of(ids):
        if sizes not in _CHECKED:
            if not made_by_triton("char_convolution", lambda: _agrees(fused, *given)):
                return None
            _CHECKED.add(sizes)
        maxima: Optional[torch.Tensor] = made_by_triton(
            "char_convolution", lambda: fused.fused_maxima(*given)
        )
    return maxima


_CHECKED: Set[Tuple[Any, ...]] = set()
"""For which devices, types and shapes Triton's kernels have been checked."""

NUM_CHECKED = 64
"""The words that they are checked with."""


def _agrees(
    fused: ModuleType,
    ids: torch.Tensor,
    padding_id: int,
    vectors: torch.Tensor,
    weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor],
    dtype: torch.dtype,
) -> bool:
    """
    Whether Triton's kernels compute what PyTorch's operations do, gradients included, from copies
    of some of the words and of the parameters. The arguments are those of `maxima_on_gpu`.
    """

    def there_and_back(
        maxima_of: Callable[..., torch.Tensor], own_dtype: torch.dtype
    ) -> List[torch.Tensor]:
        leaves = [part.detach().clone().requires_grad_() for part in (vectors, *weights, *biases)]
        own_weights, own_biases = leaves[1 : 1 + len(weights)], leaves[1 + len(weights) :]
        maxima = maxima_of(words, padding_id, leaves[0], own_weights, own_biases, own_dtype)
        # All above 0: sums that nearly vanish would differ by much.
        incoming = torch.linspace(0.5, 1.5, maxima.numel(), device=ids.device).view_as(maxima)
        return [maxima.detach(), *torch.autograd.grad(maxima, leaves, incoming)]

    def unchanged(tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    # What others do with saved tensors is not meant for these.
    hooks = torch.autograd.graph.saved_tensors_hooks(unchanged, unchanged)
    with torch.inference_mode(False), torch.enable_grad(), hooks:
        words = ids[:: -(-len(ids) // NUM_CHECKED)].clone()
        expected = there_and_back(_reference_maxima, dtype)
        found = there_and_back(fused.fused_maxima, dtype)
        exact: Optional[List[torch.Tensor]] = None
        if dtype != torch.float32:
            exact = there_and_back(_reference_maxima, torch.float32)
    return agree("char_convolution", expected, found, exact)


def _reference_maxima(
    ids: torch.Tensor,
    padding_id: int,
    vectors: torch.Tensor,
    weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor],
    dtype: torch.dtype,
) -> torch.Tensor:
    """
    What `fused_maxima` computes, by PyTorch's operations over all windows. Those in the padding are
    equal, so that the maxima are the same.
    """
    characters = torch.nn.functional.embedding(ids, vectors, padding_idx=0).to(dtype)
    maxima: List[torch.Tensor] = []
    for weight, bias in zip(weights, biases):
        width = weight.size(1) // vectors.size(1)
        windows = characters.unfold(1, width, 1).transpose(2, 3).flatten(2)
        responses = torch.nn.functional.linear(windows, weight.to(dtype), bias.to(dtype))
        maxima.append(responses.max(dim=1).values.float())
    return torch.cat(maxima, dim=1)


def words_at_once(device: torch.device) -> int:
    """
    How many words of similar length PyTorch's operations convolve together: few enough for a CPU's
    caches, and enough for a GPU, which many small groups would leave idle.
    """
    return 256 if device.type == "cpu" else 1024


class _ConvolvedMaxima(torch.autograd.Function):
    """`convolved_maxima` by compiled code, as one node of PyTorch's graph."""

    @staticmethod
    def forward(
        ctx: Any,
        characters: torch.Tensor,
        lengths: torch.Tensor,
        most_characters: int,
        dtype: torch.dtype,
        panels: List[torch.Tensor],
        *parameters: torch.Tensor,
    ) -> torch.Tensor:
        """Takes the weights of all widths, then their biases, as `parameters`, and the `panels`."""
        kinds = len(parameters) // 2
        weights = [weight.contiguous() for weight in parameters[:kinds]]
        biases = [bias.contiguous() for bias in parameters[kinds:]]
        rounded, lengths = characters.to(dtype).contiguous(), lengths.long().contiguous()
        total = sum(map(len, weights))
        maxima = characters.new_empty(len(characters), total)
        places = maxima.new_empty(maxima.shape, dtype=torch.uint8)
        CONVOLVE[dtype](
            _words(rounded, lengths, most_characters, total),
            _filters(rounded.size(2), weights, panels, biases, None),
            kinds,
            maxima.data_ptr(),
            places.data_ptr(),
            torch.get_num_threads(),
            HAS_TILES,
        )
        ctx.dtype, ctx.most_characters = dtype, most_characters
        ctx.save_for_backward(rounded, lengths, places, *weights)
        return maxima

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        """The gradients of all arguments of `forward`, in their order."""
        rounded, lengths, places, *weights = ctx.saved_tensors
        # Hooks on saved tensors may have changed their types and layouts.
        rounded, lengths = rounded.to(ctx.dtype).contiguous(), lengths.long().contiguous()
        places = places.to(torch.uint8).contiguous()
        weights = [weight.to(torch.float32).contiguous() for weight in weights]
        gradients = gradients.to(torch.float32).contiguous()
        of_characters = gradients.new_empty(rounded.shape)
        of_weights = [gradients.new_empty(weight.shape) for weight in weights]
        of_biases = gradients.new_empty(places.size(1))
        CONVOLVE_BACKWARD[ctx.dtype](
            _words(rounded, lengths, ctx.most_characters, places.size(1)),
            _filters(rounded.size(2), weights, None, None, of_weights),
            len(weights),
            gradients.data_ptr(),
            places.data_ptr(),
            of_characters.data_ptr(),
            of_biases.data_ptr(),
            torch.get_num_threads(),
        )
        biases = of_biases.split([len(weight) for weight in weights])
        return (of_characters, None, None, None, None, *of_weights, *biases)


def _words(
    characters: torch.Tensor, lengths: torch.Tensor, most_characters: int, filters: int
) -> Any:
    places = (characters.data_ptr(), lengths.data_ptr())
    return ctypes.byref(ConvolutionWords(*places, *characters.shape, most_characters, filters))


def _filters(
    dim: int,
    weights: Sequence[torch.Tensor],
    panels: Optional[Sequence[torch.Tensor]],
    biases: Optional[Sequence[torch.Tensor]],
    gradients: Optional[Sequence[torch.Tensor]],
) -> Any:
    kinds: List[ConvolutionFilters] = []
    first = 0
    for kind, weight in enumerate(weights):
        others = [part and part[kind].data_ptr() for part in (panels, biases, gradients)]
        panel, bias, gradient = others
        number, inputs = weight.shape
        padded = 0 if panels is None else panels[kind].size(1)
        places = (panel, weight.data_ptr(), bias, gradient)
        kinds.append(ConvolutionFilters(*places, padded, inputs // dim, number, first))
        first += number
    return (ConvolutionFilters * len(kinds))(*kinds)


DTYPES = (torch.float32, torch.float64, torch.bfloat16)
MAXIMA = functions(LIBRARY, "maxima", DTYPES, [POINTER, SIZE, SIZE, SIZE, POINTER, POINTER, COUNT])
MAXIMA_BACKWARD = functions(
    LIBRARY, "maxima_backward", DTYPES, [POINTER, POINTER, SIZE, SIZE, SIZE, POINTER, COUNT]
)


def max_over_time(responses: torch.Tensor) -> torch.Tensor:
    """
    The maximum over windows.

    # Parameters

    responses : `torch.Tensor`
        Shape `(words, windows, filters)`, at least one window.

    # Returns

    `torch.Tensor`
        Shape `(words, filters)`. Among equal responses the first gets the gradient.
    """
    if not responses.requires_grad or not torch.is_grad_enabled():
        # PyTorch's `amax` is fast; only `max` remembers where the maximum was.
        return responses.amax(dim=1)
    if responses.dtype in MAXIMA and responses.size(1) > 0 and is_plain(responses, on="cpu"):
        return _Maximum.apply(responses)
    return responses.max(dim=1).values


class _Maximum(torch.autograd.Function):
    """`max_over_time` by compiled code."""

    @staticmethod
    def forward(ctx: Any, responses: torch.Tensor) -> torch.Tensor:
        responses = responses.contiguous()
        words, windows, filters = responses.shape
        maxima = responses.new_empty(words, filters)
        places = responses.new_empty(words, filters, dtype=torch.int32)
        MAXIMA[responses.dtype](
            responses.data_ptr(),
            *responses.shape,
            maxima.data_ptr(),
            places.data_ptr(),
            torch.get_num_threads(),
        )
        ctx.save_for_backward(places)
        ctx.shape = responses.shape
        return maxima

    @staticmethod
    def backward(ctx: Any, gradients: torch.Tensor) -> torch.Tensor:
        """The gradient of each response."""
        (places,) = ctx.saved_tensors
        words, windows, filters = ctx.shape
        if torch.is_grad_enabled() or not is_plain(gradients, places, on="cpu"):
            # PyTorch's operations can be differentiated again.
            zeros = gradients.new_zeros(words, windows, filters)
            return zeros.scatter(1, places.long().unsqueeze(1), gradients.unsqueeze(1))
        gradients, places = gradients.contiguous(), places.to(torch.int32).contiguous()
        responses = gradients.new_empty(words, windows, filters)
        MAXIMA_BACKWARD[gradients.dtype](
            gradients.data_ptr(),
            places.data_ptr(),
            *responses.shape,
            responses.data_ptr(),
            torch.get_num_threads(),
        )
        return responses
