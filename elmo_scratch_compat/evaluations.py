"""The files that `allennlp evaluate` writes."""

import functools
import os
from contextlib import nullcontext
from typing import Any, ContextManager, Optional

from elmo_scratch_compat.whole_files import StrPath, written_beside


def write_whole_results(evaluator: Any) -> None:
    """
    `allennlp evaluate` empties the files of its predictions and metrics before it fills them: a
    full disk or a bad text costs those of an earlier run, and leaves half of the new ones. Here
    each takes the older file's place when it is whole.
    """
    kind = evaluator.SimpleEvaluator
    evaluate = kind.__call__

    @functools.wraps(evaluate)
    def __call__(
        self: Any,
        model: Any,
        data_loader: Any,
        batch_weight_key: Optional[str] = None,
        metrics_output_file: Optional[StrPath] = None,
        predictions_output_file: Optional[StrPath] = None,
    ) -> Any:
        with (
            _beside(predictions_output_file) as predictions,
            _beside(metrics_output_file) as metrics,
        ):
            return evaluate(self, model, data_loader, batch_weight_key, metrics, predictions)

    kind.__call__ = __call__


def _beside(path: Optional[StrPath]) -> ContextManager[Optional[str]]:
    """Another name for a file that is to be whole before it has its own; `None` for no file."""
    return nullcontext() if path is None else written_beside(os.fspath(path))
