"""Reads result files of studies: what many trainings reached, without their folders."""

from pathlib import Path
from statistics import mean, stdev
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.strict_json import printable, read_json
from elmo_scratch.report.metrics import Confusion, confusion_of

NAMES = ("study.json", "gains.json")
"""What the studies in examples/ call the file in their folder."""

MAX_WAYS, MAX_TRAININGS = 64, 10_000
"""A part has at most so many ways, and a file so many trainings."""

MAX_LAYERS = 64
"""A mix has at most so many."""

SCORE = "accuracy or F1"
"""What `best` and `last` are, where trainings have one score only."""


class Trained(NamedTuple):
    """
    What one training reached.

    # Parameters

    seed : `int`
        Of its draws.
    scores : `Dict[str, float]`
        Finite numbers of its best epoch on the validation data, the more the better.
    last : `float`, optional
        The first of the scores after the last epoch.
    seconds : `float`, optional
        What it took.
    shares : `Tuple[float, ...]`
        How much each layer makes up of a mix, each in `[0, 1]`; may be empty.
    confusion : `Confusion`, optional
        What was predicted for what.
    """

    seed: int
    scores: Dict[str, float]
    last: Optional[float]
    seconds: Optional[float]
    shares: Tuple[float, ...]
    confusion: Optional[Confusion]


class Way(NamedTuple):
    """What is compared with others of the same part: trainings that differ in their seeds only."""

    part: str
    name: str
    trainings: List[Trained]

    def values(self, score: str) -> List[float]:
        """One of the scores, a number a training."""
        return [training.scores[score] for training in self.trainings]

    def mean(self, score: str) -> float:
        """Of `values`."""
        return mean(self.values(score))

    def deviation(self, score: str) -> Optional[float]:
        """The standard deviation of `values`; `None` of one training."""
        return stdev(self.values(score)) if len(self.trainings) > 1 else None

    def last(self) -> Optional[float]:
        """The mean of the first score after the last epoch, where it is known."""
        known = [one.last for one in self.trainings if one.last is not None]
        return mean(known) if known else None

    def seconds(self) -> Optional[float]:
        """The mean of what a training took, where it is known."""
        known = [one.seconds for one in self.trainings if one.seconds is not None]
        return mean(known) if known else None

    def shares(self) -> List[float]:
        """The mean share of each layer, where it is known; may be empty."""
        known = [one.shares for one in self.trainings if one.shares]
        return [mean(layer) for layer in zip(*known)]

    def confusion(self) -> Optional[Confusion]:
        """The sum over all trainings that have one."""
        known = [one.confusion for one in self.trainings if one.confusion is not None]
        if not known:
            return None
        rows = zip(*(one.counts for one in known))
        return Confusion(known[0].names, tuple(tuple(map(sum, zip(*counts))) for counts in rows))


class Study(NamedTuple):
    """
    # Parameters

    path : `Path`
        The file.
    scores : `Tuple[str, ...]`
        The names of the scores that all trainings have; the first one is what ways are compared by.
    ways : `List[Way]`
        At least one, in the order of the file.
    """

    path: Path
    scores: Tuple[str, ...]
    ways: List[Way]

    def parts(self) -> Dict[str, List[Way]]:
        """The ways of each part."""
        parts: Dict[str, List[Way]] = {}
        for way in self.ways:
            parts.setdefault(way.part, []).append(way)
        return parts


def find_results(folder: Path) -> List[Path]:
    """The result files of studies that lie in a folder."""
    return [folder / name for name in NAMES if (folder / name).is_file()]


def read_results(path: Path) -> Study:
    """
    Reads a list in JSON, in either of two forms:

    - of ways, each with `part`, `name` and `trainings`. A training has a `seed` and `scores`, an
      object of numbers; and may have `last_accuracy`, `seconds`, `shares`, and `confusion` with the
      names of its `classes`: what `examples/ag_news_study` writes;
    - of trainings, each with `part`, `form`, `seed` and `best`, a score between 0 and 1; it may
      have `last` and `seconds`: what `examples/task_gains` writes.

    Other keys are passed over: means are taken anew.

    # Parameters

    path : `Path`
        The file.

    # Returns

    `Study`
        What it holds.

    # Raises

    ConfigurationError
        If it is something else, or more than `MAX_WAYS` or `MAX_TRAININGS`.
    """
    record = read_json(path)
    reader = _Reader(path)
    if not isinstance(record, list) or not record:
        raise reader.error("the file", "a list of what trainings reached", record)
    ways: Dict[Tuple[str, str], List[Trained]] = {}
    for place, one in enumerate(record):
        where = f"number {place}"
        part = reader.text(one, "part", where)
        if "trainings" in reader.object(one, where):
            name = reader.text(one, "name", where)
            trainings = one["trainings"]
            if not isinstance(trainings, list) or not trainings:
                raise reader.error(f"`trainings` of {where}", "a list", trainings)
            found = [
                reader.training(training, f"training {number} of {where}")
                for number, training in enumerate(trainings)
            ]
        else:
            name = reader.text(one, "form", where)
            found = [reader.single(one, where)]
        ways.setdefault((part, name), []).extend(found)
    study = Study(path, (), [Way(part, name, found) for (part, name), found in ways.items()])
    return study._replace(scores=reader.checked(study))


