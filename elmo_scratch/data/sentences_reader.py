"""Sentences for a language model: a plain text file, or the descriptions of an AG News file."""

from typing import Any, Dict, Iterable, Iterator, List, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenIndexer
from allennlp.data.tokenizers import Token, Tokenizer, WhitespaceTokenizer

from elmo_scratch.data.ag_news_rows import ag_news_rows
from elmo_scratch.data.corpus import DataPath, list_shards
from elmo_scratch.data.corpus.shard_blocks import shard_blocks


@DatasetReader.register("elmo_scratch_sentences")
class SentencesReader(DatasetReader):
    """
    Reads one sentence a line from text files, plain or gzip (a path, a pattern such as
    `corpus/*.txt.gz`, or a list of those), or one description a row from an AG News file (a path
    that ends in `.csv`), into instances with a `TextField` "sentence". Lines and descriptions
    without a token are passed over.

    Registered as a `DatasetReader` with name "elmo_scratch_sentences".

    # Parameters

    tokenizer : `Tokenizer`, optional (default = `WhitespaceTokenizer()`)
        Splits a sentence into tokens.
    token_indexers : `Dict[str, TokenIndexer]`, optional (default = `{"tokens": single_id}`)
        Turn tokens into ids.
    max_tokens : `int`, optional (default = `None`)
        Tokens of a file's sentence after this many are dropped. `None` keeps all.
    """

    def __init__(
        self,
        *,
        tokenizer: Optional[Tokenizer] = None,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        max_tokens: Optional[int] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs
        )
        self.tokenizer = tokenizer or WhitespaceTokenizer()
        self.token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}
        self.max_tokens = max_tokens

    def _read(self, file_path: DataPath) -> Iterable[Instance]:
        empty = True
        for text in self.shard_iterable(_texts(file_path)):
            tokens = self.tokenizer.tokenize(text)
            if tokens:
                empty = False
                yield self.text_to_instance(tokens[: self.max_tokens])
        if empty and self.get_distributed_info() is None and self.get_worker_info() is None:
            raise ConfigurationError(f"{file_path}: expected sentences, but no line holds a token")

    def text_to_instance(self, tokens: List[Token]) -> Instance:
        """
        # Parameters

        tokens : `List[Token]`
            One sentence, already split; never shortened here.

        # Returns

        `Instance`
            With the field "sentence".
        """
        return Instance({"sentence": TextField(tokens)})

    def apply_token_indexers(self, instance: Instance) -> None:
        """Gives the sentence its indexers, in the process that needs them."""
        instance["sentence"].token_indexers = self.token_indexers  # type: ignore[attr-defined]


def _texts(data_path: DataPath) -> Iterator[str]:
    """The texts of a file, by the kind that its name tells, or of the files of a corpus."""
    if str(data_path).endswith(".csv"):
        return (row.description for row in ag_news_rows(str(data_path)))
    return (
        line
        for shard in list_shards(data_path)
        for block in shard_blocks(shard)
        for line in block.removesuffix("\n").split("\n")
    )
