"""HDF5 files that are written here, read by older versions of HDF5 than the installed one."""

import json
import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any, Dict, List

import h5py
import pytest

from elmo_scratch.interop import LayerFileWriter, export_bilm
from tests import FIXTURES_ROOT, PROJECT_ROOT
from tests.interop.layer_files.tiny_layers import FACTS, vectors_of

SENTENCES = ["The river", "Hà Nội ngủ", "The bank of the river"]

SOFTMAX = FIXTURES_ROOT / "elmo" / "language_model" / "softmax_weights.hdf5"
"""A softmax in the form of the released ones, from the fixtures of the scores' tests."""

READ = """
import json, sys
import h5py

def told(name, item):
    if isinstance(item, h5py.Dataset):
        is_text = h5py.check_string_dtype(item.dtype) is not None
        numbers = [text.hex() for text in item[()].ravel()] if is_text else item[()].tobytes().hex()
        found[name] = [str(item.dtype), list(item.shape), item.compression, numbers]
    found[f"attributes of {name}"] = {key: str(value) for key, value in item.attrs.items()}

found = {"version": h5py.version.hdf5_version}
for path in sys.argv[1:]:
    with h5py.File(path, "r") as file:
        told(path, file)
        file.visititems(lambda name, item: told(f"{path} {name}", item))
print(json.dumps(found))
"""
"""A program that prints, to the bit, what files hold."""


@pytest.fixture
def written(tmp_path: Path) -> List[Path]:
    """Layers in every form, the weights of a biLM, and a softmax."""
    files = [Path(shutil.copy(SOFTMAX, tmp_path))]
    forms = product(("float32", "float16"), (None, "gzip", "lzf"), (None, "mean"), (False, True))
    for dtype, compression, pool, has_sentence_keys in forms:
        facts = FACTS._replace(
            dtype=dtype, pool=pool, keys="sentences" if has_sentence_keys else None
        )
        keys = SENTENCES if has_sentence_keys else ["0", "1", "2"]
        files.append(tmp_path / f"{dtype}-{compression}-{pool}-{has_sentence_keys}.hdf5")
        with LayerFileWriter.open(files[-1], facts, compression=compression) as writer:
            for key, sentence in zip(keys, SENTENCES):
                writer.write(key, vectors_of(sentence, facts))
            writer.write_index(zip(SENTENCES, keys))
    for name in ("characters", "words"):
        model = PROJECT_ROOT / "tests" / "golden" / name / "model.tar.gz"
        export_bilm(model, tmp_path / name)
        files.append(tmp_path / name / "weights.hdf5")
    return files


def found_by(files: List[Path], folder: str = "") -> Dict[str, Any]:
    """What files hold, read by the h5py in a folder, or by the installed one."""
    program = [sys.executable, "-c", READ, *map(str, files)]
    read = subprocess.run(
        program, env={**os.environ, "PYTHONPATH": folder}, capture_output=True, check=True
    )
    found: Dict[str, Any] = json.loads(read.stdout)
    return found


@pytest.mark.install
def test_hdf5_1_14_reads_what_is_written(written: List[Path], tmp_path: Path) -> None:
    folder = str(tmp_path / "older")
    # The last release whose wheels hold HDF5 1.14.
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
    subprocess.run([*install, "h5py==3.15.1"], check=True)
    older, installed = found_by(written, folder), found_by(written)
    assert older.pop("version").startswith("1.14.")
    assert installed.pop("version") == h5py.version.hdf5_version
    assert older == installed and len(installed) > 100


@pytest.mark.skipif(shutil.which("h5dump") is None, reason="needs HDF5's own tools (hdf5-tools)")
def test_the_tools_of_hdf5_read_what_is_written(written: List[Path], tmp_path: Path) -> None:
    # The library of HDF5 doesn't have lzf, which h5py brings.
    files = [path for path in written if "lzf" not in path.name]
    num_read = 0
    for path in files:
        for name, numbers in numbers_in(path).items():
            dump = ["h5dump", "-d", name, "-b", "FILE", "-o", str(tmp_path / "dumped"), str(path)]
            subprocess.run(dump, stdout=subprocess.DEVNULL, check=True)
            assert (tmp_path / "dumped").read_bytes() == numbers, (path, name)
            num_read += 1
    assert num_read > 60


def numbers_in(path: Path) -> Dict[str, bytes]:
    """The numbers of each data set, as the installed h5py reads them."""
    found: Dict[str, bytes] = {}

    def read(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and name != "sentence_to_index":
            found[f"/{name}"] = item[()].tobytes()

    with h5py.File(path) as file:
        file.visititems(read)
    return found
