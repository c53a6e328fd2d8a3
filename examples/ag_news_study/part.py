"""
Makes the part of AG News that the study is of: rows to train on and rows to measure on, as many of
each class, no text twice, from the published file of 120,000 rows.

    python examples/ag_news_study/part.py train.csv data/ag_news

writes train.csv with 15,872 rows and dev.csv with 2,000 into the folder. The same texts give the
same rows on any machine, whatever their order: those with the smallest SHA-256 of title and
description. They are not the rows of the study's own figures, whose draw can't be repeated: only
their number and their balance are the same.
"""

import argparse
import csv
import hashlib
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.readers import CLASS_NAMES, AgNewsRow, ag_news_rows
from elmo_scratch.files.atomic import atomic_write

NUMBERS = {name: number for number, name in CLASS_NAMES.items()}
"""The numbers of classes by their names."""


def balanced_part(
    rows: Sequence[AgNewsRow], num_train: int, num_dev: int
) -> Tuple[List[AgNewsRow], List[AgNewsRow]]:
    """
    # Parameters

    rows : `Sequence[AgNewsRow]`
        All there are, in any order. Of rows whose descriptions differ only by case and white space
        one is taken.
    num_train, num_dev : `int`
        How many rows are wanted, multiples of four.

    # Returns

    `Tuple[List[AgNewsRow], List[AgNewsRow]]`
        Rows to train on and rows to measure on, in the order of `rows`.

    # Raises

    ConfigurationError
        If a class has too few rows.
    """
    drawn = sorted(range(len(rows)), key=lambda place: (_digest(rows[place]), place))
    by_class: Dict[str, List[int]] = {name: [] for name in NUMBERS}
    known = set()
    for place in drawn:
        description = _without_case(rows[place].description)
        if description not in known:
            known.add(description)
            by_class[rows[place].label].append(place)
    per_class = len(NUMBERS)
    wanted_dev, wanted = num_dev // per_class, (num_dev + num_train) // per_class
    for name, places in by_class.items():
        if len(places) < wanted:
            raise ConfigurationError(
                f"expected {wanted:,} different texts of the class {name}, but found "
                f"{len(places):,}. Ask for fewer by --train and --dev"
            )
    dev = sorted(place for places in by_class.values() for place in places[:wanted_dev])
    train = sorted(place for places in by_class.values() for place in places[wanted_dev:wanted])
    return [rows[place] for place in train], [rows[place] for place in dev]


def _digest(row: AgNewsRow) -> str:
    return hashlib.sha256(f"{row.title}\n{row.description}".encode()).hexdigest()


def _without_case(text: str) -> str:
    return " ".join(text.casefold().split())


def write_rows(rows: Sequence[AgNewsRow], path: Path) -> None:
    """Writes a file as the published ones are: quoted, no header, a backslash for a line break."""
    with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        for row in rows:
            texts = (text.replace("\n", "\\") for text in (row.title, row.description))
            writer.writerow([NUMBERS[row.label], *texts])


def main() -> None:
    """Writes both files and says what they hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("full", type=Path, help="the published train.csv, with a header or without")
    parser.add_argument("folder", type=Path, help="where train.csv and dev.csv are written")
    parser.add_argument("--train", type=int, default=15_872, help="rows to train on")
    parser.add_argument("--dev", type=int, default=2_000, help="rows to measure on")
    args = parser.parse_args()
    if min(args.train, args.dev) < len(NUMBERS) or args.train % 4 or args.dev % 4:
        parser.error("expected multiples of four as --train and --dev: there are four classes")
    places = [args.folder / name for name in ("train.csv", "dev.csv")]
    if there := [str(place) for place in places if place.exists()]:
        parser.error(f"{there[0]} is there already. Take another folder, or remove it")
    try:
        rows = list(ag_news_rows(args.full))
        parts = balanced_part(rows, args.train, args.dev)
    except ConfigurationError as error:
        parser.error(error.message)
    args.folder.mkdir(parents=True, exist_ok=True)
    print(f"{args.full}: {len(rows):,} rows")
    for part, place in zip(parts, places):
        write_rows(part, place)
        print(f"{place}: {len(part):,} rows, {len(part) // 4:,} of each of four classes")


if __name__ == "__main__":
    main()
