"""Reads words and their parts of speech from a treebank of Universal Dependencies, for a tagger."""

from os import PathLike
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Union

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import Field, MetadataField, SequenceLabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenIndexer
from allennlp.data.tokenizers import Token

from elmo_scratch.data.lines import text_lines

NUM_COLUMNS = 10
"""A word in CoNLL-U has its number, form, lemma, UPOS, XPOS, features, head, relation, and two
more columns."""

TAG_COLUMNS = {"upos": 3, "xpos": 4}
"""Where the universal and the language's own parts of speech stand."""


class TaggedSentence(NamedTuple):
    """The words of a sentence and the tag of each."""

    words: List[str]
    tags: List[str]


def tagged_sentences(path: Union[str, PathLike], tags: str = "upos") -> Iterator[TaggedSentence]:
    """
    Yields the sentences of a CoNLL-U file. `tags` is "upos" or "xpos".

    The words are the syntactic ones, which have a tag each: the lines of multiword tokens, such as
    `1-2 don't`, and those of empty nodes, such as `8.1`, are passed over.

    # Raises

    ConfigurationError
        If `text_lines` does, the file holds no word, a line doesn't have ten columns between tabs,
        words are not numbered from 1, or one has no form or no tag; the message names the line.

    # Source

    https://universaldependencies.org/format.html
    """
    column = TAG_COLUMNS[tags]
    is_empty = True
    sentence = TaggedSentence([], [])
    for number, line in enumerate(text_lines(path), start=1):
        line = line.rstrip("\r\n")
        if not line.strip():
            if sentence.words:
                yield sentence
                sentence = TaggedSentence([], [])
            continue
        if line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != NUM_COLUMNS:
            raise ConfigurationError(
                f"{path}, line {number}: expected the {NUM_COLUMNS} columns of CoNLL-U between "
                f"tabs, but found {len(columns)}. Columns between spaces are another format."
            )
        place, form, tag = columns[0], columns[1], columns[column]
        if "-" in place or "." in place:
            continue
        if place != str(len(sentence.words) + 1):
            raise ConfigurationError(
                f"{path}, line {number}: expected word {len(sentence.words) + 1} of the sentence, "
                f"but found {place!r}. A blank line ends a sentence."
            )
        if form == "":
            raise ConfigurationError(f"{path}, line {number}: expected a word, but found none")
        if tag in ("", "_"):
            raise ConfigurationError(
                f"{path}, line {number}: expected a tag in column {column + 1} ({tags.upper()}), "
                f"but found {tag!r}. Where a treebank has tags in the other column only, use "
                f'`tags: "{"xpos" if tags == "upos" else "upos"}"`.'
            )
        sentence.words.append(form)
        sentence.tags.append(tag)
        is_empty = False
    if sentence.words:
        yield sentence
    if is_empty:
        raise ConfigurationError(f"{path}: expected sentences in CoNLL-U, but no line holds a word")


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
