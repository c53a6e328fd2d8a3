import pickle
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy
import pytest
from allennlp.common.checks import ConfigurationError
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from elmo_scratch import ElmoVectorizer
from tests.integrations.models import (
    ARCHIVE,
    KINDS,
    NUM_LAYERS,
    OFFICIAL,
    TOUR,
    WIDTH,
    exported,
    model_in,
)

TEXTS = ["The boat sank.", "It lay on the bank, for years.", "The bank lent money."]

CHECKS: List[Callable[..., None]] = [
    estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
    estimator_checks.check_estimator_cloneable,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_estimators_unfitted,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_mixin_order,
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_set_params,
    estimator_checks.check_transformers_unfitted,
    estimator_checks.check_valid_tag_types,
]
"""
Those of scikit-learn's checks that ask nothing about numbers. The others fit an estimator to a
table, so scikit-learn itself runs none of them on what takes texts, such as its `CountVectorizer`.
"""


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_is_an_estimator_as_scikit_learn_wants_them(check: Callable[..., None]) -> None:
    check("ElmoVectorizer", ElmoVectorizer(OFFICIAL))


@pytest.mark.filterwarnings("ignore:Can't test estimator")
def test_it_passes_all_checks_that_scikit_learn_chooses_for_it() -> None:
    estimator_checks.check_estimator(ElmoVectorizer(OFFICIAL))


@pytest.mark.parametrize("pool", ["mean", "max"])
@pytest.mark.parametrize("layer, kept", [("mix", "average"), ("top", "top")])
def test_vectors_are_to_the_bit_those_of_allennlp_elmo(
    layer: str, kept: str, pool: str, tmp_path: Path
) -> None:
    expected = exported(TOUR, kept, tmp_path)
    vectorizer = ElmoVectorizer(OFFICIAL, layer=layer, pool=pool, tokenizer=str.split)
    found = vectorizer.fit_transform([" ".join(words) for words in TOUR])
    assert found.dtype == numpy.float32
    take = getattr(numpy, pool)
    numpy.testing.assert_array_equal(found, [take(one, axis=0) for one in expected])
    for one, vectors in zip(vectorizer.set_params(level="token").transform(TOUR), expected):
        numpy.testing.assert_array_equal(one, vectors)


def test_texts_are_split_by_spacys_rules_unless_told_otherwise() -> None:
    vectorizer = ElmoVectorizer(OFFICIAL, level="token").fit(TEXTS)
    words = [["The", "boat", "sank", "."], TEXTS[1].replace(",", " ,").replace(".", " .").split()]
    for by_rules, by_words in zip(vectorizer.transform(TEXTS[:2]), vectorizer.transform(words)):
        numpy.testing.assert_array_equal(by_rules, by_words)
    vectorizer.set_params(tokenizer=str.split)
    assert [len(vectors) for vectors in vectorizer.transform(TEXTS)] == [3, 7, 4]


def test_texts_of_one_length_stay_apart_at_the_level_of_tokens() -> None:
    found = ElmoVectorizer(OFFICIAL, level="token").fit_transform([["a", "b"], ["c", "d"]])
    assert found.shape == (2,)
    assert numpy.concatenate(found).shape == (4, WIDTH)


def test_a_text_without_words_has_zeros() -> None:
    vectorizer = ElmoVectorizer(OFFICIAL).fit([])
    assert vectorizer.transform([]).shape == (0, WIDTH)
    found = vectorizer.transform(["", "boat", []])
    assert found[1].any() and not found[[0, 2]].any()
    assert vectorizer.set_params(level="token").transform([""])[0].shape == (0, WIDTH)


def test_features_have_names() -> None:
    names = ElmoVectorizer(OFFICIAL).fit(TEXTS).get_feature_names_out()
    assert list(names[:2]) == ["elmovectorizer0", "elmovectorizer1"]
    assert len(names) == WIDTH


def test_a_clone_has_the_same_parameters_and_is_not_fitted() -> None:
    vectorizer = ElmoVectorizer(OFFICIAL, layer=1, pool="max").fit(TEXTS)
    copy = clone(vectorizer)
    assert copy.get_params() == vectorizer.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(TEXTS)


