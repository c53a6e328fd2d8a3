"""Runs of an LSTM with random weights, there and back."""

from typing import Any, List, NamedTuple, Optional, Sequence

import torch

from elmo_scratch.kernels.lstm.reference import LstmProducts, lstm_reference
from elmo_scratch.kernels.lstm.run import Clips, LstmGradients, LstmResult, LstmRun, LstmWeights
from elmo_scratch.modules import LstmState

INPUT_DIM, DIM, CELLS = 24, 64, 128
"""Sizes that native code knows."""


class Incoming(NamedTuple):
    """The gradients that a backward pass starts from."""

    outputs: torch.Tensor
    state: Optional[LstmState]


def random_run(
    batch_sizes: Sequence[int],
    dtype: torch.dtype = torch.float32,
    clip: Optional[float] = 0.6,
    dropout: float = 0.0,
    dim: int = DIM,
    cells: int = CELLS,
) -> LstmRun:
    """In float32."""
    torch.manual_seed(13)
    batch = batch_sizes[0]
    shapes = [(4 * cells, INPUT_DIM), (4 * cells, dim), (dim, cells)]
    return LstmRun(
        LstmWeights(*(torch.randn(shape).mul(shape[1] ** -0.5) for shape in shapes)),
        dtype,
        torch.randn(4 * cells),
        torch.randn(sum(batch_sizes), INPUT_DIM),
        batch_sizes,
        LstmState(torch.randn(batch, dim), torch.randn(batch, cells)),
        Clips(clip, clip),
        torch.nn.functional.dropout(torch.ones(batch, dim), dropout) if dropout else None,
    )


def random_gradients(run: LstmRun) -> Incoming:
    """Of outputs and last states."""
    torch.manual_seed(17)
    hidden, cell = run.state
    outputs = torch.randn(len(run.inputs), hidden.size(1))
    return Incoming(outputs, LstmState(torch.randn(hidden.shape), torch.randn(cell.shape)))


def positions_of(run: LstmRun, start: int, end: int) -> List[int]:
    """Where the positions of some of its sentences lie."""
    rows = [row for active in run.batch_sizes for row in range(active)]
    return [place for place, row in enumerate(rows) if start <= row < end]


def of_sentences(run: LstmRun, start: int, end: int) -> LstmRun:
    """The same with some of its sentences alone."""
    mask = run.recurrent_dropout_mask
    return run._replace(
        inputs=run.inputs[positions_of(run, start, end)],
        batch_sizes=[min(active, end) - start for active in run.batch_sizes if active > start],
        state=LstmState(*(part[start:end] for part in run.state)),
        recurrent_dropout_mask=None if mask is None else mask[start:end],
    )


def on(device: str, part: Any) -> Any:
    """A tensor, or tuples of them, on a device."""
    if isinstance(part, torch.Tensor):
        return part.to(device)
    is_group = isinstance(part, (LstmRun, LstmWeights, LstmState, Incoming))
    return type(part)(*(on(device, own) for own in part)) if is_group else part


def reference(run: LstmRun) -> LstmResult:
    """By PyTorch's products."""
    return lstm_reference(run, LstmProducts.of(run), needs_grad=True)


def back(run: LstmRun, result: LstmResult, incoming: Incoming) -> LstmGradients:
    """The backward pass."""
    assert result.backward is not None
    return result.backward(run, result.kept, *incoming)


def tensors_of(result: LstmResult, gradients: LstmGradients) -> List[torch.Tensor]:
    """All that a run and its backward pass return."""
    return [result.outputs, *result.state, *gradients[:3], *gradients.state]


def there_and_back(
    run: LstmRun, result: LstmResult, incoming: Optional[Incoming] = None
) -> List[torch.Tensor]:
    """All that a run and its backward pass return, from random gradients unless others come in."""
    return tensors_of(result, back(run, result, incoming or random_gradients(run)))
