import csv
import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Type

import pytest
from allennlp import commands
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.tokenizers import WhitespaceTokenizer
from allennlp.interpret.attackers import Hotflip, InputReduction
from allennlp.interpret.saliency_interpreters import (
    IntegratedGradient,
    SaliencyInterpreter,
    SimpleGradient,
    SmoothGradient,
)
from allennlp.models import load_archive
from allennlp.modules.seq2vec_encoders import BagOfEmbeddingsEncoder
from allennlp.modules.text_field_embedders import BasicTextFieldEmbedder
from allennlp.modules.token_embedders import Embedding
from allennlp.predictors import Predictor

from elmo_scratch.data import AgNewsReader
from elmo_scratch.models import Classifier
from elmo_scratch.predictors import AgNewsPredictor
from tests import FIXTURES_ROOT

DEV = FIXTURES_ROOT / "news" / "dev.csv"
CLASSES = {"World", "Sports", "Business", "Sci/Tech"}

Answer = Dict[str, Any]


@pytest.fixture
def answers(
    classifier_archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., List[Answer]]:
    """Runs `allennlp predict` on a copy of the archive and reads what it wrote."""
    archive = shutil.copy(classifier_archive, tmp_path / "copy.tar.gz")
    # Other plugins have nothing to add, and allennlp-models would ask the network for corpora.
    monkeypatch.setattr(commands, "import_plugins", lambda: None)

    def run(input_file: Path, *options: str) -> List[Answer]:
        output_file = tmp_path / "answers.jsonl"
        words = [archive, input_file, "--output-file", output_file, "--silent", *options]
        monkeypatch.setattr(sys, "argv", ["allennlp", "predict", *map(str, words)])
        commands.main("allennlp")
        return [json.loads(line) for line in output_file.read_text().splitlines()]

    return run


@pytest.fixture(scope="module")
def predictor(classifier_archive: Path) -> Predictor:
    return Predictor.from_path(str(classifier_archive))


def assert_is_an_answer(answer: Answer) -> None:
    assert set(answer) == {"label", "probabilities"}
    assert set(answer["probabilities"]) == CLASSES
    assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-6)
    assert answer["label"] == max(answer["probabilities"], key=answer["probabilities"].get)


def word_counter(*, use_title: bool) -> AgNewsPredictor:
    """Says "Sports" where most words are "goal", and "World" otherwise."""
    vocab = Vocabulary()
    goal = vocab.add_token_to_namespace("goal")
    vocab.add_tokens_to_namespace(["World", "Sports"], "labels")
    embedding = Embedding(embedding_dim=1, num_embeddings=vocab.get_vocab_size())
    model = Classifier(
        vocab,
        text_field_embedder=BasicTextFieldEmbedder({"tokens": embedding}),
        seq2vec_encoder=BagOfEmbeddingsEncoder(1, averaged=True),
    )
    embedding.weight.data.fill_(-1.0)
    embedding.weight.data[goal] = 1.0
    model.output.weight.data[:, 0] = model.output.weight.new_tensor([0.0, 1.0])
    model.output.bias.data.zero_()
    return AgNewsPredictor(
        model.eval(), AgNewsReader(tokenizer=WhitespaceTokenizer(), use_title=use_title)
    )


def test_it_answers_with_a_class_and_the_probability_of_each() -> None:
    answer = word_counter(use_title=False).predict_json({"description": "goal goal goal keeper"})
    assert answer["label"] == "Sports"
    # (3 - 1) / 4 more for "Sports" than for "World": 1 / (1 + exp(-1/2))
    assert answer["probabilities"] == pytest.approx({"World": 0.377541, "Sports": 0.622459})


def test_a_title_counts_where_the_model_reads_titles() -> None:
    news = {"title": "keeper keeper keeper", "description": "goal"}
    assert word_counter(use_title=False).predict_json(news)["label"] == "Sports"
    assert word_counter(use_title=True).predict_json(news)["label"] == "World"


def test_a_title_may_be_missing() -> None:
    answer = word_counter(use_title=True).predict_json({"description": "goal"})
    assert answer["label"] == "Sports"


def test_several_texts_are_answered_in_their_order() -> None:
    texts = [{"description": text} for text in ("goal", "keeper keeper", "goal goal keeper")]
    answers = word_counter(use_title=False).predict_batch_json(texts)
    assert [answer["label"] for answer in answers] == ["Sports", "World", "Sports"]


@pytest.mark.parametrize(
    "news, keys", [({}, r"\[\]"), ({"title": "t", "text": "d"}, r"\['text', 'title'\]")]
)
def test_a_missing_description_is_an_error_that_names_the_keys(
    news: Dict[str, str], keys: str
) -> None:
    with pytest.raises(ConfigurationError, match=f'the key "description" .* the keys {keys}'):
        word_counter(use_title=True).predict_json(news)


def test_the_archive_of_a_classifier_finds_it_by_itself(predictor: Predictor) -> None:
    assert isinstance(predictor, AgNewsPredictor)
    assert_is_an_answer(predictor.predict_json({"description": "The striker scored twice."}))


def test_an_empty_text_gets_an_answer_beside_others(predictor: Predictor) -> None:
    texts = [{"description": text} for text in ("", "Oil prices rose again on Tuesday.")]
    for answer in predictor.predict_batch_json(texts):
        assert_is_an_answer(answer)


@pytest.mark.parametrize("text", ["Hi", "Goal!", ""])
def test_a_text_is_answered_alone_however_short(predictor: Predictor, text: str) -> None:
    assert_is_an_answer(predictor.predict_json({"description": text}))


