"""Steps of an LSTM on a GPU, recorded once and replayed for every batch."""

from elmo_scratch.kernels.lstm.replay.recorded_steps import RecordedSteps as RecordedSteps
from elmo_scratch.kernels.lstm.replay.replayed_run import lstm_replayed as lstm_replayed
from elmo_scratch.kernels.lstm.replay.step_recordings import StepRecordings as StepRecordings

__all__ = ["RecordedSteps", "StepRecordings", "lstm_replayed"]
