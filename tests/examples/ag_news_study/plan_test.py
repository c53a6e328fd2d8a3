import shutil
from copy import deepcopy
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, List

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.mixes import LayerMix
from tests import PROJECT_ROOT
from tests.examples.ag_news_study import DEV, TRAIN
from tests.tiny_training import CONFIGS


@pytest.mark.exhaustive
def test_another_bilm_makes_other_classifiers(
    modules: Dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = tmp_path / "training_config"
    shutil.copytree(CONFIGS, configs)
    monkeypatch.setattr(modules["plan"], "CONFIGS", configs)

    def settings() -> Any:
        tasks = modules["plan"].planned_tasks(TRAIN, DEV, tmp_path, range(1), {})
        (one,) = [task for task in tasks if task.name == "mixes: words, top, seed 0"]
        return one.settings

    before = settings()
    assert before["needs"]["words"]["config"]["model"]["type"] == "elmo_scratch_bilm"
    bilm = configs / "bilm" / "ag_news.jsonnet"
    bilm.write_text(bilm.read_text("utf-8").replace("dropout: 0.3", "dropout: 0.4"), "utf-8")
    after = settings()
    assert after != before
    assert {**after, "needs": before["needs"]} == before


@pytest.mark.exhaustive
def test_other_texts_make_other_classifiers(modules: Dict[str, ModuleType], tmp_path: Path) -> None:
    def settings(rows: bytes) -> Any:
        train = tmp_path / "train.csv"
        train.write_bytes(TRAIN.read_bytes() + rows)
        return [
            task.settings
            for task in modules["plan"].planned_tasks(train, DEV, tmp_path, range(1), {})
        ]

    before, after = settings(b'"1","a","b"\n'), settings(b'"1","a","c"\n')
    assert all(one != other for one, other in zip(before, after, strict=True))


@pytest.fixture(scope="module")
def tasks(modules: Dict[str, ModuleType], tmp_path_factory: pytest.TempPathFactory) -> List[Any]:
    """A study of two seeds. Not to be changed."""
    folder = tmp_path_factory.mktemp("study")
    return modules["plan"].planned_tasks(TRAIN, DEV, folder, range(2), {})


def test_a_training_goes_on_from_what_it_saved(tasks: List[Any]) -> None:
    (vectors,) = [task for task in tasks if task.name == "word2vec"]
    assert vectors.command_now() == vectors.command
    (bilm,) = [task for task in tasks if task.name == "words"]
    assert bilm.command_now() == [*bilm.command, "--force"]
    run = Path(bilm.command[bilm.command.index("-s") + 1])
    run.mkdir(parents=True)
    (run / "model_state_e0_b0.th").touch()
    assert bilm.command_now() == [*bilm.command, "--recover"]


@pytest.mark.exhaustive
def test_the_whole_study_is_planned(modules: Dict[str, ModuleType], tmp_path: Path) -> None:
    tasks = modules["plan"].planned_tasks(TRAIN, DEV, tmp_path, range(5), {})
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
    modules: Dict[str, ModuleType], tasks: List[Any]
) -> None:
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


def test_the_best_classifiers_differ_in_what_their_bilm_has_read(tasks: List[Any]) -> None:
    first, second = (
        task
        for task in tasks
        if task.part == "descriptions" and "frozen" in task.row and task.name.endswith("seed 0")
    )
    assert (first.row, second.row) == ("frozen biLM", "frozen biLM, of titles too")
    assert (first.needs, second.needs) == (["words from word2vec"], ["words with titles"])
    made_by = {task.name: task.folder for task in tasks}
    configs = [deepcopy(task.settings["config"]) for task in (first, second)]
    vectors = ("word2vec", "word2vec with titles")
    for task, config, static in zip((first, second), configs, vectors):
        embedders = config["model"]["text_field_embedder"]["token_embedders"]
        archive = f"FOLDER/{made_by[task.needs[0]].name}/run/model.tar.gz"
        assert embedders["elmo"].pop("pretrained_file") == archive
        assert embedders["elmo"].pop("keep_layers")["path"] == f"{archive}.layers"
        file = f"FOLDER/{made_by[static].name}/vectors.txt"
        assert embedders["words"].pop("pretrained_file") == file
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


@pytest.mark.exhaustive
def test_a_study_may_be_moved_with_its_texts(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    def settings(folder: Path) -> Any:
        folder.mkdir()
        train, dev = (folder / name for name in ("train.csv", "dev.csv"))
        shutil.copy(TRAIN, train)
        shutil.copy(DEV, dev)
        tasks = modules["plan"].planned_tasks(train, dev, folder / "study", range(1), {})
        assert any(str(folder) in word for task in tasks for word in task.command)
        return {task.name: task.settings for task in tasks}

    assert settings(tmp_path / "here") == settings(tmp_path / 'the "other" place')


def test_overrides_change_no_row_into_another(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    overrides = {"trainer.optimizer.lr": 0.5}
    tasks = modules["plan"].planned_tasks(TRAIN, DEV, tmp_path, range(1), overrides)
    rates = {
        task.name: task.settings["config"]["trainer"]["optimizer"]["lr"]
        for task in tasks
        if task.is_training
    }
    assert rates.pop("untrained words") == 0.0
    assert set(rates.values()) == {0.5}


@pytest.mark.parametrize(
    "overrides, told",
    [
        ({"pytorch_seed": 1}, "the overrides set `pytorch_seed`, but each training has its own"),
        ({"trainer": {"num_epochs": 1}}, "ag_news.jsonnet can't be trained .*: .* unused keys"),
        ({"model.seq2vec_encoder.num_filters": 1}, "bilm/ag_news.jsonnet can't be .*num_filters"),
    ],
)
def test_overrides_that_fit_no_config_are_an_error(
    overrides: Dict[str, object], told: str, modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        modules["plan"].planned_tasks(TRAIN, DEV, tmp_path, range(1), overrides)
