"""
A projected LSTM layer with clipping, stacks of them, and the states that sentences start from.
"""

from typing import Any, List, NamedTuple, Optional, Set, Tuple

import torch
from torch.nn.modules import module as hooks

from elmo_scratch.kernels import (
    Clips,
    Dropout,
    LstmCache,
    LstmResult,
    LstmRun,
    LstmState,
    LstmWeights,
    MixedPrecision,
    StackCache,
    StackRun,
    can_read_stack,
    read_stack,
    run_lstm,
)
from elmo_scratch.modules.sequences import PackedVectors


def check_dropout(name: str, share: float) -> None:
    """Raises a `ValueError` unless the share `name` is in `[0, 1)`."""
    if not 0.0 <= share < 1.0:
        raise ValueError(f"expected `{name}` from 0 on and below 1, but got {share}")


class ProjectedLstm(MixedPrecision):
    """
    An LSTM that reads the positions of a `PackedOrder`.

        i, j, f, o = x W + h U + b
        c = clip(σ(f + 1) c + σ(i) tanh(j))
        h = clip((σ(o) tanh(c)) P)

    # Parameters

    input_dim : `int`
        The size of an input vector.
    dim : `int`
        The size of an output vector. If it equals `cell_size` there is neither a projection nor its
        clip.
    cell_size : `int`
        The number of memory cells.
    cell_clip : `float`, optional (default = `3.0`, the released models' value)
        Cells are clipped to `[-cell_clip, cell_clip]` after every step. `None` never clips.
    projection_clip : `float`, optional (default = `3.0`, the released models' value)
        The same for projected outputs.
    recurrent_dropout : `float`, optional (default = `0.0`)
        Share of a sentence's outputs that is dropped in training, the same ones at every step, in
        `[0, 1)`.
    recurrent_weight_dropout : `float`, optional (default = `0.0`)
        Share of the recurrent weights `U` that is dropped in training, in `[0, 1)`: the same ones
        for all sentences and steps of a run, others in the next run. The rest is scaled up.

    # Raises

    ValueError
        If a dropout is not in that range.

    # Source

    Sak, Senior and Beaufays 2014, "Long Short-Term Memory Based Recurrent Neural Network
    Architectures for Large Vocabulary Speech Recognition", section 2. The order of the gates, the
    constant in the forget gate, the clipping and the missing projection follow
    `tf.nn.rnn_cell.LSTMCell` and its use in `bilm-tf`; recurrent dropout follows Gal and Ghahramani
    2016, and that of weights Merity, Keskar and Socher 2018, "Regularizing and Optimizing LSTM
    Language Models", section 2.
    """

    def __init__(
        self,
        input_dim: int,
        dim: int,
        cell_size: int,
        *,
        cell_clip: Optional[float] = 3.0,
        projection_clip: Optional[float] = 3.0,
        recurrent_dropout: float = 0.0,
        recurrent_weight_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        for name, share in (
            ("recurrent_dropout", recurrent_dropout),
            ("recurrent_weight_dropout", recurrent_weight_dropout),
        ):
            check_dropout(name, share)
        self.dim = dim
        self.cell_size = cell_size
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        self.recurrent_dropout = recurrent_dropout
        self.weight_dropout = Dropout(recurrent_weight_dropout)
        self.input_weight = torch.nn.Parameter(torch.empty(4 * cell_size, input_dim))
        self.recurrent_weight = torch.nn.Parameter(torch.empty(4 * cell_size, dim))
        self.bias = torch.nn.Parameter(torch.zeros(4 * cell_size))
        self.projection_weight: Optional[torch.nn.Parameter] = None
        if dim != cell_size:
            self.projection_weight = torch.nn.Parameter(torch.empty(dim, cell_size))
        for weight in (self.input_weight, self.recurrent_weight, self.projection_weight):
            if weight is not None:
                torch.nn.init.xavier_uniform_(weight)
        self._cache = LstmCache()

    def forward(self, inputs: PackedVectors, state: Optional[LstmState] = None) -> LstmResult:
        """
        # Parameters

        inputs : `PackedVectors`
            Their vectors have the shape `(packed, input_dim)`.
        state : `LstmState`, optional (default = `None`)
            Of shape `(batch, ...)`: where each sentence, in the order of reading, starts; zeros for
            `None`.
        """
        vectors, batch_sizes, _ = inputs
        if state is None:
            batch = batch_sizes[0] if batch_sizes else 0
            state = LstmState(
                vectors.new_zeros(batch, self.dim), vectors.new_zeros(batch, self.cell_size)
            )
        mask: Optional[torch.Tensor] = None  # shape (batch, dim)
        if self.training and self.recurrent_dropout > 0.0:
            mask = torch.nn.functional.dropout(
                torch.ones_like(state.hidden), self.recurrent_dropout
            )
        weights = self.weights()
        is_dropped = self.training and self.weight_dropout.p > 0.0
        if is_dropped:
            dropped = self.weight_dropout(weights.recurrent_weight)
            weights = weights._replace(recurrent_weight=dropped)
        run = LstmRun(
            weights,
            self.matmul_dtype_for(self.recurrent_weight),
            self.bias,
            vectors,
            batch_sizes,
            state,
            Clips(self.cell_clip, self.projection_clip),
            mask,
            has_own_weights=is_dropped,
        )
        return run_lstm(run, self._cache)

    @property
    def drops(self) -> bool:
        """Whether outputs or weights are dropped now."""
        return self.training and max(self.recurrent_dropout, self.weight_dropout.p) > 0.0

    def weights(self) -> LstmWeights:
        """The matrices, the last one empty if outputs are not projected."""
        projection: Optional[torch.Tensor] = self.projection_weight
        if projection is None:
            projection = self.recurrent_weight.new_zeros(0, self.cell_size)
        return LstmWeights(self.input_weight, self.recurrent_weight, projection)

    def forget_recordings(self) -> None:
        """Frees the GPU memory of recorded steps; they are recorded anew at the next run."""
        self._cache.recordings.forget()

    def _apply(self, *arguments: Any, **settings: Any) -> "ProjectedLstm":
        # The cache would keep the weights' old memory in use.
        self._cache.forget()
        return super()._apply(*arguments, **settings)


class StackOutput(NamedTuple):
    """
    The outputs of each layer of one direction, of shape `(packed, dim)`, and each sentence's last
    states, of shape `(layers, batch, ...)`.
    """

    layers: List[torch.Tensor]
    state: LstmState


class LstmStack(torch.nn.Module):
    """
    Layers of `ProjectedLstm`.

    # Parameters

    dim : `int`
        The size of inputs and outputs.
    num_layers : `int`
        How many layers.
    cell_size : `int`
        The number of memory cells of a layer.
    dropout : `float`, optional (default = `0.0`)
        Share of each layer's inputs that is dropped in training, in `[0, 1)`.
    locked_dropout : `bool`, optional (default = `False`)
        Whether `dropout` drops the same numbers of a vector at all positions of a sentence. Each
        layer and each sentence has numbers of its own.
    recurrent_dropout, recurrent_weight_dropout, cell_clip, projection_clip : `float`
        See `ProjectedLstm`.
    use_skip_connections : `bool`, optional (default = `True`)
        From the second layer on, add a layer's input to its output.

    # Source

    Peters et al. 2018, section 3.1; Józefowicz et al. 2016. Locked dropout is the variational
    dropout of Gal and Ghahramani 2016, "A Theoretically Grounded Application of Dropout in
    Recurrent Neural Networks".
    """

    def __init__(
        self,
        dim: int,
        num_layers: int,
        cell_size: int,
        *,
        dropout: float = 0.0,
        locked_dropout: bool = False,
        recurrent_dropout: float = 0.0,
        recurrent_weight_dropout: float = 0.0,
        cell_clip: Optional[float] = 3.0,
        projection_clip: Optional[float] = 3.0,
        use_skip_connections: bool = True,
    ) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList()
        for _ in range(num_layers):
            layer = ProjectedLstm(
                dim,
                dim,
                cell_size,
                cell_clip=cell_clip,
                projection_clip=projection_clip,
                recurrent_dropout=recurrent_dropout,
                recurrent_weight_dropout=recurrent_weight_dropout,
            )
            self.layers.append(layer)
        self.cell_size = cell_size
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        self.dropout = Dropout(dropout)
        self.locked_dropout = locked_dropout
        self.use_skip_connections = use_skip_connections
        self._cache = StackCache()

    def forward(self, inputs: PackedVectors, state: Optional[LstmState] = None) -> StackOutput:
        """
        # Parameters

        inputs : `PackedVectors`
            Their vectors have the shape `(packed, dim)`. Locked dropout is drawn by their `rows`,
            so that it doesn't depend on the lengths of sentences.
        state : `LstmState`, optional (default = `None`)
            Of shape `(layers, batch, ...)`: where each sentence, in the order of reading, starts;
            zeros for `None`.
        """
        run = None if state is None else self._run(inputs, state)
        if run is not None and can_read_stack(run):
            done = read_stack(run, self._cache)
            return StackOutput(done.outputs, done.state)
        outputs: List[torch.Tensor] = []
        states: List[LstmState] = []
        drops = self.dropout.training and self.dropout.p > 0.0
        for number, layer in enumerate(self.layers):
            read = inputs._replace(vectors=outputs[-1]) if outputs else inputs
            if drops:
                dropped = (
                    self._drop_locked(read) if self.locked_dropout else self.dropout(read.vectors)
                )
                read = read._replace(vectors=dropped)
            own = None if state is None else LstmState(state.hidden[number], state.cell[number])
            result = layer(read, own)
            is_skipped = self.use_skip_connections and number > 0
            outputs.append(result.outputs + read.vectors if is_skipped else result.outputs)
            states.append(result.state)
        return StackOutput(outputs, LstmState(*map(torch.stack, zip(*states))))

    def _run(self, inputs: PackedVectors, state: LstmState) -> Optional[StackRun]:
        """
        A run of all layers at once. `None` if something is dropped between them, they differ in
        clips or precision, or somebody looks at one of them.
        """
        if self.dropout.training and self.dropout.p > 0.0:
            return None
        layers: List[ProjectedLstm] = []
        settings: Set[Tuple[Clips, torch.dtype]] = set()
        for layer in self.layers:
            if type(layer) is not ProjectedLstm or layer.drops or _is_watched(layer):
                return None
            layers.append(layer)
            clips = Clips(layer.cell_clip, layer.projection_clip)
            settings.add((clips, layer.matmul_dtype_for(layer.recurrent_weight)))
        if len(settings) != 1:
            return None
        clips, dtype = settings.pop()
        return StackRun(
            [layer.weights() for layer in layers],
            [layer.bias for layer in layers],
            dtype,
            inputs.vectors,
            inputs.batch_sizes,
            state,
            clips,
            self.use_skip_connections,
        )

    def _apply(self, *arguments: Any, **settings: Any) -> "LstmStack":
        self._cache.forget()
        return super()._apply(*arguments, **settings)

    def _drop_locked(self, inputs: PackedVectors) -> torch.Tensor:
        """Drops the same numbers of a sentence's vectors; shape `(packed, dim)`."""
        vectors, batch_sizes, rows = inputs
        if not batch_sizes:
            return vectors
        batch = batch_sizes[0] if rows is None else len(rows)
        mask = self.dropout(vectors.new_ones(batch, vectors.size(1)))
        if rows is not None:
            mask = mask.index_select(0, rows)
        if batch_sizes[-1] == batch:
            steps = vectors.unflatten(0, (len(batch_sizes), batch))
            return (steps * mask).flatten(0, 1)
        sizes = torch.tensor(batch_sizes, device="cpu")
        first = (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
        places = torch.arange(len(first), device="cpu") - first  # (packed,)
        return vectors * mask.index_select(0, places.to(vectors.device))


def _is_watched(layer: torch.nn.Module) -> bool:
    """Whether a call of the layer does more than its class's `forward`."""
    return bool(
        layer._forward_hooks
        or layer._forward_pre_hooks
        or hooks._global_forward_hooks
        or hooks._global_forward_pre_hooks
        or layer._compiled_call_impl
        or "forward" in vars(layer)
    )


STATES = ("carry", "reset", "warm")
"""
The kinds of state. `carry`: each row of a batch starts from the last state of the same row in the
batch before, as in the original, so that vectors depend on earlier text. `reset`: each sentence
starts from zeros. `warm`: each sentence starts from one fixed state.
"""


class StateMemory(torch.nn.Module):
    """
    Gives a batch the states that it starts from, and takes its last states.

    `state` is one of `STATES`, else a `ValueError` is raised. The sizes `num_layers`, `dim` and
    `cell_size` are those of a state over the layers of both directions.
    """

    hidden: torch.Tensor
    cell: torch.Tensor

    def __init__(self, state: str, num_layers: int, dim: int, cell_size: int) -> None:
        super().__init__()
        if state not in STATES:
            raise ValueError(f"expected a `state` among {', '.join(STATES)}, but got {state!r}")
        self.state = state
        self._sizes = {"hidden": (num_layers, dim), "cell": (num_layers, cell_size)}
        self._carried: Optional[LstmState] = None
        if state == "warm":
            # Stored with the weights; NaN until a text has been read.
            for name, size in self._sizes.items():
                self.register_buffer(name, torch.full(size, float("nan")))

    def start(self, like: torch.Tensor, batch: int, first_row: int = 0) -> LstmState:
        """
        The states that `batch` sentences start from, of shape `(layers, batch, ...)`, with the type
        and the device of `like`. If the sentences are a part of a batch, `first_row` is the row of
        the first one. Raises a `ValueError` if the state is `warm` and no text has been read.
        """
        if self.state == "warm":
            if not self.is_warm:
                raise ValueError(
                    "the `warm` state is not known yet: read a text with `warm_up` first, or load "
                    "weights that were saved after that"
                )
            return LstmState(
                *(
                    kept.to(like).unsqueeze(1).expand(-1, batch, -1)
                    for kept in (self.hidden, self.cell)
                )
            )
        start = self.zeros(like, batch)
        if self._carried is not None:
            for part, carried in zip(start, self._carried):
                own = carried[:, first_row : first_row + batch]
                part[:, : own.size(1)] = own
        return start

    @property
    def is_warm(self) -> bool:
        """Whether the warm state is known."""
        return self.state == "warm" and not bool(self.hidden.isnan().any())

    def zeros(self, like: torch.Tensor, batch: int) -> LstmState:
        """States of zeros, of shape `(layers, batch, ...)`."""
        return LstmState(
            **{
                name: like.new_zeros(num_layers, batch, size)
                for name, (num_layers, size) in self._sizes.items()
            }
        )

    def keep(self, final: LstmState, first_row: int = 0) -> None:
        """
        Takes the last states of a batch, of shape `(layers, batch, ...)`, from row `first_row` on.
        Other rows keep their states.
        """
        if self.state != "carry":
            return
        parts = [part.detach() for part in final]
        batch = parts[0].size(1)
        if self._carried is not None or first_row > 0:
            before = self.start(parts[0], first_row)
            after = self._carried or before
            parts = [
                torch.cat([zeros_or_kept, part, carried[:, first_row + batch :].to(part)], dim=1)
                for zeros_or_kept, part, carried in zip(before, parts, after)
            ]
        self._carried = LstmState(*parts)

    def carried(self) -> Optional[LstmState]:
        """
        The states that the next batch starts from if states are carried, of shape
        `(layers, batch, ...)`, for all rows so far. `None` stands for zeros.
        """
        return self._carried

    def carry_on_from(self, carried: Optional[LstmState]) -> None:
        """
        Lets the next batch start from an earlier result of `carried`, perhaps from another process.
        Raises a `ValueError` if the state is not `carry`, or `carried` is from a network of other
        sizes.
        """
        if self.state != "carry":
            raise ValueError(f"only where `state` is `carry` is one carried on, not {self.state!r}")
        for name, part in carried._asdict().items() if carried is not None else ():
            num_layers, size = self._sizes[name]
            if part.dim() != 3 or (part.size(0), part.size(2)) != (num_layers, size):
                raise ValueError(
                    f"expected a state whose {name!r} has the shape ({num_layers}, batch, {size}), "
                    f"but got the shape {tuple(part.shape)}"
                )
        self._carried = carried

    def forget(self) -> None:
        """Lets the next batch start from zeros if states are carried."""
        self._carried = None

    def forget_some(self, probability: float) -> None:
        """
        Lets each row of the next batch start from zeros with this probability, if states are
        carried. With 0 no random number is drawn.
        """
        if self._carried is None or probability == 0:
            return
        # Drawn on the CPU, where a recovered training has its state at first.
        is_kept = torch.rand(self._carried.hidden.size(1), 1, device="cpu") >= probability
        self._carried = LstmState(
            *(part.where(is_kept.to(part.device), 0) for part in self._carried)
        )

    def fix(self, final: LstmState) -> None:
        """
        Lets every sentence start from `final`, of shape `(layers, 1, ...)`. Raises a `ValueError`
        if the state is not `warm`.
        """
        if self.state != "warm":
            raise ValueError(f"only a biLM whose `state` is `warm` warms up, not {self.state!r}")
        with torch.no_grad():
            self.hidden.copy_(final.hidden.squeeze(1))
            self.cell.copy_(final.cell.squeeze(1))
