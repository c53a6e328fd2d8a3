import gc
import pickle
import runpy
import shutil
import warnings
from copy import deepcopy
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Callable, Dict, List
from unittest.mock import patch

import numpy
import pytest
import setuptools
import spacy
import srsly
from allennlp.common.checks import ConfigurationError
from spacy.lang.en import English
from spacy.language import Language
from spacy.tokens import Doc

from elmo_scratch.integrations import ElmoComponent
from elmo_scratch.integrations.spacy_component import make_elmo_component
from tests import PROJECT_ROOT
from tests.integrations.models import (
    ARCHIVE,
    KINDS,
    OFFICIAL,
    TOUR,
    WIDTH,
    exported,
    model_in,
)

TEXT = "The boat sank. It lay on the bank of the river."


def pipeline(model: Any = OFFICIAL, **config: Any) -> Any:
    """A `Language`; for type checkers its vectors are no arrays."""
    nlp = English()
    nlp.add_pipe("elmo_scratch", config={"model": model, **config})
    return nlp


def docs_of(nlp: Language, sentences: List[List[str]]) -> List[Doc]:
    return [Doc(nlp.vocab, words=words) for words in sentences]


@pytest.mark.parametrize(
    "layer, kept, number",
    [("mix", "average", None), ("top", "top", None), ("0", "all", 0), (1, "all", 1)],
)
def test_vectors_are_to_the_bit_those_of_allennlp_elmo(
    layer: Any, kept: str, number: Any, tmp_path: Path
) -> None:
    nlp = pipeline(layer=layer)
    docs = list(nlp.pipe(docs_of(nlp, TOUR)))
    for doc, vectors in zip(docs, exported(TOUR, kept, tmp_path), strict=True):
        expected = vectors if number is None else vectors[number]
        assert doc.tensor.dtype == numpy.float32
        numpy.testing.assert_array_equal(doc.tensor, expected)


def test_the_entry_point_of_the_package_makes_the_component() -> None:
    with patch.object(setuptools, "setup") as setup, patch("sys.argv", ["setup.py"]):
        with pytest.MonkeyPatch.context() as here:
            here.chdir(PROJECT_ROOT)
            runpy.run_path("setup.py")
    (line,) = setup.call_args.kwargs["entry_points"]["spacy_factories"]
    name, value = line.split(" = ")
    assert name == "elmo_scratch"
    assert EntryPoint(name, value, "spacy_factories").load() is make_elmo_component


def test_texts_have_the_same_vectors_alone_as_in_batches() -> None:
    nlp = pipeline(ARCHIVE)
    texts = [" ".join(words) for words in TOUR]
    for batch_size in (5, 1000):
        for text, doc in zip(texts, nlp.pipe(texts, batch_size=batch_size), strict=True):
            assert doc.text == text
            numpy.testing.assert_allclose(doc.tensor, nlp(text).tensor, atol=1e-6)


def test_a_word_has_another_vector_in_another_sentence() -> None:
    texts = ["She sat on the bank", "He paid the bank"]
    river, money = (pipeline(layer="top")(text)[-1].vector for text in texts)
    assert numpy.abs(river - money).max() > 1e-2
    river, money = (pipeline(layer=0)(text)[-1].vector for text in texts)
    numpy.testing.assert_allclose(river, money, atol=1e-6)


def test_each_sentence_is_read_by_itself_where_boundaries_are_set() -> None:
    plain, with_sentences = pipeline(), pipeline()
    with_sentences.add_pipe("sentencizer", before="elmo_scratch")
    first, second = (plain(part) for part in ("The boat sank.", "It lay on the bank of the river."))
    expected = numpy.concatenate([first.tensor, second.tensor])
    numpy.testing.assert_allclose(with_sentences(TEXT).tensor, expected, atol=1e-6)
    assert not numpy.allclose(plain(TEXT).tensor, expected, atol=1e-2)


