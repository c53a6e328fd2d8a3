"""
Encoders of words by their characters, alone or beside a vector of the word: convolutions, highway
layers, a projection.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.alphabet import (
    CHARACTERS_PER_TOKEN,
    MAX_CHARACTERS_PER_TOKEN,
    NUM_BATCH_IDS,
    PADDING_ID,
    sentence_marks,
)
from elmo_scratch.kernels import (
    FrozenWeightCache,
    Linear,
    MixedPrecision,
    can_convolve,
    convolved_maxima,
    highway_gate,
    max_over_time,
    maxima_on_gpu,
    sigmoid_,
    words_at_once,
)
from elmo_scratch.modules.token_encoders.spelled_word_encoder import (
    CACHED_WORDS,
    SpelledWordEncoder,
)
from elmo_scratch.modules.token_encoders.token_encoder import TokenEncoder, check_ids

ACTIVATIONS: Dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
}

WORDS_TOGETHER = 64
"""
Where products are rounded, words are padded to a multiple of so many: oneDNN compiles kernels for
each number of rows, and the number of words differs in nearly every batch.
"""


class CharacterConvolution(MixedPrecision):
    """
    Convolutions of several widths over the characters of a word, the maximum of each filter over
    the word, then an activation (Kim et al. 2016, "Character-Aware Neural Language Models", section
    2.2).

    `filters` are pairs of a width, in characters, and the number of filters of that width;
    `activation` is `"relu"` or `"tanh"`. There are `num_ids` ids, among them 0, which no character
    has, and `padding_id` for the padding within a word. All windows that lie wholly in the padding
    are equal, so only one of them is computed.
    """

    def __init__(
        self,
        character_dim: int,
        filters: Sequence[Tuple[int, int]],
        activation: str,
        *,
        num_ids: int = NUM_BATCH_IDS,
        padding_id: int = PADDING_ID,
    ) -> None:
        super().__init__()
        self.padding_id = padding_id
        self.filters = tuple((width, number) for width, number in filters)
        self.activation = activation
        self.output_dim = sum(number for _, number in filters)
        vectors = torch.empty(num_ids, character_dim).uniform_(-1.0, 1.0)
        vectors[0] = 0.0
        self.embedding = torch.nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=0)
        self.convolutions = torch.nn.ModuleList()
        for width, number in filters:
            self.convolutions.append(Linear(width * character_dim, number))
        self._packed = FrozenWeightCache[List[torch.Tensor]]()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """
        Ids in a batch, shape `(words, characters)` → `(words, filters)`. Fastest if the words are
        sorted by length, shortest first.
        """
        maxima: Optional[torch.Tensor] = None
        if len(ids) > 0 and self._is_as_made():
            maxima = self._maxima_on_gpu(ids)
            if maxima is None:
                maxima = self._compiled_maxima(ids)
        if maxima is None:
            maxima = self._plain_maxima(ids)
        return ACTIVATIONS[self.activation](maxima)

    def _plain_maxima(self, ids: torch.Tensor) -> torch.Tensor:
        """The maxima by PyTorch's operations, shape `(words, filters)`."""
        is_trained = torch.is_grad_enabled() and any(
            parameter.requires_grad for parameter in self.parameters()
        )
        missing = self._missing(len(ids)) if is_trained else 0
        ids = torch.cat([ids.new_full((missing, ids.size(1)), self.padding_id), ids])
        # The group that is not full has the shortest words, which take the least time.
        at_once = words_at_once(ids.device)
        odd = len(ids) % at_once
        groups = [ids[:odd], *ids[odd:].split(at_once)]
        groups = [group for group in groups if len(group) > 0] or [ids]
        return torch.cat([self._maxima(group) for group in groups])[missing:]

    def _compiled_maxima(self, ids: torch.Tensor) -> Optional[torch.Tensor]:
        """The maxima by compiled code, shape `(words, filters)`, if there is any for this case."""
        weights: List[Any] = [convolution.weight for convolution in self.convolutions]
        biases: List[Any] = [convolution.bias for convolution in self.convolutions]
        dtype, vectors = self.matmul_dtype_for(weights[0]), self.embedding.weight
        if not can_convolve(vectors, ids, ids.size(1), dtype, weights, biases):
            return None
        word_lengths = lengths(ids, self.padding_id)
        characters = self.embedding(self._needed(ids, int(word_lengths.max())))
        return convolved_maxima(
            characters, word_lengths, ids.size(1), dtype, weights, biases, self._packed
        )

    def _maxima_on_gpu(self, ids: torch.Tensor) -> Optional[torch.Tensor]:
        """
        The maxima by one kernel for a GPU, shape `(words, filters)`, if there is one for this case.
        """
        embedding = self.embedding
        if not (
            type(embedding) is torch.nn.Embedding
            and not (embedding._forward_pre_hooks or embedding._forward_hooks)
            and not (embedding._backward_pre_hooks or embedding._backward_hooks)
            and embedding.padding_idx == 0
            and embedding.max_norm is None
            and not (embedding.scale_grad_by_freq or embedding.sparse)
        ):
            return None
        weights: List[Any] = [convolution.weight for convolution in self.convolutions]
        biases: List[Any] = [convolution.bias for convolution in self.convolutions]
        dtype = self.matmul_dtype_for(embedding.weight)
        return maxima_on_gpu(ids, self.padding_id, embedding.weight, weights, biases, dtype)

    def _apply(self, *arguments: Any, **settings: Any) -> "CharacterConvolution":
        self._packed.forget()
        return super()._apply(*arguments, **settings)

    def _is_as_made(self) -> bool:
        """
        Whether the convolutions are plain `Linear` layers of the original sizes, without hooks.
        """
        dim = self.embedding.embedding_dim
        return all(
            type(convolution) is Linear
            and not (convolution._forward_pre_hooks or convolution._forward_hooks)
            and not (convolution._backward_pre_hooks or convolution._backward_hooks)
            and convolution.weight.shape == (number, width * dim)
            for (width, number), convolution in zip(self.filters, self.convolutions)
        )

    def _maxima(self, ids: torch.Tensor) -> torch.Tensor:
        """The maxima by PyTorch's operations, for words of similar length."""
        longest = self._longest(ids)
        characters = self.embedding(self._needed(ids, longest))  # (words, needed, character_dim)
        wide = characters.dtype
        # Rounded before the windows are copied, where there are the fewest numbers.
        characters = characters.to(self.matmul_dtype_for(characters))
        maxima: List[torch.Tensor] = []
        for (width, _), convolution in zip(self.filters, self.convolutions):
            # The windows that start in the longest word, and one that starts after it.
            num_windows = min(longest + 1, ids.size(1) - width + 1)
            windows = characters[:, : num_windows + width - 1].unfold(1, width, 1)
            windows = windows.transpose(2, 3).flatten(2)  # (words, windows, width * character_dim)
            responses = convolution(windows.flatten(0, 1)).unflatten(0, (len(ids), num_windows))
            maxima.append(max_over_time(responses).to(wide))
        return torch.cat(maxima, dim=1)

    def _needed(self, ids: torch.Tensor, longest: int) -> torch.Tensor:
        """The ids that any window needs, shape `(words, needed)`."""
        return ids[:, : longest + max(width for width, _ in self.filters)]

    def _missing(self, num_words: int) -> int:
        """How many words are added as padding; none unless products are rounded."""
        weight = self.embedding.weight
        is_rounded = self.matmul_dtype_for(weight) != weight.dtype
        return -num_words % WORDS_TOGETHER if is_rounded else 0

    def _longest(self, ids: torch.Tensor) -> int:
        """The length of the longest word."""
        return int(lengths(ids, self.padding_id).max()) if len(ids) else 0


