from dataclasses import replace
from typing import Any, Dict

import pytest
from allennlp.common import Params

from elmo_scratch.interop.official.options import Options
from elmo_scratch.modules import BiLm
from tests.tiny_elmo import OPTIONS

LSTM = replace(OPTIONS.lstm, cell_clip=None, use_skip_connections=False, n_layers=3)


@pytest.mark.parametrize(
    "options",
    [OPTIONS, replace(OPTIONS, lstm=LSTM), replace(OPTIONS, char_cnn=None)],
    ids=["as released", "otherwise", "words"],
)
def test_a_bilm_of_it_has_these_options(options: Options) -> None:
    sizes: Dict[str, Any] = {"num_words": 7, "begin_id": 1, "end_id": 2}
    bilm = BiLm.from_params(Params(options.to_config()), **sizes)
    assert Options.of(bilm) == options


def test_it_is_what_a_config_says() -> None:
    assert OPTIONS.to_config() == {
        "token_encoder": {
            "type": "char_cnn",
            "dim": 16,
            "filters": [[1, 4], [2, 8], [3, 16]],
            "character_dim": 4,
            "num_highway": 2,
            "activation": "relu",
            "max_characters_per_token": 50,
        },
        "cell_size": 24,
        "num_layers": 2,
        "cell_clip": 1.5,
        "projection_clip": 0.8,
        "use_skip_connections": True,
    }
