"""
spaCy's trained models, where AllenNLP asks for one that is not installed. `en_core_web_sm` is the
default of its tokenizer, of 11 readers and of 8 predictors, and most of them use only the words.
"""

import functools
import logging
import os
import re
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Callable, Optional

from elmo_scratch_compat.strangers import is_config_of_others

logger = logging.getLogger(__name__)

SPACYS_OWN = re.compile("([a-z]{2,3})_core_(web|news)_(sm|md|lg|trf)")
"""Names of models that split texts by the rules of their language, as far as spaCy has rules."""

TAGS = ("lemma_", "pos_", "tag_", "dep_", "ent_type_")
"""What AllenNLP's tokens have from a model."""

DEPENDENCIES = "allennlp_models.structured_prediction.predictors.biaffine_dependency_parser"

FOR_WORDS = 'For words alone the tokenizer "spacy_blank" needs no model.'
FOR_TAGS = (
    "`allennlp predict --use-dataset-reader` needs none: its input has the format of the training "
    "data, tags and verbs included."
)


def name_what_is_missing(util: Any) -> None:
    """
    A model that is missing is downloaded by AllenNLP, and installed by pip, in the middle of
    whatever asked for it. Without a network that is a long traceback. Here one error says how to
    install it.
    """
    original = util.get_spacy_model

    @functools.wraps(original)
    def get_spacy_model(spacy_model_name: str, *args: Any, **kwargs: Any) -> Any:
        if not _is_installed(spacy_model_name):
            raise _error("tags, parses and entities", spacy_model_name, FOR_WORDS)
        return original(spacy_model_name, *args, **kwargs)

    util.get_spacy_model = get_spacy_model


def split_by_rules(module: Any) -> None:
    """
    Words and the ends of sentences need no trained model: spaCy's rules find the words that its
    model would find, and a sentence ends after a mark such as a full stop. So no reader and no
    predictor fails for want of a model before it asks for more than that.
    """
    load = module.get_spacy_model

    @functools.wraps(load)
    def get_spacy_model(
        spacy_model_name: str, pos_tags: bool = True, parse: bool = False, ner: bool = False
    ) -> Any:
        rules = None
        if not ner and not _is_installed(spacy_model_name):
            rules = _rules(spacy_model_name, parse)
        return rules or load(spacy_model_name, pos_tags, parse, ner)

    module.get_spacy_model = get_spacy_model


def tokenize_by_rules(spacy_tokenizer: Any) -> None:
    """
    AllenNLP's tokenizer asks for tags unless it is told not to, and hardly anybody reads them. By
    rules there are none; who reads one of such a token gets an error, not the empty text that
    spaCy has for it, by which a sentence would seem to have no verbs.
    """
    split_by_rules(spacy_tokenizer)
    untagged = _untagged_token(spacy_tokenizer.Token)
    untagged.__module__ = spacy_tokenizer.__name__
    spacy_tokenizer.UntaggedToken = untagged  # pickle finds it there
    tokenizer = spacy_tokenizer.SpacyTokenizer
    original, sanitize = tokenizer.__init__, tokenizer._sanitize

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        absent = _absent_model(self.spacy)
        if absent and (self._parse or self._keep_spacy_tokens):
            raise _error("parses and spaCy's own tokens", absent, FOR_WORDS)

    @functools.wraps(sanitize)
    def _sanitize(self: Any, tokens: Any) -> Any:
        absent = _absent_model(self.spacy)
        sanitized = sanitize(self, tokens)
        if absent is None or self._keep_spacy_tokens:
            return sanitized
        return [
            token if token.idx_end is None else untagged(token.text, token.idx, absent)
            for token in sanitized
        ]

    tokenizer.__init__, tokenizer._sanitize = __init__, _sanitize


def resolve_with_tags_only(coref: Any) -> None:
    """
    Clusters need words and sentences; `coref_resolved` also looks for possessive pronouns by their
    tags, and would write "Ann" in the place of "her" where it ought to write "Ann's".
    """
    split_by_rules(coref)
    predictor = coref.CorefPredictor
    predictor.coref_resolved = _with_tags(predictor.coref_resolved, lambda self: self._spacy)


def find_verbs_with_tags_only(srl: Any) -> None:
    """
    The predictor finds verbs by their tags. Of words that come as a list it asks spaCy itself, not
    AllenNLP's tokenizer: without tags none of them would be a verb.
    """
    predictor = srl.SemanticRoleLabelerPredictor
    predictor.predict_tokenized = _with_tags(
        predictor.predict_tokenized, lambda self: self._tokenizer.spacy
    )