def lengths(ids: torch.Tensor, padding_id: int = PADDING_ID) -> torch.Tensor:
    """How many ids each word has before its padding: `(words, characters)` → `(words,)`."""
    places = torch.arange(1, ids.size(1) + 1, device=ids.device)
    return torch.where(ids != padding_id, places, 0).amax(dim=1)


class Highway(torch.nn.Module):
    """
    A gate `g` between the input and a nonlinear function of it, for vectors of size `dim`:

        g = σ(x C + c)
        y = g · relu(x T + t) + (1 - g) · x

    Srivastava, Greff and Schmidhuber 2015, equation 3; weights named as in `bilm-tf`.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.transform = Linear(dim, dim)
        self.carry = Linear(dim, dim)
        # Initially the layer carries more of its input than it transforms.
        torch.nn.init.constant_(self.carry.bias, -2.0)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Shape `(rows, dim)` → `(rows, dim)`."""
        dtype = self.carry.matmul_dtype_for(self.carry.weight)
        transformed, carried = self.transform(vectors, dtype), self.carry(vectors, dtype)
        if any(part.requires_grad for part in (vectors, transformed, carried)):
            return highway_gate(vectors, transformed, carried)
        transformed, carried = transformed.to(vectors.dtype), carried.to(vectors.dtype)
        return torch.lerp(vectors, torch.relu(transformed), sigmoid_(carried))


