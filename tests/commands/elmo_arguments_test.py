import argparse
from typing import Any, Dict

import pytest

from elmo_scratch.commands import Elmo
from elmo_scratch.export import ExportSettings


def parsed(*words: str) -> Dict[str, Any]:
    """What a command line says."""
    parser = argparse.ArgumentParser()
    Elmo().add_subparser(parser.add_subparsers())
    found = vars(parser.parse_args(["elmo", *words]))
    del found["func"]
    return found


def test_what_the_arguments_of_old_scripts_say() -> None:
    found = parsed(
        *("in.txt", "out.hdf5", "--all", "--options-file", "o", "--weight-file", "w"),
        *("--vocab-path", "v", "--batch-size", "32", "--cuda-device", "1", "--forget-sentences"),
        *("--use-sentence-keys", "--file-friendly-logging"),
    )
    expected = {
        "input_file": "in.txt",
        "output_file": "out.hdf5",
        "kept": "all",
        "options_file": "o",
        "weight_file": "w",
        "vocab_path": "v",
        "batch_size": 32,
        "cuda_device": 1,
        "forget_sentences": True,
        "use_sentence_keys": True,
        "file_friendly_logging": True,
    }
    assert {name: found[name] for name in expected} == expected


def test_by_default_nothing_is_new() -> None:
    found = parsed("in.txt", "out.hdf5", "--top")
    assert ExportSettings(**{name: found[name] for name in ExportSettings._fields}) == (
        ExportSettings("top")
    )
    assert (found["state"], found["matmul_dtype"], found["engine"]) == ("carry", "float32", "local")
    assert not (found["resume"] or found["overwrite"] or found["shard"])


@pytest.mark.parametrize("option, value", [("--pool", "sum"), ("--dtype", "int8")])
def test_a_choice_is_one_of_a_few(option: str, value: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        parsed("in.txt", "out.hdf5", "--all", option, value)
    assert f"invalid choice: '{value}'" in capsys.readouterr().err
