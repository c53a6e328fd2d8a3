import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, List

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch import SentenceScorer
from elmo_scratch.scoring import SentenceScore, TextScore, table_lines
from elmo_scratch.scoring.scores import table_total
from tests import FIXTURES_ROOT
from tests.commands.conftest import Allennlp
from tests.scoring.official_models import official_model
from tests.tiny_archives import archive_of

TOUR = FIXTURES_ROOT / "text" / "tour.txt"
RESIDUAL = FIXTURES_ROOT / "elmo" / "residual"

Run = Callable[..., None]


@pytest.fixture
def score(allennlp: Allennlp, bilm_archive: Path, tmp_path: Path) -> Run:
    """Runs `allennlp elmo-score` with a model, in a folder with a text."""
    (tmp_path / "text.txt").write_bytes(TOUR.read_bytes())
    (tmp_path / "model.tar.gz").write_bytes(bilm_archive.read_bytes())
    return lambda *words: allennlp("elmo-score", "model.tar.gz", *words)


def fails(run: Callable[[], None]) -> str:
    with pytest.raises(ConfigurationError) as error:
        run()
    assert "\n" not in error.value.message
    return error.value.message


def scores_of(archive: Path, top: int = 0) -> List[SentenceScore]:
    return list(SentenceScorer.from_archive(archive).score_text(TOUR, top))


def test_without_options_a_table_is_printed(
    score: Run, bilm_archive: Path, capsys: pytest.CaptureFixture
) -> None:
    score("text.txt", "--top", 2)
    total, lines = TextScore(), []
    for sentence in scores_of(bilm_archive, top=2):
        total.add(sentence)
        lines += table_lines(sentence)
    assert capsys.readouterr().out.splitlines() == [*lines, *table_total(total)]


def test_a_file_has_a_line_of_json_for_each_sentence_and_one_for_the_text(
    score: Run, bilm_archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    score("text.txt", "-o", "scores.jsonl")
    *sentences, text = map(json.loads, (tmp_path / "scores.jsonl").read_text("utf-8").splitlines())
    expected = scores_of(bilm_archive)
    assert [one["left_to_right"] for one in sentences] == [one.left_to_right for one in expected]
    assert [one["words"] for one in sentences] == [one.words for one in expected]
    assert text["text"]["sentences"] == 12 and text["text"]["unknown"] > 0
    told = capsys.readouterr().out.splitlines()
    assert told[1].startswith("12 sentences, 131 words in ") and told[1].endswith(" words/s")
    assert told[3] == f"perplexity {text['text']['perplexity']:.1f}"
    assert told[-2:] == [
        "scores       scores.jsonl",
        "next         tail -n 1 scores.jsonl",
    ]


def test_json_on_standard_output_is_nothing_but_json(
    score: Run, capsys: pytest.CaptureFixture
) -> None:
    score("text.txt", "--format", "jsonl", "--batch-size", 5)
    lines = capsys.readouterr().out.splitlines()
    assert len(list(map(json.loads, lines))) == 13


def test_a_file_appears_whole_or_not_at_all(score: Run, tmp_path: Path) -> None:
    (tmp_path / "scores.jsonl").write_text("older")
    assert "Choose another name, or replace it with --overwrite" in fails(
        lambda: score("text.txt", "-o", "scores.jsonl")
    )
    (tmp_path / "bad.txt").write_bytes(b"the bank\n" * 3000 + b"\xff\n")
    message = fails(lambda: score("bad.txt", "-o", "scores.jsonl", "--overwrite"))
    assert "bad.txt, line 3001: expected UTF-8 text" in message
    assert (tmp_path / "scores.jsonl").read_text() == "older"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bad.txt",
        "model.tar.gz",
        "scores.jsonl",
        "text.txt",
    ]


