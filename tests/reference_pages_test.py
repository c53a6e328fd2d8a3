"""The pages of `docs/reference/` that are made from the code, and the one of Python names."""

import inspect
import re
import sys
from typing import Any, Dict, Iterator, List, Optional, Set, Union

import pytest
from allennlp.common import Lazy, Registrable

import elmo_scratch
from benchmarks.reference import __main__ as pages_of_the_code
from benchmarks.reference.commands import commands_page
from benchmarks.reference.docstrings import Entry, escaped, first_sentence, parsed
from benchmarks.reference.names import names_page
from benchmarks.reference.registered import (
    Registered,
    Setting,
    all_registered,
    settings,
    taken_over,
)
from benchmarks.reference.settings import default_of, settings_page, type_of
from elmo_scratch.command_line import COMMANDS
from elmo_scratch.modules import LayerMix
from elmo_scratch.modules.mixes import TrainableMix
from tests import PROJECT_ROOT
from tests.exports_test import REGISTERED
from tests.tiny_training import CONFIGS, config_on_fixtures


def test_the_pages_are_what_the_code_gives() -> None:
    for path, page in pages_of_the_code.pages().items():
        told = f"{path}: python -m benchmarks.reference --write"
        assert path.read_text(encoding="utf-8") == page, told


def test_stale_pages_are_named_and_written_if_wished(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages_of_the_code, "pages", lambda: {tmp_path / "page.md": "# Page\n"})
    monkeypatch.setattr(sys, "argv", ["benchmarks.reference"])
    with pytest.raises(SystemExit, match="benchmarks.reference --write"):
        pages_of_the_code.main()
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(sys, "argv", ["benchmarks.reference", "--write"])
    pages_of_the_code.main()
    assert (tmp_path / "page.md").read_text() == "# Page\n"
    monkeypatch.setattr(sys, "argv", ["benchmarks.reference"])
    pages_of_the_code.main()


def sections(page: str) -> Dict[str, str]:
    """The sections of a page by their headings of the second level."""
    _, *rest = re.split(r"^## (.*)$", page, flags=re.MULTILINE)
    return dict(zip(rest[::2], rest[1::2]))


def test_all_names_are_listed_by_the_kind_that_they_are_registered_for() -> None:
    listed = {
        kind: set(re.findall(r"^- \[`([^`]+)`\]", section, re.MULTILINE))
        for kind, section in sections(names_page()).items()
    }
    assert listed == {base.__name__: names for base, names in REGISTERED.items()}


def named_blocks(config: Any) -> Iterator[Dict[str, Any]]:
    """The blocks of a config that name a class."""
    if isinstance(config, dict):
        if isinstance(config.get("type"), str):
            yield config
        for inner in config.values():
            yield from named_blocks(inner)
    elif isinstance(config, list):
        for inner in config:
            yield from named_blocks(inner)


def test_what_configs_set_is_listed() -> None:
    listed: Dict[Optional[str], Set[str]] = {}
    for one in all_registered():
        names = {setting.name for setting in settings(one)}
        other = taken_over(one)
        names |= set() if other is None else {setting.name for setting in settings(other)}
        listed.setdefault(one.name, set()).update(names)
    seen = set()
    for config in [*CONFIGS.glob("bilm/*.jsonnet"), *CONFIGS.glob("ag_news/elmo_*ion.jsonnet")]:
        for block in named_blocks(config_on_fixtures(config, CONFIGS)):
            if block["type"] in listed:
                seen.add(block["type"])
                assert block.keys() - {"type"} <= listed[block["type"]], (config, block["type"])
    assert len(seen) > 10


@pytest.mark.parametrize(
    "written, annotation, default, told",
    [
        (None, float, 0.25, "`0.25`"),
        ("`None`", Optional[int], None, "`null`"),
        ("`20`, the original's value", int, 20, "`20`, the original's value"),
        ("`TrainableMix`", Lazy[LayerMix], Lazy(TrainableMix), '`"trainable"`'),
        ("that of the archive", Optional[str], None, "that of the archive"),
        (None, int, inspect.Parameter.empty, None),
    ],
)
def test_defaults_are_in_a_configs_words(
    written: Optional[str], annotation: Any, default: Any, told: Optional[str]
) -> None:
    setting = Setting("x", annotation, default, Entry(written, ""), None)
    assert default_of(setting) == told


