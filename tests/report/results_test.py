import json
import math
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.report import read_contents, read_results, report_of
from elmo_scratch.report import results as results_module
from elmo_scratch.report.document import Chart, Folded, Paragraph, Table
from elmo_scratch.report.metrics import Confusion
from tests import PROJECT_ROOT
from tests.report.overview_test import texts
from tests.report.run_folders import write_json, write_run

COUNTS = [[4, 1], [2, 3]]


def training(accuracy: float, seed: int, **more: Any) -> Dict[str, Any]:
    scores = {"accuracy": accuracy, "macro_f1": accuracy / 2}
    return {"seed": seed, "scores": scores, "settings": "sha256:0", **more}


def way(name: str, accuracies: List[float], part: str = "texts", **more: Any) -> Dict[str, Any]:
    trainings = [training(accuracy, seed, **more) for seed, accuracy in enumerate(accuracies)]
    return {"part": part, "name": name, "means": {"accuracy": 7}, "trainings": trainings}


MIXED: Dict[str, Any] = {
    "confusion": COUNTS,
    "classes": ["cats", "dogs"],
    "shares": [0.25, 0.75],
    "seconds": 61,
}
STUDY = [way("no biLM", [0.5, 0.6]), way("biLM", [0.8, 0.9], **MIXED), way("SVM", [0.7])]


def write_study(folder: Path, content: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "study.json", content)
    return folder / "study.json"


def test_means_are_taken_anew_over_the_seeds(tmp_path: Path) -> None:
    study = read_results(write_study(tmp_path, STUDY))
    _, mixed, once = study.ways
    assert study.scores == ("accuracy", "macro_f1")
    assert mixed.mean("accuracy") == pytest.approx(0.85)
    assert mixed.deviation("accuracy") == pytest.approx(math.sqrt(0.005))
    assert mixed.confusion() == Confusion(("cats", "dogs"), ((8, 2), (4, 6)))
    assert mixed.shares() == [0.25, 0.75]
    assert (once.deviation("accuracy"), once.confusion(), once.shares()) == (None, None, [])


def test_a_study_is_told_part_by_part(tmp_path: Path) -> None:
    gains, part = report_of(read_contents([write_study(tmp_path / "pets", STUDY)])).sections
    assert (gains.title, part.title) == ("pets: gains", "pets: texts")
    (table,) = gains.blocks
    assert isinstance(table, Table)
    # 0.3 points of a deviation of sqrt(0.005 + 0.005), and of errors of 0.45.
    assert texts(table)[1][2:] == ["2", "85.00 % ± 7.07", "+30.00 points", "+3.0", "66.7 %"]
    words, ways, dots, others, shares, matrix, classes, *_ = part.blocks
    assert isinstance(words, Paragraph) and "“biLM” has the best mean accuracy" in words.text
    assert isinstance(ways, Table)
    assert [row[:5] for row in texts(ways)] == [
        ["biLM", "2", "85.00 % ± 7.07", "", "best"],
        ["SVM", "1", "70.00 %", "−15.00 points", "within noise"],
        ["no biLM", "2", "55.00 % ± 7.07", "−30.00 points", "worse"],
    ]
    assert isinstance(dots, Chart) and "SVM 70.00 % (of 1)" in dots.alternative
    assert isinstance(others, Table) and texts(others)[0] == ["biLM", "42.50 % ± 3.54"]
    assert isinstance(shares, Chart) and "biLM 25 %, 75 %" in shares.alternative
    assert isinstance(matrix, Chart) and "14 of 20 on the diagonal" in matrix.alternative
    assert isinstance(classes, Table) and texts(classes)[0][:3] == ["cats", "10", "66.67 %"]


def test_the_classes_of_all_but_the_best_are_folded(tmp_path: Path) -> None:
    study = [way("one", [0.5, 0.6], **MIXED), way("other", [0.8, 0.9], **MIXED)]
    (part,) = report_of(read_contents([write_study(tmp_path, study)])).sections
    f1, folded = part.blocks[-2:]
    assert isinstance(f1, Table) and [row[0] for row in texts(f1)] == ["other", "one"]
    assert isinstance(folded, Folded) and "of the other 1" in folded.title
    assert [type(block) for block in folded.blocks] == [Chart, Table]


