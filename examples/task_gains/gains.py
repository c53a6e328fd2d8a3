"""What trainings reached, and what ELMo has to do with it."""

import json
import math
from pathlib import Path
from statistics import mean, stdev
from typing import Dict, Iterable, List, NamedTuple, Sequence, Tuple

from allennlp.common.checks import ConfigurationError
from forms import FORMS, WHOLE
from labelled import TASKS, write

from elmo_scratch.search.tasks import Task


class Score(NamedTuple):
    """
    What one training reached.

    # Parameters

    part, form : `str`
        The task with its share of the training set, and the form.
    seed : `int`
        Of the draws of weights and of the order of sentences.
    best : `float`
        The score of the best epoch on dev, between 0 and 1.
    last : `float`
        After the last epoch, which dev has not chosen.
    seconds : `float`
        What it took, in all its runs.
    settings : `str`
        `Task.fingerprint`: the same one means the same training, on any machine.
    """

    part: str
    form: str
    seed: int
    best: float
    last: float
    seconds: float
    settings: str


def score_of(task: Task) -> Score:
    """By the metrics that AllenNLP's trainer wrote."""
    name = TASKS[task.part.rpartition(",")[0]].score
    run = task.folder / "run"
    ending = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    epochs = {int(path.stem.rpartition("_")[2]): path for path in run.glob("metrics_epoch_*.json")}
    last = json.loads(epochs[max(epochs)].read_text(encoding="utf-8"))
    return Score(
        task.part,
        task.row,
        task.settings["config"]["random_seed"],
        ending[f"best_validation_{name}"],
        last[f"validation_{name}"],
        task.seconds(),
        task.fingerprint(),
    )


def read_scores(path: Path) -> Dict[str, Score]:
    """
    The scores of a gains.json, by their `settings`. Raises `ConfigurationError` if it is none.
    """
    try:
        scores = [Score(**one) for one in json.loads(path.read_text(encoding="utf-8"))]
        for score in scores:
            if not 0.0 <= score.best <= 1.0:
                raise ValueError(f"a score of {score.best}")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{path}: expected the `gains.json` of such a study, but it is none ({error})"
        ) from None
    return {score.settings: score for score in scores}


def markdown(scores: Sequence[Score]) -> str:
    """
    Three tables: a row for each task and share, with what ELMo at input and output changes; a row
    for each form of them; and what other forms change of ELMo at input and output, if there are
    any.
    """
    tables = [glance(scores), NOTE, every_form(scores, FORMS, "none")]
    others = what_helps(scores)
    if others:
        tables += [HELPS_NOTE, others]
    return "\n\n".join(tables) + "\n"


def what_helps(scores: Sequence[Score]) -> str:
    """
    What forms beside `FORMS`, and the input alone, change of ELMo at input and output; empty if
    there are no such forms.
    """
    others = [form for form in dict.fromkeys(score.form for score in scores) if form not in FORMS]
    parts = {score.part for score in scores if score.form in others}
    compared = [score for score in scores if score.part in parts]
    return every_form(compared, [WHOLE, "input", *others], WHOLE) if others else ""


def best_of(scores: Sequence[Score], part: str, form: str) -> List[float]:
    """What the seeds of one form reached."""
    return [score.best for score in scores if (score.part, score.form) == (part, form)]


def glance(scores: Sequence[Score]) -> str:
    """A row for each task and share of which there is any form."""
    lines = [
        f"| on dev | {' | '.join(FORMS)} | gain | errors less | of the paper's |",
        f"|---|{(len(FORMS) + 3) * '---:|'}",
    ]
    for part in dict.fromkeys(score.part for score in scores):
        means = [points(best_of(scores, part, form)) for form in FORMS]
        without, whole = (best_of(scores, part, form) for form in ("none", WHOLE))
        cells = [part, *means, difference(whole, without), *errors_less(whole, without, part)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def every_form(scores: Sequence[Score], forms: Iterable[str], beside: str) -> str:
    """A row for each of these forms, and what it changes beside one of them."""
    lines = [
        "| | form | seeds | score on dev | after the last epoch | difference | time |",
        f"|---|---|{5 * '---:|'}",
    ]
    order = list(forms)
    parts = dict.fromkeys(score.part for score in scores if score.form in order[1:])
    for part in parts:
        others = best_of(scores, part, beside)
        for form in order:
            ones = [score for score in scores if (score.part, score.form) == (part, form)]
            if ones:
                best = best_of(scores, part, form)
                cells = [part, form, str(len(ones)), points(best)]
                cells += [points([one.last for one in ones])]
                cells += ["" if form == beside else difference(best, others)]
                cells += [f"{mean(one.seconds for one in ones):.0f} s"]
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def difference(best: Sequence[float], others: Sequence[float]) -> str:
    """Between two means, in points and in standard deviations; empty where one has no numbers."""
    if not best or not others:
        return ""
    text = f"{100 * (mean(best) - mean(others)):+.2f}"
    if len(best) == 1 or len(others) == 1:
        return text
    noise = math.sqrt(stdev(best) ** 2 + stdev(others) ** 2)
    return f"{text} ({(mean(best) - mean(others)) / noise:+.1f} sd)" if noise else text


def errors_less(best: Sequence[float], without: Sequence[float], part: str) -> Tuple[str, str]:
    """The share of the errors that are gone, and how much of the paper's share this is."""
    if not best or not without:
        return "", ""
    reduction = (mean(best) - mean(without)) / (1 - mean(without))
    published = TASKS[part.rpartition(",")[0]].published
    if published is None:
        return f"{reduction:.1%}", ""
    paper = (published[1] - published[0]) / (1 - published[0])
    return f"{reduction:.1%}", f"{reduction / paper:.0%}"


NOTE = (
    "Mean ± standard deviation over the seeds, in percent, of the best look at dev: dev flatters "
    "all forms alike. A look reads as many batches of dev as the training read since the last one: "
    "dev more than once, at the end not to its end, so that a score isn't exactly that of "
    "`allennlp evaluate` (one training: 38.97 and 38.78). The gain is that of ELMo at input and "
    "output over none; 1 sd is one standard deviation of the difference between one training with "
    "ELMo and one without. Errors less: the share of the errors without ELMo that are gone; beside "
    "it how much that is of the paper's share, on its test set, with all of its training set, a "
    "biLM of a billion words, and vectors of words in all models that a large text had made: here "
    "they start at random. The biLM has read the whole text of the training sets, without labels, "
    "also where a share is trained on."
)

HELPS_NOTE = "What helps, beside ELMo at input and output as it is above:"


def points(numbers: Sequence[float]) -> str:
    """Mean and standard deviation, in percent; empty without numbers."""
    if not numbers:
        return ""
    text = f"{100 * mean(numbers):.2f}"
    return text if len(numbers) == 1 else f"{text} ± {100 * stdev(numbers):.2f}"


def write_results(scores: Sequence[Score], folder: Path) -> None:
    """Writes gains.json and gains.md, and prints the latter."""
    write(folder / "gains.json", json.dumps([one._asdict() for one in scores], indent=1) + "\n")
    table = markdown(scores)
    write(folder / "gains.md", table)
    print(table)