def check_settings(
    filters: Sequence[Tuple[int, int]], activation: str, max_characters: int
) -> None:
    """Raises a `ValueError` if these parameters of `CharCnnEncoder` make no sense."""
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"expected an `activation` among {', '.join(ACTIVATIONS)}, but got {activation!r}"
        )
    if max_characters not in CHARACTERS_PER_TOKEN:
        raise ValueError(
            f"expected `max_characters_per_token` from {CHARACTERS_PER_TOKEN[0]} to "
            f"{CHARACTERS_PER_TOKEN[-1]}, but got {max_characters}"
        )
    if not filters:
        raise ValueError("expected at least one pair of a width and a number in `filters`")
    for width, number in filters:
        if not 1 <= width <= max_characters or number < 1:
            raise ValueError(
                f"expected in `filters` widths from 1 to {max_characters} and at least one filter "
                f"of each, but got {[width, number]}"
            )


@TokenEncoder.register("char_cnn")
class CharCnnEncoder(SpelledWordEncoder):
    """
    Convolutions over the characters of a word, their maxima through highway layers, and a
    projection.

    Registered as a `TokenEncoder` with name "char_cnn".

    # Parameters

    dim : `int`
        The size of a vector. If it equals the number of filters there is no projection.
    character_dim : `int`, optional (default = `16`, the released models' value)
        The size of a character's vector.
    filters : `List[Tuple[int, int]]`
        Pairs of a width, in characters, and the number of filters of that width.
    num_highway : `int`, optional (default = `2`, the released original model's value)
        How many highway layers.
    activation : `str`, optional (default = `"relu"`)
        The activation of the convolutions: `"relu"` or `"tanh"`.
    max_characters_per_token : `int`, optional (default = `50`, the released models' value)
        How many ids a word has in `forward`.
    cached_words : `int`, optional (default = `16384`)
        How many words' vectors are cached; 0 caches none.

    # Raises

    ValueError
        If a size, the filters, the activation or the number of characters make no sense.

    # Source

    Peters et al. 2018, section 3.4; `BidirectionalLanguageModelGraph._build_word_char_embeddings`
    of `bilm-tf`.
    """

    id_type = torch.int16

    def __init__(
        self,
        *,
        dim: int,
        filters: List[Tuple[int, int]],
        character_dim: int = 16,
        num_highway: int = 2,
        activation: str = "relu",
        max_characters_per_token: int = MAX_CHARACTERS_PER_TOKEN,
        cached_words: int = CACHED_WORDS,
    ) -> None:
        check_settings(filters, activation, max_characters_per_token)
        begin, end = sentence_marks(max_characters_per_token)
        super().__init__(dim, begin=begin, end=end, cached_words=cached_words)
        if character_dim < 1:
            raise ValueError(f"expected `character_dim` of 1 or more, but got {character_dim}")
        if num_highway < 0:
            raise ValueError(f"expected `num_highway` of 0 or more, but got {num_highway}")
        self.max_characters_per_token = max_characters_per_token
        self.convolution = CharacterConvolution(character_dim, filters, activation)
        num_filters = self.convolution.output_dim
        self.highways = torch.nn.ModuleList()
        for _ in range(num_highway):
            self.highways.append(Highway(num_filters))
        self.projection = Linear(num_filters, dim) if num_filters != dim else torch.nn.Identity()

    def lengths(self, ids: torch.Tensor) -> torch.Tensor:
        return lengths(ids)

    def encode_sorted(self, ids: torch.Tensor) -> torch.Tensor:
        vectors = self.convolution(ids)
        for highway in self.highways:
            vectors = highway(vectors)
        return self.projection(vectors)

    def check_range(self, ids: torch.Tensor) -> None:
        check_ids(ids, "characters", NUM_BATCH_IDS)

    def check_token_ids(self, ids: torch.Tensor) -> None:
        super().check_token_ids(ids)
        if ids.size(-1) != self.max_characters_per_token:
            raise ConfigurationError(
                f"the biLM reads {self.max_characters_per_token} characters of each word, but its "
                f"indexer makes {ids.size(-1)}. Set the indexer's `max_characters_per_token` to "
                f"{self.max_characters_per_token}."
            )


