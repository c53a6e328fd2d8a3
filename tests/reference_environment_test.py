"""`docs/reference/environment.md`: the environment variables that code and configs read."""

import ast
import re
from pathlib import Path
from typing import Dict, Iterator, List, Set

from tests import PROJECT_ROOT

PAGE = (PROJECT_ROOT / "docs" / "reference" / "environment.md").read_text("utf-8")

SOURCES = [
    file
    for package in ("elmo_scratch", "elmo_scratch_compat")
    for file in sorted((PROJECT_ROOT / package).rglob("*.py"))
]

ENVIRONMENT = ("os.environ", "os.getenv")
"""How code names the environment, or the function that reads it."""


def listed(heading: str) -> Set[str]:
    """The variables that items of a section begin with, or all that such an item lists."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    items = re.split(r"^- ", section, flags=re.MULTILINE)[1:]
    heads = [item if item.startswith("Data of") else item.partition(":")[0] for item in items]
    return {name for head in heads for name in re.findall(r"`([A-Z][A-Za-z_]+)`", head)}


def constants(source: str) -> Dict[str, List[str]]:
    """The names of a file that stand for strings, or for several of them."""
    found: Dict[str, List[str]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign):
            strings = [
                one.value
                for one in ast.walk(node.value)
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = strings
    return found


def variables_read(source: str) -> Iterator[str]:
    """
    The names by which a source reads the environment, or asks whether they are there. One that is
    not known is an error: a test can't list it.
    """
    known = constants(source)
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension) and isinstance(node.target, ast.Name):
            known[node.target.id] = known.get(ast.unparse(node.iter), [])
    for node in ast.walk(tree):
        names: List[ast.expr] = []
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ENVIRONMENT:
            names = [node.slice]
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ENVIRONMENT or called.rpartition(".")[0] in ENVIRONMENT:
                names = node.args[:1]
        elif isinstance(node, ast.Compare):
            if ast.unparse(node.comparators[0]) in ENVIRONMENT:
                names = [node.left]
        for name in names:
            if isinstance(name, ast.Constant):
                yield name.value
            else:
                assert known.get(ast.unparse(name)), f"{ast.unparse(node)}: which variable?"
                yield from known[ast.unparse(name)]


def test_the_page_lists_what_the_package_reads() -> None:
    read = {name for file in SOURCES for name in variables_read(file.read_text("utf-8"))}
    assert "ELMO_SCRATCH_CACHE" in read
    assert read == listed("Read by the package") | listed("Set by other code")


def test_compiled_code_reads_none() -> None:
    native = PROJECT_ROOT / "elmo_scratch" / "kernels" / "native"
    files = [*native.rglob("*.cpp"), *native.rglob("*.h")]
    assert files
    assert not [str(file) for file in files if "getenv" in file.read_text("utf-8")]


def test_the_page_lists_what_configs_ask_for() -> None:
    asked: Set[str] = set()
    for pattern in ("*.jsonnet", "*.libsonnet"):
        for config in (PROJECT_ROOT / "training_config").rglob(pattern):
            asked |= set(re.findall(r'extVar\("(\w+)"\)', Path(config).read_text("utf-8")))
    assert asked == listed("Asked for by configs")


def test_each_way_to_read_a_variable_is_seen() -> None:
    source = (
        "SWITCH = 'A'\nSEVERAL = 'B', 'C'\n"
        "os.environ.get(SWITCH)\nany(name in os.environ for name in SEVERAL)\n"
        "os.environ['D'] = '1'\nos.getenv('E', '')\nos.environ.pop('F', None)\nx.get('G')\n"
    )
    assert sorted(variables_read(source)) == list("ABCDEF")
