"""The settings of an export: which layers, which type, which part of the text, and their size."""

import hashlib
import json
import logging
import re
import shutil
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export.text import InputText
from elmo_scratch.files.atomic import check_place
from elmo_scratch.interop import LayerFile, LayerFileFacts
from elmo_scratch.interop.layer_files.facts import CHOICES
from elmo_scratch.interop.layer_files.sentence_map import LONGEST_STRING, IndexText

KEPT: Dict[str, Callable[[numpy.ndarray], numpy.ndarray]] = {
    "all": lambda layers: layers,
    "top": lambda layers: layers[-1],
    "average": lambda layers: layers.mean(axis=0),
}
"""The layers of a sentence that are kept; input of shape `(layers, tokens, width)`."""

POOLS: Dict[str, Callable[[numpy.ndarray], numpy.ndarray]] = {
    "mean": lambda vectors: vectors.mean(axis=-2),
    "max": lambda vectors: vectors.max(axis=-2),
}
"""Functions that pool the vectors of all tokens to one; input of shape `(..., tokens, width)`."""

DTYPES: Tuple[str, ...] = CHOICES["dtype"]
"""The types that numbers can have in a file."""


class ExportSettings(NamedTuple):
    """
    The layers that an export keeps, and their form in the file.

    # Parameters

    kept : `str`, optional (default = `"all"`)
        A key of `KEPT`.
    pool : `str`, optional (default = `None`)
        A key of `POOLS`: one vector a sentence instead of one a token.
    dtype : `str`, optional (default = `"float32"`)
        The type of the numbers in the file.
    compression : `str`, optional (default = `None`)
        The compression of the data sets: `"gzip"` or `"lzf"`.
    batch_size : `int`, optional (default = `64`)
        Sentences a batch.
    max_tokens : `int`, optional (default = `None`)
        Fill batches up to so many tokens, padding included, and ignore `batch_size`. Only where
        states are not carried from batch to batch.
    forget_sentences : `bool`, optional (default = `False`)
        Leave the index of sentences out.
    use_sentence_keys : `bool`, optional (default = `False`)
        Make each sentence the key of its vectors, instead of its number; then there is no index.
    """

    kept: str = "all"
    pool: Optional[str] = None
    dtype: str = "float32"
    compression: Optional[str] = None
    batch_size: int = 64
    max_tokens: Optional[int] = None
    forget_sentences: bool = False
    use_sentence_keys: bool = False

    @property
    def has_index(self) -> bool:
        """Whether the file says which sentence has which key."""
        return not (self.forget_sentences or self.use_sentence_keys)

    def of_layers(self, layers: numpy.ndarray) -> numpy.ndarray:
        """
        Returns the array to write, given a sentence's layers of shape `(layers, tokens, width)`.
        """
        vectors = KEPT[self.kept](layers)
        return vectors if self.pool is None else POOLS[self.pool](vectors)


State = Dict[str, numpy.ndarray]


class Span(NamedTuple):
    """Consecutive sentences, from number `start` up to, but without, `stop`."""

    start: int
    stop: int

    @property
    def num_sentences(self) -> int:
        return self.stop - self.start


def facts_of(text: InputText, layers: SentenceLayers, settings: ExportSettings) -> LayerFileFacts:
    """
    Returns the description of an export that its output holds. Its `export` is the same for two
    exports if and only if they write the same vectors of the same sentences under the same keys.
    """
    identity = {
        "text": text.digest,
        "model": layers.identity,
        "matmul_dtype": layers.matmul_dtype,
        "state": layers.state,
        "kept": settings.kept,
        "pool": settings.pool,
        "dtype": settings.dtype,
        "has_index": settings.has_index,
        "use_sentence_keys": settings.use_sentence_keys,
        # Batches change vectors only where states are carried from row to row.
        "batch_size": settings.batch_size if layers.state == "carry" else None,
    }
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode("utf-8")).hexdigest()
    return LayerFileFacts(
        model=layers.identity,
        export=f"sha256:{digest}",
        kept=settings.kept,
        pool=settings.pool,
        layers=layers.num_layers,
        width=layers.width,
        dtype=settings.dtype,
        state=layers.state,
        keys="sentences" if settings.use_sentence_keys else None,
    )


LONGEST_ESCAPE = 6
"""The most bytes of JSON for one byte of UTF-8."""

BYTES_AN_ENTRY = 32
"""The most bytes of an entry's key, quotation marks and separators."""


def check_index(text: InputText, folder: Path, limit: int = LONGEST_STRING) -> None:
    """
    Raises `ConfigurationError`, before the work rather than after it, if the map of the whole
    text's sentences has more than `limit` bytes. `folder` has room for a temporary map.
    """
    at_most = LONGEST_ESCAPE * text.num_bytes + BYTES_AN_ENTRY * text.num_sentences
    if at_most <= limit:
        return
    sentences = ((line, str(number)) for number, line, _ in text.sentences())
    with IndexText.of(sentences, folder) as index:
        if index.size > limit:
            raise ConfigurationError(
                f"{text.name}: the map from its sentences to keys would have {index.size} bytes, "
                f"but HDF5 allows no more than {limit}. Leave it out with --forget-sentences."
            )


