"""Which tests run, and in which order. What they share is in `tests/shared.py`."""

import gc
import os
from itertools import groupby
from typing import List, Tuple

import pytest

from tests.grids import Case, standing_for_all

# Threads cost more than they bring where tensors are tiny, in the processes of tests too.
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


def pytest_configure(config: pytest.Config) -> None:
    """A process that only hands the tests to others needn't wait for what they share."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.import_plugin("tests.shared")


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
