"""Looks into files of layers: which tokens are near each other, layer by layer."""

from elmo_scratch.explore.neighbours import Neighbour as Neighbour
from elmo_scratch.explore.neighbours import nearest as nearest
from elmo_scratch.explore.tokens import ExportedTokens as ExportedTokens

__all__ = ["ExportedTokens", "Neighbour", "nearest"]
