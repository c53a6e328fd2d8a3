import json
import shutil
import tarfile
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import load_archive

from elmo_scratch import SentenceLayers, read_bilm
from elmo_scratch.interop import export_bilm
from elmo_scratch.interop.archives.blueprint import ListedWordIndexer
from tests import PROJECT_ROOT
from tests.tiny_archives import unpack

CLASSIFIERS = PROJECT_ROOT / "tests" / "golden" / "classifiers"
EMBEDDER = "text_field_embedder.token_embedder_elmo."
BIAS = "left_to_right.layers.0.bias"


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths inside the golden files start from the root of the checkout."""
    monkeypatch.chdir(PROJECT_ROOT)


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """A classifier over a biLM of words that was trained on with it."""
    return unpack(CLASSIFIERS / "words.tar.gz", tmp_path / "run")


def change_weights(folder: Path, change: Callable[[Dict[str, torch.Tensor]], Any]) -> None:
    weights = torch.load(folder / "weights.th", weights_only=True)
    change(weights)
    torch.save(weights, folder / "weights.th")


@pytest.mark.parametrize(
    "name, place",
    [
        ("words", f"{EMBEDDER}bilm"),
        ("characters", f"{EMBEDDER}bilm"),
        ("official", f"{EMBEDDER}elmo.bilm"),
    ],
)
def test_the_bilm_is_the_one_that_the_task_has(name: str, place: str) -> None:
    archive = CLASSIFIERS / f"{name}.tar.gz"
    trained = load_archive(archive).model.get_submodule(place).state_dict()
    read = read_bilm(archive).bilm
    assert read.state_dict().keys() == trained.keys()
    assert all(map(torch.equal, read.state_dict().values(), trained.values()))
    assert not read.training


def test_a_fine_tuned_bilm_is_not_what_it_was() -> None:
    """And words are looked up as the task does it, here in lower case."""
    before = read_bilm(PROJECT_ROOT / "tests" / "golden" / "words" / "model.tar.gz")
    after = read_bilm(CLASSIFIERS / "words.tar.gz")
    assert after.blueprint.words.words == before.blueprint.words.words
    assert not all(map(torch.equal, after.bilm.parameters(), before.bilm.parameters()))
    assert isinstance(after.word_indexer, ListedWordIndexer) and after.word_indexer.lowercase
    upper, lower = SentenceLayers(CLASSIFIERS / "words.tar.gz")([["GOAL"], ["goal"]])
    assert (upper == lower).all()


def test_a_warm_state_that_the_task_found_is_there() -> None:
    assert read_bilm(CLASSIFIERS / "official.tar.gz").bilm.state_memory.is_warm


def test_a_bilm_that_is_there_by_two_names_is_one(unpacked: Path) -> None:
    def repeat(weights: Dict[str, torch.Tensor]) -> None:
        for name in [name for name in weights if name.startswith(f"{EMBEDDER}bilm.")]:
            weights[name.replace(EMBEDDER, "again.")] = weights[name].clone()

    change_weights(unpacked, repeat)
    once = read_bilm(CLASSIFIERS / "words.tar.gz").bilm
    assert all(map(torch.equal, read_bilm(unpacked).bilm.parameters(), once.parameters()))
    change_weights(unpacked, lambda weights: weights[f"again.bilm.{BIAS}"].add_(1))
    with pytest.raises(
        ConfigurationError,
        match=f"run: expected one biLM, but there are several: again.bilm and {EMBEDDER}bilm. Name",
    ):
        read_bilm(unpacked)


def test_one_of_several_bilms_is_named_behind_the_archive(unpacked: Path, tmp_path: Path) -> None:
    def repeat(weights: Dict[str, torch.Tensor]) -> None:
        for name in [name for name in weights if name.startswith(f"{EMBEDDER}bilm.")]:
            weights[name.replace("_elmo.", "_other.")] = weights[name] + 1

    change_weights(unpacked, repeat)
    one = read_bilm(f"{unpacked}#{EMBEDDER}bilm").bilm
    other = read_bilm(f"{unpacked}#token_embedder_other").bilm
    for weight, more in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(weight + 1, more)
    first = SentenceLayers(f"{unpacked}#token_embedder_elmo")
    second = SentenceLayers(f"{unpacked}#token_embedder_other")
    assert (first([["goal"]])[0] != second([["goal"]])[0]).any()
    assert first.identity != second.identity  # no export goes on with the vectors of the other
    export_bilm(f"{unpacked}#token_embedder_other", tmp_path / "official")
    exported = read_bilm(tmp_path / "official").bilm
    name = "right_to_left.layers.1.bias"
    assert torch.equal(exported.state_dict()[name], other.state_dict()[name])
    with pytest.raises(ConfigurationError, match=f"a biLM at third, .* are at {EMBEDDER}bilm and"):
        read_bilm(f"{unpacked}#third")
    with pytest.raises(ConfigurationError, match="it is a model with one biLM. Leave #x out"):
        read_bilm(f"{tmp_path / 'official'}#x")
    with pytest.raises(ConfigurationError, match="that of a language model. Leave #x out"):
        read_bilm(f"{PROJECT_ROOT / 'tests' / 'golden' / 'words' / 'model.tar.gz'}#x")


def test_each_of_two_embedders_has_its_own_words(unpacked: Path) -> None:
    """Both word lists have as many words, so that either fits by its size."""
    kept = unpacked / "vocabulary" / ".elmo_scratch_elmo.json"
    plan = json.loads(kept.read_text())
    plan["words"][-2:] = reversed(plan["words"][-2:])
    (unpacked / "vocabulary" / ".elmo_scratch_second.json").write_text(json.dumps(plan))
    assert read_bilm(unpacked).blueprint.words.words[-2:] == plan["words"][:-3:-1]
    config = json.loads((unpacked / "config.json").read_text())
    config["model"]["text_field_embedder"]["token_embedders"]["elmo"]["namespace"] = "second"
    config["dataset_reader"]["token_indexers"]["elmo"]["namespace"] = "second"
    (unpacked / "config.json").write_text(json.dumps(config))
    assert read_bilm(unpacked).blueprint.words.words == plan["words"]
    config["model"]["text_field_embedder"]["token_embedders"]["elmo"]["namespace"] = "third"
    (unpacked / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigurationError, match="of the namespaces 'elmo' and 'second' fit it"):
        read_bilm(unpacked)


@pytest.mark.parametrize("name, kept", [("words", "_elmo"), ("official", "-official")])
@pytest.mark.parametrize("text", ["{", "[1]"])
def test_damage_to_what_an_archive_keeps_is_told_by_archive_and_member(
    name: str, kept: str, text: str, tmp_path: Path
) -> None:
    run = unpack(CLASSIFIERS / f"{name}.tar.gz", tmp_path / "run")
    (run / "vocabulary" / f".elmo_scratch{kept}.json").write_text(text)
    archive = tmp_path / "damaged.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(run, ".")
    expected = rf"damaged\.tar\.gz: vocabulary/\.elmo_scratch{kept}\.json: expected what a training"
    for read in (load_archive, read_bilm):
        with pytest.raises(ConfigurationError, match=expected):
            read(archive)


def test_a_task_without_a_bilm_is_an_error(unpacked: Path) -> None:
    (unpacked / "vocabulary" / ".elmo_scratch_elmo.json").unlink()
    with pytest.raises(
        ConfigurationError, match="a task with one of .* holds a 'elmo_scratch_classifier' without"
    ):
        read_bilm(unpacked)


@pytest.mark.parametrize(
    "change, told",
    [
        (
            lambda w: w.pop(f"{EMBEDDER}bilm.right_to_left.layers.1.bias"),
            "layers.1.bias is missing",
        ),
        (lambda w: w.pop(f"{EMBEDDER}bilm.left_to_right.layers.0.input_weight"), "no weights of a"),
        (lambda w: w[f"{EMBEDDER}bilm.{BIAS}"].fill_(1e400), "not finite"),
    ],
)
def test_weights_that_do_not_fit_are_an_error(
    change: Callable[[Dict[str, torch.Tensor]], Any], told: str, unpacked: Path
) -> None:
    change_weights(unpacked, change)
    with pytest.raises(ConfigurationError, match=f"run: .*{told}"):
        read_bilm(unpacked)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"bilm": {}}', '{"bilm": 1, "words": [1], "unknown_word": 2}']
)
def test_a_blueprint_that_makes_no_sense_is_an_error(text: str, unpacked: Path) -> None:
    (unpacked / "vocabulary" / ".elmo_scratch_elmo.json").write_text(text)
    with pytest.raises(
        ConfigurationError, match=r"run: vocabulary/\.elmo_scratch_elmo\.json: exp|run: its config"
    ):
        read_bilm(unpacked)


def test_an_indexer_that_is_not_told_in_one_word_is_an_error(unpacked: Path) -> None:
    config = json.loads((unpacked / "config.json").read_text())
    indexers = config["dataset_reader"]["token_indexers"]
    indexers["more"] = {**indexers["elmo"], "lowercase_tokens": False}
    Params(config).to_file(str(unpacked / "config.json"))
    with pytest.raises(ConfigurationError, match="expected one indexer `single_id` of .* 'elmo'"):
        read_bilm(unpacked)


def test_the_output_folder_of_the_training_will_do(unpacked: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(unpacked, tmp_path / "moved")
    (folder / "weights.th").rename(folder / "best.th")
    assert SentenceLayers(folder)([["goal"]])[0].shape == (3, 1, 8)