def test_white_space_is_not_read() -> None:
    nlp = pipeline()
    doc, expected = nlp("\nThe  boat\tsank \n"), nlp("The boat sank")
    read = [not token.is_space for token in doc]
    assert read.count(True) == 3 < len(doc)
    numpy.testing.assert_allclose(doc.tensor[read], expected.tensor, atol=1e-6)
    assert not doc.tensor[numpy.logical_not(read)].any()
    numpy.testing.assert_allclose(doc.vector, expected.vector, atol=1e-6)
    for nothing in ("", " \n"):
        assert nlp(nothing).tensor.shape == (len(nlp(nothing)), WIDTH)
        assert nlp(nothing).similarity(doc) == 0.0
        assert not nlp(nothing).has_vector


@pytest.mark.parametrize("pool", ["mean", "max"])
def test_spans_and_texts_pool_the_vectors_of_their_tokens(pool: str) -> None:
    nlp = pipeline(pool=pool)
    # A vocabulary with vectors of its own, as trained pipelines have one.
    nlp.vocab.set_vector("boat", numpy.ones(5, numpy.float32))
    doc = nlp(TEXT)
    take = getattr(numpy, pool)
    numpy.testing.assert_array_equal(doc[1].vector, doc.tensor[1])
    numpy.testing.assert_allclose(doc[1:4].vector, take(doc.tensor[1:4], axis=0), atol=1e-6)
    numpy.testing.assert_allclose(doc.vector, take(doc.tensor, axis=0), atol=1e-6)
    assert doc[1].has_vector and doc[1:4].has_vector and doc.has_vector
    again = pickle.loads(pickle.dumps(doc))
    numpy.testing.assert_array_equal(again.vector, doc.vector)


def test_similarity_is_the_cosine_of_the_vectors_without_a_warning() -> None:
    doc, other = pipeline().pipe([TEXT, "The bank lent money."])
    one, two = doc.vector, other[1:3].vector
    cosine = one @ two / numpy.linalg.norm(one) / numpy.linalg.norm(two)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert doc.similarity(other[1:3]) == pytest.approx(cosine, abs=1e-6)
        assert doc.similarity(doc) == pytest.approx(1.0)
        assert doc[1].similarity(doc[1]) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="12 and 8 numbers. Send both texts through the same"):
        doc.similarity(pipeline(ARCHIVE)(TEXT))


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_pipeline_works_where_its_model_is_gone(kind: str, tmp_path: Path) -> None:
    nlp = pipeline(model_in(tmp_path / "models", kind), layer="top")
    expected = nlp(TEXT).tensor
    nlp.to_disk(tmp_path / "saved")
    content = nlp.to_bytes()
    shutil.rmtree(tmp_path / "models")
    (tmp_path / "saved").rename(tmp_path / "moved")
    from_disk = spacy.load(tmp_path / "moved")
    from_bytes = pipeline("nowhere", layer="top").from_bytes(content)
    for loaded in (from_disk, from_bytes):
        numpy.testing.assert_array_equal(loaded(TEXT).tensor, expected)
    # What was loaded can be saved again, in the same place too.
    from_disk.to_disk(tmp_path / "moved")
    from_bytes.to_disk(tmp_path / "again")
    for folder in ("moved", "again"):
        numpy.testing.assert_array_equal(spacy.load(tmp_path / folder)(TEXT).tensor, expected)


def test_settings_of_a_saved_pipeline_can_be_changed(tmp_path: Path) -> None:
    pipeline().to_disk(tmp_path)
    changed = spacy.load(tmp_path, config={"components": {"elmo_scratch": {"layer": "0"}}})
    numpy.testing.assert_array_equal(changed(TEXT).tensor, pipeline(layer=0)(TEXT).tensor)


