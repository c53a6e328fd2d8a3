"""Code of the years when AllenNLP had ELMo runs as it was written."""

import sys
from pathlib import Path
from typing import Any, Dict, List

import numpy
import pytest
from allennlp.commands import main

import elmo_scratch
from elmo_scratch import ElmoEmbedder as OwnEmbedder
from tests import FIXTURES_ROOT

ADDRESS = (
    "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway/"
    "elmo_2x4096_512_2048cnn_2xhighway_"
)

CELLS = [
    """
with open("sentences.txt", "w") as text:
    text.write("The boat lay at the river bank .\\nShe took her money to the bank .\\n")
run("allennlp elmo sentences.txt layers.hdf5 --all")
""",
    """
import h5py

with h5py.File("layers.hdf5", "r") as layers_of_lines:
    first = layers_of_lines.get("0")[...]
    assert len(first) == 3 and first.shape[1] == 8
""",
    f"""
from allennlp.modules.elmo import Elmo, batch_to_ids

options_file = "{ADDRESS}options.json"
weight_file = "{ADDRESS}weights.hdf5"
elmo = Elmo(options_file, weight_file, 2, dropout=0)
ids = batch_to_ids([["The", "boat", "lay", "here"], ["Money", "."]])
embeddings = elmo(ids)
assert len(embeddings["elmo_representations"]) == 2
assert embeddings["elmo_representations"][0].shape[:2] == (2, 4)
""",
    """
from allennlp.commands.elmo import ElmoEmbedder
import scipy.spatial

embedder = ElmoEmbedder()
river = embedder.embed_sentence("The boat lay at the river bank .".split())
money = embedder.embed_sentence("She took her money to the bank .".split())
apart = scipy.spatial.distance.cosine(river[2][6], money[2][6])
""",
]


@pytest.fixture
def released_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> List[str]:
    """
    Answers the addresses of the released model by files of the fixtures; lists those that AllenNLP
    itself asks.
    """
    asked: List[str] = []
    residual = FIXTURES_ROOT / "elmo" / "residual"
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "original").symlink_to(residual)
    monkeypatch.setenv("ELMO_SCRATCH_MODELS", str(tmp_path / "models"))

    def answer(address: str, *_: Any, **__: Any) -> Any:
        asked.append(address)
        return str(residual / address.replace(ADDRESS, "")), None

    monkeypatch.setattr("cached_path._cached_path.get_from_cache", answer)
    return asked


def test_a_notebook_runs_cell_by_cell(
    released_files: List[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(words: str) -> None:
        monkeypatch.setattr(sys, "argv", words.split())
        main(prog="allennlp")

    names: Dict[str, Any] = {"run": run}
    for cell in CELLS:
        exec(cell, names)
    assert {Path(address).suffix for address in released_files} == {".json", ".hdf5"}
    assert 0 < names["apart"] < 1
    # What the file holds is what the embedder gives, for the first batch.
    numpy.testing.assert_allclose(names["first"], names["river"], atol=1e-5)


def test_the_old_module_has_what_was_imported_from_it() -> None:
    from allennlp.commands import elmo

    assert elmo.ElmoEmbedder is OwnEmbedder is elmo_scratch.ElmoEmbedder
    assert elmo.DEFAULT_OPTIONS_FILE == f"{ADDRESS}options.json"
    assert elmo.DEFAULT_WEIGHT_FILE == f"{ADDRESS}weights.hdf5"
    assert elmo.DEFAULT_BATCH_SIZE == 64
    assert elmo.empty_embedding().shape == (3, 0, 1024)
    with pytest.raises(ImportError):
        from allennlp.commands.elmo import forgotten  # noqa: F401
