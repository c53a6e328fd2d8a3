"""Reads a biLM from whatever a user may name."""

import os
from os import PathLike
from pathlib import Path
from typing import List, NamedTuple, Optional, Tuple, Union

import h5py
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.spelling import CharacterWordIndexer, WordIndexer
from elmo_scratch.data.vocabulary_file import UNKNOWN_WORD, read_vocabulary_file
from elmo_scratch.files.identity import ReadFiles
from elmo_scratch.files.paths import is_address, resolve_path
from elmo_scratch.interop.archives.blueprint import (
    NO_WORDS,
    BiLmBlueprint,
    ListedWordIndexer,
    WordList,
)
from elmo_scratch.interop.archives.sidecar import NO_FACTS, TrainingFacts
from elmo_scratch.interop.folders.reading import MODEL_FILES, is_model_folder, read_model_folder
from elmo_scratch.interop.folders.writing import write_bilm_folder
from elmo_scratch.interop.many_langs import is_many_langs_folder
from elmo_scratch.interop.named_models import (
    HUB,
    hub_folder,
    official_file,
    push_folder,
    resolve_model,
)
from elmo_scratch.interop.official.files import (
    load_tensors,
    read_official_options,
    read_tensors,
)
from elmo_scratch.interop.softmax import (
    NO_SOFTMAX,
    LoadedMixes,
    LoadedSoftmax,
    read_official_softmax,
)
from elmo_scratch.interop.zipped_models import (
    OPTIONS_NAME,
    VOCABULARY_NAME,
    WEIGHTS_NAME,
    SoftmaxFiles,
    official_files,
    softmax_files,
)
from elmo_scratch.modules import BiLm
from elmo_scratch_compat.strangers import told_of

Source = Union[str, PathLike]

NUM_SAMPLES = 8192
"""The words that the original's softmax draws in training (`n_negative_samples_batch`)."""


class LoadedBiLm(NamedTuple):
    """
    A trained biLM, and what came with it: what `read_bilm` returns.

    # Parameters

    bilm : `BiLm`
        The biLM with its trained weights, in evaluation mode.
    blueprint : `BiLmBlueprint`
        Builds the biLM again. Its words are those that the biLM reads or predicts.
    word_indexer : `WordIndexer`
        Makes the ids that the biLM reads.
    files : `ReadFiles`
        The files that it was read from.
    softmax : `LoadedSoftmax`, optional (default = none)
        The softmax, if it was asked for and there is one.
    mixes : `LoadedMixes`, optional (default = `None`)
        The mixes, if an `Elmo` was saved.
    facts : `TrainingFacts`, optional (default = none)
        What is known of its training.
    """

    bilm: BiLm
    blueprint: BiLmBlueprint
    word_indexer: WordIndexer
    files: ReadFiles
    softmax: LoadedSoftmax = NO_SOFTMAX
    mixes: Optional[LoadedMixes] = None
    facts: TrainingFacts = NO_FACTS

    @classmethod
    def from_pretrained(cls, model: Source, *, with_softmax: bool = True) -> "LoadedBiLm":
        """
        Reads a model as `read_bilm` does, with its errors: its softmax too, if it has one and
        `with_softmax`. What `save_pretrained` has written comes back to the bit.
        """
        return read_bilm(model, with_softmax=with_softmax)

    def save_pretrained(
        self, folder: Source, *, dtype: str = "float32", overwrite: bool = False
    ) -> None:
        """
        Writes a model folder, made if it doesn't exist, whole or not at all, with all that came
        with the biLM: its softmax and its words, the mixes of an `Elmo` and, on the model card,
        what is known of its training. Weights are stored as `dtype`, see `write_bilm_folder`.

        # Raises

        ConfigurationError
            If the folder can't be written to or, unless `overwrite`, holds a biLM already.
        OSError
            If the disk is full.
        ValueError
            If a model folder can't hold the biLM, or not in this `dtype`.
        """
        write_bilm_folder(
            self.bilm,
            folder,
            word_indexer=self.word_indexer,
            words=self.blueprint.words,
            softmax=self.softmax,
            mixes=self.mixes,
            facts=self.facts,
            dtype=dtype,
            overwrite=overwrite,
        )

    def push_to_hub(self, name: str, *, private: Optional[bool] = None) -> str:
        """
        Uploads what `save_pretrained` writes to the repository `owner/name` of the Hugging Face
        Hub, by `push_folder`, with its errors. Returns the address that reads it back.
        """
        return push_folder(self.save_pretrained, name, private=private)


