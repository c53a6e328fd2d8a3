"""Compares the pages that are made from the code with it, or writes them."""

import argparse
import sys
from pathlib import Path
from typing import Dict

from benchmarks.reference.commands import commands_page
from benchmarks.reference.names import names_page
from benchmarks.reference.settings import settings_page

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"


def pages() -> Dict[Path, str]:
    """The pages by their paths."""
    return {
        FOLDER / "names.md": names_page(),
        FOLDER / "settings.md": settings_page(),
        FOLDER / "commands.md": commands_page(),
    }


def main() -> None:
    """Writes the pages, or names those that differ and leaves with 1."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the pages")
    args = parser.parse_args()
    made = pages()
    stale = [
        path
        for path, page in made.items()
        if not path.exists() or path.read_text(encoding="utf-8") != page
    ]
    for path in stale:
        print(path)
        if args.write:
            path.write_text(made[path], encoding="utf-8")
    if stale and not args.write:
        sys.exit("These pages aren't what the code gives: python -m benchmarks.reference --write")


if __name__ == "__main__":
    main()
