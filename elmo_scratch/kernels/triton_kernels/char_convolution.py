"""
Convolutions over characters and their maxima over a word on a GPU, by one Triton kernel, and by two
in the backward pass. It needs Triton, which PyTorch for CUDA brings along, so import it only where
there is a GPU.
"""

from functools import lru_cache
from typing import Any, List, Optional, Sequence, Tuple

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable
from triton.runtime.interpreter import InterpretedFunction


@triton.jit
def _maxima(  # type: ignore[no-untyped-def]
    ids,
    vectors,
    weights,
    biases,
    blocks,
    maxima,
    windows,
    num_words,
    num_filters,
    padding_id,
    CHARACTERS: tl.constexpr,
    CHARACTERS_AT_ONCE: tl.constexpr,
    DIM: tl.constexpr,
    DIM_AT_ONCE: tl.constexpr,
    KEEPS_WINDOWS: tl.constexpr,
    IS_INTERPRETED: tl.constexpr,
    WORDS_AT_ONCE: tl.constexpr,
    FILTERS_AT_ONCE: tl.constexpr,
):
    """
    The maxima, and the windows that they are of, both `(words, filters)`, for a block of words and
    one of filters of the same width.

    `ids` are `(words, CHARACTERS)`, `vectors` those of characters, `(ids, DIM)`. `weights` lie one
    width after the other, each `(width, DIM, filters of this width)`, and `biases` `(filters,)`.
    `blocks` says of each block of filters its width, the first of its filters, the first filter of
    the width, how many the width has, and where the width's weights begin.
    """
    block = blocks + tl.program_id(0) * 5
    width, first_filter = tl.load(block), tl.load(block + 1)
    first_of_width, num_of_width = tl.load(block + 2), tl.load(block + 3)
    own_weights = weights + tl.load(block + 4)
    words = tl.program_id(1) * WORDS_AT_ONCE + tl.arange(0, WORDS_AT_ONCE)
    filters = first_filter + tl.arange(0, FILTERS_AT_ONCE)
    places = tl.arange(0, CHARACTERS_AT_ONCE)
    dims = tl.arange(0, DIM_AT_ONCE)
    is_word, is_filter = words < num_words, filters < first_of_width + num_of_width
    all_ids = tl.load(
        ids + words[:, None] * CHARACTERS + places[None, :],
        mask=is_word[:, None] & (places < CHARACTERS)[None, :],
        other=padding_id,
    )
    longest = tl.max(tl.max(tl.where(all_ids != padding_id, places[None, :] + 1, 0), 1), 0)
    # The windows that start in the longest word, and one that starts after it.
    num_windows = tl.minimum(longest + 1, CHARACTERS - width + 1)
    highest = tl.full((WORDS_AT_ONCE, FILTERS_AT_ONCE), float("-inf"), tl.float32)
    highest_window = tl.zeros((WORDS_AT_ONCE, FILTERS_AT_ONCE), tl.int32)
    start = 0
    while start < num_windows:
        total = tl.zeros((WORDS_AT_ONCE, FILTERS_AT_ONCE), tl.float32)
        place = 0
        while place < width:
            own = tl.load(ids + words * CHARACTERS + start + place, mask=is_word, other=padding_id)
            read = tl.load(
                vectors + own[:, None] * DIM + dims[None, :], mask=(dims < DIM)[None, :], other=0.0
            )
            part = tl.load(
                own_weights
                + (place * DIM + dims[:, None]) * num_of_width
                + (filters - first_of_width)[None, :],
                mask=(dims < DIM)[:, None] & is_filter[None, :],
                other=0.0,
            )
            if IS_INTERPRETED:
                # Triton's interpreter can't multiply in bfloat16. The products are the same.
                read, part = read.to(tl.float32), part.to(tl.float32)
            total = tl.dot(read, part, total, input_precision="ieee")
            place += 1
        # NaN stays NaN. Of equal responses the first one counts.
        is_higher = (total > highest) | (total != total)
        highest = tl.where(is_higher, total, highest)
        highest_window = tl.where(is_higher, start, highest_window)
        start += 1
    highest += tl.load(biases + filters, mask=is_filter, other=0.0)[None, :]
    at = words[:, None] * num_filters + filters[None, :]
    is_here = is_word[:, None] & is_filter[None, :]
    tl.store(maxima + at, highest, mask=is_here)
    if KEEPS_WINDOWS:
        tl.store(windows + at, highest_window, mask=is_here)


