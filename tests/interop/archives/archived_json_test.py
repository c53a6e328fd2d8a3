from pathlib import Path

import pytest
from allennlp.data import Vocabulary

from elmo_scratch.interop.archives.sidecar import archived_path, keep_in_archive, kept_in_archive


@pytest.mark.parametrize("value", [{"a": [1, None, "zwölf"]}, [], "text", "a path \udcff"])
def test_what_is_kept_comes_back(value: object, tmp_path: Path) -> None:
    assert kept_in_archive(tmp_path, "-one") is None
    keep_in_archive(tmp_path, "-one", value)
    keep_in_archive(tmp_path, "-two", "other")
    assert kept_in_archive(tmp_path, "-one") == value
    keep_in_archive(tmp_path, "-one", "new")
    assert kept_in_archive(str(tmp_path), "-one") == "new"


def test_it_is_no_namespace_of_the_vocabulary_in_whose_folder_it_lies(tmp_path: Path) -> None:
    vocab = Vocabulary(tokens_to_add={"tokens": ["a"]})
    vocab.save_to_files(str(tmp_path / "vocabulary"))
    keep_in_archive(tmp_path, "-one", {"a": 1})
    assert archived_path(tmp_path, "-one").parent == tmp_path / "vocabulary"
    assert archived_path(tmp_path, "-one").exists()
    loaded = Vocabulary.from_files(str(tmp_path / "vocabulary"))
    assert loaded.get_namespaces() == {"tokens"}