@pytest.mark.parametrize(
    "written, default", [("`0.1`", 0.2), ("ten", 10), ("`TrainableMix`", Lazy(LayerMix))]
)
def test_a_docstring_with_another_default_is_seen(written: str, default: Any) -> None:
    with pytest.raises(ValueError, match="x: the default is"):
        default_of(Setting("x", float, default, Entry(written, ""), None))


def test_types_are_what_a_config_gives() -> None:
    assert type_of(Optional[Lazy[LayerMix]]) == "[`LayerMix`](#layermix)"
    assert type_of(Union[str, List[str], None]) == "`str or List[str]`"
    assert type_of(Dict[str, float]) == "`Dict[str, float]`"


class Base(Registrable):
    """
    # Parameters

    size : `int`
        How large it is.
    """

    def __init__(self, size: int, undocumented: bool = False) -> None:
        self.size = size


class Derived(Base):
    """
    # Parameters

    own : `int`
        Its own.
    """

    def __init__(self, own: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)


def test_settings_of_bases_are_those_of_a_class_that_hands_them_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Base, "__module__", "elmo_scratch.base")
    one = Registered(Base, None, Derived, Derived.__init__)
    with pytest.raises(LookupError, match="Derived: # Parameters lacks 'undocumented'"):
        settings(one)
    monkeypatch.setattr(Base, "__module__", "allennlp.base")
    found = {setting.name: setting.origin for setting in settings(one)}
    assert found == {"own": None, "size": Base, "undocumented": Base}


def test_docstrings_are_taken_apart() -> None:
    docstring = parsed(
        """
        Two words. And more.

        # Parameters

        one, two : `int`, optional (default = `3`)
            A text
            of two lines.
        three
            See there.

        # Source

        A paper.
        """
    )
    assert docstring.text == "Two words. And more." and docstring.source == "A paper."
    shared = Entry("`3`", "A text\nof two lines.")
    assert docstring.parameters == {
        "one": shared,
        "two": shared,
        "three": Entry(None, "See there."),
    }
    with pytest.raises(ValueError, match="expected `name : type`"):
        parsed("# Parameters\n\nno name here\n")


def test_plain_text_is_no_markdown() -> None:
    assert escaped("a <S> and *.txt, but `<S>`") == r"a \<S> and \*.txt, but `<S>`"


def test_a_sentence_ends_outside_of_code() -> None:
    assert first_sentence('Scores `{"a": "b. c"}`: one\na line. More.') == 'Scores `{"a": "b. c"}`.'
    assert first_sentence("Has 0.5 of\nit\n\nMore.") == "Has 0.5 of it."


def test_options_are_told_as_they_are_typed() -> None:
    section = sections(commands_page())["allennlp elmo-train"]
    assert "\n- `TEXT …`: a file" in section
    assert "\n- `-s FOLDER`, `--serialization-dir FOLDER`, needed: the folder" in section
    assert "\n- `--recipe own_small|ptb|small|original`: " in section
    assert "\n- `--dry-run`: only say" in section
    assert len(sections(commands_page())) == len(COMMANDS)


def test_settings_name_their_source_and_what_is_no_setting() -> None:
    page = settings_page()
    assert "Not set by a config: `num_layers`, `width`." in page
    section = page.partition("### LayerMix `trainable`\n")[2].partition("###")[0]
    assert "Source: Peters et al. 2018" in section and "Registered as" not in section
    assert "- **`gamma`**: `float`, default `null`. Fixes γ" in section
    assert "num_layers" not in section


def test_python_names_are_all_on_their_page() -> None:
    page = (PROJECT_ROOT / "docs" / "reference" / "python.md").read_text("utf-8")
    shown = re.findall(r"^::: elmo_scratch\.(\w+)$", page, re.MULTILINE)
    assert sorted(shown) == sorted({*elmo_scratch.__all__} - {"VERSION"})
    assert "`elmo_scratch.VERSION`" in page


def test_sections_of_docstrings_become_those_of_numpys_form() -> None:
    pytest.importorskip("griffe", reason="mkdocstrings is not installed: requirements-dev.txt")
    from benchmarks.reference.griffe_sections import in_numpys_form

    assert in_numpys_form(
        "Text.\n\n# Parameters\n\na, b : `int`, optional (default = `3`)\n    One: two.\n\n"
        "# Returns\n\n`torch.Tensor`\n    Shape `(batch,)`.\n"
    ) == (
        "Text.\n\nParameters\n----------\na, b\n    One: two.\n\n"
        "Returns\n-------\ntorch.Tensor\n    Shape `(batch,)`.\n"
    )
