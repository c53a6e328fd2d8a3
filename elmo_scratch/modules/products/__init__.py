"""Products of vectors with a matrix of weights, in a fast layout and a chosen precision."""

from elmo_scratch.modules.products.affine import Affine as Affine
from elmo_scratch.modules.products.bfloat16_speed import BFLOAT16 as BFLOAT16
from elmo_scratch.modules.products.fingerprint import Fingerprint as Fingerprint
from elmo_scratch.modules.products.frozen_products import FrozenProducts as FrozenProducts
from elmo_scratch.modules.products.frozen_products import are_frozen as are_frozen
from elmo_scratch.modules.products.onednn_product import filled_up as filled_up
from elmo_scratch.modules.products.precision import MixedPrecision as MixedPrecision
from elmo_scratch.modules.products.precision import precision_of as precision_of
from elmo_scratch.modules.products.precision import without_autocast as without_autocast
from elmo_scratch.modules.products.recycled_memory import RECYCLED as RECYCLED
from elmo_scratch.modules.products.recycled_product import recycled_product as recycled_product
from elmo_scratch.modules.products.weight_gradient import add_weight_gradient as add_weight_gradient
from elmo_scratch.modules.products.weight_gradient import weight_gradients as weight_gradients
from elmo_scratch.modules.products.weight_product import WeightProduct as WeightProduct
from elmo_scratch.modules.products.weight_product import (
    rows_are_independent as rows_are_independent,
)

__all__ = [
    "Affine",
    "BFLOAT16",
    "Fingerprint",
    "FrozenProducts",
    "MixedPrecision",
    "RECYCLED",
    "WeightProduct",
    "add_weight_gradient",
    "are_frozen",
    "filled_up",
    "precision_of",
    "recycled_product",
    "rows_are_independent",
    "weight_gradients",
    "without_autocast",
]
