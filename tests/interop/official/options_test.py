import json
import logging
from copy import deepcopy
from typing import Any, Dict, List, Tuple

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop.official.options import (
    SAID,
    TRAINING_KEYS,
    CharCnnOptions,
    LstmOptions,
    Options,
)
from tests import FIXTURES_ROOT

SOURCE = "far/options.json"

RECORD: Dict[str, Any] = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 5,
        "cell_clip": 3,
        "proj_clip": 2.5,
        "dim": 7,
        "n_layers": 3,
    },
    "char_cnn": {
        "activation": "tanh",
        "filters": [[1, 4], [2, 8]],
        "n_highway": 4,
        "embedding": {"dim": 6},
        "n_characters": 262,
        "max_characters_per_token": 20,
    },
}
OPTIONS = Options(
    LstmOptions(
        dim=7,
        projection_dim=5,
        n_layers=3,
        cell_clip=3.0,
        proj_clip=2.5,
        use_skip_connections=True,
    ),
    CharCnnOptions(
        embedding_dim=6,
        filters=((1, 4), (2, 8)),
        n_highway=4,
        activation="tanh",
        max_characters_per_token=20,
    ),
)

SIZE = "a whole number of at least 1"
CLIP = "a positive number, or null for no bound"
FLAG = "true or false"
FILTERS = "pairs of a width from 1 to 20 and a number of filters"
N_CHARACTERS = "261 (written by a training) or 262 (of a released model)"

NOT_SIZES: List[Any] = [0, -1, 2.5, 7.0, "7", True, [7], {}]
NOT_CLIPS: List[Any] = [0, -3, 0.0, "3", True, [3], {}, float("nan")]

SENSELESS: List[Tuple[str, str, List[Any]]] = [
    ("lstm.dim", SIZE, [*NOT_SIZES, None]),
    ("lstm.projection_dim", SIZE, [*NOT_SIZES, None]),
    ("lstm.n_layers", SIZE, NOT_SIZES),
    ("lstm.cell_clip", CLIP, NOT_CLIPS),
    ("lstm.proj_clip", CLIP, NOT_CLIPS),
    ("lstm.use_skip_connections", FLAG, [None, 0, 1, "true", [], {}]),
    ("char_cnn.activation", '"relu" or "tanh"', ["elu", "", None, 3, [], {}]),
    ("char_cnn.n_highway", "a whole number of at least 0", NOT_SIZES[1:]),
    ("char_cnn.embedding.dim", SIZE, [*NOT_SIZES, None]),
    ("char_cnn.n_characters", SIZE, NOT_SIZES),
    ("char_cnn.n_characters", N_CHARACTERS, [1, 260, 263]),
    ("char_cnn.max_characters_per_token", SIZE, [*NOT_SIZES, None]),
    ("char_cnn.max_characters_per_token", "from 3 to 4096", [1, 2, 4097, 10**9]),
    ("char_cnn.filters", FILTERS, [[], {}, None, 3, "x", {"1": 4}]),
]
"""Keys, what is expected of them, and what is not that."""

BAD_PAIRS = [[], [1], [1, 4, 4], [0, 4], [1, 0], [21, 4], [1.0, 4], [1, True], ["1", 4], "14", 1]
NOT_OBJECTS = [(3, "a number"), (0.5, "a number"), ("x", "a string"), ([], "a list")]
NOT_OBJECTS += [(True, "a boolean"), (None, "null")]


def place(key: str) -> str:
    """How a message calls a key: by its name and that of its block."""
    *blocks, name = key.split(".")
    return f"`{name}`" + (f" of `{blocks[-1]}`" if blocks else "")


def changed(key: str, *value: Any) -> Dict[str, Any]:
    """The record with another value at the path `key`, or without it where none is given."""
    record = deepcopy(RECORD)
    *blocks, name = key.split(".")
    block = record
    for one in blocks:
        block = block[one]
    block.pop(name, None)
    if value:
        (block[name],) = value
    return record


def read(record: Any) -> Options:
    return Options.from_json(json.dumps(record), SOURCE)


def error_of(record: Any) -> str:
    """The message of the error that reading a record raises."""
    with pytest.raises(ConfigurationError) as raised:
        read(record)
    return str(raised.value)


def test_every_key_is_read() -> None:
    assert read(RECORD) == OPTIONS


