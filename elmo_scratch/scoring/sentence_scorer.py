"""Scores sentences and texts by a trained language model, and makes the ids of their words."""

from abc import ABC, abstractmethod
from contextlib import ExitStack
from functools import partial
from os import PathLike
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Union,
)

import h5py
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import lazy_groups_of
from allennlp.data import Batch, DataLoader, DatasetReader, Token, Vocabulary
from allennlp.data.fields import TextField
from allennlp.nn.util import get_text_field_mask

from elmo_scratch.data.lines import split_lines
from elmo_scratch.data.spelling import (
    CharacterWordIndexer,
    IndexedBatch,
    split_ragged_batch,
    words_of,
)
from elmo_scratch.data.streams import StreamLoader, TooShort
from elmo_scratch.data.vocabulary_file import UNKNOWN_WORD, read_vocabulary_file
from elmo_scratch.interop import WordList, read_official_bilm
from elmo_scratch.interop.archives.archive import build_reader, read_as_data, read_language_model
from elmo_scratch.interop.archives.blueprint import ListedWordIndexer
from elmo_scratch.interop.folders.reading import is_model_folder, read_model_folder
from elmo_scratch.interop.many_langs import is_many_langs_folder
from elmo_scratch.interop.named_models import NAMED_MODELS, named_softmax
from elmo_scratch.interop.reading import found_model
from elmo_scratch.interop.softmax import (
    NO_SOFTMAX_FILE,
    LoadedSoftmax,
    build_softmax,
    read_official_softmax,
)
from elmo_scratch.interop.zipped_models import official_files, softmax_files
from elmo_scratch.kernels import MixedPrecision, device_of, without_autocast
from elmo_scratch.modules import (
    BiLm,
    OutputSoftmax,
    Predictions,
    TokenEncoder,
    predict_sentences,
    predict_windows,
)
from elmo_scratch.modules.token_encoders import CharCnnEncoder, WordEncoder
from elmo_scratch.scoring.scores import (
    LikelyWord,
    Predicted,
    PredictedSentence,
    ScoreFile,
    SentenceAssembly,
    SentenceScore,
    likely_words,
)
from elmo_scratch.terminal import without_information
from elmo_scratch_compat.strangers import config_as_data

Sentence = List[Token]
Source = Union[str, PathLike]


class IndexedSentences(NamedTuple):
    """
    Sentences as ids: `ids`, of shape `(batch, tokens)` or `(batch, tokens, characters)`, are read
    by the token encoder; `words`, of shape `(batch, tokens)`, are the words to predict; `mask` has
    the shape `(batch, tokens)`.
    """

    ids: torch.Tensor
    words: torch.Tensor
    mask: torch.Tensor


class SentenceIndexer(ABC):
    """Reads texts for a language model, and gives their words ids. Abstract."""

    @abstractmethod
    def sentences(self, text_file: Source) -> Iterator[Sentence]:
        """Yields the tokens of each sentence; raises `ConfigurationError` as its reader does."""

    @abstractmethod
    def index(self, sentences: Sequence[Sentence]) -> IndexedSentences:
        """Makes ids of sentences, none of which is empty."""


class ReaderIndexer(SentenceIndexer):
    """
    Reads and indexes by the dataset reader of a language model, as its evaluation does. The reader
    makes instances with a field "sentence", from a file and from a list of tokens. `vocab` is the
    vocabulary of its indexers; `encoder` tells which of their ids are read.
    """

    def __init__(self, reader: DatasetReader, vocab: Vocabulary, encoder: TokenEncoder) -> None:
        self._reader = reader
        self._vocab = vocab
        self._encoder = encoder

    def sentences(self, text_file: Source) -> Iterator[Sentence]:
        for instance in self._reader.read(text_file):
            field = instance.fields.get("sentence")
            if not isinstance(field, TextField):
                raise ConfigurationError(
                    f"expected a dataset reader that makes a text field `sentence`, but "
                    f"{type(self._reader).__name__} makes {sorted(instance.fields)}"
                )
            yield field.tokens

    def index(self, sentences: Sequence[Sentence]) -> IndexedSentences:
        instances = [self._reader.text_to_instance(sentence) for sentence in sentences]
        for instance in instances:
            self._reader.apply_token_indexers(instance)
        batch = Batch(instances)
        batch.index_instances(self._vocab)
        text: Dict[str, Dict[str, torch.Tensor]] = batch.as_tensor_dict()["sentence"]  # type: ignore[assignment]
        by_name = {name: ids for tensors in text.values() for name, ids in tensors.items()}
        return IndexedSentences(
            self._encoder.token_ids(text), by_name["tokens"], get_text_field_mask(text)
        )


