"""The bidirectional language model: a token encoder and two stacks of LSTMs."""

from contextlib import contextmanager
from functools import partial
from typing import Iterable, Iterator, List, NamedTuple, Optional, Tuple

import torch
from allennlp.common import FromParams

from elmo_scratch.kernels import Dropout, LstmState, MixedPrecision, side_by_side
from elmo_scratch.modules.lstm import LstmStack, StateMemory, check_dropout
from elmo_scratch.modules.sequences import PackedOrder, PackedVectors, sentence_lengths
from elmo_scratch.modules.token_encoders import EncodedTokens, TokenEncoder
from elmo_scratch.modules.token_encoders.spelled_word_encoder import UniqueWords


class BiLmOutput(NamedTuple):
    """
    The layers of a biLM for a batch.

    # Parameters

    layers : `torch.Tensor`
        Shape `(layers, batch, positions, width)`: the token layer (its vectors twice, side by side)
        and the LSTM layers, the left-to-right half first. Zero where `mask` is `False`.
    mask : `torch.BoolTensor`
        Shape `(batch, positions)`.
    """

    layers: torch.Tensor
    mask: torch.Tensor


class ReadSentences(NamedTuple):
    """
    The output for sentences, and the state at the end of each, of shape `(layers, batch, ...)` over
    the layers of both directions.
    """

    output: BiLmOutput
    state: LstmState


class ReadWindows(NamedTuple):
    """
    The result for windows of running text.

    `left_to_right` and `right_to_left`, each of shape `(batch, positions, dim)`, are the last layer
    of each direction, in its own order of reading; zero where the mask is `False`. `state`, of
    shape `(layers, batch, ...)`, is the state at the end of each row.
    """

    left_to_right: torch.Tensor
    right_to_left: torch.Tensor
    state: LstmState


@contextmanager
def eval_mode(module: torch.nn.Module) -> Iterator[None]:
    """
    A context in which `module` is in evaluation mode. Afterwards each part has its former mode
    again.
    """
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


