"""
The parts of ELMo: modules from tensors to tensors, which neither open files nor know a vocabulary.

The names of axes in all shapes of the package:

| word | meaning |
|---|---|
| `batch` | sentences |
| `tokens` | tokens of the longest sentence, without sentence boundaries |
| `positions` | `tokens + 2`: with a begin and an end mark |
| `dim` | one direction, after projection |
| `width` | both directions, `2 * dim` |
| `cell` | memory cells of an LSTM |
| `read` | positions that an LSTM reads, of the whole batch |
| `characters` | ids of a word, its marks and padding included |
| `filters` | convolutions over the characters, of all widths |
| `distinct` | different words of a batch |
| `layers` | the token layer and the LSTM layers |
| `words` | entries of the softmax's vocabulary |
| `predicted` | positions at which a word is predicted, of the whole batch |

A mask is a boolean tensor in which `True` marks a real token; real tokens come first in each row.
"""

from elmo_scratch.kernels import Dropout as Dropout
from elmo_scratch.kernels import LstmState as LstmState
from elmo_scratch.modules.bilm import BiLm as BiLm
from elmo_scratch.modules.bilm import BiLmOutput as BiLmOutput
from elmo_scratch.modules.lstm import LstmStack as LstmStack
from elmo_scratch.modules.lstm import ProjectedLstm as ProjectedLstm
from elmo_scratch.modules.mixes import LayerMix as LayerMix
from elmo_scratch.modules.predictions import Predictions as Predictions
from elmo_scratch.modules.predictions import predict_sentences as predict_sentences
from elmo_scratch.modules.predictions import predict_windows as predict_windows
from elmo_scratch.modules.sequences import PackedOrder as PackedOrder
from elmo_scratch.modules.sequences import PackedVectors as PackedVectors
from elmo_scratch.modules.softmaxes import OutputSoftmax as OutputSoftmax
from elmo_scratch.modules.token_encoders import TokenEncoder as TokenEncoder

__all__ = [
    "BiLm",
    "BiLmOutput",
    "Dropout",
    "LayerMix",
    "LstmStack",
    "LstmState",
    "OutputSoftmax",
    "PackedOrder",
    "PackedVectors",
    "Predictions",
    "ProjectedLstm",
    "TokenEncoder",
    "predict_sentences",
    "predict_windows",
]