@triton.jit
def _weight_gradients(  # type: ignore[no-untyped-def]
    ids,
    vectors,
    windows,
    gradients,
    blocks,
    of_weights,
    of_biases,
    num_words,
    num_filters,
    CHARACTERS: tl.constexpr,
    DIM: tl.constexpr,
    DIM_AT_ONCE: tl.constexpr,
    WORDS_AT_ONCE: tl.constexpr,
    FILTERS_AT_ONCE: tl.constexpr,
):
    """
    The gradients of the weights of a block of filters at one place of their windows, and of their
    biases, from those of the maxima. The arguments are those of `_maxima`.
    """
    block = blocks + tl.program_id(0) * 5
    width, first_filter = tl.load(block), tl.load(block + 1)
    first_of_width, num_of_width = tl.load(block + 2), tl.load(block + 3)
    own_weights = of_weights + tl.load(block + 4)
    place = tl.program_id(1)
    filters = first_filter + tl.arange(0, FILTERS_AT_ONCE)
    dims = tl.arange(0, DIM_AT_ONCE)
    # No filter has a weight at a place outside of its window.
    is_filter = (filters < first_of_width + num_of_width) & (place < width)
    total = tl.zeros((FILTERS_AT_ONCE, DIM_AT_ONCE), tl.float32)
    of_bias = tl.zeros((FILTERS_AT_ONCE,), tl.float32)
    first = 0
    while first < num_words:
        words = first + tl.arange(0, WORDS_AT_ONCE)
        is_here = (words < num_words)[:, None] & is_filter[None, :]
        at = words[:, None] * num_filters + filters[None, :]
        gradient = tl.load(gradients + at, mask=is_here, other=0.0)
        window = tl.load(windows + at, mask=is_here, other=0)
        own = tl.load(ids + words[:, None] * CHARACTERS + window + place, mask=is_here, other=0)
        read = tl.load(
            vectors + own[:, :, None] * DIM + dims[None, None, :],
            mask=is_here[:, :, None] & (dims < DIM)[None, None, :],
            other=0.0,
        )
        total += tl.sum(gradient[:, :, None] * read.to(tl.float32), axis=0)
        of_bias += tl.sum(gradient, axis=0)
        first += WORDS_AT_ONCE
    tl.store(
        own_weights
        + (place * DIM + dims[None, :]) * num_of_width
        + (filters - first_of_width)[:, None],
        total,
        mask=is_filter[:, None] & (dims < DIM)[None, :],
    )
    tl.store(of_biases + filters, of_bias, mask=is_filter & (place == 0))


