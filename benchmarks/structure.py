"""
How the package is built: how much of it one has to read to follow what it does, and how its files
hang together. In this checkout, or in another one:

    python benchmarks/structure.py
    python benchmarks/structure.py --root ../elmo-scratch-before --json before.json

The lines `... entered` run a piece of work twice, each in a process of its own on one thread, and
watch the second run: files / functions / depth. A file counts if any of its code is entered, and a
function if it has a name: comprehensions, generator expressions and lambdas have none. The depth is
the largest number of frames of the package that are on the stack of a thread at once, of whatever
kind they are (from Python 3.12 on, list comprehensions have no frame). With another Python, other
instructions of the processor, or without compiled code, these numbers may differ.

The other lines are counted in the sources of `elmo_scratch`; each function that counts says how.
"""

import argparse
import ast
import io
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import tokenize
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "elmo_scratch"

RUN_ARGUMENTS = {
    "weights",
    "dtype",
    "bias",
    "inputs",
    "batch_sizes",
    "state",
    "clips",
    "output_scale",
}
"""What a run of an LSTM is described by."""

FOREIGN_FILLS = {"fill_", "masked_fill", "index_fill_", "set_fill_time", "FILL_TIME_NEVER"}
"""Identifiers of PyTorch and h5py."""

SHORT = 40
"""Lines; a file with fewer is short."""

Work = Callable[[], Any]


class Entered(NamedTuple):
    """
    How much of a package some work goes through.

    # Parameters

    files, functions : `int`
        How many it enters.
    depth : `int`
        The largest number of frames of the package on one stack.
    """

    files: int
    functions: int
    depth: int

    def __str__(self) -> str:
        return f"{self.files} / {self.functions} / {self.depth}"


class Recorder:
    """A profile function that keeps what is entered in the files below a folder."""

    def __init__(self, package: Path) -> None:
        self._prefix = f"{package}{os.sep}"
        self._codes: Set[CodeType] = set()
        self._depth = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not self._is_inside(frame):
            return
        self._codes.add(frame.f_code)
        depth = 0
        above: Optional[FrameType] = frame
        while above is not None:
            depth += self._is_inside(above)
            above = above.f_back
        self._depth = max(self._depth, depth)

    def _is_inside(self, frame: FrameType) -> bool:
        return frame.f_code.co_filename.startswith(self._prefix)

    def entered(self) -> Entered:
        """The counts of all that was recorded."""
        files = {code.co_filename for code in self._codes}
        functions = [code for code in self._codes if not code.co_name.startswith("<")]
        return Entered(len(files), len(functions), self._depth)


def entered_by(work: Work, package: Path) -> Entered:
    """What the second of two runs enters: the first one imports what is needed."""
    work()
    recorder = Recorder(package)
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return recorder.entered()


def official_files(root: Path) -> Tuple[str, str]:
    """Options and weights of a tiny biLM of characters."""
    folder = root / "fixtures" / "elmo" / "residual"
    return str(folder / "options.json"), str(folder / "weights.hdf5")


def forward(root: Path, folder: Path) -> Work:
    """`Elmo.forward` of eight sentences whose words it has encoded before."""
    from elmo_scratch import Elmo, batch_to_ids

    elmo = Elmo(*official_files(root), 1).eval()
    lines = (root / "fixtures" / "text" / "sentences.txt").read_text(encoding="utf-8").splitlines()
    ids = batch_to_ids([line.split() for line in lines[:8]])
    return lambda: elmo(ids)


def training_step(root: Path, folder: Path) -> Work:
    """Forward, backward and the optimizer's step for a batch of running text."""
    from allennlp.commands.train import TrainModel
    from allennlp.common import Params

    import elmo_scratch  # noqa: F401  (registers what the config names)

    texts = root / "fixtures" / "text"
    variables = {
        "CORPUS_TRAIN": str(texts / "sentences.txt"),
        "CORPUS_DEV": str(texts / "heldout.txt"),
    }
    config = root / "training_config" / "bilm" / "fixture_characters.jsonnet"
    params = Params.from_file(str(config), ext_vars=variables)
    run = TrainModel.from_params(params, serialization_dir=str(folder / "run"), local_rank=0)
    trainer: Any = run.trainer
    batches = iter(list(trainer.data_loader))
    trainer.model.train()

    def step() -> None:
        trainer.optimizer.zero_grad()
        trainer.model(**next(batches))["loss"].backward()
        trainer.optimizer.step()

    return step


def export(root: Path, folder: Path) -> Work:
    """`allennlp elmo --all` with official files."""
    from allennlp.commands import main as allennlp

    options, weights = official_files(root)
    command = ["elmo", str(root / "fixtures" / "text" / "tour.txt"), str(folder / "layers.hdf5")]
    command += ["--all", "--options-file", options, "--weight-file", weights]

    def run() -> None:
        (folder / "layers.hdf5").unlink(missing_ok=True)
        sys.argv = ["allennlp", *command]
        allennlp("allennlp")

    return run


