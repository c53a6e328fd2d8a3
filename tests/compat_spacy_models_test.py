"""What asks for an absent model of spaCy's, with the help of `elmo_scratch_compat`."""

import json
import pickle
from pathlib import Path
from typing import Any, Callable, List

import allennlp.common.util
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import get_spacy_model
from allennlp.data import Vocabulary
from allennlp.data.token_indexers import SingleIdTokenIndexer
from allennlp.data.tokenizers import SentenceSplitter, SpacyTokenizer
from allennlp.data.tokenizers.sentence_splitter import SpacySentenceSplitter
from allennlp.data.tokenizers.token_class import show_token
from allennlp.predictors import Predictor, SentenceTaggerPredictor
from allennlp_models.coref import ConllCorefReader, CorefPredictor
from allennlp_models.structured_prediction import (
    BiaffineDependencyParserPredictor,
    ConstituencyParserPredictor,
    OpenIePredictor,
    PennTreeBankConstituencySpanDatasetReader,
    SemanticRoleLabelerPredictor,
    SrlReader,
    UniversalDependenciesDatasetReader,
)
from allennlp_models.tagging import Conll2003DatasetReader
from spacy.lang.en import English

from elmo_scratch_compat import spacy_models

SENTENCE = {"sentence": "It doesn't rain."}
WORDS = ["It", "does", "n't", "rain", "."]


@pytest.fixture
def no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where none is installed, and with a network that must not be used."""

    def download(*names: str) -> None:
        raise AssertionError(f"{names} would be downloaded")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spacy.util.is_package", lambda name: False)
    monkeypatch.setattr("allennlp.common.util.spacy_download", download)
    spacy_models._rules.cache_clear()


@pytest.fixture
def installed_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an installed one. For it each word is a verb, which no rule would say."""
    name = "en_core_web_nothing_but_verbs"
    pipeline = English(meta={"name": name[3:], "version": "1.0.0"})
    ruler: Any = pipeline.add_pipe("attribute_ruler")
    ruler.add([[{}]], {"POS": "VERB", "TAG": "VB"})
    (tmp_path / name).mkdir()
    pipeline.to_disk(tmp_path / name / f"{name}-1.0.0")
    (tmp_path / name / "meta.json").write_text(json.dumps(pipeline.meta))
    (tmp_path / name / "__init__.py").write_text(
        "from spacy.util import load_model_from_init_py\n"
        "def load(**settings):\n"
        "    return load_model_from_init_py(__file__, **settings)\n"
    )
    metadata = tmp_path / f"{name}-1.0.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(allennlp.common.util, "LOADED_SPACY_MODELS", {})
    return name


def words_of(tokens: List[Any]) -> List[str]:
    return [token.text for token in tokens]


def said(caplog: pytest.LogCaptureFixture) -> List[str]:
    """The warnings of the help."""
    name = spacy_models.__name__
    return [record.getMessage() for record in caplog.records if record.name == name]


def model(**settings: Any) -> Any:
    """What a predictor needs of one before it has an instance."""
    module: Any = torch.nn.Linear(1, 1)
    for name, setting in settings.items():
        setattr(module, name, setting)
    return module


def test_words_are_split_without_the_model_and_that_is_said_once(
    no_models: None, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        tokens = SpacyTokenizer(end_tokens=["@@NULL@@"]).tokenize(SENTENCE["sentence"])
        assert words_of(tokens) == [*WORDS, "@@NULL@@"]
        assert [token.idx for token in tokens] == [0, 3, 7, 11, 15, -1]
        assert [token.idx_end for token in tokens] == [2, 7, 10, 15, 16, None]
    (warning,) = said(caplog)
    assert "split by spaCy's rules for 'en', as the model splits them" in warning


def test_other_languages_of_spacys_models_have_their_rules(no_models: None) -> None:
    assert words_of(SpacyTokenizer("de_core_news_sm").tokenize("z.B. so")) == ["z.B.", "so"]


def test_sentences_are_split_without_the_model(
    no_models: None, caplog: pytest.LogCaptureFixture
) -> None:
    splitter = SentenceSplitter.by_name("spacy")()
    assert splitter.split_sentences("It is. Is it? So.") == ["It is.", "Is it?", "So."]
    (warning,) = said(caplog)
    assert "Sentences end after marks such as a full stop" in warning
    assert SpacySentenceSplitter(rule_based=True).split_sentences("So. So.") == ["So.", "So."]


@pytest.mark.parametrize("name", spacy_models.TAGS)
def test_to_read_a_tag_of_such_a_word_is_an_error(name: str, no_models: None) -> None:
    (word,) = SpacyTokenizer().tokenize("rains")
    indexer = SingleIdTokenIndexer(namespace=None, feature_name=name, default_value="")
    needs = f"'en_core_web_sm' is needed for the `{name}` of 'rains', .*spacy download en_core_web"
    with pytest.raises(ConfigurationError, match=needs):
        getattr(word, name)
    with pytest.raises(ConfigurationError, match=needs):
        indexer.tokens_to_indices([word], Vocabulary())
    with pytest.raises(ConfigurationError, match="--use-dataset-reader` needs none"):
        show_token(word)


def test_such_words_are_compared_and_pickled_as_others(no_models: None) -> None:
    words = SpacyTokenizer().tokenize("so so")
    again = pickle.loads(pickle.dumps(words))
    assert again == words and words[0] != words[1]
    with pytest.raises(ConfigurationError, match="needed for the `tag_` of 'so'"):
        again[0].tag_.lower()
    with pytest.raises(AttributeError, match="lexeme"):
        again[0].lexeme()


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        (lambda: SpacyTokenizer(parse=True), "en_core_web_sm"),
        (lambda: SpacyTokenizer(ner=True), "en_core_web_sm"),
        (lambda: SpacyTokenizer(keep_spacy_tokens=True), "en_core_web_sm"),
        (lambda: get_spacy_model("en_core_web_sm"), "en_core_web_sm"),
        # These split texts by settings of their own.
        (lambda: SpacyTokenizer("zh_core_web_sm"), "zh_core_web_sm"),
        (lambda: SpacyTokenizer("ko_core_news_sm"), "ko_core_news_sm"),
        (lambda: SpacyTokenizer("en_core_sci_sm"), "en_core_sci_sm"),
    ],
)
def test_what_rules_cannot_do_is_an_error_before_anything_is_downloaded(
    ask: Callable[[], Any], name: str, no_models: None
) -> None:
    with pytest.raises(ConfigurationError, match=f"model '{name}' .*tokenizer \"spacy_blank\""):
        ask()


