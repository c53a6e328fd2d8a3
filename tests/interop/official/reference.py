"""What the tests of this folder share: the ELMo fixtures, and the program that computes them."""

import importlib.util
import json
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Union

import h5py
import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.alphabet import character_ids
from elmo_scratch.interop.official import read_official_bilm
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder
from tests import FIXTURES_ROOT

ELMO = FIXTURES_ROOT / "elmo"

Sentence = Sequence[Union[str, int]]
"""Words, or for a model of words their rows in `embedding`."""


class OfficialFiles(NamedTuple):
    """The two files of a biLM."""

    options: Path
    weights: Path

    @classmethod
    def of(cls, folder: Path) -> "OfficialFiles":
        return cls(folder / "options.json", folder / "weights.hdf5")

    def read(self, **settings: str) -> BiLm:
        return read_official_bilm(self.options, self.weights, **settings)

    def record(self) -> Dict[str, Any]:
        """The content of `options.json`."""
        return json.loads(self.options.read_text(encoding="utf-8"))

    def tensors(self) -> Dict[str, numpy.ndarray]:
        """The data sets of `weights.hdf5` by their paths."""
        found: Dict[str, numpy.ndarray] = {}
        with h5py.File(self.weights) as file:
            file.visititems(
                lambda name, item: (
                    found.update({name: item[...]}) if isinstance(item, h5py.Dataset) else None
                )
            )
        return found


RESIDUAL = OfficialFiles.of(ELMO / "residual")
PLAIN = OfficialFiles.of(ELMO / "plain")
MODELS = {"residual": RESIDUAL, "plain": PLAIN}
BATCHES: List[List[List[str]]] = json.loads((ELMO / "sentences.json").read_text(encoding="utf-8"))


def _load_program() -> Any:
    spec = importlib.util.spec_from_file_location("elmo_fixtures", ELMO / "compute.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAM = _load_program()
"""`fixtures/elmo/compute.py`."""


def copied(files: OfficialFiles, folder: Path) -> OfficialFiles:
    """A copy to spoil."""
    folder.mkdir(exist_ok=True)
    return OfficialFiles(*(Path(shutil.copy(file, folder)) for file in files))


def with_tensors(files: OfficialFiles, folder: Path, change: Callable) -> OfficialFiles:
    """A copy in which `change` has had its way with the open HDF5 file."""
    copy = copied(files, folder)
    with h5py.File(copy.weights, "a") as file:
        change(file)
    return copy


def with_options(files: OfficialFiles, folder: Path, **changes: Any) -> OfficialFiles:
    """A copy with other options: `lstm__dim=3` changes `dim` of `lstm`."""
    copy = copied(files, folder)
    record = deepcopy(files.record())
    for path, value in changes.items():
        *blocks, key = path.split("__")
        block = record
        for name in blocks:
            block = block[name]
        block[key] = value
    copy.options.write_text(json.dumps(record), encoding="utf-8")
    return copy


def character_batch(batch: Sequence[Sequence[str]], max_characters: int = 50) -> torch.Tensor:
    """The ids of a batch, 0 where there is no word."""
    ids = torch.zeros(len(batch), max(map(len, batch)), max_characters, dtype=torch.long)
    for row, sentence in zip(ids, batch):
        for place, word in zip(row, sentence):
            place.copy_(torch.tensor(character_ids(word, max_characters)))
    return ids


def character_batches(bilm: BiLm) -> List[torch.Tensor]:
    """The ids of the fixtures' sentences, as a biLM wants them."""
    encoder = bilm.token_encoder
    assert isinstance(encoder, CharCnnEncoder)
    return [character_batch(batch, encoder.max_characters_per_token) for batch in BATCHES]


def word_batch(batch: Sequence[Sequence[int]]) -> torch.Tensor:
    """The same for a model of words: one more than the row of a word."""
    ids = torch.zeros(len(batch), max(map(len, batch)), dtype=torch.long)
    for row, sentence in zip(ids, batch):
        row[: len(sentence)] = torch.tensor(sentence, dtype=torch.long) + 1
    return ids


def layers_of(bilm: BiLm, ids: Sequence[torch.Tensor]) -> List[numpy.ndarray]:
    """What a biLM makes of batches one after the other: `(layers, batch, positions, width)`."""
    masks = [one > 0 if one.dim() == 2 else (one > 0).any(dim=-1) for one in ids]
    return [bilm(one, mask).layers.detach().numpy() for one, mask in zip(ids, masks)]


def stored_layers(name: str) -> List[numpy.ndarray]:
    """The same as `layers.hdf5` of a fixture has it."""
    with h5py.File(ELMO / name / "layers.hdf5") as file:
        return [_stacked([group[key][...] for key in _in_order(group)]) for group in file.values()]


def computed_layers(
    files: OfficialFiles, batches: Sequence[Sequence[Sentence]]
) -> List[numpy.ndarray]:
    """The same as the program of the fixtures computes it from two files."""
    read = PROGRAM.read_batches(batches, files.record(), files.tensors())
    return [_stacked([PROGRAM.padded(rows, "float64") for rows in zip(*batch)]) for batch in read]


def _in_order(group: h5py.Group) -> List[str]:
    return ["tokens", *sorted(name for name in group if name.startswith("lstm_"))]


def _stacked(layers: List[numpy.ndarray]) -> numpy.ndarray:
    """The token layer, twice side by side, and the others."""
    tokens, *others = layers
    return numpy.stack([numpy.concatenate([tokens, tokens], axis=-1), *others])


def assert_layers_close(
    ours: List[numpy.ndarray], expected: List[numpy.ndarray], atol: float = 1e-6
) -> None:
    """Layer by layer from the bottom up, so that the first to differ is named."""
    assert len(ours) == len(expected)
    for batch, (one, other) in enumerate(zip(ours, expected)):
        assert one.shape == other.shape
        for layer in range(len(one)):
            difference = abs(one[layer] - other[layer]).max()
            assert difference <= atol, f"batch {batch}, layer {layer}: {difference}"


def replacing(name: str, value: Any) -> Callable[[h5py.File], None]:
    """A change to a weight file: another data set, or link, at a path."""

    def change(file: h5py.File) -> None:
        if name in file:
            del file[name]
        file[name] = value

    return change


def reading_error(files: OfficialFiles) -> str:
    """The message of the error that reading raises."""
    with pytest.raises(ConfigurationError) as raised:
        files.read()
    return str(raised.value)
