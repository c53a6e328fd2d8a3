"""AllenNLP's trainer, schedulers and callbacks."""

import functools
import inspect
import warnings
from typing import Any, Dict


def print_numbers_only(console_logger: Any) -> None:
    """
    AllenNLP's default callback formats every metric as a number, and prints a traceback at the end
    of each epoch when a metric is a list, such as a confusion matrix.
    """
    callback = console_logger.ConsoleLoggerCallback
    on_epoch = callback.on_epoch

    @functools.wraps(on_epoch)
    def on_epoch_with_numbers(
        self: Any, trainer: Any, metrics: Dict[str, Any], *args: Any, **kwargs: Any
    ) -> None:
        numbers = {name: value for name, value in metrics.items() if hasattr(value, "__float__")}
        on_epoch(self, trainer, numbers, *args, **kwargs)

    callback.on_epoch = on_epoch_with_numbers


def drop_verbose(schedulers: Any) -> None:
    """
    PyTorch 2.7 took the argument `verbose` from `ReduceLROnPlateau`; AllenNLP's scheduler
    "reduce_on_plateau" always passes it. It only ever printed, so it is dropped.
    """
    scheduler = schedulers.ReduceOnPlateauLearningRateScheduler
    original = scheduler.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        import torch

        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        settings = {
            name: value
            for name, value in bound.arguments.items()
            if name not in ("self", "verbose")
        }
        super(scheduler, self).__init__(torch.optim.lr_scheduler.ReduceLROnPlateau(**settings))

    scheduler.__init__ = __init__


def accept_old_autocast(trainer: Any) -> None:
    """
    PyTorch 2.4 moved `torch.cuda.amp.autocast` to `torch.amp`, and warns of the old name in every
    training, in full precision too. Both do the same. Who else uses the old name is still warned.
    """
    warnings.filterwarnings(
        "ignore",
        message=r"`torch\.cuda\.amp\.",
        category=FutureWarning,
        module=r"allennlp\.(nn|training)\.",
    )
