"""The two configurations of a model of ELMoForManyLangs: `config.json`, and the one it names."""

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from allennlp.common.checks import ConfigurationError

from elmo_scratch.alphabet import CHARACTERS_PER_TOKEN
from elmo_scratch.files.paths import local_file
from elmo_scratch.files.strict_json import StrictJson

CONFIG_NAME = "config.json"

PUBLISHED_NAMES = ("cnn_50_100_512_4096_sample.json", "cnn_0_100_512_4096_sample.json")
"""What the published models call their sizes, which many of their folders lack."""

PUBLISHED: Dict[str, Dict[str, Any]] = {
    "encoder": {
        "name": "elmo",
        "projection_dim": 512,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 4096,
        "n_layers": 2,
    },
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2,
        "word_dim": 100,
        "char_dim": 50,
        "max_characters_per_token": 50,
    },
}
"""The sizes of the published models, under either name."""

EXPECTED_ENCODER = (
    '"elmo", as all published models have ("lstm" has one layer, and in its own code it reads the '
    "padding of a batch, so that vectors depend on the other sentences)"
)
"""The kind of encoder."""

MOST_LAYERS = 1000
"""The shapes of more layers would take long to list."""


class CnnSettings(NamedTuple):
    """The convolutions over characters: the keys of `token_embedder`."""

    char_dim: int
    filters: Tuple[Tuple[int, int], ...]
    n_highway: int
    activation: str


class ManyLangsSettings(NamedTuple):
    """
    The sizes of a model. `source` names their file in errors. `max_characters` bounds the spelling
    of a word; `None` for none. `word_dim` is 0, or `cnn` is `None`, where the model doesn't read
    words or characters.
    """

    source: str
    projection_dim: int
    dim: int
    n_layers: int
    cell_clip: Optional[float]
    proj_clip: Optional[float]
    word_dim: int
    cnn: Optional[CnnSettings]
    max_characters: Optional[int]


def read_settings(folder: Path) -> ManyLangsSettings:
    """
    Reads the sizes of the model in a folder. Their file is looked for in the folder only, wherever
    its path leads; those of the published models are known. Raises `ConfigurationError` if a file
    is missing, is no JSON or lacks a key, or a value makes no sense.
    """
    named = _named_path(folder)
    path = _sizes_file(folder, named)
    if path is not None:
        return _settings(str(path), _read_json(path))
    name = re.split(r"[\\/]", named)[-1]
    if name in PUBLISHED_NAMES:
        return _settings(name, PUBLISHED)
    raise ConfigurationError(
        f"{folder}: expected the sizes of the model in a file {name}, by `config_path` of "
        f"{CONFIG_NAME}, but there is none. Copy it from {named} of where the model was trained."
    )


def settings_files(folder: Path) -> List[Path]:
    """The files that `read_settings` reads. Raises `ConfigurationError` as far as it does."""
    path = _sizes_file(folder, _named_path(folder))
    return [folder / CONFIG_NAME, *([] if path is None else [path])]


def _named_path(folder: Path) -> str:
    """The path of the sizes' file where the model was trained."""
    config_file = folder / CONFIG_NAME
    named = StrictJson(str(config_file), "", _read_json(config_file)).take("config_path")
    if not isinstance(named, str):
        raise ConfigurationError(
            f"{config_file}: expected `config_path` to be a path, but got {json.dumps(named)}"
        )
    return named


def _sizes_file(folder: Path, named: str) -> Optional[Path]:
    """The file of the sizes, by its path or else its name; `None` if the folder has none."""
    parts = [part for part in re.split(r"[\\/]", named) if part not in ("", ".", "..")]
    found = [folder.joinpath(*parts), folder.joinpath(*parts[-1:])]
    # `Path.is_file` raises an error where a name is too long.
    return next((path for path in found if os.path.isfile(path)), None)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(local_file(path).read_bytes())
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{path}: expected the configuration of a model as JSON, but it can't be read: {error}"
        ) from None


