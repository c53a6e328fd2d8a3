"""Keys of a config that nothing reads."""

import functools
import inspect
from difflib import get_close_matches
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from elmo_scratch_compat.old_keys import old_list, old_setting, old_type

STOCK = ("allennlp.", "allennlp_models.", "elmo_scratch.")
"""The packages whose readers, models and trainers read only what their constructors name."""


def refuse_unread_keys(from_params: Any) -> None:
    """
    AllenNLP's trainer takes any key: `trainer.num_epoch` trains for the default of 20 epochs,
    without a word. A model or a reader ends in a traceback on one. And what a training builds last,
    its trainer, is looked at last, when a corpus has been prepared for an hour. Here all keys are
    checked when the outermost object is built.
    """
    original = from_params.create_kwargs

    @functools.wraps(original)
    def create_kwargs(constructor: Any, cls: Any, params: Any, **extras: Any) -> Dict[str, Any]:
        unread = list(_unread_keys(from_params, cls, constructor, params))
        if unread:
            raise from_params.ConfigurationError(_told(unread))
        return original(constructor, cls, params, **extras)

    from_params.create_kwargs = create_kwargs


class UnreadKey(NamedTuple):
    """
    A key, its place in the config, the class that it is given to, the keys of that, and what to
    write where an older AllenNLP read it.
    """

    place: str
    key: str
    class_name: str
    known: List[str]
    new: Optional[str] = None

    def told(self) -> str:
        nearest = get_close_matches(self.key, self.known, n=1)
        way_out = f"Did you mean {nearest[0]!r}?" if nearest else f"It has {', '.join(self.known)}."
        return f"{self.place}{self.key}: {self.class_name} has no such setting. {way_out}"


def _told(unread: List[UnreadKey]) -> str:
    """Tells of the first key, or where some are of an older AllenNLP of the first of these."""
    old = [one for one in unread if one.new is not None]
    if not old:
        return unread[0].told()
    told = f"{old[0].place}{old[0].key} is written for an older AllenNLP. {old[0].new}"
    others = [f"{one.place}{one.key}" for one in old[1:]]
    if others:
        told += f" Others here: {', '.join(others)}. docs/coming_from.md has them all."
    return told


def _unread_keys(from_params: Any, cls: Any, constructor: Any, params: Any) -> Iterator[UnreadKey]:
    """Yields the keys that are not read, in `params` and in what is built from its parts."""
    parameters = dict(from_params.infer_params(cls, constructor))
    takes_others = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    names = [name for name, one in parameters.items() if one.kind is not one.VAR_KEYWORD]
    if not takes_others or _reads_only_what_it_names(from_params, cls):
        read = {*names, *_strings_of(cls)}
        for key in params:
            if key not in read:
                known = sorted({*names} - {"self"})
                new = old_setting(f"{params.history}{key}", cls.__name__, params.params[key])
                yield UnreadKey(params.history, key, cls.__name__, known, new)
    for name in names:
        built = from_params.remove_optional(parameters[name].annotation)
        new = old_list(name, cls.__name__, built, params.params.get(name))
        if new is not None:
            yield UnreadKey(params.history, name, cls.__name__, names, new)
        for base, part in _parts(from_params, parameters[name].annotation, params.get(name, None)):
            new = old_type(base.__name__, part.params)
            if new is not None:
                yield UnreadKey(part.history, "type", cls.__name__, names, new)
            found = _class_of(from_params, base, part)
            if found is not None:
                rest = part.duplicate()
                rest.params.pop("type", None)
                yield from _unread_keys(from_params, *found, rest)


def _reads_only_what_it_names(from_params: Any, cls: Any) -> bool:
    """
    Whether a class does nothing with other keys, though its constructor takes any. It hands them to
    its base, and the bases of readers, models and trainers have no use for them.
    """
    from allennlp.data import DatasetReader
    from allennlp.models import Model
    from allennlp.training import Trainer

    is_stock = cls.__module__.startswith(STOCK)
    return is_stock and issubclass(cls, (DatasetReader, Model, Trainer))


def _strings_of(cls: Any) -> List[str]:
    """The strings in its constructors, among them older names of settings, which they look for."""
    constructors = [inspect.unwrap(vars(one).get("__init__")) for one in cls.__mro__]
    codes = [getattr(constructor, "__code__", None) for constructor in constructors]
    return [text for code in codes if code for text in code.co_consts if isinstance(text, str)]


def _parts(from_params: Any, annotation: Any, value: Any) -> Iterator[Tuple[Any, Any]]:
    """Yields each kind of object, and its settings, that a value of a config stands for."""
    annotation = from_params.remove_optional(annotation)
    origin = getattr(annotation, "__origin__", None)
    inner = getattr(annotation, "__args__", None) or (None,)
    if origin is from_params.Lazy:
        yield from _parts(from_params, inner[0], value)
    elif isinstance(value, list) and origin is list:
        for one in value:
            yield from _parts(from_params, inner[0], one)
    elif isinstance(value, from_params.Params) and origin is dict:
        for key in value:
            yield from _parts(from_params, inner[-1], value.get(key, None))
    elif isinstance(value, from_params.Params) and isinstance(annotation, type):
        if issubclass(annotation, from_params.FromParams) and "_pretrained" not in value:
            yield annotation, value


def _class_of(from_params: Any, base: Any, params: Any) -> Optional[Tuple[Any, Any]]:
    """
    The class that AllenNLP would build and its constructor; `None` if the class reads its settings
    itself, or the config names none that is known, which AllenNLP tells in its turn.
    """
    cls, constructor = base, None
    if getattr(base, "_registry", {}).get(base):
        name = params.get("type", None) or base.default_implementation
        try:
            cls, constructor = base.resolve_class_name(name)
        except (from_params.ConfigurationError, TypeError, AttributeError):
            return None
    reads_itself = getattr(cls, "from_params", None)
    if getattr(reads_itself, "__func__", None) is not from_params.FromParams.from_params.__func__:
        return None
    constructor = getattr(cls, constructor) if constructor else cls.__init__
    return None if constructor is object.__init__ else (cls, constructor)
