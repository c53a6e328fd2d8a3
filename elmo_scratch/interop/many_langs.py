"""
Reads a model folder of ELMoForManyLangs, which may come from an untrusted source: its two
configurations, its dictionaries, by which it makes ids of words and Unicode characters, and its
weights. A task's archive keeps its sizes and dictionaries.
"""

import json
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.alphabet import CHARACTERS_PER_TOKEN
from elmo_scratch.data.lines import BYTE_ORDER_MARK
from elmo_scratch.data.spelling import SpellingWordIndexer
from elmo_scratch.files.paths import local_file
from elmo_scratch.files.strict_json import StrictJson, one_line
from elmo_scratch.interop.archives.sidecar import (
    archived_path,
    keep_in_archive,
    kept_in_archive,
    reading_kept,
)
from elmo_scratch.interop.archives.weights import read_tensors
from elmo_scratch.interop.official.files import converted_weight
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import CharWordEncoder
from elmo_scratch.modules.token_encoders.char_cnn_encoder import CharacterSettings, WordSettings

Folder = Union[str, PathLike]

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
        f"{folder}: expected the sizes of the model in a file {one_line(name)}, by "
        f"`config_path` of {CONFIG_NAME}, but there is none. Copy it from "
        f"{one_line(named)} of where the model was trained."
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


UNKNOWN, PADDING = "<oov>", "<pad>"
BEGIN_SENTENCE, END_SENTENCE = "<bos>", "<eos>"

BEGIN_WORD, END_WORD = "<eow>", "<bow>"
"""Words were spelled with the two marks exchanged when the models were trained."""

WORD_MARKS = (UNKNOWN, PADDING)
CHARACTER_MARKS = (UNKNOWN, PADDING, BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD)
"""The entries without which a dictionary is of no use."""

WHITE_SPACE = "\u3000"
"""The entry of a line whose word is white space, which is stripped from lines."""

_NUMBER = re.compile("[0-9]{1,9}")


def read_dictionary(path: Path, marks: Sequence[str]) -> Dict[str, int]:
    """
    Reads a file with a word or character, a tab and a number on each line. Returns ids that are one
    higher than the numbers: 0 stands for no word or character. Raises `ConfigurationError` if a
    line is something else, the numbers are not those from 0 on, or one of `marks` is missing.
    """
    numbers: Dict[int, int] = {}
    ids: Dict[str, int] = {}
    with open(local_file(path), "rb") as file:
        for place, raw in enumerate(file, start=1):
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError:
                raise ConfigurationError(
                    f"{path}, line {place}: expected UTF-8 text, but got {raw[:80]!r}"
                ) from None
            # It may also be an entry.
            if place == 1 and not line.startswith(f"{BYTE_ORDER_MARK}\t"):
                line = line.removeprefix(BYTE_ORDER_MARK)
            line = line.strip()
            entry, tab, number = line.rpartition("\t")
            if "\t" in entry or not _NUMBER.fullmatch(number):
                raise ConfigurationError(
                    f"{path}, line {place}: expected a word or character, a tab and its number, "
                    f"but got {line[:80]!r}"
                )
            other = numbers.setdefault(int(number), place)
            if other != place:
                raise ConfigurationError(
                    f"{path}, line {place}: expected a number of its own, but line {other} has "
                    f"{number} too"
                )
            ids[entry if tab else WHITE_SPACE] = 1 + int(number)
    if not numbers:
        raise ConfigurationError(f"{path}: expected words or characters, but it is empty")
    last = max(numbers)
    if last != len(numbers) - 1:
        raise ConfigurationError(
            f"{path}: expected the numbers from 0 to {len(numbers) - 1} on its {len(numbers)} "
            f"lines, but the highest is {last}. Is the file whole?"
        )
    for mark in marks:
        if mark not in ids:
            raise ConfigurationError(
                f"{path}: expected a line for {mark}, which every such model has, but there is none"
            )
    return ids


def kept_dictionary(
    ids: Optional[Dict[str, int]], marks: Sequence[str]
) -> Optional[Dict[str, int]]:
    """Returns a dictionary that an archive keeps; raises `ValueError` if it can't be one."""
    if ids is not None:
        missing = [mark for mark in marks if mark not in ids]
        if missing or not all(type(number) is int and number > 0 for number in ids.values()):
            raise ValueError(f"expected ids above 0 of entries such as {', '.join(marks)}")
    return ids


