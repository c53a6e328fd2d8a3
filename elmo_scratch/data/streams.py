"""
Batches of windows over parallel streams of text, for a language model that carries its state: the
order of sentences, windows, spelling, and the loader. A random order takes no memory, for any
number of sentences.
"""

from functools import lru_cache
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_distributed
from allennlp.data import DataLoader, DatasetReader, Instance, Vocabulary
from allennlp.data.data_loaders import TensorDict
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenIndexer
from allennlp.nn.util import move_to_device

from elmo_scratch.alphabet import (
    BEGIN_SENTENCE_WORD,
    BEGIN_WORD,
    END_SENTENCE_WORD,
    END_WORD,
    PADDING_ID,
    sentence_marks,
)
from elmo_scratch.data.corpus import DataPath, PreparedCorpus, list_shards, log_audit
from elmo_scratch.data.indexers import CharacterIndexer
from elmo_scratch.data.readers import SentencesReader

NUM_ROUNDS = 6
"""Four are enough if both halves are large (Luby and Rackoff 1988); shards may be small."""


class RandomOrder:
    """
    A random order of the numbers below `size`, each part of which is computed on demand: a Feistel
    network over the next larger power of four, applied again while its result is out of range.

    # Source

    Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains": the cycle-walking cipher.
    """

    def __init__(self, size: int, seed: numpy.random.SeedSequence) -> None:
        self._size = size
        self._half = numpy.uint64(max(1, -(-max(0, size - 1).bit_length() // 2)))  # in bits
        self._mask = (numpy.uint64(1) << self._half) - numpy.uint64(1)
        self._keys = seed.generate_state(NUM_ROUNDS, numpy.uint64)

    def at(self, places: numpy.ndarray) -> numpy.ndarray:
        """The numbers at places of the order. Shape `(places,)` → `(places,)`, int64."""
        numbers = self._through(places.astype(numpy.uint64))
        outside = numpy.flatnonzero(numbers >= self._size)
        while len(outside):
            numbers[outside] = self._through(numbers[outside])
            outside = outside[numbers[outside] >= self._size]
        return numbers.astype(numpy.int64)

    def _through(self, numbers: numpy.ndarray) -> numpy.ndarray:
        """Permutes the network's domain: each uint64 number becomes another of them."""
        left, right = numbers >> self._half, numbers & self._mask
        for key in self._keys:
            left, right = right, left ^ (_scattered(right + key) & self._mask)
        return (left << self._half) | right


def _scattered(numbers: numpy.ndarray) -> numpy.ndarray:
    """Mixes uint64 numbers so that each bit depends on all bits (the last step of SplitMix64)."""
    numbers = (numbers ^ (numbers >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> numpy.uint64(31))


MARKS_PER_SENTENCE = 2
"""A begin and an end mark."""

SENTENCES_AT_ONCE = 2**14
"""Sentences of an order that are handled at once, so that memory does not grow with the corpus."""


class Place(NamedTuple):
    """
    A sentence in the order of an epoch: the place of its shard there, its own place in the order of
    the shard, and the position of the epoch at which it begins.
    """

    shard: int
    sentence: int
    position: int


class StreamOrder:
    """
    The order of all sentences of a corpus in one epoch, cut into streams of as equal lengths as
    whole sentences allow. Each stream reads a stretch of the order, so texts stay in their order
    unless sentences are shuffled.

    # Parameters

    sentence_starts : `numpy.ndarray`
        Shape `(sentences + 1,)`: the offset of each sentence among the tokens.
    shard_starts : `numpy.ndarray`
        Shape `(shards + 1,)`: the first sentence of each shard.
    num_streams : `int`
        How many streams.
    seed : `numpy.random.SeedSequence`, optional (default = `None`)
        Draws the order of the epoch. `None` keeps the corpus's own order.
    shuffles_sentences : `bool`, optional (default = `False`)
        Whether the seed also draws the order of the sentences within each shard.
    release : `Callable[[], None]`, optional (default = nothing is done)
        Releases the memory of what was read from disk. The constructor calls it after each part of
        `sentence_starts` that it reads.
    """

    def __init__(
        self,
        sentence_starts: numpy.ndarray,
        shard_starts: numpy.ndarray,
        num_streams: int,
        seed: Optional[numpy.random.SeedSequence] = None,
        shuffles_sentences: bool = False,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self._sentence_starts = sentence_starts
        self._shard_starts = shard_starts
        self._release = release
        num_shards = len(shard_starts) - 1
        self._shards = numpy.arange(num_shards)
        self._seeds = None
        if seed is not None:
            of_shards, *of_sentences = seed.spawn(1 + num_shards)
            numpy.random.default_rng(of_shards).shuffle(self._shards)
            self._seeds = of_sentences if shuffles_sentences else None
        # Sizes in positions: tokens and the marks around each sentence. Shape: (shards,)
        sizes = numpy.diff(sentence_starts[shard_starts])
        sizes += MARKS_PER_SENTENCE * numpy.diff(shard_starts)
        self._shard_ends = numpy.cumsum(sizes[self._shards])
        total = int(self._shard_ends[-1])
        wanted = numpy.arange(num_streams) * total // num_streams
        self._bounds = [*self._places_at(wanted), Place(num_shards, 0, total)]

    def sentences(self, stream: int) -> Iterator[numpy.ndarray]:
        """Yields the numbers of the sentences that a stream reads, part by part."""
        first, end = self._bounds[stream], self._bounds[stream + 1]
        for shard in range(first.shard, end.shard + (end.sentence > 0)):
            begin = first.sentence if shard == first.shard else 0
            yield from self._of_shard(shard, begin, end.sentence if shard == end.shard else None)

    def num_positions(self, stream: int) -> int:
        """The length of a stream in positions."""
        return self._bounds[stream + 1].position - self._bounds[stream].position

    def _of_shard(
        self, shard: int, begin: int = 0, end: Optional[int] = None
    ) -> Iterator[numpy.ndarray]:
        """Yields the numbers of a shard's sentences in the order of the epoch, part by part."""
        number = self._shards[shard]
        first = int(self._shard_starts[number])
        size = int(self._shard_starts[number + 1]) - first
        order = None if self._seeds is None else RandomOrder(size, self._seeds[number])
        end = size if end is None else end
        for start in range(begin, end, SENTENCES_AT_ONCE):
            places = numpy.arange(start, min(start + SENTENCES_AT_ONCE, end))
            yield first + (places if order is None else order.at(places))

    def _places_at(self, positions: numpy.ndarray) -> List[Place]:
        """The sentences that begin nearest to ascending positions of the epoch."""
        found = []
        shards = numpy.searchsorted(self._shard_ends, positions, side="right")
        for shard in numpy.unique(shards).tolist():
            wanted = positions[shards == shard]
            reached = int(self._shard_ends[shard - 1]) if shard else 0
            passed = 0
            for sentences in self._of_shard(shard):
                lengths = self._sentence_starts[sentences + 1] - self._sentence_starts[sentences]
                # The start of each sentence of the part, and the end of the last one.
                spans = numpy.concatenate([[reached], lengths + MARKS_PER_SENTENCE])
                starts = numpy.cumsum(spans)
                reached = int(starts[-1])
                is_here = wanted <= reached
                for position in wanted[is_here]:
                    nearest = _nearest(starts, int(position))
                    found.append(Place(shard, passed + nearest, int(starts[nearest])))
                wanted, passed = wanted[~is_here], passed + len(sentences)
                self._release()
                if not len(wanted):
                    break
        return found


def _nearest(starts: numpy.ndarray, position: int) -> int:
    """The place of the number nearest to `position` among ascending numbers."""
    after = int(numpy.searchsorted(starts, position))
    is_nearer_before = after > 0 and 2 * position < starts[after - 1] + starts[after]
    return after - 1 if is_nearer_before else after


BEGIN, END = 0, 1
"""The marks of sentence boundaries in a stream."""

NUM_MARKS = 2
"""The word of number `n` in the corpus is `n + NUM_MARKS` in a stream."""

POSITIONS_AT_ONCE = 2**13
"""Positions that a stream reads ahead: enough that the overhead of NumPy's calls is negligible."""


class Positions(NamedTuple):
    """
    A stretch of a stream, in two reading orders. Both begin a sentence with a mark, read its words,
    and end with the other mark; both take one sentence after the other.

    All arrays have the shape `(positions,)`. `left_to_right` reads each sentence from its beginning
    to its end, `right_to_left` from its end to its beginning. `predicts`, of bool, tells whether
    the next position belongs to the same sentence, so that it is predicted from here.
    """

    left_to_right: numpy.ndarray
    right_to_left: numpy.ndarray
    predicts: numpy.ndarray

    def between(self, start: int, end: Optional[int] = None) -> "Positions":
        """The positions from `start` on, up to `end`."""
        return Positions(*(array[start:end] for array in self))

    @property
    def size(self) -> int:
        return len(self.left_to_right)

    @classmethod
    def cat(cls, parts: List["Positions"]) -> "Positions":
        """Joins stretches end to end."""
        return cls(*(numpy.concatenate(arrays) for arrays in zip(*parts)))


def read_sentences(
    tokens: numpy.ndarray, sentence_starts: numpy.ndarray, sentences: numpy.ndarray
) -> Positions:
    """
    Reads sentences by their numbers, shape `(read,)`. `tokens` holds the word number of each token;
    `sentence_starts`, shape `(sentences + 1,)`, the offset of each sentence among the tokens.
    """
    starts = sentence_starts[sentences]
    lengths = sentence_starts[sentences + 1] - starts
    spans = lengths + MARKS_PER_SENTENCE
    ends = numpy.cumsum(spans)
    total = int(ends[-1]) if len(ends) else 0
    # The offset of each position within its sentence, the begin mark's being 0.
    offsets = numpy.arange(total) - numpy.repeat(ends - spans, spans)
    lengths_there, starts_there = numpy.repeat(lengths, spans), numpy.repeat(starts, spans)
    predicts = offsets <= lengths_there
    is_word = predicts & (offsets > 0)
    left_to_right = numpy.where(offsets == 0, BEGIN, END)
    right_to_left = numpy.where(offsets == 0, END, BEGIN)
    words = offsets[is_word]
    first = starts_there[is_word]
    left_to_right[is_word] = tokens[first + words - 1].astype(numpy.int64) + NUM_MARKS
    mirrored = first + lengths_there[is_word] - words
    right_to_left[is_word] = tokens[mirrored].astype(numpy.int64) + NUM_MARKS
    return Positions(left_to_right, right_to_left, predicts)


def windows(
    tokens: numpy.ndarray,
    sentence_starts: numpy.ndarray,
    order: StreamOrder,
    stream: int,
    sizes: numpy.ndarray,
    skipped: int = 0,
) -> Iterator[Positions]:
    """
    Cuts a stream of `order` into windows; `tokens` and `sentence_starts` are as in
    `read_sentences`. `sizes`, shape `(windows,)`, are enough for the whole stream.

    Yields windows of `size + 1` positions; the last position is the first of the next window and
    only there to be predicted. The last window may be shorter. The first `skipped` windows are left
    out, and their text isn't read.
    """
    to_skip = int(sizes[:skipped].sum())
    sizes = sizes[skipped:]
    unread = read_sentences(tokens, sentence_starts, numpy.arange(0))
    for sentences in order.sentences(stream):
        lengths = sentence_starts[sentences + 1] - sentence_starts[sentences]
        ends = numpy.cumsum(lengths + MARKS_PER_SENTENCE)
        reached = 0
        while reached < len(sentences):
            start = int(ends[reached - 1]) if reached else 0
            if start + to_skip >= ends[-1]:
                to_skip -= int(ends[-1]) - start
                break
            first = int(numpy.searchsorted(ends, start + to_skip, side="right"))
            before = int(ends[first - 1]) if first else 0
            to_skip -= before - start
            wanted = before + to_skip + POSITIONS_AT_ONCE
            reached = int(numpy.searchsorted(ends, wanted)) + 1
            read = read_sentences(tokens, sentence_starts, sentences[first:reached])
            unread = Positions.cat([unread, read.between(to_skip)])
            to_skip = 0
            # A window has at least one position.
            bounds = numpy.cumsum(sizes[: unread.size])
            num_whole = int(numpy.searchsorted(bounds, unread.size, side="left"))
            begin = 0
            for end in bounds[:num_whole].tolist():
                yield unread.between(begin, end + 1)
                begin = end
            unread, sizes = unread.between(begin), sizes[num_whole:]
    if unread.size:
        yield unread


class Spelling:
    """
    Spells words of a corpus like `alphabet.character_ids`, many at a time.

    # Parameters

    text : `numpy.ndarray`
        Bytes: the UTF-8 forms of all words, end to end.
    starts : `numpy.ndarray`
        Shape `(words + 1,)`: the offset of each word in `text`.
    max_characters : `int`
        Ids of a word.
    marks : `Tuple[numpy.ndarray, numpy.ndarray]`
        The numbers of the words that are written like the begin and the end mark of a sentence, and
        stand for them.
    """

    def __init__(
        self,
        text: numpy.ndarray,
        starts: numpy.ndarray,
        max_characters: int,
        marks: Tuple[numpy.ndarray, numpy.ndarray],
    ) -> None:
        self._text = text
        self._starts = starts
        self._max_characters = max_characters
        self._marks = [
            (numpy.append(words + NUM_MARKS, mark), numpy.array(spelled))
            for words, mark, spelled in zip(marks, (BEGIN, END), sentence_marks(max_characters))
        ]

    def of(self, numbers: numpy.ndarray) -> numpy.ndarray:
        """
        Spells words by their numbers in a stream. Shape `(words,)` → `(words, characters)`, ids as
        in a batch.
        """
        words = numpy.maximum(numbers - NUM_MARKS, 0)
        starts = self._starts[words]
        lengths = numpy.minimum(self._starts[words + 1] - starts, self._max_characters - 2)
        ids = numpy.full((len(numbers), self._max_characters), PADDING_ID, dtype=numpy.int64)
        ids[:, 0] = BEGIN_WORD + 1
        row = numpy.repeat(numpy.arange(len(numbers)), lengths)
        offset = numpy.arange(len(row)) - numpy.repeat(numpy.cumsum(lengths) - lengths, lengths)
        ids[row, offset + 1] = self._text[starts[row] + offset].astype(numpy.int64) + 1
        ids[numpy.arange(len(numbers)), lengths + 1] = END_WORD + 1
        for written_so, spelled in self._marks:
            ids[numpy.isin(numbers, written_so)] = spelled
        return ids


class StreamIndexers(NamedTuple):
    """
    The indexers of a reader: `words` gives the predicted words their ids; `characters` spells them,
    if the biLM reads characters.
    """

    words: SingleIdTokenIndexer
    characters: Optional[CharacterIndexer]


def stream_indexers(reader: SentencesReader) -> StreamIndexers:
    """
    Finds the indexers of the reader of the streams' sentences.

    Raises `ConfigurationError` if it has no indexer of words with a namespace of the vocabulary, or
    other indexers; or if the reader reads only a part of the text, or an indexer adds words.
    Streams are made of whole files.
    """
    if reader.max_instances is not None:
        raise ConfigurationError(
            "the loader `elmo_scratch_stream` reads whole files: take `max_instances` out of the "
            "reader, and name fewer or shorter files"
        )
    by_kind: Dict[type, TokenIndexer] = {
        type(indexer): indexer for indexer in reader.token_indexers.values()
    }
    has_more = len(by_kind) < len(reader.token_indexers)  # two of the same kind
    words, characters = by_kind.pop(SingleIdTokenIndexer, None), by_kind.pop(CharacterIndexer, None)
    has_more = has_more or bool(by_kind)
    if not isinstance(words, SingleIdTokenIndexer) or words.namespace is None or has_more:
        raise ConfigurationError(
            "the loader `elmo_scratch_stream` needs in the reader's `token_indexers` a "
            "`single_id` with a namespace, for the words that are predicted, and, where the biLM "
            "reads characters, an `elmo_scratch_characters`, and no other"
        )
    if words._start_tokens or words._end_tokens or words._feature_name != "text":
        raise ConfigurationError(
            "the loader `elmo_scratch_stream` reads the words of the text and marks sentences "
            "itself: take `start_tokens`, `end_tokens` and `feature_name` out of the `single_id` "
            "of the reader's `token_indexers`"
        )
    assert characters is None or isinstance(characters, CharacterIndexer)
    return StreamIndexers(words, characters)


def check_marks(vocab: Vocabulary, namespace: str) -> None:
    """
    Raises `ConfigurationError` if the namespace of the streams' words lacks the marks of sentence
    boundaries, which a language model adds: every word would pass for an unknown one.
    """
    words = vocab._token_to_index.get(namespace, {})
    if not words.keys() >= {BEGIN_SENTENCE_WORD, END_SENTENCE_WORD}:
        raise ConfigurationError(
            f"expected the marks {BEGIN_SENTENCE_WORD} and {END_SENTENCE_WORD} in the namespace "
            f"{namespace!r} of the vocabulary, as that of the reader's `single_id` is called, but "
            f"they are missing; there are {sorted(vocab.get_namespaces())}. Give the indexer, the "
            "vocabulary and the model the same `namespace`."
        )


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


STREAMS_PER_RELEASE = 8
"""
After reading from this many streams the memory of what they read from disk is released. In a new
order of sentences each read brings 64 KiB of its neighbourhood along.
"""

WORDS_REMEMBERED = 2**16
"""Words that a reader of sentences keeps in memory."""


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
        num_positions = len(self._corpus.tokens) + MARKS_PER_SENTENCE * num_sentences
        if num_positions < needed or num_sentences < num_streams:
            raise TooShort(
                f"{self._data_path}: {num_sentences} sentences with {num_positions} tokens and "
                f"marks are too short for {num_streams} streams (`batch_size` times workers) with "
                f"windows of {self._unroll_steps} (`unroll_steps`), which need {needed}. Make "
                "either smaller, or give more text."
            )