@triton.jit
def _character_gradients(  # type: ignore[no-untyped-def]
    weights,
    windows,
    gradients,
    blocks,
    of_characters,
    num_blocks,
    num_filters,
    CHARACTERS: tl.constexpr,
    DIM: tl.constexpr,
    DIM_AT_ONCE: tl.constexpr,
    PLACES_AT_ONCE: tl.constexpr,
    FILTERS_AT_ONCE: tl.constexpr,
):
    """
    The gradients of a word's vectors of characters, `(words, CHARACTERS, DIM)`, at some of their
    places, from those of the maxima. The arguments are those of `_maxima`.
    """
    word = tl.program_id(0)
    first_place = tl.program_id(1) * PLACES_AT_ONCE
    places = first_place + tl.arange(0, PLACES_AT_ONCE)
    dims = tl.arange(0, DIM_AT_ONCE)
    total = tl.zeros((PLACES_AT_ONCE, DIM_AT_ONCE), tl.float32)
    number = 0
    while number < num_blocks:
        block = blocks + number * 5
        width, first_filter = tl.load(block), tl.load(block + 1)
        first_of_width, num_of_width = tl.load(block + 2), tl.load(block + 3)
        own_weights = weights + tl.load(block + 4)
        filters = first_filter + tl.arange(0, FILTERS_AT_ONCE)
        is_filter = filters < first_of_width + num_of_width
        at = word * num_filters + filters
        gradient = tl.load(gradients + at, mask=is_filter, other=0.0)
        window = tl.load(windows + at, mask=is_filter, other=0)
        # Nothing happens where all windows end before these places.
        num_places = tl.where(tl.max(window, 0) + width > first_place, width, 0)
        place = 0
        while place < num_places:
            is_read = (window + place)[None, :] == places[:, None]
            part = tl.load(
                own_weights
                + (place * DIM + dims[None, :]) * num_of_width
                + (filters - first_of_width)[:, None],
                mask=is_filter[:, None] & (dims < DIM)[None, :],
                other=0.0,
            )
            total = tl.dot(
                tl.where(is_read, gradient[None, :], 0.0),
                part.to(tl.float32),
                total,
                input_precision="ieee",
            )
            place += 1
        number += 1
    tl.store(
        of_characters + (word * CHARACTERS + places[:, None]) * DIM + dims[None, :],
        total,
        mask=(places < CHARACTERS)[:, None] & (dims < DIM)[None, :],
    )


IS_INTERPRETED = isinstance(_maxima, InterpretedFunction)
"""Whether Triton's interpreter runs the kernel, on a CPU: `TRITON_INTERPRET=1`."""

WORDS_AT_ONCE = 32
"""The words of a block: of similar lengths, if words are sorted."""

FILTERS_AT_ONCE = 32
"""The filters of a block, fewer if a width has fewer."""

WORDS_ADDED_AT_ONCE = 8
"""How many words' shares in the weights' gradients are added up at once."""

PLACES_AT_ONCE = 16
"""The places of a word whose gradients a block computes: most words have no more."""

Widths = Sequence[torch.Tensor]
"""One tensor for each width of filters."""


def fused_maxima(
    ids: torch.Tensor,
    padding_id: int,
    vectors: torch.Tensor,
    weights: Widths,
    biases: Widths,
    dtype: torch.dtype,
) -> torch.Tensor:
    """
    The highest response of each filter to a window of a word. Fastest if the words are sorted by
    length. Of equal responses the first gets the gradient.

    # Parameters

    ids : `torch.Tensor`
        Shape `(words, characters)`.
    padding_id : `int`
        The id of the padding within a word.
    vectors : `torch.Tensor`
        Shape `(ids, character_dim)`, in float32: the vectors of characters. Id 0 has no gradient.
    weights, biases : `Sequence[torch.Tensor]`
        For each width the matrix of shape `(filters, width * character_dim)` and the biases of
        shape `(filters,)`, in float32.
    dtype : `torch.dtype`
        The precision of products, float32 or bfloat16; sums and gradients are in float32.

    # Returns

    `torch.Tensor`
        Shape `(words, filters)`, over all widths, in float32.
    """
    maxima: torch.Tensor = _FusedMaxima.apply(ids, padding_id, dtype, vectors, *weights, *biases)
    return maxima


