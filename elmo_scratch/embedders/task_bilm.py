"""
The biLM of a task's model: read from what the config names or, where that is gone, built again by
what the task's folder or archive knows of it. The archive then loads its weights.
"""

import errno
import logging
from os import PathLike
from typing import NamedTuple, Optional, Union

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import BiLmBlueprint, read_bilm
from elmo_scratch.interop.archives.archive import fill_with_nan
from elmo_scratch.interop.many_langs import ManyLangsBlueprint, ManyLangsModel, read_many_langs
from elmo_scratch.interop.official import build_bilm, read_official_bilm
from elmo_scratch.interop.official.options import OfficialBlueprint
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.lstm import STATES

logger = logging.getLogger(__name__)

Folder = Optional[Union[str, PathLike]]
"""A task's output folder, or its unpacked archive."""

READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
"""The errors of a system whose folder can't be written to."""


class OfficialTaskBiLm(NamedTuple):
    """A biLM of official files, and whether the task's folder knew it already."""

    bilm: BiLm
    is_archived: bool


def official_task_bilm(
    options_file: str,
    weight_file: str,
    serialization_dir: Folder,
    *,
    state: str,
    matmul_dtype: str,
) -> OfficialTaskBiLm:
    """
    Reads official files, and stores in the task's folder what it takes to build their biLM again.
    If the folder knows it already, and the files are gone or are another model's, builds a biLM
    with NaN for all weights. Raises `ConfigurationError` if there is neither.
    """
    kept: Optional[OfficialBlueprint] = None
    if serialization_dir is not None:
        kept = OfficialBlueprint.read(serialization_dir, options_file)
    bilm = _read_or_build(options_file, weight_file, kept, state, matmul_dtype)
    if kept is None and serialization_dir is not None:
        try:
            OfficialBlueprint.of(bilm).write(serialization_dir, options_file)
        except OSError as error:
            # The folder of an older model, which is loaded to be used.
            if error.errno not in READ_ONLY:
                raise
    return OfficialTaskBiLm(bilm, is_archived=kept is not None)


def _read_or_build(
    options_file: str,
    weight_file: str,
    kept: Optional[OfficialBlueprint],
    state: str,
    matmul_dtype: str,
) -> BiLm:
    try:
        bilm = read_official_bilm(options_file, weight_file, state=state, matmul_dtype=matmul_dtype)
        if kept is None or kept == OfficialBlueprint.of(bilm):
            return bilm
    except ConfigurationError:
        if kept is None:
            raise
    logger.info("%s is not what it was; its weights come from the archive", weight_file)
    return fill_with_nan(build_bilm(*kept, state=state, matmul_dtype=matmul_dtype)).eval()


def many_langs_task_bilm(folder: str, serialization_dir: Folder, *, state: str) -> ManyLangsModel:
    """
    Reads a model folder of ELMoForManyLangs, and stores in the task's folder what it takes to build
    its biLM again. If the task's folder knows it already, and the model folder is gone or is
    another model's, builds a biLM with NaN for all weights. Raises `ConfigurationError` if there is
    neither.
    """
    kept: Optional[ManyLangsBlueprint] = None
    if serialization_dir is not None:
        kept = ManyLangsBlueprint.read(serialization_dir, folder)
    try:
        model = read_many_langs(folder, state=state)
        if kept is None or kept == model.blueprint:
            if kept is None and serialization_dir is not None:
                model.blueprint.write(serialization_dir, folder)
            return model
    except ConfigurationError:
        if kept is None:
            raise
    logger.info("%s is not what it was; its weights come from the archive", folder)
    return ManyLangsModel(fill_with_nan(kept.build(state)).eval(), kept)


class ArchivedTaskBiLm(NamedTuple):
    """A biLM of an archive, and what it takes to build it again."""

    bilm: BiLm
    blueprint: BiLmBlueprint


def archived_task_bilm(
    pretrained_file: Optional[str], serialization_dir: Folder, name: str, state: Optional[str]
) -> ArchivedTaskBiLm:
    """
    Reads a model of any kind that `read_bilm` reads. AllenNLP leaves out `pretrained_file` when it
    loads a task's archive: then builds a biLM, with random weights, by the blueprint that the
    folder holds under `name`. `state`, unless it is `None`, takes the place of the biLM's own.

    Raises `ConfigurationError` if there is neither, or `state` doesn't go with the biLM.
    """
    if pretrained_file is not None:
        read = read_bilm(pretrained_file)
        bilm, blueprint = read.bilm, read.blueprint
    elif serialization_dir is not None:
        blueprint = BiLmBlueprint.read(serialization_dir, name)
        bilm = blueprint.build()
    else:
        raise ConfigurationError(
            "ELMo needs `pretrained_file`, the archive of a biLM or another model that `allennlp "
            "elmo` reads"
        )
    if state is not None:
        own = bilm.state_memory.state
        if state not in STATES or (state == "warm" != own):
            raise ConfigurationError(
                'expected a `state` "reset" or "carry", or "warm" for a biLM that was trained with '
                f'it, but got "{state}" for one that was trained with "{own}"'
            )
        bilm.use_state(state)
    return ArchivedTaskBiLm(bilm, blueprint)


def configured_task_bilm(params: Params, serialization_dir: Folder) -> BiLm:
    """
    Builds the biLM of an `Elmo`, and takes out of its config what says where the biLM comes from:
    `options_file`, `weight_file`, `state` and `matmul_dtype`, or `pretrained_file`, `state` and
    `namespace`. Raises `ConfigurationError` as the functions above, if both are given, or if the
    archive's biLM reads words.
    """
    pretrained_file = params.pop("pretrained_file", None)
    options_file, weight_file = params.pop("options_file", None), params.pop("weight_file", None)
    if options_file is not None or weight_file is not None:
        if pretrained_file is not None or options_file is None or weight_file is None:
            raise ConfigurationError(
                "expected `options_file` and `weight_file`, or `pretrained_file` in their place, "
                f"but got {options_file!r}, {weight_file!r} and {pretrained_file!r}"
            )
        state, matmul_dtype = params.pop("state", "carry"), params.pop("matmul_dtype", "float32")
        return official_task_bilm(
            options_file, weight_file, serialization_dir, state=state, matmul_dtype=matmul_dtype
        ).bilm
    name = params.pop("namespace", "elmo")
    bilm, blueprint = archived_task_bilm(
        pretrained_file, serialization_dir, name, params.pop("state", None)
    )
    if not bilm.token_encoder.reads_characters:
        raise ConfigurationError(
            f"{pretrained_file}: expected a biLM that reads characters, by the indexer "
            "`elmo_scratch_characters` or `elmo_characters`, but it reads words. One of words is "
            "for the embedder `elmo_scratch`"
        )
    if pretrained_file is not None and serialization_dir is not None:
        blueprint.write(serialization_dir, name)
    return bilm
