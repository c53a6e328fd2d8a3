import json
import tarfile
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any, Dict

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import Params
from allennlp.models.archival import load_archive

from elmo_scratch.data import SentencesReader
from elmo_scratch.interop import read_bilm_archive
from elmo_scratch.interop.archives.archive import archive_files, read_language_model
from tests import FIXTURES_ROOT
from tests.tiny_archives import BILM, SENTENCES, VOCABULARY_LINES, WORD_BILM, archive_of, unpack


@pytest.fixture
def unpacked(bilm_archive: Path, tmp_path: Path) -> Path:
    """A folder with the files of the tiny biLM's archive, to spoil."""
    return unpack(bilm_archive, tmp_path / "unpacked")


def packed(folder: Path) -> Path:
    """An archive of the files in a folder, beside it."""
    path = folder.with_suffix(".tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        for file in folder.iterdir():
            archive.add(file, arcname=file.name)
    return path


def change_config(folder: Path, **changes: Any) -> None:
    """Overwrites settings of the `bilm` block of a config."""
    path = folder / "config.json"
    config: Dict[str, Any] = json.loads(path.read_text())
    config["model"]["bilm"].update(changes)
    path.write_text(json.dumps(config))


def test_the_weights_are_those_that_were_trained(bilm_archive: Path) -> None:
    trained = load_archive(bilm_archive).model.get_submodule("bilm").state_dict()
    read = read_bilm_archive(bilm_archive).bilm.state_dict()
    assert set(read) == set(trained)
    assert all(torch.equal(read[name], trained[name]) for name in trained)


def test_the_words_are_those_of_the_vocabulary(bilm_archive: Path) -> None:
    pretrained = read_bilm_archive(bilm_archive)
    for word in ("the", "goalkeeper", "<S>", "</S>", "@@UNKNOWN@@"):
        number = pretrained.vocab.get_token_index(word)
        assert pretrained.blueprint.words.words[number] == word


def test_the_reader_is_the_one_of_its_training(bilm_archive: Path) -> None:
    reader = read_bilm_archive(bilm_archive).reader
    assert isinstance(reader, SentencesReader)
    (instance, *_) = reader.read(FIXTURES_ROOT / "text" / "tour.txt")
    reader.apply_token_indexers(instance)
    counter: Dict[str, Dict[str, int]] = defaultdict(lambda: defaultdict(int))
    instance.count_vocab_items(counter)
    assert set(counter["tokens"]) >= {"she", "apple"}  # of "She ate a sliced apple"


def test_the_blueprint_builds_the_same_network(bilm_archive: Path) -> None:
    pretrained = read_bilm_archive(bilm_archive)
    pretrained.blueprint.build().load_state_dict(pretrained.bilm.state_dict())


def test_the_folder_of_a_training_will_do(bilm_archive: Path) -> None:
    read = read_bilm_archive(bilm_archive.parent).bilm.state_dict()
    packed = read_bilm_archive(bilm_archive).bilm.state_dict()
    assert all(torch.equal(read[name], packed[name]) for name in packed)


def test_its_files_are_the_archive_or_what_goes_into_it(bilm_archive: Path) -> None:
    assert archive_files(bilm_archive) == [bilm_archive]
    folder = bilm_archive.parent
    names = [str(file.relative_to(folder)) for file in archive_files(folder)]
    assert names[:2] == ["config.json", "best.th"]
    assert "vocabulary/tokens.txt" in names[2:]


def test_a_missing_archive_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nothing.tar.gz: there is no such archive"):
        read_bilm_archive(tmp_path / "nothing.tar.gz")


def test_a_text_file_by_the_name_of_an_archive_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="not_an_archive.tar.gz: expected an archive"):
        read_bilm_archive(FIXTURES_ROOT / "bad" / "not_an_archive.tar.gz")


