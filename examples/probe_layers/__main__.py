"""
What each layer of a biLM holds, beside static word vectors: the part of speech of a token, and
whether a word has the same sense in two sentences.

    python examples/probe_layers --weight-file model.tar.gz --vectors word2vec.txt \\
      --pos en_ewt-ud-train.conllu en_ewt-ud-dev.conllu --wic wic/train wic/dev

`--pos` are files in CoNLL-U. `--wic` are those of Word in Context without `.data.txt` and
`.gold.txt`. For parts of speech a logistic regression reads one vector and names the tag; for
senses, one number is learned: how large the cosine between the two vectors of the word must be.
Files of static vectors lack words, a biLM of characters none: what is measured on the words that
all files have stands in columns of its own. The biLM reads each sentence once, from zeros:
`--layers` are exported as by `allennlp elmo --all --state reset`, and read from there by both.
"""

import argparse
import json
import math
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Dict

from allennlp.common.checks import ConfigurationError
from probes import known_pairs, known_tokens, probes
from texts import Texts, pairs_of, tagged
from vectors import Known, Vectors, contextual, known_to, line_of, static

from elmo_scratch import LayerFile
from elmo_scratch.export import ExportSettings, InputText, ModelSource, export_layers
from elmo_scratch.files.atomic import atomic_write, check_place
from elmo_scratch.interop.static_vectors import read_static_vectors

TOKENS_A_BATCH = 4096


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weight-file", required=True, help="official weights, or an archive")
    parser.add_argument("--options-file", help="official options")
    parser.add_argument(
        "--layers", type=Path, help="the HDF5 file to export to (default: a temporary one)"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace --layers of other sentences or models"
    )
    parser.add_argument("--vectors", action="append", default=[], help="static word vectors")
    parser.add_argument("--pos", nargs=2, metavar=("TRAIN", "DEV"), help="files in CoNLL-U")
    parser.add_argument("--wic", nargs=2, metavar=("TRAIN", "DEV"), help="files, without endings")
    parser.add_argument("--lowercase", action="store_true", help="read all words in lower case")
    parser.add_argument(
        "--sentences", type=int, default=3000, help="of the first CoNLL-U file (default: 3000)"
    )
    parser.add_argument("--json", type=Path, help="also write the numbers there")
    args = parser.parse_args()
    if not args.pos and not args.wic:
        parser.error("expected --pos, --wic, or both")
    if args.json:
        check_place(args.json)
    texts = Texts(
        [tagged(args.pos[0], args.sentences), tagged(args.pos[1])] if args.pos else [],
        [pairs_of(path) for path in args.wic or []],
    )
    files = {path: read_static_vectors(path) for path in args.vectors}
    sources: Dict[str, Vectors] = {
        path: static(file, args.lowercase) for path, file in files.items()
    }
    known = known_to(list(files.values()), args.lowercase)
    with TemporaryDirectory() as folder:
        layers = exported(args, texts, args.layers or Path(folder) / "layers.hdf5")
        sources["biLM"] = contextual(layers, args.lowercase)
        table: Dict[str, Dict[str, float]] = {}
        for name, vectors in sources.items():
            for task, score in probes(texts, vectors, known).items():
                for layer, accuracy in enumerate(score):
                    row = f"biLM, layer {layer}" if name == "biLM" else name
                    table.setdefault(row, {})[task] = accuracy
    print_table(table)
    if files:
        print_coverage(texts, known)
    if args.json:
        write_json(table, args.json)


def exported(args: argparse.Namespace, texts: Texts, path: Path) -> LayerFile:
    """The layers of all sentences in a file, which is not written again if it is there."""
    lines = {line_of(words, args.lowercase): None for words in texts.sentences()}
    text = InputText("the sentences of the probes", list(lines))
    bilm = ModelSource(args.options_file, args.weight_file, "reset").load()
    settings = ExportSettings(max_tokens=TOKENS_A_BATCH)
    export_layers(text, path, bilm, settings, resume=True, overwrite=args.overwrite)
    return LayerFile(path)


def write_json(table: Dict[str, Dict[str, float]], path: Path) -> None:
    """The numbers of the table; null for what is none."""
    numbers = {
        row: {task: None if math.isnan(score) else score for task, score in scores.items()}
        for row, scores in table.items()
    }
    with atomic_write(path) as part:
        part.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")


def print_table(table: Dict[str, Dict[str, float]]) -> None:
    """In Markdown."""
    tasks = list(next(iter(table.values())))
    print(f"| | {' | '.join(tasks)} |\n|---|{'---:|' * len(tasks)}")
    for row, scores in table.items():
        print(f"| {row} | {' | '.join(f'{scores[task]:.1%}' for task in tasks)} |")


def print_coverage(texts: Texts, known: Known) -> None:
    """What the columns of known words are made of."""
    parts = []
    if texts.tagged:
        parts.append(("tokens", known_tokens(texts.tagged[1], known)))
    if texts.pairs:
        parts.append(("pairs", known_pairs(texts.pairs[1], known)))
    counts = " and ".join(f"{are.sum():,} of {len(are):,} {name}" for name, are in parts)
    print(f"\nKnown to all files of static vectors: {counts}.")


if __name__ == "__main__":
    try:
        main()
    except ConfigurationError as error:
        sys.exit(f"probe_layers: error: {error.message}")
    except OSError as error:
        sys.exit(f"probe_layers: error: {error}")