@dataclass(frozen=True)
class DictionaryWordIndexer(SpellingWordIndexer):
    """
    Spells a word as its id, if there are `words`, then the ids of its Unicode characters between
    two marks, padded to `max_characters`, if there are `characters`. Of a longer word only the
    beginning counts, for the table of words too; without `max_characters` words are never cut.
    """

    words: Optional[Dict[str, int]]
    characters: Optional[Dict[str, int]]
    max_characters: Optional[int]

    def spelled(self, words: Collection[str]) -> torch.Tensor:
        rows = [self.ids_of(word) for word in words]
        num_ids = len(rows[0]) if rows else len(self.ids_of(""))
        return torch.tensor(rows, dtype=torch.int32, device="cpu").view(len(rows), num_ids)

    def ids_of(self, word: str) -> List[int]:
        """The ids of a word."""
        if self.max_characters is not None:
            word = word[: self.max_characters - 2]
        ids: List[int] = []
        if self.words is not None:
            ids.append(self.words.get(word, self.words[UNKNOWN]))
        if self.characters is not None and self.max_characters is not None:
            known, unknown = self.characters, self.characters[UNKNOWN]
            is_mark = word in (BEGIN_SENTENCE, END_SENTENCE)
            within = [known[word]] if is_mark else [known.get(letter, unknown) for letter in word]
            spelled = [known[BEGIN_WORD], *within, known[END_WORD]]
            ids += spelled + [known[PADDING]] * (self.max_characters - len(spelled))
        return ids


SIDECAR = "-many-langs"


class ManyLangsBlueprint(NamedTuple):
    """What it takes to build a biLM of ELMoForManyLangs, and to make its ids."""

    settings: ManyLangsSettings
    word_indexer: DictionaryWordIndexer

    def build(self, state: str) -> BiLm:
        """The biLM with random weights; `state` as in `BiLm`."""
        words: Optional[WordSettings] = None
        characters: Optional[CharacterSettings] = None
        if self.word_indexer.words is not None:
            words = WordSettings(max(self.word_indexer.words.values()), self.settings.word_dim)
        if self.word_indexer.characters is not None and self.settings.cnn is not None:
            characters = CharacterSettings(
                max(self.word_indexer.characters.values()),
                self.settings.cnn.char_dim,
                self.settings.cnn.filters,
                self.settings.cnn.n_highway,
                self.settings.cnn.activation,
                self.word_indexer.characters[PADDING],
            )
        encoder = CharWordEncoder(
            dim=self.settings.projection_dim,
            words=words,
            characters=characters,
            begin=self.word_indexer.ids_of(BEGIN_SENTENCE),
            end=self.word_indexer.ids_of(END_SENTENCE),
        )
        return BiLm(
            token_encoder=encoder,
            cell_size=self.settings.dim,
            num_layers=self.settings.n_layers,
            cell_clip=self.settings.cell_clip,
            projection_clip=self.settings.proj_clip,
            state=state,
        )

    def write(self, serialization_dir: Folder, folder: str) -> None:
        """
        Writes the blueprint to where AllenNLP packs it into the archive of the training. `folder`
        is the model folder, and `read` finds the blueprint by it.
        """
        kept = kept_in_archive(serialization_dir, SIDECAR) or {}
        kept[folder] = {
            "settings": self.settings._asdict(),
            "words": self.word_indexer.words,
            "characters": self.word_indexer.characters,
        }
        keep_in_archive(serialization_dir, SIDECAR, kept)

    @classmethod
    def read(cls, serialization_dir: Folder, folder: str) -> Optional["ManyLangsBlueprint"]:
        """
        Reads the blueprint that `write` stored in a training's folder, or in its unpacked archive;
        `None` if there is none. Raises `ConfigurationError` if it is damaged.
        """
        with reading_kept(serialization_dir, SIDECAR):
            plan = (kept_in_archive(serialization_dir, SIDECAR) or {}).get(folder)
            if plan is None:
                return None
            path = archived_path(serialization_dir, SIDECAR)
            settings = kept_settings(str(path), plan["settings"])
            words = kept_dictionary(plan["words"], WORD_MARKS)
            characters = kept_dictionary(plan["characters"], CHARACTER_MARKS)
            if (words is None, characters is None) != (
                settings.word_dim == 0,
                settings.cnn is None,
            ):
                raise ValueError("its dictionaries and its sizes are of different models")
        indexer = DictionaryWordIndexer(words, characters, settings.max_characters)
        return cls(settings, indexer)


