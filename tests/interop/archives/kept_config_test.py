from pathlib import Path

from allennlp.data import Vocabulary

from elmo_scratch.interop.archives.sidecar import keep_bilm_config, kept_bilm_config
from tests.tiny_archives import BILM


def test_what_was_kept_is_read_back(tmp_path: Path) -> None:
    config = {**BILM, "cell_clip": None, "dropout": 0.3}
    keep_bilm_config(tmp_path, config)
    assert kept_bilm_config(tmp_path) == config


def test_a_folder_without_it_has_none(tmp_path: Path) -> None:
    assert kept_bilm_config(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_allennlp_does_not_take_it_for_a_namespace(tmp_path: Path) -> None:
    keep_bilm_config(tmp_path, BILM)
    Vocabulary(tokens_to_add={"tokens": ["river"]}).save_to_files(str(tmp_path / "vocabulary"))
    assert Vocabulary.from_files(tmp_path / "vocabulary").get_namespaces() == {"tokens"}
    assert kept_bilm_config(tmp_path) == BILM
