"""Products of vectors with a weight matrix, in a fast layout and a chosen precision."""

from elmo_scratch.kernels.linear.affine import Linear as Linear
from elmo_scratch.kernels.linear.gradients import add_weight_gradient as add_weight_gradient
from elmo_scratch.kernels.linear.gradients import weight_gradients as weight_gradients
from elmo_scratch.kernels.linear.onednn import matmul_into_pool as matmul_into_pool
from elmo_scratch.kernels.linear.onednn import padded_rows as padded_rows
from elmo_scratch.kernels.linear.packed import PackedLinear as PackedLinear
from elmo_scratch.kernels.linear.packed import rows_are_independent as rows_are_independent

__all__ = [
    "Linear",
    "PackedLinear",
    "add_weight_gradient",
    "matmul_into_pool",
    "padded_rows",
    "rows_are_independent",
    "weight_gradients",
]
