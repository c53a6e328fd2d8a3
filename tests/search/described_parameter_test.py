from typing import Any, Dict

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.search.sweep import Choice, Number, Parameter, WholeNumber, described_parameter


@pytest.mark.parametrize(
    ("description", "parameter"),
    [
        ({"value": 3}, Choice((3,))),
        ({"values": ["top", None]}, Choice(("top", None))),
        ({"min": 1, "max": 4}, WholeNumber(1, 4)),
        ({"min": 1, "max": 4.0}, Number(1, 4)),
        ({"min": 1, "max": 4, "distribution": "uniform"}, Number(1, 4)),
        (
            {"min": 0.1, "max": 4, "distribution": "log_uniform_values"},
            Number(0.1, 4, is_logarithmic=True),
        ),
        ({"min": 8, "max": 64, "q": 8, "distribution": "q_uniform"}, Number(8, 64, step=8)),
        (
            {"min": 8, "max": 64, "distribution": "q_log_uniform_values"},
            Number(8, 64, is_logarithmic=True, step=1),
        ),
    ],
    ids=str,
)
def test_distributions_are_those_of_weights_and_biases(
    description: Dict[str, Any], parameter: Parameter
) -> None:
    assert described_parameter("sweep.yaml", "lr", description) == parameter


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("top", "sweep.yaml: expected `lr` to be a JSON object, but got a string"),
        ({"values": []}, "`values` of `lr` to be a list of one or more values, but got \\[\\]"),
        ({"values": [1, 1]}, "`values` of `lr` to be all different"),
        ({"min": 2, "max": 2}, "`max` of `lr` to be above `min`, which is 2, but got 2"),
        ({"min": 1}, "the key `max` of `lr` is missing"),
        ({"min": 1, "max": 2, "mean": 1}, "the key `mean` of `lr` is unknown"),
        ({"min": "1e-4", "max": 1.0}, 'YAML takes 1e-4 for a word.* but got "1e-4"'),
        ({"min": True, "max": 2.0}, "`min` of `lr` to be a number"),
        ({"min": 0, "max": 10**400}, "`max` of `lr` to be a number that a float can hold"),
        ({"min": 0, "max": float("inf")}, "`max` of `lr` to be a number that a float can hold"),
        ({"min": 0, "max": 2**60}, "`max` of `lr` to be within 9007199254740992 of 0"),
        ({"min": 1.5, "max": 3, "distribution": "int_uniform"}, "`min` of `lr` to be a whole"),
        ({"min": 0, "max": 1, "distribution": "log_uniform_values"}, "`min` of `lr` to be above 0"),
        ({"min": 0, "max": 1, "q": 0, "distribution": "q_uniform"}, "`q` of `lr` to be a step"),
        ({"min": 0.001, "max": 0.1, "q": 1, "distribution": "q_uniform"}, "`q` .* 0.001 and 0.1 a"),
        ({"min": 8, "max": 23, "q": 8, "distribution": "q_uniform"}, "of which 8 and 23 are mult"),
        ({"min": -1e308, "max": 1e308}, "`max` of `lr` to be no further from `min`, -1e"),
        ({"min": 0, "max": 1, "q": 1e-320, "distribution": "q_uniform"}, "hold the multiples"),
        ({"values": [0.01, "1e-3"]}, 'YAML takes 1e-4 for a word.* but got "1e-3"'),
        ({"value": "2.5E5"}, 'YAML takes 1e-4 for a word.* but got "2.5E5"'),
        ({"mu": 0, "distribution": "normal"}, "has the distribution 'normal', but what is known"),
        ({"value": 1, "distribution": ["uniform"]}, "has the distribution \\['uniform'\\], but"),
        ({"parameters": {"type": {"value": 1}}}, "the key `min` of `lr` is missing"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_an_error(description: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        described_parameter("sweep.yaml", "lr", description)
