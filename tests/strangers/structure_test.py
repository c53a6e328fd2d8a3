"""
Files of a right syntax and a wrong structure: values, keys, lines and columns that hypothesis has
exchanged, dropped or repeated in files that are read well.
"""

import copy
import csv
import io
import json
import math
import struct
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import h5py
import numpy
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from elmo_scratch.interop import LayerFile
from tests.fuzz.targets import TARGETS, Target

EXAMPLES = 20
"""How many changed files each reader gets; the exhaustive test makes ten times as many."""


class Object(List[List[Any]]):
    """A JSON object as pairs of a key and a value, so that keys may repeat."""


class Raw(str):
    """A value that is written as it stands."""


def parsed(text: str) -> Any:
    """JSON whose objects are an `Object`."""
    return json.loads(text, object_pairs_hook=lambda pairs: Object(map(list, pairs)))


def written(value: Any) -> str:
    """JSON of what `parsed` returns, after any change."""
    if isinstance(value, Raw):
        return value
    if isinstance(value, Object):
        return f"{{{', '.join(f'{json.dumps(key)}: {written(part)}' for key, part in value)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    return json.dumps(value)


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def cell(value: Any) -> str:
    """A value between two separators of a line."""
    return value if isinstance(value, str) else written(value)


class Form(NamedTuple):
    """A syntax. `write` gets a tree of lists and `Object`, and the file that `parse` has read."""

    parse: Callable[[bytes], Any]
    write: Callable[[Any, bytes], bytes]


JSON = Form(lambda seed: parsed(seed.decode()), lambda tree, _: encoded(written(tree)))
YAML = Form(
    lambda seed: parsed(json.dumps(yaml.safe_load(seed))),
    lambda tree, _: encoded(written(tree)),
)


def _json_line(value: Any) -> str:
    return f"{written(value)}\n"


def _rows(tree: Any) -> List[List[Any]]:
    """The tree as rows, whatever took a row's place."""
    rows = tree if isinstance(tree, list) else [tree]
    return [row if isinstance(row, list) else [row] for row in rows]


JSON_LINES = Form(
    lambda seed: [parsed(line) for line in seed.decode().splitlines()],
    lambda tree, _: encoded("".join(map(_json_line, tree if isinstance(tree, list) else [tree]))),
)


def lines_of(separator: str) -> Form:
    """Lines of columns."""

    def write(tree: Any, seed: bytes) -> bytes:
        return encoded("".join(f"{separator.join(map(cell, row))}\n" for row in _rows(tree)))

    return Form(lambda seed: [line.split(separator) for line in seed.decode().splitlines()], write)


def _write_table(tree: Any, seed: bytes) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([*map(cell, row)] for row in _rows(tree))
    return encoded(text.getvalue())


TABLE = Form(lambda seed: [*csv.reader(io.StringIO(seed.decode()))], _write_table)


def _head_of(seed: bytes) -> Tuple[bytes, bytes]:
    """The JSON at the beginning of a file of safetensors, and the numbers behind it."""
    (size,) = struct.unpack_from("<Q", seed)
    return seed[8 : 8 + size], seed[8 + size :]


def _write_head(tree: Any, seed: bytes) -> bytes:
    head = encoded(written(tree))
    return struct.pack("<Q", len(head)) + head + _head_of(seed)[1]


HEAD = Form(lambda seed: parsed(_head_of(seed)[0].decode()), _write_head)

FORMS: Dict[str, Form] = {
    "archive_config": JSON,
    "archive_vocabulary": lines_of("\t"),
    "conllu": lines_of("\t"),
    "corpus_checksums": JSON,
    "corpus_manifest": JSON,
    "folder_config": JSON,
    "folder_vocabulary": lines_of("\t"),
    "folder_weights": HEAD,
    "json_lines": JSON_LINES,
    "layer_index": JSON,
    "many_langs_characters": lines_of("\t"),
    "many_langs_config": JSON,
    "many_langs_sizes": JSON,
    "many_langs_words": lines_of("\t"),
    "news": TABLE,
    "options": JSON,
    "part_record": JSON,
    "predict_news": JSON_LINES,
    "predict_sentences": JSON_LINES,
    "report_config": JSON,
    "report_metrics": JSON,
    "results": JSON,
    "spacy_component": JSON,
    "sweep": YAML,
    "text": lines_of(" "),
    "vectors": lines_of(" "),
    "vocabulary": lines_of("\t"),
}
"""The readers of files that have a structure."""

PACKED = {
    "archive",
    "archive_weights",
    "checkpoint_model",
    "checkpoint_training",
    "corpus_tokens",
    "layers",
    "many_langs_weights",
    "softmax",
    "state",
    "vectors_binary",
    "weights",
    "zip",
}
"""The readers of packed or binary files, which have little structure of their own."""

FACTS = {
    "model": "sha256:0",
    "export": "sha256:1",
    "kept": "all",
    "layers": 3,
    "width": 4,
    "dtype": "float32",
    "state": "carry",
}


def _read_facts(path: Path) -> None:
    """A file of layers with a JSON object's values as its attributes, as far as HDF5 stores it."""
    try:
        facts = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return  # no attributes can be made of it
    layers = path.with_name("facts.hdf5")
    with h5py.File(layers, "w") as file:
        file["0"] = numpy.zeros((3, 2, 4), "float32")
        for name, value in facts.items() if isinstance(facts, dict) else ():
            with suppress(Exception):
                file.attrs[name] = h5py.Empty("f4") if value is None else value
    with LayerFile(layers) as read:
        read.check()


