import copy
import inspect
import io
import json
import logging
import pickle
import shutil
from pathlib import Path
from typing import Any, Callable, Iterator, List

import h5py
import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.elmo import _ElmoBiLm
from allennlp.modules.elmo import batch_to_ids as allennlps_batch_to_ids

import elmo_scratch
from elmo_scratch.export import ElmoEmbedder
from elmo_scratch.export.parts import PartWriting
from tests.interop.official.reference import BATCHES, MODELS, PLAIN, RESIDUAL, stored_layers

SENTENCES: List[List[str]] = [sentence for batch in BATCHES for sentence in batch]
WIDTH = 12


@pytest.fixture
def new_embedder() -> Callable[..., ElmoEmbedder]:
    """An embedder that has read nothing yet."""

    def new(*args: Any, **settings: Any) -> ElmoEmbedder:
        return ElmoEmbedder(str(RESIDUAL.options), str(RESIDUAL.weights), *args, **settings)

    return new


@pytest.fixture
def embedder(new_embedder: Callable[..., ElmoEmbedder]) -> ElmoEmbedder:
    return new_embedder()


def reference_vectors(name: str) -> Iterator[numpy.ndarray]:
    """For each of `SENTENCES` the layers that the fixtures' own program computed."""
    for batch, layers in zip(BATCHES, stored_layers(name)):
        for row, sentence in enumerate(batch):
            yield layers[:, row, 1 : 1 + len(sentence)]


@pytest.mark.parametrize("name", MODELS)
def test_vectors_are_those_of_the_reference_with_carried_states(name: str) -> None:
    embedder = ElmoEmbedder(MODELS[name].options, MODELS[name].weights)
    vectors = list(embedder.embed_sentences(SENTENCES, batch_size=3))
    expected = list(reference_vectors(name))
    assert len(vectors) == len(expected) == 9
    for one, other in zip(vectors, expected):
        assert one.dtype == numpy.float32
        numpy.testing.assert_allclose(one, other, atol=1e-6, rtol=0)


def test_vectors_are_those_that_allennlp_computes(embedder: ElmoEmbedder) -> None:
    bilm = _ElmoBiLm(str(RESIDUAL.options), str(RESIDUAL.weights))
    # Of several sizes, and each as if it were the only one of a script.
    batches = [*BATCHES, BATCHES[0][:1], [[], *BATCHES[2], []], BATCHES[1]]
    for batch in batches:
        theirs = torch.stack(bilm(allennlps_batch_to_ids(batch))["activations"])
        for row, vectors in enumerate(embedder.embed_batch(batch)):
            expected = theirs[:, row, 1 : 1 + len(batch[row])].detach().numpy()
            numpy.testing.assert_allclose(vectors, expected, atol=1e-5, rtol=0)


def test_a_batch_comes_as_tensors_with_a_mask(embedder: ElmoEmbedder) -> None:
    activations, mask = embedder.batch_to_embeddings(BATCHES[0])
    assert activations.shape == (3, 3, 10, WIDTH)
    assert activations.dtype == torch.float32
    assert mask.tolist() == [[1] * 10, [0] * 10, [1] * 5 + [0] * 5]
    assert mask.dtype == torch.int64
    for row, expected in zip(activations, list(reference_vectors("residual"))):
        assert torch.allclose(row[:, : expected.shape[1]], torch.tensor(expected), atol=1e-6)
        assert not row[:, expected.shape[1] :].any()


def test_the_number_of_layers_comes_first_only_for_a_sentence(embedder: ElmoEmbedder) -> None:
    words = ["The", "ferry", "leaves"]
    assert embedder.embed_sentence(words).shape == (3, 3, WIDTH)
    assert [one.shape for one in embedder.embed_batch([words, words[:1]])] == [
        (3, 3, WIDTH),
        (3, 1, WIDTH),
    ]


def test_a_batch_may_be_any_iterable(embedder: ElmoEmbedder) -> None:
    sentences = ["The bank", "rates"]
    embedded = embedder.embed_batch(sentence.split() for sentence in sentences)
    assert [one.shape for one in embedded] == [(3, 2, WIDTH), (3, 1, WIDTH)]
    activations, mask = embedder.batch_to_embeddings(map(str.split, sentences))
    assert (activations.shape, mask.tolist()) == ((2, 3, 2, WIDTH), [[1, 1], [1, 0]])


