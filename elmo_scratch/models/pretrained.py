"""A language model that starts from the weights of another biLM."""

import logging
from copy import deepcopy
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple, Optional, Union

import torch
from allennlp.common import FromParams, Lazy, Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.nn.parallel import DdpAccelerator

from elmo_scratch.data.vocabulary_file import UNKNOWN_WORD, read_vocabulary_file
from elmo_scratch.interop import BiLmBlueprint, WordList, read_bilm
from elmo_scratch.interop.archives.archive import (
    FROM_ARCHIVE,
    FROM_OFFICIAL,
    fill_with_nan,
)
from elmo_scratch.interop.archives.blueprint import NO_CHANGES, BiLmChanges, has_same_weights
from elmo_scratch.interop.archives.sidecar import (
    keep_bilm_config,
    keep_softmax_config,
    kept_bilm_config,
    kept_softmax_config,
)
from elmo_scratch.interop.archives.weights import Tensors
from elmo_scratch.interop.official.files import read_official_bilm, read_official_options
from elmo_scratch.interop.softmax import DEFAULT_SOFTMAX
from elmo_scratch.models.language_model import LanguageModel
from elmo_scratch.modules import BiLm, OutputSoftmax
from elmo_scratch.modules.token_encoders import WordEncoder
from elmo_scratch_compat.strangers import config_as_data


class PretrainedWeights(NamedTuple):
    """
    The weights that a training starts from. `config` is the configuration of the biLM; `words` are
    in the order of the rows of its tables of words; `bilm` and `softmax` are the tensors of its
    parts, and `softmax_config` says of which kind the latter is. There may be no softmax.
    """

    config: Dict[str, Any]
    words: WordList
    bilm: Tensors
    softmax: Tensors
    softmax_config: Optional[Dict[str, Any]] = None

    @classmethod
    def of_official(
        cls, options_file: str, weight_file: str, vocab_file: Optional[str]
    ) -> "PretrainedWeights":
        """
        Reads files as `read_official_bilm` does. `vocab_file` holds the words of a biLM of words,
        one a line, in the order of the rows of `embedding`. Raises `ConfigurationError` if a file
        is malformed, or `vocab_file` is needed and missing.
        """
        bilm = read_official_bilm(options_file, weight_file)
        config = read_official_options(options_file).to_config()
        # A biLM of characters has no table of words: an empty list of words fits any other.
        words = WordList(["", UNKNOWN_WORD], UNKNOWN_WORD)
        if isinstance(bilm.token_encoder, WordEncoder):
            if vocab_file is None:
                raise ConfigurationError(
                    f"{weight_file}: the biLM reads words, so it needs `vocab_file`, the words in "
                    "the order of the rows of `embedding`"
                )
            listed = read_vocabulary_file(vocab_file)
            if len(listed) + 1 != bilm.token_encoder.embedding.num_embeddings:
                raise ConfigurationError(
                    f"{vocab_file}: expected as many words as `embedding` in {weight_file} has "
                    f"rows, {bilm.token_encoder.embedding.num_embeddings - 1}, but it has "
                    f"{len(listed)}"
                )
            words = WordList(["", *listed], UNKNOWN_WORD)
        return cls(config, words, bilm.state_dict(), {})

    @classmethod
    def of_archive(cls, archive_file: str) -> "PretrainedWeights":
        """Reads a model of any kind as `read_bilm` does, with its errors."""
        read = read_bilm(archive_file, with_softmax=True)
        blueprint, softmax = read.blueprint, read.softmax
        weights = read.bilm.state_dict()
        return cls(blueprint.config, blueprint.words, weights, softmax.tensors, softmax.config)


logger = logging.getLogger(__name__)

WORD_VECTORS = "token_encoder.embedding.weight"
"""The tensor of a biLM of words that has a row for each."""

ARCHIVED_WEIGHTS = "weights.th"
"""Lies beside the config in an unpacked archive, and never in the output folder of a training."""

WEIGHTS = (ARCHIVED_WEIGHTS, "best.th", "model_state_*.th")
"""Files with all weights of the language model."""


class Started(NamedTuple):
    """
    A biLM that is ready to be trained on, and the weights that it started from; `point` is `None`
    where an archive of the training will load the weights.
    """

    bilm: BiLm
    point: Optional[PretrainedWeights]


