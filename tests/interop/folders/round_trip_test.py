import json
import os
from pathlib import Path
from typing import Any, Dict, List

import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch import SentenceLayers, read_bilm, write_bilm_folder
from elmo_scratch.interop import WordList, export_bilm, export_model_folder
from elmo_scratch.interop.archives.blueprint import BiLmBlueprint, ListedWordIndexer
from elmo_scratch.interop.folders import read_model_folder, writing
from elmo_scratch.interop.softmax import LoadedSoftmax
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.softmaxes import SampledSoftmax
from tests import PROJECT_ROOT
from tests.tiny_archives import BILM, WORD_BILM

GOLDEN = PROJECT_ROOT / "tests" / "golden"
CHARACTERS, WORDS = GOLDEN / "characters" / "model.tar.gz", GOLDEN / "words" / "model.tar.gz"
FILES = ["README.md", "config.json", "model.safetensors", "vocab.txt"]
SENTENCES = [["The", "river", "naïve", "zzyzx"], [], ["GOAL", "<S>", "@@PADDING@@"]]

AWKWARD = ["a\nb", "\n", "\r", " ", "\u2028", "\\", "\\n", "a\\", "é", "<UNK>"]
"""Words that end a line, or look like the end of one."""


def layers_of(model: Any) -> List[numpy.ndarray]:
    return SentenceLayers(model)(SENTENCES)


def same(one: List[numpy.ndarray], other: List[numpy.ndarray]) -> bool:
    return all(map(numpy.array_equal, one, other))


def bilm_of(config: Dict[str, Any], *words: str) -> BiLm:
    listed = WordList(["", "<UNK>", "<S>", "</S>", *words], "<UNK>")
    return BiLmBlueprint(config, listed).build()


@pytest.mark.parametrize(
    "model",
    [
        *(CHARACTERS, WORDS, GOLDEN / "official", GOLDEN / "exported" / "words"),
        *(GOLDEN / "classifiers" / f"{name}.tar.gz" for name in ("words", "official")),
    ],
    ids=lambda path: f"{path.parent.name}-{path.name}",
)
def test_vectors_from_a_folder_are_the_same_to_the_bit(model: Path, tmp_path: Path) -> None:
    export_model_folder(model, tmp_path / "folder")
    before, after = layers_of(model), layers_of(tmp_path / "folder")
    assert same(before, after)
    assert numpy.abs(before[0]).max() > 0.01


def test_official_files_of_a_folder_give_the_same_vectors(tmp_path: Path) -> None:
    export_model_folder(CHARACTERS, tmp_path / "folder")
    export_bilm(tmp_path / "folder", tmp_path / "official")
    assert same(layers_of(tmp_path / "official"), layers_of(CHARACTERS))
    # Words keep their vectors; that they are in lower case, official files don't tell.
    export_model_folder(WORDS, tmp_path / "words")
    export_bilm(tmp_path / "words", tmp_path / "official words")
    lower = [[word.lower() for word in sentence] for sentence in SENTENCES[:1]]
    assert same(SentenceLayers(tmp_path / "official words")(lower), SentenceLayers(WORDS)(lower))


@pytest.mark.parametrize("model", [WORDS, GOLDEN / "started" / "archive.tar.gz"])
def test_the_softmax_comes_along(model: Path, tmp_path: Path) -> None:
    export_model_folder(model, tmp_path / "folder")
    before, after = (read_bilm(name, with_softmax=True) for name in (model, tmp_path / "folder"))
    assert after.softmax.config == before.softmax.config
    assert list(after.softmax.tensors) == list(before.softmax.tensors) != []
    for name, tensor in before.softmax.tensors.items():
        assert torch.equal(after.softmax.tensors[name], tensor), name
    assert after.blueprint.words.words == before.blueprint.words.words
    # Whoever doesn't score waits for no tensor of it.
    assert read_bilm(tmp_path / "folder").softmax.tensors == {}


def test_a_sampled_softmax_keeps_its_whole_numbers(tmp_path: Path) -> None:
    words = WordList(["", "<UNK>", "<S>", "</S>", *"abcdefg"], "<UNK>")
    softmax = SampledSoftmax(num_words=11, dim=8, num_samples=3)
    config = {"type": "sampled", "num_samples": 3}
    given = LoadedSoftmax(config, softmax.state_dict())
    write_bilm_folder(bilm_of(BILM), tmp_path / "folder", words=words, softmax=given)
    read = read_bilm(tmp_path / "folder", with_softmax=True)
    softmax.load_state_dict(read.softmax.tensors)
    assert read.softmax.tensors["sampler.seed"].dtype == torch.int64


def test_words_of_all_letters_come_back(tmp_path: Path) -> None:
    words = WordList(["", "<UNK2>", "<S>", "</S>", *AWKWARD], "<UNK2>")
    bilm = BiLmBlueprint(WORD_BILM, words).build()
    write_bilm_folder(bilm, tmp_path, word_indexer=ListedWordIndexer(words, lowercase=False))
    read = read_bilm(tmp_path)
    assert read.blueprint.words.words == words.words
    assert read.word_indexer.spell([AWKWARD]).ids.tolist() == [list(range(4, 14))]