class WordSettings(NamedTuple):
    """The number of words, and the size of a word's vector."""

    num_words: int
    dim: int


class CharacterSettings(NamedTuple):
    """
    The number of characters, marks included; the size of a character's vector; `filters`,
    `num_highway` and `activation` as in `CharCnnEncoder`; and the id of the padding within a word.
    """

    num_characters: int
    dim: int
    filters: Sequence[Tuple[int, int]]
    num_highway: int
    activation: str
    padding_id: int


class CharWordEncoder(SpelledWordEncoder):
    """
    Joins a word's own vector and the maxima of convolutions over its characters, these through
    highway layers, and projects the whole. A word's row of ids holds the id of the word, if there
    are `words`, then the ids of its characters, if there are `characters`. All ids count from 1.

    # Parameters

    dim : `int`
        The size of a vector.
    words : `Optional[WordSettings]`
        The table of words; `None` for no vectors of words.
    characters : `Optional[CharacterSettings]`
        The convolutions; `None` for none.
    begin, end : `Sequence[int]`
        The ids of the marks of sentence boundaries, as many as each word has.
    cached_words : `int`, optional (default = `16384`)
        How many words' vectors are cached; 0 caches none.

    # Raises

    ValueError
        If there are neither `words` nor `characters`, or `dim` or `cached_words` make no sense.

    # Source

    `ConvTokenEmbedder` of ELMoForManyLangs; Che et al. 2018, "Towards Better UD Parsing", section
    2.2.
    """

    id_type = torch.int32

    def __init__(
        self,
        *,
        dim: int,
        words: Optional[WordSettings],
        characters: Optional[CharacterSettings],
        begin: Sequence[int],
        end: Sequence[int],
        cached_words: int = CACHED_WORDS,
    ) -> None:
        super().__init__(dim, begin=begin, end=end, cached_words=cached_words)
        self.embedding: Optional[torch.nn.Embedding] = None
        self.convolution: Optional[CharacterConvolution] = None
        self.highways = torch.nn.ModuleList()
        joined_dim = 0
        if words is not None:
            self.embedding = torch.nn.Embedding(1 + words.num_words, words.dim, padding_idx=0)
            joined_dim += words.dim
        if characters is not None:
            self.convolution = CharacterConvolution(
                characters.dim,
                characters.filters,
                characters.activation,
                num_ids=1 + characters.num_characters,
                padding_id=characters.padding_id,
            )
            num_filters = self.convolution.output_dim
            for _ in range(characters.num_highway):
                self.highways.append(Highway(num_filters))
            joined_dim += num_filters
        if joined_dim == 0:
            raise ValueError("expected `words`, `characters` or both, but got neither")
        self.projection = Linear(joined_dim, dim)

    def lengths(self, ids: torch.Tensor) -> torch.Tensor:
        if self.convolution is None:
            return ids.new_zeros(len(ids))
        return lengths(self._characters(ids), self.convolution.padding_id)

    def encode_sorted(self, ids: torch.Tensor) -> torch.Tensor:
        parts: List[torch.Tensor] = []
        if self.embedding is not None:
            parts.append(self.embedding(ids[:, 0]))
        if self.convolution is not None:
            vectors = self.convolution(self._characters(ids))
            for highway in self.highways:
                vectors = highway(vectors)
            parts.append(vectors)
        return self.projection(torch.cat(parts, dim=1))

    def check_range(self, ids: torch.Tensor) -> None:
        if self.embedding is not None:
            check_ids(ids[..., 0], "words", self.embedding.num_embeddings)
        if self.convolution is not None:
            num_ids = self.convolution.embedding.num_embeddings
            check_ids(self._characters(ids), "characters", num_ids)

    def _characters(self, ids: torch.Tensor) -> torch.Tensor:
        """The ids of characters among those of words, shape `(*, ids)` → `(*, characters)`."""
        return ids if self.embedding is None else ids[..., 1:]