def test_empty_sentences_have_the_shape_of_the_model(embedder: ElmoEmbedder) -> None:
    empty, full = (3, 0, WIDTH), (3, 2, WIDTH)
    assert embedder.embed_sentence([]).shape == empty
    assert embedder.embed_sentence([]).dtype == numpy.float32
    assert embedder.embed_batch([]) == []
    assert [one.shape for one in embedder.embed_batch([[], []])] == [empty, empty]
    for place in range(3):
        batch = [["two", "words"], ["two", "words"]]
        batch.insert(place, [])
        shapes = [one.shape for one in embedder.embed_sentences(batch)]
        assert shapes == [empty if row == place else full for row in range(3)]


def test_a_batch_without_words_has_all_axes(embedder: ElmoEmbedder) -> None:
    activations, mask = embedder.batch_to_embeddings([[], []])
    assert activations.shape == (2, 3, 0, WIDTH)
    assert mask.shape == (2, 0)


def test_sentences_are_embedded_when_they_are_asked_for(embedder: ElmoEmbedder) -> None:
    taken: List[int] = []

    def endless() -> Iterator[List[str]]:
        for number in range(10**6):
            taken.append(number)
            yield ["word"]

    vectors = embedder.embed_sentences(endless(), 2)
    assert inspect.isgenerator(vectors)
    assert taken == []
    next(vectors)
    next(vectors)
    assert taken == [0, 1]
    next(vectors)
    assert taken == [0, 1, 2, 3]
    assert list(embedder.embed_sentences([])) == []


def test_states_are_carried_until_they_are_reset(embedder: ElmoEmbedder) -> None:
    first, second = (embedder.embed_sentence(["the", "same", "words"]) for _ in range(2))
    assert numpy.array_equal(first[0], second[0])
    assert abs(first[1:] - second[1:]).max() > 0.01
    embedder.reset_states()
    assert numpy.array_equal(embedder.embed_sentence(["the", "same", "words"]), first)


def test_without_carried_states_a_sentence_has_one_vector(
    new_embedder: Callable[..., ElmoEmbedder],
) -> None:
    embedder = new_embedder(state="reset")
    together = embedder.embed_batch(SENTENCES)
    for sentence, vectors in zip(SENTENCES, together):
        assert numpy.array_equal(embedder.embed_sentence(sentence), vectors)


def test_it_can_be_warmed_up(new_embedder: Callable[..., ElmoEmbedder]) -> None:
    embedder = new_embedder(state="warm")
    with pytest.raises(ValueError, match="warm"):
        embedder.embed_sentence(["too", "early"])
    embedder.warm_up(SENTENCES)
    first, second = (embedder.embed_sentence(["the", "same", "words"]) for _ in range(2))
    assert numpy.array_equal(first, second)
    cold = new_embedder(state="reset").embed_sentence(["the", "same", "words"])
    assert abs(first[1:] - cold[1:]).max() > 0.01


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda embedder: pickle.loads(pickle.dumps(embedder))]
)
def test_a_copy_goes_on_as_the_first_would(
    copied: Callable[[ElmoEmbedder], ElmoEmbedder], embedder: ElmoEmbedder
) -> None:
    embedder.embed_batch(SENTENCES[:3])
    other = copied(embedder)
    numpy.testing.assert_array_equal(
        embedder.embed_sentence(SENTENCES[0]), other.embed_sentence(SENTENCES[0])
    )


def test_an_archive_can_be_copied_too(bilm_archive: Path, tmp_path: Path) -> None:
    other = pickle.loads(pickle.dumps(ElmoEmbedder(weight_file=bilm_archive)))
    text = tmp_path / "text.txt"
    text.write_text("a sentence\n", encoding="utf-8")
    other.embed_file(text, tmp_path / "layers.hdf5")
    with h5py.File(tmp_path / "layers.hdf5") as file:
        assert file["0"].shape[1] == 2


