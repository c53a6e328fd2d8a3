"""Models that a config takes out of the archive of an earlier training: whole, or a part of one."""

import functools
import glob
import json
import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, List, Optional

from elmo_scratch_compat.namespaces import compare_namespaces
from elmo_scratch_compat.plain_json import read_plain_json
from elmo_scratch_compat.unread_keys import refuse_unread_keys
from elmo_scratch_compat.whole_files import written_beside

FROM_ARCHIVE = "from_archive"
"""The registered name of AllenNLP's model that is read from an archive."""

ARCHIVED_WEIGHTS = "weights.th"
"""Lies beside the config in an unpacked archive, and never in the output folder of a training."""

WEIGHTS = (ARCHIVED_WEIGHTS, "best.th", "model_state_*.th")
"""Files with all weights of a model."""


def follow_archives(module: Any) -> None:
    """
    The archive of a training with the model `from_archive` names the archive that it started from,
    and loads only where that still lies. Its vocabulary lacks the words that came from there. Here
    the training keeps the config of the model that it has read, and the words of both.
    """
    model = module.Model

    @classmethod  # type: ignore[misc]
    def from_archive(
        cls: Any, archive_file: str, vocab: Any = None, serialization_dir: Optional[str] = None
    ) -> Any:
        kept = None if serialization_dir is None else kept_model(serialization_dir)
        if kept is not None and serialization_dir is not None:
            is_archive = os.path.exists(os.path.join(serialization_dir, ARCHIVED_WEIGHTS))
            if is_archive or not _is_there(archive_file):
                return _of_kept(module, kept, vocab, serialization_dir)
        from allennlp.models import archival

        with ExitStack() as stack:
            folder = archival.cached_path(archive_file)
            if not os.path.isdir(folder):
                folder = stack.enter_context(archival.extracted_archive(folder))
            loaded = archival.load_archive(folder)
            found = loaded.model
            if vocab is not None:
                found.vocab.extend_from_vocab(vocab)
                found.extend_embedder_vocab()
                # The training writes its vocabulary, not the model's.
                vars(vocab).update(vars(found.vocab))
            own = loaded.config["model"].as_dict(quiet=True)
            # A training from before configs were kept needs the older archive still.
            is_known = own.get("type") != FROM_ARCHIVE
            if is_known and serialization_dir is not None and not _has_weights(serialization_dir):
                _keep(Path(folder), own, Path(serialization_dir))
        return found

    model.from_archive = from_archive


def _is_there(archive_file: str) -> bool:
    return "://" in archive_file or os.path.exists(archive_file)


def _has_weights(folder: str) -> bool:
    """Whether a model was trained in a folder already."""
    return any(True for name in WEIGHTS for _ in Path(folder).glob(name))


def _of_kept(module: Any, kept: Dict[str, Any], vocab: Any, serialization_dir: str) -> Any:
    """Builds a model by the config that a training kept. Its weights are loaded afterwards."""
    params = module.Params(kept)
    module.remove_keys_from_params(params)
    return module.Model.from_params(params, vocab=vocab, serialization_dir=serialization_dir)


def _kept_path(folder: Path) -> Path:
    # AllenNLP archives the folder `vocabulary`, and takes no file with a dot for a namespace.
    return folder / "vocabulary" / ".elmo_scratch-from_archive.json"


