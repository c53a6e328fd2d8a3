"""The vocabulary of a language model: from a corpus, or from a vocabulary file."""

import logging
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Union

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import namespace_match
from allennlp.data import Vocabulary
from allennlp.data.tokenizers import Tokenizer
from allennlp.data.vocabulary import DEFAULT_OOV_TOKEN, DEFAULT_PADDING_TOKEN

from elmo_scratch.data.corpus import ARCHIVED_AUDIT, CorpusAudit, PreparedCorpus
from elmo_scratch.data.vocabulary_file import (
    MARKS,
    UNKNOWN_WORD,
    is_writable,
    read_vocabulary_file,
)
from elmo_scratch.files.atomic import atomic_write

logger = logging.getLogger(__name__)

MUCH_UNKNOWN = 0.5
"""A larger share of unknown tokens in a corpus is worth a warning."""


@Vocabulary.register("elmo_scratch_corpus", constructor="from_corpus")
class CorpusVocabulary(Vocabulary):
    """
    Words in the order that `bilm-tf` expects: after AllenNLP's padding, `<S>`, `</S>` and `<UNK>`,
    then by falling frequency. `<UNK>` stands for all other words. The file `tokens.txt` in which
    AllenNLP stores such a vocabulary is itself a vocabulary file of `bilm-tf`. Beside it lie the
    figures of the corpus that the words were counted in.

    Made by `from_corpus`, which is registered as a `Vocabulary` with name "elmo_scratch_corpus",
    and by `from_files`.
    """

    # Beside the attributes by which AllenNLP compares vocabularies.
    __slots__ = ("_audit",)

    _audit: CorpusAudit

    @property
    def audit(self) -> Optional[CorpusAudit]:
        """The figures of the corpus, of a vocabulary that was made of one in this process."""
        return getattr(self, "_audit", None)

    @classmethod
    def from_corpus(
        cls,
        *,
        data_path: Optional[Union[str, List[str]]] = None,
        vocab_file: Optional[str] = None,
        min_count: int = 1,
        max_size: Optional[int] = None,
        lowercase: bool = False,
        tokenizer: Optional[Tokenizer] = None,
        max_tokens: Optional[int] = None,
        cache_dir: Optional[str] = None,
        skip_empty_shards: bool = False,
        namespace: str = "tokens",
    ) -> "CorpusVocabulary":
        """
        Counts the words of a corpus, or reads a vocabulary file, whose order stays as it is.
        Instances that AllenNLP has read are ignored.

        # Parameters

        data_path : `Union[str, List[str]]`, optional (default = `None`)
            The corpus, see `PreparedCorpus.of`.
        vocab_file : `str`, optional (default = `None`)
            The vocabulary file, see `read_vocabulary_file`. Give either this or `data_path`.
        min_count : `int`, optional (default = `1`)
            Words that occur less often are unknown.
        max_size : `int`, optional (default = `None`)
            Only the `max_size` most frequent words are known, not counting the marks. `None` for
            all.
        lowercase : `bool`, optional (default = `False`)
            Count words in lower case. The indexer of words must do the same.
        tokenizer, max_tokens, cache_dir, skip_empty_shards
            See `PreparedCorpus.of`; choose them as the training reads the corpus.
        namespace : `str`, optional (default = `"tokens"`)
            The namespace of the words.

        # Raises

        ConfigurationError
            If both or none of `data_path` and `vocab_file` are given, a setting doesn't go with
            them, a file can't be read, or no word occurs often enough.
        """
        if (data_path is None) == (vocab_file is None):
            raise ConfigurationError(
                "the vocabulary `elmo_scratch_corpus` needs either `data_path`, a corpus, or "
                "`vocab_file`, a list of words"
            )
        if min_count < 1 or (max_size is not None and max_size < 1):
            raise ConfigurationError(
                f"expected `min_count` and `max_size` of at least 1, but got {min_count} and "
                f"{max_size}"
            )
        if data_path is not None:
            corpus = PreparedCorpus.of(
                data_path, tokenizer, max_tokens, cache_dir, skip_empty_shards
            )
            words = _frequent_words(corpus, min_count, max_size, lowercase)
            if not words:
                raise ConfigurationError(
                    f"{data_path}: expected words that occur {min_count} times or more, but there "
                    "are none. Take a lower `min_count`."
                )
            vocab = cls._of([*MARKS, *words], namespace)
            share = corpus.unknown_share(vocab, namespace, lowercase)
            vocab._audit = corpus.audit._replace(unknown_share=share)
            logger.log(
                logging.WARNING if share > MUCH_UNKNOWN else logging.INFO,
                "Vocabulary of %d words; %.4f%% of the corpus's tokens are unknown",
                vocab.get_vocab_size(namespace) - 1,
                100 * share,
            )
            return vocab
        assert vocab_file is not None
        counting = (min_count, max_size, lowercase, tokenizer, max_tokens)
        if (*counting, cache_dir, skip_empty_shards) != (1, None, False, None, None, None, False):
            raise ConfigurationError(
                "`min_count`, `max_size`, `lowercase`, `tokenizer`, `max_tokens`, `cache_dir` and "
                "`skip_empty_shards` say how words of a corpus are counted; with `vocab_file` "
                "leave them out"
            )
        words = read_vocabulary_file(vocab_file)
        for word in words:
            if word == DEFAULT_PADDING_TOKEN or not is_writable(word):
                raise ConfigurationError(
                    f"{vocab_file}: the word {word!r} has a meaning of its own in AllenNLP's "
                    "vocabularies. Write another word in its line."
                )
        logger.info("Vocabulary of %d words from %s", len(words), vocab_file)
        return cls._of(words, namespace)

    def save_to_files(self, directory: Union[str, PathLike]) -> None:
        """Saves the namespaces as `Vocabulary` does, and the figures of the corpus, if any."""
        super().save_to_files(directory)  # type: ignore[arg-type]
        audit_file = Path(directory) / ARCHIVED_AUDIT
        # A recovery saves the vocabulary again, before it finds out that the text has changed.
        if self.audit is not None and not audit_file.exists():
            with atomic_write(audit_file) as temporary:
                self.audit.write(temporary)

    @classmethod
    def from_files(
        cls,
        directory: Union[str, PathLike],
        padding_token: Optional[str] = None,
        oov_token: Optional[str] = None,
    ) -> "CorpusVocabulary":
        """
        Reads the files of `save_to_files` from a folder or the archive of a model. The default
        tokens are AllenNLP's padding and `<UNK>`.
        """
        vocab = super().from_files(directory, padding_token, oov_token or UNKNOWN_WORD)
        assert isinstance(vocab, cls)
        return vocab

    @classmethod
    def _of(cls, words: Iterable[str], namespace: str) -> "CorpusVocabulary":
        """A vocabulary of one namespace that gives these words the ids 1, 2, …"""
        vocab = cls(oov_token=UNKNOWN_WORD)
        for pattern in vocab._non_padded_namespaces:
            if namespace_match(pattern, namespace):
                raise ConfigurationError(
                    f"the namespace {namespace!r} has no place for padding and unknown words in "
                    f"AllenNLP, since it matches {pattern!r}. Choose another for the words."
                )
        # AllenNLP would begin the namespace with the unknown word, so it is filled directly.
        by_id: Dict[int, str] = dict(enumerate([vocab._padding_token, *words]))
        vocab._index_to_token[namespace] = by_id
        vocab._token_to_index[namespace] = {word: number for number, word in by_id.items()}
        return vocab


def _frequent_words(
    corpus: PreparedCorpus, min_count: int, max_size: Optional[int], lowercase: bool
) -> List[str]:
    """The words to know, the most frequent first, without the marks."""
    # AllenNLP would confuse its own unknown word with the one among these words.
    special = {*MARKS, DEFAULT_PADDING_TOKEN, DEFAULT_OOV_TOKEN}
    counted: Iterable[Any] = zip(corpus.words, corpus.words.counts.tolist())
    if lowercase:
        totals: Dict[str, int] = {}
        for word, count in counted:
            # A word that is spelled like a mark stands for it, so its case stays.
            word = word if word in special else word.lower()
            totals[word] = totals.get(word, 0) + count
        counted = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    words: List[str] = []
    for word, count in counted:
        if count < min_count or len(words) == max_size:
            break
        if word not in special and is_writable(word):
            words.append(word)
    return words
