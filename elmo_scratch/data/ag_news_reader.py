"""AG News: four classes of news, by their descriptions or by title and description."""

from typing import Any, Dict, Iterable, Optional

from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import Field, LabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenIndexer
from allennlp.data.tokenizers import Tokenizer

from elmo_scratch.data.ag_news_rows import ag_news_rows, ag_news_text
from elmo_scratch.data.max_tokens import check_max_tokens
from elmo_scratch.data.spacy_blank_tokenizer import SpacyBlankTokenizer


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
    """

    def __init__(
        self,
        *,
        tokenizer: Optional[Tokenizer] = None,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        use_title: bool = False,
        max_tokens: Optional[int] = None,
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

    def _read(self, file_path: str) -> Iterable[Instance]:
        for row in self.shard_iterable(ag_news_rows(file_path)):
            yield self.text_to_instance(row.description, row.label, title=row.title)

    def text_to_instance(  # type: ignore[override]
        self, description: str, label: Optional[str] = None, *, title: str = ""
    ) -> Instance:
        """
        # Parameters

        description : `str`
            The text to classify.
        label : `str`, optional (default = `None`)
            The name of its class, where it is known.
        title : `str`, optional (default = `""`)
            Its headline; ignored unless the reader uses titles.

        # Returns

        `Instance`
            With the field "text", and "label" where one was given.
        """
        text = ag_news_text(description, title, self._use_title)
        tokens = self._tokenizer.tokenize(text)[: self._max_tokens]
        fields: Dict[str, Field] = {"text": TextField(tokens)}
        if label is not None:
            fields["label"] = LabelField(label)
        return Instance(fields)

    def apply_token_indexers(self, instance: Instance) -> None:
        """Gives the text field its indexers, in the process that needs them."""
        instance["text"].token_indexers = self._token_indexers  # type: ignore[attr-defined]
