"""What a classifier takes for what, how well it tells classes apart, and its surest errors."""

from pathlib import Path
from typing import Any, List, NamedTuple, Sequence

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import lazy_groups_of
from allennlp.models.archival import load_archive

from elmo_scratch.files.paths import local_file
from elmo_scratch.models.classifier import Classifier
from elmo_scratch.report.charts import heat_map
from elmo_scratch.report.document import Cell, Chart, Column, Table, metric_cell
from elmo_scratch.report.metrics import ClassScores, Confusion

MAX_CONFUSED = 12
"""Pairs of classes in a table."""


def class_table(scores: Sequence[ClassScores], data: str) -> Table:
    """Precision, recall and F1 of each class on the data."""
    columns = [
        Column("class"),
        *(Column(title, is_number=True) for title in ("true", "precision", "recall", "F1")),
    ]
    rows = [
        [
            Cell(one.name),
            Cell("" if one.num_true is None else f"{one.num_true:,}", one.num_true),
            *(metric_cell("f1", value) for value in (one.precision, one.recall, one.f1)),
        ]
        for one in scores
    ]
    return Table(f"Precision, recall and F1 of each class on {data}.", columns, rows)


def matrix(confusion: Confusion, data: str) -> Chart:
    """A heat map of what was predicted for what on the data."""
    is_small = len(confusion.names) <= 8
    numbers = "Numbers are counts" if is_small else "Numbers are percents of the true class"
    caption = (
        f"Which class was predicted for which on {data}. {numbers}; the stronger "
        "the colour of a cell, the larger its share of the true class, which has the row."
    )
    return heat_map(caption, confusion)


def most_confused(confusion: Confusion) -> List[Table]:
    """A table of the pairs of classes that are confused most often, if any are."""
    columns = [
        Column("true"),
        Column("predicted"),
        Column("times", is_number=True),
        Column("of the true class", is_number=True),
    ]
    rows = [
        [
            Cell(true),
            Cell(predicted),
            Cell(f"{count:,}", count),
            Cell(f"{100 * share:.1f} %", share),
        ]
        for true, predicted, count, share in confusion.most_confused(MAX_CONFUSED)
    ]
    return [Table("What was confused most often.", columns, rows)] if rows else []


ARCHIVE = "model.tar.gz"
"""AllenNLP's name of the archive in the output folder of a training."""

BATCH_SIZE = 32
"""Texts that are classified at once."""

CLASSIFIER = "elmo_scratch_classifier"
"""The registered name of the model that is asked."""


class WrongPrediction(NamedTuple):
    """A text with its true class, and the class that was predicted with a `probability`."""

    true: str
    predicted: str
    probability: float
    text: str


class Errors(NamedTuple):
    """
    # Parameters

    data : `str`
        The name of the data.
    num_texts, num_wrong : `int`
        How many texts there are, and for how many the wrong class was predicted.
    surest : `List[WrongPrediction]`
        The most probable ones first.
    """

    data: str
    num_texts: int
    num_wrong: int
    surest: List[WrongPrediction]


def surest_errors(folder: Path, data: str, most: int = 20) -> Errors:
    """
    Classifies data by the archive in a training's output folder.

    # Parameters

    folder : `Path`
        Of the training of an `elmo_scratch_classifier`.
    data : `str`
        What the reader of its validation data reads, with classes.
    most : `int`
        At most so many errors.

    # Returns

    `Errors`
        Equally sure ones in the order of the data.

    # Raises

    ConfigurationError
        If there is no archive, its model is another one, or the data can't be read.
    """
    archive_file, data_file = local_file(folder / ARCHIVE), local_file(data)
    archive = load_archive(archive_file)
    model = archive.model
    if not isinstance(model, Classifier):
        raise ConfigurationError(
            f"{archive_file}: expected an {CLASSIFIER}, but it is a {type(model).__name__}"
        )
    model.eval()
    num_texts = 0
    wrong: List[WrongPrediction] = []
    instances = iter(archive.validation_dataset_reader.read(str(data_file)))
    for batch in lazy_groups_of(instances, BATCH_SIZE):
        num_texts += len(batch)
        outputs: List[Any] = model.forward_on_instances(batch)
        for instance, output in zip(batch, outputs):
            fields: Any = instance.fields
            if "label" not in fields:
                raise ConfigurationError(f"{data}: expected a class for each text, but got none")
            true, predicted = fields["label"].label, output["label"]
            if predicted != true:
                probability = output["probabilities"][predicted]
                text = " ".join(token.text for token in fields["text"].tokens)
                wrong.append(WrongPrediction(true, predicted, probability, text))
    surest = sorted(wrong, key=lambda one: -one.probability)[:most]
    return Errors(data, num_texts, len(wrong), surest)
