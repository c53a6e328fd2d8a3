"""
How fast a corpus is prepared, and how much memory that takes, in a process of its own:

    python benchmarks/corpus.py --tokens 20000000 --shards 4
    python benchmarks/corpus.py --text wiki.train.tokens

Without `--text` the words are random, their frequencies those of Zipf's law. See
benchmarks/README.md for what the lines mean.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, Iterator, List

import numpy
from memory import peak_memory

from elmo_scratch.data.corpus import PreparedCorpus

EXPONENT = 1.05
WORDS_PER_SENTENCE = 25
TOKENS_AT_ONCE = 2**20


def main() -> None:
    """Prints one line of JSON."""
    args = parse_arguments()
    if args.prepare:
        print(json.dumps(measured(args.prepare, args.cache)))
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        shards = [str(path) for path in args.text or write_shards(Path(folder), args)]
        command = [sys.executable, __file__, "--cache", f"{folder}/cache", "--prepare", *shards]
        subprocess.run(command, check=True)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=20_000_000, help="(default: 20000000)")
    parser.add_argument("--shards", type=int, default=4, help="(default: 4)")
    parser.add_argument("--words", type=int, default=1_000_000, help="to draw (default: 1000000)")
    parser.add_argument("--text", type=Path, nargs="+", help="files to prepare instead")
    parser.add_argument("--folder", help="where to write what is removed again (default: /tmp)")
    parser.add_argument("--prepare", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--cache", help=argparse.SUPPRESS)
    return parser.parse_args()


def write_shards(folder: Path, args: argparse.Namespace) -> List[Path]:
    """Random text."""
    rng = numpy.random.default_rng(0)
    words = spelled_words(args.words, rng)
    shares = numpy.cumsum(1 / numpy.arange(1, args.words + 1) ** EXPONENT)
    shares /= shares[-1]
    paths = [folder / f"shard-{number:04}.txt" for number in range(args.shards)]
    for path in paths:
        with open(path, "w", encoding="utf-8") as file:
            left = args.tokens // args.shards
            while left:
                drawn = numpy.searchsorted(shares, rng.random(min(left, TOKENS_AT_ONCE)))
                left -= len(drawn)
                file.writelines(sentences(words[drawn], rng))
    return paths


def spelled_words(number: int, rng: numpy.random.Generator) -> numpy.ndarray:
    """Shape `(words,)`: distinct random words, the shorter ones first."""
    letters = numpy.array(list("abcdefghijklmnopqrstuvwxyz"))
    lengths = numpy.sort(2 + rng.poisson(5, number))
    spelled = ("".join(letters[rng.integers(26, size=length)]) for length in lengths)
    return numpy.array([f"{word}{place % 97}" for place, word in enumerate(spelled)], dtype=object)


def sentences(words: numpy.ndarray, rng: numpy.random.Generator) -> Iterator[str]:
    """Lines of varied lengths."""
    start = 0
    while start < len(words):
        end = start + 1 + int(rng.integers(2 * WORDS_PER_SENTENCE))
        yield " ".join(words[start:end]) + "\n"
        start = end


def measured(shards: List[str], cache: str) -> Dict[str, float]:
    """Seconds and memory of the first start, of the second, and of reading all tokens once."""
    before = peak_memory()
    started, cpu_before = time.perf_counter(), time.process_time()
    corpus = PreparedCorpus.of(shards, cache_dir=cache)
    prepared, cpu_after = time.perf_counter(), time.process_time()
    memory = peak_memory()
    PreparedCorpus.of(shards, cache_dir=cache)
    found = time.perf_counter()
    for first in range(0, len(corpus.tokens), TOKENS_AT_ONCE):
        corpus.tokens[first : first + TOKENS_AT_ONCE].max()
    read = time.perf_counter()
    return {
        "tokens": corpus.audit.tokens,
        "distinct_words": corpus.audit.distinct_words,
        "megabytes": round(corpus.audit.bytes_read / 1e6, 1),
        "seconds": round(prepared - started, 2),
        "cpu_seconds": round(cpu_after - cpu_before, 2),
        "tokens_per_s": round(corpus.audit.tokens / (prepared - started)),
        "second_start_s": round(found - prepared, 3),
        "read_tokens_per_s": round(corpus.audit.tokens / (read - found)),
        "peak_mib": round(memory),
        "peak_mib_before": round(before),
        "cores": os.cpu_count() or 0,
    }


if __name__ == "__main__":
    main()