def read_bilm(
    model: Source, options_file: Optional[Source] = None, *, with_softmax: bool = False
) -> LoadedBiLm:
    """
    Reads a biLM of any kind.

    # Parameters

    model : `Union[str, PathLike]`
        One of these, a path or an address: the archive of a language model, or of any task's model
        with a biLM of this package in it (`model.tar.gz`, or the output folder of the training); a
        model folder; a folder or `.zip` with official files; an official `weights.hdf5`; the name
        of the model that comes with the package, `"tiny"`, or of a released one, such as
        `"small"`; a model of the Hugging Face Hub, `hf://owner/name`.
        Of a task with several biLMs `archive#place` names one: by its place in the model, such as
        `text_field_embedder.token_embedder_elmo.bilm`, or by a part of that between dots.
    options_file : `Union[str, PathLike]`, optional (default = `None`)
        The `options.json` of a `weights.hdf5`.
    with_softmax : `bool`, optional (default = `False`)
        Read the softmax too, if there is one.

    # Returns

    `LoadedBiLm`
        The biLM, in evaluation mode, and what came with it. Official files store neither dropout
        nor state: there `BiLm`'s defaults apply.

    # Raises

    ConfigurationError
        If it is missing, none of these, damaged or incomplete, or the ids of words are not known.
    """
    with told_of(model, "a biLM", is_named=True):
        return _read(model, options_file, with_softmax)


def _read(model: Source, options_file: Optional[Source], with_softmax: bool) -> LoadedBiLm:
    """Reads a biLM of any kind, by what its name leads to."""
    if options_file is not None:
        return _read_official(options_file, model, None)
    named, place = parted(model)
    model = _resolved(named)
    path = _local(model)
    if place and (official_files(path) or is_model_folder(path) or is_many_langs_folder(path)):
        raise ConfigurationError(
            f"{named}: expected the archive of a task, of whose biLMs #{place} names one, but it "
            f"is a model with one biLM. Leave #{place} out"
        )
    if path.is_file() and h5py.is_hdf5(path):
        raise ConfigurationError(
            f"{model}: official weights need their options: name both files, or the folder with "
            f"{OPTIONS_NAME} and {WEIGHTS_NAME}"
        )
    if is_model_folder(path):
        return LoadedBiLm(*read_model_folder(path, with_softmax=with_softmax))
    if is_many_langs_folder(path):
        raise ConfigurationError(
            f"{model}: expected a biLM of this package or of official files, but it is one of "
            "ELMoForManyLangs. `allennlp elmo`, `ElmoEmbedder`, `SentenceLayers` and the embedder "
            "`elmo_scratch_from_many_langs` read it"
        )
    official = official_files(path)
    if official is not None:
        vocab_file = path / VOCABULARY_NAME
        read = _read_official(*official, vocab_file if vocab_file.exists() else None)
        beside = softmax_files(path) if with_softmax else None
        return read if beside is None else _with_softmax(read, beside)
    return _read_archive(model, path, place, with_softmax)


def parted(model: Source) -> Tuple[str, str]:
    """
    Parts `archive#place` into the name of a model and a place in it, `""` if none is named. A path
    that is there is never parted.
    """
    name = str(model)
    before, mark, place = name.rpartition("#")
    if not mark or (not is_address(name) and os.path.exists(os.path.expanduser(name))):
        return name, ""
    return before, place


def found_model(model: Source) -> Path:
    """
    The local file or folder of a model that is named in one of the ways of `read_bilm`, fetched or
    unpacked if need be. Raises `ConfigurationError` if it is nowhere.
    """
    return _local(_resolved(model))


def _resolved(model: Source) -> str:
    """The path or address of a model that may be named otherwise."""
    name = str(model)
    return str(hub_folder(name)) if name.startswith(HUB) else resolve_model(name)


def _local(model: str) -> Path:
    try:
        return resolve_path(model)
    except FileNotFoundError:
        raise ConfigurationError(f"{model}: there is no such archive") from None


def files_of_folder(folder: Path) -> List[Path]:
    """
    Lists the files whose bytes make the biLM of a model folder, or of a folder of official files,
    what it is; none for anything else.
    """
    official = official_files(folder)
    if is_model_folder(folder):
        files = [folder / name for name in MODEL_FILES]
    elif official is not None:
        files = [*official, folder / VOCABULARY_NAME]
    else:
        files = []
    return [file for file in files if file.is_file()]