logger = logging.getLogger(__name__)

UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")

BYTES_A_DATA_SET = 350
"""The most bytes that HDF5 adds to a data set: 350 with a few hundred, 300 with many."""


def estimated_size(
    text: InputText, span: Span, layers: SentenceLayers, settings: ExportSettings
) -> int:
    """Returns the size of the output for a span of a text in bytes, before compression."""
    num_vectors = span.num_sentences
    if settings.pool is None:
        num_vectors = text.num_tokens * span.num_sentences // max(1, text.num_sentences)
    num_kept = layers.num_layers if settings.kept == "all" else 1
    num_bytes = num_vectors * num_kept * layers.width * numpy.dtype(settings.dtype).itemsize
    return num_bytes + BYTES_A_DATA_SET * span.num_sentences


def in_words(num_bytes: float) -> str:
    """Returns a size with its unit, in steps of 1,000."""
    for unit in UNITS:
        if num_bytes < 1000 or unit == UNITS[-1]:
            break
        num_bytes /= 1000
    return f"{num_bytes:.0f} {unit}" if unit == "bytes" else f"{num_bytes:.1f} {unit}"


def check_room(
    output_file: Path, size: int, *, num_copies: int = 1, num_there: int = 0, is_compressed: bool
) -> None:
    """
    Raises `ConfigurationError` if the disk hasn't room for `num_copies` outputs of `size` bytes, of
    which `num_there` bytes are there already. An output that is joined from parts needs 2 copies.
    Nothing is checked for a compressed output, whose size isn't known.
    """
    try:
        free = shutil.disk_usage(output_file.parent).free
    except OSError:
        return
    if is_compressed:
        return
    if num_copies * size - num_there > free:
        twice = ", and twice that while its parts are put together" if num_copies == 2 else ""
        raise ConfigurationError(
            f"{output_file}: the output would take about {in_words(size)}{twice}, but only "
            f"{in_words(free)} are free there. --dtype float16 halves it, --top or --average "
            "(`output_format`) keep one layer, --pool one vector a sentence, --compression is "
            "slower but smaller."
        )
    if 2 * size - num_there > free:
        logger.warning(
            "%s: %s are free there, not twice what the output takes: that is needed if it takes "
            "more than some minutes, when the parts are put together. They stay until then.",
            output_file,
            in_words(free),
        )


class Shard(NamedTuple):
    """One of `total` parts of a text that are exported separately; `number` counts from 1."""

    number: int
    total: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """
        Reads a shard such as "2/8". Raises `ConfigurationError` if the form is another, or there is
        no such shard.
        """
        match = re.fullmatch(r"(\d+)/(\d+)", text)
        shard = cls(*map(int, match.groups())) if match else None
        if shard is None or not 1 <= shard.number <= shard.total:
            raise ConfigurationError(
                f"expected --shard I/N with I from 1 to N, such as 1/8 for the first of eight, but "
                f"got {text!r}"
            )
        return shard

    @classmethod
    def all_of(cls, count: int) -> "List[Shard]":
        """Returns all shards of a text that is cut into `count`."""
        return [cls(number, count) for number in range(1, count + 1)]

    def span_of(self, num_sentences: int) -> Span:
        """
        Returns the shard's sentences of a text of `num_sentences`. Raises `ConfigurationError` if
        there are more shards than sentences.
        """
        if self.total > num_sentences:
            raise ConfigurationError(
                f"expected no more shards than sentences, but --shard makes {self.total} of "
                f"{num_sentences}"
            )
        return Span(
            (self.number - 1) * num_sentences // self.total,
            self.number * num_sentences // self.total,
        )

    def file_of(self, output_file: Path) -> Path:
        """Returns the path of this shard's output, `NAME.I-of-N`."""
        return output_file.with_name(f"{output_file.name}.{self.number}-of-{self.total}")


def check_output(
    output_file: Path,
    export: str,
    overwrite: bool,
    num_done: int = 0,
    num_sentences: Optional[int] = None,
) -> bool:
    """
    Returns whether the output of this very `export` is there already.

    `overwrite` allows to replace the output of another export. An unfinished run of this one has
    done `num_done` sentences. The output shall have `num_sentences`, if that is known: a shard of
    the export has fewer. Raises `ConfigurationError` if the output can't be written, or another
    file has its name and `overwrite` is not given.
    """
    check_place(output_file)
    if not output_file.exists():
        return False
    try:
        with LayerFile(output_file) as there:
            is_same = there.facts.export == export and num_sentences in (None, len(there))
    except ConfigurationError:
        is_same = False
    if not is_same and not overwrite:
        way_out = (
            f"An unfinished run of this export has done {num_done} sentences: go on and replace it "
            "with --overwrite --resume."
            if num_done
            else "Choose another name, or replace it with --overwrite."
        )
        raise ConfigurationError(
            f"{output_file}: it is there already, and is not the output of this export. {way_out}"
        )
    return is_same
