from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.report import Contents, read_run, report_of, surest_errors
from elmo_scratch.report.document import Table
from elmo_scratch.report.errors import Errors, WrongPrediction
from tests import FIXTURES_ROOT
from tests.report.run_folders import write_run

DEV = FIXTURES_ROOT / "news" / "dev.csv"


def test_the_surest_come_first(classifier_archive: Path) -> None:
    folder = classifier_archive.parent
    errors = surest_errors(folder, str(DEV), most=80)
    accuracy = read_run(folder).final.of("validation")["accuracy"]
    assert errors.num_texts == 80
    assert errors.num_wrong == len(errors.surest) == 80 - round(80 * accuracy)
    probabilities = [one.probability for one in errors.surest]
    assert probabilities == sorted(probabilities, reverse=True)
    assert all(one.true != one.predicted for one in errors.surest)
    text = DEV.read_text(encoding="utf-8")
    assert errors.surest[0].text.split()[0] in text
    few = surest_errors(folder, str(DEV), most=3)
    assert few.num_wrong == errors.num_wrong
    assert few.surest == errors.surest[:3]


def test_another_model_is_refused(bilm_archive: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected an elmo_scratch_classifier, but it is"):
        surest_errors(bilm_archive.parent, str(DEV))


def test_data_that_is_missing_is_told(classifier_archive: Path) -> None:
    with pytest.raises(ConfigurationError, match="none.csv: there is no such file"):
        surest_errors(classifier_archive.parent, "none.csv")


def test_they_are_in_the_report(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path))
    wrong = WrongPrediction("cats", "dogs", 0.987, "a <script> purrs")
    errors = {tmp_path: Errors("dev.csv", 70, 7, [wrong])}
    report = report_of(Contents([run]), errors=errors)
    (table,) = [
        block
        for block in report.sections[0].blocks
        if isinstance(block, Table) and block.caption.startswith("7 of 70 texts of dev.csv are")
    ]
    assert [cell.text for cell in table.rows[0]] == ["cats", "dogs", "98.7 %", "a <script> purrs"]
