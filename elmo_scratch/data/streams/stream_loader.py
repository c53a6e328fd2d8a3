"""Batches of windows over parallel streams of text."""

from functools import lru_cache
from typing import Dict, Iterator, List, NamedTuple, Optional

import numpy
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_distributed
from allennlp.data import DataLoader, DatasetReader, Instance, Vocabulary
from allennlp.data.data_loaders import TensorDict
from allennlp.nn.util import move_to_device

from elmo_scratch.alphabet import BEGIN_SENTENCE_WORD, END_SENTENCE_WORD
from elmo_scratch.data.corpus import DataPath, PreparedCorpus, list_shards, log_audit
from elmo_scratch.data.sentences_reader import SentencesReader
from elmo_scratch.data.streams.windows import (
    Positions,
    Spelling,
    StreamOrder,
    check_marks,
    stream_indexers,
    windows,
)

STREAMS_PER_RELEASE = 8
"""
After reading from this many streams the memory of what they read from disk is released. In a new
order of sentences each read brings 64 KiB of its neighbourhood along.
"""


WORDS_REMEMBERED = 2**16
"""Words that a reader of sentences keeps in memory."""


class NumberedSentence(NamedTuple):
    """The number of a sentence in its corpus, from 0, and its words as they are written."""

    number: int
    words: List[str]


class TooShort(ConfigurationError):
    """There is too little text for the streams that a loader shall cut it into."""


OF_WINDOWS = 1
"""Tells the random numbers of the windows of an epoch from those of its order."""

HALF_AS_LONG = 0.05
"""The share of windows about half as long."""

DEVIATION = 5 / 70
"""The standard deviation of the length of windows, as a share of the usual length."""

SIZES_AT_ONCE = 2**12
"""How many lengths are drawn together."""


def random_sizes(usual: int, total: int, generator: numpy.random.Generator) -> numpy.ndarray:
    """
    The random lengths of windows that hold `total` positions together, the last one in part; shape
    `(windows,)`. They are the same, as far as they go, for any `total`.
    """
    found = numpy.zeros(0, dtype=numpy.int64)
    while found.sum() < total:
        is_half = generator.random(SIZES_AT_ONCE) < HALF_AS_LONG
        means = numpy.where(is_half, usual / 2, usual)
        drawn = generator.normal(means, DEVIATION * usual)
        found = numpy.concatenate([found, numpy.maximum(1, numpy.rint(drawn)).astype(numpy.int64)])
    return found[: int(numpy.searchsorted(numpy.cumsum(found), total)) + 1]


