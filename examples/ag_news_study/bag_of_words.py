"""
What a bag of words reaches on AG News, to compare classifiers with: TF-IDF of words and bigrams and
a linear support vector machine, by scikit-learn.

    python examples/ag_news_study/bag_of_words.py train.csv dev.csv
"""

import argparse
import time
from typing import List, NamedTuple, Sequence, Tuple

from allennlp.common.checks import ConfigurationError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from elmo_scratch.data.readers import AgNewsRow, ag_news_rows, ag_news_text


class Answers(NamedTuple):
    """
    # Parameters

    labels, predicted : `List[str]`
        The true class of each text that it was measured on, and the one that was found.
    seconds : `float`
        What learning and finding took.
    """

    labels: List[str]
    predicted: List[str]
    seconds: float

    @property
    def accuracy(self) -> float:
        """The share of texts whose class was found."""
        return sum(map(str.__eq__, self.labels, self.predicted)) / len(self.labels)


def bag_of_words(train: Sequence[AgNewsRow], dev: Sequence[AgNewsRow], use_title: bool) -> Answers:
    """
    # Parameters

    train, dev : `Sequence[AgNewsRow]`
        What it learns from, and what it is measured on.
    use_title : `bool`
        Whether a text's title is read before its description.

    # Returns

    `Answers`
        The same ones for the same rows.
    """
    started = time.perf_counter()
    texts, labels = _texts_and_labels(train, use_title)
    dev_texts, dev_labels = _texts_and_labels(dev, use_title)
    vectors = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    classifier = make_pipeline(vectors, LinearSVC(random_state=0)).fit(texts, labels)
    predicted = classifier.predict(dev_texts).tolist()
    return Answers(dev_labels, predicted, time.perf_counter() - started)


def _texts_and_labels(rows: Sequence[AgNewsRow], use_title: bool) -> Tuple[List[str], List[str]]:
    """What the classifier reads of each row, and what it shall find."""
    texts = [ag_news_text(row.description, row.title, use_title) for row in rows]
    return texts, [row.label for row in rows]


def main() -> None:
    """Prints one line for descriptions and one for titles and descriptions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("train", help="an AG News file to train on")
    parser.add_argument("dev", help="an AG News file to measure on")
    args = parser.parse_args()
    try:
        train, dev = (list(ag_news_rows(path)) for path in (args.train, args.dev))
    except ConfigurationError as error:
        parser.error(error.message)
    for use_title in (False, True):
        answers = bag_of_words(train, dev, use_title)
        read = "title and description" if use_title else "description"
        print(f"TF-IDF + linear SVM, {read}: {answers.accuracy:.2%} in {answers.seconds:.0f} s")


if __name__ == "__main__":
    main()