def test_an_installed_model_is_used_as_before(
    installed_model: str, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = SpacyTokenizer(installed_model).tokenize(SENTENCE["sentence"])
    assert [(token.text, token.pos_) for token in tokens] == [(word, "VERB") for word in WORDS]
    reader = SrlReader()
    predictor = SemanticRoleLabelerPredictor(model(), reader, installed_model)
    assert len(predictor._sentence_to_srl_instances(SENTENCE)) == 5
    dependencies = BiaffineDependencyParserPredictor(
        model(_pos_tag_embedding=None), UniversalDependenciesDatasetReader(), installed_model
    )
    assert dependencies._json_to_instance(SENTENCE)["pos_tags"].labels == ["VERB"] * 5
    assert said(caplog) == []


def test_a_tagger_gets_words(no_models: None) -> None:
    predictor = SentenceTaggerPredictor(model(), Conll2003DatasetReader())
    assert words_of(predictor._json_to_instance(SENTENCE)["tokens"].tokens) == WORDS


def test_coreference_gets_words_and_sentences_but_no_possessive_pronouns(no_models: None) -> None:
    predictor = CorefPredictor(model(), ConllCorefReader(max_span_width=2))
    instance = predictor._json_to_instance({"document": "It rains. So what?"})
    assert words_of(instance["text"].tokens) == ["It", "rains", ".", "So", "what", "?"]
    spans = {(span.span_start, span.span_end) for span in instance["spans"]}
    assert (1, 2) in spans and (2, 3) not in spans  # no span is part of two sentences
    with pytest.raises(ConfigurationError, match="'en_core_web_sm' is needed for tags"):
        predictor.coref_resolved("Ann sells her car.")


@pytest.mark.parametrize("kind", [SemanticRoleLabelerPredictor, OpenIePredictor])
def test_verbs_are_found_by_tags_only(kind: Any, no_models: None) -> None:
    predictor: Predictor = kind(model(), SrlReader())
    with pytest.raises(ConfigurationError, match="needed for the `pos_` of 'It'"):
        predictor.predict_json(SENTENCE)


def test_verbs_of_a_list_of_words_are_found_by_tags_only(no_models: None) -> None:
    predictor = SemanticRoleLabelerPredictor(model(), SrlReader())
    with pytest.raises(ConfigurationError, match="'en_core_web_sm' is needed for tags"):
        predictor.predict_tokenized(WORDS)


def test_a_parser_of_constituents_gets_tags_where_its_reader_wants_them(no_models: None) -> None:
    reader = PennTreeBankConstituencySpanDatasetReader()
    with pytest.raises(ConfigurationError, match="needed for the `tag_` of 'It'"):
        ConstituencyParserPredictor(model(), reader)._json_to_instance(SENTENCE)
    reader = PennTreeBankConstituencySpanDatasetReader(use_pos_tags=False)
    instance = ConstituencyParserPredictor(model(), reader)._json_to_instance(SENTENCE)
    assert instance["metadata"].metadata == {"tokens": WORDS}


def test_a_parser_of_dependencies_gets_tags_where_it_embeds_them(no_models: None) -> None:
    reader = UniversalDependenciesDatasetReader()
    embedding = torch.nn.Embedding(1, 1)
    with pytest.raises(ConfigurationError, match="needed for the `pos_` of 'It'"):
        predictor = BiaffineDependencyParserPredictor(model(_pos_tag_embedding=embedding), reader)
        predictor._json_to_instance(SENTENCE)
    predictor = BiaffineDependencyParserPredictor(model(_pos_tag_embedding=None), reader)
    instance = predictor._json_to_instance(SENTENCE)
    assert instance["metadata"].metadata == {"words": WORDS, "pos": [""] * 5}