class _Reader:
    """Checks what a file says; errors name it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def error(self, what: str, expected: str, value: Any) -> ConfigurationError:
        return ConfigurationError(
            f"{self._path}: expected {what} to be {expected}, but got "
            f"{printable(repr(value)[:100], 60)}. Is it the result file of a study?"
        )

    def object(self, value: Any, where: str) -> Dict[str, Any]:
        if not isinstance(value, dict):
            raise self.error(where, "an object", value)
        return value

    def text(self, value: Any, key: str, where: str) -> str:
        text = self.object(value, where).get(key)
        if not isinstance(text, str) or not text:
            raise self.error(f"`{key}` of {where}", "a text", text)
        return printable(text)

    def seed(self, record: Dict[str, Any], where: str) -> int:
        seed = record.get("seed")
        if type(seed) is not int or not 0 <= seed < 2**64:
            raise self.error(f"`seed` of {where}", "a whole number from 0 on", seed)
        return seed

    def number(self, value: Any, what: str, least: float = -1e300, most: float = 1e300) -> float:
        if type(value) not in (int, float) or not least <= value <= most:
            within = f" from {least:g} to {most:g}" if most < 1e300 else ""
            raise self.error(what, f"a finite number{within}", value)
        return float(value)

    def optional(
        self, record: Dict[str, Any], key: str, where: str, least: float = -1e300
    ) -> Optional[float]:
        value = record.get(key)
        return None if value is None else self.number(value, f"`{key}` of {where}", least)

    def single(self, record: Dict[str, Any], where: str) -> Trained:
        """A training with one score."""
        best = self.number(record.get("best"), f"`best` of {where}", 0.0, 1.0)
        last = self.optional(record, "last", where)
        seconds = self.optional(record, "seconds", where, 0.0)
        return Trained(self.seed(record, where), {SCORE: best}, last, seconds, (), None)

    def training(self, value: Any, where: str) -> Trained:
        """A training with several scores."""
        record = self.object(value, where)
        scores = self.object(record.get("scores"), f"`scores` of {where}")
        shares = record.get("shares", [])
        if not isinstance(shares, list) or len(shares) > MAX_LAYERS:
            raise self.error(f"`shares` of {where}", f"a list of at most {MAX_LAYERS}", shares)
        confusion = None
        if "confusion" in record:
            confusion = confusion_of(record["confusion"], record.get("classes"))
            if confusion is None:
                expected = "a square of counts with a name in `classes` for each row"
                raise self.error(f"`confusion` of {where}", expected, record["confusion"])
        return Trained(
            self.seed(record, where),
            {
                printable(name): self.number(score, f"`{printable(name)}` of {where}")
                for name, score in scores.items()
            },
            self.optional(record, "last_accuracy", where),
            self.optional(record, "seconds", where, 0.0),
            tuple(self.number(one, f"a share of {where}", 0.0, 1.0) for one in shares),
            confusion,
        )

    def checked(self, study: Study) -> Tuple[str, ...]:
        """The scores that all trainings have. They have to be the same, like a way's classes."""
        trainings = [one for way in study.ways for one in way.trainings]
        scores = tuple(trainings[0].scores)
        others = next((one for one in trainings if set(one.scores) != set(scores)), None)
        if not scores or others is not None:
            names = ", ".join(others.scores if others else ())
            raise self.error(
                "all trainings", f"measured by {', '.join(scores) or 'a score'}", names
            )
        if len(trainings) > MAX_TRAININGS:
            raise self.error("the file", f"of at most {MAX_TRAININGS} trainings", len(trainings))
        for part, ways in study.parts().items():
            if len(ways) > MAX_WAYS:
                raise self.error(f"the part {part}", f"of at most {MAX_WAYS} ways", len(ways))
        for way in study.ways:
            if len({one.confusion.names for one in way.trainings if one.confusion}) > 1:
                raise self.error(f"`classes` of {way.name}", "the same for each seed", "others")
            if len({len(one.shares) for one in way.trainings if one.shares}) > 1:
                raise self.error(f"`shares` of {way.name}", "as many for each seed", "others")
        return scores
