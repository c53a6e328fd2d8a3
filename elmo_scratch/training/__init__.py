"""
Additions to AllenNLP's trainer for long trainings: checkpoints that are whole, a recovery that
goes on as if nothing had happened, a stop before weights turn NaN, and metrics to watch.
"""

from elmo_scratch.training.callbacks import Forecast as Forecast
from elmo_scratch.training.callbacks import MixShares as MixShares
from elmo_scratch.training.callbacks import Norms as Norms
from elmo_scratch.training.callbacks import Speed as Speed
from elmo_scratch.training.callbacks import StopAtNan as StopAtNan
from elmo_scratch.training.checkpointer import WholeCheckpointer as WholeCheckpointer
from elmo_scratch.training.exact_resume import ExactResume as ExactResume
from elmo_scratch.training.fused_adagrad import FusedAdagrad as FusedAdagrad

__all__ = [
    "ExactResume",
    "Forecast",
    "FusedAdagrad",
    "MixShares",
    "Norms",
    "Speed",
    "StopAtNan",
    "WholeCheckpointer",
]
