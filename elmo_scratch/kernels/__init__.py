"""
The fast operations of ELMo. Each has a readable PyTorch reference that defines it, and faster
versions: compiled code, oneDNN, AMX, CUDA graphs. Other rooms import from this file only.
"""

from elmo_scratch.kernels.char_convolution import can_convolve as can_convolve
from elmo_scratch.kernels.char_convolution import convolved_maxima as convolved_maxima
from elmo_scratch.kernels.char_convolution import max_over_time as max_over_time
from elmo_scratch.kernels.char_convolution import maxima_on_gpu as maxima_on_gpu
from elmo_scratch.kernels.char_convolution import words_at_once as words_at_once
from elmo_scratch.kernels.cross_entropy import TopScores as TopScores
from elmo_scratch.kernels.cross_entropy import averaged_rows as averaged_rows
from elmo_scratch.kernels.cross_entropy import chunked_cross_entropy as chunked_cross_entropy
from elmo_scratch.kernels.cross_entropy import rows_of_all_workers as rows_of_all_workers
from elmo_scratch.kernels.cross_entropy import sparse_rows as sparse_rows
from elmo_scratch.kernels.cross_entropy import top_scores as top_scores
from elmo_scratch.kernels.gpu import side_by_side as side_by_side
from elmo_scratch.kernels.linear import Linear as Linear
from elmo_scratch.kernels.linear import rows_are_independent as rows_are_independent
from elmo_scratch.kernels.lstm.function import LstmCache as LstmCache
from elmo_scratch.kernels.lstm.function import run_lstm as run_lstm
from elmo_scratch.kernels.lstm.run import Clips as Clips
from elmo_scratch.kernels.lstm.run import LstmResult as LstmResult
from elmo_scratch.kernels.lstm.run import LstmRun as LstmRun
from elmo_scratch.kernels.lstm.run import LstmState as LstmState
from elmo_scratch.kernels.lstm.run import LstmWeights as LstmWeights
from elmo_scratch.kernels.lstm.run import step_groups as step_groups
from elmo_scratch.kernels.lstm.stack import StackCache as StackCache
from elmo_scratch.kernels.lstm.stack import StackRun as StackRun
from elmo_scratch.kernels.lstm.stack import can_read_stack as can_read_stack
from elmo_scratch.kernels.lstm.stack import read_stack as read_stack
from elmo_scratch.kernels.memory import FrozenWeightCache as FrozenWeightCache
from elmo_scratch.kernels.memory import are_frozen as are_frozen
from elmo_scratch.kernels.memory import keep_heap_pages as keep_heap_pages
from elmo_scratch.kernels.pointwise import Dropout as Dropout
from elmo_scratch.kernels.pointwise import highway_gate as highway_gate
from elmo_scratch.kernels.pointwise import sigmoid_ as sigmoid_
from elmo_scratch.kernels.precision import BFLOAT16 as BFLOAT16
from elmo_scratch.kernels.precision import MATMUL_DTYPES as MATMUL_DTYPES
from elmo_scratch.kernels.precision import MixedPrecision as MixedPrecision
from elmo_scratch.kernels.precision import device_of as device_of
from elmo_scratch.kernels.precision import precision_of as precision_of
from elmo_scratch.kernels.precision import without_autocast as without_autocast

__all__ = [
    "BFLOAT16",
    "Clips",
    "Dropout",
    "FrozenWeightCache",
    "Linear",
    "LstmCache",
    "LstmResult",
    "LstmRun",
    "LstmState",
    "LstmWeights",
    "MATMUL_DTYPES",
    "MixedPrecision",
    "StackCache",
    "StackRun",
    "TopScores",
    "are_frozen",
    "averaged_rows",
    "can_convolve",
    "can_read_stack",
    "chunked_cross_entropy",
    "convolved_maxima",
    "device_of",
    "highway_gate",
    "keep_heap_pages",
    "max_over_time",
    "maxima_on_gpu",
    "precision_of",
    "read_stack",
    "rows_are_independent",
    "rows_of_all_workers",
    "run_lstm",
    "side_by_side",
    "sigmoid_",
    "sparse_rows",
    "step_groups",
    "top_scores",
    "without_autocast",
    "words_at_once",
]
