"""
How far the scores of `allennlp elmo-score` are from the perplexities that the original
implementation computes by its own `test` of the same language model and sentences. Runs in the
environment that `vectors.py` tells of:

    folder=runs/tiny
    runs/bilm_tf/bin/python benchmarks/bilm_tf/language_model.py fixtures/text/sentences.txt $folder
    allennlp elmo-score $folder/weights.hdf5 sentences.txt --options-file $folder/options.json \
        --softmax-file $folder/softmax_weights.hdf5 --vocab-path $folder/vocab.txt \
        --state reset -o scores.jsonl
    runs/bilm_tf/bin/python benchmarks/bilm_tf/perplexity.py $folder sentences.txt scores.jsonl

The folder holds a checkpoint of the original's training and `vocab.txt`. Each sentence is read from
zeros: the original carries its state to the next sentence without reading the end of the one
before, which its released models read in use, as `elmo-score` does.
"""

import argparse
import contextlib
import io
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List

import tensorflow_1  # noqa: F401
from bilm.data import BidirectionalLMDataset
from bilm.training import load_options_latest_checkpoint, load_vocab, test
from tensorflow.compat import v1 as tensorflow

TOLERANCE = 1e-5
"""The largest relative difference that a perplexity may have."""


class WholeText:
    """A data set as the original's `test` wants it, which also ends in a Python of today."""

    def __init__(self, batches: BidirectionalLMDataset) -> None:
        self._batches = batches

    def iter_batches(self, batch_size: int, num_steps: int) -> Iterator[Dict[str, Any]]:
        """The data set's batches. It ends by an error that is one since Python 3.7 (PEP 479)."""
        try:
            yield from self._batches.iter_batches(batch_size, num_steps)
        except RuntimeError as error:
            if not isinstance(error.__cause__, StopIteration):
                raise


def main() -> None:
    """Prints the perplexities and the largest difference; exits with 1 if that is too large."""
    args = parse_arguments()
    # Importing the original has asked for more.
    tensorflow.logging.set_verbosity(tensorflow.logging.ERROR)
    sentences = args.sentences.read_text(encoding="utf-8").splitlines()
    theirs = original_perplexities(args.folder, sentences)
    if args.output is not None:
        args.output.write_text(json.dumps(theirs, indent=1) + "\n", encoding="utf-8")
    if args.scores is None:
        return
    *scored, text = map(json.loads, args.scores.read_text(encoding="utf-8").splitlines())
    ours = [*(one["perplexity"] for one in scored), text["text"]["perplexity"]]
    differences = [
        abs(one / other - 1)
        for one, other in zip(ours, [*theirs["sentences"], theirs["text"]], strict=True)
    ]
    print(f"the text     {theirs['text']:.6f}  ours {ours[-1]:.6f}")
    print(f"difference   {max(differences):.2e}  {len(sentences)} sentences")
    # NaN is no number that is small enough.
    sys.exit(0 if all(difference <= TOLERANCE for difference in differences) else 1)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a checkpoint and vocab.txt")
    parser.add_argument("sentences", type=Path, help="one a line, tokens between spaces")
    parser.add_argument(
        "scores", type=Path, nargs="?", help="what elmo-score wrote of them from zeros"
    )
    parser.add_argument("-o", "--output", type=Path, help="write the original's numbers as JSON")
    return parser.parse_args()


def original_perplexities(folder: Path, sentences: List[str]) -> Dict[str, Any]:
    """The perplexities that the original's `test` has of each sentence, and of all together."""
    options, checkpoint = load_options_latest_checkpoint(str(folder))
    words = load_vocab(str(folder / "vocab.txt"), options["char_cnn"]["max_characters_per_token"])
    found: List[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "sentence.txt")
        for sentence in sentences:
            path.write_text(sentence + "\n", encoding="utf-8")
            tensorflow.reset_default_graph()
            with contextlib.redirect_stdout(io.StringIO()):
                one = WholeText(BidirectionalLMDataset(str(path), words, test=True))
                found.append(float(test(options, checkpoint, one, batch_size=1)))
    # Each word is predicted, and an end.
    sizes = [len(sentence.split()) + 1 for sentence in sentences]
    loss = sum(size * math.log(one) for size, one in zip(sizes, found)) / sum(sizes)
    return {"sentences": found, "text": math.exp(loss)}


if __name__ == "__main__":
    main()
