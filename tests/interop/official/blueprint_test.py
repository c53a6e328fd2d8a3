import dataclasses
import json
import re
from pathlib import Path
from typing import Optional, Union

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_scratch.interop import BiLmBlueprint, WordList
from elmo_scratch.interop.archives.sidecar import archived_path
from elmo_scratch.interop.official import build_bilm
from elmo_scratch.interop.official.options import (
    SIDECAR,
    CharCnnOptions,
    LstmOptions,
    OfficialBlueprint,
    Options,
)

LSTM = LstmOptions(
    dim=24, projection_dim=16, n_layers=2, cell_clip=1.5, proj_clip=None, use_skip_connections=True
)
OF_CHARACTERS = Options(LSTM, CharCnnOptions(4, ((1, 4), (2, 8)), 1, "tanh", 20))
OF_WORDS = Options(LSTM, None)
ADDRESS = "https://example.org/elmo_options.json"


def keep_options(folder: Union[str, Path], options_file: str, options: Options) -> None:
    OfficialBlueprint(options, None).write(folder, options_file)


def kept_options(folder: Union[str, Path], options_file: str) -> Optional[Options]:
    kept = OfficialBlueprint.read(folder, options_file)
    return None if kept is None else kept.options


@pytest.mark.parametrize("options, num_words", [(OF_CHARACTERS, None), (OF_WORDS, 11)])
def test_what_is_built_again_has_the_same_sizes(
    options: Options, num_words: Optional[int], tmp_path: Path
) -> None:
    bilm = build_bilm(options, num_words, state="carry", matmul_dtype="float32")
    OfficialBlueprint.of(bilm).write(tmp_path, ADDRESS)
    kept = OfficialBlueprint.read(tmp_path, ADDRESS)
    assert kept == (options, num_words)
    again = build_bilm(*kept, state="reset", matmul_dtype="float32")
    assert again.state_memory.state == "reset"
    again.load_state_dict(bilm.state_dict())


@pytest.mark.parametrize("options", [OF_CHARACTERS, OF_WORDS])
def test_what_was_kept_is_found_again(options: Options, tmp_path: Path) -> None:
    keep_options(tmp_path, ADDRESS, options)
    assert kept_options(tmp_path, ADDRESS) == options


def test_a_folder_can_be_named_by_a_string(tmp_path: Path) -> None:
    keep_options(str(tmp_path), ADDRESS, OF_WORDS)
    assert kept_options(str(tmp_path), ADDRESS) == OF_WORDS


def test_the_folder_need_not_exist(tmp_path: Path) -> None:
    keep_options(tmp_path / "new" / "run", ADDRESS, OF_WORDS)
    assert kept_options(tmp_path / "new" / "run", ADDRESS) == OF_WORDS


def test_options_of_several_files_lie_side_by_side(tmp_path: Path) -> None:
    keep_options(tmp_path, ADDRESS, OF_CHARACTERS)
    keep_options(tmp_path, "/elsewhere/options.json", OF_WORDS)
    assert kept_options(tmp_path, ADDRESS) == OF_CHARACTERS
    assert kept_options(tmp_path, "/elsewhere/options.json") == OF_WORDS


def test_what_is_kept_later_counts(tmp_path: Path) -> None:
    keep_options(tmp_path, ADDRESS, OF_CHARACTERS)
    other = dataclasses.replace(OF_CHARACTERS, lstm=dataclasses.replace(LSTM, dim=32))
    keep_options(tmp_path, ADDRESS, other)
    assert kept_options(tmp_path, ADDRESS) == other


def test_of_what_was_not_kept_nothing_is_found(tmp_path: Path) -> None:
    assert kept_options(tmp_path, ADDRESS) is None
    assert kept_options(tmp_path / "missing", ADDRESS) is None
    assert list(tmp_path.iterdir()) == []
    keep_options(tmp_path, "another", OF_WORDS)
    assert kept_options(tmp_path, ADDRESS) is None


def test_the_vocabulary_beside_it_does_not_mind(tmp_path: Path) -> None:
    # AllenNLP would otherwise read it as the words of a namespace.
    keep_options(tmp_path, ADDRESS, OF_WORDS)
    folder = tmp_path / "vocabulary"
    vocab = Vocabulary(tokens_to_add={"tokens": ["word"]})
    vocab.save_to_files(str(folder))
    assert kept_options(tmp_path, ADDRESS) == OF_WORDS
    again = Vocabulary.from_files(str(folder))
    assert set(again.get_namespaces()) == set(vocab.get_namespaces()) == {"tokens"}


def test_nothing_else_is_left_in_the_folder(tmp_path: Path) -> None:
    keep_options(tmp_path, ADDRESS, OF_WORDS)
    assert list((tmp_path / "vocabulary").iterdir()) == [archived_path(tmp_path, SIDECAR)]


def test_a_reader_finds_the_sizes_in_the_official_form(tmp_path: Path) -> None:
    keep_options(tmp_path, ADDRESS, OF_CHARACTERS)
    text = archived_path(tmp_path, SIDECAR).read_text(encoding="utf-8")
    record = json.loads(json.loads(text)[ADDRESS]["options"])
    assert record["lstm"]["projection_dim"] == 16
    assert record["char_cnn"]["filters"] == [[1, 4], [2, 8]]


def test_options_that_were_spoilt_are_named_with_their_file(tmp_path: Path) -> None:
    keep_options(tmp_path, ADDRESS, OF_WORDS)
    path = archived_path(tmp_path, SIDECAR)
    path.write_text(json.dumps({ADDRESS: {"options": "{}", "num_words": None}}), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=f"{re.escape(str(path))}: .*`lstm`.*missing"):
        kept_options(tmp_path, ADDRESS)


@pytest.mark.parametrize("namespace", ["tokens", "official"])
def test_the_blueprint_of_another_bilm_does_not_mind(namespace: str, tmp_path: Path) -> None:
    blueprint = BiLmBlueprint({"cell_size": 7}, WordList(["<unk>"], "<unk>"))
    keep_options(tmp_path, ADDRESS, OF_WORDS)
    blueprint.write(tmp_path, namespace)
    assert kept_options(tmp_path, ADDRESS) == OF_WORDS
    assert BiLmBlueprint.read(tmp_path, namespace).config == {"cell_size": 7}
