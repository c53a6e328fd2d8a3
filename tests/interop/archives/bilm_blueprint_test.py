from pathlib import Path

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_scratch.interop import BiLmBlueprint, WordList


@pytest.fixture
def blueprint() -> BiLmBlueprint:
    words = ["@@PADDING@@", "@@UNKNOWN@@", "rivière", "<S>", "</S>"]
    config = {"token_encoder": {"type": "word", "dim": 3}, "cell_size": 7, "cell_clip": None}
    return BiLmBlueprint(config, WordList(words, "@@UNKNOWN@@"))


def test_it_builds_a_bilm_of_its_config_and_its_words(blueprint: BiLmBlueprint) -> None:
    bilm = blueprint.build()
    assert bilm.state_dict()["token_encoder.embedding.weight"].shape == (5, 3)
    assert bilm.left_to_right.layers[0].cell_size == 7
    assert bilm.left_to_right.layers[0].cell_clip is None
    ids = torch.tensor([[2]])
    marks = bilm(ids, ids > 0).layers[0, 0, [0, 2], :3]
    assert torch.equal(marks, bilm.state_dict()["token_encoder.embedding.weight"][3:])


def test_it_can_be_built_again_and_again(blueprint: BiLmBlueprint) -> None:
    first, second = blueprint.build(), blueprint.build()
    second.load_state_dict(first.state_dict())
    assert blueprint.config["token_encoder"] == {"type": "word", "dim": 3}


def test_what_was_written_is_read_back(blueprint: BiLmBlueprint, tmp_path: Path) -> None:
    blueprint.write(tmp_path, "tokens")
    again = BiLmBlueprint.read(tmp_path, "tokens")
    assert again.config == blueprint.config
    assert again.words.words == blueprint.words.words
    assert again.words.unknown_word == blueprint.words.unknown_word
    again.build().load_state_dict(blueprint.build().state_dict())


def test_blueprints_of_several_names_lie_side_by_side(
    blueprint: BiLmBlueprint, tmp_path: Path
) -> None:
    other = BiLmBlueprint({**blueprint.config, "cell_size": 11}, blueprint.words)
    blueprint.write(tmp_path, "tokens")
    other.write(tmp_path, "cased")
    assert BiLmBlueprint.read(tmp_path, "tokens").config["cell_size"] == 7
    assert BiLmBlueprint.read(tmp_path, "cased").config["cell_size"] == 11


def test_two_bilms_by_one_name_are_an_error(blueprint: BiLmBlueprint, tmp_path: Path) -> None:
    blueprint.write(tmp_path, "tokens")
    blueprint.write(tmp_path, "tokens")  # the same one may be written twice
    other = BiLmBlueprint({**blueprint.config, "cell_size": 11}, blueprint.words)
    with pytest.raises(ConfigurationError, match="another biLM.*`namespace` of its own"):
        other.write(tmp_path, "tokens")
    assert BiLmBlueprint.read(tmp_path, "tokens").config["cell_size"] == 7


def test_allennlp_does_not_take_it_for_a_namespace(
    blueprint: BiLmBlueprint, tmp_path: Path
) -> None:
    Vocabulary(tokens_to_add={"tokens": ["river"]}).save_to_files(str(tmp_path / "vocabulary"))
    blueprint.write(tmp_path, "tokens")
    assert Vocabulary.from_files(tmp_path / "vocabulary").get_namespaces() == {"tokens"}


def test_a_folder_without_it_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such file.*`pretrained_file`"):
        BiLmBlueprint.read(tmp_path, "tokens")
