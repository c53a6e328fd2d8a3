"""Lets each call of a writer fail, and compares what is there with the old and the new."""

import random
import re
import shutil
from pathlib import Path
from typing import Any, Dict, Hashable, Iterator, List, NamedTuple, Optional

import torch

from tests.faults.injection import FAULTS, NO_FAULT, Fault, Outcome, run_faulty
from tests.faults.writers import Writer
from tests.grids import standing_for_all

TEMPORARY = re.compile(r"(.*/)?\.[^/]+\.[0-9a-f]{12}\.\d+\.part(/.*)?|.*\.elmo_scratch_part(/.*)?")
"""What a killed process may leave, and the next run of the same command removes."""

EMPTIED = re.compile(r"((?:.*/)?\.[^/]+\.[0-9a-f]{12}\.\d+\.part/)(lock)?")
"""Such a folder out of which the file was moved already, and what it still holds."""

NAMED_AT_RANDOM = re.compile(r"\.[0-9a-f]{12}\.\d+\.part|-[0-9a-f]{32}")
"""The parts of temporary names that differ from call to call."""

Content = Dict[str, Any]
"""What a folder holds, by paths. A folder's name ends in a slash, and it holds `None`."""


class Case(NamedTuple):
    """A fault at a call of a writer, which counts from 1."""

    number: int
    call: str
    fault: Fault

    def __str__(self) -> str:
        return f"{self.fault.name} at call {self.number} ({self.call})"


