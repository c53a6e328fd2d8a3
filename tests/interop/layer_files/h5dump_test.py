import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from elmo_scratch.interop import LayerFileWriter
from tests.interop.layer_files.tiny_layers import FACTS, vectors_of


@pytest.mark.skipif(shutil.which("h5dump") is None, reason="needs HDF5's own tools (hdf5-tools)")
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_hdf5_itself_reads_all_of_a_file(compression: Any, tmp_path: Path) -> None:
    with LayerFileWriter.open(tmp_path / "x.hdf5", FACTS, compression=compression) as writer:
        writer.write("0", vectors_of("The river"))
        writer.write_index([("The river", "0")])
    dumped = subprocess.run(
        ["h5dump", "-m", "%.9g", tmp_path / "x.hdf5"], capture_output=True, text=True, check=True
    )
    assert dumped.stderr == ""
    assert '(0): "{"The river": "0"}"' in dumped.stdout
    assert 'ATTRIBUTE "checksum"' in dumped.stdout
    for number in vectors_of("The river").ravel():
        assert f"{number:.9g}" in dumped.stdout
