"""
The readers: of AG News, with its four classes; of sentences for a language model, from plain text
or AG News; and of treebanks, for a tagger of parts of speech.
"""

import csv
import functools
import html
import logging
import os
import re
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Union

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import Field, LabelField, MetadataField, SequenceLabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenIndexer
from allennlp.data.tokenizers import Token, Tokenizer, WhitespaceTokenizer

from elmo_scratch.data.corpus import (
    DataPath,
    check_not_empty,
    data_set_lines,
    is_data_set,
    is_table,
    list_shards,
    named_paths,
)
from elmo_scratch.data.corpus.shards import shard_blocks
from elmo_scratch.data.lines import check_max_tokens, line_tokens, text_lines
from elmo_scratch.data.sentence_forms import treebank_sentences
from elmo_scratch.data.spacy_blank_tokenizer import SpacyBlankTokenizer
from elmo_scratch_compat.bounds import LINE_SIZE

logger = logging.getLogger(__name__)

CLASS_NAMES = {"1": "World", "2": "Sports", "3": "Business", "4": "Sci/Tech"}
"""The class numbers of AG News and their names, in the order of the data set's `classes.txt`."""

HEADER = (
    {"class", "class index", "class id", "category", "label", "topic"},
    {"title", "headline"},
    {"description", "text"},
)
"""The names of columns that make a header row, whatever the case, with `_` or a space."""


class AgNewsRow(NamedTuple):
    """
    One news item: its class, a value of `CLASS_NAMES`, its headline, and the text below the
    headline, with line breaks restored.
    """

    label: str
    title: str
    description: str


def ag_news_rows(path: Union[str, PathLike]) -> Iterator[AgNewsRow]:
    """
    Yields the rows of a comma-separated file of class number, title and description.

    Fields may be quoted, and a quote inside is doubled. A first row of column names, such as
    `Class Index,Title,Description`, is skipped, and the log says so once. The published files have
    none. They write a line break as a backslash, which is turned back here.

    # Raises

    ConfigurationError
        If the file is empty or not UTF-8, holds no row below a header, a row does not have three
        columns, or a class is not one of 1 to 4; the message names the line.

    # Source

    Zhang, Zhao and LeCun 2015, "Character-level Convolutional Networks for Text Classification".
    """
    # This holds for the whole process; Python's own bound only limits memory.
    csv.field_size_limit(max(csv.field_size_limit(), LINE_SIZE))
    rows = csv.reader(text_lines(path), strict=True)
    empty, is_first = True, True
    while True:
        try:
            columns = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            raise ConfigurationError(
                f"{path}, line {rows.line_num}: not a valid comma-separated row ({error})"
            ) from None
        if not columns:
            continue
        if is_first and _is_header(columns):
            _tell_header(str(path), ",".join(columns))
            is_first = False
            continue
        if len(columns) != 3:
            raise ConfigurationError(
                f"{path}, line {rows.line_num}: expected the three columns class, title and "
                f"description, but found {len(columns)}"
            )
        number, title, description = columns
        if number not in CLASS_NAMES:
            header = " or a header such as Class Index,Title,Description" if is_first else ""
            raise ConfigurationError(
                f"{path}, line {rows.line_num}: expected a class from 1 to 4 (1 World, 2 Sports, "
                f"3 Business, 4 Sci/Tech){header}, but found {number!r}"
            )
        is_first = False
        empty = False
        yield AgNewsRow(CLASS_NAMES[number], restored(title), restored(description))
    if empty:
        raise ConfigurationError(
            f"{path}: expected rows of class, title and description, but found none"
        )


def _is_header(columns: Sequence[str]) -> bool:
    """Whether a row has names of columns in the place of a class and texts."""
    names = [column.strip().casefold().replace("_", " ") for column in columns]
    return len(names) == len(HEADER) and all(map(set.__contains__, HEADER, names))


