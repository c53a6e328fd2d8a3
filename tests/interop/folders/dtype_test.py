import json
import os
from pathlib import Path

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch import Elmo, ElmoEmbedder, read_bilm, write_bilm_folder
from elmo_scratch.interop import export_model_folder
from elmo_scratch.scoring import SentenceScorer
from tests import PROJECT_ROOT
from tests.tiny_archives import archive_of

WORDS = PROJECT_ROOT / "tests" / "golden" / "words" / "model.tar.gz"
HALVES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


@pytest.mark.parametrize("dtype", HALVES)
def test_a_folder_of_half_the_size_holds_the_rounded_weights(dtype: str, tmp_path: Path) -> None:
    export_model_folder(WORDS, tmp_path / "whole")
    export_model_folder(WORDS, tmp_path / "half", dtype=dtype)
    whole, half = (read_bilm(tmp_path / name, with_softmax=True) for name in ("whole", "half"))
    pairs = [
        *zip(whole.bilm.parameters(), half.bilm.parameters()),
        *zip(whole.softmax.tensors.values(), half.softmax.tensors.values()),
    ]
    for weight, read in pairs:
        assert read.dtype == torch.float32
        assert torch.equal(read, weight.to(HALVES[dtype]).float())
    assert any(not torch.equal(weight, read) for weight, read in pairs)
    config = json.loads((tmp_path / "half" / "config.json").read_text())
    assert (config["dtype"], config["format_version"]) == (dtype, 2)
    assert f"| stored as | {dtype}; read as float32 |" in (
        tmp_path / "half" / "README.md"
    ).read_text("utf-8")
    # What is rounded once stays as it is.
    ElmoEmbedder.from_pretrained(tmp_path / "half").save_pretrained(tmp_path / "again", dtype=dtype)
    again = read_bilm(tmp_path / "again").bilm
    assert all(map(torch.equal, again.parameters(), half.bilm.parameters()))


def test_float32_folders_stay_as_they_were(tmp_path: Path) -> None:
    export_model_folder(WORDS, tmp_path / "folder")
    config = json.loads((tmp_path / "folder" / "config.json").read_text())
    assert config["format_version"] == 1
    assert not {"dtype"} & set(config) and "lowercase" not in config["vocabulary"]


def test_the_mixes_of_an_elmo_are_rounded_too(tmp_path: Path) -> None:
    elmo = Elmo.from_pretrained(WORDS, num_output_representations=2)
    with torch.no_grad():
        elmo.mixes[1].gamma.fill_(1.2345678)
    elmo.save_pretrained(tmp_path / "folder", dtype="float16")
    read = Elmo.from_pretrained(tmp_path / "folder")
    assert read.mixes[1].gamma.item() == torch.tensor(1.2345678).half().item()


def test_types_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    bilm = read_bilm(WORDS).bilm
    with pytest.raises(ValueError, match="one of float32, float16, bfloat16, but got 'int8'"):
        write_bilm_folder(bilm, tmp_path / "folder", dtype="int8")
    indexer = read_bilm(WORDS).word_indexer
    with torch.no_grad():
        bilm.left_to_right.layers[0].bias[0] = 1e6
    with pytest.raises(ValueError, match="float16 can hold, but one is larger. Take `dtype` bfl"):
        write_bilm_folder(bilm, tmp_path / "folder", word_indexer=indexer, dtype="float16")
    assert os.listdir(tmp_path) == []
    export_model_folder(WORDS, tmp_path / "folder", dtype="bfloat16")
    path = tmp_path / "folder" / "config.json"
    record = json.loads(path.read_text())
    for found, message in (
        ("int8", '`dtype` to be one of float32, float16, bfloat16, but got "int8"'),
        ("float16", "to be of the type F16, but it is of the type BF16"),
    ):
        path.write_text(json.dumps({**record, "dtype": found}))
        with pytest.raises(ConfigurationError, match=message):
            read_bilm(tmp_path / "folder")


def test_what_is_predicted_in_lower_case_is_scored_so(tmp_path: Path) -> None:
    archive = archive_of(tmp_path, indexer={"lowercase_tokens": True}, lines=["the river rose"] * 4)
    export_model_folder(archive, tmp_path / "folder")
    before, after = (
        next(SentenceScorer.from_pretrained(model, state="reset").score([["The", "River"]]))
        for model in (archive, tmp_path / "folder")
    )
    assert after == before and before.unknown == []
