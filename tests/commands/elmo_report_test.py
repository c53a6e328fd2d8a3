from pathlib import Path

import pytest

from elmo_scratch.report import charts
from tests import FIXTURES_ROOT
from tests.commands.conftest import Allennlp
from tests.report.run_folders import write_json, write_run


def test_it_writes_a_page_and_a_pdf(
    allennlp: Allennlp, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    write_run(tmp_path / "study" / "one")
    write_json(write_run(tmp_path / "study" / "two") / "config.json", [])
    allennlp("elmo-report", "study", "-o", "report.html")
    said = capsys.readouterr()
    assert said.out == "report.html: a report of 1 training\n"
    assert "left out: study/two/config.json: expected the file to be a JSON object" in said.err
    assert "Left out: study/two/config.json" in (tmp_path / "report.html").read_text("utf-8")
    allennlp("elmo-report", "study/one", "study/one", "-o", "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert capsys.readouterr().out == "report.pdf: a report of 2 trainings\n"


@pytest.mark.parametrize(
    "words, message",
    [
        (["one", "-o", "report.txt"], "report.txt: expected the name of a file that ends in .html"),
        (["none", "-o", "report.html"], "none: expected the output folder of a training"),
        (["two", "-o", "report.html"], "config.json: expected the file to be a JSON object"),
        (["one", "-o", "report.html", "--errors", "x"], "--errors needs .* with a model.tar.gz"),
        (["bilm", "-o", "report.html", "--errors", "x"], "--errors needs a training of the model"),
        (["one", "-o", "none/report.html"], "the folder .*none doesn't exist"),
    ],
)
def test_mistakes_are_told_in_a_line(
    allennlp: Allennlp, tmp_path: Path, words: list, message: str
) -> None:
    write_run(tmp_path / "one")
    write_json(write_run(tmp_path / "two") / "config.json", [])
    write_run(tmp_path / "bilm", config={"model": {"type": "elmo_scratch_bilm"}})
    with pytest.raises(SystemExit, match=f"^allennlp elmo-report: error: .*{message}"):
        allennlp("elmo-report", *words)
    assert not list(tmp_path.glob("report*"))


def test_without_matplotlib_it_says_what_to_install(
    allennlp: Allennlp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "one")
    monkeypatch.setattr(charts, "find_spec", lambda name: None if name == "matplotlib" else name)
    with pytest.raises(SystemExit, match=r"needs matplotlib.*pip install 'elmo_scratch\[report\]'"):
        allennlp("elmo-report", "one", "-o", "report.html")


def test_a_real_training_is_told_in_full(
    allennlp: Allennlp, classifier_archive: Path, bilm_archive: Path, tmp_path: Path
) -> None:
    folders = [classifier_archive.parent, bilm_archive.parent]
    data = FIXTURES_ROOT / "news" / "dev.csv"
    allennlp("elmo-report", *folders, "-o", tmp_path / "r.html", "--errors", data)
    page = (tmp_path / "r.html").read_text("utf-8")
    for said in (
        "elmo_scratch_classifier",
        "elmo_scratch_bilm",
        "Shares of the layers in text_field_embedder.token_embedder_elmo.mix",
        "Sci/Tech",
        "(the rest)",
        "tokens a second",
        "PyTorch",
        "GiB of memory",
        "perplexity_right_to_left",
        "The classifier is surest of these.",
    ):
        assert said in page, said