EMBEDDER_NAME, ENCODER_NAME = "token_embedder.pkl", "encoder.pkl"
WORDS_NAME, CHARACTERS_NAME = "word.dic", "char.dic"

OWN_NAMES = (EMBEDDER_NAME, ENCODER_NAME, CHARACTERS_NAME, WORDS_NAME)
"""Names that only such folders hold."""

ALLENNLP_NAMES = {
    "convolutions.": "_token_embedder.char_conv_",
    "highways.": "_token_embedder._highways.",
    "projection.": "_token_embedder._projection.",
    "forward_layer_": "_elmo_lstm.forward_layer_",
    "backward_layer_": "_elmo_lstm.backward_layer_",
}
"""How AllenNLP's `Elmo` begins the names of the same tensors."""

TABLES = {
    "word_emb_layer.embedding.weight": "token_encoder.embedding.weight",
    "char_emb_layer.embedding.weight": "token_encoder.convolution.embedding.weight",
}
"""The tables, which AllenNLP doesn't have, by their names in a `BiLm`."""

Shape = Tuple[int, ...]


class ManyLangsModel(NamedTuple):
    """A biLM in evaluation mode, and what it takes to build it and its ids."""

    bilm: BiLm
    blueprint: ManyLangsBlueprint


def is_many_langs_folder(folder: Folder) -> bool:
    """Whether a path leads to a folder that holds a model of ELMoForManyLangs, or part of one."""
    return any((_expanded(folder) / name).is_file() for name in OWN_NAMES)


def many_langs_files(folder: Folder) -> List[Path]:
    """
    The files of a model folder that decide about its vectors, as far as they are there. Raises
    `ConfigurationError` if there is no `config.json`, or it names no file.
    """
    path = _expanded(folder)
    own = [path / name for name in OWN_NAMES]
    return [*settings_files(path), *(file for file in own if file.is_file())]


def read_many_langs(folder: Folder, *, state: str = "reset") -> ManyLangsModel:
    """
    Reads a model folder: `config.json` and the sizes that it names, `word.dic` and `char.dic` as
    far as the model reads words or characters, `token_embedder.pkl` and `encoder.pkl`. The biLM's
    layers are those of the original with `output_layer=-2`; with `state="carry"` sentences start
    from where the one of the same row in the batch before ended, as there.

    Raises `ConfigurationError` if a file is missing or is not what it should be; if a tensor is
    missing, left over, of the wrong shape or type, or holds a number that is not finite.
    """
    path = _expanded(folder)
    settings = read_settings(path)
    words: Optional[Dict[str, int]] = None
    characters: Optional[Dict[str, int]] = None
    if settings.word_dim > 0:
        words = read_dictionary(path / WORDS_NAME, WORD_MARKS)
    if settings.cnn is not None:
        characters = read_dictionary(path / CHARACTERS_NAME, CHARACTER_MARKS)
    indexer = DictionaryWordIndexer(words, characters, settings.max_characters)
    blueprint = ManyLangsBlueprint(settings, indexer)
    # No memory is taken for sizes that the weights don't confirm.
    tensors = {
        **_read_checked(path / EMBEDDER_NAME, settings, _embedder_shapes(settings, indexer)),
        **_read_checked(path / ENCODER_NAME, settings, _encoder_shapes(settings)),
    }
    bilm = blueprint.build(state)
    converted = _converted(tensors)
    with torch.no_grad():
        for name, parameter in bilm.named_parameters():
            parameter.copy_(converted[name])
    return ManyLangsModel(bilm.eval(), blueprint)


def _expanded(folder: Folder) -> Path:
    return Path(os.path.expanduser(folder))


