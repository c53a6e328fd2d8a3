import argparse
from dataclasses import fields
from typing import Any, Dict

import pytest

from elmo_scratch.commands import ElmoVectors
from elmo_scratch.commands.elmo_vectors import METHODS
from elmo_scratch.static_vectors import PpmiSvd, Word2Vec


def parsed(*words: str) -> Dict[str, Any]:
    """What a command line says."""
    parser = argparse.ArgumentParser()
    ElmoVectors().add_subparser(parser.add_subparsers())
    found = vars(parser.parse_args(["elmo-vectors", *words]))
    del found["func"]
    return found


def test_without_options_all_settings_are_those_of_the_methods() -> None:
    found = parsed("corpus.txt", "out.txt", "--method", "svd")
    assert found == {
        "corpus": "corpus.txt",
        "output_file": "out.txt",
        "method": "svd",
        "overwrite": False,
        "file_friendly_logging": False,
        "reader": None,
        "lowercase": False,
        "min_count": 5,
        "max_words": None,
        "verbose": False,
    }


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_of_a_method_is_an_argument(name: str) -> None:
    method = METHODS[name]()
    given: Dict[str, Any] = {field.name: getattr(method, field.name) for field in fields(method)}
    options = [f"--{setting.replace('_', '-')}={value}" for setting, value in given.items()]
    found = parsed("corpus.txt", "out.txt", "--method", name, *options)
    assert {setting: found[setting] for setting in given} == given
    assert METHODS[name](**{setting: found[setting] for setting in given}) == method


def test_the_help_text_tells_settings_and_defaults(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        parsed("--help")
    text = " ".join(capsys.readouterr().out.split())
    for part in (
        "both methods:",
        "--dim DIM numbers of a vector (default: 300)",
        "--method word2vec:",
        "--algorithm {skip-gram,cbow}",
        "(default: skip-gram)",
        "with more than one the vectors are not the same each time (default: 1)",
        "--method svd:",
        "(default: 0.75)",
    ):
        assert part in text
    for field in {*fields(Word2Vec), *fields(PpmiSvd)}:
        assert text.count(f" --{field.name.replace('_', '-')} ") >= 1


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["corpus.txt", "out.txt"], "the following arguments are required: --method"),
        (["c", "o", "--method", "glove"], "invalid choice: 'glove'"),
        (["c", "o", "--method", "word2vec", "--algorithm", "glove"], "invalid choice: 'glove'"),
        (["c", "o", "--method", "svd", "--dim", "3.5"], "invalid int value: '3.5'"),
    ],
)
def test_what_makes_no_sense_is_an_error(
    words: list, complaint: str, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit):
        parsed(*words)
    assert complaint in capsys.readouterr().err
