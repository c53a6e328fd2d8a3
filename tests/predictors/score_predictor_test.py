import json
import shutil
import sys
from pathlib import Path
from typing import Any, Dict

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


def test_predict_answers_as_elmo_score_does(
    bilm_archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = shutil.copy(bilm_archive, tmp_path / "copy.tar.gz")
    monkeypatch.setattr(commands, "import_plugins", lambda: None)
    asked = [{"sentence": "The bank's rates rose."}, {"words": ["The", "river"]}]
    (tmp_path / "asked.jsonl").write_text("\n".join(map(json.dumps, asked)), "utf-8")
    words = ["predict", archive, tmp_path / "asked.jsonl", "--output-file", tmp_path / "answers"]
    words += ["--silent", "--batch-size", "2", "--predictor-args", '{"top": 3}']
    monkeypatch.setattr(sys, "argv", ["allennlp", *map(str, words)])
    commands.main("allennlp")
    answers = [json.loads(line) for line in (tmp_path / "answers").read_text().splitlines()]
    texts = [["The", "bank", "'s", "rates", "rose", "."], ["The", "river"]]
    scores = SentenceScorer.from_archive(bilm_archive).score(texts, top=3)
    for answer, score in zip(answers, scores, strict=True):
        assert answer["words"] == score.words and answer["unknown"] == score.unknown
        assert answer["left_to_right"] == pytest.approx(score.left_to_right, abs=1e-5)
        assert answer["perplexity"] == pytest.approx(score.perplexities()["perplexity"])
        assert [[word for word, _ in place] for place in answer["likely"]] == [
            [word for word, _ in place] for place in score.likely
        ]


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
