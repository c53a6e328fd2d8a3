"""Word2vec: a word's vector is trained to predict the words around it, or to be predicted."""

import logging
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Iterator, List, Optional

import numpy
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm

from elmo_scratch.static_vectors.method import VectorMethod, VectorText, check_option

logger = logging.getLogger(__name__)

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
