"""The layers of sentences, from lists of words to arrays."""

import json
import logging
from hashlib import sha256
from os import PathLike
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import lazy_groups_of

from elmo_scratch.data.spelling import (
    CharacterWordIndexer,
    IndexedBatch,
    Sentences,
    Word,
    WordIndexer,
    split_ragged_batch,
    warm_up_batches,
    words_of,
)
from elmo_scratch.files.identity import ReadFiles
from elmo_scratch.files.machine import num_processors
from elmo_scratch.interop import read_bilm, write_bilm_folder
from elmo_scratch.interop.archives.sidecar import NO_FACTS, TrainingFacts
from elmo_scratch.interop.many_langs import (
    is_many_langs_folder,
    many_langs_files,
    read_many_langs,
)
from elmo_scratch.interop.named_models import official_file, push_folder, resolve_model
from elmo_scratch.interop.official.files import read_official_bilm
from elmo_scratch.kernels import LstmState, MixedPrecision, device_of
from elmo_scratch.modules.bilm import BiLm, read_in_pieces
from elmo_scratch.modules.lstm import ProjectedLstm
from elmo_scratch.modules.sequences import remove_boundaries
from elmo_scratch.modules.token_encoders import CharCnnEncoder, EncodedTokens, SpelledWordEncoder

logger = logging.getLogger(__name__)

Source = Union[str, PathLike]

MAX_POSITIONS_AT_ONCE = 2**13
"""
How many positions of a batch are read in one go; a larger batch is read in pieces. With the
released original model a piece takes some 100 MiB.
"""

