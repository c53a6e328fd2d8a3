"""The biLM in the archive of a task, as it was fine-tuned there or left as it was."""

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.spelling import CharacterWordIndexer, WordIndexer
from elmo_scratch.interop.archives.archive import read_weights
from elmo_scratch.interop.archives.blueprint import NO_WORDS, BiLmBlueprint, ListedWordIndexer
from elmo_scratch.interop.archives.sidecar import archived_path, kept_in_archive, reading_kept
from elmo_scratch.interop.archives.weights import (
    Source,
    Tensors,
    check_sizes,
    load_weights,
    part_of,
)
from elmo_scratch.interop.official.options import SIDECAR, Options
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder

ANCHOR = "left_to_right.layers.0.input_weight"
"""A weight that each biLM has: what stands before its name is the place of the biLM."""

WARM = "state_memory.hidden"
"""A tensor of a biLM that has a warm state."""


class TaskBiLm(NamedTuple):
    """The biLM of a task, what builds it again, and the maker of its ids."""

    bilm: BiLm
    blueprint: BiLmBlueprint
    word_indexer: WordIndexer


class _Found(NamedTuple):
    """A biLM among a task's weights: where its blueprint and where its weights were found."""

    namespace: str
    blueprint: BiLmBlueprint
    prefix: str


def task_bilm_in(folder: Path, archive_file: Source, place: str = "") -> TaskBiLm:
    """
    Reads the biLM out of the unpacked archive of a model with an embedder of this package, or with
    an `Elmo`; messages call it `archive_file`. Of several, `place` chooses one: where it is in the
    model, or a part of that between dots. Raises `ConfigurationError` if it has none there, or
    several, or its files don't fit together.
    """
    try:
        config: Dict[str, Any] = json.loads((folder / "config.json").read_bytes())
        blueprints = list(_blueprints(folder))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{archive_file}: its config.json, or what it keeps of its biLM in its folder "
            f"`vocabulary`, can't be read: {error!r}"
        ) from None
    except ConfigurationError as error:
        # The folder may be a temporary one.
        told = error.message.replace(f"{folder}{os.sep}", f"{archive_file}: ")
        raise ConfigurationError(told) from None
    if not blueprints:
        kind = _type_of(config)
        raise ConfigurationError(
            f"{archive_file}: expected an archive of the model 'elmo_scratch_bilm', or of a task "
            f"with one of this package's embedders of biLMs, but it holds a {kind!r} without one. "
            "Pre-train a biLM with a config of training_config/bilm/."
        )
    state = read_weights(folder, archive_file)
    places = _matches(blueprints, state, archive_file)
    found = _only(_chosen(places, place, config, archive_file), state, archive_file)
    weights = part_of(state, found.prefix)
    bilm = found.blueprint.build()
    load_weights(bilm, weights, archive_file, found.prefix)
    word_indexer: WordIndexer
    if isinstance(bilm.token_encoder, CharCnnEncoder):
        word_indexer = CharacterWordIndexer(bilm.token_encoder.max_characters_per_token)
    else:
        lowercase = _lower_cases(config, found.namespace, archive_file)
        word_indexer = ListedWordIndexer(found.blueprint.words, lowercase)
    return TaskBiLm(bilm, found.blueprint, word_indexer)


def _type_of(config: Dict[str, Any]) -> Any:
    model = config.get("model")
    return model.get("type") if isinstance(model, dict) else None


def _blueprints(folder: Path) -> Iterator[Tuple[str, BiLmBlueprint]]:
    """
    Yields the blueprints in an unpacked archive, with the namespaces of their words. Official files
    of words have no list of words, and are passed over.
    """
    start, end = archived_path(folder, "_"), ".json"
    for path in sorted(start.parent.glob(f"{start.stem}*{end}")):
        namespace = path.name.removeprefix(start.stem).removesuffix(end)
        blueprint = BiLmBlueprint.read(folder, namespace)
        yield namespace, blueprint
    with reading_kept(folder, SIDECAR):
        for kept in (kept_in_archive(folder, SIDECAR) or {}).values():
            options = Options.from_json(kept["options"], str(archived_path(folder, SIDECAR)))
            if options.char_cnn is not None:
                yield "", BiLmBlueprint(options.to_config(), NO_WORDS)


def _matches(
    blueprints: List[Tuple[str, BiLmBlueprint]], state: Tensors, archive_file: Source
) -> List[_Found]:
    """Finds the places of the weights that fit the blueprints."""
    prefixes = [name.removesuffix(ANCHOR) for name in state if name.endswith(ANCHOR)]
    found: List[_Found] = []
    reason = "there are no weights of a biLM"
    for namespace, blueprint in blueprints:
        for prefix in prefixes:
            weights = part_of(state, prefix)
            own = _with_state(blueprint, weights)
            try:
                check_sizes(own, weights, archive_file, prefix)
                found.append(_Found(namespace, own, prefix))
            except ConfigurationError as error:
                reason = error.message.removeprefix(f"{archive_file}: ")
    if not found:
        raise ConfigurationError(f"{archive_file}: {reason}")
    return found