@functools.lru_cache(maxsize=None)
def _tell_header(path: str, header: str) -> None:
    """Says that a header is skipped. Each epoch reads a file anew; once is enough for the log."""
    logger.info("%s: skipped the header row %s", path, header)


def ag_news_text(description: str, title: str, use_title: bool) -> str:
    """The text of a row: its description; `use_title` puts the title and a line break before it."""
    return f"{title}\n{description}" if use_title else description


def restored(text: str) -> str:
    """
    A title or a description with line breaks instead of the backslashes of the published files.
    """
    return text.replace("\\", "\n").strip()


_LONE = re.compile(
    r"(?:^| |(?<=[^&\s]))(?=#(?:3[2-9]|[4-9][0-9]|[1-9][0-9]{2,4});)"
    r"|(?:^| )(?=(?:amp|apos|gt|lt|nbsp|quot);)",
    re.MULTILINE,
)
"""Where a character reference has lost its `&`, mostly to a space, as in `it #39;s`."""

_REFERENCE = re.compile("&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

MOST_ENCODINGS = 4
"""So many times a character may have been encoded, as `<` in `&amp;lt;` twice."""


def mended(text: str) -> str:
    """
    A text with the characters that HTML's references in it stand for, also where they were encoded
    several times, or lost their `&`.
    """
    text = _LONE.sub("&", text)
    for _ in range(MOST_ENCODINGS):
        text = _REFERENCE.sub(lambda reference: html.unescape(reference[0]), text)
    return text


@DatasetReader.register("ag_news")
class AgNewsReader(DatasetReader):
    """
    Reads rows of class, title and description (see `ag_news_rows` for the file format) into
    instances with a `TextField` "text" and a `LabelField` "label".

    Registered as a `DatasetReader` with name "ag_news".

    # Parameters

    tokenizer : `Tokenizer`, optional (default = `SpacyBlankTokenizer()`)
        Splits the text into tokens.
    token_indexers : `Dict[str, TokenIndexer]`, optional (default = `{"tokens": single_id}`)
        Turn tokens into ids.
    use_title : `bool`, optional (default = `False`)
        Put the title, and a line break, before the description.
    max_tokens : `int`, optional (default = `None`)
        Tokens after this many are dropped. `None` keeps all.
    mend_entities : `bool`, optional (default = `False`)
        Turn what is left of HTML into characters: `it #39;s`, `&lt;b&gt;`, `&amp;lt;`.
    """

    def __init__(
        self,
        *,
        tokenizer: Optional[Tokenizer] = None,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        use_title: bool = False,
        max_tokens: Optional[int] = None,
        mend_entities: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs
        )
        check_max_tokens(max_tokens)
        self._tokenizer = tokenizer or SpacyBlankTokenizer()
        self._token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}
        self._use_title = use_title
        self._max_tokens = max_tokens
        self._mend_entities = mend_entities

    def _read(self, file_path: str) -> Iterable[Instance]:
        for row in self.shard_iterable(ag_news_rows(file_path)):
            yield self.text_to_instance(row.description, row.label, title=row.title)

    def text_to_instance(  # type: ignore[override]
        self, description: str, label: Optional[str] = None, *, title: str = ""
    ) -> Instance:
        """
        Makes an instance with the field "text", and "label" if a label is given.

        # Parameters

        description : `str`
            The text to classify.
        label : `str`, optional (default = `None`)
            The name of its class, if it is known.
        title : `str`, optional (default = `""`)
            Its headline; ignored unless the reader uses titles.
        """
        text = ag_news_text(description, title, self._use_title)
        if self._mend_entities:
            text = mended(text)
        tokens = self._tokenizer.tokenize(text)[: self._max_tokens]
        fields: Dict[str, Field] = {"text": TextField(tokens)}
        if label is not None:
            fields["label"] = LabelField(label)
        return Instance(fields)

    def apply_token_indexers(self, instance: Instance) -> None:
        """Gives the text field its indexers, in the process that needs them."""
        instance["text"].token_indexers = self._token_indexers  # type: ignore[attr-defined]


