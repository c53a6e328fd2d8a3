import logging
import re
from pathlib import Path
from typing import Callable, List

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.explore import ExportedTokens, word_lines
from elmo_scratch.interop import LayerFile
from tests import FIXTURES_ROOT
from tests.commands.conftest import Allennlp
from tests.explore.tiny_explorations import SENTENCES, write_explored
from tests.tiny_elmo import OfficialFiles

TOUR = FIXTURES_ROOT / "text" / "tour.txt"


@pytest.fixture
def explore(allennlp: Allennlp, tmp_path: Path) -> Callable[..., None]:
    """Runs `allennlp elmo-explore` in a folder with a file of layers and a text."""
    write_explored(tmp_path / "layers.hdf5")
    (tmp_path / "text.txt").write_text(TOUR.read_text("utf-8"), "utf-8")
    return lambda *words: allennlp("elmo-explore", *words)


def fails(run: Callable[[], None]) -> str:
    with pytest.raises(ConfigurationError) as error:
        run()
    return error.value.message


def test_a_word_is_printed(
    explore: Callable[..., None], capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    explore("layers.hdf5", "--word", "bank", "-k", "2")
    with LayerFile(tmp_path / "layers.hdf5") as layers:
        lines = word_lines(ExportedTokens(layers), "bank", 2)
    assert capsys.readouterr().out.splitlines() == lines
    assert lines[0] == "bank: 4 occurrences in 6 sentences of layers.hdf5"


def test_a_page_is_written_whole_and_replaced_only_if_wished(
    explore: Callable[..., None], capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    explore("layers.hdf5", "-o", "layers.html", "--max-sentences", "2")
    _, reached, _, place, step = capsys.readouterr().out.splitlines()
    assert reached == "2 sentences, 15 tokens, 3 layers"
    assert re.fullmatch(r"page {9}layers.html, \d\d\.\d KB, for a browser", place)
    assert step == f"next         python -m webbrowser {(tmp_path / 'layers.html').as_uri()}"
    page = (tmp_path / "layers.html").read_bytes()
    assert page.startswith(b"<!doctype html>") and page.endswith(b"</html>\n")
    assert "Choose another name, or replace it with --overwrite" in fails(
        lambda: explore("layers.hdf5", "-o", "layers.html")
    )
    explore("layers.hdf5", "-o", "layers.html", "--overwrite", "--max-sentences", "2")
    assert (tmp_path / "layers.html").read_bytes() == page
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "layers.hdf5",
        "layers.html",
        "text.txt",
    ]


def test_the_page_of_a_text_is_that_of_its_export(
    explore: Callable[..., None], allennlp: Allennlp, files: OfficialFiles, tmp_path: Path
) -> None:
    model = ["--options-file", files.options, "--weight-file", files.weights]
    (tmp_path / "exported").mkdir()
    allennlp("elmo", "text.txt", "exported/text.txt", "--all", "--state", "reset", *model)
    explore("exported/text.txt", "-o", "exported.html", "--max-sentences", "5")
    explore("text.txt", *model, "-o", "text.html", "--max-sentences", "5")
    # What is told of the whole file differs: 5 sentences were exported, or 12.
    page, of_export = ((tmp_path / name).read_text() for name in ("text.html", "exported.html"))
    assert page.partition('<script id="data"')[2] == of_export.partition('<script id="data"')[2]
    assert "5 of 12 sentences" in of_export


def test_an_archive_reads_a_text(
    explore: Callable[..., None],
    bilm_archive: Path,
    capsys: pytest.CaptureFixture,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, logger="elmo_scratch.export.export"):
        explore("text.txt", "--archive", bilm_archive, "--word", "crane", "-k", "1")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "crane: 2 occurrences in 12 sentences of text.txt"
    assert "will take about" not in caplog.text  # a file that is gone when the command ends


def test_a_text_is_cut_by_the_rules_of_its_language(
    explore: Callable[..., None],
    bilm_archive: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    (tmp_path / "raw.txt").write_text("A crane, and a crane.\n")
    words = ["raw.txt", "--archive", bilm_archive, "--word", "crane"]
    explore(*words, "--tokenize", "en")
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "crane: 2 occurrences in 1 sentence of raw.txt"


def test_labels_reach_the_page(explore: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("rare\n" * len(SENTENCES), "utf-8")
    explore("layers.hdf5", "-o", "layers.html", "--labels", "labels.txt")
    assert '"names": ["rare"]' in (tmp_path / "layers.html").read_text("utf-8")


def test_labels_are_those_of_the_whole_text(
    explore: Callable[..., None], files: OfficialFiles, tmp_path: Path
) -> None:
    (tmp_path / "labels.txt").write_text("rare\n" * 12, "utf-8")
    model = ["--options-file", files.options, "--weight-file", files.weights]
    explore("text.txt", *model, "-o", "text.html", "--labels", "labels.txt", "--max-sentences", "5")
    assert '"names": ["rare"]' in (tmp_path / "text.html").read_text("utf-8")


def test_files_for_tensorboard_are_written(
    explore: Callable[..., None], capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    explore("layers.hdf5", "--projector", "projector", "--layer", "1")
    _, reached, _, place, step = capsys.readouterr().out.splitlines()
    assert reached == "6 sentences, 38 tokens, 3 layers"
    assert place == "vectors      projector"
    assert step == "next         tensorboard --logdir projector"
    assert len((tmp_path / "projector" / "vectors.tsv").read_text("utf-8").splitlines()) == 38
    assert '"layer 1"' in (tmp_path / "projector" / "projector_config.pbtxt").read_text("utf-8")
    assert "there already" in fails(lambda: explore("layers.hdf5", "--projector", "projector"))
    explore("layers.hdf5", "--projector", "projector", "--overwrite")
    assert '"layer 2"' in (tmp_path / "projector" / "projector_config.pbtxt").read_text("utf-8")


@pytest.mark.parametrize(
    "words, message",
    [
        (["layers.hdf5"], r"name a word of the text \(--word bank\), a page to write"),
        (["none.hdf5", "--word", "a"], "none.hdf5: there is no such file"),
        (["text.txt", "--word", "a"], "For a text name the model.*--archive model.tar.gz"),
        (["layers.hdf5", "--word", "bnk"], "Did you mean bank"),
        (["layers.hdf5", "--word", "a", "--archive", "m"], "holds layers already: leave .* m out"),
        (["layers.hdf5", "--word", "a", "--tokenize", "en"], "words already: leave --tokenize out"),
        (["text.txt", "--word", "a", "--archive", "m", "--weight-file", "w"], "expected one model"),
        (["layers.hdf5", "--word", "a", "-k", "0"], "--neighbours of 1 or more, got 0"),
        (["layers.hdf5", "--word", "a", "--labels", "l"], "name one with -o"),
        (["layers.hdf5", "-o", "x.html", "--labels", "l"], "l: there is no such file"),
        (["layers.hdf5", "-o", "none/x.html"], "none doesn't exist"),
        (["layers.hdf5", "--word", "a", "--layer", "1"], "name a folder for it"),
        (["layers.hdf5", "--projector", "p", "--layer", "3"], "a layer from 0 to 2, but got 3"),
        (["layers.hdf5", "--projector", "text.txt"], "expected a folder to write to"),
        (["layers.hdf5", "--projector", "none/p"], "none doesn't exist"),
        (["layers.hdf5", "-o", "layers.hdf5"], "the output would replace the input"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    words: List[str], message: str, explore: Callable[..., None]
) -> None:
    with pytest.raises(ConfigurationError, match=message) as error:
        explore(*words)
    assert error.value.message.startswith("allennlp elmo-explore: error: ")
    assert len(error.value.message.splitlines()) == 1
