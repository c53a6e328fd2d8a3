"""
Texts to static vectors, one a word, whatever the sentence: the base class of methods, what a method
reads, positive mutual information reduced by a truncated SVD, and word2vec.

A corpus is read in pieces; what a dataset reader yields is kept in memory. The same text, settings
and seed give the same vectors, but for word2vec with several threads.
"""

import logging
from abc import ABC, abstractmethod
from array import array
from dataclasses import dataclass
from importlib.util import find_spec
from inspect import signature
from os import PathLike
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy
import scipy  # which imports a part of itself when it is used
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from allennlp.data import DatasetReader, Field, Instance
from allennlp.data.fields import ListField, TextField
from threadpoolctl import threadpool_limits

from elmo_scratch.data import PreparedCorpus
from elmo_scratch.data.corpus import DataPath, is_table, list_shards
from elmo_scratch.interop.static_vectors import is_writable

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

logger = logging.getLogger(__name__)


def check_option(option: str, value: float, least: float, most: Optional[float] = None) -> None:
    """
    Raises `ConfigurationError` if the value of an option is below `least`, above `most` or NaN.
    `option` is its name on the command line, without the dashes.
    """
    if least <= value and (most is None or value <= most):
        return
    expected = f"{least} or more" if most is None else f"{least} to {most}"
    raise ConfigurationError(f"expected --{option} of {expected}, got {value}")


class NumberedText(NamedTuple):
    """
    A text that can be read again and again.

    # Parameters

    words : `Sequence[str]`
        The distinct words.
    counts : `numpy.ndarray`
        Shape `(words,)`: the number of tokens of each word.
    tokens : `numpy.ndarray`
        Shape `(tokens,)`: for each token the index of its word in `words`.
    sentence_starts : `numpy.ndarray`
        Shape `(sentences + 1,)`: the index in `tokens` at which each sentence begins.
    """

    words: Sequence[str]
    counts: numpy.ndarray
    tokens: numpy.ndarray
    sentence_starts: numpy.ndarray

    @classmethod
    def of_corpus(cls, data_path: DataPath) -> "NumberedText":
        """
        Opens text files as pre-training reads them; they are prepared once for both and stay on
        the disk. `data_path` names them as in `list_shards`: one sentence a line, words between
        spaces, plain or gzip. Raises `ConfigurationError` if there is no such text, or it is wrong.
        """
        for shard in list_shards(data_path):
            if is_table(shard):
                raise ConfigurationError(
                    f"{shard}: expected text with one sentence a line, but the name is that of a "
                    "table. Say how to read it, for AG News by --reader ag_news."
                )
        corpus = PreparedCorpus.of(data_path, skip_empty_shards=True)
        return cls(corpus.words, corpus.words.counts, corpus.tokens, corpus.sentence_starts)

    @classmethod
    def of_reader(cls, reader: DatasetReader, data_path: Union[str, PathLike]) -> "NumberedText":
        """
        Reads all text fields of a reader's instances, each field as a sentence. The text is kept in
        memory, in four bytes a token. Raises `ConfigurationError` if `data_path` can't be read or
        has no token.
        """
        numbers: Dict[str, int] = {}
        tokens, starts = array("I"), array("q", [0])
        instances = _instances(reader, data_path)
        for sentence in _sentences(Tqdm.tqdm(instances, desc="reading", unit=" instances")):
            tokens.extend([numbers.setdefault(word, len(numbers)) for word in sentence])
            starts.append(len(tokens))
        if not tokens:
            raise ConfigurationError(
                f"{data_path}: expected instances with text fields, but the reader "
                f"{type(reader).__name__} found no token"
            )
        ids = numpy.frombuffer(tokens, dtype=numpy.uintc)
        counts = numpy.bincount(ids, minlength=len(numbers))
        return cls(list(numbers), counts, ids, numpy.frombuffer(starts, dtype=numpy.int64))


def _instances(reader: DatasetReader, data_path: Union[str, PathLike]) -> Iterator[Instance]:
    """Yields a reader's instances; its errors become errors that name the text."""
    try:
        yield from reader.read(data_path)
    except ConfigurationError:
        raise
    except Exception as error:
        # Readers raise all kinds of them for a text in another format.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigurationError(
            f"{data_path}: can't be read by {type(reader).__name__} ({reason})"
        ) from error


def _sentences(instances: Iterable[Instance]) -> Iterator[List[str]]:
    """Yields the words of each text field."""
    for instance in instances:
        for field in instance.fields.values():
            yield from _sentences_of(field)