class Campaign:
    """The faults of a writer of that name. `work` is an empty folder."""

    def __init__(self, name: str, writer: Writer, work: Path) -> None:
        self._name, self._writer = name, writer
        self._folder, self._start, self._said = (work / one for one in ("here", "start", "said"))
        self._start.mkdir()
        self._said.mkdir()
        self._writer.prepare(self._start)
        self._begin()
        self.before = self._content()
        self.undisturbed = self._run(NO_FAULT)
        self.after = self._content()
        if self.undisturbed.error is not None or self.undisturbed.status:
            raise RuntimeError(f"{name}: {self.undisturbed}; {self.said()}")

    def cases(self) -> List[Case]:
        """
        Every fault at the first and the last call of a kind for each file, and one fault, by turns,
        at each call between them: HDF5 writes a file in a hundred pieces.
        """
        calls = self.undisturbed.calls
        kinds = [NAMED_AT_RANDOM.sub("", call) for call in calls]
        last = {kind: place for place, kind in enumerate(kinds)}
        found = []
        for place, call in enumerate(calls):
            is_end = place in (last[kinds[place]], kinds.index(kinds[place]))
            faults = FAULTS if is_end else [FAULTS[place % len(FAULTS)]]
            found += [Case(place + 1, call.replace("\t", " "), fault) for fault in faults]
        return found

    def sampled(self, number: int) -> List[Case]:
        """The same few cases each time."""
        cases = self.cases()
        return random.Random(self._name).sample(cases, min(number, len(cases)))

    def standing_for_all(self) -> List[Case]:
        """The same few cases each time, among them every fault and every kind of call."""
        cases = self.sampled(len(self.cases()))
        values: List[Dict[str, Hashable]] = [
            {"fault": case.fault.name, "call": case.call.partition(" ")[0]} for case in cases
        ]
        return [cases[place] for place in sorted(standing_for_all(values).for_values)]

    def problems(self, case: Case) -> List[str]:
        """What is wrong after a fault, and after the same command has run once more."""
        self._begin()
        outcome = self._run(case.fault, case.number)
        # A log may be written in more pieces this time: then another call has the number.
        made = outcome.calls[case.number - 1] if case.number <= len(outcome.calls) else case.call
        planned, case = case, case._replace(call=made.replace("\t", " "))
        found = [*self._wrong_end(case, outcome), *self._third_things(case)]
        if outcome.status == 0 and outcome.error is None:
            found += [
                problem
                for problem in self._differences("it ended without an error, but")
                if not (case.call.startswith("unlink") and problem.endswith("is left over"))
            ]
        again = self._run()
        if again.error is not None or again.status:
            found.append(f"the next run fails: {again.error or again.status} {self.said()}")
        else:
            found += self._differences("after the next run")
        if found and NAMED_AT_RANDOM.sub("", case.call) != NAMED_AT_RANDOM.sub("", planned.call):
            found.append(f"the call was {case.call}")
        return found

    def said(self) -> str:
        """The end of what the last run has printed."""
        return (self._said / "said.txt").read_text(encoding="utf-8", errors="replace")[-500:]

    def _begin(self) -> None:
        """Brings the folder back to how it was before the writer ran."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._start, self._folder)

    def _run(self, fault: Optional[Fault] = None, number: int = 0) -> Outcome:
        writer, folder = self._writer, self._folder
        return run_faulty(lambda: writer.run(folder), folder, self._said, number, fault)

    def _content(self) -> Content:
        found: Content = {}
        for path in sorted(self._folder.rglob("*")):
            name = path.relative_to(self._folder).as_posix()
            if re.fullmatch(self._writer.underway, name):
                continue
            if path.is_dir():
                found[f"{name}/"] = None
            elif re.fullmatch(self._writer.incidental, name) or TEMPORARY.fullmatch(name):
                found[name] = ""
            else:
                read = (one for kind, one in self._writer.read.items() if re.fullmatch(kind, name))
                found[name] = next(read, Path.read_bytes)(path)
        return found

    def _wrong_end(self, case: Case, outcome: Outcome) -> Iterator[str]:
        """A fault is told by one documented error; a kill kills."""
        if case.fault.is_kill:
            if outcome.status != -9 and (outcome.status, outcome.error) != (0, None):
                yield f"the process ended with {outcome.status}, {outcome.error}"
        elif outcome.status:
            yield f"the process ended with status {outcome.status}: {self.said()}"
        elif outcome.error is not None and not outcome.is_documented:
            yield f"an error of another kind: {outcome.error}"

    def _third_things(self, case: Case) -> Iterator[str]:
        """Files that are neither the old nor the new ones, and old ones that are lost."""
        try:
            now = self._content()
        except Exception as error:
            yield f"a file can't be read: {error!r}"
            return
        may_be_left = case.fault.is_kill or case.call.startswith("unlink")
        for name, content in now.items():
            known = [side[name] for side in (self.before, self.after) if name in side]
            if not known:
                if not (may_be_left and TEMPORARY.fullmatch(name.rstrip("/"))):
                    yield f"{name} is left over"
            elif not any(is_same(content, one) for one in known):
                yield f"{name} is neither the old nor the new file"
        lost = [name for name in self.before if name in self.after and name not in now]
        marked = self._writer.together
        is_between = bool(marked) and marked[-1] not in now
        for name in lost:
            if not (case.fault.is_kill and is_between and name in marked):
                yield f"{name} is lost"
        if marked and marked[-1] in now:
            sides = [
                all(is_same(now.get(name), side.get(name)) for name in marked)
                for side in (self.before, self.after)
            ]
            if not any(sides):
                yield f"old and new files are together: {', '.join(marked)}"

    def _differences(self, when: str) -> Iterator[str]:
        """Where the folder isn't as an undisturbed run leaves it."""
        try:
            now = self._content()
        except Exception as error:
            yield f"{when} a file can't be read: {error!r}"
            return
        for name in sorted({*now, *self.after}):
            if name not in now:
                if not re.fullmatch(self._writer.optional, name):
                    yield f"{when} {name} is missing"
            elif name not in self.after:
                if not _is_emptied(name, now):
                    yield f"{when} {name} is left over"
            elif not is_same(now[name], self.after[name]):
                yield f"{when} {name} differs"


def _is_emptied(name: str, now: Content) -> bool:
    """
    Whether a path is a temporary folder without a file in it, or the lock of one. It stays where
    the next run finds the file whole, and has nothing to write.
    """
    found = EMPTIED.fullmatch(name)
    return found is not None and all(
        EMPTIED.fullmatch(one) for one in now if one.startswith(found[1])
    )


def is_same(one: Any, other: Any) -> bool:
    """Whether two contents are equal, to the bit where they hold tensors."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other)
