"""The study of examples/ag_news_study: what it runs, in which order, and what it makes of it."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, List, Optional, Sequence

import pytest
import torch
from allennlp.common import Params

from elmo_scratch.modules.mixes import LayerMix
from tests import FIXTURES_ROOT, PROJECT_ROOT
from tests.tiny_training import CONFIGS

STUDY = PROJECT_ROOT / "examples" / "ag_news_study"
TRAIN, DEV = (FIXTURES_ROOT / "news" / name for name in ("train.csv", "dev.csv"))


@pytest.fixture(scope="module")
def modules() -> Dict[str, ModuleType]:
    """Those of the study by name, as `python examples/ag_news_study` imports them."""
    sys.path.insert(0, str(STUDY))
    try:
        return {
            name: importlib.import_module(name) for name in ("tasks", "plan", "results", "table")
        }
    finally:
        sys.path.remove(str(STUDY))


def echoing(modules: Dict[str, ModuleType], folder: Path, name: str, *needs: str) -> Any:
    """A task that adds its name to a file."""
    program = f"open({str(folder / 'order')!r}, 'a').write({name + ' '!r})"
    if name.startswith("bad"):
        program += "; raise SystemExit('no more')"
    command = [sys.executable, "-S", "-c", program]
    return modules["tasks"].Task(name, "", "", command, {}, folder / name, list(needs), None)


def order(folder: Path) -> List[str]:
    return (folder / "order").read_text(encoding="utf-8").split()


def test_what_others_need_comes_first(modules: Dict[str, ModuleType], tmp_path: Path) -> None:
    chain = [("c", "b"), ("b", "a"), ("a",)]
    tasks = [echoing(modules, tmp_path, *names) for names in chain]
    assert modules["tasks"].run_all(tasks, 2) == []
    assert order(tmp_path) == ["a", "b", "c"]


def test_what_is_done_is_not_done_again(modules: Dict[str, ModuleType], tmp_path: Path) -> None:
    tasks = [echoing(modules, tmp_path, *names) for names in [("a",), ("b", "a")]]
    modules["tasks"].run_all(tasks[:1], 1)
    modules["tasks"].run_all(tasks, 1)
    modules["tasks"].run_all(tasks, 1)
    assert order(tmp_path) == ["a", "b"]


def test_a_failure_stops_only_what_needs_it(
    modules: Dict[str, ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    names = [("bad",), ("worse", "bad"), ("worst", "worse"), ("good",)]
    tasks = [echoing(modules, tmp_path, *name) for name in names]
    assert modules["tasks"].run_all(tasks, 1) == ["bad", "worse", "worst"]
    assert order(tmp_path) == ["bad", "good"]
    assert "no more" in (tmp_path / "bad" / "log.txt").read_text(encoding="utf-8")
    assert "bad failed: see" in capsys.readouterr().out
    # The next run tries it again.
    assert modules["tasks"].run_all(tasks, 1) == ["bad", "worse", "worst"]
    assert order(tmp_path) == ["bad", "good", "bad"]


def test_what_is_interrupted_stops_at_once_and_starts_nothing_more(tmp_path: Path) -> None:
    program = f"""
import signal, sys
from pathlib import Path
sys.path.insert(0, {str(STUDY)!r})
from tasks import Task, run_all
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
def task(name):
    folder = Path({str(tmp_path)!r}) / name
    begun = folder / "begun"
    child = (
        "import os, time; from pathlib import Path; "
        f"part = Path({{str(begun.with_name('part'))!r}}); part.write_text(str(os.getpid())); "
        f"part.rename({{str(begun)!r}}); time.sleep(60)"
    )
    return Task(name, "", "", [sys.executable, "-S", "-c", child], {{}}, folder, [], None)
