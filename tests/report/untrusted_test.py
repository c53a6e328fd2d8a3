import os
from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.report import untrusted
from elmo_scratch.report.untrusted import printable, read_json_object


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
    monkeypatch.setattr(untrusted, "MAX_BYTES", 7)
    (tmp_path / "a.json").write_text('{"a":1}', encoding="utf-8")
    assert read_json_object(tmp_path / "a.json") == {"a": 1}
    (tmp_path / "a.json").write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="but it is larger"):
        read_json_object(tmp_path / "a.json")


def test_what_is_no_text_is_replaced() -> None:
    assert printable("a\x00b\x1b[31m\ud800\u202ec") == "a\ufffdb\ufffd[31m\ufffd\ufffdc"
    assert printable("क्\u200dष") == "क्\u200dष"
    assert printable("abcdef", 4) == "abc…"
