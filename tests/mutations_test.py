import json
import shutil
import subprocess
from pathlib import Path
from textwrap import dedent
from typing import List, Set, Tuple

import pytest

from benchmarks.checkout_copy import Copy
from benchmarks.coverage_map import CoverageMap, Imports
from benchmarks.mutable_code import MutableText, Mutation, drawn_mutations
from benchmarks.mutations import Trial, key_of, read_results
from tests import PROJECT_ROOT


def changes(text: str) -> Set[Tuple[str, str, str]]:
    """The kinds of mutations of a text, and what each replaces by what."""
    return {(one.kind, one.before, one.after) for one in MutableText("a.py", text).mutations()}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("x = a < b", {("comparison", "<", "<=")}),
        ("x = (a) >= (b) == c", {("comparison", ">=", ">"), ("comparison", "==", "!=")}),
        ("x = a is  not b", {("comparison", "is  not", "is")}),
        ("x = a not in b", {("comparison", "not in", "in")}),
        ("x = a and not b and c", {("boolean", "and", "or")}),
        ("x = [é, (a\n  or b)]", {("boolean", "or", "and")}),
        ("x = a + b", {("sum", "+", "-")}),
        ("x -= a", {("sum", "-=", "+=")}),
        ("x = 2", {("constant", "2", "3")}),
        ("x = -0.5", {("constant", "0.5", "1.5")}),
        ("x = 1e300", {("constant", "1e300", "2e+300")}),
        ("x = f(y=True)", {("constant", "True", "False")}),
        ("f(a, (b), *c)", {("arguments", "a, (b", "b, (a")}),
        ("def f():\n  '''One.'''\n  g()", {("statement", "g()", "pass")}),
        (
            "def f():\n  x: int = 1\n  return x",
            {("constant", "1", "2"), ("statement", "return x", "pass")},
        ),
    ],
)
def test_each_kind_of_mutation(text: str, expected: Set[Tuple[str, str, str]]) -> None:
    assert changes(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '"""A docstring of 2."""',
        "import a, b\nfrom a import b",
        "def f(x: Literal[1]) -> Union[1, 2]: ...",
        "x: Literal[2]",
        "if TYPE_CHECKING:\n  x = 1",
        "x = 'a' + b + c",
        "x = f'{1 + 1}'",
        "x = None",
        "g(a)",
        "g(*a, **b)",
    ],
)
def test_what_stays_as_it_is(text: str) -> None:
    assert changes(text) == set()


def test_only_the_spot_differs() -> None:
    text = "# é\r\ndef f(a) :\r\n\treturn  a<1 # ü\r\n"
    (turned,) = [one for one in MutableText("a.py", text).mutations() if one.kind == "comparison"]
    assert turned.apply(text) == "# é\r\ndef f(a) :\r\n\treturn  a<=1 # ü\r\n"


def test_the_lines_of_a_mutation_are_its_statement_s() -> None:
    text = dedent(
        """
        LIMIT = 1

        @cached(2)
        def f(a, b=3):
            while (
                a < 4
            ):
                a = g(
                    5)
        """
    )
    lines = {
        one.before: (one.first_line, one.last_line, one.runs_at_import)
        for one in MutableText("a.py", text).mutations()
        if one.kind == "constant"
    }
    assert lines == {
        "1": (2, 2, True),
        "2": (4, 5, True),
        "3": (4, 5, True),
        "4": (6, 8, False),
        "5": (9, 10, False),
    }


def test_what_says_the_same_or_nothing_is_seen() -> None:
    text = MutableText("a.py", "f(a, a)")
    (swapped,) = text.mutations()
    assert not text.is_changed_by(swapped)
    assert not text.is_changed_by(swapped._replace(after="a, ("))
    assert text.is_changed_by(swapped._replace(after="a, b"))