def parse_without_tags(constituency_parser: Any) -> None:
    """
    The predictors of both parsers read tags, even where the dataset reader leaves them out, or
    where the model has no vectors for them.

    That of dependencies is helped when its neighbour has run: it may be the one that imports
    PyTorch, when there is no hook yet.
    """
    biaffine = import_module(DEPENDENCIES).BiaffineDependencyParserPredictor
    _allow_untagged(biaffine, lambda self: self._model._pos_tag_embedding is None)
    constituents = constituency_parser.ConstituencyParserPredictor
    _allow_untagged(constituents, lambda self: not self._dataset_reader._use_pos_tags)


def _allow_untagged(predictor: Any, needs_no_tags: Callable[[Any], bool]) -> None:
    """Lets a predictor have tokens with empty tags where its model does not look at them."""
    original = predictor.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if _absent_model(self._tokenizer.spacy) and needs_no_tags(self):
            self._tokenizer._keep_spacy_tokens = True

    predictor.__init__ = __init__


def _with_tags(method: Any, pipeline_of: Callable[[Any], Any]) -> Any:
    """A method of a predictor, as an error where its spaCy finds no tags."""

    @functools.wraps(method)
    def method_with_tags(self: Any, *args: Any, **kwargs: Any) -> Any:
        absent = _absent_model(pipeline_of(self))
        if absent:
            raise _error("tags", absent, FOR_TAGS)
        return method(self, *args, **kwargs)

    return method_with_tags


def _untagged_token(token: Any) -> Any:
    """The class of tokens that were made by rules."""

    class UntaggedToken(token):
        """A token without tags: to read one of them is an error."""

        __slots__ = ["absent_model"]

        def __init__(self, text: str, idx: int, absent_model: str) -> None:
            super().__init__(text, idx, idx + len(text))
            for name in TAGS:
                delattr(self, name)
            self.absent_model = absent_model

        def __getattr__(self, name: str) -> Any:
            if name in TAGS:
                raise _error(f"the `{name}` of {self.text!r}", self.absent_model, FOR_TAGS)
            raise AttributeError(name)

        def __eq__(self, other: Any) -> Any:
            is_same_class = isinstance(other, UntaggedToken)
            return self.__reduce__() == other.__reduce__() if is_same_class else NotImplemented

        def __reduce__(self) -> Any:
            return UntaggedToken, (self.text, self.idx, self.absent_model)

    UntaggedToken.__qualname__ = UntaggedToken.__name__
    return UntaggedToken


def _is_installed(name: str) -> bool:
    """
    Whether spaCy would find the model. An archive's config may name an installed package with the
    `meta.json` of a model: spaCy would import any package, and read any folder.
    """
    if is_config_of_others():
        spec = find_spec(name) if name.isidentifier() else None
        folders = [] if spec is None else spec.submodule_search_locations or []
        return any(os.path.isfile(os.path.join(folder, "meta.json")) for folder in folders)
    from spacy.util import is_package

    return is_package(name) or os.path.exists(name)


@functools.lru_cache(maxsize=None)
def _rules(name: str, with_sentences: bool) -> Optional[Any]:
    """A pipeline without a model that finds the same words, or `None` if there is none."""
    from spacy.tokenizer import Tokenizer
    from spacy.util import get_lang_class

    match = SPACYS_OWN.fullmatch(name)
    pipeline: Any
    try:
        pipeline = get_lang_class(match[1])() if match else None
    except ImportError:
        return None
    # Other tokenizers, as the Chinese one, have settings of the model's.
    if pipeline is None or type(pipeline.tokenizer) is not Tokenizer:
        return None
    pipeline.absent_model = name
    ends = ""
    if with_sentences:
        pipeline.add_pipe("sentencizer")
        ends = " Sentences end after marks such as a full stop, where the model would parse them."
    logger.warning(
        "spaCy's model %r is not installed. Words are split by spaCy's rules for %r, as the model "
        "splits them.%s",
        *(name, pipeline.lang, ends),
    )
    return pipeline


def _absent_model(pipeline: Any) -> Optional[str]:
    """The name of the model that was asked for, if rules stand in its place."""
    return getattr(pipeline, "absent_model", None)


def _error(need: str, name: str, way_out: str) -> Exception:
    from allennlp.common.checks import ConfigurationError

    return ConfigurationError(
        f"spaCy's model {name!r} is needed for {need}, but it is not installed. Install it, by "
        f"`python -m spacy download {name}` or its wheel by pip, or name one that is installed as "
        f"`language`. {way_out}"
    )
