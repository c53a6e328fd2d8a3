import json
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.examples.ag_news_study import DEV, STUDY, TRAIN
from tests.examples.run_program import run_program


@pytest.mark.exhaustive
@pytest.mark.usefixtures("forked_commands")
def test_it_runs_from_the_first_word_to_the_table(tmp_path: Path) -> None:
    command = [str(TRAIN), str(DEV), "--folder", str(tmp_path)]
    command += ["--seeds", "2", "--only", ": words, trainable|random|^titles: frozen"]
    command += ["--overrides", '{"trainer.num_epochs": 1}']
    done = run_program(STUDY, *command)
    assert done.status == 0, done.errors[-2000:]
    table = (tmp_path / "study.md").read_text(encoding="utf-8")
    assert table in done.output
    # The report shows the tables, the biLMs, and the best row of each part with its errors.
    assert f"report  {tmp_path / 'report.html'}\n        {tmp_path / 'report.pdf'}" in done.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(heading in page for heading in ("elmo_scratch_bilm", "surest", "linear SVM"))
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF-")
    rows = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    assert [(row["part"], row["name"]) for row in rows] == [
        ("mixes", "words, trainable"),
        ("mixes", "random vectors"),
        ("titles", "frozen biLM"),
        ("mixes", "TF-IDF, linear SVM"),
        ("titles", "TF-IDF, linear SVM"),
    ]
    mixed = rows[0]
    assert [training["seed"] for training in mixed["trainings"]] == [0, 1]
    for training in mixed["trainings"]:
        assert sum(training["shares"]) == pytest.approx(1.0)
        assert sum(map(sum, training["confusion"])) == 80
    # As many texts of each class in all, whatever order a vocabulary gives the classes.
    trainings = [training for row in rows for training in row["trainings"]]
    assert len({tuple(map(sum, training["confusion"])) for training in trainings}) == 1
    names = {tuple(training["classes"]) for training in trainings}
    assert names == {("Business", "Sci/Tech", "Sports", "World")}
    for score in mixed["means"]:
        numbers = [training["scores"][score] for training in mixed["trainings"]]
        assert mixed["means"][score] == pytest.approx(statistics.mean(numbers))
        assert mixed["deviations"][score] == pytest.approx(statistics.stdev(numbers))
    # Rows that were chosen before stay in the results.
    assert run_program(STUDY, *command, "--only", "random", "--seeds", "1").status == 0
    after = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    assert [(row["part"], row["name"]) for row in after][:3] == [
        ("mixes", "words, trainable"),
        ("mixes", "random vectors"),
        ("titles", "frozen biLM"),
    ]
    assert after[0] == rows[0]
    # What one folder has is not trained in another, nor what only that would need.
    elsewhere = tmp_path / "elsewhere"
    place = command.index(str(tmp_path))
    known = ["--results", str(tmp_path / "study.json")]
    more = [*command[:place], str(elsewhere), *command[place + 1 :], *known, "--seeds", "1"]
    more += ["--only", "random|: words, (top|trainable)"]
    merging = run_program(STUDY, *more)
    assert merging.status == 0, merging.errors[-2000:]
    merged = json.loads((elsewhere / "study.json").read_text(encoding="utf-8"))
    by_name = {(row["part"], row["name"]): row for row in merged}
    assert [by_name[row["part"], row["name"]] for row in after[:3]] == after[:3]
    assert len(by_name["mixes", "words, top"]["trainings"]) == 1
    assert [path.name for path in (elsewhere / "mixes").iterdir()] == ["words-top-seed_0"]
    assert not (elsewhere / "words_with_titles").exists()
    strange = [*more, "--overrides", "{}"]
    stranger = run_program(STUDY, *strange)
    assert stranger.status == 2
    assert "of the 6 trainings in " in stranger.errors
    assert "6 have other settings, texts or overrides" in stranger.errors
    # As many trainings are planned as seeds are named, however large a seed is.
    forged = tmp_path / "forged.json"
    written = (tmp_path / "study.json").read_text(encoding="utf-8")
    forged.write_text(written.replace('"seed": 1,', f'"seed": {10**12},'), encoding="utf-8")
    of_forged = [str(forged) if word == known[1] else word for word in more]
    stranger = run_program(STUDY, *of_forged)
    assert stranger.status == 2
    assert "of the 6 trainings in " in stranger.errors
    assert "3 have other settings, texts or overrides" in stranger.errors
    again = run_program(STUDY, *command[:-1], '{"trainer.num_epochs": 2}')
    assert again.status == 2
    assert "holds what other settings or texts have made (8 of " in again.errors
    # Nor may a row that shares nothing with them take their places in the results.
    alone = [*command[:-1], '{"trainer.num_epochs": 2}', "--only", "word2vec$"]
    assert run_program(STUDY, *alone).status == 2
    # The layers were kept for the second seed.
    assert (tmp_path / "words" / "run" / "model.tar.gz.layers").stat().st_size > 0


def test_files_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    named = tmp_path / "named.csv"
    named.write_text("News,Of,Today\n" + DEV.read_text("utf-8"), "utf-8")
    for dev, told in (
        ("no.csv", "no.csv: there is no such file"),
        (str(named), "named.csv, line 1: expected a class from 1 to 4 .*, but found 'News'"),
    ):
        folder = tmp_path / "study"
        words = [str(TRAIN), dev, "--folder", str(folder)]
        done = run_program(STUDY, *words)
        assert done.status == 2
        assert re.search(told, done.errors.splitlines()[-1])
        assert not folder.exists()


def test_a_folder_that_is_none_is_an_error(tmp_path: Path) -> None:
    place = tmp_path / "study"
    place.touch()
    words = [str(TRAIN), str(DEV), "--folder", str(place), "--seeds", "1"]
    done = run_program(STUDY, *words)
    assert done.status == 2
    assert f"expected a folder, but {place} is none" in done.errors


@pytest.mark.exhaustive
def test_what_failed_is_told_apart_from_what_needs_it(tmp_path: Path) -> None:
    command = [sys.executable, str(STUDY), str(TRAIN), str(DEV), "--folder", str(tmp_path)]
    command += ["--seeds", "1", "--only", "^mixes: words, (top|mean)"]
    command += ["--overrides", '{"trainer.num_epochs": "none"}']
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    told = done.stderr.splitlines()[-1]
    assert told.startswith("1 of 3 failed: words; 2 others need them. Their logs are in ")
    assert not (tmp_path / "study.md").exists()


@pytest.mark.exhaustive
def test_rows_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    words = [str(TRAIN), str(DEV), "--folder", str(folder), "--seeds", "1"]
    words += ["--only", "^descriptions: frozen biLM, seed"]
    done = run_program(STUDY, *words)
    assert done.status == 2
    assert "is found in no row. They are:" in done.errors
    assert "descriptions: frozen biLM, of titles too" in done.errors.splitlines()
    assert not folder.exists()


@pytest.mark.exhaustive
def test_it_says_that_it_goes_on_after_a_signal(tmp_path: Path) -> None:
    command = [sys.executable, str(STUDY), str(TRAIN), str(DEV), "--folder", str(tmp_path)]
    command += ["--seeds", "1", "--only", "random"]
    study = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    begun = tmp_path / "mixes" / "random_vectors-seed_0" / "task.json"
    while not begun.exists():
        assert study.poll() is None
        time.sleep(0.05)
    study.terminate()
    _, told = study.communicate(timeout=30)
    assert study.returncode == 128 + signal.SIGTERM
    assert told.splitlines()[-1] == "interrupted: the same command goes on with it"