def reading(root: Path, folder: Path) -> Work:
    """An `Elmo` of official files."""
    from elmo_scratch import Elmo

    return lambda: Elmo(*official_files(root), 1)


WORKS: Dict[str, Callable[[Path, Path], Work]] = {
    "Elmo.forward": forward,
    "a training step": training_step,
    "allennlp elmo --all": export,
    "reading official files": reading,
}
"""What is run to see what it enters, by public names alone, so that old code runs as well."""


def entered_in_a_process(work: str, root: Path) -> Optional[Entered]:
    """What a piece of work enters in the checkout, or `None` where it can't be run."""
    command = [sys.executable, str(Path(__file__).resolve()), "--root", str(root), "--work", work]
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": str(root),
            "PYTHONDONTWRITEBYTECODE": "1",
            "ELMO_SCRATCH_CACHE": folder,
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
        }
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        print(f"{work} can't be run:\n{done.stderr[-2000:]}", file=sys.stderr)
        return None
    return Entered(*json.loads(done.stdout.splitlines()[-1]))


class Source(NamedTuple):
    """
    A file of a package.

    # Parameters

    path : `Path`
        Where it lies.
    text : `str`
        What it holds.
    tree : `ast.Module`
        The same, parsed.
    """

    path: Path
    text: str
    tree: ast.Module

    @classmethod
    def read(cls, path: Path) -> "Source":
        text = path.read_text(encoding="utf-8")
        return cls(path, text, ast.parse(text))

    @property
    def is_door(self) -> bool:
        """Whether it is the `__init__.py` of a folder."""
        return self.path.name == "__init__.py"

    def functions(self) -> Iterator[ast.FunctionDef]:
        """All that have a name, methods and nested ones included."""
        yield from (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef))

    def docstrings(self) -> Iterator[ast.Constant]:
        """Strings that stand alone: docstrings, and those below a name that explain it."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                if isinstance(node.value.value, str):
                    yield node.value

    def tokens(self) -> Iterator[tokenize.TokenInfo]:
        yield from tokenize.generate_tokens(io.StringIO(self.text).readline)

    def imported(self) -> Iterator[str]:
        """The full names of what is imported anywhere in the file."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


Graph = Dict[Path, Set[Path]]


def import_graph(sources: List[Source], package: Path) -> Graph:
    """
    The files of the package that each file names in its imports, those within functions and for
    type checkers alone included. A name that an `__init__.py` hands on leads to the `__init__.py`.
    """
    modules = {module_name(source.path, package): source.path for source in sources}
    graph: Graph = {}
    for source in sources:
        named = {
            modules.get(name, modules.get(name.rpartition(".")[0])) for name in source.imported()
        }
        graph[source.path] = {path for path in named if path is not None} - {source.path}
    return graph


def module_name(path: Path, package: Path) -> str:
    """By which the file is imported."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circles(graph: Graph) -> List[Set[Path]]:
    """Sets of several files from each of which imports lead to all others."""
    reached = {path: reachable_from(path, graph) for path in graph}
    found: List[Set[Path]] = []
    for path in sorted(graph):
        circle = {other for other in reached[path] if path in reached[other]}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def reachable_from(path: Path, graph: Graph) -> Set[Path]:
    """All files to which imports lead from this one; itself if they lead back."""
    reached: Set[Path] = set()
    ahead = [path]
    while ahead:
        for other in graph[ahead.pop()] - reached:
            reached.add(other)
            ahead.append(other)
    return reached


def has_one_public_function(source: Source) -> bool:
    """Whether one function is all that has a public name, constants aside."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    public = [
        node
        for node in source.tree.body
        if isinstance(node, kinds) and not node.name.startswith("_")
    ]
    return len(public) == 1 and not isinstance(public[0], ast.ClassDef)


def num_with_one_importer(sources: List[Source], graph: Graph) -> int:
    """Files that one other file alone imports. An `__init__.py` counts as neither of them."""
    inside = [source.path for source in sources if not source.is_door]
    return sum(sum(path in graph[other] for other in inside) == 1 for path in inside)


def num_arrows_up(sources: List[Source], package: Path, test: Path) -> Optional[int]:
    """
    Rooms that a file imports from although they stand no lower than its own, by the `FLOORS` of
    tests/architecture_test.py; `None` where there is no such list.
    """
    floors = floors_of(test)
    if floors is None:
        return None
    floor_of = {room: level for level, rooms in enumerate(floors) for room in rooms}
    count = 0
    for source in sources:
        room = source.path.relative_to(package).with_suffix("").parts[0]
        if room not in ("__init__", "version"):
            names = (name.split(".") for name in source.imported())
            rooms = {parts[1] for parts in names if parts[0] == package.name and parts[1:]}
            above = rooms - {room, "version"}
            count += sum(floor_of.get(other, sys.maxsize) >= floor_of[room] for other in above)
    return count