def start_bilm(
    read: Callable[[], PretrainedWeights],
    words: WordList,
    changes: BiLmChanges = NO_CHANGES,
    serialization_dir: Optional[Union[str, PathLike]] = None,
) -> Started:
    """
    Builds a biLM for the training's `words` from the weights that `read` returns. Words that these
    lack start at random; `changes` are other settings than theirs.

    `serialization_dir` is the output folder of the training, or its unpacked archive. An archive
    has all weights, and the configuration of the biLM beside its vocabulary, so that `read` isn't
    called.

    Raises `ConfigurationError` if `read` fails and the folder has no weights to go on from, or if a
    `warm` state is wanted that doesn't exist.
    """
    kept: Optional[Dict[str, Any]] = None
    # A training that was killed before it saved has no weights and starts anew.
    if serialization_dir is not None and _has_weights(Path(serialization_dir)):
        kept = kept_bilm_config(serialization_dir)
    point: Optional[PretrainedWeights] = None
    if kept is None or not Path(serialization_dir or "", ARCHIVED_WEIGHTS).exists():
        try:
            point = read()
        except ConfigurationError:
            if kept is None:
                raise
    if point is not None and (kept is None or has_same_weights(kept, point.config)):
        # Where both are there, the settings that the training began with count, as in its archive.
        config = changes.of(point.config if kept is None else kept)
        bilm = BiLmBlueprint(config, words).build()
        _copy_bilm(point, words, bilm)
        if kept is None and serialization_dir is not None:
            keep_bilm_config(serialization_dir, config)
        return Started(bilm, point)
    assert kept is not None
    return Started(fill_with_nan(BiLmBlueprint(changes.of(kept), words).build()), None)


def start_softmax(softmax: OutputSoftmax, point: PretrainedWeights, words: WordList) -> bool:
    """
    Copies the rows of words that both vocabularies have from the softmax of `point`. A softmax that
    is more than a table of words is copied whole, if all words are the same. Returns whether there
    was anything that fits.
    """
    own, theirs = dict(softmax.named_parameters()), point.softmax
    is_same = point.words.words == words.words
    if any(name not in theirs for name in own):
        return False
    are_tables = all(
        (len(own[name]), len(theirs[name])) == (len(words.words), len(point.words.words))
        and own[name].shape[1:] == theirs[name].shape[1:]
        for name in own
    )
    if not are_tables and not (
        is_same and all(own[name].shape == theirs[name].shape for name in own)
    ):
        return False
    ids = words.ids_in(point.words)
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(_rows(parameter, theirs[name], ids) if are_tables else theirs[name])
    logger.info("%d of %d words start from known ones", int((ids >= 0).sum()), len(ids))
    return True


def _copy_bilm(point: PretrainedWeights, words: WordList, bilm: BiLm) -> None:
    """Copies the weights of a biLM of the same form; rows of words are matched by spelling."""
    own = bilm.state_dict()
    missing = [name for name in own if name not in point.bilm]
    if missing:
        raise ConfigurationError(
            'a training with the `state` "warm" needs a biLM to start from that was warmed up; '
            'choose "reset" or "carry"'
        )
    copied = {name: point.bilm[name] for name in own}
    if WORD_VECTORS in own:
        ids = words.ids_in(point.words)
        copied[WORD_VECTORS] = _rows(own[WORD_VECTORS], copied[WORD_VECTORS], ids)
    bilm.load_state_dict(copied)


def _has_weights(folder: Path) -> bool:
    """Whether the folder of a training, or of its archive, holds weights."""
    return any(True for name in WEIGHTS for _ in folder.glob(name))


