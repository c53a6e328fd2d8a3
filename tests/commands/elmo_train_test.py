import json
import re
import shutil
from pathlib import Path
from typing import Any, Dict

import pytest
from allennlp.common.util import SigTermReceived

from elmo_scratch.commands import elmo_train
from elmo_scratch.interop import read_bilm_archive
from tests import FIXTURES_ROOT
from tests.commands.conftest import Allennlp

SENTENCES = FIXTURES_ROOT / "text" / "sentences.txt"


@pytest.fixture(autouse=True)
def small_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe with a smaller network, which is trained within seconds."""
    fit = elmo_train.fitted_recipe

    def fitted_recipe(*args: Any) -> Dict[str, Any]:
        config = fit(*args)
        encoder = {"type": "char_cnn", "dim": 8, "filters": [[1, 4], [2, 8]], "num_highway": 1}
        config["model"]["bilm"].update(token_encoder=encoder, cell_size=16)
        config["data_loader"]["batch_size"] = 16
        return config

    monkeypatch.setattr(elmo_train, "fitted_recipe", fitted_recipe)


def test_from_a_text_to_a_bilm_and_a_report(
    allennlp: Allennlp, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    allennlp("elmo-train", SENTENCES, "-s", "runs/own", "--epochs", "2", "--tokenize", "xx")
    told = capsys.readouterr()
    assert told.out.splitlines()[:3] == [
        "3,855 words between white space in 300 sentences",
        "held out for validation: the last 5.0% of each file",
        "recipe own_small: 2 epochs, 16 streams",
    ]
    assert "going on" not in told.err
    assert "report       runs/own/report.html" in told.out
    assert re.search(
        "allennlp elmo TEXT layers.hdf5 --all .* --tokenize xx$", told.out, re.MULTILINE
    )
    report = (tmp_path / "runs/own/report.html").read_text(encoding="utf-8")
    assert "perplexity" in report and "in progress" not in report
    assert read_bilm_archive(tmp_path / "runs/own/model.tar.gz").bilm.num_layers == 3
    held = (tmp_path / "runs/own/texts/dev.txt").read_text(encoding="utf-8").splitlines()
    assert held == SENTENCES.read_text(encoding="utf-8").splitlines()[-15:]
    with pytest.raises(SystemExit, match="runs/own: a finished training is there"):
        allennlp("elmo-train", SENTENCES, "-s", "runs/own", "--epochs", "2")


def test_the_same_command_goes_on(
    allennlp: Allennlp,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    words = ["elmo-train", SENTENCES, "--dev", FIXTURES_ROOT / "text" / "heldout.txt"]
    words += ["-s", "own", "--epochs", "1"]
    train = elmo_train.train_model_from_args
    monkeypatch.setattr(elmo_train, "train_model_from_args", raise_sigterm)
    with pytest.raises(SystemExit) as stop:
        allennlp(*words)
    assert stop.value.code == 143
    assert "The same command goes on" in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"own: .* other arguments has begun there \(epochs\)"):
        allennlp(*words[:-1], "2")
    monkeypatch.setattr(elmo_train, "train_model_from_args", train)
    allennlp(*words)
    config = json.loads((tmp_path / "own" / "config.json").read_text(encoding="utf-8"))
    assert config["train_data_path"] == [str(SENTENCES)]
    assert (tmp_path / "own" / "report.html").is_file()
    assert not (tmp_path / "own" / "texts").exists()


def raise_sigterm(_: Any) -> None:
    raise SigTermReceived


def test_a_dry_run_writes_nothing(
    allennlp: Allennlp, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    raw = tmp_path / "raw.txt"
    raw.write_text("He said, that the bank was closed.\n" * 400, encoding="utf-8")
    allennlp("elmo-train", raw, "-s", "runs/own", "--dry-run")
    told = capsys.readouterr().out
    assert "29% of the words have a punctuation mark at their end" in told
    assert told.splitlines()[-1].startswith("recipe own_small: 20 epochs, ")
    allennlp("elmo-train", raw, "-s", "runs/own", "--dry-run", "--tokenize", "en")
    assert "punctuation" not in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["raw.txt"]


def test_a_language_without_rules_leaves_no_folder_behind(
    allennlp: Allennlp, tmp_path: Path
) -> None:
    for options in ([], ["--dry-run"]):
        with pytest.raises(SystemExit, match=r"language 'sw': .*\. Expected a code such as"):
            allennlp("elmo-train", SENTENCES, "-s", "own", "--tokenize", "sw", *options)
    assert not (tmp_path / "own").exists()


@pytest.mark.parametrize(
    "text, folder, message",
    [
        ("none.txt", "own", "none.txt: no file matches"),
        ("short.txt", "own", "short.txt: expected a text of at least 2,000 words, got 3"),
        ("short.txt", "full", "full: expected an empty folder, or none"),
    ],
)
def test_mistakes_are_told_in_a_line(
    text: str, folder: str, message: str, allennlp: Allennlp, tmp_path: Path
) -> None:
    (tmp_path / "short.txt").write_text("a b c\n", encoding="utf-8")
    (tmp_path / "full").mkdir()
    shutil.copy(SENTENCES, tmp_path / "full")
    with pytest.raises(SystemExit, match=f"^allennlp elmo-train: error: {message}"):
        allennlp("elmo-train", text, "-s", folder)
    assert not (tmp_path / "own").exists()


def test_a_table_is_refused_before_anything_is_written(allennlp: Allennlp, tmp_path: Path) -> None:
    shutil.copy(FIXTURES_ROOT / "news" / "dev.csv", tmp_path / "t.csv")
    with pytest.raises(SystemExit) as refused:
        allennlp("elmo-train", "t.csv", "-s", "run")
    told = "allennlp elmo-train: error: t.csv: a corpus is plain text, .* but this is a table"
    assert re.match(told, str(refused.value)) and "\n" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