def test_official_files_are_scored(
    allennlp: Allennlp,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    sampled = {"type": "sampled", "num_samples": 3, "sparse": False}
    archive = archive_of(tmp_path / "run", has_corpus_vocabulary=True, softmax=sampled)
    files = official_model(archive, tmp_path / "models" / "original")
    softmax = ["--softmax-file", files.softmax.rename(tmp_path / "softmax.hdf5")]
    softmax += ["--vocab-path", files.words.rename(tmp_path / "words.txt")]
    monkeypatch.setenv("ELMO_SCRATCH_MODELS", str(tmp_path / "models"))

    def scored(model: object, *words: object) -> Dict[str, float]:
        capsys.readouterr()
        allennlp("elmo-score", model, TOUR, "--state", "reset", "--format", "jsonl", *words)
        return json.loads(capsys.readouterr().out.splitlines()[-1])["text"]

    ours = scored(archive)
    by_files = scored(files.weights, "--options-file", files.options, *softmax)
    assert by_files == pytest.approx(ours, rel=1e-5)
    # A model may be named in any way, and keep its softmax beside its other files.
    assert scored("original", *softmax) == scored(files.weights.parent, *softmax) == by_files
    (tmp_path / "softmax.hdf5").rename(files.softmax)
    (tmp_path / "words.txt").rename(files.words)
    assert scored("original") == scored(files.weights.parent) == by_files


@pytest.mark.parametrize(
    "model, told",
    [
        ("small", "small: expected .* by --softmax-file .* `original` and `original-5.5B` were"),
        (RESIDUAL, "residual: expected .* official files hold none"),
        (
            RESIDUAL / "weights.hdf5",
            "weights.hdf5: official weights need .* Expected a language model with its",
        ),
        (FIXTURES_ROOT / "elmo_for_many_langs" / "both", "both: .* model of ELMoForManyLangs"),
    ],
)
def test_models_without_a_softmax_say_which_have_one(
    model: str, told: str, allennlp: Allennlp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_scratch.interop.named_models.download", None)
    assert re.search(told, fails(lambda: allennlp("elmo-score", model, TOUR)))


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["none.txt"], "none.txt"),
        (["empty.txt"], "empty.txt: expected"),
        (["blank.txt"], "expected sentences, but no line holds a token"),
        (["text.txt", "-o", "no/scores.jsonl"], "no/scores.jsonl: the folder"),
        (["text.txt", "-o", "text.txt", "--overwrite"], "the output would replace an input"),
        (["text.txt", "-o", "model.tar.gz", "--overwrite"], "the output would replace an input"),
        (["text.txt", "--cuda-device", "99"], "expected a GPU with the number 99"),
        (
            ["text.txt", "--softmax-file", "softmax.hdf5", "--vocab-path", "words.txt"],
            "model.tar.gz: expected official files beside softmax.hdf5",
        ),
    ],
    ids=str,
)
def test_bad_input_is_one_line(
    words: List[str], complaint: str, score: Run, tmp_path: Path
) -> None:
    (tmp_path / "empty.txt").touch()
    (tmp_path / "blank.txt").write_text(" \n\n")
    message = fails(lambda: score(*words))
    assert message.startswith("allennlp elmo-score: error: ") and complaint in message


def test_a_model_is_an_archive_of_a_language_model(
    allennlp: Allennlp, classifier_archive: Path, tmp_path: Path
) -> None:
    message = fails(lambda: allennlp("elmo-score", "none.tar.gz", TOUR))
    assert "none.tar.gz: there is no such archive" in message
    message = fails(lambda: allennlp("elmo-score", classifier_archive, TOUR))
    assert "expected an archive of the model 'elmo_scratch_bilm'" in message


@pytest.mark.exhaustive
def test_a_reader_that_has_read_enough_ends_the_program_quietly(
    bilm_archive: Path, tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the bank lent the money\n" * 5000, "utf-8")
    program = "import sys; from allennlp.__main__ import run; sys.argv[0] = 'allennlp'; run()"
    words = [sys.executable, "-c", program, "elmo-score", str(bilm_archive), str(text)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}, text=True
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        assert running.stdout.readline().startswith("sentence 0")
        running.stdout.close()
        errors = running.stderr.read()
    assert "Broken" not in errors and "Traceback" not in errors
