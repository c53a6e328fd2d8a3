"""
What each layer of a biLM holds, beside static word vectors: the part of speech of a token, and
whether a word has the same sense in two sentences.

    python examples/probe_layers.py --weight-file model.tar.gz --vectors word2vec.txt \
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
import re
import sys
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy
from allennlp.common.checks import ConfigurationError
from conllu import parse_incr
from conllu.exceptions import ParseException
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from elmo_scratch import LayerFile
from elmo_scratch.export import ExportSettings, InputText, ModelSource, export_layers
from elmo_scratch.interop.static_vectors import StaticVectors, read_static_vectors
from elmo_scratch.whole_file import check_place, whole_file

TOKENS_A_BATCH = 4096

Vectors = Callable[[Sequence[List[str]]], List[numpy.ndarray]]
"""From sentences to an array of each, shape `(layers, tokens, width)`."""


Tagged = List[Tuple[List[str], List[str]]]
"""Sentences as words and tags."""

Known = Callable[[str], bool]
"""Whether all files of static vectors have a word."""


class Pair(NamedTuple):
    """Two sentences with a word in each, and whether it has one sense."""

    sentences: Tuple[List[str], List[str]]
    places: Tuple[int, int]
    is_same: bool


class Texts(NamedTuple):
    """What the probes learn from, then what they are measured on; nothing for what is not asked."""

    tagged: List[Tagged]
    pairs: List[List[Pair]]

    def sentences(self) -> Iterator[List[str]]:
        """All of them."""
        for words, _ in chain(*self.tagged):
            yield words
        for pair in chain(*self.pairs):
            yield from pair.sentences


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


def write_json(table: Dict[str, Dict[str, float]], path: Path) -> None:
    """The numbers of the table; null for what is none."""
    numbers = {
        row: {task: None if math.isnan(score) else score for task, score in scores.items()}
        for row, scores in table.items()
    }
    with whole_file(path) as part:
        part.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")


def exported(args: argparse.Namespace, texts: Texts, path: Path) -> LayerFile:
    """The layers of all sentences in a file, which is not written again if it is there."""
    lines = {line_of(words, args.lowercase): None for words in texts.sentences()}
    text = InputText("the sentences of the probes", list(lines))
    bilm = ModelSource(args.options_file, args.weight_file, "reset").load()
    settings = ExportSettings(max_tokens=TOKENS_A_BATCH)
    export_layers(text, path, bilm, settings, resume=True, overwrite=args.overwrite)
    return LayerFile(path)


def line_of(words: Sequence[str], lowercase: bool) -> str:
    """As a biLM reads them; white space in a word would divide it."""
    line = " ".join("_".join(word.split()) for word in words)
    return line.lower() if lowercase else line


def contextual(layers: LayerFile, lowercase: bool) -> Vectors:
    """The layers of a biLM."""
    return lambda sentences: [layers[line_of(words, lowercase)] for words in sentences]


def static(file: StaticVectors, lowercase: bool) -> Vectors:
    """One layer, of vectors from a file; zeros for words that it lacks."""
    rows = {word: row for row, word in enumerate(file.words)}
    table = numpy.vstack([file.vectors, numpy.zeros_like(file.vectors[:1])])

    def vectors(sentences: Sequence[List[str]]) -> List[numpy.ndarray]:
        return [
            table[[rows.get(word.lower() if lowercase else word, -1) for word in words]][None]
            for words in sentences
        ]

    return vectors


def known_to(files: Sequence[StaticVectors], lowercase: bool) -> Known:
    """Every word, where there are no files."""
    vocabularies = [set(file.words) for file in files]

    def known(word: str) -> bool:
        word = word.lower() if lowercase else word
        return all(word in vocabulary for vocabulary in vocabularies)

    return known


def probes(texts: Texts, vectors: Vectors, known: Known) -> Dict[str, List[float]]:
    """The accuracy of each task, on all words and on known ones, layer by layer."""
    scores: Dict[str, List[float]] = {}
    if texts.tagged:
        right = part_of_speech_answers(*texts.tagged, vectors)
        are_known = known_tokens(texts.tagged[1], known)
        scores["part of speech"] = [float(answers.mean()) for answers in right]
        scores["known"] = [mean_of(answers, are_known) for answers in right]
    if texts.pairs:
        right = word_sense_answers(*texts.pairs, vectors)
        are_known = known_pairs(texts.pairs[1], known)
        scores["word sense"] = [float(answers.mean()) for answers in right]
        scores["both known"] = [mean_of(answers, are_known) for answers in right]
    return scores


def mean_of(answers: numpy.ndarray, chosen: numpy.ndarray) -> float:
    """The share of right ones among those that are chosen; not a number if none is."""
    return float(answers[chosen].mean()) if chosen.any() else float("nan")


def known_tokens(part: Tagged, known: Known) -> numpy.ndarray:
    """Shape `(tokens,)`."""
    return numpy.array([known(word) for words, _ in part for word in words], dtype=bool)


def known_pairs(pairs: List[Pair], known: Known) -> numpy.ndarray:
    """Shape `(pairs,)`: whether the word is known in the form that it has in either sentence."""
    return numpy.array(
        [
            all(known(words[place]) for words, place in zip(pair.sentences, pair.places))
            for pair in pairs
        ],
        dtype=bool,
    )


def tagged(path: str, at_most: int = sys.maxsize) -> Tagged:
    """The sentences of a CoNLL-U file, by their syntactic words."""
    try:
        with open(path, encoding="utf-8") as file:
            sentences = [
                [token for token in sentence if isinstance(token["id"], int)]
                for sentence in islice(parse_incr(file), at_most)
            ]
    except (ParseException, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: expected CoNLL-U in UTF-8: {error}") from None
    if not any("upos" in token for words in sentences for token in words):
        raise ConfigurationError(f"{path}: expected words with parts of speech, but found none")
    return [([t["form"] for t in words], [t["upos"] for t in words]) for words in sentences]


def part_of_speech_answers(train: Tagged, dev: Tagged, vectors: Vectors) -> List[numpy.ndarray]:
    """Layer by layer which tags of dev a logistic regression names, shape `(tokens,)`."""
    inputs, tags = [], []
    for part in (train, dev):
        inputs.append(numpy.concatenate(vectors([words for words, _ in part]), axis=1))
        tags.append([tag for _, names in part for tag in names])
    right = []
    for layer in range(len(inputs[0])):
        probe = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200))
        probe.fit(inputs[0][layer], tags[0])
        right.append(probe.predict(inputs[1][layer]) == numpy.array(tags[1]))
    return right


def pairs_of(path: str) -> List[Pair]:
    """The pairs of a part of Word in Context."""
    lines, gold = (lines_of(f"{path}.{kind}.txt") for kind in ("data", "gold"))
    if len(lines) != len(gold):
        raise ConfigurationError(
            f"{path}.gold.txt: expected an answer for each of the {len(lines)} lines of "
            f"{path}.data.txt, but found {len(gold)}"
        )
    return [
        pair_of(line, answer, f"{path}.data.txt and {path}.gold.txt, line {number}")
        for number, (line, answer) in enumerate(zip(lines, gold), start=1)
    ]


def pair_of(line: str, answer: str, place: str) -> Pair:
    """One line: the word, its part of speech, its place in both sentences, and these."""
    cells = line.split("\t")
    places = re.fullmatch(r"(\d+)-(\d+)", cells[2]) if len(cells) == 5 else None
    if places is None or answer not in ("T", "F"):
        raise ConfigurationError(
            f"{place}: expected a word, a part of speech, two places such as 0-4, and two "
            f"sentences, between tabs, and the answer T or F; found {line!r} and {answer!r}"
        )
    pair = Pair(
        (cells[3].split(), cells[4].split()), (int(places[1]), int(places[2])), answer == "T"
    )
    for number, words in zip(pair.places, pair.sentences):
        if number >= len(words):
            raise ConfigurationError(f"{place}: there is no word {number} among {len(words)}")
    return pair


def lines_of(path: str) -> List[str]:
    """The lines of a text; other than `str.splitlines`, not cut at what Unicode calls a line."""
    try:
        with open(path, encoding="utf-8") as file:
            return [line.rstrip("\n") for line in file]
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: expected UTF-8: {error}") from None


def word_sense_answers(train: List[Pair], dev: List[Pair], vectors: Vectors) -> List[numpy.ndarray]:
    """
    Layer by layer which pairs of dev the cosine between the two vectors tells right, shape
    `(pairs,)`.
    """
    cosines = [cosines_of(part, vectors) for part in (train, dev)]  # (layers, pairs) each
    answers = [numpy.array([pair.is_same for pair in part]) for part in (train, dev)]
    found = []
    for learned, measured in zip(*cosines):
        # Of all cosines of the training pairs, the one that parts them best.
        thresholds = numpy.array([-numpy.inf, *numpy.unique(learned)])
        right = [((learned > threshold) == answers[0]).sum() for threshold in thresholds]
        threshold = thresholds[numpy.argmax(right)]
        found.append((measured > threshold) == answers[1])
    return found


def cosines_of(pairs: List[Pair], vectors: Vectors) -> numpy.ndarray:
    """Between the two vectors of the word, shape `(layers, pairs)`."""
    sides = []
    for side in range(2):
        layers = vectors([pair.sentences[side] for pair in pairs])
        at_word = [one[:, pair.places[side]] for one, pair in zip(layers, pairs)]
        sides.append(numpy.stack(at_word, axis=1))  # (layers, pairs, width)
    lengths = [numpy.linalg.norm(side, axis=-1) for side in sides]
    products = (sides[0] * sides[1]).sum(axis=-1)
    # Rounded, so that equal vectors are equally near.
    return numpy.round(products / numpy.maximum(lengths[0] * lengths[1], 1e-12), 6)


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
        sys.exit(f"probe_layers.py: error: {error.message}")
    except OSError as error:
        sys.exit(f"probe_layers.py: error: {error}")
