import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop.archives.blueprint import BiLmChanges, dense, has_same_weights
from tests.tiny_archives import BILM, WORD, WORD_BILM

SPARSE_BILM = {**WORD_BILM, "token_encoder": {**WORD, "sparse": True}}


def test_what_is_not_changed_stays() -> None:
    config = {**BILM, "dropout": 0.3, "state": "carry"}
    assert BiLmChanges().of(config) == config
    assert BiLmChanges(dropout=0.0).of(config) == {**config, "dropout": 0.0}


def test_sparse_is_a_setting_of_the_token_encoder() -> None:
    assert BiLmChanges(sparse=True).of(WORD_BILM) == SPARSE_BILM
    assert "sparse" not in WORD


def test_what_else_a_bilm_has_is_no_change() -> None:
    with pytest.raises(ConfigurationError, match="cell_size"):
        BiLmChanges.from_params(Params({"cell_size": 7}))


def test_a_dense_configuration_is_all_but_sparse() -> None:
    assert dense(SPARSE_BILM) == WORD_BILM
    assert dense(BILM) == BILM
    assert dense({}) == {}


def test_weights_fit_where_nothing_but_changes_differs() -> None:
    changes = BiLmChanges(
        dropout=0.3,
        recurrent_dropout=0.1,
        recurrent_weight_dropout=0.2,
        word_dropout=0.4,
        locked_dropout=True,
        state="carry",
        matmul_dtype="float32",
    )
    assert has_same_weights(BILM, changes.of(BILM))
    assert has_same_weights(SPARSE_BILM, WORD_BILM)
    assert not has_same_weights(BILM, {**BILM, "cell_size": 13})
    assert not has_same_weights(BILM, WORD_BILM)