def test_products_can_be_in_another_precision(new_embedder: Callable[..., ElmoEmbedder]) -> None:
    exact = new_embedder().embed_sentence(SENTENCES[0])
    rounded = new_embedder(matmul_dtype="bfloat16").embed_sentence(SENTENCES[0])
    assert 1e-6 < abs(exact - rounded).max() < 0.1


def test_an_archive_of_words_does_as_well(bilm_archive: Path) -> None:
    embedder = ElmoEmbedder(weight_file=str(bilm_archive))
    assert embedder.embed_sentence(["rain", "unheard-of", "rain"]).shape == (3, 3, 64)
    assert embedder.embed_sentence([]).shape == (3, 0, 64)


# What goes wrong


@pytest.mark.parametrize("words", ["A sentence", b"A sentence", [1, 2], ["one", None], None, 3])
@pytest.mark.parametrize("of_words", [False, True])
def test_what_is_no_list_of_words_is_an_error(
    words: Any, of_words: bool, new_embedder: Callable[..., ElmoEmbedder], bilm_archive: Path
) -> None:
    embedder = ElmoEmbedder(weight_file=bilm_archive) if of_words else new_embedder()
    with pytest.raises(ValueError, match="sentence 0 to be a sequence of words"):
        embedder.embed_sentence(words)
    with pytest.raises(ValueError, match="sentence 1 to be a sequence of words"):
        embedder.embed_batch([["fine"], words])


@pytest.mark.parametrize("batch", ["A sentence", ["A", "sentence"]])
def test_a_sentence_in_place_of_a_batch_is_an_error(batch: Any, embedder: ElmoEmbedder) -> None:
    with pytest.raises(ValueError, match="sentence 0 to be a sequence of words, but got 'A'"):
        embedder.embed_batch(batch)
    with pytest.raises(ValueError, match="sentence 0 to be a sequence of words, but got 'A'"):
        list(embedder.embed_sentences(batch))


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_needs_room_for_a_sentence(size: int, embedder: ElmoEmbedder) -> None:
    with pytest.raises(ValueError, match=f"`batch_size` of 1 or more, got {size}"):
        embedder.embed_sentences([["word"]], size)
    with pytest.raises(ValueError, match=f"`batch_size` of 1 or more, got {size}"):
        embedder.embed_file(io.StringIO("word\n"), "out.hdf5", batch_size=size)


def test_files_that_are_missing_are_named() -> None:
    with pytest.raises(ConfigurationError, match="missing.json"):
        ElmoEmbedder("missing.json", str(RESIDUAL.weights))


def test_a_gpu_that_is_missing_is_named(new_embedder: Callable[..., ElmoEmbedder]) -> None:
    with pytest.raises(ConfigurationError, match="a GPU with the number 64"):
        new_embedder(64)


# Files

LINES = ["She ran to the station .", "  A lone 鶴  called\tfrom ", "The ferry", "The ferry"]


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "output_format, of_layers",
    [
        ("all", lambda layers: layers),
        ("top", lambda layers: layers[2]),
        ("average", lambda layers: layers.sum(axis=0) / 3),
    ],
)
def test_a_file_holds_what_sentences_get(
    output_format: str,
    of_layers: Callable[[numpy.ndarray], numpy.ndarray],
    new_embedder: Callable[..., ElmoEmbedder],
    text_file: Path,
    tmp_path: Path,
) -> None:
    output_path = tmp_path / "layers.hdf5"
    with open(text_file, encoding="utf-8") as opened:
        new_embedder().embed_file(opened, str(output_path), output_format, batch_size=2)
        assert opened.closed
    expected = list(new_embedder().embed_sentences([line.split() for line in LINES], 2))
    with h5py.File(output_path) as file:
        assert set(file) == {"0", "1", "2", "3", "sentence_to_index"}
        for number, layers in enumerate(expected):
            vectors = file[str(number)]
            assert vectors.dtype == numpy.float32
            numpy.testing.assert_allclose(vectors[...], of_layers(layers), atol=1e-6, rtol=0)
        index = json.loads(file["sentence_to_index"][0])
    assert index == {LINES[0]: "0", LINES[1].strip(): "1", "The ferry": "3"}


