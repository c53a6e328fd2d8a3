"""Runs of an LSTM with random weights, of sizes that compiled code knows."""

from typing import Any, List, NamedTuple, Optional, Sequence

import torch

from elmo_scratch.modules import LstmState
from elmo_scratch.modules.lstms.compiled_run import run_compiled
from elmo_scratch.modules.lstms.filled_run import run_filled
from elmo_scratch.modules.lstms.kept_run import KeptRun, RunGradients
from elmo_scratch.modules.lstms.steps import Clips, LstmProducts, LstmWeights
from elmo_scratch.modules.lstms.stepwise_run import run_stepwise

INPUT_DIM, DIM, CELLS = 24, 64, 128


class RandomRun(NamedTuple):
    """All that goes into a run, in float32."""

    weights: LstmWeights
    dtype: torch.dtype
    bias: torch.Tensor
    inputs: torch.Tensor
    batch_sizes: Sequence[int]
    state: LstmState
    clips: Clips
    output_scale: Optional[torch.Tensor]
    output_gradients: torch.Tensor
    state_gradients: Optional[LstmState]

    def of_sentences(self, start: int, end: int) -> "RandomRun":
        """The same with some of its sentences alone."""
        rows = self.positions_of(start, end)
        sizes = [min(active, end) - start for active in self.batch_sizes if active > start]
        return self._replace(
            inputs=self.inputs[rows],
            batch_sizes=sizes,
            state=LstmState(*(part[start:end] for part in self.state)),
            output_scale=None if self.output_scale is None else self.output_scale[start:end],
            output_gradients=self.output_gradients[rows],
            state_gradients=self.state_gradients
            and LstmState(*(part[start:end] for part in self.state_gradients)),
        )

    def positions_of(self, start: int, end: int) -> List[int]:
        """Where those of some of its sentences lie."""
        rows = [row for active in self.batch_sizes for row in range(active)]
        return [place for place, row in enumerate(rows) if start <= row < end]

    def to(self, device: str) -> "RandomRun":
        """The same on a device."""

        def moved(part: Any) -> Any:
            if isinstance(part, torch.Tensor):
                return part.to(device)
            is_group = isinstance(part, (LstmWeights, LstmState))
            return type(part)(*map(moved, part)) if is_group else part

        return RandomRun(*map(moved, self))

    def compiled(self) -> KeptRun:
        return run_compiled(*self[:8])

    def filled(self) -> KeptRun:
        return run_filled(*self[:8])

    def stepwise(self) -> KeptRun:
        products = LstmProducts.of(self.weights, self.dtype)
        return run_stepwise(self.weights, self.dtype, products, *self[2:8])

    def back(self, done: KeptRun) -> RunGradients:
        rest = (self.batch_sizes, self.clips, self.output_scale)
        return done.backward(done.kept, *rest, self.output_gradients, self.state_gradients)


def random_run(
    batch_sizes: Sequence[int],
    dtype: torch.dtype = torch.float32,
    clip: Optional[float] = 0.6,
    dropout: float = 0.0,
    dim: int = DIM,
    cells: int = CELLS,
) -> RandomRun:
    """Of such sizes."""
    torch.manual_seed(13)
    read, batch = sum(batch_sizes), batch_sizes[0]
    shapes = [(4 * cells, INPUT_DIM), (4 * cells, dim), (dim, cells)]
    return RandomRun(
        LstmWeights(*(torch.randn(shape).mul(shape[1] ** -0.5) for shape in shapes)),
        dtype,
        torch.randn(4 * cells),
        torch.randn(read, INPUT_DIM),
        batch_sizes,
        LstmState(torch.randn(batch, dim), torch.randn(batch, cells)),
        Clips(clip, clip),
        torch.nn.functional.dropout(torch.ones(batch, dim), dropout) if dropout else None,
        torch.randn(read, dim),
        LstmState(torch.randn(batch, dim), torch.randn(batch, cells)),
    )


def tensors_of(done: KeptRun, back: RunGradients) -> List[torch.Tensor]:
    """All that a run and its backward pass return."""
    return [done.outputs, *done.state, back.gates, back.projected, back.opened, *back.state]