FACTS_TARGET = Target("facts.json", _read_facts, [json.dumps(FACTS).encode()])

RAW = [
    *("NaN", "-Infinity", "1e400", "-0", "9" * 5000, "[" * 3000, '"\\ud800"', "{", "\0", "\r"),
    *("2001-01-01", ".nan", "!!binary aGk=", "!!set {a, b}", "!!python/name:os.system", "1:30:00"),
    *(
        "[" * 900 + "]" * 900,
        "&a [*a]",
        "!!omap [a: 1]",
        "{? [1, 2] : 3}",
        "{<<: [1]}",
        "{1: 2, null: 3}",
    ),
]
"""Values that no parser of JSON returns, or YAML's alone."""

TEXTS = [
    *("", " ", "\ud800", "\0", "\x1b[31m", "a\nb", "../x", "x" * 300, "²", "nan", "1e400", "\ufeff")
]
NUMBERS = [
    *(0, -1, 1, 2**31, 2**53, 2**63, 2**64, -(2**63), 10**400, 0.5, 1e308, math.nan, math.inf)
]

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(NUMBERS),
    st.integers(),
    st.floats(),
    st.sampled_from(TEXTS),
    st.text(st.characters(), max_size=8),
    st.sampled_from(RAW).map(Raw),
)


def _nested(inner: SearchStrategy[Any]) -> SearchStrategy[Any]:
    pairs = st.tuples(st.sampled_from(["type", "name", *TEXTS]), inner).map(list)
    return st.lists(inner, max_size=3) | st.lists(pairs, max_size=3).map(Object)


values = st.recursive(leaves, _nested, max_leaves=5)


@st.composite
def changed(draw: Callable[..., Any], form: Form, seed: bytes) -> bytes:
    """The seed with one to three changes of its structure."""
    whole = [form.parse(seed)]
    for _ in range(draw(st.sampled_from((1, 1, 2, 3)))):
        # From the whole downwards, so that few large parts don't hide the many small ones.
        block, place = whole, 0
        while block:
            place = draw(st.integers(0, len(block) - 1))
            value = block[place][1] if isinstance(block, Object) else block[place]
            if not isinstance(value, list) or not value or draw(st.integers(0, 3)) == 0:
                break
            block = value
        if block:
            _change(draw, block, place)
    return form.write(whole[0], seed) if whole else b""


def _change(draw: Callable[..., Any], block: List[Any], place: int) -> None:
    """Changes an element of a list, or a pair of an `Object`."""
    kind = draw(st.sampled_from(("replace", "replace", "drop", "repeat", "swap", "wrap", "rename")))
    if kind == "drop":
        del block[place]
    elif kind == "repeat":
        copies = [copy.deepcopy(block[place]) for _ in range(draw(st.sampled_from((1, 1, 100))))]
        block[place:place] = copies
    elif kind == "swap":
        other = draw(st.integers(0, len(block) - 1))
        block[place], block[other] = block[other], block[place]
    elif isinstance(block, Object) and kind == "rename":
        block[place][0] = draw(st.sampled_from([pair[0] for pair in block] + TEXTS))
    elif isinstance(block, Object):
        block[place][1] = [block[place][1]] if kind == "wrap" else draw(values)
    else:
        block[place] = [block[place]] if kind == "wrap" else draw(values)


def look(target: Target, form: Form, folder: Path, max_examples: int) -> None:
    """Lets a reader read so many changed files."""
    seed = target.prepare(folder)[0]

    # What was found stays as a file in tests/fuzz/findings/, not in hypothesis's own folder.
    @settings(
        max_examples=max_examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(content=changed(form, seed))
    def check(content: bytes) -> None:
        target.check(folder, content)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))


def test_no_reader_is_forgotten() -> None:
    assert sorted([*FORMS, *PACKED]) == sorted(TARGETS)


@pytest.mark.parametrize("name", FORMS)
def test_any_structure_is_an_answer_or_one_documented_error(name: str, tmp_path: Path) -> None:
    look(TARGETS[name], FORMS[name], tmp_path / "read", EXAMPLES)


def test_any_facts_are_an_answer_or_one_documented_error(tmp_path: Path) -> None:
    look(FACTS_TARGET, JSON, tmp_path / "read", EXAMPLES)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FORMS)
def test_more_structures_are_answers_or_errors(name: str, tmp_path: Path) -> None:
    look(TARGETS[name], FORMS[name], tmp_path / "read", 10 * EXAMPLES)


@pytest.mark.exhaustive
def test_more_facts_are_answers_or_errors(tmp_path: Path) -> None:
    look(FACTS_TARGET, JSON, tmp_path / "read", 10 * EXAMPLES)


def test_a_bad_reader_is_found(tmp_path: Path) -> None:
    bad = Target("x.json", lambda path: json.loads(path.read_bytes())["size"] + 1, [b'{"size": 3}'])
    with pytest.raises((KeyError, TypeError)):
        look(bad, JSON, tmp_path / "read", 10 * EXAMPLES)


@pytest.mark.parametrize("name", FORMS)
def test_what_is_unchanged_is_read(name: str, tmp_path: Path) -> None:
    """The changes are of files that are read well: writing a tree changes nothing by itself."""
    target, form = TARGETS[name], FORMS[name]
    seed = target.prepare(tmp_path / "read")[0]
    path = tmp_path / "read" / target.file
    path.write_bytes(form.write(form.parse(seed), seed))
    target.read(path)
