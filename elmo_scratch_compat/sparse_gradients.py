"""Clipping of sparse gradients."""

import copy
import functools
from types import SimpleNamespace
from typing import Any, Iterable, List


def clip_sparse_norms(module: Any) -> None:
    """
    `torch.nn.utils.clip_grad_norm_` works by fused kernels that know no sparse gradients, which
    AllenNLP's "embedding" makes with `sparse: true`. Only the values of a sparse gradient count.
    """
    clip_dense = module.clip_grad_norm_

    @functools.wraps(clip_dense)
    def clip_grad_norm_(parameters: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        return clip_dense(_with_dense_gradients(parameters), *args, **kwargs)

    module.clip_grad_norm_ = clip_grad_norm_


def clip_sparse(trainer: Any) -> None:
    """Lets `grad_norm` and `grad_clipping` of AllenNLP's trainer clip sparse gradients too."""
    clip_sparse_norms(trainer)
    clip_dense = trainer.GradientDescentTrainer.clip_gradient

    @functools.wraps(clip_dense)
    def clip_gradient(self: Any) -> None:
        stand_in = copy.copy(self)
        parameters = _with_dense_gradients(self.model.parameters())
        stand_in.model = SimpleNamespace(parameters=lambda: parameters)
        clip_dense(stand_in)

    trainer.GradientDescentTrainer.clip_gradient = clip_gradient


def _with_dense_gradients(parameters: Iterable[Any]) -> List[Any]:
    """
    Returns the parameters, where a parameter with a sparse gradient is replaced by a stand-in whose
    gradient is the tensor of the values, in the same memory.
    """
    stand_ins = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
            parameter = SimpleNamespace(grad=parameter.grad._values())
        stand_ins.append(parameter)
    return stand_ins