def _embedder_shapes(
    settings: ManyLangsSettings, indexer: DictionaryWordIndexer
) -> Dict[str, Shape]:
    """The shape of each tensor of `token_embedder.pkl`, but highway layers, by its name."""
    shapes: Dict[str, Shape] = {}
    joined = settings.word_dim
    if indexer.words is not None:
        shapes["word_emb_layer.embedding.weight"] = (max(indexer.words.values()), settings.word_dim)
    if indexer.characters is not None and settings.cnn is not None:
        cnn = settings.cnn
        shapes["char_emb_layer.embedding.weight"] = (
            max(indexer.characters.values()),
            cnn.char_dim,
        )
        for place, (width, number) in enumerate(cnn.filters):
            shapes[f"convolutions.{place}.weight"] = (number, cnn.char_dim, width)
            shapes[f"convolutions.{place}.bias"] = (number,)
        num_filters = sum(number for _, number in cnn.filters)
        for layer in range(cnn.n_highway):
            shapes[f"highways._layers.{layer}.weight"] = (2 * num_filters, num_filters)
            shapes[f"highways._layers.{layer}.bias"] = (2 * num_filters,)
        joined += num_filters
    shapes["projection.weight"] = (settings.projection_dim, joined)
    shapes["projection.bias"] = (settings.projection_dim,)
    return shapes


def _encoder_shapes(settings: ManyLangsSettings) -> Dict[str, Shape]:
    """The shape of each tensor of `encoder.pkl`, by its name."""
    dim, cells = settings.projection_dim, settings.dim
    return {
        f"{direction}_layer_{layer}.{name}": shape
        for layer in range(settings.n_layers)
        for direction in ("forward", "backward")
        for name, shape in (
            ("input_linearity.weight", (4 * cells, dim)),
            ("state_linearity.weight", (4 * cells, dim)),
            ("state_linearity.bias", (4 * cells,)),
            ("state_projection.weight", (dim, cells)),
        )
    }


def _read_checked(
    path: Path, settings: ManyLangsSettings, expected: Dict[str, Shape]
) -> Dict[str, torch.Tensor]:
    """Reads the tensors of a file, which must have these names and shapes, as float32."""
    local_file(path)
    try:
        found = read_tensors(path)
    except ValueError as error:
        raise ConfigurationError(
            f"{path}: expected the weights of a model of ELMoForManyLangs, but they can't be read; "
            f"if it was downloaded, the download may be incomplete: {error}"
        ) from None
    for name, shape in expected.items():
        if name not in found:
            raise ConfigurationError(
                f"{path}: the tensor {name}, of the shape {shape}, is missing, which "
                f"{settings.source} asks for; the file holds {sorted(found)}"
            )
        tensor = found[name]
        if tuple(tensor.shape) != shape:
            raise ConfigurationError(
                f"{path}: expected {name} to have the shape {shape}, by the sizes in "
                f"{settings.source} and the dictionaries, but it has the shape "
                f"{tuple(tensor.shape)}. Do all files come from the same model?"
            )
        if not tensor.is_floating_point() or tensor.layout is not torch.strided:
            raise ConfigurationError(
                f"{path}: expected {name} to be of the type float32, but it is {tensor.dtype}, "
                f"{tensor.layout}"
            )
        if not tensor.isfinite().all():
            raise ConfigurationError(
                f"{path}: {name} holds numbers that are not finite; such weights come of a "
                "training that diverged or of a damaged file"
            )
    for name in sorted(set(found) - set(expected)):
        raise ConfigurationError(
            f"{path}: the tensor {one_line(name)}, of the shape {tuple(found[name].shape)}, is "
            f"left over: the model of {settings.source} has none of that name"
        )
    return {name: tensor.float() for name, tensor in found.items()}


def _converted(tensors: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """The parameters of a `BiLm`, by their names."""
    converted: Dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        if name in TABLES:
            no_word = tensor.new_zeros(1, tensor.size(1))
            converted[TABLES[name]] = torch.cat([no_word, tensor])
            continue
        for theirs, allennlp in ALLENNLP_NAMES.items():
            if name.startswith(theirs):
                renamed = allennlp + name.removeprefix(theirs)
                converted.update(converted_weight(renamed, tensor))
    return converted
