"""The bidirectional language model's network: a token encoder and two stacks of LSTMs."""

from typing import Iterable, List, Optional, Tuple

import torch
from allennlp.common import FromParams

from elmo_scratch.kernels.lstm.run import LstmState
from elmo_scratch.kernels.memory import keep_freed_memory
from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.modules.bilm_output import BiLmOutput, ReadSentences, ReadWindows
from elmo_scratch.modules.evaluating import evaluating
from elmo_scratch.modules.lstm_stack import LstmStack, StackOutput
from elmo_scratch.modules.reading_order import ReadingOrder
from elmo_scratch.modules.state_memory import StateMemory
from elmo_scratch.modules.token_encoders import EncodedTokens, TokenEncoder


class BiLm(torch.nn.Module, FromParams):
    """
    Two stacks that never meet over one token encoder: one reads each sentence left to right, one
    right to left. So a left-to-right state holds nothing of what follows its token, and a
    right-to-left state nothing of what precedes it in its sentence.

    # Parameters

    token_encoder : `TokenEncoder`
        Makes the token layer; its `dim` is the `dim` of each direction.
    num_layers : `int`, optional (default = `2`)
        LSTM layers of each direction.
    cell_size : `int`
        Memory cells of each LSTM layer. Where it equals `dim`, outputs are not projected.
    dropout : `float`, optional (default = `0.1`)
        Share of each LSTM layer's inputs that is dropped in training.
    recurrent_dropout : `float`, optional (default = `0.0`)
        As in `ProjectedLstm`.
    cell_clip, projection_clip : `float`, optional (default = `3.0`)
        As in `ProjectedLstm`.
    use_skip_connections : `bool`, optional (default = `True`)
        As in `LstmStack`.
    state : `str`, optional (default = `"reset"`)
        What a sentence starts from: `"reset"` zeros; `"carry"` what the row of the same number of
        the batch before ended with; `"warm"` the state that `warm_up` found.
    matmul_dtype : `str`, optional (default = `"float32"`)
        With `"bfloat16"` matrix products run in bfloat16, but on processors that are slower with it
        (see `Bfloat16Speed`); weights and memory cells stay in float32.

    # Raises

    ValueError
        If there is no such `state` or `matmul_dtype`, no LSTM layer or memory cell, or a clip that
        is not above 0.

    # Source

    Peters et al. 2018, "Deep contextualized word representations", section 3.1.
    """

    def __init__(
        self,
        *,
        token_encoder: TokenEncoder,
        cell_size: int,
        num_layers: int = 2,
        dropout: float = 0.1,
        recurrent_dropout: float = 0.0,
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
        self.dim = token_encoder.dim
        self.width = 2 * token_encoder.dim
        self.num_layers = 1 + num_layers
        """How many there are to mix: the token layer and those of the LSTMs."""
        self.token_encoder = token_encoder
        self.left_to_right, self.right_to_left = (
            LstmStack(
                token_encoder.dim,
                num_layers,
                cell_size,
                dropout=dropout,
                recurrent_dropout=recurrent_dropout,
                cell_clip=cell_clip,
                projection_clip=projection_clip,
                use_skip_connections=use_skip_connections,
            )
            for _ in range(2)
        )
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
        return self.read_tokens(self.token_encoder(ids, mask))

    def read_tokens(self, tokens: EncodedTokens) -> BiLmOutput:
        """
        Runs the LSTMs over vectors of tokens.

        # Parameters

        tokens : `EncodedTokens`
            Vectors of shape `(batch, positions, dim)`, those of sentence boundaries included.

        # Returns

        `BiLmOutput`
            `num_layers` layers over `positions`.
        """
        start = self.state_memory.start(tokens.vectors, len(tokens.mask))
        output, final = self.read_from(start, tokens)
        self.state_memory.keep(final)
        return output

    def read_from(self, start: LstmState, tokens: EncodedTokens) -> ReadSentences:
        """
        As `read_tokens`, but that the caller says where sentences start; nothing is remembered.

        # Parameters

        start : `LstmState`
            Of shape `(layers, batch, ...)`, over the layers of both directions.
        tokens : `EncodedTokens`
            Vectors of shape `(batch, positions, dim)`.

        # Returns

        `ReadSentences`
        """
        vectors, mask = tokens
        order = ReadingOrder.of(mask)
        places = (order.left_to_right, order.right_to_left)
        stacks, final = self._run((vectors, vectors), places, order, start)
        layers = vectors.new_zeros(self.num_layers, mask.numel(), 2, self.dim)
        layers[0] = vectors.masked_fill(~mask.unsqueeze(-1), 0.0).view(-1, 1, self.dim)
        for direction, read in enumerate(stacks):
            for number, outputs in enumerate(read.layers, start=1):
                layers[number, :, direction].index_copy_(0, places[direction], outputs)
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
        Runs the LSTMs over windows of running text, of which each direction has its own.

        # Parameters

        left_to_right, right_to_left : `torch.Tensor`
            Shape `(batch, positions, dim)`: the vectors of what the left-to-right and the
            right-to-left LSTMs read, each in the order in which it is read.
        mask : `torch.BoolTensor`
            Shape `(batch, positions)`; real positions come first in each row.
        start : `LstmState`
            Of shape `(layers, batch, ...)`: where each row starts.

        # Returns

        `ReadWindows`
        """
        order = ReadingOrder.of(mask)
        # Both are laid in the order of reading already.
        places = (order.left_to_right, order.left_to_right)
        stacks, final = self._run((left_to_right, right_to_left), places, order, start)
        ahead_top, back_top = (
            vectors.new_zeros(mask.numel(), self.dim)
            .index_copy(0, order.left_to_right, read.layers[-1])
            .view(*mask.shape, self.dim)
            for vectors, read in zip((left_to_right, right_to_left), stacks)
        )
        return ReadWindows(ahead_top, back_top, final)

    def new_state_memory(self, state: str) -> StateMemory:
        """A memory, of the kind `state`, for states of this network."""
        return StateMemory(state, 2 * (self.num_layers - 1), self.dim, self._cell_size)

    def use_state(self, state: str) -> None:
        """
        Treats the state between batches in another way from now on. Where it is the way already,
        what is remembered stays; otherwise nothing does, and `warm` needs `warm_up` again.

        # Parameters

        state : `str`
            As in the constructor.

        # Raises

        ValueError
            If there is no such `state`.
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
        self.use_state("carry" if carries else "reset")

    @property
    def _elmo_lstm(self) -> "BiLm":
        """What holds the states, by AllenNLP's name."""
        return self

    def reset_states(self) -> None:
        """Lets every sentence of the next batch start from zeros where `state` is `"carry"`."""
        self.state_memory.forget()

    def warm_up(self, batches: Iterable[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        """
        Reads sentences one after the other, each from where the one before ended, and starts every
        sentence from now on from where the last ended. The state is stored with the weights.

        # Parameters

        batches : `Iterable[Tuple[torch.Tensor, torch.Tensor]]`
            Ids and masks as in `forward`: a text in its order, in pieces of any size.

        # Raises

        ValueError
            If `state` is not `"warm"`, or there is no sentence.
        """
        # It reads biLMs, and needs this class.
        from elmo_scratch.modules.warming_up import state_after

        with evaluating(self):
            state = state_after(self, batches)
        if state is None:
            raise ValueError("expected at least one sentence to warm up with, but got none")
        self.state_memory.fix(state)

    def _run(
        self,
        vectors: Tuple[torch.Tensor, torch.Tensor],
        places: Tuple[torch.Tensor, torch.Tensor],
        order: ReadingOrder,
        start: LstmState,
    ) -> Tuple[List[StackOutput], LstmState]:
        """What each direction makes of its vectors, and both directions' last states."""
        if torch.is_grad_enabled() and vectors[0].requires_grad and vectors[0].device.type == "cpu":
            keep_freed_memory()
        stacks: List[StackOutput] = []
        finals: List[LstmState] = []
        for direction, stack in enumerate((self.left_to_right, self.right_to_left)):
            laid_end_to_end = vectors[direction].flatten(0, 1)  # (batch * positions, dim)
            own = start.half(direction).rows(order.sorted_indices)
            read = laid_end_to_end.index_select(0, places[direction])
            stacks.append(stack(read, order.batch_sizes, own))
            finals.append(stacks[-1].state.rows(order.unsorted_indices))
        return stacks, LstmState.cat(finals)
