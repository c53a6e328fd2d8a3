"""
How fast `allennlp elmo-score` is beside `allennlp evaluate`, on the same text and archive, without
the time that both take to start:

    python benchmarks/score.py model.tar.gz text.txt

Words a second of processor time, by turns, the best of each; and the largest difference between the
perplexities. `--top` finds the likely words of each place too.
"""

import argparse
import logging
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Callable, Dict, List, Tuple

from allennlp.data import DataLoader
from allennlp.evaluation import SimpleEvaluator
from allennlp.models import load_archive

from elmo_scratch import SentenceScorer
from elmo_scratch.scoring import TextScore, json_lines

Timed = Tuple[float, Dict[str, float]]


def main() -> None:
    """Prints a line for each command, and the difference."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archive", help="of a language model")
    parser.add_argument("text", help="as its dataset reader reads it")
    parser.add_argument("--top", type=int, default=0, help="likely words a place (default: 0)")
    parser.add_argument("--repeats", type=int, default=3, help="(default: 3)")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    ways: Dict[str, Callable[[], Timed]] = {
        "evaluate": lambda: evaluated(args.archive, args.text),
        "elmo-score": lambda: scored(args.archive, args.text, args.top),
    }
    found: Dict[str, List[Timed]] = {name: [] for name in ways}
    for _ in range(args.repeats):
        for name, way in ways.items():
            found[name].append(way())
    num_words = found["elmo-score"][0][1].pop("words")
    for name, runs in found.items():
        print(f"{name:<12}{num_words / min(seconds for seconds, _ in runs):>10,.0f} words/s")
    (_, metrics), (_, scores) = found["evaluate"][0], found["elmo-score"][0]
    print(f"largest difference {max(abs(metrics[name] - scores[name]) for name in scores):.1e}")


def evaluated(archive_file: str, text: str) -> Timed:
    """The seconds of an evaluation, and its metrics."""
    archive = load_archive(archive_file)
    config = archive.config
    settings = config.get("validation_data_loader") or config["data_loader"]
    started = time.process_time()
    loader = DataLoader.from_params(
        settings, reader=archive.validation_dataset_reader, data_path=text
    )
    loader.index_with(archive.model.vocab)
    with open(os.devnull, "w") as nowhere:
        metrics = SimpleEvaluator()(archive.model, loader, metrics_output_file=nowhere.name)
    return time.process_time() - started, metrics


def scored(archive_file: str, text: str, top: int) -> Timed:
    """The seconds of writing all scores to a file, and the perplexities with the count of words."""
    scorer = SentenceScorer.from_archive(archive_file)
    started = time.process_time()
    total = TextScore()
    with TemporaryDirectory() as folder, open(Path(folder) / "scores.jsonl", "w") as file:
        for score in scorer.score_text(text, top):
            total.add(score)
            file.writelines(json_lines(score))
    return time.process_time() - started, {"words": total.num_words, **total.perplexities()}


if __name__ == "__main__":
    main()