def floors_of(test: Path) -> Optional[List[List[str]]]:
    """The list `FLOORS` of a test."""
    if test.is_file():
        for node in ast.parse(test.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLOORS":
                return ast.literal_eval(node.value)
    return None


def num_with_run_arguments(sources: List[Source]) -> int:
    """Functions with three or more of `RUN_ARGUMENTS` among their parameters."""
    return sum(
        len(RUN_ARGUMENTS & {argument.arg for argument in parameters(function.args)}) >= 3
        for source in sources
        for function in source.functions()
    )


def parameters(arguments: ast.arguments) -> List[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def docstring_share(sources: List[Source]) -> float:
    """
    Lines of docstrings, blank ones included, for each line of code: one that is not blank, and
    neither a docstring's nor a comment alone.
    """
    in_docstrings = code = 0
    for source in sources:
        lines = source.text.splitlines()
        apart = {
            number
            for docstring in source.docstrings()
            for number in range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1)
        }
        in_docstrings += len(apart)
        apart.update(number for number, line in enumerate(lines, 1) if not line.strip())
        apart.update(
            token.start[0]
            for token in source.tokens()
            if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
        )
        code += len(lines) - len(apart)
    return round(in_docstrings / code, 3)


def num_pointing_elsewhere(sources: List[Source]) -> int:
    """Docstrings, and descriptions of one parameter, that are one sentence which begins `As in`."""
    sentence = re.compile(r"As in .*\.")
    count = 0
    for source in sources:
        for docstring in source.docstrings():
            lines = ["", *str(docstring.value).splitlines(), ""]
            for before, line, after in zip(lines, lines[1:], lines[2:]):
                stands_alone = all(indent(other) < indent(line) for other in (before, after))
                is_whole = stands_alone or not (before.strip() or after.strip())
                said = line.strip()
                if is_whole and sentence.fullmatch(said) and ". " not in said:
                    count += 1
    return count


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def num_fills(sources: List[Source]) -> int:
    """Places where an identifier with the stem `fill` stands that is the package's own."""
    return sum(
        token.type == tokenize.NAME
        and "fill" in token.string.lower()
        and token.string not in FOREIGN_FILLS
        for source in sources
        for token in source.tokens()
    )


def counted(root: Path, package_name: str = PACKAGE) -> Dict[str, Any]:
    """What is counted in the sources of a checkout."""
    package = root / package_name
    sources = [Source.read(path) for path in sorted(package.rglob("*.py"))]
    inside = [source for source in sources if not source.is_door]
    graph = import_graph(sources, package)
    modules = [source for source in sources if package / "modules" in source.path.parents]
    test = root / "tests" / "architecture_test.py"
    return {
        "Python files": len(sources),
        "with one public function only": sum(map(has_one_public_function, inside)),
        "with exactly one importer": num_with_one_importer(sources, graph),
        f"under {SHORT} lines": sum(len(one.text.splitlines()) < SHORT for one in inside),
        "circles of files": len(circles(graph)),
        "arrows up": num_arrows_up(sources, package, test),
        "lines of modules/": sum(len(source.text.splitlines()) for source in modules),
        "functions with 3 run arguments": num_with_run_arguments(sources),
        "docstring lines per line of code": docstring_share(sources),
        'docstrings that only say "As in"': num_pointing_elsewhere(sources),
        "identifiers with the stem fill": num_fills(sources),
    }


def num_tests(root: Path) -> Optional[int]:
    """The tests that `make test` runs, or `None` where they can't be collected."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    command += ["-m", "not install and not large and not exhaustive"]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
    found = re.search(r"^(\d+)(?:/\d+)? tests? collected", done.stdout, re.MULTILINE)
    if done.returncode or found is None:
        print(f"tests can't be collected:\n{done.stdout[-2000:]}{done.stderr}", file=sys.stderr)
        return None
    return int(found[1])


def commit_of(root: Path) -> Optional[str]:
    """The commit that is checked out, with `-dirty` if files differ from it."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() or None


def main() -> None:
    """Prints one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="a checkout (default: this one)")
    parser.add_argument("--tests", action="store_true", help="count the tests too (a minute)")
    parser.add_argument("--json", type=Path, help="a file to write the numbers into")
    parser.add_argument("--work", choices=WORKS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    root = args.root.resolve()
    if args.work:
        work = WORKS[args.work](root, Path.cwd())
        print(json.dumps(entered_by(work, root / PACKAGE)))
        return
    found: Dict[str, Any] = {
        "commit": commit_of(root),
        "Python": platform.python_version(),
        "compiled code": any((root / PACKAGE).rglob("kernels*.so")),
    }
    found.update({f"{work} entered": entered_in_a_process(work, root) for work in WORKS})
    found.update(counted(root))
    if args.tests:
        found["tests"] = num_tests(root)
    for name, value in found.items():
        print(f"{name:>34}  {'-' if value is None else value}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