@pytest.mark.parametrize("key, expected, values", SENSELESS)
def test_a_value_that_makes_no_sense_is_an_error(
    key: str, expected: str, values: List[Any]
) -> None:
    for value in values:
        assert error_of(changed(key, value)) == (
            f"{SOURCE}: expected {place(key)} to be {expected}, but got {json.dumps(value)}"
        )


def test_a_pair_of_filters_that_makes_no_sense_is_an_error() -> None:
    key = "char_cnn.filters"
    for pair in BAD_PAIRS:
        assert error_of(changed(key, [[1, 4], pair])) == (
            f"{SOURCE}: expected {place(key)} to be {FILTERS}, but got {json.dumps(pair)}"
        )


@pytest.mark.parametrize("key", ["lstm", "char_cnn", "char_cnn.embedding"])
def test_a_block_that_is_no_object_is_an_error(key: str) -> None:
    name = key.split(".")[-1]
    # Null in the place of `char_cnn` stands for none.
    for value, kind in NOT_OBJECTS[: -1 if key == "char_cnn" else None]:
        assert error_of(changed(key, value)) == (
            f"{SOURCE}: expected `{name}` to be a JSON object, but got {kind}"
        )


def test_a_file_that_is_no_object_is_an_error() -> None:
    for value, kind in NOT_OBJECTS:
        assert error_of(value) == f"{SOURCE}: expected the file to be a JSON object, but got {kind}"


@pytest.mark.parametrize(
    "key, others",
    [
        ("lstm", ("char_cnn",)),
        ("lstm.dim", tuple(sorted(set(RECORD["lstm"]) - {"dim"}))),
        ("lstm.projection_dim", tuple(sorted(set(RECORD["lstm"]) - {"projection_dim"}))),
        (
            "lstm.use_skip_connections",
            tuple(sorted(set(RECORD["lstm"]) - {"use_skip_connections"})),
        ),
        ("char_cnn.activation", tuple(sorted(set(RECORD["char_cnn"]) - {"activation"}))),
        ("char_cnn.filters", tuple(sorted(set(RECORD["char_cnn"]) - {"filters"}))),
        ("char_cnn.embedding", tuple(sorted(set(RECORD["char_cnn"]) - {"embedding"}))),
        ("char_cnn.embedding.dim", ()),
    ],
)
def test_a_missing_key_is_an_error(key: str, others: Tuple[str, ...]) -> None:
    assert error_of(changed(key)) == (
        f"{SOURCE}: the key {place(key)} is missing; there are {list(others)}"
    )