def test_half_an_archive_is_an_error(bilm_archive: Path, tmp_path: Path) -> None:
    half = tmp_path / "half.tar.gz"
    half.write_bytes(bilm_archive.read_bytes()[: bilm_archive.stat().st_size // 2])
    with pytest.raises(ConfigurationError, match="half.tar.gz: expected an archive"):
        read_bilm_archive(half)


def test_a_folder_that_is_not_the_output_of_a_training_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no config.json"):
        read_bilm_archive(tmp_path)


@pytest.mark.parametrize("part", ["config.json", "vocabulary", "weights.th"])
def test_an_archive_that_lacks_a_part_is_an_error(part: str, unpacked: Path) -> None:
    (unpacked / part).rename(unpacked.with_name("elsewhere"))
    # For want of weights.th AllenNLP would read best.th, as in the folder of a training.
    missing = part.replace("weights", "best")
    with pytest.raises(ConfigurationError, match=f"unpacked.tar.gz: it holds no {missing}"):
        read_bilm_archive(packed(unpacked))


def test_the_archive_of_another_model_is_an_error(unpacked: Path) -> None:
    Params({"model": {"type": "basic_classifier"}}).to_file(str(unpacked / "config.json"))
    with pytest.raises(
        ConfigurationError,
        match="unpacked.tar.gz: expected .*'elmo_scratch_bilm', but it holds a 'basic_classifier'",
    ):
        read_bilm_archive(packed(unpacked))


def test_weights_that_do_not_fit_the_config_are_an_error(unpacked: Path) -> None:
    change_config(unpacked, cell_size=67)
    with pytest.raises(ConfigurationError, match=r"do not fit the config.*left_to_right.*256.*268"):
        read_bilm_archive(packed(unpacked))


@pytest.mark.parametrize("place", ["reader", "biLM"])
def test_programs_that_the_config_names_are_not_started(
    place: str, unpacked: Path, tmp_path: Path
) -> None:
    program = {"type": "subprocess.Popen", "args": ["touch", str(tmp_path / "it ran")]}
    if place == "biLM":
        change_config(unpacked, token_encoder=program)
    else:
        config = Params.from_file(str(unpacked / "config.json"))
        config["dataset_reader"] = program
        config.to_file(str(unpacked / "config.json"))
    with pytest.raises(ConfigurationError, match="'subprocess.Popen' is no "):
        read_bilm_archive(packed(unpacked))
    assert not (tmp_path / "it ran").exists()


def test_programs_of_a_repository_are_not_fetched(unpacked: Path) -> None:
    config = Params.from_file(str(unpacked / "config.json"))
    config["dataset_reader"]["tokenizer"] = {
        "type": "pretrained_transformer",
        "model_name": "somebody/something",
        "tokenizer_kwargs": {"trust_remote_code": True},
    }
    config.to_file(str(unpacked / "config.json"))
    for read in (read_bilm_archive, load_archive):
        with pytest.raises(ConfigurationError, match="its config asks for `trust_remote_code`"):
            read(packed(unpacked))


@pytest.mark.parametrize(
    "program",
    [
        'importstr "/etc/hostname"',
        'std.extVar("HOME")',
        "[" * 9999,
        *("[" * deep + "]" * deep for deep in (700, 201)),
    ],
)
def test_a_config_is_data_and_no_program(program: str, unpacked: Path) -> None:
    path = unpacked / "config.json"
    text = path.read_text()
    path.write_text(f'{{"x": {program}, ' + text.lstrip()[1:])
    for read in (read_bilm_archive, load_archive):
        with pytest.raises(ConfigurationError, match="expected its config.json to be plain JSON"):
            read(packed(unpacked))


@pytest.mark.parametrize(
    "changes, told",
    [
        # More than any memory holds, or any time builds.
        ({"cell_size": 10**6}, "do not fit the config.* shape .* where .*4000000"),
        (
            {"num_layers": 10**9},
            "do not fit the config. Its `num_layers` asks for 1000000000 layers or .*, but",
        ),
        (
            {"token_encoder": {**BILM["token_encoder"], "num_highway": 10**9}},
            "do not fit the config. Its `num_highway` asks for 1000000000 layers or .*, but",
        ),
        (
            {"token_encoder": {**BILM["token_encoder"], "filters": [[1, 1]] * 10**4}},
            "do not fit the config. Its `filters` asks for 10000 layers or convolutions, but",
        ),
        ({"cell_size": -1}, "expected `cell_size` of 1 or more"),
        ({"cell_size": "large"}, "its config describes no biLM"),
    ],
)
def test_a_config_takes_no_memory_that_the_weights_do_not_bear_out(
    changes: Dict[str, Any], told: str, unpacked: Path
) -> None:
    change_config(unpacked, **changes)
    with pytest.raises(ConfigurationError, match=told):
        read_bilm_archive(unpacked)


def test_weights_take_no_more_memory_than_their_file_bears_out(unpacked: Path) -> None:
    """One number may stand for many, in the file of a tensor."""
    weights = torch.load(unpacked / "weights.th", weights_only=True)
    weights["bilm.x"] = torch.zeros(1).expand(10**6, 10**6)
    torch.save(weights, unpacked / "weights.th")
    with pytest.raises(ConfigurationError, match="tensors would take 4000000.* bytes, many more"):
        read_bilm_archive(packed(unpacked))


def test_compressed_weights_are_an_error(unpacked: Path) -> None:
    file = unpacked / "weights.th"
    with zipfile.ZipFile(file) as plain:
        contents = {name: plain.read(name) for name in plain.namelist()}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as compressed:
        for name, content in contents.items():
            compressed.writestr(name, content)
    with pytest.raises(ConfigurationError, match="can't be read: it holds compressed parts"):
        read_bilm_archive(packed(unpacked))


class Code:
    def __reduce__(self) -> Any:
        return print, ("this ran",)


@pytest.mark.parametrize(
    "weights",
    [b"", b"this is no model", {"bilm.x": Code()}, {"bilm.x": 3}, [torch.ones(3)]],
    ids=["empty", "text", "code", "number", "list"],
)
def test_weights_that_cannot_be_read_are_an_error(
    weights: Any, unpacked: Path, capsys: pytest.CaptureFixture
) -> None:
    file = unpacked / "weights.th"
    if isinstance(weights, bytes):
        file.write_bytes(weights)
    else:
        torch.save(weights, file)
    with pytest.raises(ConfigurationError, match="expected the weights of a model in wei") as error:
        read_bilm_archive(packed(unpacked))
    # PyTorch advises to run what a file holds.
    assert "False" not in error.value.message
    assert "this ran" not in capsys.readouterr().out


def test_weights_of_fewer_layers_than_the_config_has_are_an_error(unpacked: Path) -> None:
    change_config(unpacked, num_layers=3)
    with pytest.raises(ConfigurationError, match="do not fit the config.*layers.2"):
        read_bilm_archive(unpacked)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_weights_that_diverged_are_an_error(number: float, unpacked: Path) -> None:
    weights = torch.load(unpacked / "weights.th", weights_only=True)
    weights["bilm.left_to_right.layers.0.bias"][3] = number
    torch.save(weights, unpacked / "weights.th")
    with pytest.raises(ConfigurationError, match="bilm.left_to_right.layers.0.bias holds numbers"):
        read_bilm_archive(packed(unpacked))


def test_words_that_do_not_fit_the_weights_are_an_error(unpacked: Path) -> None:
    with open(unpacked / "vocabulary" / "tokens.txt", "a") as file:
        file.write("\nintruder")
    with pytest.raises(ConfigurationError, match="do not fit the config.*embedding.weight"):
        read_bilm_archive(packed(unpacked))


@pytest.mark.parametrize("has_corpus_vocabulary", [False, True])
@pytest.mark.parametrize("bilm", [BILM, WORD_BILM], ids=["characters", "words"])
def test_bilms_of_all_kinds_are_read(
    bilm: Dict[str, Any], has_corpus_vocabulary: bool, tmp_path: Path
) -> None:
    archive = archive_of(tmp_path, bilm=bilm, has_corpus_vocabulary=has_corpus_vocabulary)
    trained = load_archive(archive).model.get_submodule("bilm").state_dict()
    pretrained = read_bilm_archive(archive)
    read = pretrained.bilm.state_dict()
    assert set(read) == set(trained)
    assert all(torch.equal(read[name], trained[name]) for name in trained)
    words = pretrained.blueprint.words
    if has_corpus_vocabulary:
        assert words.words == ["@@PADDING@@", *VOCABULARY_LINES]
        assert words.unknown_word == "<UNK>"
        assert pretrained.vocab.get_token_index("zzyzx") == 3
    else:
        assert words.words[:2] == ["@@PADDING@@", "@@UNKNOWN@@"]
        assert set(words.words[2:]) == {"<S>", "</S>", *sum(SENTENCES, [])}
        assert words.unknown_word == "@@UNKNOWN@@"


def test_a_stock_vocabulary_may_have_another_unknown_word(tmp_path: Path) -> None:
    archive = archive_of(tmp_path)
    folder = archive.parent
    (folder / "vocabulary" / "tokens.txt").write_text("<unk>\nriver\n", encoding="utf-8")
    config = json.loads((folder / "config.json").read_text())
    config["vocabulary"] = {"oov_token": "<unk>"}
    (folder / "config.json").write_text(json.dumps(config))
    words = read_bilm_archive(folder).blueprint.words
    assert words.words == ["@@PADDING@@", "<unk>", "river", "<S>", "</S>"]
    assert words.unknown_word == "<unk>"


def test_a_vocabulary_that_lacks_the_unknown_word_is_an_error(unpacked: Path) -> None:
    (unpacked / "vocabulary" / "tokens.txt").write_text("river\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="its vocabulary, of the type .*has none. Add"):
        read_bilm_archive(unpacked)


def test_a_vocabulary_that_nobody_registered_is_an_error(unpacked: Path) -> None:
    config = json.loads((unpacked / "config.json").read_text())
    config["vocabulary"] = {"type": "someone_elses"}
    (unpacked / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigurationError, match="of the type 'someone_elses', can't be read"):
        read_bilm_archive(unpacked)


def test_the_softmax_comes_with_a_language_model(bilm_archive: Path) -> None:
    trained = load_archive(bilm_archive).model.get_submodule("softmax").state_dict()
    softmax = read_language_model(bilm_archive).softmax
    assert set(softmax) == set(trained) >= {"weight", "bias"}
    assert all(torch.equal(softmax[name], trained[name]) for name in trained)


def test_a_config_without_a_bilm_is_an_error(unpacked: Path) -> None:
    config = json.loads((unpacked / "config.json").read_text())
    del config["model"]["bilm"]
    (unpacked / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigurationError, match="holds no configuration of a biLM"):
        read_bilm_archive(unpacked)
