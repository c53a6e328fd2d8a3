"""`allennlp push-to-hf` with the hub library of today, against a stand-in of the hub."""

import shutil
from argparse import Namespace
from pathlib import Path
from typing import Iterator, List

import pytest
import torch
from allennlp.commands import main as allennlp_main
from allennlp.common.checks import ConfigurationError
from allennlp.common.push_to_hf import push_to_hf
from allennlp.models import load_archive

from elmo_scratch.commands.command_error import run_plainly
from elmo_scratch_compat.terminal import is_quiet
from tests.local_hub import USER, LocalHub, local_hub


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LocalHub]:
    with local_hub(tmp_path / "cache") as hub:
        yield hub


@pytest.fixture
def run(bilm_archive: Path, tmp_path: Path) -> Path:
    """The folder of a training, to be changed."""
    return Path(shutil.copytree(bilm_archive.parent, tmp_path / "run"))


def push(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr("sys.argv", ["allennlp", "push-to-hf", *map(str, words)])
    monkeypatch.setattr("allennlp.commands.import_plugins", lambda: None)
    allennlp_main("allennlp")


def test_a_training_goes_to_the_hub_and_is_read_from_there(
    hub: LocalHub, run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    capsys.readouterr()
    push(monkeypatch, "-n", "news", "-s", run, "-c", "First")
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2:] == [
        f"page         {hub.address}/me/news",
        "next         allennlp evaluate hf://me/news TEXTS",
    ]
    files = hub.repositories["me/news"]
    assert {*files} - {".gitattributes", "README.md"} == {
        *("config.json", "meta.json", "metrics.json", "weights.th"),
        *(f"vocabulary/{path.name}" for path in (run / "vocabulary").glob("*.txt")),
    }
    assert files["weights.th"] == (run / "best.th").read_bytes()
    assert hub.messages["me/news"] == ["First"]

    there = load_archive("hf://me/news").model.state_dict()
    here = load_archive(run / "model.tar.gz").model.state_dict()
    assert all(torch.equal(there[name], weights) for name, weights in here.items())


def test_a_model_of_the_hub_is_evaluated_quietly(hub: LocalHub, run: Path) -> None:
    push_to_hf("news", serialization_dir=run)
    args = Namespace(archive_file="hf://me/news", overrides="", verbose=False, debug=True)
    quiet: List[bool] = []

    def evaluate(_: Namespace) -> None:
        quiet.append(is_quiet())
        raise KeyError

    with pytest.raises(KeyError):
        run_plainly("evaluate", evaluate, args)
    assert quiet == [True]


def test_a_second_push_replaces_the_vocabulary_and_keeps_the_card(hub: LocalHub, run: Path) -> None:
    push_to_hf("news", serialization_dir=run)
    files = hub.repositories["me/news"]
    assert b"hf://me/news" in files["README.md"]
    files["README.md"] = b"# Of a person"
    (run / "vocabulary" / "tokens.txt").rename(run / "vocabulary" / "words.txt")
    push_to_hf("news", serialization_dir=run)
    assert "vocabulary/words.txt" in files and "vocabulary/tokens.txt" not in files
    assert files["README.md"] == b"# Of a person"


def test_an_archive_goes_to_an_organization(hub: LocalHub, bilm_archive: Path) -> None:
    url = push_to_hf("news", archive_path=bilm_archive, organization="us")
    assert url == f"{hub.address}/us/news" and USER not in url
    assert {"config.json", "weights.th"} < {*hub.repositories["us/news"]}


@pytest.mark.parametrize(
    "words, status, told",
    [
        (["-n", "news"], 401, r"doesn't know the token\. Log in by `hf auth login`"),
        (["-n", "news"], 403, r"the token may not write to news\. "),
        (["-n", "news"], 500, "the Hugging Face Hub refuses news: not today"),
        (["-n", "a news"], 200, "expected the name of a repository, .* but got 'a news'"),
        (["-n", "news", "-o", "us/them"], 200, "but got 'us/them/news'"),
    ],
)
def test_what_the_hub_refuses_is_one_line(
    words: list, status: int, told: str, hub: LocalHub, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.status = status
    with pytest.raises(SystemExit) as stop:
        push(monkeypatch, *words, "-s", run)
    assert "\n" not in str(stop.value)
    with pytest.raises(ConfigurationError, match=f"^allennlp push-to-hf: error: .*{told}"):
        push(monkeypatch, *words, "-s", run)


def test_without_a_token_or_a_network_a_line_says_so(
    hub: LocalHub, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ConfigurationError, match="can't be reached, so nothing was pushed: "):
        push(monkeypatch, "-n", "news", "-s", run)
    monkeypatch.delenv("HF_TOKEN")
    told = "error: there is no token of the Hugging Face Hub here. Log in by `hf auth login`"
    with pytest.raises(ConfigurationError, match=told):
        push(monkeypatch, "-n", "news", "-s", run)


def test_a_folder_without_a_model_is_named(
    hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match=f"{tmp_path}: expected the folder of a training"):
        push(monkeypatch, "-n", "news", "-s", tmp_path)
    with pytest.raises(ConfigurationError, match="none.tar.gz.*it can't be unpacked: "):
        push(monkeypatch, "-n", "news", "-a", tmp_path / "none.tar.gz")
    with pytest.raises(ValueError, match="expected one of"):
        push_to_hf("news")
    assert hub.repositories == {}
