import os
from pathlib import Path
from typing import Any, Callable

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.files import strict_json
from elmo_scratch.files.strict_json import StrictJson, printable, read_json_object


@pytest.mark.parametrize("value", [1, 2, 2**31 - 1])
def test_a_whole_number_above_nothing_is_a_size(value: Any) -> None:
    assert StrictJson("f", "", {"size": value}).size("size") == value


@pytest.mark.parametrize("value", [2**31, 10**30])
def test_a_size_has_a_bound(value: int) -> None:
    with pytest.raises(
        ConfigurationError, match="`size` to be a whole number of at most 2147483647"
    ):
        StrictJson("f", "", {"size": value}).size("size")


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "1", None, [1]])
def test_nothing_else_is_a_size(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="`size` to be a whole number of at least 1"):
        StrictJson("f", "", {"size": value}).size("size")


def test_zero_is_a_size_where_it_is_allowed() -> None:
    one = StrictJson("f", "", {"zero": 0, "less": -1})
    assert one.size("zero", least=0) == 0
    with pytest.raises(ConfigurationError, match="`less` to be a whole number of at least 0"):
        one.size("less", least=0)


@pytest.mark.parametrize(
    "record, kind",
    [([], "a list"), ("x", "a string"), (1.5, "a number"), (True, "a boolean"), (None, "null")],
)
def test_what_is_no_object_is_named(record: Any, kind: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^f: expected the file .* but got {kind}$"):
        StrictJson("f", "", record)


@pytest.mark.parametrize(
    "ask, message",
    [
        (
            lambda one: one.take("c"),
            r"^f: the key `c` of `lstm` is missing; there are \['a', 'b'\]",
        ),
        (lambda one: one.size("a"), "^f: expected `a` of `lstm` to be a whole number .* got 1.5$"),
        (
            lambda one: one.clip("b"),
            "^f: expected `b` of `lstm` to be a positive number.* got true",
        ),
        (lambda one: one.flag("c"), "^f: the key `c` of `lstm` is missing"),
        (lambda one: one.flag("a"), "^f: expected `a` of `lstm` to be true or false, but got 1.5$"),
        (lambda one: one.block("a"), "^f: expected `a` to be a JSON object, but got a number$"),
        (lambda one: one.finish(), r"^f: the key `a` of `lstm` is unknown; expected only \[\]$"),
    ],
)
def test_each_error_says_what_came(ask: Callable[[StrictJson], Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ask(StrictJson("f", "lstm", {"a": 1.5, "b": True}))


def test_values_and_defaults() -> None:
    one = StrictJson("f", "", {"size": 3, "clip": 2.5, "flag": True, "none": None, "more": {}})
    assert (one.size("size"), one.size("missing", default=7), one.size("none", default=9)) == (
        3,
        7,
        9,
    )
    assert (one.clip("clip"), one.clip("missing"), one.clip("none")) == (2.5, None, None)
    assert one.flag("flag")
    assert one.unread() == {"more"}
    assert "more" in one and "less" not in one
    one.block("more").finish()
    one.finish()


@pytest.mark.parametrize(
    "content, message",
    [
        ("[1]", "expected the file to be a JSON object, but got a list"),
        ("{", "expected JSON, but Expecting property name"),
        ('{"a": "\udc80"}', "expected JSON, but 'utf-8' codec can't decode"),
        ('{"a":' + "[" * 60 + "]" * 60 + "}", "at most 50 levels, but it is nested more deeply"),
        ('{"a":' + "[" * 10**5, "at most 50 levels, but it is nested more deeply"),
        (f'{{"a": 1{"0" * 5000}}}', "expected JSON, but Exceeds the limit"),
    ],
)
def test_what_is_no_plain_object_is_refused(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "metrics.json"
    file.write_bytes(content.encode("utf-8", errors="surrogateescape"))
    with pytest.raises(ConfigurationError, match=f"metrics.json: .*{message}"):
        read_json_object(file)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.json")
    with pytest.raises(ConfigurationError, match="there is no such file"):
        read_json_object(tmp_path / "metrics.json")


def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_json, "MAX_BYTES", 7)
    (tmp_path / "a.json").write_text('{"a":1}', encoding="utf-8")
    assert read_json_object(tmp_path / "a.json") == {"a": 1}
    (tmp_path / "a.json").write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="but it is larger"):
        read_json_object(tmp_path / "a.json")


def test_what_is_no_text_is_replaced() -> None:
    assert printable("a\x00b\x1b[31m\ud800\u202ec") == "a\ufffdb\ufffd[31m\ufffd\ufffdc"
    assert printable("क्\u200dष") == "क्\u200dष"
    assert printable("abcdef", 4) == "abc…"
