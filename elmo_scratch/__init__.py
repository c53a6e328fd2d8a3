"""
ELMo from scratch for AllenNLP: pre-train a bidirectional language model, mix its layers for a
task, and export per-layer vectors.

Importing the package registers everything that a config can name. AllenNLP imports plugins, it
does not walk them: each room is imported here, in the order of its floor.
"""

# The imports are load-bearing: what a room registers exists only once the room is imported.
from elmo_scratch import data as data  # isort: skip
from elmo_scratch import metrics as metrics  # isort: skip
from elmo_scratch import modules as modules  # isort: skip
from elmo_scratch import interop as interop  # isort: skip
from elmo_scratch import embedders as embedders  # isort: skip
from elmo_scratch import models as models  # isort: skip
from elmo_scratch import predictors as predictors  # isort: skip
from elmo_scratch import training as training  # isort: skip
from elmo_scratch import commands as commands  # isort: skip
from elmo_scratch.data import batch_to_ids as batch_to_ids
from elmo_scratch.embedders import BiLmEmbedder as BiLmEmbedder
from elmo_scratch.embedders import Elmo as Elmo
from elmo_scratch.embedders import OfficialEmbedder as OfficialEmbedder
from elmo_scratch.embedders import SentenceLayers as SentenceLayers
from elmo_scratch.interop import read_bilm_archive as read_bilm_archive
from elmo_scratch.interop import read_official_bilm as read_official_bilm
from elmo_scratch.interop import write_official_bilm as write_official_bilm
from elmo_scratch.modules import BiLm as BiLm
from elmo_scratch.modules import LayerMix as LayerMix
from elmo_scratch.modules import OutputSoftmax as OutputSoftmax
from elmo_scratch.modules import TokenEncoder as TokenEncoder
from elmo_scratch.version import VERSION as VERSION

__all__ = [
    "BiLm",
    "BiLmEmbedder",
    "Elmo",
    "LayerMix",
    "OfficialEmbedder",
    "OutputSoftmax",
    "SentenceLayers",
    "TokenEncoder",
    "VERSION",
    "batch_to_ids",
    "read_bilm_archive",
    "read_official_bilm",
    "write_official_bilm",
]
