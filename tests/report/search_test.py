from pathlib import Path

from elmo_scratch.report import read_contents, report_of
from elmo_scratch.report.document import Chart, Paragraph, Table
from tests.report.overview_test import texts
from tests.report.run_folders import write_run
from tests.search.kept_test import write_search


def test_a_search_shows_its_trials_and_each_setting_beside_what_was_reached(
    tmp_path: Path,
) -> None:
    outcomes = ["0.5", "failed", "behind", "0.75", "0.625", "0.25", "running"]
    folder = write_search(tmp_path / "found", *outcomes)
    (folder / "best.json").write_text("{}", encoding="utf-8")
    write_run(folder / "trial-0")
    report = report_of(read_contents([folder]))
    assert report.title == "1 training, 1 search"
    section = report.sections[0]
    assert section.title == "Search found"
    facts, words, trials, failed, course, choice, number = section.blocks
    assert isinstance(facts, Table)
    told = dict(texts(facts))
    assert told["trials"] == "7: 4 finished, 1 failed, 1 stopped early, 1 not finished"
    assert told["lr"].startswith("Number(low=0.0, high=1.0")
    assert isinstance(words, Paragraph)
    assert words.text.startswith("Trial 3 has the best validation/accuracy, 75.00 %.")
    assert "best.json" in words.text
    assert isinstance(trials, Table)
    assert [column.title for column in trials.columns][:4] == [
        *("trial", "validation/accuracy", "mix", "lr"),
    ]
    assert texts(trials)[0][:5] == ["3", "75.00 %", "null", "0.375", "finished"]
    assert [row[0] for row in texts(trials)] == ["3", "4", "0", "5", "1", "2", "6"]
    assert isinstance(failed, Table) and texts(failed) == [["1", "reading / out of memory"]]
    assert isinstance(course, Chart)
    assert "4 finished, from 25.00 % to 75.00 %; 1 stopped early" in course.alternative
    assert isinstance(choice, Chart) and "top 50.00 % (of 1)" in choice.alternative
    assert isinstance(number, Chart) and "validation/accuracy beside lr" in number.alternative


def test_trials_are_not_compared_a_second_time(tmp_path: Path) -> None:
    folder = write_search(tmp_path / "found", "0.5", "0.75")
    for number in range(2):
        write_run(folder / f"trial-{number}", config={"lr": number})
    sections = report_of(read_contents([folder])).sections
    assert [one.title for one in sections] == ["Overview", "Search found", "trial-0", "trial-1"]
    courses = sections[1].blocks[-1]
    assert isinstance(courses, Chart)
    assert courses.caption.startswith("Course of accuracy on the validation data in all trainings")

    # Where trials differ in seeds alone, or others stand beside them, there is more to compare.
    write_run(folder / "trial-2", config={"lr": 1}, seed=2)
    with_seeds = report_of(read_contents([folder])).sections
    assert "Comparison by accuracy" in [one.title for one in with_seeds]
    (folder / "trial-2" / "meta.json").unlink()
    other = write_run(tmp_path / "other", config={"lr": 7})
    beside = report_of(read_contents([folder, other])).sections
    assert "Comparison by accuracy" in [one.title for one in beside]


def test_a_search_without_any_end_says_so(tmp_path: Path) -> None:
    (section,) = report_of(read_contents([write_search(tmp_path, "running")])).sections
    words = section.blocks[1]
    assert isinstance(words, Paragraph)
    assert words.text.endswith("validation/accuracy has come to its end.")
