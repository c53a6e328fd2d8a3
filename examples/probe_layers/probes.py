"""What can be told from vectors by a model of hardly any size."""

from typing import Dict, List

import numpy
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from texts import Pair, Tagged, Texts
from vectors import Known, Vectors


def probes(texts: Texts, vectors: Vectors, known: Known) -> Dict[str, List[float]]:
    """The accuracy of each task, on all words and on known ones, layer by layer."""
    scores: Dict[str, List[float]] = {}
    if texts.tagged:
        right = part_of_speech_answers(texts.tagged[0], texts.tagged[1], vectors)
        are_known = known_tokens(texts.tagged[1], known)
        scores["part of speech"] = [float(answers.mean()) for answers in right]
        scores["known"] = [mean_of(answers, are_known) for answers in right]
    if texts.pairs:
        right = word_sense_answers(texts.pairs[0], texts.pairs[1], vectors)
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


def word_sense_answers(train: List[Pair], dev: List[Pair], vectors: Vectors) -> List[numpy.ndarray]:
    """
    Layer by layer which pairs of dev the cosine between the two vectors tells right, shape
    `(pairs,)`.
    """
    cosines = [cosines_of(part, vectors) for part in (train, dev)]  # (layers, pairs) each
    answers = [numpy.array([pair.is_same for pair in part]) for part in (train, dev)]
    found = []
    for learned, measured in zip(*cosines):
        # The threshold is the cosine of a training pair that parts the pairs best.
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
