from pathlib import Path

import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.export import ModelSource
from tests.export.conftest import FILES

WORDS = ["the", "river", "bank"]
OFFICIAL = ModelSource(str(FILES / "options.json"), str(FILES / "weights.hdf5"), "reset")


def test_official_files_are_read() -> None:
    assert OFFICIAL.load()([WORDS])[0].shape == (3, 3, 12)


def test_an_archive_is_read(bilm_archive: Path) -> None:
    assert ModelSource(weight_file=str(bilm_archive)).load()([WORDS])[0].shape == (3, 3, 64)


def test_the_output_folder_of_a_training_is_read(bilm_archive: Path) -> None:
    assert ModelSource(weight_file=str(bilm_archive.parent)).load().num_layers == 3


def test_it_warms_up() -> None:
    warm = OFFICIAL._replace(state="warm", warm_up=[WORDS]).load()
    assert not numpy.array_equal(warm([WORDS])[0], OFFICIAL.load()([WORDS])[0])


@pytest.mark.parametrize("state, warm_up", [("warm", None), ("reset", [WORDS])])
def test_the_warm_state_and_a_text_need_each_other(state: str, warm_up: object) -> None:
    source = OFFICIAL._replace(state=state, warm_up=warm_up)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="need each other"):
        source.load()


def test_words_computed_ahead_change_no_vector() -> None:
    ahead = OFFICIAL._replace(words=WORDS).load()
    assert numpy.array_equal(ahead([WORDS])[0], OFFICIAL.load()([WORDS])[0])


def test_a_missing_archive_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="there is no such archive"):
        ModelSource(weight_file="nowhere/model.tar.gz").load()
