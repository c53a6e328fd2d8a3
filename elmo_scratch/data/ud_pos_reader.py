"""Reads words and their parts of speech from a treebank of Universal Dependencies, for a tagger."""

from os import PathLike
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Union

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import Field, MetadataField, SequenceLabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenIndexer
from allennlp.data.tokenizers import Token

from elmo_scratch.data.lines import text_lines
from elmo_scratch.data.sentence_forms import treebank_sentences

TAG_COLUMNS = {"upos": 3, "xpos": 4}
"""Where the universal and the language's own parts of speech stand."""


class TaggedSentence(NamedTuple):
    """The words of a sentence and the tag of each."""

    words: List[str]
    tags: List[str]


def tagged_sentences(path: Union[str, PathLike], tags: str = "upos") -> Iterator[TaggedSentence]:
    """
    Yields the sentences of a CoNLL-U file. `tags` is "upos" or "xpos".

    The words, which have a tag each, are those of `treebank_sentences`.

    # Raises

    ConfigurationError
        If `text_lines` or `treebank_sentences` does, or a word has no tag; the message names the
        line.
    """
    column = TAG_COLUMNS[tags]
    for words in treebank_sentences(text_lines(path), str(path)):
        for word in words:
            if word.columns[column] in ("", "_"):
                raise ConfigurationError(
                    f"{path}, line {word.line}: expected a tag in column {column + 1} "
                    f"({tags.upper()}), but found {word.columns[column]!r}. Where a treebank has "
                    'tags in the other column only, use `tags: "'
                    f'{"xpos" if tags == "upos" else "upos"}"`.'
                )
        yield TaggedSentence(
            [word.form for word in words], [word.columns[column] for word in words]
        )


@DatasetReader.register("ud_pos")
class UdPosReader(DatasetReader):
    """
    Reads a treebank in CoNLL-U (see `tagged_sentences`) into instances with a `TextField` "tokens",
    a `SequenceLabelField` "tags", whose namespace is "labels", and the "words" in "metadata": what
    AllenNLP's `simple_tagger` and `crf_tagger` take, and their predictor gives.

    Registered as a `DatasetReader` with name "ud_pos".

    # Parameters

    token_indexers : `Dict[str, TokenIndexer]`, optional (default = `{"tokens": single_id}`)
        Turn tokens into ids.
    tags : `str`, optional (default = `"upos"`)
        `"upos"`, the universal parts of speech, or `"xpos"`, those of the language.

    # Raises

    ConfigurationError
        If `tags` is neither.
    """

    def __init__(
        self,
        *,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        tags: str = "upos",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs
        )
        if tags not in TAG_COLUMNS:
            raise ConfigurationError(f'expected `tags` "upos" or "xpos", but got {tags!r}')
        self._token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}
        self._tags = tags

    def _read(self, file_path: Union[str, PathLike]) -> Iterable[Instance]:
        for sentence in self.shard_iterable(tagged_sentences(file_path, self._tags)):
            yield self.text_to_instance([Token(word) for word in sentence.words], sentence.tags)

    def text_to_instance(self, tokens: List[Token], tags: Optional[List[str]] = None) -> Instance:
        """
        Makes an instance of a sentence.

        # Parameters

        tokens : `List[Token]`
            Its words.
        tags : `List[str]`, optional (default = `None`)
            The tag of each, if they are known.
        """
        text = TextField(tokens)
        words = MetadataField({"words": [token.text for token in tokens]})
        fields: Dict[str, Field] = {"tokens": text, "metadata": words}
        if tags is not None:
            fields["tags"] = SequenceLabelField(tags, text, label_namespace="labels")
        return Instance(fields)

    def apply_token_indexers(self, instance: Instance) -> None:
        """Gives the text its indexers, in the process that needs them."""
        instance["tokens"].token_indexers = self._token_indexers  # type: ignore[attr-defined]