@pytest.mark.parametrize("block", ["", "lstm.", "char_cnn."])
def test_what_every_such_model_does_may_be_said(
    block: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        for key, value in SAID.items():
            assert read(changed(f"{block}{key}", value)) == OPTIONS
            assert error_of(changed(f"{block}{key}", not value)) == (
                f"{SOURCE}: expected {place(block + key)} to be {json.dumps(value)}, as of every "
                f"biLM of this form, but got {json.dumps(not value)}"
            )
    assert caplog.records == []


def test_the_size_of_the_projection_may_be_said_twice() -> None:
    assert read(changed("char_cnn.projection", {"dim": 5})) == OPTIONS
    assert error_of(changed("char_cnn.projection", {"dim": 6})) == (
        f"{SOURCE}: expected `dim` of `projection` to be 5, `projection_dim` of `lstm`, but got 6"
    )


def test_null_stands_for_no_characters() -> None:
    assert (
        read(changed("char_cnn", None)) == read(changed("char_cnn")) == Options(OPTIONS.lstm, None)
    )


@pytest.mark.parametrize("block", ["lstm", "char_cnn", "char_cnn.embedding"])
def test_an_unknown_key_of_the_network_is_an_error(block: str) -> None:
    message = error_of(changed(f"{block}.dimm", 3))
    name = block.split(".")[-1]
    assert message.startswith(f"{SOURCE}: the key `dimm` of `{name}` is unknown; expected only [")
    assert "'dim'" in message or "'filters'" in message


@pytest.mark.parametrize(
    "text", ["", "{", "{'lstm': 3}", "[1,", "nothing", b"\xff\xfe\xfa", b"\x80"]
)
def test_what_is_no_json_is_an_error(text: Any) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Options.from_json(text, SOURCE)
    assert str(raised.value).startswith(
        f"{SOURCE}: expected the options of a biLM as JSON, but it can't be read: "
    )


def test_a_projection_to_more_than_there_are_cells_is_an_error() -> None:
    assert error_of(changed("lstm.projection_dim", 8)) == (
        f"{SOURCE}: expected `projection_dim` of `lstm` to be at most its `dim`, 7, but got 8"
    )
    assert read(changed("lstm.projection_dim", 7)).lstm.projection_dim == 7


def test_what_is_left_out_is_as_bilm_tf_takes_it() -> None:
    lstm = {"dim": 7, "projection_dim": 5, "use_skip_connections": False}
    cnn = {
        "activation": "relu",
        "filters": [[1, 4]],
        "embedding": {"dim": 6},
        "max_characters_per_token": 50,
    }
    assert read({"lstm": lstm, "char_cnn": cnn}) == Options(
        LstmOptions(
            dim=7,
            projection_dim=5,
            n_layers=1,
            cell_clip=None,
            proj_clip=None,
            use_skip_connections=False,
        ),
        CharCnnOptions(
            embedding_dim=6,
            filters=((1, 4),),
            n_highway=0,
            activation="relu",
            max_characters_per_token=50,
        ),
    )


@pytest.mark.parametrize(
    "key",
    [
        "lstm.n_layers",
        "lstm.cell_clip",
        "lstm.proj_clip",
        "char_cnn.n_highway",
        "char_cnn.n_characters",
    ],
)
def test_null_is_as_good_as_left_out(key: str) -> None:
    assert read(changed(key, None)) == read(changed(key))


def test_a_model_of_characters_says_how_many_a_word_has() -> None:
    assert error_of(changed("char_cnn.max_characters_per_token")).startswith(
        f"{SOURCE}: the key `max_characters_per_token` of `char_cnn` is missing"
    )


@pytest.mark.parametrize(
    "key, block", [("cell_clip", "lstm"), ("dim", "lstm"), ("n_highway", "char_cnn")]
)
def test_what_stands_beside_its_block_would_have_no_effect(key: str, block: str) -> None:
    assert error_of({**RECORD, key: 3}) == (
        f"{SOURCE}: expected the key `{key}` within `{block}`, but it stands beside it"
    )


def test_a_model_of_words_has_no_characters() -> None:
    assert read(changed("char_cnn")) == Options(OPTIONS.lstm, None)


@pytest.mark.parametrize("number", [261, 262])
def test_the_number_of_characters_may_be_a_trainings_or_a_released_models(number: int) -> None:
    assert read(changed("char_cnn.n_characters", number)) == OPTIONS


def test_widths_may_be_up_to_the_length_of_a_word() -> None:
    options = read(changed("char_cnn.filters", [[20, 1]]))
    assert options.char_cnn is not None and options.char_cnn.filters == ((20, 1),)


def test_keys_of_a_training_say_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert read({**RECORD, **dict.fromkeys(TRAINING_KEYS, 3)}) == OPTIONS
    assert caplog.records == []


def test_an_unknown_key_beside_the_network_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert read({**RECORD, "zeal": 3, "author": {"name": "x"}}) == OPTIONS
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", f"{SOURCE}: the key {key!r} is unknown and has no effect")
        for key in ("author", "zeal")
    ]


def test_what_is_written_is_read_back(caplog: pytest.LogCaptureFixture) -> None:
    bare = LstmOptions(
        dim=5,
        projection_dim=5,
        n_layers=1,
        cell_clip=None,
        proj_clip=0.125,
        use_skip_connections=False,
    )
    for options in (OPTIONS, Options(bare, OPTIONS.char_cnn), Options(bare, None)):
        assert Options.from_json(options.to_json(), SOURCE) == options
        assert Options.from_json(options.to_json().encode("utf-8"), SOURCE) == options
    assert caplog.records == []


def test_it_is_written_in_the_released_models_form() -> None:
    assert json.loads(OPTIONS.to_json()) == RECORD
    assert OPTIONS.to_json().endswith("}\n")


def test_a_trainings_number_of_characters_is_written_as_a_released_models() -> None:
    options = read(changed("char_cnn.n_characters", 261))
    assert json.loads(options.to_json())["char_cnn"]["n_characters"] == 262


@pytest.mark.parametrize("name", ["residual", "plain"])
def test_the_options_of_the_fixtures_are_read_without_a_word(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = FIXTURES_ROOT / "elmo" / name / "options.json"
    Options.from_json(path.read_bytes(), str(path))
    assert caplog.records == []


def test_an_infinite_clip_is_an_error() -> None:
    assert "`cell_clip` of `lstm`" in error_of(changed("lstm.cell_clip", float("inf")))