def test_trainings_with_one_score_are_read_too(tmp_path: Path) -> None:
    record = [
        {"part": "names, 1%", "form": form, "seed": seed, "best": best, "last": 0.25, "seconds": 2}
        for form, scores in {"none": (0.5, 0.75), "input": (0.875,)}.items()
        for seed, best in enumerate(scores)
    ]
    gains, part = report_of(read_contents([write_study(tmp_path, record)])).sections
    assert isinstance(gains.blocks[0], Table) and isinstance(part.blocks[1], Table)
    assert texts(gains.blocks[0])[1][3:] == ["87.50 %", "+25.00 points", "", "66.7 %"]
    assert texts(part.blocks[1])[1][-2:] == ["25.00 %", "2.0 s"]


def test_a_folder_shows_its_study_and_its_trainings(tmp_path: Path) -> None:
    write_study(tmp_path / "study", STUDY)
    write_run(tmp_path / "study" / "one")
    contents = read_contents([tmp_path / "study"])
    assert report_of(contents).title == "1 training, 1 study"
    (tmp_path / "study" / "study.json").write_text("[1]", encoding="utf-8")
    contents = read_contents([tmp_path / "study"])
    assert len(contents.runs) == 1 and not contents.studies
    assert "study.json: expected number 0 to be an object, but got 1" in contents.left_out[0]


def without(*path: Any) -> Callable[[Any], None]:
    """A change that takes a value out of a study."""

    def change(study: Any) -> None:
        for key in path[:-1]:
            study = study[key]
        del study[path[-1]]

    return change


def changed(*path: Any, to: Any) -> Callable[[Any], None]:
    def change(study: Any) -> None:
        for key in path[:-1]:
            study = study[key]
        study[path[-1]] = to

    return change


FIRST = (1, "trainings", 0)


@pytest.mark.parametrize(
    "change, message",
    [
        (without(0, "part"), "expected `part` of number 0 to be a text, but got None"),
        (without(1, "name"), "expected `name` of number 1 to be a text"),
        (without(0, "trainings"), "expected `form` of number 0 to be a text"),
        (changed(0, "trainings", to=[]), "expected `trainings` of number 0 to be a list"),
        (changed(*FIRST, to=[]), "expected training 0 of number 1 to be an object, but got"),
        (changed(*FIRST, "seed", to=True), "`seed` of training 0 of number 1 to be a whole"),
        (changed(*FIRST, "scores", "accuracy", to=math.nan), "`accuracy` .* a finite number"),
        (changed(*FIRST, "scores", "accuracy", to=10**400), "`accuracy` .* a finite number"),
        (changed(*FIRST, "scores", "accuracy", to="x"), "`accuracy` .* a finite number"),
        (without(*FIRST, "scores", "macro_f1"), "all trainings to be measured by accuracy, macro"),
        (changed(*FIRST, "seconds", to=-1), "`seconds` of training 0 of number 1 to be a finite"),
        (changed(*FIRST, "shares", to=[2]), "a share of training 0 .* from 0 to 1"),
        (changed(*FIRST, "shares", to=[1]), "`shares` of biLM to be as many for each seed"),
        (changed(*FIRST, "confusion", to=[[1]]), "`confusion` .* a square of counts with a name"),
        (changed(*FIRST, "classes", to=["a", "b"]), "`classes` of biLM to be the same for each"),
    ],
)
def test_what_is_no_study_is_refused_by_name(
    tmp_path: Path, change: Callable[[Any], None], message: str
) -> None:
    study = json.loads(json.dumps(STUDY))
    change(study)
    with pytest.raises(ConfigurationError, match=f"study.json: .*{message}"):
        read_results(write_study(tmp_path, study))


@pytest.mark.parametrize("content", [{}, [], 7, None, "x", [[]]])
def test_what_is_no_list_of_trainings_is_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises(ConfigurationError, match="study.json: expected .*result file of a study"):
        read_results(write_study(tmp_path, content))


@pytest.mark.parametrize("limit", ["MAX_WAYS", "MAX_TRAININGS"])
def test_more_than_a_report_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(results_module, limit, 2)
    with pytest.raises(ConfigurationError, match=r"study.json: .* of at most 2 (ways|trainings)"):
        read_results(write_study(tmp_path, STUDY))


@pytest.mark.parametrize("name", ["ag_news_study/study.json", "task_gains/gains.json"])
def test_the_studies_of_this_project_are_read(name: str) -> None:
    study = read_results(PROJECT_ROOT / "examples" / name)
    assert len(study.ways) >= 5
    for recorded in json.loads(study.path.read_text("utf-8")):
        if "means" in recorded:
            (way,) = [
                one
                for one in study.ways
                if (one.part, one.name) == (recorded["part"], recorded["name"])
            ]
            assert {score: way.mean(score) for score in study.scores} == recorded["means"]
