"""AllenNLP's initializers and regularizers, which find parameters by regular expressions."""

import functools
import logging
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Set

logger = logging.getLogger(__name__)


def spare_pretrained_weights(initializers: Any) -> None:
    """
    The initializers of many configs, such as `.*projection.*weight` of AllenNLP's dependency
    parser, match weights of a biLM too, and draw these anew without a word. Here the pre-trained
    weights of ELMo keep their values, the package's as well as AllenNLP's own, and the log names
    the expression that matches them. The initializer "pretrained", which copies weights from a
    file, acts on them as before.

    An expression such as `.*weight` doesn't mean the weights of a mix either: AllenNLP calls them
    `scalar_parameters`.
    """
    applicator = initializers.InitializerApplicator
    original, copying = applicator.__call__, initializers.PretrainedModelInitializer

    @functools.wraps(original)
    def __call__(self: Any, module: Any) -> None:
        pretrained = _pretrained_parameters(module)
        spared: Dict[str, List[str]] = {}
        others: List[_Named] = []
        for named in _named_parameters(module):
            matching = [pair for pair in self._initializers if re.search(pair[0], named.name)]
            is_prevented = self._prevent_regex and re.search(self._prevent_regex, named.name)
            if is_prevented or not matching or isinstance(matching[0][1], copying):
                others.append(named)
            elif id(named.parameter) in pretrained:
                spared.setdefault(matching[0][0], []).append(named.name)
            elif any(named.is_meant_by(regex) for regex, _ in matching):
                others.append(named)
        for regex, names in spared.items():
            logger.warning(
                "The initializer of %r would have changed pre-trained weights of ELMo; they keep "
                "their values: %s",
                regex,
                ", ".join(names),
            )
        original(self, _Parameters([(named.name, named.parameter) for named in others]))

    applicator.__call__ = __call__


def match_old_names(regularizer_applicator: Any) -> None:
    """
    Configs that were written for AllenNLP's ELMo penalize its `scalar_parameters`, a name that the
    weights of this package's mixes don't have: the penalty is 0, without a word. Here expressions
    match AllenNLP's names too. One that matches no trained parameter is reported once.
    """
    applicator = regularizer_applicator.RegularizerApplicator
    original = applicator.__call__

    @functools.wraps(original)
    def __call__(self: Any, module: Any) -> Any:
        if not hasattr(self, "_names"):
            # Once: this is called at each step.
            regexes = [regex for regex, _ in self._regularizers]
            named = list(_named_parameters(module))
            self._names = {one.name: one.name_for(regexes) for one in named}
            trained = [one for one in named if one.parameter.requires_grad]
            for regex in regexes:
                if not any(one.is_meant_by(regex) for one in trained):
                    logger.warning("The regularizer of %r matches no trained parameter", regex)
        renamed = [(self._names.get(name, name), one) for name, one in module.named_parameters()]
        return original(self, _Parameters(renamed))

    applicator.__call__ = __call__


class _Named(NamedTuple):
    """A parameter, its name, and the name that AllenNLP's ELMo gives to one in its place."""

    name: str
    old_name: str
    parameter: Any

    def is_meant_by(self, regex: str) -> bool:
        """
        Whether an expression matches the old name or, by more than its last part, the new one. All
        `.*weight` matches in `mix.weights` is an ending that the old name doesn't have.
        """
        if re.search(regex, self.old_name):
            return True
        ending = self.name.rpartition(".")[2]
        return bool(re.search(regex, self.name)) and not re.search(regex, ending)

    def name_for(self, regexes: List[str]) -> str:
        """The one of both names that these expressions shall be compared with."""
        is_new = not any(re.search(regex, self.old_name) for regex in regexes)
        return self.name if is_new and any(map(self.is_meant_by, regexes)) else self.old_name


class _Parameters:
    """Stands for a module where only `named_parameters()` is asked for."""

    def __init__(self, named: List[Any]) -> None:
        self._named = named

    def named_parameters(self) -> List[Any]:
        return self._named


def _pretrained_parameters(model: Any) -> Set[int]:
    """The `id` of each parameter that belongs to the pre-trained part of an ELMo."""
    found: Set[int] = set()
    for module in model.modules():
        kind = type(module)
        if kind.__module__ == "allennlp.modules.elmo" and kind.__name__ == "_ElmoBiLm":
            found.update(map(id, module.parameters()))
        elif hasattr(kind, "pretrained_part"):
            found.update(map(id, getattr(module, kind.pretrained_part).parameters()))
    return found


def _named_parameters(model: Any) -> Iterator[_Named]:
    """All parameters of a model. `allennlp_names` of a module renames parts of it."""
    old_names = {
        f"{path}.{new}".lstrip("."): old
        for path, module in model.named_modules()
        for new, old in getattr(module, "allennlp_names", {}).items()
    }
    for name, parameter in model.named_parameters():
        yield _Named(name, _renamed(name, old_names), parameter)


def _renamed(name: str, old_names: Dict[str, str]) -> str:
    """Replaces the parts of a name whose paths are keys of `old_names`."""
    path, _, last = name.rpartition(".")
    before = _renamed(path, old_names) if path else ""
    return f"{before}.{old_names.get(name, last)}".strip(".")
