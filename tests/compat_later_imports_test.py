"""What AllenNLP imports only when it is used, and what it is then."""

import fractions
import sys
from fractions import Fraction
from importlib import import_module
from types import ModuleType
from typing import Any, List, Optional, Sequence, Tuple

import pytest
from allennlp_models.rc.tools import narrativeqa
from nltk import Tree

from elmo_scratch_compat.later_imports import LATER, Later, modules_replaced, names_when_used

NAMES = sorted({(module, name) for module, names in LATER.items() for name in names})


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that has not been imported, and is there."""
    monkeypatch.delitem(sys.modules, "fractions")
    return "fractions"


def imported_names(names: Tuple[str, ...]) -> Any:
    """What a module's code gets that imports a class of `fractions`, and the module itself."""
    with names_when_used(names):
        import fractions as module
        from fractions import Fraction as Class

        return Class, module


@pytest.mark.parametrize("module, name", NAMES)
def test_each_name_is_one_that_allennlp_imports(module: str, name: str) -> None:
    importing = import_module(module)
    package, _, last = name.rpartition(".")
    assert hasattr(import_module(package), last) or import_module(name)
    known = vars(importing).values()
    assert last in vars(importing) or any(
        isinstance(one, ModuleType) and package.startswith(one.__name__) for one in known
    )


def test_a_name_is_imported_when_it_is_used(absent: str) -> None:
    later, module = imported_names(("fractions.Fraction",))
    assert isinstance(later, Later) and "fractions" not in sys.modules
    annotations: Sequence[Any] = (List, Optional)
    assert [form[later] for form in annotations] and "fractions" not in sys.modules
    assert not hasattr(later, "__wrapped__") and "fractions" not in sys.modules
    half = later(1, 2)
    assert "fractions" in sys.modules
    assert type(half) is sys.modules["fractions"].Fraction
    a_class: Any = later
    assert isinstance(half, a_class) and not isinstance(0.5, a_class)
    assert later.from_float(0.5) == half
    assert module.Fraction is later and module.Decimal is sys.modules["fractions"].Decimal


def test_a_name_can_be_a_base_class(absent: str) -> None:
    later: Any = imported_names(("fractions.Fraction",))[0]

    class Share(later):
        pass

    assert Share.__bases__ == (sys.modules["fractions"].Fraction,)
    assert Share(1, 2) + 1 == Fraction(3, 2)


def test_what_is_imported_already_is_left_alone() -> None:
    assert imported_names(("fractions.Fraction",)) == (Fraction, fractions)


def test_others_that_use_more_of_a_module_meanwhile_get_it(absent: str) -> None:
    with names_when_used(("fractions.Fraction",)):
        stand_in = sys.modules["fractions"]
        assert stand_in.Decimal is not None  # type: ignore[attr-defined]
        whole = sys.modules["fractions"]
        assert whole is not stand_in
    assert sys.modules["fractions"] is whole


def test_modules_are_there_again_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), modules_replaced({"fractions": None, "no_such": None}):
        with pytest.raises(ImportError):
            import_module("fractions")
        1 / 0  # noqa: B018
    assert sys.modules["fractions"] is fractions
    assert "no_such" not in sys.modules


def test_answers_are_scored_by_what_is_imported_then() -> None:
    answer, others = "a grey cat and dog".split(), ["a grey cat and frog".split()]
    assert narrativeqa.bleu_1(answer, others) == pytest.approx(4 / 5)
    assert narrativeqa.rouge_l_evaluator.alpha == 0.5


def test_trees_are_nltks() -> None:
    parser = import_module("allennlp_models.structured_prediction.predictors.constituency_parser")
    assert isinstance(Tree("S", ["a"]), parser.Tree)
    assert not isinstance("a", parser.Tree)
