"""What several tests share, each made once: a tiny biLM, a classifier on top, official files."""

import random
from pathlib import Path
from typing import Iterator

import numpy
import pytest
import torch

import elmo_scratch  # noqa: F401  (registers what the configs name)
from elmo_scratch.interop import PretrainedBiLm, read_bilm_archive
from elmo_scratch.modules.products import BFLOAT16
from tests.tiny_elmo import OfficialFiles, write_files
from tests.tiny_training import CONFIGS, params_on_fixtures, train

# Threads cost more than they bring where tensors are tiny.
torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def bfloat16_where_it_is_asked_for() -> None:
    """On a processor that is slow with it too, so that its code is tested everywhere."""
    BFLOAT16.known = False


@pytest.fixture(autouse=True, scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Corpora that older code has prepared in the home folder tell nothing of this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path_factory.mktemp("corpora")))
        yield


@pytest.fixture(autouse=True)
def seed() -> None:
    """The same random numbers for a test whatever ran before it."""
    random.seed(13)
    numpy.random.seed(13)
    torch.manual_seed(13)


@pytest.fixture(scope="session")
def bilm_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a biLM: 3 layers of width 64, one epoch on the fixtures' news, lower case."""
    folder = tmp_path_factory.mktemp("bilm") / "run"
    train(params_on_fixtures(CONFIGS / "bilm" / "fixture.jsonnet"), folder)
    return folder / "model.tar.gz"


@pytest.fixture(scope="session")
def classifier_archive(bilm_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a classifier of news over the biLM of `bilm_archive`, one epoch."""
    folder = tmp_path_factory.mktemp("classifier") / "run"
    config = CONFIGS / "ag_news" / "elmo_trainable.jsonnet"
    train(params_on_fixtures(config, bilm_archive), folder)
    return folder / "model.tar.gz"


@pytest.fixture
def pretrained(bilm_archive: Path) -> PretrainedBiLm:
    """The biLM of `bilm_archive`, fresh for each test, its dropout off."""
    pretrained = read_bilm_archive(bilm_archive)
    pretrained.bilm.eval()
    return pretrained


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> OfficialFiles:
    """The official files of a tiny biLM of characters with random weights. Not to be changed."""
    return write_files(tmp_path_factory.mktemp("official"))