def test_a_search_over_a_pipeline_finds_layer_and_pooling() -> None:
    texts = ["boats sank", "boats rose", "banks lent", "banks paid"] * 3
    labels = [0, 0, 1, 1] * 3
    pipeline = make_pipeline(ElmoVectorizer(OFFICIAL), LogisticRegression(C=100.0))
    grid: Dict[str, List[Any]] = {
        "elmovectorizer__layer": ["mix", "top", *range(NUM_LAYERS)],
        "elmovectorizer__pool": ["mean", "max"],
    }
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(texts, labels)
    assert len(search.cv_results_["params"]) == 10
    assert search.best_score_ == 1.0
    assert list(search.predict(["boats rose", "banks lent"])) == [0, 1]


def test_a_pickle_has_no_weights_and_reads_the_model_again(tmp_path: Path) -> None:
    for kind in KINDS:
        vectorizer = ElmoVectorizer(model_in(tmp_path / kind, kind)).fit(TEXTS)
        content = pickle.dumps(vectorizer)
        assert len(content) < 1000
        again = pickle.loads(content)
        # What was never used can be pickled as well.
        again = pickle.loads(pickle.dumps(again))
        numpy.testing.assert_array_equal(again.transform(TEXTS), vectorizer.transform(TEXTS))


def test_a_pickle_refuses_another_model_and_tells_of_a_missing_one(tmp_path: Path) -> None:
    model = Path(model_in(tmp_path / "models", "archive"))
    content = pickle.dumps(ElmoVectorizer(str(model)).fit(TEXTS))
    model.write_bytes((Path(ARCHIVE).parents[1] / "characters" / "model.tar.gz").read_bytes())
    with pytest.raises(ValueError, match="its files have changed. Bring them back, or fit anew"):
        pickle.loads(content).transform(TEXTS)
    model.unlink()
    with pytest.raises(ConfigurationError, match="there is no such archive"):
        pickle.loads(content).transform(TEXTS)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"model": None}, "expected `model`: the path of an archive, or of official files"),
        ({"model": 7}, "expected `model` to be a name or a path, .*, but got 7"),
        ({"model": "nowhere"}, "^nowhere: there is no such archive$"),
        ({"layer": "middle"}, 'expected `layer` to be "mix", "top" or a number, but got'),
        ({"layer": 3}, "a number from 0 to 2, which this model has, but got 3"),
        ({"pool": "sum"}, "expected `pool` to be one of mean, max, but got 'sum'"),
        ({"level": "word"}, "expected `level` to be one of sentence, token, but got 'word'"),
        ({"cuda_device": 99}, "expected a GPU with the number 99"),
    ],
)
def test_wrong_parameters_are_refused_by_fit(settings: Dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, ConfigurationError), match=message):
        ElmoVectorizer(**{"model": OFFICIAL, **settings}).fit(TEXTS)


@pytest.mark.parametrize(
    "texts, message",
    [
        ("The boat sank.", "expected a list of texts, but got the single text 'The boat sank.'"),
        (["boat", 7], "expected text 1 to be a string or a sequence of words, but got 7"),
        ([["boat", None]], r"expected text 0 to be a string or a sequence of words, but got \['bo"),
        (numpy.ones((2, 3)), r"but got a table of the shape \(2, 3\). Take one of its columns"),
        (numpy.array([["The boat sank."]], dtype=object), r"a table of the shape \(1, 1\)"),
    ],
)
def test_what_is_no_text_is_refused(texts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ElmoVectorizer(OFFICIAL).fit_transform(texts)


def test_a_tokenizer_that_makes_no_words_is_refused() -> None:
    vectorizer = ElmoVectorizer(OFFICIAL, tokenizer=len)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="for text 0 it returned 4"):
        vectorizer.fit_transform(["boat"])


def test_products_run_in_the_type_that_was_asked_for() -> None:
    exact, rounded = (
        ElmoVectorizer(ARCHIVE, matmul_dtype=dtype).fit_transform(TEXTS)
        for dtype in ("float32", "bfloat16")
    )
    assert 0 < numpy.abs(exact - rounded).max() < 0.1