def _read_official(
    options_file: Source, weight_file: Source, vocab_file: Optional[Path]
) -> LoadedBiLm:
    """Reads official files; a biLM of words needs its vocabulary file."""
    options = read_official_options(options_file)
    paths = [official_file(options_file), official_file(weight_file)]
    if options.char_cnn is None:
        if vocab_file is None:
            raise ConfigurationError(
                f"{options_file}: expected a biLM of characters (`char_cnn`), but it reads the "
                f"numbers of words. Put {VOCABULARY_NAME}, the words in the order of the rows of "
                "`embedding`, into the folder of the official files, and name the folder; or take "
                "the archive of the training (model.tar.gz)."
            )
        paths.append(vocab_file)
    files = ReadFiles(paths)
    tensors = read_tensors(weight_file, options, str(options_file))
    words = NO_WORDS
    word_indexer: WordIndexer
    if options.char_cnn is None:
        assert vocab_file is not None
        words = _rows_of_words(vocab_file, len(tensors["embedding"]), weight_file)
        word_indexer = ListedWordIndexer(words, lowercase=False)
    else:
        word_indexer = CharacterWordIndexer(options.char_cnn.max_characters_per_token)
    blueprint = BiLmBlueprint(options.to_config(), words)
    bilm = blueprint.build_plain()
    load_tensors(bilm, tensors)
    return LoadedBiLm(bilm.eval(), blueprint, word_indexer, files)


def _with_softmax(read: LoadedBiLm, beside: SoftmaxFiles) -> LoadedBiLm:
    """Adds the softmax that lies beside official files, and the words that it scores."""
    listed = read_vocabulary_file(beside.words)
    trained = read_official_softmax(beside.softmax, len(listed), read.bilm.dim)
    # As the original trains it, if there are so many words.
    config = {"type": "sampled", "num_samples": min(NUM_SAMPLES, len(listed))}
    return read._replace(
        blueprint=read.blueprint._replace(words=WordList(["", *listed], UNKNOWN_WORD)),
        softmax=LoadedSoftmax(config, trained.state_dict()),
    )


def _rows_of_words(vocab_file: Path, num_rows: int, weight_file: Source) -> WordList:
    """Reads the words of the rows of `embedding`; there must be as many."""
    listed = read_vocabulary_file(vocab_file)
    if len(listed) != num_rows:
        raise ConfigurationError(
            f"{vocab_file}: expected as many words as `embedding` in {weight_file} has rows, "
            f"{num_rows}, but it has {len(listed)}. Do both come from the same model?"
        )
    return WordList(["", *listed], UNKNOWN_WORD)


def _read_archive(model: str, path: Path, place: str, with_softmax: bool) -> LoadedBiLm:
    """Reads the archive of a language model or of a task."""
    # AllenNLP's archives need `allennlp.data`, which takes seconds to import. Whoever reads another
    # kind of files doesn't wait for it.
    from elmo_scratch.interop.archives.archive import (
        archive_files,
        archived_config,
        is_language_model,
        language_model_in,
        opened_archive,
        read_as_data,
    )
    from elmo_scratch.interop.archives.archive_indexer import (
        archive_word_indexer,
        predicts_lowercase,
    )
    from elmo_scratch.interop.archives.task_archive import task_bilm_in

    files = ReadFiles(archive_files(model), place)
    with read_as_data(model), opened_archive(model) as folder:
        facts = TrainingFacts.of(folder, path if path.is_dir() else path.parent)
        if not is_language_model(archived_config(folder, model)):
            task = task_bilm_in(folder, model, place)
            bilm = task.bilm.eval()
            return LoadedBiLm(bilm, task.blueprint, task.word_indexer, files, facts=facts)
        if place:
            raise ConfigurationError(
                f"{model}: expected the archive of a task, of whose biLMs #{place} names one, but "
                f"it is that of a language model. Leave #{place} out"
            )
        pretrained, tensors, config = language_model_in(folder, model)
    softmax = NO_SOFTMAX
    if with_softmax:
        lowercase = predicts_lowercase(pretrained)
        softmax = LoadedSoftmax(config["model"]["softmax"], tensors, lowercase)
    return LoadedBiLm(
        pretrained.bilm.eval(),
        pretrained.blueprint,
        archive_word_indexer(pretrained),
        files,
        softmax,
        facts=facts,
    )