def _with_state(blueprint: BiLmBlueprint, weights: Tensors) -> BiLmBlueprint:
    """
    Returns the blueprint with the state that the weights were trained with: the embedder may have
    asked for another than its biLM's own.
    """
    state = blueprint.config.get("state", "reset")
    if WARM in weights:
        state = "warm"
    elif state == "warm":
        state = "reset"
    return blueprint._replace(config={**blueprint.config, "state": state})


def _chosen(
    found: List[_Found], place: str, config: Dict[str, Any], archive_file: Source
) -> List[_Found]:
    """
    Leaves out what is elsewhere, unless no place is named; and, where the words of several biLMs
    fit, those of another namespace than the embedder's.
    """
    here = [one for one in found if not place or f".{place}." in f".{one.prefix}"]
    if not here:
        raise ConfigurationError(
            f"{archive_file}: expected a biLM at {place}, but those in it are at {_places(found)}"
        )
    own: Dict[str, List[_Found]] = {}
    for one in here:
        own.setdefault(one.prefix, []).append(one)
    chosen: List[_Found] = []
    for prefix, fitting in own.items():
        key = re.search(r"(?:^|\.)token_embedder_([^.]+)\.", prefix)
        namespace = _namespace(config.get("model"), key[1] if key else "")
        chosen += [one for one in fitting if one.namespace == namespace] or fitting
    return chosen


def _namespace(config: Any, key: str) -> Optional[str]:
    """The namespace of the embedder with a key, in a part of a config; `None` if there is none."""
    parts = config if isinstance(config, list) else []
    if isinstance(config, dict):
        embedders = config.get("token_embedders")
        if isinstance(embedders, dict) and isinstance(embedders.get(key), dict):
            return str(embedders[key].get("namespace", "tokens"))
        parts = list(config.values())
    return next((name for name in (_namespace(part, key) for part in parts) if name), None)


def _places(found: List[_Found]) -> str:
    return " and ".join(sorted({one.prefix.rstrip(".") for one in found}))


def _only(found: List[_Found], state: Tensors, archive_file: Source) -> _Found:
    """Returns the one that was found; the same biLM may be there by several names."""
    first = found[0]
    weights = part_of(state, first.prefix)
    for other in found[1:]:
        others = part_of(state, other.prefix)
        if (
            other.blueprint.config != first.blueprint.config
            or other.blueprint.words.words != first.blueprint.words.words
            or set(others) != set(weights)
            or not all(torch.equal(weights[name], others[name]) for name in weights)
        ):
            if other.prefix == first.prefix:
                raise ConfigurationError(
                    f"{archive_file}: expected the words of one biLM for {_places([first])}, but "
                    f"those of the namespaces {first.namespace!r} and {other.namespace!r} fit it. "
                    "Load the model by AllenNLP's `load_archive`, and save its biLM by "
                    "`write_bilm_folder` of `elmo_scratch`."
                )
            raise ConfigurationError(
                f"{archive_file}: expected one biLM, but there are several: {_places(found)}. "
                "Name the one that you want behind the archive, as in "
                f"{archive_file}#{first.prefix.rstrip('.')}"
            )
    return first


def _lower_cases(config: Dict[str, Any], namespace: str, archive_file: Source) -> bool:
    """
    Tells whether the task's indexer of a namespace writes words in lower case. Raises
    `ConfigurationError` if there are indexers of both kinds, or one that changes words otherwise.
    """
    settings = [
        indexer
        for indexer in _indexers(config.get("dataset_reader"))
        if indexer.get("type", "single_id") == "single_id"
        and indexer.get("namespace", "tokens") == namespace
    ]
    kinds = {bool(indexer.get("lowercase_tokens", False)) for indexer in settings}
    changed = {"start_tokens", "end_tokens", "feature_name"}
    if len(kinds) > 1 or any(indexer.get(key) for indexer in settings for key in changed):
        raise ConfigurationError(
            f"{archive_file}: expected one indexer `single_id` of the namespace {namespace!r}, "
            "which takes words as they are or in lower case, but its `dataset_reader` has "
            f"{settings}"
        )
    return kinds == {True}


def _indexers(config: Any, is_place: bool = False) -> Iterator[Dict[str, Any]]:
    """Yields the settings of all token indexers in a part of a config."""
    if isinstance(config, list):
        for part in config:
            yield from _indexers(part)
    elif isinstance(config, dict):
        for key, part in config.items():
            if is_place and isinstance(part, dict):
                yield part
            yield from _indexers(part, str(key).endswith("token_indexers"))
