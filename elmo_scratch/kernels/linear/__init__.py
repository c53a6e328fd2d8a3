"""Products of vectors with a matrix of weights, in a fast layout and a chosen precision."""

from elmo_scratch.kernels.linear.affine import Affine as Affine
from elmo_scratch.kernels.linear.gradients import add_weight_gradient as add_weight_gradient
from elmo_scratch.kernels.linear.gradients import weight_gradients as weight_gradients
from elmo_scratch.kernels.linear.onednn import filled_up as filled_up
from elmo_scratch.kernels.linear.onednn import recycled_product as recycled_product
from elmo_scratch.kernels.linear.packed import WeightProduct as WeightProduct
from elmo_scratch.kernels.linear.packed import rows_are_independent as rows_are_independent

__all__ = [
    "Affine",
    "WeightProduct",
    "add_weight_gradient",
    "filled_up",
    "recycled_product",
    "rows_are_independent",
    "weight_gradients",
]