def _settings(source: str, record: Any) -> ManyLangsSettings:
    top = StrictJson(source, "", record)
    encoder, embedder = top.block("encoder"), top.block("token_embedder")
    kind = encoder.take("name")
    if kind != "elmo":
        raise encoder.error("name", EXPECTED_ENCODER, kind)
    kind = embedder.take("name")
    if not isinstance(kind, str) or kind.lower() not in ("cnn", "lstm"):
        raise embedder.error("name", '"cnn" or "lstm"', kind)
    word_dim, char_dim = embedder.size("word_dim", least=0), embedder.size("char_dim", least=0)
    cnn: Optional[CnnSettings] = None
    max_characters: Optional[int] = None
    if kind.lower() == "cnn":
        max_characters = embedder.size("max_characters_per_token")
        if max_characters not in CHARACTERS_PER_TOKEN:
            least, most = CHARACTERS_PER_TOKEN[0], CHARACTERS_PER_TOKEN[-1]
            expected = f"from {least} to {most}"
            raise embedder.error("max_characters_per_token", expected, max_characters)
        if char_dim > 0:
            cnn = _cnn(embedder, char_dim, max_characters)
    elif char_dim > 0:
        raise embedder.error(
            "char_dim", '0 where its name is "lstm": with characters its own code fails', char_dim
        )
    if word_dim == 0 and cnn is None:
        raise embedder.error("word_dim", "above 0 where `char_dim` is 0", word_dim)
    projection_dim, dim = encoder.size("projection_dim"), encoder.size("dim")
    if projection_dim == dim:
        expected = "another number than its `dim`: a biLM has no projection between equal sizes"
        raise encoder.error("projection_dim", expected, dim)
    return ManyLangsSettings(
        source,
        projection_dim,
        dim,
        n_layers=_num_layers(encoder, "n_layers", least=1),
        cell_clip=_clip(encoder, "cell_clip"),
        proj_clip=_clip(encoder, "proj_clip"),
        word_dim=word_dim,
        cnn=cnn,
        max_characters=max_characters,
    )


def kept_settings(source: str, record: Any) -> ManyLangsSettings:
    """
    Reads settings that an archive keeps, as JSON has them; `source` names their file in errors.
    Raises `ConfigurationError` if a key is missing, or `ValueError` or `TypeError` where a value
    makes no sense.
    """
    sizes = StrictJson(source, "settings", record)
    max_characters, kept = sizes.take("max_characters"), sizes.take("cnn")
    if max_characters is not None:
        max_characters = sizes.size("max_characters")
    cnn: Optional[CnnSettings] = None
    if kept is not None:
        char_dim, filters, n_highway, activation = kept
        keys = {"char_dim": char_dim, "filters": filters, "n_highway": n_highway}
        block = StrictJson(source, "cnn", {**keys, "activation": activation})
        cnn = _cnn(block, block.size("char_dim"), sizes.size("max_characters"))
    return ManyLangsSettings(
        str(sizes.take("source")),
        sizes.size("projection_dim"),
        sizes.size("dim"),
        n_layers=_num_layers(sizes, "n_layers", least=1),
        cell_clip=sizes.clip("cell_clip"),
        proj_clip=sizes.clip("proj_clip"),
        word_dim=sizes.size("word_dim", least=0),
        cnn=cnn,
        max_characters=max_characters,
    )


def _num_layers(block: StrictJson, key: str, least: int) -> int:
    number = block.size(key, least=least)
    if number > MOST_LAYERS:
        raise block.error(key, f"at most {MOST_LAYERS}", number)
    return number


def _clip(encoder: StrictJson, key: str) -> Optional[float]:
    """A bound; 0 and null stand for none."""
    return encoder.clip(key) if encoder.take(key) else None


def _cnn(embedder: StrictJson, char_dim: int, max_characters: int) -> CnnSettings:
    activation = embedder.take("activation")
    if activation not in ("relu", "tanh"):
        raise embedder.error("activation", '"relu" or "tanh"', activation)
    filters = embedder.take("filters")
    expected = f"pairs of a width from 1 to {max_characters} and a number of filters"
    if not isinstance(filters, list) or not filters:
        raise embedder.error("filters", expected, filters)
    for pair in filters:
        is_pair = isinstance(pair, list) and [type(part) for part in pair] == [int, int]
        if not is_pair or not 1 <= pair[0] <= max_characters or pair[1] < 1:
            raise embedder.error("filters", expected, pair)
    return CnnSettings(
        char_dim,
        tuple((width, number) for width, number in filters),
        _num_layers(embedder, "n_highway", least=0),
        activation,
    )
