"""
Convolutions over characters and their maxima over a word by one Triton kernel, for weights that are
not trained. It needs Triton, which PyTorch for CUDA brings along, so import it only where there is
a GPU.
"""

from functools import lru_cache
from typing import List, Sequence, Tuple

import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction


@triton.jit
def _maxima(  # type: ignore[no-untyped-def]
    ids,
    vectors,
    weights,
    biases,
    blocks,
    maxima,
    num_words,
    num_filters,
    padding_id,
    CHARACTERS: tl.constexpr,
    CHARACTERS_AT_ONCE: tl.constexpr,
    DIM: tl.constexpr,
    DIM_AT_ONCE: tl.constexpr,
    IS_INTERPRETED: tl.constexpr,
    WORDS_AT_ONCE: tl.constexpr,
    FILTERS_AT_ONCE: tl.constexpr,
):
    """
    The maxima `(words, filters)` for a block of words and one of filters of the same width.

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
        # NaN stays NaN.
        highest = tl.where((total > highest) | (total != total), total, highest)
        start += 1
    highest += tl.load(biases + filters, mask=is_filter, other=0.0)[None, :]
    tl.store(
        maxima + words[:, None] * num_filters + filters[None, :],
        highest,
        mask=is_word[:, None] & is_filter[None, :],
    )


IS_INTERPRETED = isinstance(_maxima, InterpretedFunction)
"""Whether Triton's interpreter runs the kernel, on a CPU: `TRITON_INTERPRET=1`."""

WORDS_AT_ONCE = 32
"""The words of a block: of similar lengths, if words are sorted."""

FILTERS_AT_ONCE = 32
"""The filters of a block, fewer if a width has fewer."""


def fused_maxima(
    ids: torch.Tensor,
    padding_id: int,
    vectors: torch.Tensor,
    weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor],
    dtype: torch.dtype,
) -> torch.Tensor:
    """
    The highest response of each filter to a window of a word. Fastest if the words are sorted by
    length.

    # Parameters

    ids : `torch.Tensor`
        Shape `(words, characters)`.
    padding_id : `int`
        The id of the padding within a word.
    vectors : `torch.Tensor`
        Shape `(ids, character_dim)`: the vectors of characters.
    weights, biases : `Sequence[torch.Tensor]`
        For each width the matrix of shape `(filters, width * character_dim)` and the biases of
        shape `(filters,)`.
    dtype : `torch.dtype`
        The precision of products, float32 or bfloat16; sums are in float32.

    # Returns

    `torch.Tensor`
        Shape `(words, filters)`, over all widths, in float32.
    """
    num_words, num_characters = ids.shape
    dim = vectors.size(1)
    sizes = tuple((weight.size(1) // dim, len(weight)) for weight in weights)
    blocks = _blocks(sizes, dim, ids.device)
    maxima = vectors.new_empty(num_words, sum(number for _, number in sizes), dtype=torch.float32)
    _maxima[(len(blocks), triton.cdiv(num_words, WORDS_AT_ONCE))](
        ids.contiguous(),
        vectors.to(dtype).contiguous(),
        # Transposed: the filters of a place in the window lie side by side.
        torch.cat([weight.t().flatten() for weight in weights]).to(dtype),
        torch.cat(list(biases)),
        blocks,
        maxima,
        num_words,
        maxima.size(1),
        padding_id,
        CHARACTERS=num_characters,
        CHARACTERS_AT_ONCE=triton.next_power_of_2(num_characters),
        DIM=dim,
        DIM_AT_ONCE=max(16, triton.next_power_of_2(dim)),
        IS_INTERPRETED=IS_INTERPRETED,
        WORDS_AT_ONCE=WORDS_AT_ONCE,
        FILTERS_AT_ONCE=FILTERS_AT_ONCE,
    )
    return maxima


@lru_cache(maxsize=8)
def _blocks(sizes: Tuple[Tuple[int, int], ...], dim: int, device: torch.device) -> torch.Tensor:
    """What the kernel needs to know of each block of filters, shape `(blocks, 5)`."""
    blocks: List[Tuple[int, int, int, int, int]] = []
    first, place = 0, 0
    for width, number in sizes:
        for start in range(0, number, FILTERS_AT_ONCE):
            blocks.append((width, first + start, first, number, place))
        first += number
        place += width * dim * number
    return torch.tensor(blocks, dtype=torch.int32, device="cpu").to(device)
