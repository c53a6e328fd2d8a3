"""The language model, where its training starts from another biLM's weights."""

import logging
from functools import partial
from typing import Any, Callable, Optional

from allennlp.common import FromParams, Lazy, Params
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.nn.parallel import DdpAccelerator

from elmo_scratch.interop import WordList
from elmo_scratch.interop.archives.archive import FROM_ARCHIVE, FROM_OFFICIAL
from elmo_scratch.interop.archives.blueprint import NO_CHANGES, BiLmChanges
from elmo_scratch.models.language_model import LanguageModel
from elmo_scratch.models.starting_point import StartingPoint
from elmo_scratch.models.starting_points import start_bilm, start_softmax
from elmo_scratch.modules.softmaxes import FullSoftmax, OutputSoftmax

logger = logging.getLogger(__name__)


@Model.register(FROM_OFFICIAL, constructor="from_official")
@Model.register(FROM_ARCHIVE, constructor="from_archive")
class StartedLanguageModel(FromParams):
    """
    Makes a `LanguageModel` that starts from a biLM that was trained before: to go on, or to fit it
    to the texts of a domain. All settings of `LanguageModel` but `bilm` hold here too; what an
    `initializer` matches starts anew. Words are matched by their spelling; those that are new start
    at random.

    The configuration of the biLM is kept in the training's own output folder and archive: the
    archive loads where the files or the other archive are no more.

    Registered as a `Model` with names "elmo_scratch_bilm_from_official" and
    "elmo_scratch_bilm_from_archive".
    """

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
        From the official files, which have no softmax: that one starts at random.

        # Parameters

        vocab : `Vocabulary`
            As in `LanguageModel`.
        options_file, weight_file : `str`
            Paths or addresses of an `options.json` and a `weights.hdf5`.
        vocab_file : `str`, optional (default = `None`)
            A vocabulary file, needed for a biLM of words: the words of the rows of `embedding`.
        bilm : `BiLmChanges`, optional (default = none)
            `dropout`, `recurrent_dropout`, `state` and `matmul_dtype` of the biLM, and `sparse` of
            its token encoder, where they shall not be the defaults.
        namespace : `str`, optional (default = `"tokens"`)
            As in `LanguageModel`.

        # Raises

        ConfigurationError
            If the files can't be read.
        """
        read = partial(StartingPoint.of_official, options_file, weight_file, vocab_file)
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
        From the archive of a language model. Its softmax is taken over too, where the new one is of
        a kind that has the same tensors.

        # Parameters

        vocab : `Vocabulary`
            As in `LanguageModel`.
        archive_file : `str`
            A `model.tar.gz`, or the output folder of a training.
        bilm : `BiLmChanges`, optional (default = none)
            `dropout`, `recurrent_dropout`, `state` and `matmul_dtype` of the biLM, where they shall
            not be as they were, and `sparse` of its token encoder, `False` by default.
        namespace : `str`, optional (default = `"tokens"`)
            As in `LanguageModel`.

        # Raises

        ConfigurationError
            If the archive can't be read.
        """
        return _started(
            partial(StartingPoint.of_archive, archive_file),
            vocab,
            bilm,
            Params({**settings, "namespace": namespace}),
            serialization_dir=serialization_dir,
            ddp_accelerator=ddp_accelerator,
        )


def _started(
    read: Callable[[], StartingPoint],
    vocab: Vocabulary,
    changes: BiLmChanges,
    settings: Params,
    *,
    serialization_dir: Optional[str],
    ddp_accelerator: Optional[DdpAccelerator],
) -> LanguageModel:
    """A language model of some settings, whose biLM and softmax start from what `read` gives."""
    words = WordList.from_vocabulary(vocab, settings.params["namespace"])
    started = start_bilm(read, words, changes, serialization_dir)
    given = settings.pop("softmax", None)

    def softmax(**sizes: Any) -> OutputSoftmax:
        made = FullSoftmax(**sizes) if given is None else OutputSoftmax.from_params(given, **sizes)
        _start(made, started.point, words)
        return made

    return LanguageModel.from_params(
        settings,
        vocab=vocab,
        bilm=Lazy(lambda **sizes: started.bilm),
        # Started before the model's `initializer` draws what it shall.
        softmax=Lazy(softmax),
        serialization_dir=serialization_dir,
        ddp_accelerator=ddp_accelerator,
    )


def _start(softmax: OutputSoftmax, point: Optional[StartingPoint], words: WordList) -> None:
    """Takes over the softmax of the starting point, or says why not."""
    if point is not None and point.softmax and not start_softmax(softmax, point, words):
        logger.warning(
            "the softmax starts at random: that of the archive has other tensors, or is no table "
            "of words and has other words. To start from it give the block `softmax` of the "
            "archive's config.json, and its vocabulary."
        )