class ListIndexer(SentenceIndexer):
    """
    Reads one sentence a line, its tokens between white space, and indexes by a list of words, as
    official biLMs do. `max_characters` counts the ids of a word for a biLM of characters; one of
    words has `None`. With `lowercase` words are looked up in lower case.
    """

    def __init__(
        self, words: WordList, max_characters: Optional[int], lowercase: bool = False
    ) -> None:
        self._ids = {word: number for number, word in enumerate(words.words)}
        self._unknown_id = words.unknown_id
        self._lowercase = lowercase
        self._characters = None if max_characters is None else CharacterWordIndexer(max_characters)

    def sentences(self, text_file: Source) -> Iterator[Sentence]:
        for words in split_lines(text_file):
            yield [Token(word) for word in words]

    def index(self, sentences: Sequence[Sentence]) -> IndexedSentences:
        texts = [[token.text or "" for token in sentence] for sentence in sentences]
        lengths = [len(text) for text in texts]
        words = torch.zeros(len(texts), max(lengths), dtype=torch.long, device="cpu")
        for row, text in zip(words, texts):
            looked_up = [word.lower() for word in text] if self._lowercase else text
            ids = [self._ids.get(word, self._unknown_id) for word in looked_up]
            row[: len(text)] = torch.tensor(ids, device="cpu")
        batch = IndexedBatch.of(words, lengths)
        if self._characters is None:
            return IndexedSentences(batch.ids, words, batch.mask)
        spelled = self._characters.spell(texts)
        return IndexedSentences(spelled.token_ids(), words, spelled.mask)


PADDING = 0
"""The id of AllenNLP's padding."""

CORPUS_LOGGERS = [f"elmo_scratch.data.corpus.{name}" for name in ("preparation", "prepared_corpus")]
"""They tell what a corpus holds, which concerns a training."""

STREAMS = "elmo_scratch_stream"
"""The registered name of the loader of running text."""

BATCH_SIZE = 64
"""Sentences of a batch where nothing says how many."""

BATCHES_SORTED_AT_ONCE = 32
"""Sentences are sorted by length among those of so many batches."""