def _sentences_of(field: Field) -> Iterator[List[str]]:
    """Yields the words of a text field, or of each text field in a list."""
    if isinstance(field, TextField):
        yield [token.text for token in field.tokens if token.text]
    elif isinstance(field, ListField):
        for one in field.field_list:
            yield from _sentences_of(one)


TOKENS_AT_ONCE = 2**20
"""The number of tokens in memory at once; a longer sentence is read as a whole."""

_NAMED_AT_MOST = 5


class Block(NamedTuple):
    """
    Some successive sentences of a text. `tokens` and `sentences` have shape `(tokens,)`: for each
    token the index of its word in `VectorText.words`, and the number of its sentence, which rises.
    """

    tokens: numpy.ndarray
    sentences: numpy.ndarray


class VectorText:
    """
    A text without the words that get no vector. As in the original word2vec, the words on both
    sides of such a word become neighbours.

    # Parameters

    text : `NumberedText`
        The whole text.
    min_count : `int`, optional (default = `5`)
        Rarer words get no vector.
    max_words : `int`, optional (default = `None`)
        At most so many words get vectors, the most frequent ones. `None` means all.
    lowercase : `bool`, optional (default = `False`)
        Convert words to lower case.

    # Raises

    ConfigurationError
        If no word is left.
    """

    def __init__(
        self,
        text: NumberedText,
        *,
        min_count: int = 5,
        max_words: Optional[int] = None,
        lowercase: bool = False,
    ) -> None:
        check_option("min-count", min_count, 1)
        if max_words is not None:
            check_option("max-words", max_words, 1)
        numbers: Dict[str, int] = {}
        spelled = (word.lower() if lowercase else word for word in text.words)
        # With `lowercase`, words that differ only in case become one word.
        merged = numpy.fromiter(
            (numbers.setdefault(word, len(numbers)) for word in spelled),
            numpy.int64,
            len(text.words),
        )
        counts = numpy.bincount(merged, weights=text.counts).astype(numpy.int64)
        frequent = [word for word, count in zip(numbers, counts.tolist()) if count >= min_count]
        kept = numpy.array([numbers[word] for word in sorted(_writable(frequent))], numpy.int64)
        if len(kept) == 0:
            raise ConfigurationError(
                f"expected words that occur --min-count {min_count} times, but there are none: the "
                f"most frequent one occurs {counts.max()} times"
            )
        kept = kept[numpy.argsort(-counts[kept], kind="stable")][:max_words]
        spellings = list(numbers)
        self.words: List[str] = [spellings[number] for number in kept.tolist()]
        """The words that get vectors, the most frequent first."""
        self.counts: numpy.ndarray = counts[kept]
        """Shape `(words,)`: the number of tokens of each word."""
        self.num_tokens = int(self.counts.sum())
        """The number of tokens of these words."""
        ids = numpy.full(len(numbers), -1, dtype=numpy.int32)
        ids[kept] = numpy.arange(len(kept), dtype=numpy.int32)
        self._text, self._ids = text, ids[merged]
        logger.info(
            "%d of %d distinct words get vectors: %.2f %% of %d tokens",
            len(kept),
            len(numbers),
            100 * self.num_tokens / max(1, len(text.tokens)),
            len(text.tokens),
        )

    def blocks(self) -> Iterator[Block]:
        """Yields the text in blocks, from its first sentence to its last."""
        starts = self._text.sentence_starts
        first, end = 0, len(starts) - 1
        while first < end:
            fitting = numpy.searchsorted(starts, starts[first] + TOKENS_AT_ONCE, side="right") - 1
            last = max(int(fitting), first + 1)
            tokens = self._ids[self._text.tokens[starts[first] : starts[last]]]
            lengths = numpy.diff(starts[first : last + 1])
            sentences = numpy.repeat(numpy.arange(last - first), lengths)
            has_vector = tokens >= 0
            yield Block(tokens[has_vector], sentences[has_vector])
            first = last


def _writable(words: List[str]) -> List[str]:
    """Returns the words that a file of vectors can hold, and warns about the others."""
    left_out = [word for word in words if not is_writable(word)]
    if left_out:
        logger.warning(
            "%d words hold white space, which separates words and numbers in a file of vectors, or "
            "halves of surrogate pairs, which no file can hold. They get no vectors: %s",
            len(left_out),
            ", ".join(map(repr, left_out[:_NAMED_AT_MOST]))
            + (", …" if len(left_out) > _NAMED_AT_MOST else ""),
        )
    return [word for word in words if is_writable(word)]