class _FusedMaxima(torch.autograd.Function):
    """`fused_maxima` as one node of PyTorch's graph."""

    @staticmethod
    def forward(
        ctx: Any,
        ids: torch.Tensor,
        padding_id: int,
        dtype: torch.dtype,
        vectors: torch.Tensor,
        *parameters: torch.Tensor,
    ) -> torch.Tensor:
        """Takes the weights of all widths, then their biases, as `parameters`."""
        kinds = len(parameters) // 2
        weights, biases = parameters[:kinds], parameters[kinds:]
        (num_words, num_characters), (num_ids, dim) = ids.shape, vectors.shape
        sizes = tuple((weight.size(1) // dim, len(weight)) for weight in weights)
        blocks, ids = _blocks(sizes, dim, ids.device), ids.contiguous()
        # The filters of a place in the window lie side by side.
        laid = torch.cat([weight.t().flatten() for weight in weights]).to(dtype)
        read = vectors.to(dtype).contiguous()
        maxima = vectors.new_empty(num_words, sum(number for _, number in sizes))
        keeps = any(ctx.needs_input_grad)
        windows = maxima.new_empty(maxima.shape if keeps else 0, dtype=torch.int32)
        _maxima[(len(blocks), triton.cdiv(num_words, WORDS_AT_ONCE))](
            ids,
            read,
            laid,
            torch.cat(biases),
            blocks,
            maxima,
            windows if keeps else maxima,
            num_words,
            maxima.size(1),
            padding_id,
            CHARACTERS=num_characters,
            CHARACTERS_AT_ONCE=triton.next_power_of_2(num_characters),
            DIM=dim,
            DIM_AT_ONCE=_dim_at_once(dim),
            KEEPS_WINDOWS=keeps,
            IS_INTERPRETED=IS_INTERPRETED,
            WORDS_AT_ONCE=WORDS_AT_ONCE,
            FILTERS_AT_ONCE=FILTERS_AT_ONCE,
        )
        ctx.sizes, ctx.num_ids = sizes, num_ids
        ctx.dtypes = (ids.dtype, dtype, dtype, windows.dtype)
        ctx.save_for_backward(ids, read, laid, windows)
        return maxima

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        """The gradients of all arguments of `forward`, in their order."""
        # Hooks on saved tensors may have changed their types and layouts.
        ids, read, laid, windows = (
            part.to(dtype).contiguous() for part, dtype in zip(ctx.saved_tensors, ctx.dtypes)
        )
        gradients = gradients.to(torch.float32).contiguous()
        num_words, num_characters = ids.shape
        dim, num_filters = read.size(1), gradients.size(1)
        blocks = _blocks(ctx.sizes, dim, ids.device)
        sizes = dict(
            CHARACTERS=num_characters,
            DIM=dim,
            DIM_AT_ONCE=_dim_at_once(dim),
            FILTERS_AT_ONCE=FILTERS_AT_ONCE,
        )
        with torch.cuda.device_of(ids):
            of_weights = gradients.new_empty(len(laid))
            of_biases = gradients.new_empty(num_filters)
            _weight_gradients[(len(blocks), max(width for width, _ in ctx.sizes))](
                ids,
                read,
                windows,
                gradients,
                blocks,
                of_weights,
                of_biases,
                num_words,
                num_filters,
                WORDS_AT_ONCE=WORDS_ADDED_AT_ONCE,
                **sizes,
            )
            of_characters = gradients.new_empty(num_words, num_characters, dim)
            _character_gradients[(num_words, triton.cdiv(num_characters, PLACES_AT_ONCE))](
                laid,
                windows,
                gradients,
                blocks,
                of_characters,
                len(blocks),
                num_filters,
                PLACES_AT_ONCE=PLACES_AT_ONCE,
                **sizes,
            )
        of_vectors = torch.ops.aten.embedding_dense_backward(
            of_characters, ids, ctx.num_ids, 0, False
        )
        numbers = [number for _, number in ctx.sizes]
        parts = of_weights.split([width * dim * number for width, number in ctx.sizes])
        by_width = [part.view(-1, number).t() for part, number in zip(parts, numbers)]
        return (None, None, None, of_vectors, *by_width, *of_biases.split(numbers))


def _dim_at_once(dim: int) -> int:
    """What a block of vectors of characters is padded to."""
    return max(16, int(triton.next_power_of_2(dim)))


@lru_cache(maxsize=8)
def _blocks(sizes: Tuple[Tuple[int, int], ...], dim: int, device: torch.device) -> torch.Tensor:
    """What the kernels need to know of each block of filters, shape `(blocks, 5)`."""
    blocks: List[Tuple[int, int, int, int, int]] = []
    first, place = 0, 0
    for width, number in sizes:
        for start in range(0, number, FILTERS_AT_ONCE):
            blocks.append((width, first + start, first, number, place))
        first += number
        place += width * dim * number
    return torch.tensor(blocks, dtype=torch.int32, device="cpu").to(device)
