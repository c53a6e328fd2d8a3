import os
from importlib import import_module
from pathlib import Path
from typing import Any, Dict, List

import pytest
import spacy
from allennlp.common.checks import ConfigurationError
from allennlp.data.tokenizers import (
    CharacterTokenizer,
    LettersDigitsTokenizer,
    Token,
    Tokenizer,
    WhitespaceTokenizer,
)

from elmo_scratch.data import SpacyBlankTokenizer
from elmo_scratch.data.corpus import prepared_corpus as module
from elmo_scratch.data.corpus.prepared_corpus import DIGESTS, corpus_key, tokenizer_settings

LONG_AGO = 1_000_000_000


class Splitter(Tokenizer):
    """A tokenizer with settings, and without `_to_params`."""

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)

    def tokenize(self, text: str) -> List[Token]:
        return [Token(text)]


class Opaque:
    """What can't be told from others."""


@pytest.fixture
def shards(tmp_path: Path) -> List[Path]:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path in paths:
        path.write_text(f"text of {path.name}\n")
        os.utime(path, (LONG_AGO, LONG_AGO))
    return paths


def key_of(shards: List[Path], **settings: Any) -> str:
    defaults: Dict[str, Any] = {"tokenizer": None, "max_tokens": None}
    return corpus_key(shards, cache_dir=shards[0].parent / "cache", **{**defaults, **settings})


def test_the_same_text_and_settings_have_the_same_key(shards: List[Path], tmp_path: Path) -> None:
    key = key_of(shards)
    copies = [tmp_path / "elsewhere" / f"copy-{path.name}" for path in shards]
    copies[0].parent.mkdir()
    for path, copy in zip(shards, copies):
        copy.write_bytes(path.read_bytes())
    assert key_of(shards) == key_of(copies) == key


def test_another_text_order_or_setting_has_another_key(shards: List[Path]) -> None:
    keys = [
        key_of(shards),
        key_of(shards[::-1]),
        key_of(shards[:1]),
        key_of(shards, max_tokens=7),
        key_of(shards, max_tokens=8),
        key_of(shards, tokenizer=LettersDigitsTokenizer()),
        key_of(shards, tokenizer=CharacterTokenizer()),
        key_of(shards, tokenizer=CharacterTokenizer(lowercase_characters=True)),
    ]
    shards[0].write_text("another text\n")
    keys.append(key_of(shards))
    assert len(set(keys)) == len(keys)


def test_a_time_that_was_set_back_deceives_nobody(shards: List[Path]) -> None:
    key = key_of(shards)
    shards[0].write_text(shards[0].read_text().upper())
    os.utime(shards[0], (LONG_AGO, LONG_AGO))
    assert key_of(shards) != key


def test_the_version_of_the_format_is_part_of_the_key(
    shards: List[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = key_of(shards)
    monkeypatch.setattr(module, "FORMAT_VERSION", module.FORMAT_VERSION + 1)
    assert key_of(shards) != key


def test_a_text_that_is_known_is_not_read_again(
    shards: List[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = key_of(shards)
    monkeypatch.setattr(module, "_content_digest", None)  # calling it would fail
    assert key_of(shards) == key


def test_a_text_that_has_changed_since_is_read_again(shards: List[Path]) -> None:
    key = key_of(shards)
    text = shards[0].read_text()
    shards[0].write_text(text.upper())
    os.utime(shards[0], (LONG_AGO + 1, LONG_AGO + 1))
    assert key_of(shards) != key


def test_a_text_of_this_moment_is_not_remembered(shards: List[Path]) -> None:
    for path in shards:
        os.utime(path)
    key_of(shards)
    assert not (shards[0].parent / "cache" / DIGESTS).exists()


def test_where_nothing_can_be_remembered_the_key_is_the_same(
    shards: List[Path], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    assert corpus_key(shards, None, None, tmp_path / "file") == key_of(shards)


def test_attributes_tell_a_tokenizer_that_has_no_params() -> None:
    settings = tokenizer_settings(Splitter(sizes=[1, (2, 3)], names={"b", "a"}, by={1: None}))
    assert settings is not None and settings.pop("code")
    assert settings == {
        "class": f"{__name__}.Splitter",
        "settings": {"sizes": [1, [2, 3]], "names": ['"a"', '"b"'], "by": {"1": None}},
    }


def test_a_setting_that_a_class_adds_tells_it_from_others() -> None:
    class Lower(WhitespaceTokenizer):
        def __init__(self, lowercase: bool) -> None:
            super().__init__()
            self.lowercase = lowercase

    class Rules(SpacyBlankTokenizer):
        """Its attributes can't be told."""

    assert tokenizer_settings(Lower(True)) != tokenizer_settings(Lower(False))
    with pytest.raises(ConfigurationError, match="can't be told from others with other settings"):
        tokenizer_settings(Rules())


def test_code_that_has_changed_tells_a_tokenizer_from_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    program = "from tests.data.corpus.corpus_key_test import Splitter\nclass Own(Splitter): {}\n"
    settings = []
    for number, body in enumerate(["pass", "pass", "rule = 'other'"]):
        name = f"own_tokenizer_{number}"
        (tmp_path / f"{name}.py").write_text(program.format(body), encoding="utf-8")
        found = tokenizer_settings(import_module(name).Own())
        assert found is not None and found["class"] == f"{name}.Own"
        settings.append(found["code"])
    assert settings[0] == settings[1] != settings[2]


@pytest.mark.parametrize("named", ["mine/pieces.model", "mine"])
def test_a_file_that_has_changed_tells_a_tokenizer_from_what_it_was(
    named: str, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    file = tmp_path / "mine" / "pieces.model"
    file.write_text("one")
    splitter = Splitter(options=[{"model": str(tmp_path / named)}, "", "a" * 5000, "\0"])
    before = tokenizer_settings(splitter)
    assert before is not None and list(before["files"]) == [str(file)]
    assert tokenizer_settings(splitter) == before
    file.write_text("two")
    assert tokenizer_settings(splitter) != before
    assert "files" not in (tokenizer_settings(Splitter(model="nowhere/pieces.model")) or {})


def test_of_kinds_that_others_look_after_the_version_counts() -> None:
    for tokenizer, code in (
        (WhitespaceTokenizer(), None),
        (SpacyBlankTokenizer(), f"spacy {spacy.__version__}"),
    ):
        settings = tokenizer_settings(tokenizer)
        assert settings is not None and settings["code"] == code


def test_a_class_without_a_file_has_no_code() -> None:
    made: Any = type("Made", (Splitter,), {"__module__": "nowhere"})
    settings = tokenizer_settings(made())
    assert settings is not None and settings["code"] is None


def test_a_tokenizer_that_cannot_be_told_from_others_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="Splitter: it holds a Opaque, .* `_to_params`"):
        tokenizer_settings(Splitter(rules=[Opaque()]))
