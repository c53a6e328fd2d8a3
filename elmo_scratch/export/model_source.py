"""The source of an export's biLM."""

import os
from typing import NamedTuple, Optional, Sequence

import h5py
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.files.paths import local_file
from elmo_scratch.interop.official.files import RELEASED_OPTIONS, RELEASED_WEIGHTS
from elmo_scratch.interop.reading import parted
from elmo_scratch_compat.strangers import trusted


class ModelSource(NamedTuple):
    """
    The files of a biLM, and the settings to load it with.

    # Parameters

    options_file, weight_file : `str`, optional (default = the released original model's addresses)
        Official files; or, as `weight_file` alone, another model that `read_bilm` reads.
    state : `str`, optional (default = `"carry"`)
        The state that a sentence starts from, as in `BiLm`; `None` for the biLM's own.
    matmul_dtype : `str`, optional (default = `"float32"`)
        The precision of matrix products.
    cuda_device : `int`, optional (default = `-1`)
        The number of a GPU, or -1 for the processor.
    warm_up : `Sequence[Sequence[str]]`, optional (default = `None`)
        With the state `"warm"`: the words of the sentences of a text to warm up with.
    default_warm_up : `Sequence[Sequence[str]]`, optional (default = `None`)
        The same, for a biLM that no text has warmed up yet.
    words : `Sequence[str]`, optional (default = none)
        Words whose vectors are cached.
    is_trusted : `bool`, optional (default = `False`)
        Whether an archive's config may name any class, and have it fetch files.
    """

    options_file: Optional[str] = None
    weight_file: Optional[str] = None
    state: Optional[str] = "carry"
    matmul_dtype: str = "float32"
    cuda_device: int = -1
    warm_up: Optional[Sequence[Sequence[str]]] = None
    default_warm_up: Optional[Sequence[Sequence[str]]] = None
    words: Sequence[str] = ()
    is_trusted: bool = False

    def load(self) -> SentenceLayers:
        """
        Loads the biLM, warms it up and caches `words`. Raises `ConfigurationError` if a file or the
        device can't be used, or `state` and `warm_up` don't go together.
        """
        if self.state != "warm" and self.warm_up is not None:
            raise ConfigurationError(
                f"--warm-up-file needs --state warm, but the state is {self.state}"
            )
        layers = self.read()
        warm_up = self.warm_up
        if self.state == "warm" and warm_up is None and not layers.is_warm:
            warm_up = self.default_warm_up
            if warm_up is None:
                raise ConfigurationError(
                    f"{self.weight_file}: the state warm needs a text to warm up with, by "
                    "--warm-up-file"
                )
        if warm_up is not None:
            layers.warm_up(warm_up)
        if self.words:
            layers.cache_words(self.words)
        return layers

    def from_anywhere(self) -> "ModelSource":
        """Returns the same files, for a process with another working folder."""
        return self._replace(
            options_file=_absolute(self.options_file), weight_file=_absolute(self.weight_file)
        )

    def at_rest(self) -> "ModelSource":
        """
        Returns the same biLM for a process that computes nothing of the output. It takes no GPU,
        unless only a GPU can tell whether its products have the precision that was asked for.
        """
        is_told_by_gpu = self.matmul_dtype != "float32"
        device = self.cuda_device if is_told_by_gpu else min(self.cuda_device, -1)
        return self._replace(cuda_device=device, words=())

    def read(self) -> SentenceLayers:
        """Returns the biLM as the files have it: not warmed up, no words cached."""
        with trusted(self.is_trusted):
            return self._read()

    def _read(self) -> SentenceLayers:
        weight_file = self.weight_file or RELEASED_WEIGHTS
        if self.options_file is None and not _is_hdf5(weight_file):
            return SentenceLayers(
                weight_file,
                state=self.state,
                matmul_dtype=self.matmul_dtype,
                cuda_device=self.cuda_device,
            )
        if weight_file.endswith(".tar.gz"):
            raise ConfigurationError(
                f"{weight_file}: an archive holds its options: leave --options-file out"
            )
        try:
            return SentenceLayers.from_official(
                self.options_file or RELEASED_OPTIONS,
                weight_file,
                state=self.state or "reset",
                matmul_dtype=self.matmul_dtype,
                cuda_device=self.cuda_device,
            )
        except ConfigurationError as error:
            missing = {"--options-file": self.options_file, "--weight-file": self.weight_file}
            for option, file in missing.items():
                if file is None and any(missing.values()):
                    raise ConfigurationError(
                        f"{error.message} ({option} was not given: it is that of the released "
                        "original model. Name both files of one model.)"
                    ) from None
            raise


def _absolute(name: Optional[str]) -> Optional[str]:
    """Returns the absolute path; addresses stay as they are."""
    if name is None:
        return None
    file, place = parted(name)
    file = os.path.abspath(file) if os.path.exists(file) else file
    return f"{file}#{place}" if place else file


def _is_hdf5(weight_file: str) -> bool:
    """
    Whether a file holds weights and is no archive, by the ending of its name or else its content.
    """
    if weight_file.endswith((".hdf5", ".h5")):
        return True
    try:
        return bool(h5py.is_hdf5(local_file(weight_file)))
    except ConfigurationError:
        # The reader of the file reports the error.
        return False