def test_a_path_does_as_well_as_an_open_file(
    new_embedder: Callable[..., ElmoEmbedder], text_file: Path, tmp_path: Path
) -> None:
    outputs = [tmp_path / name for name in ("opened", "named", "lines")]
    new_embedder().embed_file(text_file.open(encoding="utf-8"), outputs[0])
    new_embedder().embed_file(str(text_file), outputs[1])
    new_embedder().embed_file(io.StringIO(text_file.read_text(encoding="utf-8")), outputs[2])
    with h5py.File(outputs[0]) as one, h5py.File(outputs[1]) as two, h5py.File(outputs[2]) as three:
        for name in one:
            assert (one[name][()] == two[name][()]).all()
            assert (one[name][()] == three[name][()]).all()


def test_a_file_begins_anew_whatever_was_read_before(
    embedder: ElmoEmbedder, text_file: Path, tmp_path: Path
) -> None:
    outputs = [tmp_path / "one.hdf5", tmp_path / "two.hdf5"]
    for output in outputs:
        embedder.embed_file(str(text_file), output)
    with h5py.File(outputs[0]) as one, h5py.File(outputs[1]) as two:
        assert numpy.array_equal(one["0"], two["0"])


def test_sentences_can_be_left_out_or_be_keys(
    embedder: ElmoEmbedder, text_file: Path, tmp_path: Path
) -> None:
    output_path = tmp_path / "layers.hdf5"
    embedder.embed_file(str(text_file), output_path, forget_sentences=True)
    with h5py.File(output_path) as file:
        assert set(file) == {"0", "1", "2", "3"}
    embedder.embed_file(io.StringIO("one\ntwo words\n"), output_path, use_sentence_keys=True)
    with h5py.File(output_path) as file:
        assert set(file) == {"one", "two words"}


def test_a_blank_line_is_an_error_and_an_older_file_stays(
    embedder: ElmoEmbedder, tmp_path: Path
) -> None:
    output_path = tmp_path / "layers.hdf5"
    output_path.write_bytes(b"older")
    opened = io.StringIO("A\n\n \nB\n")
    with pytest.raises(ConfigurationError, match="lines 2, 3"):
        embedder.embed_file(opened, output_path)
    assert opened.closed
    assert output_path.read_bytes() == b"older"


def test_what_another_export_has_left_stays(
    embedder: ElmoEmbedder, text_file: Path, tmp_path: Path
) -> None:
    part = tmp_path / "x.hdf5.parts" / f"{0:012}-{2:012}.hdf5"
    part.parent.mkdir()
    part.write_bytes(b"hours of work")
    with pytest.raises(ConfigurationError, match="2 sentences of an unfinished export of another"):
        embedder.embed_file(text_file, tmp_path / "x.hdf5")
    assert part.read_bytes() == b"hours of work"


def _fail() -> None:
    """Stands for whatever ends an export."""
    raise ConfigurationError("ended")