class SentenceScorer:
    """
    Tells how likely a language model finds the words of sentences, by the numbers of its
    evaluation: over the whole vocabulary, from both directions, dropout off.

    # Parameters

    bilm : `BiLm`
        The trained biLM. Its `state` says what a sentence starts from.
    softmax : `OutputSoftmax`
        The trained softmax.
    words : `WordList`
        The vocabulary of the softmax.
    indexer : `SentenceIndexer`
        Makes the ids of words for both.
    batch_size : `int`, optional (default = `BATCH_SIZE`)
        Sentences of a batch. Where the state is carried, scores depend on it.
    streams_of : `Callable[[Source], StreamLoader]`, optional (default = `None`)
        Makes streams of a text, by which `score_text` reads it as running text. Without, it reads
        sentence by sentence.
    cuda_device : `int`, optional (default = `-1`)
        The number of a GPU, or -1 for the processor.

    # Raises

    ConfigurationError
        If there is no such GPU.
    """

    def __init__(
        self,
        bilm: BiLm,
        softmax: OutputSoftmax,
        words: WordList,
        indexer: SentenceIndexer,
        *,
        batch_size: int = BATCH_SIZE,
        streams_of: Optional[Callable[[Source], StreamLoader]] = None,
        cuda_device: int = -1,
    ) -> None:
        self._device = device_of(cuda_device)
        self._bilm = bilm.to(self._device).eval()
        self._softmax = softmax.to(self._device).eval()
        self._words = words
        self._indexer = indexer
        self._batch_size = batch_size
        self._streams_of = streams_of
        sizes = words.sizes()
        self._marks = sizes["begin_id"], sizes["end_id"]
        self._begin, self._end = torch.tensor(self._marks, device=self._device)

    @classmethod
    def from_pretrained(
        cls,
        model: Source,
        *,
        softmax_file: Optional[Source] = None,
        vocab_file: Optional[Source] = None,
        state: Optional[str] = None,
        batch_size: Optional[int] = None,
        cuda_device: int = -1,
    ) -> "SentenceScorer":
        """
        Reads a language model of any kind that has its softmax.

        # Parameters

        model : `Union[str, PathLike]`
            The archive of a language model, or the output folder of its training; a model folder
            that `allennlp elmo-export --format safetensors` wrote, also as `hf://owner/name`; a
            folder or `.zip` with official files, `softmax_weights.hdf5` and `vocab.txt`; the name
            `"original"` or `"original-5.5B"`, whose softmax was published too.
        softmax_file, vocab_file : `Union[str, PathLike]`, optional (default = those of `model`)
            The softmax of official files and its words, as in `from_official`.
        state, batch_size, cuda_device
            As in `from_archive`; for official files as in `from_official`. The sentences of a model
            folder, which keeps no config of an evaluation, are read one by one, from the state that
            the biLM had.

        # Raises

        ConfigurationError
            If the model or the device can't be used, it has no softmax, or it has its own beside
            `softmax_file`.
        ValueError
            If only one of `softmax_file` and `vocab_file` is given.
        """
        if (softmax_file is None) != (vocab_file is None):
            raise ValueError("expected `softmax_file` and `vocab_file` together, but got one")
        if softmax_file is None and str(model) in NAMED_MODELS and not Path(model).exists():
            named = named_softmax(str(model))
            if named is None:
                raise ConfigurationError(f"{model}: {NO_SOFTMAX_FILE}")  # nothing is fetched
            softmax_file, vocab_file = named
        path = found_model(model)
        official = None if is_model_folder(path) else official_files(path)
        if official is not None:
            beside = softmax_files(path) if softmax_file is None else (softmax_file, vocab_file)
            if beside is None:
                raise ConfigurationError(f"{model}: {NO_SOFTMAX_FILE}")
            return cls.from_official(
                *official,
                *beside,
                state=state or "carry",
                batch_size=batch_size or BATCH_SIZE,
                cuda_device=cuda_device,
            )
        if path.is_file() and h5py.is_hdf5(path):
            raise ConfigurationError(
                f"{model}: official weights need their options: name options.json by "
                "--options-file (in Python: `SentenceScorer.from_official`), or the folder of both "
                f"as the model. {NO_SOFTMAX_FILE[0].upper()}{NO_SOFTMAX_FILE[1:]}"
            )
        if is_many_langs_folder(path):
            raise ConfigurationError(
                f"{model}: expected a language model with its softmax, by which words are scored, "
                "but it is a model of ELMoForManyLangs, whose softmax isn't read. Take the archive "
                "of a language model, or official files with their softmax"
            )
        if softmax_file is not None:
            raise ConfigurationError(
                f"{model}: expected official files beside {softmax_file}, but it is a model that "
                "keeps its own softmax, if any. Leave --softmax-file and --vocab-path out"
            )
        if not is_model_folder(path):
            return cls.from_archive(
                path, state=state, batch_size=batch_size, cuda_device=cuda_device
            )
        device_of(cuda_device)
        read = read_model_folder(path, with_softmax=True)
        words, bilm, indexer = read.blueprint.words, read.bilm, read.word_indexer
        softmax = build_softmax(read.softmax, words.sizes()["num_words"], bilm.dim, model)
        if state is not None:
            bilm.use_state(state)
        reads_lowercase = isinstance(indexer, ListedWordIndexer) and indexer.lowercase
        return cls(
            bilm.requires_grad_(False),
            softmax.requires_grad_(False),
            words,
            ListIndexer(words, _characters_of(bilm), reads_lowercase or read.softmax.lowercase),
            batch_size=batch_size or BATCH_SIZE,
            cuda_device=cuda_device,
        )

    @classmethod
    def from_archive(
        cls,
        archive_file: Source,
        *,
        state: Optional[str] = None,
        batch_size: Optional[int] = None,
        cuda_device: int = -1,
    ) -> "SentenceScorer":
        """
        Reads the archive of a language model.

        # Parameters

        archive_file : `Union[str, PathLike]`
            A `model.tar.gz` (a path or an address), or the output folder of a training.
        state : `str`, optional (default = `None`)
            What a sentence starts from, as in `BiLm`. `None` reads a text exactly as `allennlp
            evaluate` does: as running text if the config evaluates by `elmo_scratch_stream`, and
            otherwise sentence by sentence, each from the `state` of the config.
        batch_size : `int`, optional (default = `None`)
            Sentences of a batch, or streams of running text. `None` leaves it to the config.
        cuda_device : `int`, optional (default = `-1`)
            The number of a GPU, or -1 for the processor.

        # Raises

        ConfigurationError
            If the archive or the device can't be used.
        """
        device_of(cuda_device)
        with read_as_data(archive_file):
            read = read_language_model(archive_file)
            (bilm, blueprint, vocab, reader), tensors, config = read
            softmax = build_softmax(
                LoadedSoftmax(config["model"]["softmax"], tensors),
                blueprint.words.sizes()["num_words"],
                bilm.dim,
                archive_file,
            )
            if config["model"].get("matmul_dtype") is not None:
                MixedPrecision.set_everywhere(bilm, config["model"]["matmul_dtype"])
            if config.get("validation_dataset_reader") is not None:
                reader = build_reader(config["validation_dataset_reader"], archive_file)
            loader: Dict[str, Any] = config.get("validation_data_loader") or config["data_loader"]
            streams_of = None
            if state is not None:
                bilm.use_state(state)
            elif loader.get("type") == STREAMS:
                streams_of = partial(_streams, loader, reader, vocab, batch_size)
            # What frozen weights are rearranged to is kept from batch to batch.
            return cls(
                bilm.requires_grad_(False),
                softmax.requires_grad_(False),
                blueprint.words,
                ReaderIndexer(reader, vocab, bilm.token_encoder),
                batch_size=batch_size or _batch_size_of(loader),
                streams_of=streams_of,
                cuda_device=cuda_device,
            )

    @classmethod
    def from_official(
        cls,
        options_file: Source,
        weight_file: Source,
        softmax_file: Source,
        vocab_file: Source,
        *,
        state: str = "carry",
        batch_size: int = BATCH_SIZE,
        cuda_device: int = -1,
    ) -> "SentenceScorer":
        """
        Reads the files of an official model, paths or addresses: `options.json`, `weights.hdf5`,
        an HDF5 file with `softmax/W` and `softmax/b`, and the vocabulary file, one word a line in
        the order of their rows. Texts are then one sentence a line, tokens between white space;
        sentences start from `state`, as in `BiLm`, by default as in the original. Raises
        `ConfigurationError` if a file or the device can't be used, or files don't fit together.
        """
        device_of(cuda_device)
        listed = read_vocabulary_file(vocab_file)
        bilm = read_official_bilm(options_file, weight_file, state=state)
        encoder = bilm.token_encoder
        if isinstance(encoder, WordEncoder) and encoder.embedding.num_embeddings != len(listed) + 1:
            raise ConfigurationError(
                f"{vocab_file}: expected as many words as `embedding` in {weight_file} has rows, "
                f"{encoder.embedding.num_embeddings - 1}, but it has {len(listed)}"
            )
        softmax = read_official_softmax(softmax_file, len(listed), bilm.dim)
        words = WordList(["", *listed], UNKNOWN_WORD)
        return cls(
            bilm.requires_grad_(False),
            softmax.requires_grad_(False),
            words,
            ListIndexer(words, _characters_of(bilm)),
            batch_size=batch_size,
            cuda_device=cuda_device,
        )

    def score(
        self, sentences: Iterable[Sequence[Union[str, Token]]], top: int = 0
    ) -> Iterator[SentenceScore]:
        """
        Scores sentences that are split already, as a text of its own: where the state is carried,
        nothing is carried from an earlier call.

        # Parameters

        sentences : `Iterable[Sequence[Union[str, Token]]]`
            The words of each sentence, at least one, or its tokens.
        top : `int`, optional (default = `0`)
            How many likely words to find at each place.

        # Returns

        `Iterator[SentenceScore]`
            In the order of the sentences, batch by batch.

        # Raises

        ValueError
            If a sentence is no sequence of words, or has none.
        """
        return self._score_sentences(map(_tokens, sentences), top)

    def score_text(
        self,
        text_file: Source,
        top: int = 0,
        done: Callable[[int], object] = lambda sentences: None,
    ) -> Iterator[SentenceScore]:
        """
        Scores the sentences of a file, of any length: memory doesn't grow with it.

        # Parameters

        text_file : `Union[str, PathLike]`
            A path, as the reader of the language model takes it.
        top : `int`, optional (default = `0`)
            How many likely words to find at each place.
        done : `Callable[[int], object]`, optional (default = nothing is done)
            Is told how many more sentences are scored. Where a text is cut into several streams,
            many are before they are yielded.

        # Returns

        `Iterator[SentenceScore]`
            In the order of the text, or in that of the first epoch where the config's loader
            shuffles.

        # Raises

        ConfigurationError
            If the text can't be read, is empty, or is too short for the streams.
        """
        if self._streams_of is not None:
            return self._score_streams(self._streams_of(text_file), top, done)
        return self._score_sentences(self._indexer.sentences(text_file), top, done)

    @torch.no_grad()
    def _score_sentences(
        self,
        sentences: Iterable[Sentence],
        top: int,
        done: Callable[[int], object] = lambda sentences: None,
    ) -> Iterator[SentenceScore]:
        self._bilm.reset_states()
        is_carried = self._bilm.stateful
        # A batch takes as long as its longest sentence. Carried states depend on the order.
        at_once = self._batch_size * (1 if is_carried else BATCHES_SORTED_AT_ONCE)
        first = 0
        for block in lazy_groups_of(sentences, at_once):
            order = list(range(len(block)))
            if not is_carried:
                order.sort(key=lambda number: -len(block[number]))
            scores: Dict[int, SentenceScore] = {}
            for batch in lazy_groups_of(order, self._batch_size):
                lengths = [len(block[number]) for number in batch]
                for rows in [slice(None)] if is_carried else split_ragged_batch(lengths):
                    chosen = [block[number] for number in batch[rows]]
                    numbers = [first + number for number in batch[rows]]
                    scores.update(zip(batch[rows], self._scored(chosen, numbers, top)))
                    done(len(chosen))
            yield from (scores[number] for number in range(len(block)))
            first += len(block)

    def _scored(
        self, sentences: List[Sentence], numbers: List[int], top: int
    ) -> List[SentenceScore]:
        """Scores one batch."""
        ids, words, mask = (part.to(self._device) for part in self._indexer.index(sentences))
        predictions = predict_sentences(self._bilm, ids, words, mask, self._begin, self._end)
        sizes = [len(sentence) + 1 for sentence in sentences]
        directions = [found.split(sizes) for found in self._measured(predictions, top)]
        texts = [[token.text or "" for token in sentence] for sentence in sentences]
        return self._finished(list(map(PredictedSentence, numbers, texts, *directions)), top)

    @torch.no_grad()
    def _score_streams(
        self, loader: StreamLoader, top: int, done: Callable[[int], object]
    ) -> Iterator[SentenceScore]:
        loader.set_target_device(self._device)
        running_text = self._bilm.new_state_memory("carry")
        streams = [SentenceAssembly(sentences) for sentences in loader.sentences_of_streams()]
        with ExitStack() as opened:
            later = [opened.enter_context(ScoreFile()) for _ in streams[1:]]
            for batch in loader:
                windows: Dict[str, torch.Tensor] = batch["windows"]  # type: ignore[assignment]
                predictions = predict_windows(
                    self._bilm, windows, running_text, self._begin, self._end
                )
                directions = [
                    found.split((windows[f"{direction}_targets"] > 0).sum(dim=1).tolist())
                    for direction, found in zip(
                        ("left_to_right", "right_to_left"), self._measured(predictions, top)
                    )
                ]
                whole = [stream.add(*rows) for stream, *rows in zip(streams, *directions)]
                scores = iter(self._finished([one for found in whole for one in found], top))
                done(sum(map(len, whole)))
                yield from (next(scores) for _ in whole[0])
                for file, found in zip(later, whole[1:]):
                    for _ in found:
                        file.add(next(scores))
            for file in later:
                yield from file.scores()

    def _measured(self, predictions: Predictions, top: int) -> List[Predicted]:
        """The losses of the predictions of each direction; their states only for likely words."""
        states, targets = predictions.states, predictions.targets
        # As in the evaluation of the language model.
        states = states.to(torch.promote_types(states.dtype, torch.float32))
        with without_autocast(states.device):
            losses = self._softmax(states, targets).losses
        count = predictions.num_left_to_right
        both = Predicted(losses.tolist(), targets.tolist(), states if top else states[:, :0])
        return both.split([count, len(losses) - count])

    def _finished(self, sentences: List[PredictedSentence], top: int) -> List[SentenceScore]:
        """Makes scores of predictions."""
        likely: Iterator[List[LikelyWord]] = iter(())
        if top and sentences:
            likely = iter(self._likely(sentences, top))
        unknown = self._words.unknown_id
        return [
            SentenceScore(
                number,
                words,
                [place for place, _ in enumerate(words) if left_to_right.targets[place] == unknown],
                [-loss for loss in left_to_right.losses],
                [-loss for loss in right_to_left.losses],
                [next(likely) for _ in words] if top else [],
            )
            for number, words, left_to_right, right_to_left in sentences
        ]

    def _likely(self, sentences: List[PredictedSentence], top: int) -> List[List[LikelyWord]]:
        """The likely words at each place of sentences."""
        with without_autocast(self._device):
            found = likely_words(
                self._softmax,
                torch.cat([sentence.left_to_right.states[:-1] for sentence in sentences]),
                torch.cat([sentence.right_to_left.states[1:] for sentence in sentences]),
                top,
                num_words=len(self._words.words),
                excluded=(PADDING, self._words.unknown_id, *self._marks),
            )
        probabilities, ids = found.values.exp().tolist(), found.indices.tolist()
        names = self._words.words
        return [
            [LikelyWord(names[number], probability) for number, probability in zip(*row)]
            for row in zip(ids, probabilities)
        ]


