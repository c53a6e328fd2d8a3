"""What several tests share, each made once: a tiny biLM, a classifier on top, official files."""

import inspect
import random
import shutil
import sys
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, Iterator, Optional

import numpy
import pytest
import spacy
import torch

import elmo_scratch  # noqa: F401  (registers what the configs name)
from elmo_scratch.interop import PretrainedBiLm, read_bilm_archive
from elmo_scratch.kernels.precision import BFLOAT16
from tests.tiny_elmo import OfficialFiles, write_files
from tests.tiny_training import CONFIGS, logging_as_before, params_on_fixtures, train

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


@pytest.fixture(autouse=True, scope="session")
def languages() -> Iterator[None]:
    """The rules of a language are built once: that takes a fifth of a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spacy, "blank", lru_cache(maxsize=None)(spacy.blank))
        yield


@pytest.fixture(autouse=True)
def seed() -> None:
    """The same random numbers for a test whatever ran before it."""
    random.seed(13)
    numpy.random.seed(13)
    torch.manual_seed(13)


@pytest.fixture(autouse=True)
def logging_of_its_own() -> Iterator[None]:
    """What commands and trainings do to the logging of the process ends with their test."""
    with logging_as_before():
        yield


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


@pytest.fixture(scope="session")
def wandb() -> ModuleType:
    """
    Weights & Biases, imported for those who use it. For the docstring of each of its classes
    pydantic looks for the modules of all frames, which takes half a minute beside AllenNLP's
    thousands of modules, but not where frames and classes are asked for their module's name.
    """
    search = inspect.getmodule

    def module_of(thing: Any, file: Optional[str] = None) -> Optional[ModuleType]:
        if inspect.isframe(thing):
            return sys.modules.get(thing.f_globals["__name__"])
        if inspect.isclass(thing):
            return sys.modules.get(thing.__module__)
        return search(thing, file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect, "getmodule", module_of)
        import_module("wandb.wandb_agent")
        return import_module("wandb")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """For all that follows, until the test changes it; then as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def two_threads(one_thread: None) -> None:
    torch.set_num_threads(2)


@pytest.fixture(params=[1, 2])
def each_number_of_threads(request: pytest.FixtureRequest, one_thread: None) -> None:
    torch.set_num_threads(request.param)


@pytest.fixture(params=["compiled", "plain"])
def each_code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Once with the compiled functions, if there are any, and once without. `COMPILED` of the tests'
    file says which they are: a module, and the name that they have there.
    """
    module, name = request.module.COMPILED
    if request.param == "plain":
        nothing: Dict[torch.dtype, object] = {}
        monkeypatch.setattr(module, name, nothing)
    elif not getattr(module, name):
        pytest.skip("it was not compiled here")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window, driven by Playwright."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: requirements-dev.txt has it"
    )
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("there is no chromium here: apt install chromium")
    with playwright.sync_playwright() as started:
        # A container runs as root, and has little shared memory.
        options = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = started.chromium.launch(executable_path=program, args=options)
        yield browser
        browser.close()
