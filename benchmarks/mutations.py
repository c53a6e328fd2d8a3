"""
Which share of small changes to the package's code the tests notice:

    python -m benchmarks.mutations --list
    python -m benchmarks.mutations --map runs/map.json --results runs/results.jsonl
    python -m benchmarks.mutations --within elmo_scratch/metrics.py --pytest tests/metrics --count 5

Each mutation changes one spot in a copy of the checkout: it turns a comparison, an `and` or a `+`,
changes a number or a truth value, drops a statement of a function, or swaps two arguments of a
call. Strings, imports and annotations stay as they are. Mutations are drawn with a seed, by turns
from each folder of the package; from the same code they are always the same.

Which test file runs which lines is measured once, by a run of all tests, and kept in the file that
`--map` names. For a mutation only those test files run that have run its lines, the fastest first,
until a test fails; where its lines run when a module is imported, or no test has run them, those
that run anything of the file or import it. A test that fails without the mutation as well doesn't
count. A mutation is caught if a test fails, or takes so long that it seems to hang.

Each result is a line of the file that `--results` names. What stands there isn't run again.
"""

import argparse
import json
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

from benchmarks.checkout_copy import Copy, Run
from benchmarks.coverage_map import CoverageMap, Imports, hash_of
from benchmarks.mutable_code import PACKAGES, Mutation, drawn_mutations, read_text

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 5
"""How many times longer than usual a test may take."""


class Trial:
    """
    Runs the tests on one mutation after the other.

    # Parameters

    copy : `Copy`
        Where.
    known : `CoverageMap`
        Which tests to run.
    """

    def __init__(self, copy: Copy, known: CoverageMap) -> None:
        self._copy = copy
        self._known = known
        self._imports = Imports(copy.folder)
        self._passing: Set[str] = set()
        self._failing = set(known.failed)

    def result(self, mutation: Mutation) -> Dict[str, Any]:
        """What comes of a mutation."""
        started = time.perf_counter()
        text = read_text(self._copy.folder / mutation.file)
        files = self._known.selected(mutation, text, self._imports)
        run = self._run_on(mutation, text, files)
        while not run.passed and not run.hung and not self._passes_without(run, files):
            run = self._run_on(mutation, text, files)
        return {
            **mutation._asdict(),
            "source": hash_of(text),
            "outcome": "survived" if run.passed else "timed out" if run.hung else "caught",
            "failed": run.failed,
            "test_files": len(files),
            "seconds": round(time.perf_counter() - started, 1),
        }

    def _run_on(self, mutation: Mutation, text: str, files: List[str]) -> Run:
        """Runs the test files on the mutated code, until a test fails."""
        # A collected file that fails can't be deselected.
        files = [file for file in files if file not in self._failing]
        if not files:
            return Run(True, False, [], "")
        deselected = [f"--deselect={test}" for test in sorted(self._failing) if "::" in test]
        slowest = max(self._known.slowest[file] for file in files)
        longest = sum(self._known.seconds[file] for file in files)
        self._copy.write_code(mutation.file, mutation.apply(text))
        try:
            return self._copy.run_tests(
                ["-x", f"--timeout={PATIENCE * (slowest + 10):.0f}", *deselected, *files],
                timeout=PATIENCE * (longest + 60),
            )
        finally:
            self._copy.write_code(mutation.file, text)

    def _passes_without(self, run: Run, files: List[str]) -> bool:
        """Whether the tests that failed pass without the mutation; if not, they are left out."""
        # Where no test is known to have failed, Python has crashed, or tests could not begin.
        suspects = run.failed or files[:1]
        if not set(suspects) <= self._passing:
            if not self._copy.run_tests(suspects).passed:
                if not run.failed or set(suspects) <= self._failing:
                    sys.exit(f"the tests fail without a mutation:\n{run.output[-3000:]}")
                self._failing.update(suspects)
                return False
            self._passing.update(suspects)
        return True


def main() -> None:
    """Prints one line for each mutation, and the share that is caught."""
    args = parse_arguments()
    drawn = drawn_mutations(ROOT, args.seed, args.count, args.within)
    numbered = list(enumerate(drawn, start=1))
    if args.only is not None:
        numbered = numbered[args.only - 1 : args.only]
    if args.list:
        for number, mutation in numbered:
            print(f"{number:>4}  {mutation}")
        return
    done = read_results(args.results)
    args.results.parent.mkdir(parents=True, exist_ok=True)
    outcomes: List[str] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(ROOT, Path(folder).resolve())
        if not args.map.exists():
            CoverageMap.of_run(copy, shlex.split(args.pytest)).write(args.map)
        trial = Trial(copy, CoverageMap.read(args.map))
        for number, mutation in numbered:
            key = key_of(mutation._asdict(), hash_of(read_text(ROOT / mutation.file)))
            if key not in done:
                done[key] = trial.result(mutation)
                with args.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(done[key]) + "\n")
            outcome = done[key]["outcome"]
            outcomes.append(outcome)
            print(f"{number:>4}  {outcome:9}  {mutation}", flush=True)
    count = len(outcomes) - outcomes.count("survived")
    if outcomes:
        print(f"caught {count} of {len(outcomes)}, {count / len(outcomes):.1%}")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0, help="(default: 0)")
    parser.add_argument("--count", type=int, default=60, help="mutations (default: 60)")
    parser.add_argument(
        "--within", nargs="+", default=PACKAGES, help="files and folders (default: the packages)"
    )
    parser.add_argument("--list", action="store_true", help="only print what is drawn")
    parser.add_argument("--only", type=int, metavar="N", help="only the mutation of this number")
    parser.add_argument(
        "--map",
        type=Path,
        default=ROOT / "runs" / "mutations" / "map.json",
        help="which tests run which lines; made if it isn't there (default: %(default)s)",
    )
    parser.add_argument(
        "--pytest", default="", metavar="ARGUMENTS", help="for the run that makes the map"
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=ROOT / "runs" / "mutations" / "results.jsonl",
        help="(default: %(default)s)",
    )
    return parser.parse_args()


def read_results(path: Path) -> Dict[Tuple[Any, ...], Dict[str, Any]]:
    """The results of earlier runs."""
    done: Dict[Tuple[Any, ...], Dict[str, Any]] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            result = json.loads(line)
            done[key_of(result, result["source"])] = result
    return done


def key_of(mutation: Dict[str, Any], source: str) -> Tuple[Any, ...]:
    """By which a mutation of a file with this hash is known again."""
    return (*(mutation[name] for name in ("file", "start", "end", "after")), source)


if __name__ == "__main__":
    main()