def test_an_unfinished_export_of_another_text_names_the_folder_to_remove(
    new_embedder: Callable[..., ElmoEmbedder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "x.hdf5"
    with monkeypatch.context() as ending, pytest.raises(ConfigurationError):
        ending.setattr(PartWriting, "join", lambda *_: _fail())
        new_embedder().embed_file(io.StringIO("one\n"), output)
    with pytest.raises(ConfigurationError, match="x.hdf5.parts: .* remove it: this folder"):
        new_embedder().embed_file(io.StringIO("two\n"), output)
    shutil.rmtree(tmp_path / "x.hdf5.parts")
    new_embedder().embed_file(io.StringIO("two\n"), output)
    with h5py.File(output) as file:
        assert json.loads(file["sentence_to_index"][0]) == {"two": "0"}


def test_the_file_may_not_replace_its_text(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("a sentence\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="the output would replace the input"):
        embedder.embed_file(path, str(path))
    assert path.read_text(encoding="utf-8") == "a sentence\n"


def test_a_byte_order_mark_is_no_part_of_the_first_word(
    new_embedder: Callable[..., ElmoEmbedder], tmp_path: Path
) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\ufeffThe river\nThe bank\n", encoding="utf-8")
    for name, file in (("path", path), ("opened", path.open(encoding="utf-8"))):
        new_embedder().embed_file(file, tmp_path / name)
        with h5py.File(tmp_path / name) as layers:
            index = json.loads(layers["sentence_to_index"][0])
        assert index == {"The river": "0", "The bank": "1"}


def test_an_opened_file_without_a_line_is_an_error(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="the input: expected at least one line"):
        embedder.embed_file(io.StringIO(""), tmp_path / "layers.hdf5")


def test_half_of_a_surrogate_pair_is_an_error_that_names_the_line(
    embedder: ElmoEmbedder, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"the input, line 2: .* character 3 .*'\\udcff'"):
        embedder.embed_file(io.StringIO("A\nb \udcff\n"), tmp_path / "layers.hdf5")


def test_a_form_that_there_is_not_is_an_error(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one of all, top, average, got 'bottom'"):
        embedder.embed_file(io.StringIO("A\n"), tmp_path / "layers.hdf5", "bottom")


def test_a_file_opened_as_bytes_is_an_error(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="opened as text"):
        embedder.embed_file(io.BytesIO(b"A\n"), tmp_path / "layers.hdf5")  # type: ignore[arg-type]


def test_a_file_opened_in_another_encoding_is_an_error(
    embedder: ElmoEmbedder, tmp_path: Path
) -> None:
    path = tmp_path / "text.txt"
    path.write_text("a m\u00f6use\n", encoding="latin-1")
    opened = path.open(encoding="utf-8")
    with pytest.raises(ConfigurationError, match="text.txt: expected text in the encoding utf-8"):
        embedder.embed_file(opened, tmp_path / "layers.hdf5")
    assert opened.closed
    embedder.embed_file(path.open(encoding="latin-1"), tmp_path / "layers.hdf5")


def test_states_are_forgotten_by_allennlps_name_for_what_holds_them(
    embedder: ElmoEmbedder,
) -> None:
    first = embedder.embed_batch(SENTENCES)
    assert not numpy.array_equal(embedder.embed_batch(SENTENCES)[0], first[0])
    embedder.elmo_bilm._elmo_lstm.reset_states()
    assert all(map(numpy.array_equal, embedder.embed_batch(SENTENCES), first))


# The name and the arguments


def test_a_user_finds_it_where_the_package_begins() -> None:
    assert elmo_scratch.ElmoEmbedder is ElmoEmbedder


def test_arguments_have_the_names_and_the_order_of_allennlps() -> None:
    names = {
        "__init__": ["options_file", "weight_file", "cuda_device"],
        "batch_to_embeddings": ["batch"],
        "embed_sentence": ["sentence"],
        "embed_batch": ["batch"],
        "embed_sentences": ["sentences", "batch_size"],
        "embed_file": [
            "input_file",
            "output_file_path",
            "output_format",
            "batch_size",
            "forget_sentences",
            "use_sentence_keys",
        ],
    }
    for method, expected in names.items():
        parameters = inspect.signature(getattr(ElmoEmbedder, method)).parameters.values()
        by_place = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        assert by_place == ["self", *expected]


def test_models_without_residual_connections_are_read_too() -> None:
    embedder = ElmoEmbedder(options_file=str(PLAIN.options), weight_file=str(PLAIN.weights))
    assert embedder.embed_sentence(["a", "word"]).shape[1] == 2


def test_a_program_of_ones_own_gets_no_information(
    bilm_archive: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "text.txt").write_text("the river .\n", encoding="utf-8")
    caplog.set_level(logging.INFO)
    caplog.clear()  # of how the archive was made
    embedder = ElmoEmbedder(weight_file=bilm_archive)
    embedder.embed_sentence(["the", "river"])
    embedder.embed_file(tmp_path / "text.txt", tmp_path / "layers.hdf5", "all")
    # The bar on stderr goes to a logger of its own, which prints nothing.
    assert [record for record in caplog.records if record.name != "tqdm"] == []
