import json
import shutil
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from allennlp import commands
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model, load_archive
from allennlp.predictors import Predictor

from elmo_scratch import SentenceScorer
from elmo_scratch.models.pretrained import StartedLanguageModel
from elmo_scratch.predictors import ScorePredictor


@pytest.fixture(scope="module")
def predictor(bilm_archive: Path) -> Predictor:
    return Predictor.from_path(str(bilm_archive), import_plugins=False, top=2)


Answer = Dict[str, Any]


@pytest.fixture
def answers(
    bilm_archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., List[Answer]]:
    """Runs `allennlp predict` on a copy of the archive and reads what it wrote."""
    archive = shutil.copy(bilm_archive, tmp_path / "copy.tar.gz")
    monkeypatch.setattr(commands, "import_plugins", lambda: None)

    def run(input_file: Path, *options: str) -> List[Answer]:
        output_file = tmp_path / "answers.jsonl"
        words = [archive, input_file, "--output-file", output_file, "--silent", *options]
        monkeypatch.setattr(sys, "argv", ["allennlp", "predict", *map(str, words)])
        commands.main("allennlp")
        return [json.loads(line) for line in output_file.read_text().splitlines()]

    return run


def test_predict_answers_as_elmo_score_does(
    answers: Callable[..., List[Answer]], bilm_archive: Path, tmp_path: Path
) -> None:
    asked = [{"sentence": "The bank's rates rose."}, {"words": ["The", "river"]}]
    (tmp_path / "asked.jsonl").write_text("\n".join(map(json.dumps, asked)), "utf-8")
    options = ["--batch-size", "2", "--predictor-args", '{"top": 3}']
    found = answers(tmp_path / "asked.jsonl", *options)
    texts = [["The", "bank", "'s", "rates", "rose", "."], ["The", "river"]]
    scores = SentenceScorer.from_archive(bilm_archive).score(texts, top=3)
    for answer, score in zip(found, scores, strict=True):
        assert answer["words"] == score.words and answer["unknown"] == score.unknown
        assert answer["left_to_right"] == pytest.approx(score.left_to_right, abs=1e-5)
        assert answer["perplexity"] == pytest.approx(score.perplexities()["perplexity"])
        assert [[word for word, _ in place] for place in answer["likely"]] == [
            [word for word, _ in place] for place in score.likely
        ]


def test_each_line_of_a_text_has_an_answer_in_batches_of_any_size(
    answers: Callable[..., List[Answer]], tmp_path: Path
) -> None:
    sentences = [["The", "bank", "rose", "."], ["rates"], ["The", "river"]]
    text = tmp_path / "text.txt"
    text.write_text("".join(" ".join(words) + "\n" for words in sentences), "utf-8")
    alone = answers(text, "--use-dataset-reader", "--batch-size", "1")
    together = answers(text, "--use-dataset-reader", "--batch-size", "8")
    for words, one, other in zip(sentences, alone, together, strict=True):
        assert one["words"] == other["words"] == words
        assert one["perplexity"] > 1 and other["perplexity"] > 1


def test_models_that_start_from_another_are_scored_by_default_too() -> None:
    for name in ("", "_from_archive", "_from_official"):
        kind, _ = Model.resolve_class_name(f"elmo_scratch_bilm{name}")
        assert kind.default_predictor == "elmo_scratch_score"
    assert StartedLanguageModel.default_predictor == "elmo_scratch_score"


@pytest.mark.parametrize(
    "asked", [{}, {"sentence": " "}, {"words": []}, {"words": "the bank"}, {"sentence": 3}]
)
def test_what_is_no_sentence_is_an_error(asked: Dict[str, Any], predictor: Predictor) -> None:
    with pytest.raises(ConfigurationError, match="expected a JSON object with a text"):
        predictor.predict_json(asked)


def test_only_a_language_model_scores(bilm_archive: Path, classifier_archive: Path) -> None:
    classifier = load_archive(classifier_archive)
    with pytest.raises(ConfigurationError, match="expected a language model"):
        ScorePredictor(classifier.model, classifier.dataset_reader)
    bilm = load_archive(bilm_archive)
    with pytest.raises(ConfigurationError, match="expected a `top` of 0 or more, but got -1"):
        ScorePredictor(bilm.model, bilm.dataset_reader, top=-1)
