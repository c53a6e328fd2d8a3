import copy
from typing import Any, Callable, Dict, List, Tuple

import pytest
import torch
from allennlp.training.optimizers import AdagradOptimizer, Optimizer

from elmo_scratch.training import FusedAdagrad
from elmo_scratch.training import fused_adagrad as module

Settings = Dict[str, Any]
RECIPE: Settings = {"lr": 0.2, "initial_accumulator_value": 1.0}


def parameters_of(seed: int = 13) -> List[Tuple[str, torch.nn.Parameter]]:
    torch.manual_seed(seed)
    shapes = {"weight": (70, 33), "bias": (70,), "unused": (2,), "words": (50, 8)}
    return [(name, torch.nn.Parameter(torch.randn(shape))) for name, shape in shapes.items()]


def give_gradients(parameters: List[Tuple[str, torch.nn.Parameter]], seed: int) -> None:
    """Dense ones, none for the third, sparse ones for the fourth."""
    torch.manual_seed(seed)
    for name, parameter in parameters:
        gradient = torch.randn_like(parameter)
        if name == "words":
            gradient = torch.sparse_coo_tensor(
                torch.tensor([[1, 4, 30]]), gradient[:3], parameter.shape, check_invariants=True
            ).coalesce()
        parameter.grad = None if name == "unused" else gradient


def trained(
    kind: Callable[..., Any], settings: Settings, steps: int = 5, state: Any = None
) -> Tuple[List[torch.Tensor], Any]:
    """Weights after some steps, and what the optimizer then saves."""
    parameters = parameters_of()
    optimizer = kind(parameters, **settings)
    if state is not None:
        optimizer.load_state_dict(copy.deepcopy(state))
    for step in range(steps):
        give_gradients(parameters, seed=step)
        optimizer.step()
    return [parameter.detach() for _, parameter in parameters], optimizer.state_dict()


@pytest.mark.parametrize(
    "settings",
    [
        RECIPE,
        {"lr": 0.01, "lr_decay": 0.5},
        {"lr": 0.1, "initial_accumulator_value": 0.1, "eps": 1},
    ],
)
def test_it_does_what_allennlps_does(settings: Settings) -> None:
    before = [parameter.detach().clone() for _, parameter in parameters_of()]
    ours, _ = trained(FusedAdagrad, settings)
    theirs, _ = trained(AdagradOptimizer, settings)
    changed = [not torch.equal(one, other) for one, other in zip(ours, before, strict=True)]
    assert changed == [True, True, False, True]
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, rtol=1e-6, atol=1e-6)


def test_it_decays_weights_as_allennlps_does() -> None:
    found: List[torch.Tensor] = []
    for kind in (FusedAdagrad, AdagradOptimizer):
        dense = parameters_of()[:2]
        optimizer = kind(dense, weight_decay=0.1, **RECIPE)
        give_gradients(dense, seed=1)
        optimizer.step()
        found.append(torch.cat([parameter.detach().flatten() for _, parameter in dense]))
    ours, theirs = found
    assert torch.allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def test_sparse_gradients_change_only_their_rows() -> None:
    words = parameters_of()[3][1].detach()
    (*_, after), _ = trained(FusedAdagrad, RECIPE)
    assert (after != words).any(dim=1).nonzero().flatten().tolist() == [1, 4, 30]


def test_it_goes_on_from_allennlps_checkpoint_and_the_other_way_round() -> None:
    _, ours = trained(FusedAdagrad, RECIPE)
    _, theirs = trained(AdagradOptimizer, RECIPE)
    expected, _ = trained(AdagradOptimizer, RECIPE, steps=2, state=theirs)
    for kind, state in ((FusedAdagrad, theirs), (AdagradOptimizer, ours)):
        weights, saved = trained(kind, RECIPE, steps=2, state=state)
        for one, other in zip(weights, expected, strict=True):
            assert torch.allclose(one, other, rtol=1e-6, atol=1e-6)
        assert [float(own["step"]) for own in saved["state"].values()] == [7.0, 7.0, 0.0, 7.0]


def test_groups_have_learning_rates_of_their_own() -> None:
    parameters = parameters_of()
    before = [parameter.detach().clone() for _, parameter in parameters]
    optimizer = FusedAdagrad(parameters, parameter_groups=[(["bias"], {"lr": 0.0})], **RECIPE)
    give_gradients(parameters, seed=1)
    optimizer.step()
    changed = [
        not torch.equal(parameter, other)
        for (_, parameter), other in zip(parameters, before, strict=True)
    ]
    assert changed == [True, False, False, True]


def test_what_is_dense_on_a_processor_takes_pytorchs_fused_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: List[Tuple[Any, List[torch.Size]]] = []

    def noted(parameters: List[torch.Tensor], *others: Any, **settings: Any) -> None:
        calls.append((settings["fused"], [parameter.shape for parameter in parameters]))

    monkeypatch.setattr(module, "adagrad", noted)
    trained(FusedAdagrad, RECIPE, steps=1)
    assert calls == [(True, [(70, 33), (70,)]), (None, [(50, 8)])]


def test_what_is_dense_and_has_no_fused_code_is_changed_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways: List[Tuple[bool, int]] = []
    original = module.adagrad

    def noted(parameters: List[torch.Tensor], *others: Any, **settings: Any) -> None:
        ways.append((settings["has_sparse_grad"], len(parameters)))
        original(parameters, *others, **settings)

    parameters = [
        (name, torch.nn.Parameter(parameter.detach().to(torch.complex64)))
        for name, parameter in parameters_of()
    ]
    give_gradients(parameters, seed=0)
    monkeypatch.setattr(module, "adagrad", noted)
    FusedAdagrad(parameters, **RECIPE).step()
    assert ways == [(False, 2), (True, 1)]


def test_numbers_may_lie_in_any_way() -> None:
    def changed(kind: Callable[..., Any]) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        torch.manual_seed(13)
        whole, square = torch.randn(6, 8), torch.nn.Parameter(torch.randn(5, 5))
        part = torch.nn.Parameter(whole[:, :4])
        part.grad, square.grad = torch.randn(6, 4), torch.randn(5, 5).t()
        kind([("part", part), ("square", square)], **RECIPE).step()
        return whole, part.detach(), square.detach()

    for ours, theirs in zip(changed(FusedAdagrad), changed(AdagradOptimizer), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)


def test_a_checkpoint_of_other_parameters_is_an_error() -> None:
    def optimizer_of(*sizes: int) -> FusedAdagrad:
        parameters = [(str(size), torch.nn.Parameter(torch.ones(size))) for size in sizes]
        for _, parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        return FusedAdagrad(parameters, **RECIPE)

    other = optimizer_of(5, 3)
    other.load_state_dict(optimizer_of(3, 5).state_dict())
    with pytest.raises(RuntimeError, match="size"):
        other.step()


def test_a_closure_computes_the_gradients() -> None:
    parameters = parameters_of()
    optimizer = FusedAdagrad(parameters, **RECIPE)

    def closure() -> float:
        assert torch.is_grad_enabled()
        give_gradients(parameters, seed=0)
        return 3.0

    before = parameters[0][1].detach().clone()
    assert optimizer.step(closure) == 3.0
    assert not torch.equal(parameters[0][1], before)


def test_a_config_can_name_it() -> None:
    assert Optimizer.by_name("elmo_scratch_adagrad") is FusedAdagrad