def _keep(parent: Path, model: Dict[str, Any], folder: Path) -> None:
    """Stores the config of a model, and what its training kept beside its vocabulary."""
    path = _kept_path(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    for beside in (parent / "vocabulary").glob(".elmo_scratch*"):
        with written_beside(str(path.parent / beside.name)) as part:
            shutil.copyfile(beside, part)
    with written_beside(str(path)) as part:
        Path(part).write_text(json.dumps(model, indent=2), encoding="utf-8")


def kept_model(folder: Any) -> Optional[Dict[str, Any]]:
    """
    The block `model` that a training with the model `from_archive` kept in its folder, or in its
    unpacked archive; `None` if there is none. Raises `ConfigurationError` if it is damaged.
    """
    from allennlp.common.checks import ConfigurationError

    path = _kept_path(Path(folder))
    if not path.exists():
        return None
    kept = read_plain_json(path, folder)
    if not isinstance(kept, dict) or kept.get("type") == FROM_ARCHIVE:
        raise ConfigurationError(
            f"{path}: expected the config of the model that the training started from, but got "
            f"{kept!r:.60}. Is the archive whole?"
        )
    return kept


def followed(config: Any, folder: Any) -> Any:
    """
    The config of a training with the model that it has read in place of `from_archive`, as far as
    its folder knows it.
    """
    model = config.get("model") if isinstance(config, dict) else None
    if not isinstance(model, dict) or model.get("type") != FROM_ARCHIVE:
        return config
    kept = kept_model(folder)
    return config if kept is None else {**config, "model": kept}


def pack_followed(
    pack: Any, folder: Any, weights: str, path: str, included: Optional[List[str]]
) -> None:
    """
    Packs an archive as `pack`, AllenNLP's `archive_model`, does, with the config as `followed` has
    it.
    """
    folder = Path(folder)
    config = None
    if _kept_path(folder).exists() and (folder / "config.json").exists():
        config = json.loads((folder / "config.json").read_bytes())
    if config is None or (resolved := followed(config, folder)) is config:
        pack(str(folder), weights, path, included)
        return
    with TemporaryDirectory() as temporary:
        copy = Path(temporary)
        (copy / "config.json").write_text(json.dumps(resolved, indent=4), encoding="utf-8")
        for name in ["vocabulary", "meta.json", *(included or [])]:
            for found in map(Path, glob.glob(str(folder / name))):
                place = copy / found.relative_to(folder)
                place.parent.mkdir(parents=True, exist_ok=True)
                (shutil.copytree if found.is_dir() else shutil.copyfile)(found, place)
        pack(temporary, str((folder / weights).absolute()), path, included)


def refuse_unread_keys_and_other_words(from_params: Any) -> None:
    """Patches what builds objects by their configs."""
    compare_namespaces(from_params)
    refuse_unread_keys(from_params)
    join_vocabularies(from_params)


def join_vocabularies(from_params: Any) -> None:
    """
    A part of an archived model that a config takes by `_pretrained` keeps the numbers that words
    had there. In a model with another vocabulary it trains on wrong words, without a word. Here it
    joins the vocabulary in use, or is refused.
    """
    original = from_params.pop_and_construct_arg

    @functools.wraps(original)
    def pop_and_construct_arg(
        class_name: str,
        argument_name: str,
        annotation: Any,
        default: Any,
        params: Any,
        **extras: Any,
    ) -> Any:
        from allennlp.models import archival

        given, vocab = params.get(argument_name, None), extras.get("vocab")
        is_part = isinstance(given, from_params.Params) and "_pretrained" in given
        if argument_name in extras or not is_part or vocab is None:
            return original(class_name, argument_name, annotation, default, params, **extras)
        file = given["_pretrained"].get("archive_file", None)
        load, loaded = archival.load_archive, []

        def load_archive(*args: Any, **kwargs: Any) -> Any:
            loaded.append(load(*args, **kwargs))
            return loaded[-1]

        archival.load_archive = load_archive
        try:
            part = original(class_name, argument_name, annotation, default, params, **extras)
        finally:
            archival.load_archive = load
        _join(part, loaded[0].model.vocab, vocab, file)
        return part

    from_params.pop_and_construct_arg = pop_and_construct_arg


def _join(part: Any, before: Any, vocab: Any, file: str) -> None:
    """
    Lets the tables of words in a part of a model know a vocabulary. Raises `ConfigurationError` if
    it numbers words otherwise than the one `before`, and a table is bound to that.
    """
    from allennlp.common.checks import ConfigurationError

    for module in part.modules():
        if not hasattr(module, "extend_vocab"):
            continue
        namespace = getattr(module, "_vocab_namespace", None)
        if namespace is not None and not getattr(module, "joins_any_vocabulary", False):
            words = before.get_index_to_token_vocabulary(namespace)
            now = vocab.get_index_to_token_vocabulary(namespace)
            moved = next((number for number in words if now.get(number) != words[number]), None)
            if moved is not None:
                raise ConfigurationError(
                    f"{file}: its {type(module).__name__} has a row for each word of the namespace "
                    f"{namespace!r} of its vocabulary, but the training numbers words otherwise: "
                    f"{moved} is {now.get(moved)!r} and was {words[moved]!r}. Let the training's "
                    'vocabulary begin with the archived one, by `vocabulary: { type: "extend", '
                    'directory: "…/vocabulary" }` with the folder of the unpacked archive.'
                )
        module.extend_vocab(vocab)
