"""`docs/reference/settings.md`: what each registered class takes from a config."""

import ast
import inspect
import json
import re
from typing import Any, Iterator, List, Optional, Union, get_args, get_origin

from allennlp.common import Lazy

from benchmarks.reference.docstrings import Docstring
from benchmarks.reference.registered import (
    KINDS,
    Registered,
    Setting,
    all_registered,
    parts,
    registered,
    settings,
    taken_over,
)

HEAD = """\
# Settings

This page lists what a config can give to each class of the package, with its type and its default.
The type is that of the constructor's argument. Where it is the name of a class, a config gives a
block with that class's `type` and settings. What is `None`, `True` and `False` in a text is `null`,
`true` and `false` in a config. Where a text says *see* and a name, the docstring of that class or
function says more. [Files](formats.md) describes what data files hold.

`python -m benchmarks.reference --write` makes this page from the constructors and their docstrings.
[Registered names](names.md) lists the classes; [commands](commands.md) has the options of the
command line."""

PARTS = """\
## Parts without a name

A config gives the settings of these where they are used, without a `type`."""


def settings_page() -> str:
    """The page."""
    lines = [HEAD]
    for base in KINDS:
        lines += ["", f"## {base.__name__}", "", _about(base)]
        for one in registered(base):
            lines += ["", *_section(one)]
    lines += ["", PARTS]
    for one in parts():
        lines += ["", *_section(one)]
    return "\n".join(lines) + "\n"


def title(one: Registered) -> str:
    """The heading of a class: it is the only one of that text."""
    return f"`{one.cls.__name__}`" if one.name is None else f"{one.base.__name__} `{one.name}`"


def anchor(one: Registered) -> str:
    """What links to the heading of a class end with."""
    return title(one).replace("`", "").replace(" ", "-").lower()


def _about(base: Any) -> str:
    place, supplied = KINDS[base]
    line = f"Named in {place}."
    if supplied:
        line += f" Not set by a config: {', '.join(f'`{name}`' for name in supplied)}."
    return line


def _section(one: Registered) -> Iterator[str]:
    """Yields the lines about a class."""
    documented = one.documented
    yield f"### {title(one)}"
    yield ""
    yield from text_of(documented).splitlines()
    if documented.source:
        yield ""
        yield f"Source: {_joined(documented.source)}"
    found = settings(one)
    own = [setting for setting in found if setting.entry is not None]
    yield ""
    yield from (line for setting in own for line in _own(setting))
    yield from _inherited([setting for setting in found if setting.entry is None])
    other = taken_over(one)
    if other is not None:
        yield f"- All other settings of [`{other.name}`](#{anchor(other)})."
    if not found:
        yield "It has no settings."


def text_of(documented: Docstring) -> str:
    """The text of a docstring without what the heading says already."""
    text = re.sub(
        r'Registered as (?:an?|the) .*?(?:"\.|"[^".]*\.(?=\s|$))', "", documented.text, flags=re.S
    )
    paragraphs = [paragraph.strip() for paragraph in text.split("\n\n")]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _own(setting: Setting) -> Iterator[str]:
    assert setting.entry is not None
    first, *others = setting.entry.text.split("\n\n")
    default = default_of(setting)
    shown = "needed" if default is None else f"default {default}"
    yield f"- **`{setting.name}`**: {type_of(setting.annotation)}, {shown}. {_joined(first)}"
    for paragraph in others:
        yield ""
        yield from (f"    {line}" for line in paragraph.splitlines())


def _inherited(found: List[Setting]) -> Iterator[str]:
    """What classes of AllenNLP document: a line for each of them."""
    for origin in dict.fromkeys(setting.origin for setting in found):
        names = ", ".join(
            f"`{one.name}` ({type_of(one.annotation)}, {default_of(one) or 'needed'})"
            for one in found
            if one.origin is origin
        )
        yield f"- As AllenNLP's `{origin.__name__ if origin else ''}` has them: {names}."


def type_of(annotation: Any) -> str:
    """How a type is written: as in code, and linked where the page has a section on it."""
    name = _type_name(annotation)
    for base in (*KINDS, *(one.base for one in parts())):
        if base.__name__ == name:
            return f"[`{name}`](#{name.lower()})"
    return f"`{name}`"


def _type_name(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Lazy:
        return _type_name(inner[0])
    if origin is Union:
        names = [_type_name(one) for one in inner if one is not type(None)]
        # A config has no other paths than strings.
        return " or ".join(dict.fromkeys(name for name in names if name != "PathLike"))
    if origin is not None:
        name = getattr(annotation, "_name", None) or origin.__name__
        written = ", ".join(_type_name(one) for one in inner if one is not ...)
        return f"{'List' if name == 'Sequence' else name}[{written}]"
    return getattr(annotation, "__name__", str(annotation))


def default_of(setting: Setting) -> Optional[str]:
    """
    A default as a config would write it, or in the words of the docstring where these say more.
    `None` where there is none.

    # Raises

    ValueError
        If the docstring has another default than the constructor.
    """
    default = setting.default
    if default is inspect.Parameter.empty:
        return None
    if setting.entry is None or setting.entry.default is None:
        return f"`{json.dumps(default)}`"
    told = _joined(setting.entry.default)
    quoted, more = re.fullmatch(r"(?:`([^`]*)`)?(.*)", told, re.DOTALL).groups()
    if quoted is not None and _is_literal(quoted):
        if ast.literal_eval(quoted) != default:
            raise ValueError(f"{setting.name}: the default is {default!r}, not {quoted}")
        return f"`{json.dumps(default)}`{more}"
    made = default._constructor.__name__ if isinstance(default, Lazy) else quoted
    if isinstance(default, (bool, int, float)) or made != quoted:
        raise ValueError(f"{setting.name}: the default is {default!r}, not {told}")
    names = [one.name for one in all_registered() if one.cls.__name__ == quoted]
    return f'`"{names[0]}"`{more}' if names else told


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True


def _joined(text: str) -> str:
    return " ".join(text.split())