run_all([task("first"), task("second")], 1)
"""
    study = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    begun = tmp_path / "first" / "begun"
    while not begun.exists():
        assert study.poll() is None
        time.sleep(0.05)
    study.terminate()
    assert study.wait(10) == 143
    assert not (tmp_path / "second").exists()
    assert not (tmp_path / "first" / "done").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


def test_a_full_disk_ends_all_that_runs(
    modules: Dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: List[int] = []

    def full_disk(task: Any, seconds: float, pid: Optional[int] = None) -> None:
        if pid is None:
            raise OSError(28, "No space left on device")
        started.append(pid)

    monkeypatch.setattr(modules["tasks"].Task, "add_seconds", full_disk)
    command = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    tasks = [
        modules["tasks"].Task(name, "", "", command, {}, tmp_path / name, [], None)
        for name in ("first", "second")
    ]
    tasks.append(echoing(modules, tmp_path, "third"))
    with pytest.raises(OSError, match="No space left"):
        modules["tasks"].run_all(tasks, 3)
    assert len(started) == 3
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_the_time_of_all_runs_counts(modules: Dict[str, ModuleType], tmp_path: Path) -> None:
    task = echoing(modules, tmp_path, "a")
    task.folder.mkdir()
    task.add_seconds(100.0)
    assert not task.is_another()
    modules["tasks"].run_all([task], 1)
    assert 100.0 < task.seconds() < 110.0


def test_a_training_that_was_stopped_at_its_end_has_a_row(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    task = echoing(modules, tmp_path, "a")._replace(part="mixes", row="words, top")
    modules["tasks"].run_all([task], 1)
    run = task.folder / "run"
    run.mkdir()
    best = {f"best_validation_{score}": 0.6 for score in modules["results"].SCORES}
    ending: Dict[str, Any] = {
        **best,
        "best_epoch": 2,
        "best_validation_confusion": [[1, 2], [3, 4]],
        "best_validation_confusion_classes": ["World", "Sports"],
    }
    (run / "metrics.json").write_text(json.dumps(ending))
    for epoch in (2, 10):
        shares = {"layer_share_0": 0.25 / epoch, "layer_share_1": 1 - 0.25 / epoch}
        measured = {**shares, "validation_accuracy": epoch / 20}
        (run / f"metrics_epoch_{epoch}.json").write_text(json.dumps(measured))
    (row,) = modules["results"].collected([task])
    assert (row.scores["accuracy"], row.last_accuracies) == ([0.6], [0.5])
    assert row.shares == [[0.125, 0.875]]
    assert (row.classes, row.confusion) == (["Sports", "World"], [[4, 3], [2, 1]])


def test_another_bilm_makes_other_classifiers(
    modules: Dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = tmp_path / "training_config"
    shutil.copytree(CONFIGS, configs)
    monkeypatch.setattr(modules["plan"], "CONFIGS", configs)

    def settings() -> Any:
        tasks = modules["plan"].planned_tasks(TRAIN, DEV, tmp_path, 1, {})
        (one,) = [task for task in tasks if task.name == "mixes: words, top, seed 0"]
        return one.settings

    before = settings()
    assert before["needs"]["words"]["config"]["model"]["type"] == "elmo_scratch_bilm"
    bilm = configs / "bilm" / "ag_news.jsonnet"
    bilm.write_text(bilm.read_text("utf-8").replace("dropout: 0.3", "dropout: 0.4"), "utf-8")
    after = settings()
    assert after != before
    assert {**after, "needs": before["needs"]} == before


def test_other_texts_make_other_classifiers(modules: Dict[str, ModuleType], tmp_path: Path) -> None:
    def settings(rows: bytes) -> Any:
        train = tmp_path / "train.csv"
        train.write_bytes(TRAIN.read_bytes() + rows)
        return [
            task.settings for task in modules["plan"].planned_tasks(train, DEV, tmp_path, 1, {})
        ]

    before, after = settings(b'"1","a","b"\n'), settings(b'"1","a","c"\n')
    assert all(one != other for one, other in zip(before, after, strict=True))


def test_a_training_goes_on_from_what_it_saved(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    tasks = modules["plan"].planned_tasks(TRAIN, DEV, tmp_path, 1, {})
    (vectors,) = [task for task in tasks if task.name == "word2vec"]
    assert vectors.command_now() == vectors.command
    (bilm,) = [task for task in tasks if task.name == "words"]
    assert bilm.command_now() == [*bilm.command, "--force"]
    run = Path(bilm.command[bilm.command.index("-s") + 1])
    run.mkdir(parents=True)
    (run / "model_state_e0_b0.th").touch()
    assert bilm.command_now() == [*bilm.command, "--recover"]


@pytest.mark.parametrize(
    "cores, jobs, expected",
    [
        (8, 2, {"a": "8", "b": "4", "c": "4"}),
        (8, 8, {"a": "8", "b": "4", "c": "4"}),
        (2, 8, {"a": "2", "b": "1", "c": "1"}),
    ],
)
def test_what_runs_together_shares_the_cores(
    cores: int,
    jobs: int,
    expected: Dict[str, str],
    modules: Dict[str, ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    program = "import os; open('{}', 'w').write(os.environ['OMP_NUM_THREADS'])"
    tasks = [
        echoing(modules, tmp_path, *names)._replace(
            command=[sys.executable, "-S", "-c", program.format(tmp_path / f"{names[0]}.txt")]
        )
        for names in [("a",), ("b", "a"), ("c", "a")]
    ]
    assert modules["tasks"].run_all(tasks, jobs) == []
    assert {name: (tmp_path / f"{name}.txt").read_text() for name in expected} == expected


def test_what_a_killed_study_has_left_running_is_ended(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    task = echoing(modules, tmp_path, "a")
    task = task._replace(command=[*task.command, str(task.folder / "run")])
    task.folder.mkdir()
    sleeping = [sys.executable, "-c", "import time; time.sleep(99)", str(task.folder / "run")]
    left = subprocess.Popen(sleeping, start_new_session=True)
    other = subprocess.Popen(sleeping[:-1], start_new_session=True)
    try:
        task.add_seconds(1.0, other.pid)
        task.stop_left_over()
        task.add_seconds(1.0, left.pid)
        modules["tasks"].run_all([task], 1)
        assert left.wait(10) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        left.kill()
        other.kill()
    assert task.is_done


def test_the_whole_study_is_planned(modules: Dict[str, ModuleType], tmp_path: Path) -> None:
    tasks = modules["plan"].planned_tasks(TRAIN, DEV, tmp_path, 5, {})
    by_name = {task.name: task for task in tasks}
    assert len(by_name) == len(tasks)
    rows = [(task.part, task.row) for task in tasks if task.row]
    assert len(rows) == 5 * len(set(rows))
    for bilm in ("words", "words from word2vec", "characters"):
        for mix in ("trainable", "frozen", "function", "top", "mean"):
            assert ("mixes", f"{bilm}, {mix}") in rows
    for other in ("word2vec", "svd", "random vectors", "untrained words, trainable"):
        assert ("mixes", other) in rows
    for part in ("descriptions", "titles"):
        best = {"no biLM", "frozen biLM", "biLM trained on"}
        assert {(part, row) for row in best} <= set(rows)
    assert ("descriptions", "frozen biLM, of titles too") in rows
    assert {part for part, _ in rows} == set(modules["table"].PARTS)
    folders = [task.folder for task in tasks]
    assert len(folders) == len(set(folders))
    for place, task in enumerate(tasks):
        assert set(task.needs) <= {earlier.name for earlier in tasks[:place]}


def test_rows_can_be_chosen_with_what_they_need(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    tasks = modules["plan"].planned_tasks(TRAIN, DEV, tmp_path, 2, {})
    chosen = modules["plan"].chosen_tasks(tasks, "word2vec, top")
    assert [task.name for task in chosen] == [
        "word2vec",
        "words from word2vec",
        "mixes: words from word2vec, top, seed 0",
        "mixes: words from word2vec, top, seed 1",
    ]
    titles = modules["plan"].chosen_tasks(tasks, "^titles: frozen")
    assert [task.name for task in titles] == [
        "word2vec with titles",
        "words with titles",
        "titles: frozen biLM, seed 0",
        "titles: frozen biLM, seed 1",
    ]
    alone = modules["plan"].chosen_tasks(tasks, "^descriptions: no biLM")
    assert [task.name for task in alone] == [
        "word2vec",
        "descriptions: no biLM, seed 0",
        "descriptions: no biLM, seed 1",
    ]
    marked = modules["plan"].chosen_tasks(tasks, "titles too")
    assert [task.name for task in marked][:2] == ["word2vec with titles", "words with titles"]
    assert modules["plan"].chosen_tasks(tasks, "") == tasks


def test_the_best_classifiers_differ_in_what_their_bilm_has_read(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    tasks = modules["plan"].planned_tasks(TRAIN, DEV, tmp_path, 1, {})
    first, second = (task for task in tasks if task.part == "descriptions" and "frozen" in task.row)
    assert (first.row, second.row) == ("frozen biLM", "frozen biLM, of titles too")
    assert (first.needs, second.needs) == (["words from word2vec"], ["words with titles"])
    made_by = {task.name: task.folder for task in tasks}
    configs = [task.settings["config"] for task in (first, second)]
    vectors = ("word2vec", "word2vec with titles")
    for task, config, static in zip((first, second), configs, vectors):
        embedders = config["model"]["text_field_embedder"]["token_embedders"]
        archive = made_by[task.needs[0]] / "run" / "model.tar.gz"
        assert embedders["elmo"].pop("pretrained_file") == str(archive)
        assert embedders["elmo"].pop("keep_layers")["path"] == f"{archive}.layers"
        assert Path(embedders["words"].pop("pretrained_file")).parent == made_by[static]
    assert configs[0] == configs[1]


def test_each_seed_draws_other_frozen_weights() -> None:
    settings = {"STUDY_VECTORS": "words", "STUDY_FILE": "a", "STUDY_MIX": "frozen"}
    config = PROJECT_ROOT / "training_config" / "ag_news" / "study.jsonnet"
    drawn = []
    for seed in "01":
        variables = {**settings, "STUDY_SEED": seed, "AG_NEWS_TRAIN": "b", "AG_NEWS_DEV": "c"}
        params = Params.from_file(config, ext_vars=variables).as_dict()
        embedder = params["model"]["text_field_embedder"]["token_embedders"]["tokens"]
        drawn.append(LayerMix.from_params(Params(embedder["mix"]), num_layers=3).shares())
    assert not torch.equal(*drawn)


def row_of(
    modules: Dict[str, ModuleType],
    name: str,
    accuracies: Sequence[float],
    part: str = "mixes",
    needs_no_seed: bool = False,
) -> Any:
    scores = {score: list(accuracies) for score in modules["results"].SCORES}
    shares = [[0.25, 0.75]] * len(accuracies)
    return modules["results"].Row(
        part,
        name,
        scores,
        [60.0] * len(accuracies),
        shares,
        ["dull", "fine"],
        [[1, 0], [2, 1]],
        needs_no_seed,
        [accuracy - 0.005 for accuracy in accuracies],
    )


def test_the_table_says_what_is_within_noise(modules: Dict[str, ModuleType]) -> None:
    rows = [
        row_of(modules, "worse", [0.80, 0.81, 0.80, 0.81]),
        row_of(modules, "best", [0.89, 0.91, 0.90, 0.92]),
        row_of(modules, "like it", [0.89, 0.90, 0.90, 0.91]),
        row_of(modules, "alone", [0.88]),
        row_of(modules, "far", [0.85]),
        row_of(modules, "known", [0.89], needs_no_seed=True),
        row_of(modules, "known, far", [0.879], needs_no_seed=True),
    ]
    heading, _, *lines = modules["table"].markdown(rows).splitlines()
    assert heading == "### One classifier over different vectors, of descriptions"
    confused, lines = lines[10:14], lines[2:9]
    names = [line.split(" | ")[0].strip("| ") for line in lines]
    assert names == ["best", "like it", "known", "alone", "known, far", "far", "worse"]
    assert "| 4 | 90.50% ± 1.29 | 90.00% | 0.905 ± 0.013 |" in lines[0]
    assert "0.25, 0.75 | 60 s |" in lines[0]
    assert "90.00% ± 0.82 ≈" in lines[1]
    # By Student's t with 3 degrees of freedom, of which 3.18 has p = 0.05: 2.32, 1.73, 4.03, 3.81.
    assert "| 1 | 89.00% ≈ | 88.50% | 0.890 |" in lines[2]
    assert "| 1 | 88.00% ≈ | 87.50% | 0.880 |" in lines[3]
    assert not any("≈" in lines[place] for place in (0, 4, 5, 6))
    assert confused == [
        "| best: true class | as dull | as fine |",
        "|---|---:|---:|",
        "| dull | 1 | 0 |",
        "| fine | 2 | 1 |",
    ]


def test_each_part_has_a_table_of_its_own(modules: Dict[str, ModuleType]) -> None:
    rows = [
        row_of(modules, "a", [0.92], "titles"),
        row_of(modules, "b", [0.91], "descriptions"),
        row_of(modules, "c", [0.90], "titles"),
    ]
    lines = modules["table"].markdown(rows).splitlines()
    marks = [line.split(" | ")[0] for line in lines if line.startswith(("###", "| "))]
    assert marks == [
        "### The best classifiers, of descriptions",
        *("| vectors, mix", "| b", "| b: true class", "| dull", "| fine"),
        "### The best classifiers, of titles and descriptions",
        *("| vectors, mix", "| a", "| c", "| a: true class", "| dull", "| fine"),
    ]
    assert not any("≈" in line for line in lines[:-1])


def test_it_runs_from_the_first_word_to_the_table(tmp_path: Path) -> None:
    command = [sys.executable, str(STUDY), str(TRAIN), str(DEV), "--folder", str(tmp_path)]
    command += ["--seeds", "2", "--only", ": words, trainable|random|^titles: frozen"]
    command += ["--overrides", '{"trainer.num_epochs": 1}']
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    table = (tmp_path / "study.md").read_text(encoding="utf-8")
    assert table in done.stdout
    rows = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    assert [(row["part"], row["name"]) for row in rows] == [
        ("mixes", "words, trainable"),
        ("mixes", "random vectors"),
        ("titles", "frozen biLM"),
        ("mixes", "TF-IDF, linear SVM"),
        ("titles", "TF-IDF, linear SVM"),
    ]
    mixed = rows[0]
    assert len(mixed["scores"]["accuracy"]) == 2
    assert [sum(shares) for shares in mixed["shares"]] == pytest.approx([1.0, 1.0])
    assert sum(map(sum, mixed["confusion"])) == 2 * 80
    # As many texts of each class in every row, whatever order a vocabulary gives the classes.
    per_class = [[sum(counts) / len(row["seconds"]) for counts in row["confusion"]] for row in rows]
    assert all(counts == per_class[0] for counts in per_class)
    assert {tuple(row["classes"]) for row in rows} == {("Business", "Sci/Tech", "Sports", "World")}
    assert len(set(mixed["deviations"])) == len(mixed["means"]) == 4
    # What was chosen before stays in the results.
    subprocess.run([*command, "--only", "random", "--seeds", "1"], capture_output=True, check=True)
    after = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    assert [(row["part"], row["name"]) for row in after][:3] == [
        ("mixes", "words, trainable"),
        ("mixes", "random vectors"),
        ("titles", "frozen biLM"),
    ]
    assert after[0] == rows[0]
    again = subprocess.run(
        [*command[:-1], '{"trainer.num_epochs": 2}'], capture_output=True, text=True, check=False
    )
    assert again.returncode == 2
    assert "holds what other settings have made" in again.stderr
    # The layers were kept for the second seed.
    assert (tmp_path / "words" / "run" / "model.tar.gz.layers").stat().st_size > 0


def test_files_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    command = [sys.executable, str(STUDY), "no.csv", str(DEV), "--folder", str(tmp_path / "study")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no file no.csv" in done.stderr
    assert not (tmp_path / "study").exists()


def test_rows_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    command = [sys.executable, str(STUDY), str(TRAIN), str(DEV), "--folder", str(folder)]
    command += ["--only", "^descriptions: frozen biLM, seed"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is found in no row. They are:" in done.stderr
    assert "descriptions: frozen biLM, of titles too" in done.stderr.splitlines()
    assert not folder.exists()


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
