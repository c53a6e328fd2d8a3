import json
from pathlib import Path

import optuna
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.search.study import table, write_best
from elmo_scratch.search.sweep import Choice, Metric, Number, Sweep

SWEEP = Sweep(
    "random",
    Metric("validation/accuracy", True),
    {"model.mix.type": Choice(("top", None)), "trainer.optimizer.lr": Number(0, 1)},
)


def study_of(*outcomes: str) -> optuna.Study:
    """Of trials that ended like this: with a number, or with a word for why there is none."""
    study = optuna.create_study(direction="maximize")
    for number, outcome in enumerate(outcomes):
        trial = study.ask()
        values = {"model.mix.type": "top" if number else None, "trainer.optimizer.lr": number / 3}
        trial.set_user_attr("values", values)
        if outcome == "failed":
            trial.set_user_attr("reason", "reading\nout of memory")
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        elif outcome == "behind":
            trial.report(0.99, 2)
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, float(outcome))
    return study


def test_the_best_come_first_and_what_did_not_end_last() -> None:
    shown = table(study_of("failed", "0.5", "behind", "0.9"), SWEEP)
    assert shown.splitlines() == [
        "| trial | validation/accuracy | mix.type | optimizer.lr |                       |",
        "| ---:  | ---:                | ---      | ---          | ---                   |",
        "| 3     | 0.9                 | top      | 1            |                       |",
        "| 1     | 0.5                 | top      | 0.3333       |                       |",
        "| 2     | 0.99                | top      | 0.6667       | stopped after epoch 2 |",
        "| 0     |                     | null     | 0            | failed                |",
    ]


def test_names_are_whole_where_their_ends_are_the_same() -> None:
    names = {"a.mix.type": Choice((1,)), "b.mix.type": Choice((1,))}
    head = table(study_of("0.5"), SWEEP._replace(parameters=names)).splitlines()[0]
    assert "| a.mix.type | b.mix.type |" in head


def test_the_best_can_be_trained_again(tmp_path: Path) -> None:
    file = write_best(study_of("0.5", "0.9", "behind"), {"model.dropout": 0.2}, tmp_path)
    assert json.loads(file.read_text(encoding="utf-8")) == {
        "model.dropout": 0.2,
        "model.mix.type": "top",
        "trainer.optimizer.lr": 1 / 3,
    }


def test_nothing_is_best_where_all_failed(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="trial-0.log says: out of memory$"):
        write_best(study_of("failed", "failed"), {}, tmp_path)
    assert list(tmp_path.iterdir()) == []
