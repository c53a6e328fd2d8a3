import argparse
from dataclasses import fields
from typing import Any, Dict, List

import pytest

from elmo_scratch.command_line import COMMANDS, CommandLine, check_words
from elmo_scratch.command_line.elmo import ELMO, ELMO_JOIN
from elmo_scratch.command_line.elmo_explore import ELMO_EXPLORE
from elmo_scratch.command_line.elmo_report import KINDS
from elmo_scratch.command_line.elmo_score import ELMO_SCORE
from elmo_scratch.command_line.elmo_train import ELMO_TRAIN
from elmo_scratch.command_line.elmo_vectors import SETTINGS
from elmo_scratch.commands import elmo_report, elmo_score, elmo_vectors
from elmo_scratch.data.sentence_forms import SENTENCE_FORMS
from elmo_scratch.explore.page import MAX_SENTENCES, MAX_TOKENS
from elmo_scratch.export.plan import DTYPES, POOLS
from elmo_scratch.interop.layer_files.writer import COMPRESSIONS
from elmo_scratch.kernels import MATMUL_DTYPES
from elmo_scratch.modules.lstm import STATES
from elmo_scratch.own_text.recipes import LARGER, RECIPES


def choices_of(command: CommandLine) -> Dict[str, List[Any]]:
    """What each argument with choices can be."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return {action.dest: list(action.choices) for action in parser._actions if action.choices}


def test_choices_are_those_of_the_code_behind() -> None:
    """The room imports nothing that knows them."""
    assert choices_of(ELMO) == {
        "input_format": list(SENTENCE_FORMS),
        "pool": list(POOLS),
        "dtype": list(DTYPES),
        "compression": list(COMPRESSIONS),
        "state": list(STATES),
        "matmul_dtype": list(MATMUL_DTYPES),
        "engine": ["local", "ray"],
    }
    assert list(KINDS) == list(elmo_report.WRITERS)
    scoring = choices_of(ELMO_SCORE)
    assert scoring["format"] == list(elmo_score.FORMATS)
    assert set(scoring["state"]) < set(STATES)
    assert choices_of(ELMO_TRAIN) == {"recipe": [*RECIPES, LARGER]}


def test_defaults_are_those_of_the_code_behind() -> None:
    for name, method in elmo_vectors.METHODS.items():
        settings = {**SETTINGS["both methods"], **SETTINGS[name]}
        assert {key: default for key, (default, _) in settings.items()} == {
            field.name: field.default for field in fields(method)
        }
    parser = argparse.ArgumentParser()
    ELMO_EXPLORE.add_arguments(parser)
    assert parser.parse_args(["layers.hdf5"]).max_sentences == MAX_SENTENCES
    assert f"no more than {MAX_TOKENS} tokens" in " ".join(parser.format_help().split())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_the_program(name: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as stop:
        check_words([name, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: allennlp {name} ") and "--include-package" in text


@pytest.mark.parametrize(
    "words, complaint",
    [
        ("elmo in.txt out.hdf5 --all --workers 2", "--workers needs --engine ray"),
        ("elmo-explore layers.hdf5", "expected something to show"),
        ("elmo-train text.txt -s own --epochs 0", "expected --epochs of 1 or more, got 0"),
        ("elmo-explore layers.hdf5 --word a -k 0", "expected --neighbours of 1 or more, got 0"),
        ("elmo-explore layers.hdf5 --word a --labels b", "--labels colour the maps of a page"),
        ("elmo-explore layers.hdf5 --word a --layer 1", "--layer chooses what --projector writes"),
        ("elmo-explore in.txt --word a --archive b --weight-file c", "expected one model"),
        ("elmo-score m.tar.gz in.txt --top -1", "expected --top of 0 or more, got -1"),
        ("elmo-score m.tar.gz in.txt --batch-size 0", "expected --batch-size of 1 or more, got 0"),
        ("elmo-score m.tar.gz in.txt --overwrite", "--overwrite replaces a file: name it with -o"),
        (
            "elmo-score w.hdf5 in.txt --options-file o",
            "--options-file needs both of --softmax-file and --vocab-path: --softmax-file is",
        ),
        ("elmo-score small in.txt --softmax-file s", "a softmax needs both of --softmax-file and"),
        ("elmo-report run -o report.docx", "report.docx: expected the name of a file that ends in"),
        ("elmo-vectors a b --method svd --epochs 2", "--epochs is a setting of --method word2vec"),
    ],
)
def test_what_does_not_go_together_ends_the_program(words: str, complaint: str) -> None:
    with pytest.raises(SystemExit) as stop:
        check_words(words.split())
    assert str(stop.value.code).startswith(f"allennlp {words.split()[0]}: error: {complaint}")


def test_what_argparse_refuses_ends_the_program(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as stop:
        check_words(["elmo", "in.txt", "out.hdf5"])
    assert stop.value.code == 2
    assert "one of the arguments --all --top --average is required" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", ["", "train config.jsonnet", "elmo in.txt out.hdf5 --all --include-package mine"]
)
def test_all_else_goes_on(words: str, capsys: pytest.CaptureFixture) -> None:
    check_words(words.split())
    assert capsys.readouterr() == ("", "")


def test_a_subcommand_adds_its_arguments_to_those_of_others() -> None:
    parser = argparse.ArgumentParser()
    ELMO_JOIN.add_to(parser.add_subparsers())
    found = vars(parser.parse_args(["elmo-join", "out.hdf5", "--remove-shards"]))
    own = {"output_file": "out.hdf5", "remove_shards": True, "overwrite": False}
    assert found == {**own, "verbose": False}
