"""Projected LSTMs: the order of reading, one layer, the stack of one direction, and its state."""

from elmo_scratch.modules.lstms.lstm_stack import LstmStack as LstmStack
from elmo_scratch.modules.lstms.lstm_stack import StackOutput as StackOutput
from elmo_scratch.modules.lstms.lstm_state import LstmState as LstmState
from elmo_scratch.modules.lstms.projected_lstm import ProjectedLstm as ProjectedLstm
from elmo_scratch.modules.lstms.reading_order import ReadingOrder as ReadingOrder

__all__ = ["LstmStack", "LstmState", "ProjectedLstm", "ReadingOrder", "StackOutput"]
