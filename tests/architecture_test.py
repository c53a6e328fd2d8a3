import ast
import inspect
import re
import sys
from importlib import import_module
from itertools import chain
from pathlib import Path
from pkgutil import walk_packages
from typing import Callable, Dict, Iterator, List, Sequence, Set, Union

import pytest

import elmo_scratch
from tests import PROJECT_ROOT

PACKAGE = PROJECT_ROOT / "elmo_scratch"
TESTS = PROJECT_ROOT / "tests"

FLOORS = [
    ["alphabet", "command_line", "files"],
    ["data", "kernels", "metrics", "terminal"],
    ["modules"],
    ["interop"],
    ["own_text", "scoring", "static_vectors", "training"],
    ["embedders", "models", "predictors"],
    ["explore", "export", "search"],
    ["integrations", "report"],
    ["commands"],
    ["registered"],
]
"""The rooms of the package from the ground up. Imports go down only."""

FLOOR_OF: Dict[str, int] = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}

FILES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 800


def source_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def files_that(breaks_a_rule: Callable[[Path], object]) -> List[str]:
    """The files of the package for which this is true."""
    return [str(file.relative_to(PACKAGE)) for file in FILES if breaks_a_rule(file)]


FILE_MODULES = {"h5py", "io", "json", "os", "pathlib", "tarfile"}
"""What would open files: the rooms of `modules` do without."""


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
    imported = imported_rooms(source_of(file)) - {room, "version"}
    return sorted(other for other in imported if FLOOR_OF.get(other, sys.maxsize) >= FLOOR_OF[room])


def test_imports_go_down_only() -> None:
    assert FILES
    forbidden = {str(file.relative_to(PACKAGE)): forbidden_rooms(file) for file in FILES}
    assert {file: rooms for file, rooms in forbidden.items() if rooms} == {}


def test_the_map_for_newcomers_has_every_room() -> None:
    page = source_of(PROJECT_ROOT / "docs" / "design" / "README.md")
    table = page.partition("## The rooms")[2].partition("|---|---|\n")[2].partition("\n\n")[0]
    told = re.findall(r"`(\w+)(?:/|\.py)`", table)
    assert sorted(told) == sorted(FLOOR_OF.keys() - {"registered"})


def test_an_import_that_goes_up_or_sideways_is_seen() -> None:
    source = (
        "def boundary_ids():\n"
        "    from elmo_scratch.data.readers import SentencesReader\n"
        "    from elmo_scratch import interop\n"
        "    import elmo_scratch.models.classifier as classifier, elmo_scratch.modules\n"
    )
    assert imported_rooms(source) == {"data", "interop", "models", "modules"}


def test_annotations_are_not_postponed() -> None:
    # AllenNLP would build dictionaries in place of objects, without a word.
    assert not files_that(
        lambda file: "__future__.annotations" in imported_modules(source_of(file))
    )


def test_unions_are_not_written_with_a_bar() -> None:
    # AllenNLP doesn't look inside `X | None`, and passes on what the config held.
    assert not files_that(lambda file: writes_unions_with_a_bar(source_of(file)))


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


def test_elmo_is_from_scratch() -> None:
    assert not files_that(
        lambda file: any(map(is_elmo_of_allennlp, imported_modules(source_of(file))))
    )


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


def opens_files_or_knows_a_vocabulary(source: str) -> bool:
    modules = list(imported_modules(source))
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return (
        bool({module.split(".")[0] for module in modules} & FILE_MODULES)
        or any(
            module.startswith(("allennlp.data", "allennlp.common.file_utils")) for module in modules
        )
        or "open" in [call.id for call in calls if isinstance(call, ast.Name)]
    )


def test_modules_open_no_file_and_know_no_vocabulary() -> None:
    assert not files_that(
        lambda file: (
            room_of(file) == "modules" and opens_files_or_knows_a_vocabulary(source_of(file))
        )
    )


@pytest.mark.parametrize(
    "source",
    [
        "import h5py",
        "from os.path import join",
        "from allennlp.data import Vocabulary",
        "def f(name):\n    return open(name)",
    ],
)
def test_an_opened_file_or_a_vocabulary_is_seen(source: str) -> None:
    assert opens_files_or_knows_a_vocabulary(source)
    assert not opens_files_or_knows_a_vocabulary("from torch import nn\nself.open()")


