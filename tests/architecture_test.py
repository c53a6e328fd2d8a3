import ast
import inspect
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Set

import pytest

import elmo_scratch.registered  # (every class of the package)
from tests import PROJECT_ROOT

PACKAGE = PROJECT_ROOT / "elmo_scratch"
TESTS = PROJECT_ROOT / "tests"

FLOORS = [
    [
        "alphabet",
        "checked_json",
        "cuda_graphs",
        "freed_memory",
        "located",
        "native_library",
        "on_demand",
        "processors",
        "terminated",
        "whole_file",
    ],
    ["options"],
    ["data", "metrics", "modules"],
    ["interop"],
    ["embedders", "models"],
    ["export", "predictors", "search", "static_vectors", "training"],
    ["commands"],
    ["registered"],
]
"""The rooms of the package from the ground up. Imports go down only."""

FLOOR_OF: Dict[str, int] = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}

FILES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 300

each_file = pytest.mark.parametrize(
    "file", FILES, ids=[str(file.relative_to(PACKAGE)) for file in FILES]
)


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_modules(source: str) -> Iterator[str]:
    """Every module that the source imports anywhere, functions included, by its full name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that a reader sees the floor"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_rooms(source: str) -> Set[str]:
    """The rooms of the package that the source imports from."""
    return {
        name.split(".")[1] for name in imported_modules(source) if name.startswith("elmo_scratch.")
    }


def annotations(source: str) -> Iterator[ast.expr]:
    for node in ast.walk(ast.parse(source)):
        for field in ("annotation", "returns"):
            annotation = getattr(node, field, None)
            if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
                annotation = ast.parse(annotation.value, mode="eval").body
            if annotation is not None:
                yield annotation


def writes_unions_with_a_bar(source: str) -> bool:
    return any(
        isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitOr)
        for annotation in annotations(source)
        for part in ast.walk(annotation)
    )


def forbidden_rooms(file: Path) -> List[str]:
    """The rooms that a file may not import from but does: those not below its own floor."""
    room = room_of(file)
    if room in ("__init__", "version"):
        return []
    assert room in FLOOR_OF, f"{file}: {room!r} stands on no floor; give it one in FLOORS"
    imported = imported_rooms(file.read_text(encoding="utf-8")) - {room, "version"}
    return sorted(other for other in imported if FLOOR_OF.get(other, sys.maxsize) >= FLOOR_OF[room])


@each_file
def test_imports_go_down_only(file: Path) -> None:
    assert forbidden_rooms(file) == []


def test_an_import_that_goes_up_or_sideways_is_seen() -> None:
    source = (
        "def boundary_ids():\n"
        "    from elmo_scratch.data.sentences_reader import SentencesReader\n"
        "    from elmo_scratch import interop\n"
        "    import elmo_scratch.models.classifier as classifier, elmo_scratch.modules\n"
    )
    assert imported_rooms(source) == {"data", "interop", "models", "modules"}


@each_file
def test_annotations_are_not_postponed(file: Path) -> None:
    # AllenNLP would build dictionaries in place of objects, without a word.
    modules = set(imported_modules(file.read_text(encoding="utf-8")))
    assert "__future__.annotations" not in modules


@each_file
def test_unions_are_not_written_with_a_bar(file: Path) -> None:
    # AllenNLP doesn't look inside `X | None`, and passes on what the config held.
    assert not writes_unions_with_a_bar(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "source",
    [
        "def f(n: int | None): pass",
        "def f(*, names: List[str | None] = ()): pass",
        "def f() -> 'int | None': pass",
        "n: Optional[int] | str = 3",
    ],
)
def test_a_union_with_a_bar_is_seen(source: str) -> None:
    assert writes_unions_with_a_bar(source)
    assert not writes_unions_with_a_bar("def f(n: Optional[int] = 1 | 2) -> Union[int, str]: pass")


def is_elmo_of_allennlp(module: str) -> bool:
    """Whether a dotted name leads to what AllenNLP builds ELMo of."""
    parts = ("elmo", "scalar_mix", "scalarmix", "lstm_cell_with_projection")
    return module.startswith("allennlp.modules") and any(part in module.lower() for part in parts)


@each_file
def test_elmo_is_from_scratch(file: Path) -> None:
    modules = imported_modules(file.read_text(encoding="utf-8"))
    assert not [module for module in modules if is_elmo_of_allennlp(module)]


@pytest.mark.parametrize(
    "source",
    [
        "from allennlp.modules import Elmo",
        "from allennlp.modules.elmo import batch_to_ids",
        "from allennlp.modules.token_embedders import ElmoTokenEmbedder",
        "from allennlp.modules import ScalarMix",
        "import allennlp.modules.lstm_cell_with_projection",
    ],
)
def test_an_elmo_of_allennlp_is_seen(source: str) -> None:
    assert any(map(is_elmo_of_allennlp, imported_modules(source)))
    assert not any(map(is_elmo_of_allennlp, imported_modules("from allennlp.modules import X")))


@pytest.mark.parametrize(
    "file", [file for file in FILES if room_of(file) == "modules"], ids=lambda file: file.stem
)
def test_modules_open_no_file_and_know_no_vocabulary(file: Path) -> None:
    source = file.read_text(encoding="utf-8")
    for module in imported_modules(source):
        assert module.split(".")[0] not in {"h5py", "io", "json", "os", "pathlib", "tarfile"}
        assert not module.startswith(("allennlp.data", "allennlp.common.file_utils"))
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    assert "open" not in [call.id for call in calls if isinstance(call, ast.Name)]


@each_file
def test_a_file_is_short(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) < MAX_LINES


@each_file
def test_a_file_says_what_it_is(file: Path) -> None:
    if file.name != "version.py":
        assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))


@each_file
def test_a_file_has_its_test(file: Path) -> None:
    if file.name != "__init__.py":
        path = file.relative_to(PACKAGE)
        assert (TESTS / path.with_name(f"{path.stem}_test.py")).is_file()


def test_a_test_in_a_folder_has_its_file() -> None:
    for test in TESTS.glob("*/**/*_test.py"):
        path = test.relative_to(TESTS)
        root = PROJECT_ROOT if path.parts[0] == "examples" else PACKAGE
        tested = root / path.with_name(f"{path.stem.removesuffix('_test')}.py")
        assert tested.is_file(), f"{test} tests no such file: expected {tested}"


def test_every_folder_of_tests_is_a_package() -> None:
    for test in TESTS.rglob("*_test.py"):
        assert (test.parent / "__init__.py").is_file(), test.parent


def test_the_compatibility_package_does_not_import_the_package() -> None:
    # It runs inside `import torch`.
    files = sorted((PROJECT_ROOT / "elmo_scratch_compat").glob("*.py"))
    assert files
    for file in files:
        modules = imported_modules(file.read_text("utf-8"))
        assert not [module for module in modules if module.split(".")[0] == "elmo_scratch"]


def classes_of_the_package() -> Set[type]:
    return {
        value
        for name, module in list(sys.modules.items())
        if name.startswith(f"{elmo_scratch.__name__}.")
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == name
    }


def test_classes_are_abstract_or_final() -> None:
    ours = classes_of_the_package()
    assert len(ours) > 20
    for one in ours:
        for base in ours & set(one.__mro__[1:]):
            assert inspect.isabstract(base), f"{one} is made from {base}, which is not abstract"