@pytest.mark.parametrize(
    "news, key",
    [
        ({"description": None}, "description"),
        ({"description": 3}, "description"),
        ({"description": "Goal!", "title": ["Sport"]}, "title"),
    ],
)
def test_what_is_no_text_is_an_error(news: Dict[str, Any], key: str, predictor: Predictor) -> None:
    with pytest.raises(ConfigurationError, match=f"expected a text as the '{key}' of news, but go"):
        predictor.predict_json(news)
    assert_is_an_answer(predictor.predict_json({"description": "Goal!", "title": None}))


def test_a_backslash_is_a_line_break_as_in_the_published_files(predictor: Predictor) -> None:
    lines = predictor.predict_json({"description": "The striker\nscored.", "title": "A\ngoal"})
    assert (
        predictor.predict_json({"description": "The striker\\scored.", "title": "A\\goal"}) == lines
    )
    assert predictor.predict_json({"description": "The striker/scored."}) != lines


@pytest.mark.parametrize("news", [5, None, "description", ["description", 3]])
def test_what_is_no_object_is_an_error(news: Any, predictor: Predictor) -> None:
    with pytest.raises(ConfigurationError, match="expected a JSON object .* but got "):
        predictor.predict_json(news)


def test_the_command_answers_each_line_of_json(
    answers: Callable[..., List[Answer]], predictor: Predictor, tmp_path: Path
) -> None:
    texts = ["The striker scored twice.", "Élan – the new chip – is fast."]
    lines = [json.dumps({"description": text}) for text in texts]
    (tmp_path / "news.jsonl").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    found = answers(tmp_path / "news.jsonl")
    for text, answer in zip(texts, found, strict=True):
        assert_is_an_answer(answer)
        expected = predictor.predict_json({"description": text})
        assert answer["label"] == expected["label"]
        assert answer["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-6)


def test_the_command_answers_each_row_of_a_news_file(
    answers: Callable[..., List[Answer]], classifier_archive: Path
) -> None:
    found = answers(DEV, "--use-dataset-reader", "--batch-size", "7")
    with open(DEV, encoding="utf-8", newline="") as file:
        descriptions = [description for _, _, description in csv.reader(file)]
    assert len(found) == len(descriptions) == 80
    archive = load_archive(classifier_archive)
    alone = AgNewsPredictor(archive.model, archive.dataset_reader)
    for place in (0, 41, 79):
        expected = alone.predict_json({"description": descriptions[place]})
        assert found[place]["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-5)


def test_a_byte_order_mark_and_a_cut_emoji_are_no_error(
    answers: Callable[..., List[Answer]], tmp_path: Path
) -> None:
    news = tmp_path / "news.jsonl"
    lines = ['{"description": "They won."}', '{"description": "They won \\ud83d"}']
    news.write_text("\ufeff" + "\n".join(lines) + "\n", encoding="utf-8")
    for answer in (found := answers(news)):
        assert_is_an_answer(answer)
    assert len(found) == 2


def saliency(interpreter: SaliencyInterpreter, description: str) -> List[float]:
    """The shares of the words in what the model found."""
    found = interpreter.saliency_interpret_from_json({"description": description})
    return found["instance_1"]["grad_input_1"]


@pytest.mark.parametrize("kind", [SimpleGradient, IntegratedGradient, SmoothGradient])
def test_interpreters_weigh_the_words(kind: Type[SaliencyInterpreter]) -> None:
    # The mean over words of the same length gives each the same share, whichever they are.
    shares = saliency(kind(word_counter(use_title=False)), "goal keeper goal keeper")
    assert shares == pytest.approx([0.25] * 4, abs=0.02)


def test_interpreters_see_through_a_frozen_bilm(predictor: Predictor) -> None:
    shares = saliency(SimpleGradient(predictor), "The striker scored twice.")
    assert len(shares) == 5 and min(shares) > 0
    assert sum(shares) == pytest.approx(1.0)


def test_attackers_reduce_and_flip_the_text() -> None:
    predictor = word_counter(use_title=False)
    news = {"description": "goal goal keeper"}
    reduced = InputReduction(predictor).attack_from_json(news, input_field_to_attack="text")
    assert reduced["final"] == [["goal"]]
    flip = Hotflip(predictor)
    flip.initialize()
    (flipped,) = flip.attack_from_json(news, input_field_to_attack="text")["final"]
    assert len(flipped) == 3


def test_a_text_can_be_asked_about_without_json() -> None:
    predictor = word_counter(use_title=True)
    assert predictor.predict("goal")["label"] == "Sports"
    assert predictor.predict("goal", title="keeper keeper")["label"] == "World"


@pytest.mark.parametrize(
    "second, told, size",
    [
        (b'{"description": 3}', "expected a text as the 'description' of news, but got 3", 1),
        (b'{"description": ', "expected a JSON object, but got", 4),
        (b'{"description": "\xff"}', "expected UTF-8 text, but byte 18 of the line is 0xff", 1),
        (b"5", "expected a JSON object with the key", 4),
    ],
)
def test_a_bad_line_is_named(
    second: bytes,
    told: str,
    size: int,
    answers: Callable[..., List[Answer]],
    tmp_path: Path,
) -> None:
    lines = [b'{"description": "They won."}', b"", second, b'{"description": "They lost."}']
    asked = tmp_path / "news.jsonl"
    asked.write_bytes(b"\n".join(lines))
    with pytest.raises(ConfigurationError) as error:
        answers(asked, "--batch-size", str(size))
    assert f"error: {asked}, line 3: {told}" in str(error.value)


def test_a_bad_line_of_the_standard_input_is_named(
    answers: Callable[..., List[Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = io.BytesIO(b'{"description": "They won."}\n5\n')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(lines))
    with pytest.raises(ConfigurationError, match="standard input, line 2: expected a JSON object"):
        answers(Path("-"))
