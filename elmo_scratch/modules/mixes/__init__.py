"""Layer mixes: they combine all layers of a biLM into the one vector a token that a task sees."""

from elmo_scratch.modules.mixes.fixed_mixes import MeanMix as MeanMix
from elmo_scratch.modules.mixes.fixed_mixes import TopMix as TopMix
from elmo_scratch.modules.mixes.frozen_mix import FrozenMix as FrozenMix
from elmo_scratch.modules.mixes.function_mix import FunctionMix as FunctionMix
from elmo_scratch.modules.mixes.gate_mix import GateMix as GateMix
from elmo_scratch.modules.mixes.layer_mix import LayerMix as LayerMix
from elmo_scratch.modules.mixes.trainable_mix import TrainableMix as TrainableMix

__all__ = [
    "FrozenMix",
    "FunctionMix",
    "GateMix",
    "LayerMix",
    "MeanMix",
    "TopMix",
    "TrainableMix",
]
