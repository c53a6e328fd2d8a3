"""Predictors, JSON in and JSON out: the class of a piece of news, the scores of a sentence."""

from typing import Any, Dict, List

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import LabelField
from allennlp.data.tokenizers import WhitespaceTokenizer
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_scratch.data.lines import BYTE_ORDER_MARK, line_tokens
from elmo_scratch.data.readers import restored
from elmo_scratch.data.spelling import are_words
from elmo_scratch.interop import WordList
from elmo_scratch.modules import BiLm, OutputSoftmax
from elmo_scratch.scoring.scores import sentence_record
from elmo_scratch.scoring.sentence_scorer import ReaderIndexer, SentenceScorer


@Predictor.register("ag_news")
class AgNewsPredictor(Predictor):
    """
    Classifies `{"description": "..."}`, with a `"title"` where the model reads titles. The answer
    holds `label` and `probabilities`. Texts may be those of the published files, which have a
    backslash for a line break. AllenNLP's interpreters and attackers work with it; the field that
    these change is `text`.

    Registered as a `Predictor` with name "ag_news".
    """

    def load_line(self, line: str) -> JsonDict:
        # Some editors begin a file with a byte order mark.
        found: JsonDict = super().load_line(line.removeprefix(BYTE_ORDER_MARK))
        return found

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        is_object = isinstance(json_dict, dict)
        if not is_object or "description" not in json_dict:
            found = f"it has the keys {sorted(json_dict)}" if is_object else f"got {json_dict!r}"
            raise ConfigurationError(
                'expected a JSON object with the key "description" (and optionally "title"), but '
                + found
            )
        description, title = json_dict["description"], json_dict.get("title") or ""
        for key, text in (("description", description), ("title", title)):
            if not isinstance(text, str):
                raise ConfigurationError(
                    f"expected a text as the {key!r} of news, but got {text!r}"
                )
        return self._dataset_reader.text_to_instance(  # type: ignore[call-arg]
            restored(description), title=restored(title)
        )

    def predict(self, description: str, title: str = "") -> JsonDict:
        """The answer for a piece of news."""
        return self.predict_json({"description": description, "title": title})

    def predictions_to_labeled_instances(
        self, instance: Instance, outputs: Dict[str, Any]
    ) -> List[Instance]:
        """The instance with the class that the model found, for interpreters and attackers."""
        labeled = instance.duplicate()
        # A number, since the copy of an instance with ids gets no others.
        label = self._model.vocab.get_token_index(outputs["label"], "labels")
        labeled.add_field("label", LabelField(label, skip_indexing=True))
        return [labeled]


@Predictor.register("elmo_scratch_score")
class ScorePredictor(Predictor):
    """
    Scores `{"sentence": "..."}`, which the tokenizer of the archive's reader cuts, or
    `{"words": ["...", ...]}`. The answer is a line of `allennlp elmo-score --format jsonl`, with
    the keys of `SentenceScore` and the perplexities of the sentence. Each batch of sentences is
    read as a text of its own.

    Registered as a `Predictor` with name "elmo_scratch_score", the default of language models.

    # Parameters

    model : `Model`
        A language model "elmo_scratch_bilm".
    dataset_reader : `DatasetReader`
        Its reader.
    top : `int`, optional (default = `0`)
        How many likely words to list for each place (`--predictor-args '{"top": 5}'`).

    # Raises

    ConfigurationError
        If the model is no language model of this package, or `top` is below 0.
    """

    def __init__(
        self, model: Model, dataset_reader: DatasetReader, top: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(model, dataset_reader, **kwargs)
        bilm, softmax, words = (getattr(model, name, None) for name in ("bilm", "softmax", "words"))
        if not (
            isinstance(bilm, BiLm)
            and isinstance(softmax, OutputSoftmax)
            and isinstance(words, WordList)
        ):
            raise ConfigurationError(
                "expected a language model `elmo_scratch_bilm` to score sentences with, but got "
                f"{type(model).__name__}"
            )
        if top < 0:
            raise ConfigurationError(f"expected a `top` of 0 or more, but got {top}")
        self._top = top
        self._scorer = SentenceScorer(
            bilm,
            softmax,
            words,
            ReaderIndexer(dataset_reader, model.vocab, bilm.token_encoder),
            cuda_device=self.cuda_device,
        )

    def load_line(self, line: str) -> JsonDict:
        # Some editors begin a file with a byte order mark.
        found: JsonDict = super().load_line(line.removeprefix(BYTE_ORDER_MARK))
        return found

    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    def predict_batch_instance(self, instances: List[Instance]) -> List[JsonDict]:
        sentences = [instance["sentence"].tokens for instance in instances]  # type: ignore[attr-defined]
        records = [sentence_record(score) for score in self._scorer.score(sentences, self._top)]
        for record in records:
            del record["number"]
        return records

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        return self._dataset_reader.text_to_instance(self._tokens_of(json_dict))

    def _tokens_of(self, json_dict: JsonDict) -> List[Token]:
        """The tokens of the sentence; raises `ConfigurationError` if there are none."""
        tokens: List[Token] = []
        if isinstance(json_dict, dict):
            sentence, words = json_dict.get("sentence"), json_dict.get("words", "")
            if are_words(words):
                tokens = [Token(word) for word in words]
            elif isinstance(sentence, str):
                tokenizer = getattr(self._dataset_reader, "tokenizer", None)
                tokens = line_tokens(tokenizer or WhitespaceTokenizer(), sentence)
        if not tokens:
            raise ConfigurationError(
                'expected a JSON object with a text that is not blank, {"sentence": "..."}, or its '
                f'words, {{"words": ["...", "..."]}}, but got {json_dict!r}'
            )
        return tokens