class BiLm(torch.nn.Module, FromParams):
    """
    Two stacks of LSTMs over one token encoder: one reads each sentence left to right, one right to
    left. They share no states, so a left-to-right state knows nothing of what follows its token,
    and a right-to-left state nothing of what precedes it in its sentence.

    # Parameters

    token_encoder : `TokenEncoder`
        Makes the token layer; its `dim` is the `dim` of each direction.
    num_layers : `int`, optional (default = `2`)
        LSTM layers of each direction.
    cell_size : `int`
        Memory cells of each LSTM layer. If it equals `dim`, outputs are not projected.
    dropout : `float`, optional (default = `0.1`)
        Share of each LSTM layer's inputs that is dropped in training.
    locked_dropout : `bool`, optional (default = `False`)
        Whether `dropout` drops the same numbers of a vector at all positions of a sentence, or of a
        row of a window.
    recurrent_dropout : `float`, optional (default = `0.0`)
        Share of each sentence's outputs that is dropped in training, the same ones at every step.
    recurrent_weight_dropout : `float`, optional (default = `0.0`)
        Share of each LSTM layer's recurrent weights that is dropped in training, the same ones for
        all of a batch.
    word_dropout : `float`, optional (default = `0.0`)
        Share of the different words of a batch whose vectors the LSTMs read as zeros in training,
        wherever the words stand. The rest is scaled up. The marks of sentence boundaries always
        stay, and so does the token layer of the output.
    cell_clip, projection_clip : `float`, optional (default = `3.0`)
        Bounds of memory cells and of projected outputs. `None` never clips.
    use_skip_connections : `bool`, optional (default = `True`)
        From the second layer on, add a layer's input to its output.
    state : `str`, optional (default = `"reset"`)
        Where sentences start: `"reset"` from zeros; `"carry"` from the last state of the same row
        in the batch before; `"warm"` from the state that `warm_up` found.
    matmul_dtype : `str`, optional (default = `"float32"`)
        With `"bfloat16"` matrix products run in bfloat16, except on processors where that is slower
        (see `Bfloat16Speed`); weights and memory cells stay in float32.

    # Raises

    ValueError
        If there is no such `state` or `matmul_dtype`, no LSTM layer or memory cell, a clip that is
        not above 0, or a dropout that is not in `[0, 1)`.

    # Source

    Peters et al. 2018, "Deep contextualized word representations", section 3.1. `locked_dropout`
    and `word_dropout` are those of Gal and Ghahramani 2016, the latter with one draw for a batch as
    in Merity et al. 2018, whose is also `recurrent_weight_dropout`.
    """

    def __init__(
        self,
        *,
        token_encoder: TokenEncoder,
        cell_size: int,
        num_layers: int = 2,
        dropout: float = 0.1,
        locked_dropout: bool = False,
        recurrent_dropout: float = 0.0,
        recurrent_weight_dropout: float = 0.0,
        word_dropout: float = 0.0,
        cell_clip: Optional[float] = 3.0,
        projection_clip: Optional[float] = 3.0,
        use_skip_connections: bool = True,
        state: str = "reset",
        matmul_dtype: str = "float32",
    ) -> None:
        super().__init__()
        for name, number in (("num_layers", num_layers), ("cell_size", cell_size)):
            if number < 1:
                raise ValueError(f"expected `{name}` of 1 or more, but got {number}")
        for name, clip in (("cell_clip", cell_clip), ("projection_clip", projection_clip)):
            if clip is not None and clip <= 0.0:
                raise ValueError(f"expected `{name}` above 0, or null for none, but got {clip}")
        check_dropout("word_dropout", word_dropout)
        self.dim = token_encoder.dim
        self.width = 2 * token_encoder.dim
        self.num_layers = 1 + num_layers
        """The number of layers to mix: the token layer and the LSTM layers."""
        self.token_encoder = token_encoder
        self.word_dropout = Dropout(word_dropout)
        new_stack = partial(
            LstmStack,
            token_encoder.dim,
            num_layers,
            cell_size,
            dropout=dropout,
            locked_dropout=locked_dropout,
            recurrent_dropout=recurrent_dropout,
            recurrent_weight_dropout=recurrent_weight_dropout,
            cell_clip=cell_clip,
            projection_clip=projection_clip,
            use_skip_connections=use_skip_connections,
        )
        self.left_to_right, self.right_to_left = new_stack(), new_stack()
        self._cell_size = cell_size
        self.state_memory = self.new_state_memory(state)
        MixedPrecision.set_everywhere(self, matmul_dtype)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> BiLmOutput:
        """
        # Parameters

        ids : `torch.Tensor`
            Shape `(batch, tokens)`, or `(batch, tokens, characters)`, as the token encoder reads.
        mask : `torch.BoolTensor`
            Shape `(batch, tokens)`; real tokens come first in each row.

        # Returns

        `BiLmOutput`
            `num_layers` layers over `positions`, sentence boundaries included.

        # Raises

        ValueError
            If real tokens don't come first in each row, or the `warm` state is not known.
        """
        tokens = self.token_encoder(ids, mask)
        scales: Optional[torch.Tensor] = None  # (batch, positions)
        if self.drops_words:
            scales = torch.ones(tokens.mask.shape, device=mask.device)
            scales[:, 1:-1][mask] = self.word_scales(ids[mask])
        return self.read_tokens(tokens, scales=scales).output

    @property
    def drops_words(self) -> bool:
        """Whether words are dropped now."""
        return self.training and self.word_dropout.p > 0.0

    def word_scales(self, ids: torch.Tensor) -> torch.Tensor:
        """
        Draws the factor by which word dropout multiplies the vector of each word, 0 for a word that
        is dropped: the same for all places of a word. Ids as the token encoder reads them,
        `(words,)` or `(words, characters)`, → `(words,)`.
        """
        found = UniqueWords.of(ids if ids.dim() > 1 else ids.unsqueeze(1))
        drawn: torch.Tensor = self.word_dropout(torch.ones(len(found.ids), device=ids.device))
        return drawn[found.places]

    def read_tokens(
        self,
        tokens: EncodedTokens,
        start: Optional[LstmState] = None,
        *,
        positions_at_once: Optional[int] = None,
        layers: Optional[torch.Tensor] = None,
        scales: Optional[torch.Tensor] = None,
    ) -> ReadSentences:
        """
        Runs the LSTMs over the vectors of tokens and sentence boundaries.

        # Parameters

        tokens : `EncodedTokens`
            Vectors of shape `(batch, positions, dim)` and their mask.
        start : `LstmState`, optional (default = `None`)
            Where sentences start, of shape `(layers, batch, ...)` over the layers of both
            directions. By default the state memory says it, and keeps the last states.
        positions_at_once : `int`, optional (default = `None`)
            Read the sentences by pieces of so many positions, over all sentences, though a piece
            has at least one of each sentence that has not ended. The vectors, and with them the
            layers, may then be on another device than the biLM, and there are no gradients.
        layers : `torch.Tensor`, optional (default = `None`)
            Where to write the layers, of shape `(layers, batch * positions, 2, dim)`, zeros but for
            the token layer. By default new memory.
        scales : `torch.Tensor`, optional (default = `None`)
            Shape `(batch, positions)`: what the LSTMs read is multiplied by it. The token layer is
            not.
        """
        vectors, mask = tokens
        begin = self.state_memory.start(vectors, len(mask)) if start is None else start
        order = PackedOrder.of(mask)
        has_tokens, device = layers is not None, begin.hidden.device
        if layers is None:
            layers = vectors.new_zeros(self.num_layers, mask.numel(), 2, self.dim)
        finals: List[LstmState] = []
        # A list, so that the states are kept until both directions have been read.
        directions = list(self._directions(order, begin))
        with side_by_side(device) as part:
            for direction, (stack, places, state) in enumerate(directions):
                with part():
                    for steps, batch_sizes in order.pieces(positions_at_once):
                        here = places[steps]
                        packed = vectors.flatten(0, 1).index_select(0, here)
                        if scales is not None:
                            packed = packed * scales.flatten()[here].unsqueeze(1).to(packed)
                        inputs = PackedVectors(packed.to(device), batch_sizes, order.sorted_indices)
                        read = stack(inputs, state)
                        state = read.state
                        for number, outputs in enumerate(read.layers, start=1):
                            layers[number, :, direction].index_copy_(0, here, outputs.to(layers))
                finals.append(state)
        if not has_tokens:
            layers[0] = vectors.masked_fill(~mask.unsqueeze(-1), 0.0).view(-1, 1, self.dim)
        final = order.unsorted(finals)
        if start is None:
            self.state_memory.keep(final)
        layers = layers.view(self.num_layers, *mask.shape, self.width)
        return ReadSentences(BiLmOutput(layers, mask), final)

    def read_windows(
        self,
        left_to_right: torch.Tensor,
        right_to_left: torch.Tensor,
        mask: torch.Tensor,
        start: LstmState,
    ) -> ReadWindows:
        """
        Runs the LSTMs over windows of running text, where each direction reads its own window.

        The vectors, shape `(batch, positions, dim)`, are in each direction's own order of reading.
        Real positions come first in each row of `mask`, shape `(batch, positions)`. Rows start from
        `start`, of shape `(layers, batch, ...)`.
        """
        order = PackedOrder.of(mask)
        places = order.left_to_right  # Both directions' windows begin where they are read first.
        tops: List[torch.Tensor] = []
        finals: List[LstmState] = []
        windows = (left_to_right, right_to_left)
        for vectors, (stack, _, state) in zip(windows, self._directions(order, start)):
            packed = vectors.flatten(0, 1).index_select(0, places)
            inputs = PackedVectors(packed, order.batch_sizes, order.sorted_indices)
            read = stack(inputs, state)
            laid = vectors.new_zeros(mask.numel(), self.dim).index_copy(0, places, read.layers[-1])
            tops.append(laid.view(*mask.shape, self.dim))
            finals.append(read.state)
        return ReadWindows(tops[0], tops[1], order.unsorted(finals))

    def _directions(
        self, order: PackedOrder, start: LstmState
    ) -> Iterator[Tuple[LstmStack, torch.Tensor, LstmState]]:
        """Yields each direction's LSTMs, the places that they read, and their sorted states."""
        hidden, cell = (part.index_select(1, order.sorted_indices) for part in start)
        states = map(LstmState, hidden.chunk(2), cell.chunk(2))
        stacks = (self.left_to_right, self.right_to_left)
        return zip(stacks, (order.left_to_right, order.right_to_left), states)

    def new_state_memory(self, state: str) -> StateMemory:
        """A state memory of the kind `state` for this network."""
        return StateMemory(state, 2 * (self.num_layers - 1), self.dim, self._cell_size)

    def use_state(self, state: str) -> None:
        """
        Changes the kind of state, one of the constructor's; another raises a `ValueError`. The
        remembered state is kept only if the kind stays the same; otherwise `"warm"` needs `warm_up`
        again.
        """
        if state != self.state_memory.state:
            like = next(self.parameters())
            self.state_memory = self.new_state_memory(state).to(like.device, like.dtype)

    @property
    def stateful(self) -> bool:
        """
        Whether states are carried from batch to batch: AllenNLP's name for it, by which its
        `ModelTestCase` knows what to reset.
        """
        return self.state_memory.state == "carry"

    @stateful.setter
    def stateful(self, carries: bool) -> None:
        """
        Whether states are carried from batch to batch. AllenNLP's `ModelTestCase` uses this name to
        find out what to reset.
        """
        self.use_state("carry" if carries else "reset")

    @property
    def _elmo_lstm(self) -> "BiLm":
        """The module that holds the states, under AllenNLP's name."""
        return self

    def reset_states(self) -> None:
        """Lets every sentence of the next batch start from zeros if `state` is `"carry"`."""
        self.state_memory.forget()

    def warm_up(self, batches: Iterable[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        """
        Reads sentences one after the other, each from the state at the end of the one before, and
        lets every sentence start from the last state from now on. That state is stored with the
        weights.

        # Parameters

        batches : `Iterable[Tuple[torch.Tensor, torch.Tensor]]`
            Ids and masks for `forward`: a text in its order, in batches of any size.

        # Raises

        ValueError
            If `state` is not `"warm"`, or there is no sentence.
        """
        with eval_mode(self):
            state = final_state(self, batches)
        if state is None:
            raise ValueError("expected at least one sentence to warm up with, but got none")
        self.state_memory.fix(state)


def read_in_pieces(
    bilm: BiLm, ids: torch.Tensor, mask: torch.Tensor, start: LstmState, positions_at_once: int
) -> ReadSentences:
    """
    Runs a biLM over long sentences by pieces, and puts the layers together on the CPU. Each
    direction starts a piece from its state at the end of its piece before; left to right begins
    with the first piece, right to left with the last. There is no dropout and there are no
    gradients. Besides the result, memory use is bounded by `positions_at_once`: the positions of a
    piece over all sentences, though a piece has at least one of each sentence that has not ended.

    The biLM is in evaluation mode, on any device. `ids`, shape `(batch, tokens)` or
    `(batch, tokens, characters)`, and `mask`, shape `(batch, tokens)`, are on the CPU. `start`, of
    shape `(layers, batch, ...)`, and the resulting state are on the biLM's device, the output on
    the CPU. Raises a `ValueError` if real tokens don't come first in each row.
    """
    batch, tokens = mask.shape
    positions, device = tokens + 2, start.hidden.device
    lengths = sentence_lengths(mask)  # (batch,)
    bounded_mask = torch.arange(positions, device=mask.device) < lengths.unsqueeze(1) + 2
    # Both directions of a position are side by side, as in the result.
    layers = torch.zeros(bilm.num_layers, batch * positions, 2, bilm.dim, device="cpu")
    with torch.no_grad():
        # An empty sentence consists of the two marks.
        no_ids, no_mask = ids.new_zeros(1, 0, *ids.shape[2:]), mask.new_zeros(1, 0)
        marks = bilm.token_encoder(no_ids.to(device), no_mask.to(device)).vectors[0]  # (2, dim)
        begin, end = marks.to(layers)
        begins = torch.arange(batch, device=mask.device) * positions
        layers[0, begins] = begin
        layers[0, begins + lengths + 1] = end
        rows, places = mask.nonzero(as_tuple=True)
        for row, place in zip(rows.split(positions_at_once), places.split(positions_at_once)):
            vectors = bilm.token_encoder.encode_words(ids[row, place].long().to(device))
            layers[0, begins[row] + place + 1] = vectors.to(layers).unsqueeze(1)
        # The vectors are read where they lie, in the first direction's half.
        laid = layers[0, :, 0].view(batch, positions, bilm.dim)
        return bilm.read_tokens(
            EncodedTokens(laid, bounded_mask),
            start,
            positions_at_once=positions_at_once,
            layers=layers,
        )


POSITIONS_AT_ONCE = 2**13
"""Longer sentences are read in pieces of so many positions."""


@torch.no_grad()
def final_state(
    bilm: BiLm, batches: Iterable[Tuple[torch.Tensor, torch.Tensor]]
) -> Optional[LstmState]:
    """
    The state at the end of the last sentence, if each sentence starts from the end of the one
    before; shape `(layers, 1, ...)`, over the layers of both directions. `None` without a sentence.
    The biLM is in evaluation mode; `batches` are those of `BiLm.warm_up`.
    """
    state: Optional[LstmState] = None
    for ids, mask in batches:
        tokens: Optional[EncodedTokens] = None
        if mask.size(1) + 2 <= POSITIONS_AT_ONCE:
            tokens = bilm.token_encoder(ids, mask)
        for row in range(len(mask)):
            if state is None:
                state = bilm.state_memory.zeros(next(bilm.parameters()), 1)
            one = slice(row, row + 1)
            if tokens is None:
                words = slice(int(mask[row].sum()))
                own_ids, own_mask = ids[one, words].cpu(), mask[one, words].cpu()
                state = read_in_pieces(bilm, own_ids, own_mask, state, POSITIONS_AT_ONCE).state
            else:
                positions = slice(int(tokens.mask[row].sum()))
                own = EncodedTokens(tokens.vectors[one, positions], tokens.mask[one, positions])
                state = bilm.read_tokens(own, state).state
    return state
