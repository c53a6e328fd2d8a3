"""
Looks into layers: which tokens of a file, or of some sentences, are near each other, layer by
layer, in Python, in a terminal, as a page for a browser and for TensorBoard.
"""

from elmo_scratch.explore.in_context import ContextNeighbour as ContextNeighbour
from elmo_scratch.explore.in_context import LayerNeighbours as LayerNeighbours
from elmo_scratch.explore.in_context import SenseSentence as SenseSentence
from elmo_scratch.explore.in_context import nearest_by_layer as nearest_by_layer
from elmo_scratch.explore.in_context import read_senses as read_senses
from elmo_scratch.explore.in_context import word_lines as word_lines
from elmo_scratch.explore.neighbours import Neighbour as Neighbour
from elmo_scratch.explore.neighbours import nearest as nearest
from elmo_scratch.explore.page import layer_page as layer_page
from elmo_scratch.explore.page import write_projector as write_projector
from elmo_scratch.explore.tokens import ExportedTokens as ExportedTokens
from elmo_scratch.explore.tokens import read_labels as read_labels

__all__ = [
    "ContextNeighbour",
    "ExportedTokens",
    "LayerNeighbours",
    "Neighbour",
    "SenseSentence",
    "layer_page",
    "nearest",
    "nearest_by_layer",
    "read_labels",
    "read_senses",
    "word_lines",
    "write_projector",
]