class VectorMethod(ABC):
    """Learns one vector a word from the words that it stands beside. Abstract."""

    @abstractmethod
    def vectors_of(self, text: VectorText) -> numpy.ndarray:
        """
        # Parameters

        text : `VectorText`
            The text to learn from.

        # Returns

        `numpy.ndarray`
            Shape `(words, dim)`, of float32: a vector for each of `text.words`.

        # Raises

        ConfigurationError
            If the text is too small for the settings.
        """


def count_co_occurrences(text: VectorText, window: int) -> "csr_matrix":
    """
    Counts how often two words stand at most `window` tokens apart in a sentence, words without a
    vector left out. Returns int32 of shape `(words, words)`, symmetric. Memory holds a block of the
    text and some 16 bytes for each entry of the result.
    """
    sums: "List[csr_matrix]" = [_matrix_of(numpy.zeros((2, 0), numpy.int32), len(text.words))]
    with Tqdm.tqdm(
        total=text.num_tokens, unit=" tokens", unit_scale=True, desc="co-occurrences"
    ) as progress:
        for tokens, sentences in text.blocks():
            for apart in range(1, min(window, len(tokens) - 1) + 1):
                is_one_sentence = sentences[:-apart] == sentences[apart:]
                pairs = numpy.stack([tokens[:-apart], tokens[apart:]])[:, is_one_sentence]
                _add(sums, _matrix_of(pairs, len(text.words)))
            progress.update(len(tokens))
    while len(sums) > 1:
        _join_last(sums)
    # So far each pair counts once, with its first word as the row; the sum makes it symmetric.
    (ahead,) = sums
    return scipy.sparse.csr_matrix(ahead + ahead.T)


def _matrix_of(pairs: numpy.ndarray, num_words: int) -> "csr_matrix":
    """Counts how often each pair comes; `pairs` has shape `(2, pairs)`."""
    ones = numpy.ones(pairs.shape[1], dtype=numpy.int32)
    return scipy.sparse.coo_matrix(
        (ones, (pairs[0], pairs[1])), shape=(num_words, num_words)
    ).tocsr()


def _add(sums: "List[csr_matrix]", counts: "csr_matrix") -> None:
    """
    Adds counts to a sum that is kept in parts, each at least twice as large as the next, so that a
    large part is not read again for every small one.
    """
    sums.append(counts)
    while len(sums) > 1 and sums[-2].nnz < 2 * sums[-1].nnz:
        _join_last(sums)


def _join_last(sums: "List[csr_matrix]") -> None:
    """Merges the last two parts."""
    last = sums.pop()
    sums[-1] = sums[-1] + last


