"""What several tests share, each made once: a tiny biLM, a classifier on top, official files."""

import gc
import inspect
import os
import random
import shutil
import sys
from functools import lru_cache
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy
import pytest
import spacy
import torch

import elmo_scratch  # noqa: F401  (registers what the configs name)
from elmo_scratch.interop import PretrainedBiLm, read_bilm_archive
from elmo_scratch.kernels.precision import BFLOAT16
from tests.grids import Case, standing_for_all
from tests.tiny_elmo import OfficialFiles, write_files
from tests.tiny_training import CONFIGS, logging_as_before, params_on_fixtures, train

# Threads cost more than they bring where tensors are tiny, here and in the processes of tests.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")


LONGEST_FILES = [
    "tests/examples/ag_news_study/__main___test.py",
    "tests/commands/elmo_test.py",
    "tests/sanitizers_test.py",
    "tests/export/ray_engine_test.py",
    "tests/faults/faults_test.py",
    "tests/distributed_test.py",
    "tests/strangers/structure_test.py",
    "tests/notebook_test.py",
    "tests/small_text_test.py",
    "tests/emulated_tiles_test.py",
    "tests/flat_memory_test.py",
    "tests/examples/task_gains/__main___test.py",
    "tests/examples/ag_news_study/cross_validation_test.py",
    "tests/training/exact_resume_test.py",
    "tests/compat_test.py",
    "tests/recover_streams_test.py",
    "tests/registered_test.py",
    "tests/compat_data_loaders_test.py",
    "tests/modules/softmaxes/full_softmax_test.py",
    "tests/embedders/bilm_embedder_test.py",
    "tests/search/search_test.py",
    "tests/export/export_test.py",
    "tests/task_configs_test.py",
    "tests/training_config_test.py",
    "tests/bad_input_test.py",
    "tests/kernels/lstm/function_test.py",
    "tests/embedders/layer_cache/cache_test.py",
    "tests/search/study_test.py",
    "tests/examples/ag_news_study/plan_test.py",
    "tests/equal_vectors_test.py",
    "tests/official_archive_test.py",
    "tests/golden_test.py",
]
"""They begin first, so that no process is left alone with one of them in the end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole-grids", action="store_true", help="run all cases of large grids")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: List[pytest.Item]) -> None:
    """
    Chooses the cases of large grids. Those that stand for all values run by default, those that
    stand for all pairs of values are exhaustive, and the others are left out. A case that is
    skipped on this machine stands for none that runs. The longest files come first.
    """
    left_out: List[pytest.Item] = []
    grids = groupby(sorted(items, key=grid_of), key=grid_of)
    for (_, is_skipped), cases in grids:
        grid = list(cases)
        if is_skipped:
            # One case is enough to say why.
            left_out += grid[1:]
            continue
        standing = standing_for_all([values_of(item) for item in grid])
        for place, item in enumerate(grid):
            if place not in standing.for_values:
                item.add_marker("exhaustive")
            if place not in standing.for_pairs:
                left_out.append(item)
    if left_out and not config.getoption("--whole-grids"):
        config.hook.pytest_deselected(items=left_out)
        unneeded = set(left_out)
        items[:] = [item for item in items if item not in unneeded]
    places = {file: place for place, file in enumerate(LONGEST_FILES)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def grid_of(item: pytest.Item) -> Tuple[str, bool]:
    """The test of a case, and whether a mark skips it."""
    is_skipped = any(mark.args[:1] == (True,) for mark in item.iter_markers("skipif"))
    return item.nodeid.partition("[")[0], is_skipped


def pytest_collection_finish() -> None:
    """Spares each collection of garbage the objects of all imported modules, which stay anyway."""
    gc.freeze()


def values_of(item: pytest.Item) -> Case:
    """What a case gives to its parameters: one value for those that are given values together."""
    params = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    values: Case = {}
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
        together = [name.strip() for name in names]
        values[",".join(together)] = repr([params.pop(name) for name in together])
    return {**values, **{name: repr(value) for name, value in params.items()}}


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
