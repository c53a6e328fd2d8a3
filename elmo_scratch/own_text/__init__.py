"""
From a text of one's own to a config that pre-trains on it.

The room promises that what is held out for validation is never trained on.
"""

from elmo_scratch.own_text.recipes import OwnText as OwnText
from elmo_scratch.own_text.recipes import TextSize as TextSize
from elmo_scratch.own_text.recipes import check_size as check_size
from elmo_scratch.own_text.recipes import fitted_recipe as fitted_recipe
from elmo_scratch.own_text.recipes import hold_out as hold_out
from elmo_scratch.own_text.recipes import measure as measure
from elmo_scratch.own_text.recipes import recipe_for as recipe_for

__all__ = [
    "OwnText",
    "TextSize",
    "check_size",
    "fitted_recipe",
    "hold_out",
    "measure",
    "recipe_for",
]