def _rows(own: torch.Tensor, theirs: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Returns rows of `theirs` where there is an id, and of `own` elsewhere."""
    rows = own.detach().clone()
    rows[ids >= 0] = theirs[ids[ids >= 0]]
    return rows


@Model.register(FROM_OFFICIAL, constructor="from_official")
@Model.register(FROM_ARCHIVE, constructor="from_archive")
class StartedLanguageModel(FromParams):
    """
    Makes a `LanguageModel` that starts from a biLM that was trained before: to go on, or to adapt
    it to the texts of a domain. All settings of `LanguageModel` except `bilm` hold here too;
    weights that an `initializer` matches start anew. Words are matched by spelling; new ones start
    at random.

    The configuration of the biLM is saved in the training's output folder and archive, so that the
    archive loads where the files or the other archive are gone.

    Registered as a `Model` with names "elmo_scratch_bilm_from_official" and
    "elmo_scratch_bilm_from_archive".
    """

    default_predictor = LanguageModel.default_predictor

    @classmethod
    def from_official(
        cls,
        vocab: Vocabulary,
        *,
        options_file: str,
        weight_file: str,
        vocab_file: Optional[str] = None,
        bilm: BiLmChanges = NO_CHANGES,
        namespace: str = "tokens",
        serialization_dir: Optional[str] = None,
        ddp_accelerator: Optional[DdpAccelerator] = None,
        **settings: Any,
    ) -> LanguageModel:
        """
        Starts from the official files. These have no softmax: it starts at random.

        # Parameters

        vocab : `Vocabulary`
            Its namespace of words; the marks of sentence boundaries are added to it.
        options_file, weight_file : `str`
            Paths or addresses of an `options.json` and a `weights.hdf5`.
        vocab_file : `str`, optional (default = `None`)
            A vocabulary file, needed for a biLM of words: the words of the rows of `embedding`.
        bilm : `BiLmChanges`, optional (default = none)
            Changes of the defaults of the biLM's dropouts, `state` and `matmul_dtype`, and of its
            token encoder's `sparse`.
        namespace : `str`, optional (default = `"tokens"`)
            The namespace of the words in `vocab`.

        # Raises

        ConfigurationError
            If the files can't be read.
        """
        read = partial(PretrainedWeights.of_official, options_file, weight_file, vocab_file)
        return _started(
            read,
            vocab,
            bilm,
            Params({**settings, "namespace": namespace}),
            serialization_dir=serialization_dir,
            ddp_accelerator=ddp_accelerator,
        )

    @classmethod
    def from_archive(
        cls,
        vocab: Vocabulary,
        *,
        archive_file: str,
        bilm: BiLmChanges = NO_CHANGES,
        namespace: str = "tokens",
        serialization_dir: Optional[str] = None,
        ddp_accelerator: Optional[DdpAccelerator] = None,
        **settings: Any,
    ) -> LanguageModel:
        """
        Starts from the archive of a language model. Its softmax is copied too, if the new one is of
        a kind with the same tensors. By default that is `FullSoftmax`; for an archive with an
        `AdaptiveSoftmax` over the same words, one of the same kind.

        # Parameters

        vocab : `Vocabulary`
            Its namespace of words; the marks of sentence boundaries are added to it.
        archive_file : `str`
            A `model.tar.gz`, or the output folder of a training.
        bilm : `BiLmChanges`, optional (default = none)
            Changes of the archive's dropouts, `state` and `matmul_dtype`, and of its token
            encoder's `sparse`, which is `False` by default.
        namespace : `str`, optional (default = `"tokens"`)
            The namespace of the words in `vocab`.

        # Raises

        ConfigurationError
            If the archive can't be read.
        """
        return _started(
            partial(PretrainedWeights.of_archive, archive_file),
            vocab,
            bilm,
            Params({**settings, "namespace": namespace}),
            serialization_dir=serialization_dir,
            ddp_accelerator=ddp_accelerator,
        )


def _started(
    read: Callable[[], PretrainedWeights],
    vocab: Vocabulary,
    changes: BiLmChanges,
    settings: Params,
    *,
    serialization_dir: Optional[str],
    ddp_accelerator: Optional[DdpAccelerator],
) -> LanguageModel:
    """Makes a language model whose biLM and softmax start from the weights that `read` returns."""
    words = WordList.from_vocabulary(vocab, settings.params["namespace"])
    begun = None if serialization_dir is None else _begun_softmax(Path(serialization_dir))
    started = start_bilm(read, words, changes, serialization_dir)
    given = settings.pop("softmax", None)
    config = _softmax_of(started.point, words) if begun is None else begun
    if given is None and begun is None and serialization_dir is not None:
        keep_softmax_config(serialization_dir, config)

    def softmax(**sizes: Any) -> OutputSoftmax:
        if given is None:
            # The archive may be anybody's.
            with config_as_data():
                made = OutputSoftmax.from_params(Params(deepcopy(config)), **sizes)
        else:
            made = OutputSoftmax.from_params(given, **sizes)
        _start(made, started.point, words)
        return made

    return LanguageModel.from_params(
        settings,
        vocab=vocab,
        bilm=Lazy(lambda **sizes: started.bilm),
        # The weights are copied before the model's `initializer` draws those that it matches.
        softmax=Lazy(softmax),
        serialization_dir=serialization_dir,
        ddp_accelerator=ddp_accelerator,
    )


def _begun_softmax(folder: Path) -> Optional[Dict[str, Any]]:
    """
    The block `softmax` that the training of a folder has taken over from where it started; `None`
    if it starts only now. Older trainings took over none.
    """
    if not _has_weights(folder) or kept_bilm_config(folder) is None:
        return None
    return kept_softmax_config(folder) or DEFAULT_SOFTMAX


def _softmax_of(point: Optional[PretrainedWeights], words: WordList) -> Dict[str, Any]:
    """
    By default a full softmax, which has a row for each word, as a sampled one has: any optimizer
    can train it. One of another form, such as `adaptive`, goes on with its own words alone.
    """
    if point is None or point.softmax_config is None or point.words.words != words.words:
        return DEFAULT_SOFTMAX
    return DEFAULT_SOFTMAX if "weight" in point.softmax else point.softmax_config


def _start(softmax: OutputSoftmax, point: Optional[PretrainedWeights], words: WordList) -> None:
    """Copies the softmax of `point`, or logs why not."""
    if point is not None and point.softmax and not start_softmax(softmax, point, words):
        logger.warning(
            "the softmax starts at random: that of the archive has other tensors, or is no table "
            "of words and has other words. To start from it give the block `softmax` of the "
            "archive's config.json, and its vocabulary."
        )