@DataLoader.register("elmo_scratch_stream")
class StreamLoader(DataLoader):
    """
    Cuts a corpus into `batch_size` parallel streams, and the streams into windows of `unroll_steps`
    positions. This is the original's scheme, except that the model also reads the end of a
    sentence, as it does in use. A language model carries its state from window to window.

    A batch holds one field, "windows", with the tensors

    - `words`, shape `(distinct,)`: the ids of the distinct words of the batch in the vocabulary;
    - `characters`, shape `(distinct, characters)`: their spelling, if the reader has an indexer of
      characters;
    - `left_to_right` and `right_to_left`, shape `(batch, positions)`: the words that each direction
      reads, as rows of `words`;
    - `left_to_right_targets` and `right_to_left_targets`, shape `(batch, positions)`: the id of the
      word that follows in each direction, and 0 where none is predicted: after the end of a
      sentence, where the next position is certain, and where a stream has ended;
    - `mask`, of bool, shape `(batch, positions)`: where a stream goes on;
    - `is_first`, of bool, shape `()`: whether an epoch begins;
    - `unroll_steps`, shape `()`, if windows have random lengths: that setting.

    Registered as a `DataLoader` with name "elmo_scratch_stream".

    # Parameters

    reader : `DatasetReader`
        A reader "elmo_scratch_sentences". Its tokenizer and indexers apply.
    data_path : `DataPath`
        Text files, one sentence a line, plain or compressed: a path, a pattern such as
        `corpus/*.txt.gz`, or a list of those.
    batch_size : `int`
        How many streams each worker reads.
    unroll_steps : `int`, optional (default = `20`, the original's value)
        Positions of a window.
    random_windows : `bool`, optional (default = `False`)
        Whether each batch has windows of a random length, so that each epoch cuts the text in other
        places: mostly `unroll_steps`, in 5 of 100 half of it, and from there by a normal
        distribution with a standard deviation of a 14th of `unroll_steps`. For Merity, Keskar and
        Socher 2018, "Regularizing and Optimizing LSTM Language Models", section 5, `unroll_steps`
        was 70. A language model weighs each word the same in a window of any length.
    shuffle : `bool`, optional (default = `False`)
        Whether each epoch reads the files in a new order.
    shuffle_sentences : `bool`, optional (default = `False`)
        Whether each epoch also reads the sentences of each file in a new order, as the original
        does. Otherwise the state carried to a sentence comes from the sentence before it in the
        text.
    seed : `int`, optional (default = `13370`, AllenNLP's own seed)
        Draws those orders and lengths, independently of all other random numbers. Not below 0.
    cache_dir, skip_empty_shards
        See `PreparedCorpus.of`.

    # Raises

    ConfigurationError
        If the reader is another, a number too small, or the text too short or not readable.
    """

    def __init__(
        self,
        reader: DatasetReader,
        data_path: DataPath,
        *,
        batch_size: int,
        unroll_steps: int = 20,
        random_windows: bool = False,
        shuffle: bool = False,
        shuffle_sentences: bool = False,
        seed: int = 13370,
        cache_dir: Optional[str] = None,
        skip_empty_shards: bool = False,
    ) -> None:
        if not isinstance(reader, SentencesReader):
            raise ConfigurationError(
                "the loader `elmo_scratch_stream` reads plain text: give the dataset reader "
                f"`elmo_scratch_sentences` with it, not {type(reader).__name__}"
            )
        if min(batch_size, unroll_steps) < 1:
            raise ConfigurationError(
                "expected `batch_size` and `unroll_steps` of at least 1, but got "
                f"{batch_size} and {unroll_steps}"
            )
        if seed < 0:
            raise ConfigurationError(f"expected a `seed` of 0 or more, but got {seed}")
        self._reader = reader
        self._data_path = data_path
        self._batch_size = batch_size
        self._unroll_steps = unroll_steps
        self._has_random_windows = random_windows
        self._shuffles = shuffle or shuffle_sentences
        self._shuffles_sentences = shuffle_sentences
        self._seed = seed
        self._rank, self._num_workers = 0, 1
        if is_distributed():
            self._rank = torch.distributed.get_rank()
            self._num_workers = torch.distributed.get_world_size()
        self.way_of_reading = (
            f"batch_size {batch_size}, workers {self._num_workers}, unroll_steps {unroll_steps}, "
            f"shuffle {self._shuffles}, shuffle_sentences {shuffle_sentences}, seed {seed}"
            # Checkpoints of trainings without it lack it.
            + (", random_windows" if random_windows else "")
        )
        """All settings that decide which batches the text is cut into."""
        self._corpus = PreparedCorpus.of(
            data_path, reader.tokenizer, reader.max_tokens, cache_dir, skip_empty_shards
        )
        self.audit = self._corpus.audit
        """The figures of the corpus, with its share of unknown tokens after `index_with`."""
        self._word_indexer, self._character_indexer = stream_indexers(reader)
        self._word_ids: Optional[numpy.ndarray] = None
        self._spelling: Optional[Spelling] = None
        self._device = torch.device("cpu")
        self._epoch = self._epochs_to_skip = self._batches_to_skip = 0
        # The trainer asks for the length of an epoch before it begins.
        self._order = lru_cache(maxsize=1)(self._order_of)
        self._sizes = lru_cache(maxsize=1)(self._sizes_of)
        self._check_size()

    def __len__(self) -> int:
        return len(self._sizes(self._epoch))

    def __iter__(self) -> Iterator[TensorDict]:
        if self._word_ids is None:
            raise ConfigurationError("`index_with` a vocabulary first")
        order, sizes = self._order(self._epoch), self._sizes(self._epoch)
        num_windows = len(sizes)
        skipped = 0
        if self._epoch < self._epochs_to_skip:
            skipped = num_windows
        elif self._epoch == self._epochs_to_skip:
            skipped = self._batches_to_skip
        self._epoch += 1
        yield from ({} for _ in range(skipped))
        first = self._rank * self._batch_size
        text = (self._corpus.tokens, self._corpus.sentence_starts, order)
        streams = [
            windows(*text, stream, sizes, skipped)
            for stream in range(first, first + self._batch_size)
        ]
        for number in range(skipped, num_windows):
            batch = self._batch(self._next_of(streams), int(sizes[number]))
            batch["is_first"] = torch.tensor(number == 0)
            if self._has_random_windows:
                batch["unroll_steps"] = torch.tensor(self._unroll_steps)
            yield move_to_device({"windows": batch}, self._device)

    def skip(self, epochs: int, batches: int) -> None:
        """
        Skips quickly what a resumed training has seen: those batches come out empty.

        # Parameters

        epochs : `int`
            Whole epochs, counted from the first.
        batches : `int`
            Batches of the epoch after them.
        """
        self._epochs_to_skip, self._batches_to_skip = epochs, batches

    def sentences_of_streams(self) -> List[Iterator[NumberedSentence]]:
        """
        Reads the sentences of each stream of the next epoch, in the order in which its windows read
        them.
        """
        order = self._order(self._epoch)
        first = self._rank * self._batch_size
        return [
            self._sentences_of(order, stream) for stream in range(first, first + self._batch_size)
        ]

    def _sentences_of(self, order: StreamOrder, stream: int) -> Iterator[NumberedSentence]:
        tokens, starts = self._corpus.tokens, self._corpus.sentence_starts
        spelled = lru_cache(maxsize=WORDS_REMEMBERED)(self._corpus.words.__getitem__)
        for numbers in order.sentences(stream):
            for number in numbers.tolist():
                read = tokens[starts[number] : starts[number + 1]].tolist()
                yield NumberedSentence(number, list(map(spelled, read)))

    def iter_instances(self) -> Iterator[Instance]:
        """Reads the sentences, for vocabularies that count words of instances."""
        empty = self._corpus.audit.empty_shards
        shards = [shard for shard in list_shards(self._data_path) if str(shard) not in empty]
        return self._reader.read(shards)  # type: ignore[arg-type]

    def index_with(self, vocab: Vocabulary) -> None:
        """
        Gives the words the ids of a vocabulary.

        # Raises

        ConfigurationError
            If it lacks the marks of sentence boundaries in the words' namespace.
        """
        namespace = self._word_indexer.namespace
        assert namespace is not None
        check_marks(vocab, namespace)
        begin, end = (
            vocab.get_token_index(mark, namespace)
            for mark in (BEGIN_SENTENCE_WORD, END_SENTENCE_WORD)
        )
        ids = self._corpus.ids_in(vocab, namespace, self._word_indexer.lowercase_tokens)
        unknown = vocab.get_token_index(vocab._oov_token, namespace)
        share = self._corpus.share_of(ids == unknown)
        self.audit = self._corpus.audit._replace(unknown_share=share)
        log_audit(self.audit, str(self._data_path))
        self._word_ids = numpy.concatenate([[begin, end], ids])
        if self._character_indexer is not None:
            self._spelling = Spelling(
                self._corpus.words.text,
                self._corpus.words.starts,
                self._character_indexer.max_characters_per_token,
                (numpy.flatnonzero(ids == begin), numpy.flatnonzero(ids == end)),
            )

    @property
    def identity(self) -> str:
        """A name that is the same for the same text, split in the same way."""
        return self._corpus.folder.name

    @property
    def epoch(self) -> int:
        """The number of the epoch that comes next, which decides its order."""
        return self._epoch

    @epoch.setter
    def epoch(self, number: int) -> None:
        self._epoch = number

    def set_target_device(self, device: torch.device) -> None:
        """Sets the device of the batches."""
        self._device = device

    def _next_of(self, streams: List[Iterator[Positions]]) -> List[Optional[Positions]]:
        """The next window of each stream, and `None` if it has ended."""
        parts: List[Optional[Positions]] = []
        for start in range(0, len(streams), STREAMS_PER_RELEASE):
            group = streams[start : start + STREAMS_PER_RELEASE]
            parts += [next(stream, None) for stream in group]
            self._corpus.release_pages()
        return parts

    def _batch(self, parts: List[Optional[Positions]], steps: int) -> Dict[str, torch.Tensor]:
        """The windows of all streams, of so many positions, as tensors."""
        shape = (len(parts), steps)
        numbers = numpy.zeros((2, *shape), dtype=numpy.int64)  # both directions
        following = numpy.zeros_like(numbers)
        mask, predicts = numpy.zeros(shape, dtype=bool), numpy.zeros(shape, dtype=bool)
        for row, part in enumerate(parts):
            if part is None:
                continue
            size = min(part.size, steps)
            mask[row, :size] = True
            predicts[row, :size] = part.predicts[:size]
            for direction, read in enumerate((part.left_to_right, part.right_to_left)):
                numbers[direction, row, :size] = read[:size]
                following[direction, row, : part.size - 1] = read[1:]
        distinct, rows = numpy.unique(numbers, return_inverse=True)
        left_to_right, right_to_left = torch.from_numpy(rows.reshape(numbers.shape))
        assert self._word_ids is not None
        targets = numpy.where(predicts, self._word_ids[following], 0)
        batch = {
            "words": torch.from_numpy(self._word_ids[distinct]),
            "left_to_right": left_to_right,
            "right_to_left": right_to_left,
            "left_to_right_targets": torch.from_numpy(targets[0]),
            "right_to_left_targets": torch.from_numpy(targets[1]),
            "mask": torch.from_numpy(mask),
        }
        if self._spelling is not None:
            batch["characters"] = torch.from_numpy(self._spelling.of(distinct))
        return batch

    def _order_of(self, epoch: int) -> StreamOrder:
        """The order of an epoch, the same for all workers."""
        order = StreamOrder(
            self._corpus.sentence_starts,
            self._corpus.shard_starts,
            self._batch_size * self._num_workers,
            numpy.random.SeedSequence([self._seed, epoch]) if self._shuffles else None,
            self._shuffles_sentences,
            self._corpus.release_pages,
        )
        self._corpus.release_pages()
        return order

    def _sizes_of(self, epoch: int) -> numpy.ndarray:
        """
        The positions of each window of an epoch, shape `(windows,)`, enough for the longest stream
        of all workers and the same for all streams.
        """
        order, num_streams = self._order(epoch), self._batch_size * self._num_workers
        longest = max(order.num_positions(stream) for stream in range(num_streams))
        if not self._has_random_windows:
            return numpy.full(-(-longest // self._unroll_steps), self._unroll_steps)
        seed = numpy.random.SeedSequence([self._seed, epoch, OF_WINDOWS])
        return random_sizes(self._unroll_steps, longest, numpy.random.default_rng(seed))

    def _check_size(self) -> None:
        """Raises an error if the corpus is too short."""
        num_streams = self._batch_size * self._num_workers
        needed = num_streams * self._unroll_steps
        num_sentences = len(self._corpus.sentence_starts) - 1
        num_positions = len(self._corpus.tokens) + 2 * num_sentences
        if num_positions < needed or num_sentences < num_streams:
            raise TooShort(
                f"{self._data_path}: {num_sentences} sentences with {num_positions} tokens and "
                f"marks are too short for {num_streams} streams (`batch_size` times workers) with "
                f"windows of {self._unroll_steps} (`unroll_steps`), which need {needed}. Make "
                "either smaller, or give more text."
            )