def asks_about_hardware(source: str) -> bool:
    """
    Whether the source reads a device's type, asks about a GPU, or compares anything with the name
    of a device. To move a tensor, or to make one on the CPU, is no question.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in ("is_cuda", "is_cpu", "cuda"):
            return True
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith("device.type"):
            return True
        if isinstance(node, ast.Compare):
            if {"'cpu'", "'cuda'"} & {ast.unparse(part) for part in node.comparators}:
                return True
    return False


def test_modules_ask_nothing_about_hardware() -> None:
    assert not files_that(
        lambda file: room_of(file) == "modules" and asks_about_hardware(source_of(file))
    )


@pytest.mark.parametrize(
    "source", ["ids.is_cuda", "x = f(ids.device.type)", "torch.cuda.is_available()", "k == 'cpu'"]
)
def test_a_question_about_hardware_is_seen(source: str) -> None:
    assert asks_about_hardware(source)
    assert not asks_about_hardware("x = torch.zeros(2, device='cpu').to(ids.device)")


def test_files_are_short() -> None:
    assert not files_that(lambda file: len(source_of(file).splitlines()) > MAX_LINES)


def test_files_say_what_they_are() -> None:
    silent = files_that(lambda file: not ast.get_docstring(ast.parse(source_of(file))))
    assert silent == ["version.py"]


Definition = Union[ast.ClassDef, ast.FunctionDef]


def definitions(source: str) -> Iterator[Definition]:
    """The top-level classes and functions of a file."""
    for node in ast.parse(source).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node


def is_registered(definition: Definition) -> bool:
    """Whether configs call it by another name; `exports_test.py` lists all of these."""
    return any(".register(" in ast.unparse(node) for node in definition.decorator_list)


def unexercised(sources: Sequence[str], tested: Set[str]) -> List[str]:
    """
    The public names of a room, given as the sources of its files, that no test reaches. A test
    reaches the names among its words, and whatever else the definition of a reached name mentions.
    """
    mentions: Dict[str, Set[str]] = {}
    reached: Set[str] = set()
    for definition in chain(*map(definitions, sources)):
        words = set(re.findall(r"\w+", ast.unparse(definition)))
        mentions[definition.name] = mentions.get(definition.name, set()) | words
        if definition.name in tested or is_registered(definition):
            reached.add(definition.name)
    waiting = list(reached)
    while waiting:
        for name in mentions[waiting.pop()] & set(mentions) - reached:
            reached.add(name)
            waiting.append(name)
    return sorted(name for name in set(mentions) - reached if not name.startswith("_"))


def test_public_names_of_rooms_are_exercised() -> None:
    words = (re.findall(r"\w+", source_of(test)) for test in TESTS.rglob("*_test.py"))
    tested = set(chain(*words))
    sources: Dict[str, List[str]] = {}
    for file in FILES:
        sources.setdefault(room_of(file), []).append(source_of(file))
    names = {room: unexercised(files, tested) for room, files in sources.items()}
    assert {room: missed for room, missed in names.items() if missed} == {}


def inside_of_kernels(source: str) -> List[str]:
    """What the source imports from within `kernels`, past its door."""
    return [
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (node.module or "").startswith("elmo_scratch.kernels.")
    ]


def test_other_rooms_take_of_kernels_what_its_door_names() -> None:
    assert not files_that(
        lambda file: room_of(file) != "kernels" and inside_of_kernels(source_of(file))
    )


def test_an_import_past_the_door_of_kernels_is_seen() -> None:
    assert inside_of_kernels("def f():\n    from elmo_scratch.kernels.library import LIBRARY")
    assert not inside_of_kernels("from elmo_scratch.kernels import LstmRun")


def test_a_name_that_no_test_reaches_is_seen() -> None:
    source = "def used(): pass\ndef door(): used()\ndef lost(): _lost()\ndef _lost(): pass"
    assert unexercised([source], {"door"}) == ["lost"]
    assert unexercised(["def lost(): used()", source], {"lost"}) == ["door"]
    assert unexercised(['@Model.register("x")\nclass Named: pass'], set()) == []


def test_every_folder_of_tests_is_a_package() -> None:
    tests = list(TESTS.rglob("*_test.py"))
    assert tests
    assert not [str(test) for test in tests if not (test.parent / "__init__.py").is_file()]


def test_the_compatibility_package_does_not_import_the_package() -> None:
    # It runs inside `import torch`.
    files = sorted((PROJECT_ROOT / "elmo_scratch_compat").glob("*.py"))
    assert files
    for file in files:
        modules = imported_modules(file.read_text("utf-8"))
        assert not [module for module in modules if module.split(".")[0] == "elmo_scratch"]


def classes_of_the_package() -> Set[type]:
    for found in walk_packages(elmo_scratch.__path__, f"{elmo_scratch.__name__}."):
        import_module(found.name)
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
