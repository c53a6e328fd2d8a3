import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Iterator

import pytest

INIT = """
from elmo_scratch.files.lazy_exports import lazy_exports

HERE = 1
__getattr__, __dir__ = lazy_exports(__name__, {"Far": "deep.far", "Near": "near"})
__all__ = ["Far", "HERE", "Near"]
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package with two names on demand, one in a module and one in a package's module."""
    root = tmp_path / "some_package"
    (root / "deep").mkdir(parents=True)
    (root / "__init__.py").write_text(INIT, encoding="utf-8")
    (root / "near.py").write_text("class Near: pass\n", encoding="utf-8")
    (root / "broken.py").write_text("import some_package.missing\n", encoding="utf-8")
    (root / "deep" / "__init__.py").touch()
    (root / "deep" / "far.py").write_text("class Far: pass\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("some_package")
    for name in [name for name in sys.modules if name.startswith("some_package")]:
        del sys.modules[name]


def test_nothing_is_imported_before_it_is_used(package: ModuleType) -> None:
    assert [name for name in sys.modules if name.startswith("some_package")] == ["some_package"]
    assert package.Near.__module__ == "some_package.near"
    assert "some_package.deep" not in sys.modules
    assert package.Far.__module__ == "some_package.deep.far"


def test_a_name_is_looked_up_once(package: ModuleType) -> None:
    near = package.Near
    assert vars(package)["Near"] is near


def test_names_can_be_imported_from_the_package(package: ModuleType) -> None:
    names: dict = {}
    exec("from some_package import *", names)
    assert names["Far"] is package.Far
    assert names["HERE"] == 1
    assert set(names) == {"Far", "HERE", "Near", "__builtins__"}


def test_modules_are_there_on_demand_too(package: ModuleType) -> None:
    assert package.near.Near is package.Near
    assert package.deep is sys.modules["some_package.deep"]


def test_all_that_there_is_is_listed(package: ModuleType) -> None:
    assert dir(package) == ["Far", "HERE", "Near", "broken", "deep", "near"]


@pytest.mark.parametrize("name", ["Other", "missing", "__wrapped__"])
def test_what_is_not_there_is_missed_as_from_any_module(package: ModuleType, name: str) -> None:
    assert not hasattr(package, name)
    with pytest.raises(AttributeError, match=f"'some_package' has no attribute '{name}'"):
        getattr(package, name)
    with pytest.raises(ImportError, match=f"cannot import name '{name}'"):
        exec(f"from some_package import {name}")


def test_a_module_that_fails_is_not_taken_for_a_missing_one(package: ModuleType) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"some_package\.missing"):
        package.broken  # noqa: B018