@DatasetReader.register("elmo_scratch_sentences")
class SentencesReader(DatasetReader):
    """
    Reads one sentence a line from text files, plain or compressed (a path, or a pattern such as
    `corpus/*.txt.gz`), and one text a row from AG News files (names that end in `.csv` or
    `.csv.gz`), or a list of both, into instances with a `TextField` "sentence". Lines and texts
    without a token are skipped. A Hugging Face data set, or its address such as
    `datasets:wikitext?name=wikitext-2-raw-v1&split=train` (see `data_set_lines`), is read as lines
    too.

    Registered as a `DatasetReader` with name "elmo_scratch_sentences".

    # Parameters

    tokenizer : `Tokenizer`, optional (default = `WhitespaceTokenizer()`)
        Splits a sentence into tokens.
    token_indexers : `Dict[str, TokenIndexer]`, optional (default = `{"tokens": single_id}`)
        Turn tokens into ids.
    use_title : `bool`, optional (default = `False`)
        In AG News files, put the title and a line break before the description.
    skip_empty_shards : `bool`, optional (default = `False`)
        Whether text files without a token are skipped if others have some.
    max_tokens : `int`, optional (default = `None`)
        Tokens of a file's sentence after this many are dropped. `None` keeps all.
    """

    def __init__(
        self,
        *,
        tokenizer: Optional[Tokenizer] = None,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        use_title: bool = False,
        skip_empty_shards: bool = False,
        max_tokens: Optional[int] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs
        )
        check_max_tokens(max_tokens)
        self.tokenizer = tokenizer or WhitespaceTokenizer()
        self.token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}
        self.use_title = use_title
        self.skip_empty_shards = skip_empty_shards
        self.max_tokens = max_tokens

    def _read(self, file_path: DataPath) -> Iterable[Instance]:
        empty = True
        # Blank lines go before workers share the texts: one worker could get only blank lines.
        texts = (text for text in self._texts(file_path) if text.strip())
        for text in self.shard_iterable(texts):
            tokens = line_tokens(self.tokenizer, text)
            if tokens:
                empty = False
                yield self.text_to_instance(tokens[: self.max_tokens])
        if empty and self.get_distributed_info() is None and self.get_worker_info() is None:
            raise ConfigurationError(f"{file_path}: expected sentences, but no line holds a token")

    def text_to_instance(self, tokens: List[Token]) -> Instance:
        """
        Makes an instance with the field "sentence" from the tokens of one sentence, never shortened
        here.
        """
        return Instance({"sentence": TextField(tokens)})

    def apply_token_indexers(self, instance: Instance) -> None:
        """Gives the sentence its indexers, in the process that needs them."""
        instance["sentence"].token_indexers = self.token_indexers  # type: ignore[attr-defined]

    def _texts(self, data_path: DataPath) -> Iterator[str]:
        """Yields the texts of one file or many; the name of each tells its kind."""
        known = set()
        for path in named_paths(data_path):
            if is_data_set(path):
                yield from data_set_lines(path)
                continue
            for shard in list_shards(path):
                # Each file counts once, as in a prepared corpus.
                real = os.path.realpath(shard)
                if real in known:
                    continue
                known.add(real)
                # The name of a fetched file doesn't tell its kind.
                if is_table(path) or is_table(shard):
                    for row in ag_news_rows(shard):
                        yield ag_news_text(row.description, row.title, self.use_title)
                else:
                    yield from self._lines(shard)

    def _lines(self, shard: Path) -> Iterator[str]:
        is_empty = True
        for block in shard_blocks(shard):
            is_empty = is_empty and not block.strip()
            yield from block.removesuffix("\n").split("\n")
        if is_empty and not self.skip_empty_shards:
            check_not_empty([shard])


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