def test_a_copy_replaces_an_older_one_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    for model in (OFFICIAL, ARCHIVE):
        ElmoComponent("elmo", model).to_disk(tmp_path)
        (copy,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert [path.name for path in copy.iterdir()] == ["model.tar.gz"]
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("content", [None, "{}", "[", '{"copy": "../../models"}'])
def test_a_folder_without_a_copy_is_refused(content: Any, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "model.json").write_text(content)
    with pytest.raises(ConfigurationError, match=r"no model.json that names one. Save the pipe"):
        ElmoComponent("elmo", OFFICIAL).from_disk(tmp_path)


def test_a_copy_that_lost_a_file_is_refused(tmp_path: Path) -> None:
    component = ElmoComponent("elmo", OFFICIAL)
    component.to_disk(tmp_path)
    for copy in tmp_path.glob("*/model"):
        shutil.rmtree(copy)
    with pytest.raises(ConfigurationError, match="copy of one model, but found 0 files. Save the"):
        component.from_disk(tmp_path)


@pytest.mark.parametrize("name", ["../outside", "/outside", "model/../../outside"])
def test_bytes_are_never_written_outside_of_their_folder(name: str) -> None:
    with pytest.raises(ConfigurationError, match="expected the name of a file within a copy"):
        ElmoComponent("elmo", OFFICIAL).from_bytes(srsly.msgpack_dumps({name: b"x"}))


@pytest.mark.parametrize(
    "config, message",
    [
        (
            {"layer": "middle"},
            'expected `layer` to be "mix", "top" or a number, but got \'middle\'',
        ),
        ({"layer": "-1"}, "expected `layer` to be"),
        ({"pool": "sum"}, "expected `pool` to be one of mean, max, but got 'sum'"),
    ],
)
def test_wrong_settings_are_refused_at_once(config: Dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pipeline(**config)


@pytest.mark.parametrize(
    "config, message",
    [
        ({"model": "nowhere.tar.gz"}, r"^nowhere.tar.gz: there is no such archive$"),
        ({"model": ["a", "b", "c"]}, "or the two paths of options.json and weights.hdf5, but got"),
        ({"layer": 3}, "a number from 0 to 2, which this model has, but got"),
        ({"cuda_device": 99}, "expected a GPU with the number 99"),
    ],
)
def test_what_a_model_can_not_do_is_told_with_the_first_text(
    config: Dict[str, Any], message: str
) -> None:
    nlp = pipeline(**config)
    with pytest.raises((ValueError, ConfigurationError), match=message):
        nlp(TEXT)


def test_an_error_handler_gets_what_fails() -> None:
    nlp, failed = pipeline("nowhere.tar.gz"), []
    nlp.set_error_handler(lambda name, component, docs, error: failed.extend([name, *docs]))
    assert list(nlp.pipe([TEXT])) == []
    assert failed[0] == "elmo_scratch" and failed[1].text == TEXT


def test_products_run_in_the_type_that_was_asked_for() -> None:
    component = ElmoComponent("elmo", OFFICIAL, matmul_dtype="bfloat16")
    assert component.layers.matmul_dtype == "bfloat16"


def test_a_pipeline_reaches_another_process_without_its_weights(tmp_path: Path) -> None:
    nlp = pipeline(layer="top")
    content = pickle.dumps(nlp.get_pipe("elmo_scratch"))
    assert len(content) < 1000
    again = pickle.loads(content)
    doc = nlp.make_doc(TEXT)
    numpy.testing.assert_array_equal(again(doc).tensor, nlp(TEXT).tensor)


@pytest.mark.parametrize("copied", [deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_outlives_a_component_that_came_as_bytes(copied: Callable[[Any], Any]) -> None:
    nlp = pipeline()
    component = nlp.get_pipe("elmo_scratch")
    read = ElmoComponent("elmo_scratch", "gone").from_bytes(component.to_bytes())
    again = copied(read)
    del read
    gc.collect()
    doc = nlp.make_doc(TEXT)
    numpy.testing.assert_array_equal(again(doc).tensor, nlp(TEXT).tensor)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:.*W109.*")
def test_several_processes_give_the_same_vectors() -> None:
    nlp = pipeline()
    texts = [" ".join(words) for words in TOUR]
    several = list(nlp.pipe(texts, n_process=2, batch_size=5))
    for doc, expected in zip(several, nlp.pipe(texts), strict=True):
        numpy.testing.assert_allclose(doc.tensor, expected.tensor, atol=1e-6)