ALLOCATION_FAILURES = ("CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
"""The names that cuBLAS and cuDNN give to a lack of memory."""

CACHED_AT_ONCE = 2**13
"""How many words `cache_words` encodes together."""


class _Model(NamedTuple):
    """A model that was read, and the files that it came from."""

    bilm: BiLm
    word_indexer: WordIndexer
    files: ReadFiles
    facts: TrainingFacts = NO_FACTS


def _read(model: Source) -> _Model:
    """Reads a model of any kind."""
    name = resolve_model(str(model))
    if is_many_langs_folder(name):
        files = ReadFiles(many_langs_files(name))
        bilm, blueprint = read_many_langs(name)
        return _Model(bilm, blueprint.word_indexer, files)
    read = read_bilm(name)
    return _Model(read.bilm, read.word_indexer, read.files, read.facts)


class SentenceLayers:
    """
    Runs a trained biLM, its dropout off, over sentences that are split already. A batch that
    doesn't fit into a GPU's memory is read in parts, and so are later ones; each row keeps its own
    state.

    # Parameters

    model : `Union[str, PathLike, BiLm]`
        A model of any kind that `read_bilm` reads: an archive, a model folder, a folder of official
        files, a name; or a model folder of ELMoForManyLangs. Or a biLM with its trained weights,
        which needs the next two.
    word_indexer : `WordIndexer`, optional (default = that of the model)
        The indexer that makes its ids.
    files : `ReadFiles`, optional (default = those of the model)
        The files that the biLM was read from.
    state : `str`, optional (default = the biLM's own)
        What a sentence starts from, as in `BiLm`; `"warm"` needs `warm_up` unless the model comes
        with such a state.
    matmul_dtype : `str`, optional (default = `"float32"`)
        With `"bfloat16"`, matrix products run in bfloat16 where that is faster. The attribute of
        this name says which type they run in.
    cuda_device : `int`, optional (default = `-1`)
        The number of a GPU, or -1 for the processor.
    positions_at_once : `int`, optional (default = `MAX_POSITIONS_AT_ONCE`)
        How many positions of a batch are read in one go, at most.

    # Raises

    ConfigurationError
        If the model can't be read, or there is no such GPU.
    ValueError
        If a biLM comes without its indexer and files.
    """

    def __init__(
        self,
        model: Union[BiLm, Source],
        word_indexer: Optional[WordIndexer] = None,
        files: Optional[ReadFiles] = None,
        *,
        state: Optional[str] = None,
        matmul_dtype: str = "float32",
        cuda_device: int = -1,
        positions_at_once: int = MAX_POSITIONS_AT_ONCE,
    ) -> None:
        self.is_alone = True
        """Whether no other process computes on the processors that this one leaves."""
        self._device = device_of(cuda_device)
        self._facts = NO_FACTS
        if not isinstance(model, BiLm):
            bilm, word_indexer, files, self._facts = _read(model)
        elif word_indexer is None or files is None:
            raise ValueError(
                "expected the name of a model, or a `BiLm` with its `word_indexer` and `files`, "
                "but got a `BiLm` alone"
            )
        else:
            bilm = model
        if state is not None:
            bilm.use_state(state)
        self.bilm = bilm.to(self._device).eval().requires_grad_(False)
        MixedPrecision.set_everywhere(bilm, matmul_dtype)
        self.word_indexer, self.files = word_indexer, files
        self.num_layers, self.width = bilm.num_layers, bilm.width
        self.state = bilm.state_memory.state
        self.matmul_dtype = MixedPrecision.used(matmul_dtype, self._device)
        self._positions_at_once = positions_at_once
        self._rows_at_once: Optional[int] = None
        self._warmed_up_with: Optional[str] = None

    @classmethod
    def from_official(
        cls,
        options_file: Source,
        weight_file: Source,
        *,
        state: str = "carry",
        matmul_dtype: str = "float32",
        cuda_device: int = -1,
    ) -> "SentenceLayers":
        """
        Reads paths or addresses of an `options.json` and a `weights.hdf5`. Sentences start from
        `state`, as in `BiLm`; `"warm"` needs `warm_up`. The other arguments are the constructor's.
        Raises `ConfigurationError` if the files or the device can't be used, or the biLM reads
        words: the official files lack the list of words.
        """
        device_of(cuda_device)
        files = ReadFiles([official_file(options_file), official_file(weight_file)])
        bilm = read_official_bilm(options_file, weight_file, state=state)
        encoder = bilm.token_encoder
        if not isinstance(encoder, CharCnnEncoder):
            raise ConfigurationError(
                f"{options_file}: expected a biLM of characters (`char_cnn`), but it reads the "
                "numbers of words, and official files don't say which word has which number. Take "
                "the archive of its training (model.tar.gz) instead."
            )
        word_indexer = CharacterWordIndexer(encoder.max_characters_per_token)
        return cls(bilm, word_indexer, files, matmul_dtype=matmul_dtype, cuda_device=cuda_device)

    @classmethod
    def from_archive(
        cls,
        archive_file: Source,
        *,
        state: str = "carry",
        matmul_dtype: str = "float32",
        cuda_device: int = -1,
    ) -> "SentenceLayers":
        """
        Reads a model as the constructor does, above all the archive of a training, whose own state
        gives way to `state`. A biLM that was trained with the state `"warm"` is warm already. The
        other arguments are those of `from_official`. Raises `ConfigurationError` if the archive or
        the device can't be used.
        """
        return cls(archive_file, state=state, matmul_dtype=matmul_dtype, cuda_device=cuda_device)

    @classmethod
    def from_pretrained(cls, model: Source, **settings: Any) -> "SentenceLayers":
        """
        Reads a model as the constructor does, with its settings: what `save_pretrained` has written
        gives the same vectors, to the bit.
        """
        return cls(model, **settings)

    def save_pretrained(
        self, folder: Source, *, dtype: str = "float32", overwrite: bool = False
    ) -> None:
        """
        Writes a model folder, made if it doesn't exist, whole or not at all: the biLM and the words
        that it reads, without the softmax of its training. Weights are stored as `dtype`, see
        `write_bilm_folder`. Raises `ConfigurationError` if the folder can't be written to or,
        unless `overwrite`, holds a biLM already; `ValueError` if a model folder can't hold the
        biLM, or not in this `dtype`; `OSError` if the disk is full.
        """
        write_bilm_folder(
            self.bilm,
            folder,
            word_indexer=self.word_indexer,
            facts=self._facts,
            dtype=dtype,
            overwrite=overwrite,
        )

    def push_to_hub(self, name: str, *, private: Optional[bool] = None) -> str:
        """
        Uploads what `save_pretrained` writes to the repository `owner/name` of the Hugging Face
        Hub, by `push_folder`, with its errors. Returns the address that reads it back.
        """
        return push_folder(self.save_pretrained, name, private=private)

    @classmethod
    def from_many_langs(
        cls,
        folder: Source,
        *,
        state: str = "carry",
        matmul_dtype: str = "float32",
        cuda_device: int = -1,
    ) -> "SentenceLayers":
        """
        Reads a model folder of ELMoForManyLangs. The other arguments are those of `from_official`.
        Raises `ConfigurationError` if the folder or the device can't be used.
        """
        device_of(cuda_device)
        files = ReadFiles(many_langs_files(folder))
        bilm, blueprint = read_many_langs(folder, state=state)
        return cls(
            bilm,
            blueprint.word_indexer,
            files,
            matmul_dtype=matmul_dtype,
            cuda_device=cuda_device,
        )

    @property
    def identity(self) -> str:
        """
        `"sha256:"` and a hexadecimal number, made of the bytes of the files that the biLM was read
        from, and of the words that it was warmed up with. It is the same for equal files wherever
        they lie. Raises an error if the files have changed since they were read.
        """
        if self._warmed_up_with is None:
            return self.files.identity
        both = f"{self.files.identity} {self._warmed_up_with}"
        return f"sha256:{sha256(both.encode('utf-8')).hexdigest()}"

    @property
    def leaves_a_processor(self) -> bool:
        """
        Whether PyTorch's work leaves a processor to other threads. On a GPU it always does; on
        processors it does where PyTorch uses fewer threads than there are processors, and no other
        process computes on the rest.
        """
        if self._device.type != "cpu":
            return True
        return self.is_alone and torch.get_num_threads() < num_processors()

    def spell(self, sentences: Sentences) -> IndexedBatch:
        """
        Makes the ids that `read` takes of the words of each sentence. It uses neither the biLM nor
        its device, so that one thread can make ids while another reads. Raises `ConfigurationError`
        if the reader's indexers don't suit the biLM, `ValueError` if a sentence is not a sequence
        of words.
        """
        return self.word_indexer.spell(sentences)

    def read(self, batch: IndexedBatch, first_row: int = 0) -> torch.Tensor:
        """
        # Parameters

        batch : `IndexedBatch`
            A batch from `spell`. Where the state is `"carry"`, each row starts from where the row
            of its number last ended; a batch without a word changes nothing.
        first_row : `int`, optional (default = `0`)
            The number of the first row, where `batch` is a part of a larger one.

        # Returns

        `torch.Tensor`
            On the CPU, float32, shape `(layers, batch, tokens, width)`, zero where a sentence has
            ended.

        # Raises

        ConfigurationError
            If no part of the batch fits into the GPU's memory.
        ValueError
            If the state is `"warm"`, and there was no `warm_up`.
        """
        num_rows, longest = batch.mask.shape
        if longest == 0:
            return torch.zeros(self.num_layers, num_rows, 0, self.width, device="cpu")
        memory = self.bilm.state_memory
        parts: List[torch.Tensor] = []
        finals: List[LstmState] = []
        first = 0
        with torch.inference_mode():
            start = memory.start(next(self.bilm.parameters()), num_rows, first_row)
            while first < num_rows:
                last = min(num_rows, first + (self._rows_at_once or num_rows))
                read = None
                try:
                    rows, begin = batch, start
                    if last - first < num_rows:
                        rows = batch.rows(first, last)
                        begin = start.rows(torch.arange(first, last, device=self._device))
                    at_once = self._positions_at_once
                    if (last - first) * (rows.mask.size(1) + 2) > at_once:
                        ids = rows.token_ids()
                        read = read_in_pieces(self.bilm, ids, rows.mask, begin, at_once)
                    else:
                        read = self.bilm.read_tokens(self._token_layer(rows), begin)
                        layers = read.output.layers.cpu()
                        read = read._replace(output=read.output._replace(layers=layers))
                except RuntimeError as error:
                    if not _is_out_of_memory(error):
                        raise
                if read is None:
                    # The memory of the failed try is freed only here.
                    self._halve(last - first)
                    continue
                parts.append(read.output.layers)
                finals.append(read.state)
                first = last
            is_whole = len(parts) == 1
            final = finals[0] if is_whole else LstmState(*(torch.cat(of, 1) for of in zip(*finals)))
            memory.keep(final, first_row)
            layers = remove_boundaries(parts[0] if is_whole else _put_together(parts))
            lengths = torch.tensor(batch.lengths, device="cpu")
            shorter = (lengths < longest).nonzero().squeeze(1)
            # The end marks lie there.
            layers[:, shorter, lengths[shorter]] = 0.0
        # The same memory as an ordinary tensor: an inference tensor can't enter a model that
        # is trained.
        return torch.from_numpy(layers.numpy())

    def _token_layer(self, batch: IndexedBatch) -> EncodedTokens:
        """Encodes the tokens of a batch."""
        encoder, mask = self.bilm.token_encoder, batch.mask.to(self._device)
        if batch.words is not None and isinstance(encoder, SpelledWordEncoder):
            words, places = batch.words.to(self._device), batch.ids.to(self._device)
            return encoder.encode_laid(words, places, mask)
        return encoder(batch.token_ids().to(self._device), mask)

    def _halve(self, num_rows: int) -> None:
        """
        Halves the sentences and positions that are read at once, after `num_rows` sentences didn't
        fit; raises `ConfigurationError` if there is nothing to halve.
        """
        if num_rows == 1 and self._positions_at_once == 1:
            raise ConfigurationError(
                "the GPU's memory doesn't hold the work on a single word. Free some of it, take "
                "another GPU, or the processor (`cuda_device` -1)."
            )
        for module in self.bilm.modules():
            if isinstance(module, ProjectedLstm):
                module.forget_recordings()
        torch.cuda.empty_cache()
        self._rows_at_once = max(1, num_rows // 2)
        self._positions_at_once = max(1, self._positions_at_once // 2)
        logger.warning(
            "the GPU's memory does not hold a batch; it is read in parts of %d sentences and %d "
            "positions from now on",
            self._rows_at_once,
            self._positions_at_once,
        )

    def __call__(self, sentences: Sentences) -> List[numpy.ndarray]:
        """
        `spell` and `read` in one. Returns for each sentence its layers, float32, shape `(layers,
        tokens, width)`.
        """
        sentences = words_of(sentences)
        found: List[numpy.ndarray] = []
        for group in split_ragged_batch([len(sentence) for sentence in sentences]):
            batch = self.spell(sentences[group])
            layers = self.read(batch, group.start).numpy()
            found += [
                numpy.ascontiguousarray(layers[:, row, :length])
                for row, length in enumerate(batch.lengths)
            ]
        return found

    def cache_words(self, words: Iterable[str]) -> None:
        """
        Encodes words ahead and caches their vectors, of `2 * width` bytes each. It changes no
        vector, and has no effect on a biLM of words.
        """
        encoder = self.bilm.token_encoder
        if isinstance(encoder, SpelledWordEncoder):
            for group in lazy_groups_of(words, CACHED_AT_ONCE):
                encoder.keep_words(self.spell([group]).token_ids()[0].to(self._device))

    def warm_up(self, sentences: Iterable[Sequence[Word]]) -> None:
        """
        Computes the state that sentences start from where `state` is `"warm"`, from the words of
        each sentence of a text, in order. Raises `ValueError` if `state` is not `"warm"`, or there
        is no sentence.
        """
        digest = sha256()

        def batches() -> Iterator[Tuple[torch.Tensor, torch.Tensor]]:
            for words in warm_up_batches(sentences):
                digest.update(json.dumps(words).encode("utf-8"))
                batch = self.spell(words)
                yield batch.token_ids().to(self._device), batch.mask.to(self._device)

        self.bilm.warm_up(batches())
        self._warmed_up_with = digest.hexdigest()

    @property
    def is_warm(self) -> bool:
        """Whether there is a warm state, from a text or from the biLM's training."""
        return self.bilm.state_memory.is_warm

    def reset_states(self) -> None:
        """Lets the next batch start from zeros where states are carried from batch to batch."""
        self.bilm.reset_states()

    def carried(self) -> Optional[Dict[str, numpy.ndarray]]:
        """
        Returns the state that the next batch starts from, where states are carried: `hidden`, of
        shape `(2 * LSTM layers, batch, dim)`, and `cell`, of shape `(2 * LSTM layers, batch,
        cell)`, with all rows so far. `None` stands for zeros.
        """
        carried = self.bilm.state_memory.carried()
        if carried is None:
            return None
        return {name: part.cpu().numpy() for name, part in carried._asdict().items()}

    def carry_on_from(self, carried: Optional[Dict[str, numpy.ndarray]]) -> None:
        """
        Lets the next batch start from a state that `carried` returned, perhaps in another process;
        `None` stands for zeros. Raises `ValueError` if there is a state, but the biLM's are not
        carried or have another shape.
        """
        if carried is None:
            self.bilm.reset_states()
            return
        state = LstmState(torch.tensor(carried["hidden"]), torch.tensor(carried["cell"]))
        self.bilm.state_memory.carry_on_from(LstmState(*(part.to(self._device) for part in state)))


def _is_out_of_memory(error: RuntimeError) -> bool:
    """Whether a GPU is out of memory. cuBLAS and cuDNN report it in words of their own."""
    return isinstance(error, torch.cuda.OutOfMemoryError) or any(
        name in str(error) for name in ALLOCATION_FAILURES
    )


def _put_together(parts: List[torch.Tensor]) -> torch.Tensor:
    """Joins parts of a batch, each as long as its longest sentence."""
    num_layers, _, _, width = parts[0].shape
    longest = max(part.size(2) for part in parts)
    layers = torch.zeros(
        num_layers, sum(part.size(1) for part in parts), longest, width, device="cpu"
    )
    first = 0
    for part in parts:
        layers[:, first : first + part.size(1), : part.size(2)] = part
        first += part.size(1)
    return layers
