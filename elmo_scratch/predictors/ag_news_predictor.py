"""A predictor of the class of a piece of news."""

from typing import Any, Dict, List

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import JsonDict
from allennlp.data import Instance
from allennlp.data.fields import LabelField
from allennlp.predictors import Predictor

from elmo_scratch.data.ag_news_reader import restored
from elmo_scratch.data.lines import BYTE_ORDER_MARK


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
