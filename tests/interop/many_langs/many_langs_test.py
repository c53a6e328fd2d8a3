import json
import shutil
from pathlib import Path
from typing import List

import numpy
import pytest

from elmo_scratch import ElmoEmbedder, SentenceLayers
from elmo_scratch.interop.many_langs import is_many_langs_folder, many_langs_files, settings_files
from tests import FIXTURES_ROOT

MODELS = FIXTURES_ROOT / "elmo_for_many_langs"
SENTENCES: List[List[str]] = json.loads((MODELS / "sentences.json").read_text(encoding="utf-8"))

each_model = pytest.mark.parametrize("name", ["both", "characters", "words"])


@each_model
def test_vectors_are_those_of_the_original_code(name: str) -> None:
    layers = SentenceLayers.from_many_langs(MODELS / name, state="reset")
    vectors = numpy.load(MODELS / name / "vectors.npz")
    for number, found in enumerate(layers(SENTENCES)):
        numpy.testing.assert_allclose(found, vectors[f"first.{number}"], atol=1e-5, rtol=0)


@each_model
def test_states_are_carried_as_by_the_original_code(name: str) -> None:
    layers = SentenceLayers.from_many_langs(MODELS / name, state="carry")
    vectors = numpy.load(MODELS / name / "vectors.npz")
    for number, sentence in enumerate(SENTENCES):
        [found] = layers([sentence])
        numpy.testing.assert_allclose(found, vectors[f"alone.{number}"], atol=1e-5, rtol=0)


def test_a_folder_is_a_weight_file_of_its_own() -> None:
    folder = MODELS / "both"
    assert is_many_langs_folder(folder) and not is_many_langs_folder(FIXTURES_ROOT / "elmo")
    vectors = numpy.load(folder / "vectors.npz")
    embedder = ElmoEmbedder(weight_file=folder, state="reset")
    found = embedder.embed_sentence(SENTENCES[1])
    numpy.testing.assert_allclose(found, vectors["first.1"], atol=1e-5, rtol=0)


def test_the_identity_is_of_all_files_that_decide_about_vectors() -> None:
    folder = MODELS / "both"
    assert settings_files(folder) == [folder / "config.json", folder / "tiny.json"]
    names = {file.name for file in many_langs_files(folder)}
    sizes, dictionaries = {"config.json", "tiny.json"}, {"char.dic", "word.dic"}
    assert names == sizes | dictionaries | {"encoder.pkl", "token_embedder.pkl"}


def test_words_cached_ahead_keep_their_vectors() -> None:
    layers = SentenceLayers.from_many_langs(MODELS / "both", state="reset")
    [before] = layers([SENTENCES[0]])
    layers.cache_words(["the", "渡船", "ferry"])
    [after] = layers([SENTENCES[0]])
    numpy.testing.assert_array_equal(after, before)


def test_a_zip_file_of_such_a_model_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    zip_file = shutil.make_archive(str(tmp_path / "136"), "zip", MODELS / "both")
    found = ElmoEmbedder(weight_file=zip_file, state="reset").embed_sentence(SENTENCES[1])
    vectors = numpy.load(MODELS / "both" / "vectors.npz")
    numpy.testing.assert_allclose(found, vectors["first.1"], atol=1e-5, rtol=0)