def _tokens(words: Sequence[Union[str, Token]]) -> Sentence:
    if not all(isinstance(word, Token) for word in words):
        (words,) = words_of([words])
    if len(words) == 0:
        raise ValueError("expected at least one word in each sentence, but one is empty")
    return [word if isinstance(word, Token) else Token(word) for word in words]


def _characters_of(bilm: BiLm) -> Optional[int]:
    """How many ids of characters a word has; `None` for a biLM of words."""
    encoder = bilm.token_encoder
    return encoder.max_characters_per_token if isinstance(encoder, CharCnnEncoder) else None


def _batch_size_of(loader: Dict[str, Any]) -> int:
    """The sentences of a batch in the evaluation of a training."""
    sampler = loader.get("batch_sampler") or {}
    return int(loader.get("batch_size") or sampler.get("batch_size") or BATCH_SIZE)


@without_information(*CORPUS_LOGGERS)
def _streams(
    settings: Dict[str, Any],
    reader: DatasetReader,
    vocab: Vocabulary,
    batch_size: Optional[int],
    text_file: Source,
) -> StreamLoader:
    """The streams of a text, as an evaluation cuts it; `batch_size` as its `--batch-size`."""
    chosen = dict(settings) if batch_size is None else {**settings, "batch_size": batch_size}
    try:
        with config_as_data():
            loader = DataLoader.from_params(Params(chosen), reader=reader, data_path=text_file)
        loader.index_with(vocab)
    except TooShort as error:
        raise ConfigurationError(
            f"{error.message} The model was evaluated on running text, and so is this one; "
            "--state reset (`state`) reads each sentence by itself."
        ) from None
    assert isinstance(loader, StreamLoader)
    return loader
