"""What AllenNLP imports only when it is used, and what it is then."""

import builtins
import copy
import fractions
import multiprocessing
import pickle
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any, List, Optional, Sequence

import pytest
import torch
from allennlp.fairness import Independence
from allennlp.modules.transformer.activation_layer import ActivationLayer
from allennlp_models.rc.tools import narrativeqa
from nltk import Tree

from elmo_scratch_compat.later_imports import (
    IMPORTS,
    LATER,
    Later,
    imported_when_used,
    modules_replaced,
)


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that has not been imported, and is there."""
    monkeypatch.delitem(sys.modules, "fractions")
    return "fractions"


def imported_names() -> List[Any]:
    """What the code of this module gets, in a block where it is to use `fractions` later."""
    with imported_when_used(__name__, ("fractions",)):
        import fractions as module
        from fractions import Fraction as Class
    return [Class, module]


@pytest.mark.parametrize("module", sorted({name for names in LATER.values() for name in names}))
def test_each_module_is_there(module: str) -> None:
    assert import_module(module)


IMPORT_EACH = f"""
import os, sys, torch, elmo_scratch_compat

# Other people's libraries that every one of them imports at once.
import cached_path, fairscale.nn, h5py, lmdb, numpy, tensorboardX

for name in {sorted(LATER)}:
    child = os.fork()
    if child == 0:
        __import__(name)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""


@pytest.mark.exhaustive
def test_any_of_allennlps_modules_can_be_the_first() -> None:
    """Each imports much of AllenNLP and of other packages in turn, while its own names stand in."""
    finished = subprocess.run([sys.executable, "-c", IMPORT_EACH], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


def test_a_name_is_imported_when_it_is_used(absent: str) -> None:
    later, module = imported_names()
    assert isinstance(later, Later) and absent not in sys.modules
    annotations: Sequence[Any] = (List, Optional)
    assert [form[later] for form in annotations] and absent not in sys.modules
    assert not hasattr(later, "__wrapped__") and not hasattr(module, "__path__")
    half = later(1, 2)
    assert type(half) is sys.modules[absent].Fraction
    a_class: Any = later
    assert isinstance(half, a_class) and not isinstance(0.5, a_class)
    assert issubclass(type(half), a_class) and not issubclass(float, a_class)
    assert module.Fraction.from_float(0.5) == later.from_float(0.5) == half
    # By then the module that imports it has run.
    assert module.Fraction is sys.modules[absent].Fraction


def test_a_name_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "keyword")
    with imported_when_used(__name__, ("keyword",)):
        from keyword import kwlist
    assert isinstance(kwlist, Later) and "keyword" not in sys.modules
    assert kwlist[0] == "False" and "else" in kwlist
    assert list(kwlist) == sys.modules["keyword"].kwlist and len(kwlist) == len(list(kwlist))


def test_a_name_may_be_copied_compared_and_replaced(
    absent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = imported_names()[0]
    assert repr(later) == "<fractions.Fraction, imported when it is used>"
    assert absent not in sys.modules
    found = pickle.loads(pickle.dumps(later))
    assert copy.deepcopy(later) is found is sys.modules[absent].Fraction
    assert later and later == found and found == later and later == later
    assert later != Decimal and hash(later) == object.__hash__(later)
    monkeypatch.setattr(sys.modules[absent], "Fraction", Decimal)
    assert type(later("1")) is Decimal and later == Decimal


def test_what_a_module_lacks_it_lacks_later(absent: str) -> None:
    module = imported_names()[1]
    assert not hasattr(module, "nothing_of_this_name")
    assert getattr(module, "nothing_of_this_name", 1) == 1


def test_a_metric_that_keeps_a_name_may_be_copied() -> None:
    metric = copy.deepcopy(Independence(2, 2, dist_metric="wasserstein"))
    metric(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]))
    assert metric.get_metric() == {0: pytest.approx(1 / 6), 1: pytest.approx(1 / 3)}


def test_a_name_can_be_a_base_class(absent: str) -> None:
    later: Any = imported_names()[0]

    class Share(later):
        pass

    assert Share.__bases__ == (sys.modules[absent].Fraction,)
    assert Share(1, 2) + 1 == Fraction(3, 2)


def test_a_module_of_a_module_is_found(absent: str) -> None:
    with imported_when_used(__name__, ("multiprocessing.dummy",)):
        sys.modules.pop("multiprocessing.dummy", None)
        import multiprocessing.dummy as stand_in

        names = [stand_in.Pool]
    assert isinstance(names[0], Later) and "multiprocessing.dummy" not in sys.modules
    assert stand_in.Pool is multiprocessing.dummy.Pool


def test_what_is_imported_already_is_left_alone() -> None:
    assert imported_names() == [Fraction, fractions]


def test_what_was_left_midway_begins_again() -> None:
    original = builtins.__import__
    IMPORTS.begin("somebody", ("fractions",))
    with imported_when_used("somebody", ("fractions",)):
        assert builtins.__import__ is IMPORTS
    assert builtins.__import__ is original


def test_modules_may_end_in_any_order(absent: str) -> None:
    original = builtins.__import__
    IMPORTS.begin("somebody", ("fractions",))
    IMPORTS.begin(__name__, ("fractions",))
    IMPORTS.end("somebody")
    try:
        from fractions import Fraction as found
    finally:
        IMPORTS.end(__name__)
    assert isinstance(found, Later) and builtins.__import__ is original


def test_others_get_the_module_meanwhile(absent: str) -> None:
    with imported_when_used("somebody", ("fractions",)):
        from fractions import Fraction as found
    assert found is sys.modules[absent].Fraction


def test_modules_are_there_again_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), modules_replaced({"fractions": None, "no_such": None}):
        with pytest.raises(ImportError):
            import_module("fractions")
        1 / 0  # noqa: B018
    assert sys.modules["fractions"] is fractions
    assert "no_such" not in sys.modules


def test_transformers_is_asked_for_names_later_although_it_is_there() -> None:
    import transformers

    with imported_when_used(__name__, ("transformers",)):
        from transformers import AutoModel
    assert isinstance(AutoModel, Later)
    assert AutoModel.from_pretrained == transformers.AutoModel.from_pretrained
    with imported_when_used(__name__, ("transformers",)):
        import transformers as module
    assert module is not transformers and module.AutoConfig is transformers.AutoConfig
    assert module.__version__ == transformers.__version__


def test_activations_are_those_of_transformers() -> None:
    assert isinstance(ActivationLayer(2, 2, "relu").act_fn, torch.nn.ReLU)


def test_answers_are_scored_by_what_is_imported_then() -> None:
    answer, others = "a grey cat and dog".split(), ["a grey cat and frog".split()]
    assert narrativeqa.bleu_1(answer, others) == pytest.approx(4 / 5)
    assert narrativeqa.rouge_l_evaluator.alpha == 0.5


def test_trees_are_nltks() -> None:
    parser = import_module("allennlp_models.structured_prediction.predictors.constituency_parser")
    assert isinstance(Tree("S", ["a"]), parser.Tree)
    assert not isinstance("a", parser.Tree)
