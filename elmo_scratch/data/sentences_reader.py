"""Reads sentences for a language model from plain text files and AG News files."""

import os
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenIndexer
from allennlp.data.tokenizers import Token, Tokenizer, WhitespaceTokenizer

from elmo_scratch.data.ag_news_reader import ag_news_rows, ag_news_text
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
from elmo_scratch.data.lines import check_max_tokens, line_tokens


@DatasetReader.register("elmo_scratch_sentences")
class SentencesReader(DatasetReader):
    """
    Reads one sentence a line from text files, plain or compressed (a path, or a pattern such as
    `corpus/*.txt.gz`), and one text a row from AG News files (names that end in `.csv` or
    `.csv.gz`), or a list of both, into instances with a `TextField` "sentence". Lines and texts
    without a token are skipped. A Hugging Face data set, or its address such as
    `datasets:wikitext?name=wikitext-2-raw-v1&split=train` (see `data_sets`), is read as lines too.

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