def largest_singular(
    matrix: "csr_matrix", number: int, seed: int
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """
    Returns the left singular vectors with the largest values, shape `(size, number)`, and these
    values in falling order, shape `(number,)`, of a square matrix. The result depends on the seed,
    but not on the number of processor threads. With SciPy before 1.16 (the last one for Python 3.10
    is 1.15) the last bits also depend on what this process has decomposed before, if the rank of
    the matrix is below `number`.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    size = matrix.shape[0]
    # Products of dense matrices are summed in an order that depends on the number of threads.
    with threadpool_limits(1):
        if 2 * number >= size:
            # There is little to leave out, and ARPACK can't find all.
            left, values, _ = numpy.linalg.svd(matrix.toarray().astype(numpy.float64))
            return left[:, :number], values[:number]
        # ARPACK rather than scikit-learn's randomized_svd, whose last dimensions are noise: on AG
        # News (12,407 words, 256 dimensions, one thread) 127 dimensions had a cosine below 0.9
        # with the exact ones. ARPACK took 12 seconds, randomized_svd 2.4; with 15 iterations and
        # 128 more dimensions it took 9.6, and the worst cosine was still 0.91.
        # SciPy's `svds` does the same as this code, but has no seed for the numbers that ARPACK
        # draws if the matrix has a lower rank than the number of dimensions; `eigsh` has one from
        # SciPy 1.16 on.
        matrix = matrix.astype(numpy.float64)
        turned = matrix.T.tocsr()
        squares = LinearOperator(
            (size, size), matvec=lambda vector: turned @ (matrix @ vector), dtype=numpy.float64
        )
        start = numpy.random.default_rng(seed).standard_normal(size)
        seeded = {"rng": seed} if "rng" in signature(eigsh).parameters else {}
        _, right = eigsh(squares, k=number, v0=start, **seeded)
        right, _ = numpy.linalg.qr(right)
        left, values, _ = numpy.linalg.svd(matrix @ right, full_matrices=False)
    return left, values


def positive_mutual_information(
    counts: "csr_matrix", shift: float = 1.0, smoothing: float = 0.75
) -> "csr_matrix":
    """
    Returns `max(0, log(P(word, context) / (P(word) P(context))) - log(shift))` as float32, shape
    `(words, words)` like the counts. `shift` corresponds to word2vec's number of negative samples.
    The counts of contexts, in columns, are raised to the power `smoothing`, so that rare contexts
    don't get too much weight. Source: Levy et al. 2015 (see `PpmiSvd`), sections 3.1 to 3.3.
    """
    totals = numpy.asarray(counts.sum(axis=1), dtype=numpy.float64).ravel()  # (words,)
    contexts = totals**smoothing
    with numpy.errstate(divide="ignore", invalid="ignore"):
        # A word that always stands alone gives NaN or infinity here, but has no entry to read it.
        log_totals, log_shares = numpy.log(totals), numpy.log(contexts / contexts.sum())
    information = numpy.log(counts.data, dtype=numpy.float64)  # (pairs,)
    information -= numpy.repeat(log_totals, numpy.diff(counts.indptr))
    information -= log_shares[counts.indices]
    information -= numpy.log(shift)
    positive = numpy.maximum(information, 0, out=information).astype(numpy.float32)
    result = scipy.sparse.csr_matrix(
        (positive, counts.indices, counts.indptr), shape=counts.shape, copy=True
    )
    result.eliminate_zeros()
    return result


@dataclass(frozen=True)
class PpmiSvd(VectorMethod):
    """
    Positive pointwise mutual information and a truncated singular value decomposition.

    # Parameters

    dim : `int`, optional (default = `300`)
        The size of a vector.
    window : `int`, optional (default = `5`)
        Two words count as neighbours up to so many tokens apart; all neighbours count alike.
    shift : `float`, optional (default = `1.0`)
        The logarithm of this is subtracted from the mutual information.
    smoothing : `float`, optional (default = `0.75`)
        The power that the counts of contexts are raised to.
    exponent : `float`, optional (default = `0.5`)
        The power that the singular values are raised to: 1 keeps them, 0 drops them.
    seed : `int`, optional (default = `0`)
        The seed of the random numbers that the decomposition begins with.

    # Raises

    ConfigurationError
        If a setting lies outside its range.

    # Source

    Levy, Goldberg and Dagan 2015, "Improving Distributional Similarity with Lessons Learned from
    Word Embeddings", section 3.
    """

    dim: int = 300
    window: int = 5
    shift: float = 1.0
    smoothing: float = 0.75
    exponent: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        check_option("dim", self.dim, 1)
        check_option("window", self.window, 1)
        check_option("shift", self.shift, 1)
        check_option("smoothing", self.smoothing, 0, 1)
        check_option("exponent", self.exponent, 0, 1)
        check_option("seed", self.seed, 0, 2**32 - 1)

    def vectors_of(self, text: VectorText) -> numpy.ndarray:
        """Reads the text once; raises if it has fewer words than `dim`, or no positive entry."""
        if self.dim > len(text.words):
            raise ConfigurationError(
                f"expected --dim of at most {len(text.words)}, the number of words that get "
                f"vectors, got {self.dim}. Choose a smaller one, or a smaller --min-count."
            )
        counts = count_co_occurrences(text, self.window)
        information = positive_mutual_information(counts, self.shift, self.smoothing)
        if information.nnz == 0:
            raise ConfigurationError(
                "expected words that stand beside each other more often than by chance, but there "
                f"are none within --window {self.window} with --shift {self.shift:g}"
            )
        logger.info("Decomposing a matrix with %d positive entries", information.nnz)
        # (words, dim), (dim,)
        left, values = largest_singular(information, self.dim, self.seed)
        return (left * values**self.exponent).astype(numpy.float32)


ALGORITHMS = ("skip-gram", "cbow")

TOKENS_OF_A_SENTENCE = 10_000
"""gensim drops the tokens of a sentence beyond this number, so longer sentences are cut first."""

AT_MOST = 10_000
"""
The upper limit of `dim`, `window` and `negatives`. A number that overflows raises in one of
gensim's threads, for which gensim would then wait for ever.
"""


@dataclass(frozen=True)
class Word2Vec(VectorMethod):
    """
    Skip-gram or continuous bag of words with negative sampling, by gensim.

    # Parameters

    algorithm : `str`, optional (default = `"skip-gram"`)
        `"skip-gram"` or `"cbow"`.
    dim : `int`, optional (default = `300`)
        The size of a vector.
    window : `int`, optional (default = `5`)
        Two words count as neighbours up to so many tokens apart; nearer ones count more.
    epochs : `int`, optional (default = `5`)
        How often the text is read.
    negatives : `int`, optional (default = `5`)
        The number of random words that each true neighbour is told from.
    sample : `float`, optional (default = `0.001`)
        Tokens of words with a larger share of the text are dropped at random. 0 keeps all.
    learning_rate : `float`, optional (default = `0.025`)
        The learning rate at the beginning; it falls to 0.0001.
    seed : `int`, optional (default = `0`)
        The seed of all random numbers.
    threads : `int`, optional (default = `1`)
        Processor threads. With more than one the vectors are not the same each time.

    # Raises

    ConfigurationError
        If gensim is not installed, or a setting lies outside its range.

    # Source

    Mikolov et al. 2013, "Distributed Representations of Words and Phrases and their
    Compositionality". The authors' program has the same defaults, except a `dim` of 100.
    """

    algorithm: str = "skip-gram"
    dim: int = 300
    window: int = 5
    epochs: int = 5
    negatives: int = 5
    sample: float = 0.001
    learning_rate: float = 0.025
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        if find_spec("gensim") is None:
            raise ConfigurationError(
                "--method word2vec needs gensim, which is not installed: "
                "pip install 'gensim>=4.3.3'. --method svd does without."
            )
        if self.algorithm not in ALGORITHMS:
            raise ConfigurationError(
                f"expected --algorithm {' or '.join(ALGORITHMS)}, got {self.algorithm}"
            )
        for option in ("dim", "window", "negatives"):
            check_option(option, getattr(self, option), 1, AT_MOST)
        for option in ("epochs", "threads"):
            check_option(option, getattr(self, option), 1)
        check_option("sample", self.sample, 0, 1)
        check_option("learning-rate", self.learning_rate, 0.0001, 1)
        check_option("seed", self.seed, 0, 2**32 - 1)

    def vectors_of(self, text: VectorText) -> numpy.ndarray:
        """Reads the text `epochs` times."""
        from gensim.models import Word2Vec as Gensim

        model = Gensim(
            vector_size=self.dim,
            sg=int(self.algorithm == "skip-gram"),
            window=self.window,
            negative=self.negatives,
            sample=self.sample,
            alpha=self.learning_rate,
            min_count=1,  # rare words have been left out already
            seed=self.seed,
            workers=self.threads,
        )
        model.build_vocab_from_freq(dict(zip(text.words, text.counts.tolist())))
        total = self.epochs * text.num_tokens
        with Tqdm.tqdm(total=total, unit=" tokens", unit_scale=True, desc="word2vec") as progress:
            sentences = _Sentences(text, progress)
            model.train(sentences, total_words=text.num_tokens, epochs=self.epochs)
        if sentences.error is not None:
            raise sentences.error
        # Training changes the output weights first, and they begin as zeros.
        if not model.syn1neg.any():
            logger.warning(
                "Nothing was trained, and the vectors are the random ones that training begins "
                "with: no two words came beside each other, or --sample %g passed over them. Give "
                "more text, or --sample 0.",
                self.sample,
            )
        return model.wv[text.words]


class _Sentences:
    """
    Yields the words of each sentence, as often as gensim iterates. It ends early if reading fails,
    and keeps the error: raised here, it would end gensim's reading thread, for which gensim would
    wait for ever.
    """

    def __init__(self, text: VectorText, progress: Any) -> None:
        self._text, self._progress = text, progress
        self.error: Optional[Exception] = None
        """The error that ended the reading, if any."""

    def __iter__(self) -> Iterator[List[str]]:
        if self.error is not None:
            return
        try:
            yield from self._read()
        except Exception as error:
            self.error = error

    def _read(self) -> Iterator[List[str]]:
        words = self._text.words
        for tokens, sentences in self._text.blocks():
            ends = numpy.flatnonzero(numpy.diff(sentences)) + 1
            for ids in numpy.split(tokens, ends):
                for first in range(0, len(ids), TOKENS_OF_A_SENTENCE):
                    yield [words[word] for word in ids[first : first + TOKENS_OF_A_SENTENCE]]
                self._progress.update(len(ids))
