"""Sentences to vectors from Python, with the class that users of AllenNLP 0.9 know."""

from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import IO, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import lazy_groups_of

from elmo_scratch.data.lines import BYTE_ORDER_MARK
from elmo_scratch.data.spelling import Word
from elmo_scratch.export.export import export_layers
from elmo_scratch.export.model_source import ModelSource
from elmo_scratch.export.plan import KEPT, ExportSettings
from elmo_scratch.export.text import InputText
from elmo_scratch.modules.bilm import BiLm
from elmo_scratch.terminal import without_information

BATCH_SIZE = 64
"""Sentences that are read together, as in AllenNLP 0.9."""

FilePath = Union[str, PathLike]


class ElmoEmbedder:
    """
    Runs a biLM over sentences that are split already. It replaces AllenNLP 0.9's
    `allennlp.commands.elmo.ElmoEmbedder`.

    By default a sentence starts from where the one of the same place in the batch before ended, as
    in AllenNLP, so that the same sentence gets other vectors the second time. With the state
    `"reset"` or `"warm"` its vectors depend only on its words.

    # Parameters

    options_file, weight_file : `Union[str, PathLike]`, optional (default = the released original)
        Paths or addresses of an `options.json` and a `weights.hdf5`; or, as `weight_file` alone, a
        model of any other kind that `read_bilm` reads: the archive of a trained biLM
        (`model.tar.gz`) or of a task, a model folder, the name of a released model, such as
        `"small"`, a folder or `.zip` with official files.
    cuda_device : `int`, optional (default = `-1`)
        The number of a GPU, or -1 for the processor.
    state : `str`, optional (default = `"carry"`, as in AllenNLP)
        The state that a sentence starts from, as in `BiLm`. `"warm"` needs `warm_up`. `None` stands
        for the model's own.
    matmul_dtype : `str`, optional (default = `"float32"`)
        With `"bfloat16"`, matrix products run in bfloat16.

    # Raises

    ConfigurationError
        If the files or the device can't be used.
    """

    def __init__(
        self,
        options_file: Optional[FilePath] = None,
        weight_file: Optional[FilePath] = None,
        cuda_device: int = -1,
        *,
        state: Optional[str] = "carry",
        matmul_dtype: str = "float32",
    ) -> None:
        self.cuda_device = cuda_device
        self._layers = ModelSource(
            None if options_file is None else str(options_file),
            None if weight_file is None else str(weight_file),
            state=state,
            matmul_dtype=matmul_dtype,
            cuda_device=cuda_device,
        ).read()

    @classmethod
    def from_pretrained(
        cls,
        model: FilePath,
        cuda_device: int = -1,
        *,
        state: Optional[str] = None,
        matmul_dtype: str = "float32",
    ) -> "ElmoEmbedder":
        """
        Reads a model of any kind that `read_bilm` reads. What `save_pretrained` has written gives
        the same vectors, to the bit: by default a sentence starts from the model's own state. The
        other arguments, and the errors, are the constructor's.
        """
        return cls(None, model, cuda_device, state=state, matmul_dtype=matmul_dtype)

    def save_pretrained(
        self, folder: FilePath, *, dtype: str = "float32", overwrite: bool = False
    ) -> None:
        """Writes a model folder. Arguments and errors are those of `SentenceLayers`."""
        self._layers.save_pretrained(folder, dtype=dtype, overwrite=overwrite)

    def push_to_hub(self, name: str, *, private: Optional[bool] = None) -> str:
        """Uploads a model folder, as `SentenceLayers` does."""
        return self._layers.push_to_hub(name, private=private)

    @property
    def elmo_bilm(self) -> BiLm:
        """The biLM, by AllenNLP's name."""
        return self._layers.bilm

    def batch_to_embeddings(
        self, batch: Iterable[Sequence[Word]]
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """
        # Parameters

        batch : `Iterable[Sequence[Word]]`
            The words of each sentence, as strings or tokens.

        # Returns

        `Tuple[torch.Tensor, torch.Tensor]`
            The layers, shape `(batch, layers, tokens, width)`, zero where a sentence has ended; and
            the mask, shape `(batch, tokens)`, an integer tensor with 1 for a token, as in AllenNLP
            0.9. Both are on the device.

        # Raises

        ValueError
            If a sentence is not a sequence of words.
        """
        spelled = self._layers.spell(list(batch))
        layers = self._layers.read(spelled).transpose(0, 1)  # (batch, layers, tokens, width)
        device = torch.device(self.cuda_device if self.cuda_device >= 0 else "cpu")
        return layers.to(device), spelled.mask.long().to(device)

    def embed_sentence(self, sentence: Sequence[Word]) -> numpy.ndarray:
        """
        Returns the layers of a sentence, given its words: float32, shape `(layers, tokens, width)`.
        Raises `ValueError` if it is not a sequence of words.
        """
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Iterable[Sequence[Word]]) -> List[numpy.ndarray]:
        """
        # Parameters

        batch : `Iterable[Sequence[Word]]`
            The words of each sentence, as strings or tokens.

        # Returns

        `List[numpy.ndarray]`
            The layers of each sentence, float32, shape `(layers, tokens, width)`; an empty one has
            no tokens.

        # Raises

        ValueError
            If a sentence is not a sequence of words.
        """
        return self._layers(list(batch))

    def embed_sentences(
        self, sentences: Iterable[Sequence[Word]], batch_size: int = BATCH_SIZE
    ) -> Iterator[numpy.ndarray]:
        """
        Embeds any number of sentences, a batch at a time when it is asked for.

        # Parameters

        sentences : `Iterable[Sequence[Word]]`
            The words of each sentence, as strings or tokens.
        batch_size : `int`, optional (default = `64`)
            Sentences a batch.

        # Returns

        `Iterator[numpy.ndarray]`
            The layers of each sentence, float32, shape `(layers, tokens, width)`.

        # Raises

        ValueError
            If `batch_size` is not positive; later, if a sentence is not a sequence of words.
        """
        _check_batch_size(batch_size)
        return (
            vectors
            for batch in lazy_groups_of(sentences, batch_size)
            for vectors in self.embed_batch(batch)
        )

    def embed_file(
        self,
        input_file: Union[IO[str], FilePath],
        output_file_path: FilePath,
        output_format: str = "all",
        batch_size: int = BATCH_SIZE,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """
        Writes an HDF5 file, as `allennlp elmo` does, with one data set for each line of a text. The
        first sentences start from zeros, or from the warm state. An old file is replaced when the
        new one is whole. After an interruption the same call goes on.

        # Parameters

        input_file : `Union[IO[str], str, PathLike]`
            The text, one sentence a line, its tokens separated by white space: a path, or an open
            file, which is closed in the end. A path takes less memory, and may lead to a treebank
            or JSON lines, by its ending, as `allennlp elmo` reads them.
        output_file_path : `Union[str, PathLike]`
            The file to write.
        output_format : `str`, optional (default = `"all"`)
            `"all"` layers, the `"top"` one or their `"average"`.
        batch_size : `int`, optional (default = `64`)
            Sentences a batch.
        forget_sentences : `bool`, optional (default = `False`)
            Leave out the data set that says which sentence has which key.
        use_sentence_keys : `bool`, optional (default = `False`)
            Make each sentence the key of its vectors, instead of the number of its line.

        # Raises

        ConfigurationError
            If a line is blank, sentences can't be keys, a file can't be read or written, or an
            interrupted export of another text or biLM lies beside it.
        OSError
            If the disk is full. Finished parts are kept: the same call goes on.
        ValueError
            If an argument is wrong.
        """
        if output_format not in KEPT:
            raise ValueError(
                f"expected `output_format` to be one of {', '.join(KEPT)}, got {output_format!r}"
            )
        _check_batch_size(batch_size)
        settings = ExportSettings(
            kept=output_format,
            batch_size=batch_size,
            forget_sentences=forget_sentences,
            use_sentence_keys=use_sentence_keys,
        )
        output_file, text = Path(output_file_path), _text_of(input_file)
        with without_information("elmo_scratch.export.export"):
            export_layers(
                text, output_file, self._layers, settings, overwrite=True, keep_parts=True
            )

    def warm_up(self, sentences: Iterable[Sequence[Word]]) -> None:
        """
        Computes the state that sentences start from where `state` is `"warm"`, from the words of
        each sentence of a text, in order. Raises `ValueError` if `state` is not `"warm"`, or there
        is no sentence.
        """
        self._layers.warm_up(sentences)

    def reset_states(self) -> None:
        """Lets the next batch start from zeros where states are carried from batch to batch."""
        self._layers.reset_states()


def _check_batch_size(batch_size: int) -> None:
    """Refuses empty batches, which would give no end, or no result."""
    if batch_size < 1:
        raise ValueError(f"expected `batch_size` of 1 or more, got {batch_size}")


def _text_of(input_file: Union[IO[str], FilePath]) -> InputText:
    """Returns the text of a file or a path. A file is read to its end and closed."""
    if isinstance(input_file, (str, PathLike)):
        return InputText(str(input_file), Path(input_file))
    name = str(getattr(input_file, "name", "the input"))
    with closing(input_file):
        try:
            lines = list(input_file)
        except UnicodeDecodeError as error:
            raise ConfigurationError(
                f"{name}: expected text in the encoding {error.encoding} that the file was opened "
                f"with ({error.reason}). Give its path, if it is UTF-8, or name its encoding."
            ) from None
    if not all(isinstance(line, str) for line in lines):
        raise ValueError(f"{name}: expected a file that is opened as text, not as bytes")
    lines[:1] = [line.removeprefix(BYTE_ORDER_MARK) for line in lines[:1]]
    return InputText(name, lines)