FILES = {
    "elmo_scratch/__init__.py": "",
    "elmo_scratch/numbers/__init__.py": "from elmo_scratch.numbers.limits import is_small\n",
    "elmo_scratch/numbers/limits.py": """
        LIMIT = 3

        def is_small(number):
            return number < LIMIT

        def next_number(number):
            return number + 1

        def unknown(number):
            return number == LIMIT
        """,
    "elmo_scratch/size.py": "SIZE = 1 + 1\n",
    "tests/limits_test.py": """
        from elmo_scratch.numbers import is_small

        def test_small():
            assert is_small(2) and not is_small(3)
        """,
    "tests/process_test.py": """
        import subprocess, sys

        PROGRAM = "from elmo_scratch.numbers.limits import next_number; assert next_number(1) == 2"

        def test_next():
            subprocess.run([sys.executable, "-c", PROGRAM], check=True)

        def test_broken():
            assert 0
        """,
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with two rooms and two tests."""
    root = tmp_path / "checkout"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    plugin = root / "benchmarks" / "coverage_contexts.py"
    plugin.parent.mkdir()
    plugin.with_name("__init__.py").touch()
    shutil.copy(PROJECT_ROOT / "benchmarks" / plugin.name, plugin)
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return root


def drawn_from(checkout: Path, count: int, seed: int = 0) -> List[Mutation]:
    return drawn_mutations(checkout, seed, count, ["elmo_scratch"])


def test_mutations_are_drawn_by_turns_from_each_room(checkout: Path) -> None:
    drawn = drawn_from(checkout, 4)
    folders = [str(Path(one.file).parent) for one in drawn]
    assert folders[:2] == folders[2:]
    assert set(folders) == {"elmo_scratch", "elmo_scratch/numbers"}
    assert drawn_from(checkout, 2) == drawn[:2]
    everything = drawn_from(checkout, 100)
    assert len(set(everything)) == len(everything) == 3 + 8
    assert {tuple(drawn_from(checkout, 4, seed)) for seed in range(5)} != {tuple(drawn)}


@pytest.mark.exhaustive
def test_what_tests_notice(checkout: Path, tmp_path: Path) -> None:
    copy = Copy(checkout, tmp_path / "copy")
    known = CoverageMap.of_run(copy, [])
    known.write(tmp_path / "map.json")
    assert CoverageMap.read(tmp_path / "map.json") == known
    assert known.failed == ["tests/process_test.py::test_broken"]
    by_line = {
        line: {list(known.seconds)[place] for place in places}
        for line, places in known.lines["elmo_scratch/numbers/limits.py"].items()
    }
    assert by_line["4"] == {"tests/limits_test.py"}
    assert by_line["7"] == {"tests/process_test.py"}
    assert "10" not in by_line

    assert copy.run_tests([], timeout=0.1).hung

    mutations = {(one.first_line, one.kind): one for one in drawn_from(checkout, 100)}
    trial = Trial(copy, known)
    limits = checkout / "elmo_scratch" / "numbers" / "limits.py"

    turned = trial.result(mutations[4, "comparison"])
    assert turned["outcome"] == "caught"
    assert turned["failed"] == ["tests/limits_test.py::test_small"]
    assert turned["test_files"] == 1
    assert trial.result(mutations[7, "sum"])["failed"] == ["tests/process_test.py::test_next"]
    assert trial.result(mutations[1, "constant"])["test_files"] == 2
    # That a test fails anyway tells nothing of the mutation.
    trial = Trial(copy, known._replace(failed=[]))
    assert trial.result(mutations[10, "comparison"])["outcome"] == "survived"
    assert (copy.folder / limits.relative_to(checkout)).read_bytes() == limits.read_bytes()


def test_a_result_is_known_again(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    assert read_results(results) == {}
    mutations = MutableText("a.py", "x = 1 + 2").mutations()
    lines = [{**one._asdict(), "source": "abc", "outcome": "caught"} for one in mutations]
    results.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    done = read_results(results)
    assert list(done.values()) == lines
    assert set(done) == {key_of(one._asdict(), "abc") for one in mutations}
    assert key_of(mutations[0]._asdict(), "abd") not in done


def test_an_import_through_a_door_is_followed(checkout: Path) -> None:
    imports = Imports(checkout)
    limits = "elmo_scratch/numbers/limits.py"
    assert imports.tests_that_reach(limits) == {"tests/limits_test.py"}
    assert imports.tests_that_reach("elmo_scratch/size.py") == set()
