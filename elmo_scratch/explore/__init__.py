"""
Looks into files of layers: which tokens are near each other, layer by layer, in Python, in a
terminal, as a page for a browser and for TensorBoard.
"""

from elmo_scratch.explore.in_terminal import word_lines as word_lines
from elmo_scratch.explore.labels import read_labels as read_labels
from elmo_scratch.explore.neighbours import Neighbour as Neighbour
from elmo_scratch.explore.neighbours import nearest as nearest
from elmo_scratch.explore.page import layer_page as layer_page
from elmo_scratch.explore.projector import write_projector as write_projector
from elmo_scratch.explore.tokens import ExportedTokens as ExportedTokens

__all__ = [
    "ExportedTokens",
    "Neighbour",
    "layer_page",
    "nearest",
    "read_labels",
    "word_lines",
    "write_projector",
]
