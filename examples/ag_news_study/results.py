"""What all trainings reached, by the rows of the tables."""

from statistics import mean, stdev
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from bag_of_words import bag_of_words
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support
from training import SCORES, Training, training_of

from elmo_scratch.data.readers import AgNewsRow
from elmo_scratch.search.tasks import Task


class Row(NamedTuple):
    """
    One way of representing tokens.

    # Parameters

    part : `str`
        The part of the study that it belongs to.
    name : `str`
        What it is.
    trainings : `List[Training]`
        With one seed each.
    """

    part: str
    name: str
    trainings: List[Training]

    def scores(self, score: str) -> List[float]:
        """One of `SCORES`, a number a seed."""
        return [training.scores[score] for training in self.trainings]

    def mean(self, score: str) -> float:
        """Of one of `SCORES`, over the seeds."""
        return mean(self.scores(score))

    def deviation(self, score: str) -> float:
        """The standard deviation of one of `SCORES` over the seeds; 0 where there is one."""
        return stdev(self.scores(score)) if len(self.trainings) > 1 else 0.0

    def confusion(self) -> List[List[int]]:
        """Over all seeds."""
        matrices = [training.confusion for training in self.trainings]
        return [[sum(cells) for cells in zip(*rows)] for rows in zip(*matrices)]


def collected(tasks: Sequence[Task], known: Mapping[str, Training]) -> List[Row]:
    """
    # Parameters

    tasks : `Sequence[Task]`
        Those of the study; what is not done, or belongs to no row, is passed over.
    known : `Mapping[str, Training]`
        By the fingerprints of tasks, what counts as done elsewhere.

    # Returns

    `List[Row]`
        In the order of the tasks.
    """
    by_row: Dict[Tuple[str, str], List[Training]] = {}
    for task in tasks:
        if not task.row:
            continue
        training = training_of(task) if task.is_done else known.get(task.fingerprint())
        if training:
            by_row.setdefault((task.part, task.row), []).append(training)
    return [Row(part, name, trainings) for (part, name), trainings in by_row.items()]


def support_vector_machine(
    train: Sequence[AgNewsRow], dev: Sequence[AgNewsRow], part: str, use_title: bool
) -> Row:
    """
    # Parameters

    train, dev : `Sequence[AgNewsRow]`
        What it learns from, and what it is measured on.
    part : `str`
        The part of the study that it is for.
    use_title : `bool`
        Whether a text's title is read before its description.

    # Returns

    `Row`
        What TF-IDF of words and bigrams and a linear support vector machine reach.
    """
    labels, predicted, seconds = bag_of_words(train, dev, use_title)
    macro = precision_recall_fscore_support(labels, predicted, average="macro", zero_division=0)[:3]
    numbers = map(float, [accuracy_score(labels, predicted), *macro])
    classes = sorted(set(labels))
    confusion = confusion_matrix(labels, predicted, labels=classes).tolist()
    # No task: it is trained anew each time, in seconds.
    training = Training("", 0, dict(zip(SCORES, numbers)), seconds, classes, confusion, [])
    return Row(part, "TF-IDF, linear SVM", [training])
