from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop.softmax import read_official_softmax
from tests.scoring.official_models import write_softmax

WORDS, DIM = 5, 3


def test_words_are_scored_by_their_rows_and_padding_never(tmp_path: Path) -> None:
    weight, bias = numpy.random.rand(WORDS, DIM), numpy.random.rand(WORDS)
    write_softmax(tmp_path / "softmax.hdf5", weight, bias)
    softmax = read_official_softmax(tmp_path / "softmax.hdf5", WORDS, DIM)
    state = numpy.random.rand(DIM)
    scores = numpy.exp(weight @ state + bias)
    states = torch.tensor(numpy.tile(state, (WORDS, 1)), dtype=torch.float32)
    losses = softmax(states, torch.arange(1, WORDS + 1)).losses
    assert losses.tolist() == pytest.approx((-numpy.log(scores / scores.sum())).tolist(), abs=1e-6)


def test_a_dump_of_all_weights_has_a_softmax_too(tmp_path: Path) -> None:
    write_softmax(tmp_path / "all.hdf5", numpy.zeros((WORDS, DIM)), numpy.zeros(WORDS))
    with h5py.File(tmp_path / "all.hdf5", "a") as file:
        file["char_embed"] = numpy.zeros((261, 4), "float32")
    assert not read_official_softmax(tmp_path / "all.hdf5", WORDS, DIM).training


@pytest.mark.parametrize(
    "name, value, complaint",
    [
        ("softmax/b", None, "softmax/b is missing; the file holds .'softmax/W'.*softmax_weights"),
        ("softmax/W", numpy.zeros((DIM, WORDS)), r"shape \(5, 3\), for 5 words of the vocabulary"),
        ("softmax/b", numpy.full(WORDS, numpy.nan), "softmax/b holds numbers that are not finite"),
        ("softmax/b", numpy.arange(WORDS), "numbers with a fraction at softmax/b, but it is"),
        ("softmax/b", h5py.SoftLink("/softmax/W"), "at softmax/b, but it is a link"),
    ],
    ids=str,
)
def test_what_is_no_softmax_is_an_error(
    name: str, value: Any, complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "softmax.hdf5"
    write_softmax(path, numpy.zeros((WORDS, DIM)), numpy.zeros(WORDS))
    with h5py.File(path, "a") as file:
        del file[name]
        if value is not None:
            file[name] = value
    with pytest.raises(ConfigurationError, match=f"^{path}: expected|^{path}: .*") as error:
        read_official_softmax(path, WORDS, DIM)
    assert error.match(complaint)


def test_a_file_that_was_cut_short_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "softmax.hdf5"
    write_softmax(path, numpy.zeros((WORDS, DIM)), numpy.zeros(WORDS))
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ConfigurationError, match="the download may be incomplete"):
        read_official_softmax(path, WORDS, DIM)
    with pytest.raises(ConfigurationError, match="there is no such file"):
        read_official_softmax(tmp_path / "none.hdf5", WORDS, DIM)