def test_nothing_but_plain_files_is_written(tmp_path: Path) -> None:
    export_model_folder(WORDS, tmp_path / "words")
    assert sorted(os.listdir(tmp_path / "words")) == FILES
    weights = (tmp_path / "words" / "model.safetensors").read_bytes()
    header = int.from_bytes(weights[:8], "little")
    assert weights[8:9] == b"{" and len(weights) > 8 + header
    # A biLM of characters alone reads and predicts no words.
    write_bilm_folder(read_bilm(CHARACTERS).bilm, tmp_path / "characters")
    assert sorted(os.listdir(tmp_path / "characters")) == FILES[:3]


def test_a_warm_state_is_kept(tmp_path: Path) -> None:
    layers = SentenceLayers(CHARACTERS, state="warm")
    layers.save_pretrained(tmp_path / "cold")
    assert not SentenceLayers(tmp_path / "cold").is_warm
    layers.warm_up([["a", "river"], ["rose"]])
    layers.save_pretrained(tmp_path / "warm")
    warm = SentenceLayers(tmp_path / "warm")
    assert warm.is_warm and same(warm(SENTENCES), layers(SENTENCES))
    assert not same(warm(SENTENCES), layers_of(CHARACTERS))


@pytest.mark.parametrize(
    "settings",
    [{}, {"recurrent_weight_dropout": 0.25, "word_dropout": 0.125, "locked_dropout": True}],
)
def test_how_it_is_regularized_is_kept_where_it_is(
    settings: Dict[str, Any], tmp_path: Path
) -> None:
    write_bilm_folder(bilm_of({**BILM, **settings}), tmp_path)
    written = json.loads((tmp_path / "config.json").read_text("utf-8"))["bilm"]
    names = ("recurrent_weight_dropout", "word_dropout", "locked_dropout")
    # Without it there is nothing that an earlier release wouldn't know.
    assert {name: written[name] for name in names if name in written} == settings
    bilm = read_bilm(tmp_path).bilm
    for stack in (bilm.left_to_right, bilm.right_to_left):
        assert stack.locked_dropout is bool(settings)
        assert [layer.weight_dropout.p for layer in stack.layers] == [0.25 * bool(settings)] * 2
    assert bilm.word_dropout.p == 0.125 * bool(settings)


def test_an_older_model_gives_way_only_if_asked(tmp_path: Path) -> None:
    export_model_folder(WORDS, tmp_path / "folder")
    before = (tmp_path / "folder" / "config.json").read_bytes()
    with pytest.raises(ConfigurationError, match="files of another biLM .* by `overwrite=True`"):
        write_bilm_folder(bilm_of(BILM), tmp_path / "folder")
    with pytest.raises(ConfigurationError, match="files of another biLM .* by `--overwrite`"):
        export_model_folder(CHARACTERS, tmp_path / "folder")
    assert (tmp_path / "folder" / "config.json").read_bytes() == before
    write_bilm_folder(bilm_of(BILM), tmp_path / "folder", overwrite=True)
    assert sorted(os.listdir(tmp_path / "folder")) == FILES[:3]


@pytest.mark.parametrize("has_older", [False, True])
def test_a_write_that_fails_changes_nothing(
    has_older: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    if has_older:
        export_model_folder(WORDS, folder)
    before = layers_of(folder) if has_older else []

    def full_disk(*_: Any, **__: Any) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "model_card", full_disk)
    with pytest.raises(OSError, match="No space left"):
        export_model_folder(CHARACTERS, folder, overwrite=True)
    assert os.listdir(tmp_path) == (["folder"] if has_older else [])
    assert not has_older or same(before, layers_of(folder))


def test_what_a_folder_cannot_hold_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected ids of words by a list of words.*NoneType"):
        write_bilm_folder(bilm_of(WORD_BILM), tmp_path / "folder")
    bilm = bilm_of(BILM)
    softmax = LoadedSoftmax({"type": "full"}, {})
    with pytest.raises(ValueError, match="expected `words`, those that the softmax scores"):
        write_bilm_folder(bilm, tmp_path / "folder", softmax=softmax)
    with torch.no_grad():
        bilm.left_to_right.layers[0].bias[0] = float("nan")
    with pytest.raises(ValueError, match="bilm.left_to_right.layers.0.bias: expected finite"):
        write_bilm_folder(bilm, tmp_path / "folder")
    assert os.listdir(tmp_path) == []


def test_numbers_of_half_precision_are_written_in_full(tmp_path: Path) -> None:
    bilm = bilm_of(BILM).half()
    write_bilm_folder(bilm, tmp_path / "folder")
    read = read_model_folder(tmp_path / "folder").bilm
    assert all(map(torch.equal, read.parameters(), bilm.float().parameters()))


def test_formats_do_not_share_a_folder(tmp_path: Path) -> None:
    export_model_folder(WORDS, tmp_path / "folder")
    export_bilm(WORDS, tmp_path / "official")
    for write, folder, other in (
        (export_bilm, tmp_path / "folder", "model.safetensors"),
        (export_model_folder, tmp_path / "official", "options.json"),
    ):
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        for overwrite in (False, True):
            with pytest.raises(ConfigurationError, match=f"expected a folder without {other}"):
                write(WORDS, folder, overwrite=overwrite)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
