"""
What a bag of words reaches on AG News, to compare classifiers with: TF-IDF of words and bigrams and
a linear support vector machine, by scikit-learn.

    python benchmarks/ag_news_baselines.py train.csv dev.csv
"""

import argparse
import time
from typing import List

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from elmo_scratch.data.ag_news_rows import AgNewsRow, ag_news_rows, ag_news_text


def main() -> None:
    """Prints one line for descriptions and one for titles and descriptions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train", help="an AG News file to train on")
    parser.add_argument("dev", help="an AG News file to measure on")
    args = parser.parse_args()
    train, dev = list(ag_news_rows(args.train)), list(ag_news_rows(args.dev))
    for use_title in (False, True):
        started = time.time()
        classifier = make_pipeline(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LinearSVC()
        )
        classifier.fit(texts_of(train, use_title), [row.label for row in train])
        accuracy = classifier.score(texts_of(dev, use_title), [row.label for row in dev])
        read = "title and description" if use_title else "description"
        print(f"TF-IDF + linear SVM, {read}: {accuracy:.1%} in {time.time() - started:.0f} s")


def texts_of(rows: List[AgNewsRow], use_title: bool) -> List[str]:
    """What the classifier reads of each row."""
    return [ag_news_text(row.description, row.title, use_title) for row in rows]


if __name__ == "__main__":
    main()
