import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, Callable, List, Sequence

import h5py
import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.commands import elmo
from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export import model_source, pipeline
from elmo_scratch.files.signals import Terminated
from elmo_scratch.interop import LayerFileWriter
from elmo_scratch.modules.token_encoders import CharCnnEncoder
from tests import FIXTURES_ROOT, PROJECT_ROOT
from tests.commands.conftest import Allennlp
from tests.forked import raise_signal_once, run_forked
from tests.tiny_elmo import OfficialFiles

TOUR = FIXTURES_ROOT / "text" / "tour.txt"
LINES = TOUR.read_text(encoding="utf-8").splitlines()
LAYERS, WIDTH = 3, 64

# What other libraries warn of when they are imported is not the command's, and other plugins have
# nothing to add.
OWN_PROCESS = [
    *(sys.executable, "-W", "ignore", "-c"),
    "import elmo_scratch, allennlp.commands as commands\n"
    "commands.import_plugins = lambda: None\n"
    "commands.main('allennlp')\n",
]
"""`allennlp` of a process of its own, the words of its command line to follow."""


@pytest.fixture
def export(allennlp: Allennlp, bilm_archive: Path, tmp_path: Path) -> Callable[..., h5py.File]:
    """Runs `allennlp elmo` over the fixtures' tour and opens the result."""

    def run(*options: str, text: Path = TOUR) -> h5py.File:
        path = tmp_path / f"{'_'.join(options).replace('/', '-')}.hdf5"
        allennlp("elmo", text, path, "--weight-file", bilm_archive, *options)
        return h5py.File(path)

    return run


def arrays_of(file: h5py.File) -> List[numpy.ndarray]:
    """The vectors of all lines, in the order of the lines."""
    return [file[str(number)][...] for number in range(len(file) - 1)]


def test_there_is_a_data_set_for_each_line(export: Callable[..., h5py.File]) -> None:
    file = export("--all")
    assert set(file) == {"sentence_to_index", *(str(number) for number in range(12))}
    for line, layers in zip(LINES, arrays_of(file), strict=True):
        assert layers.shape == (LAYERS, len(line.split()), WIDTH)
        assert layers.dtype == numpy.float32


@pytest.mark.parametrize("state", ["carry", "reset"])
def test_vectors_are_those_of_the_bilm(
    state: str, export: Callable[..., h5py.File], bilm_archive: Path
) -> None:
    embed = SentenceLayers.from_archive(bilm_archive, state=state)
    expected = [
        layers
        for start in range(0, len(LINES), 5)
        for layers in embed([line.split() for line in LINES[start : start + 5]])
    ]
    exported = arrays_of(export("--all", "--state", state, "--batch-size", "5"))
    for layers, vectors in zip(exported, expected, strict=True):
        assert numpy.array_equal(layers, vectors)


def test_official_files_are_read(allennlp: Allennlp, files: OfficialFiles, tmp_path: Path) -> None:
    model = ["--options-file", files.options, "--weight-file", files.weights]
    allennlp("elmo", TOUR, tmp_path / "x.hdf5", "--all", *model)
    embed = SentenceLayers.from_official(files.options, files.weights)
    expected = embed([line.split() for line in LINES])
    with h5py.File(tmp_path / "x.hdf5") as file:
        for layers, vectors in zip(arrays_of(file), expected, strict=True):
            assert numpy.array_equal(layers, vectors)


def test_without_options_weights_are_those_of_the_released_model(
    allennlp: Allennlp, files: OfficialFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_source, "RELEASED_OPTIONS", "nowhere/options.json")
    message = fails(
        lambda: allennlp("elmo", TOUR, "x.hdf5", "--all", "--weight-file", files.weights)
    )
    assert "nowhere/options.json" in message
    monkeypatch.setattr(model_source, "RELEASED_OPTIONS", files.options)
    monkeypatch.setattr(model_source, "RELEASED_WEIGHTS", files.weights)
    allennlp("elmo", TOUR, "x.hdf5", "--all")


def test_standard_input_is_read(
    export: Callable[..., h5py.File], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TOUR.read_bytes())))
    piped = arrays_of(export("--top", text=Path("-")))
    for one, other in zip(piped, arrays_of(export("--top", "--batch-size", "64")), strict=True):
        assert numpy.array_equal(one, other)


def test_words_of_the_vocabulary_are_encoded_ahead_and_have_the_vectors_they_have(
    allennlp: Allennlp, files: OfficialFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: List[List[Any]] = []
    encode = CharCnnEncoder.encode_distinct

    def watched(encoder: CharCnnEncoder, ids: torch.Tensor) -> torch.Tensor:
        encoded.append([tuple(word) for word in ids.tolist()])
        return encode(encoder, ids)

    monkeypatch.setattr(CharCnnEncoder, "encode_distinct", watched)
    words = tmp_path / "vocab.txt"
    words.write_text("<S>\n</S>\n<UNK>\nthe\nriver\n", encoding="utf-8")
    model = ["--options-file", files.options, "--weight-file", files.weights]
    allennlp("elmo", TOUR, tmp_path / "x.hdf5", "--all", *model)
    allennlp("elmo", TOUR, tmp_path / "y.hdf5", "--all", *model, "--vocab-path", words)
    without, (ahead, *later) = encoded[: len(encoded) // 2], encoded[len(encoded) // 2 :]
    assert len(ahead) == 5
    assert set(ahead) & set(chain(*without)) and not set(ahead) & set(chain(*later))
    with h5py.File(tmp_path / "x.hdf5") as one, h5py.File(tmp_path / "y.hdf5") as other:
        for plain, cached in zip(arrays_of(one), arrays_of(other), strict=True):
            assert numpy.array_equal(plain, cached)


def test_a_vocabulary_that_old_scripts_would_have_made_is_not_missed(
    allennlp: Allennlp, files: OfficialFiles, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = ["--options-file", files.options, "--weight-file", files.weights]
    missing = tmp_path / "vocab.txt"
    allennlp("elmo", TOUR, tmp_path / "x.hdf5", "--all", *model, "--vocab-path", missing)
    assert (tmp_path / "x.hdf5").exists() and not missing.exists()
    assert f"{missing}: there is no such file: no word is encoded ahead" in caplog.text


def test_warm_vectors_depend_on_the_text_that_warms_up(
    export: Callable[..., h5py.File], tmp_path: Path
) -> None:
    other_text = tmp_path / "warm.txt"
    other_text.write_text("\na bank of the river\n \n", encoding="utf-8")
    own = arrays_of(export("--all", "--state", "warm"))
    other = arrays_of(export("--all", "--state", "warm", "--warm-up-file", str(other_text)))
    reset = arrays_of(export("--all", "--state", "reset"))
    assert not numpy.allclose(own[0], other[0], atol=1e-4)
    assert not numpy.allclose(own[0], reset[0], atol=1e-4)
    message = fails(lambda: export("--all", "--warm-up-file", str(other_text)))
    assert "needs --state warm" in message
    other_text.write_text(" \n\n", encoding="utf-8")
    message = fails(lambda: export("--all", "--state", "warm", "--warm-up-file", str(other_text)))
    assert "warm.txt: expected sentences, but no line holds a token" in message


def test_warm_vectors_do_not_depend_on_the_order_of_the_lines(
    export: Callable[..., h5py.File], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elmo, "WARM_UP_SENTENCES", 3)
    upside_down = tmp_path / "upside_down.txt"
    upside_down.write_text("\n".join(reversed(LINES)), encoding="utf-8")
    forward = export("--all", "--state", "warm")
    backward = export("--all", "--state", "warm", "--batch-size", "5", text=upside_down)
    for one, other in zip(arrays_of(forward), reversed(arrays_of(backward)), strict=True):
        assert numpy.array_equal(one, other)


@pytest.mark.exhaustive
def test_a_cluster_does_the_same_work(
    export: Callable[..., h5py.File],
    allennlp: Allennlp,
    bilm_archive: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = export("--all", "--state", "warm")
    # Workers run in folders of their own.
    monkeypatch.chdir(TOUR.parent)
    model = os.path.relpath(bilm_archive)
    output = Path(alone.filename).with_name("together.hdf5")
    settings = ["--all", "--state", "warm", "--engine", "ray", "--workers", "2"]
    settings += ["--include-package", "elmo_scratch.models"]
    allennlp("elmo", TOUR.name, output, "--weight-file", model, *settings)
    with h5py.File(output) as together:
        assert set(together) == set(alone)
        for one, other in zip(arrays_of(alone), arrays_of(together), strict=True):
            assert numpy.array_equal(one, other)


def test_the_gpus_of_a_cluster_are_for_its_workers(
    allennlp: Allennlp, bilm_archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: List[int] = []

    def load(source: model_source.ModelSource) -> SentenceLayers:
        asked_for.append(source.cuda_device)
        raise ConfigurationError("loaded")

    monkeypatch.setattr(model_source.ModelSource, "load", load)
    words = ["elmo", TOUR, "x.hdf5", "--all", "--weight-file", bilm_archive, "--cuda-device", "0"]
    for more in ([], ["--state", "reset", "--engine", "ray"]):
        assert "loaded" in fails(partial(allennlp, *words, *more))
    assert asked_for == [0, -1]


def test_sentences_can_be_keys(export: Callable[..., h5py.File]) -> None:
    file = export("--all", "--use-sentence-keys")
    assert set(file) == set(LINES)
    for line in LINES:
        assert file[line].shape == (LAYERS, len(line.split()), WIDTH)


def test_sentences_can_be_forgotten(export: Callable[..., h5py.File]) -> None:
    assert "sentence_to_index" not in export("--all", "--forget-sentences")


def test_a_sentence_that_comes_twice_is_no_key(
    export: Callable[..., h5py.File], tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one\ntwo\none\n", encoding="utf-8")
    message = fails(lambda: export("--all", "--use-sentence-keys", text=text))
    assert "text.txt, lines 1, 3: expected no sentence twice" in message


@pytest.mark.parametrize("sentence, what", [("and / or", "a slash"), ("a \0 b", "a NUL")])
def test_what_no_name_may_hold_is_no_key(
    sentence: str, what: str, export: Callable[..., h5py.File], tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text(f"one\n{sentence}\n", encoding="utf-8")
    message = fails(lambda: export("--all", "--use-sentence-keys", text=text))
    assert "text.txt, line 2: " in message and what in message
    assert export("--all", text=text)["1"].shape == (LAYERS, 3, WIDTH)


@pytest.mark.exhaustive
def test_a_sentence_of_fifty_thousand_tokens_goes_through_in_pieces(
    export: Callable[..., h5py.File], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [word for line in LINES for word in line.split()]
    text = tmp_path / "text.txt"
    sentences = [LINES[0], " ".join(words[place % len(words)] for place in range(50_000))]
    text.write_text("\n".join(sentences), encoding="utf-8")
    pieces = export("--all", text=text)
    defaults: Any = SentenceLayers.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "positions_at_once", 2**20)
    whole = export("--all", "--forget-sentences", text=text)
    assert pieces["1"].shape == (LAYERS, 50_000, WIDTH)
    for key in ("0", "1"):
        assert numpy.abs(pieces[key][...] - whole[key][...]).max() < 1e-6


@pytest.mark.parametrize("cut", [[], ["--tokenize", "en"]], ids=["by_spaces", "by_rules"])
def test_shards_are_joined(
    cut: List[str],
    allennlp: Allennlp,
    export: Callable[..., h5py.File],
    bilm_archive: Path,
    tmp_path: Path,
) -> None:
    words = ["--top", "--state", "reset", *cut, "--weight-file", bilm_archive]
    for number in (1, 2, 3):
        allennlp("elmo", TOUR, "joined.hdf5", *words, "--shard", f"{number}/3")
    allennlp("elmo-join", "joined.hdf5", "--remove-shards")
    with h5py.File(tmp_path / "joined.hdf5") as joined:
        whole = arrays_of(export("--top", "--state", "reset", *cut))
        for one, other in zip(arrays_of(joined), whole, strict=True):
            assert numpy.array_equal(one, other)
    assert not list(tmp_path.glob("joined.hdf5.*"))


def test_an_error_is_one_for_python_too(export: Callable[..., h5py.File]) -> None:
    with pytest.raises(ConfigurationError, match="blank_line.txt, line 2"):
        export("--all", text=FIXTURES_ROOT / "bad" / "blank_line.txt")


def test_top_is_the_last_of_all_layers(export: Callable[..., h5py.File]) -> None:
    for layers, top in zip(arrays_of(export("--all")), arrays_of(export("--top")), strict=True):
        assert numpy.array_equal(top, layers[2])


def test_average_is_the_mean_of_all_layers(export: Callable[..., h5py.File]) -> None:
    for layers, average in zip(
        arrays_of(export("--all")), arrays_of(export("--average")), strict=True
    ):
        assert average.dtype == numpy.float32
        assert numpy.allclose(average, (layers[0] + layers[1] + layers[2]) / 3, atol=1e-6)


def test_the_index_names_the_line_of_each_sentence(export: Callable[..., h5py.File]) -> None:
    index = json.loads(export("--all")["sentence_to_index"][0])
    assert index == {line: str(number) for number, line in enumerate(LINES)}


@pytest.mark.parametrize(
    "how", [("--batch-size", "1"), ("--batch-size", "5"), ("--max-tokens", "9")]
)
def test_batches_do_not_show_where_no_state_is_carried(
    how: Sequence[str], export: Callable[..., h5py.File]
) -> None:
    together = arrays_of(export("--all", "--state", "reset"))
    apart = arrays_of(export("--all", "--state", "reset", *how))
    for one, other in zip(together, apart, strict=True):
        assert numpy.array_equal(one, other)


def test_lines_are_stripped_and_split_at_white_space(
    export: Callable[..., h5py.File], tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\ufeff  the river\tbank \r\nthe river bank\na crêpe", encoding="utf-8")
    file = export("--top", "--state", "reset", text=text)
    first, second, third = arrays_of(file)
    assert numpy.allclose(first, second, atol=1e-6)
    assert third.shape == (2, WIDTH)
    assert json.loads(file["sentence_to_index"][0]) == {
        "the river\tbank": "0",
        "the river bank": "1",
        "a crêpe": "2",
    }


def test_another_file_is_replaced_only_if_that_is_wanted(
    export: Callable[..., h5py.File], tmp_path: Path
) -> None:
    (tmp_path / "--all.hdf5").write_text("old")
    assert "it is there already" in fails(lambda: export("--all"))
    assert (tmp_path / "--all.hdf5").read_text() == "old"
    (tmp_path / "--all_--overwrite.hdf5").write_text("old")
    assert len(export("--all", "--overwrite")) == 13


def test_the_help_text_tells_what_there_is(
    allennlp: Allennlp, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit) as stop:
        allennlp("elmo", "--help")
    assert stop.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "usage: allennlp elmo" in text
    assert 'Its key is the number of the sentence, from "0"' in text
    for option in ("--all", "--top", "--average", "--weight-file", "--batch-size", "--cuda-device"):
        assert option in text


def test_all_commands_together_list_it(allennlp: Allennlp, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        allennlp("--help")
    assert "Write the vectors of each layer" in capsys.readouterr().out


def test_a_pipe_is_read_once(export: Callable[..., h5py.File], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    feeder = threading.Thread(target=pipe.write_bytes, args=(TOUR.read_bytes(),), daemon=True)
    feeder.start()
    piped = arrays_of(export("--top", text=pipe))
    feeder.join()
    for one, other in zip(piped, arrays_of(export("--top", "--batch-size", "64")), strict=True):
        assert numpy.array_equal(one, other)


def test_workers_need_an_engine_of_many(export: Callable[..., h5py.File]) -> None:
    assert "--workers needs --engine ray" in fails(lambda: export("--all", "--workers", "2"))


@pytest.mark.parametrize(
    "options, complaint",
    [
        ([], "one of the arguments --all --top --average is required"),
        (["--all", "--top"], "not allowed with argument"),
        (["--all", "--state", "cold"], "invalid choice: 'cold'"),
    ],
)
def test_what_is_asked_for_must_be_clear(
    options: List[str],
    complaint: str,
    allennlp: Allennlp,
    bilm_archive: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    with pytest.raises(SystemExit) as stop:
        allennlp("elmo", TOUR, "layers.hdf5", "--weight-file", bilm_archive, *options)
    assert stop.value.code == 2
    assert complaint in capsys.readouterr().err


def fails(run: Callable[[], Any]) -> str:
    """The message that the command prints on its way out with exit status 1."""
    with pytest.raises(SystemExit) as stop:
        run()
    assert isinstance(stop.value.code, str)  # which Python prints on stderr before status 1
    return stop.value.code


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("bad/blank_line.txt", "blank_line.txt, line 2: expected a sentence"),
        ("bad/not_utf8.txt", "not_utf8.txt, line 2: expected UTF-8"),
        ("bad/empty.txt", "empty.txt: expected at least one line"),
        ("elmo/residual/weights.hdf5", "weights.hdf5, line 1: expected UTF-8"),
        ("nowhere.txt", "nowhere.txt: there is no such file"),
        ("bad", "bad: cannot be read"),
    ],
)
def test_bad_input_is_one_line_and_no_output(
    text: str, complaint: str, export: Callable[..., h5py.File], tmp_path: Path
) -> None:
    message = fails(lambda: export("--all", text=FIXTURES_ROOT / text))
    assert message.startswith("allennlp elmo: error: ")
    assert complaint in message
    assert "\n" not in message
    assert os.listdir(tmp_path) == []


def test_an_input_that_the_system_refuses_is_named(
    export: Callable[..., h5py.File], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = 300 * "x"
    message = fails(lambda: export("--all", text=Path(name)))
    assert message == f"allennlp elmo: error: {name}: cannot be read (File name too long)"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TOUR.read_bytes())))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    message = fails(lambda: export("--all", text=Path("-")))
    assert "error: standard input: it can't be copied into a temporary folder" in message
    assert "TMPDIR" in message and "kept" not in message
    assert os.listdir(tmp_path) == []


def test_the_input_is_checked_before_an_older_output_is_touched(
    export: Callable[..., h5py.File], tmp_path: Path
) -> None:
    (tmp_path / "--all.hdf5").write_text("old")
    fails(lambda: export("--all", text=FIXTURES_ROOT / "bad" / "blank_line.txt"))
    assert (tmp_path / "--all.hdf5").read_text() == "old"


@pytest.mark.parametrize("linked", [False, True])
def test_the_output_may_not_replace_the_input(
    linked: bool, allennlp: Allennlp, bilm_archive: Path, tmp_path: Path
) -> None:
    text = Path(shutil.copy(TOUR, tmp_path / "text.txt"))
    output = tmp_path / "link.txt" if linked else text
    if linked:
        output.symlink_to(text)
    message = fails(lambda: allennlp("elmo", text, output, "--all", "--weight-file", bilm_archive))
    assert "the output would replace the input" in message
    assert text.read_text() == TOUR.read_text()


@pytest.mark.parametrize(
    "output, complaint",
    [("nowhere/layers.hdf5", "nowhere doesn't exist"), (".", "but it is a folder")],
)
def test_an_output_that_cannot_be_written_is_an_error(
    output: str, complaint: str, allennlp: Allennlp, bilm_archive: Path, tmp_path: Path
) -> None:
    message = fails(lambda: allennlp("elmo", TOUR, output, "--all", "--weight-file", bilm_archive))
    assert complaint in message
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "archive, complaint",
    [
        ("none.tar.gz", "none.tar.gz: there is no such archive"),
        ("not_an_archive.tar.gz", "not_an_archive.tar.gz: expected an archive"),
        (".", "it holds no config.json, so it is not the output of a training"),
    ],
)
def test_an_archive_that_is_none_is_an_error(
    archive: str, complaint: str, allennlp: Allennlp, tmp_path: Path
) -> None:
    path = FIXTURES_ROOT / "bad" / archive
    message = fails(lambda: allennlp("elmo", TOUR, "layers.hdf5", "--all", "--weight-file", path))
    assert complaint in message
    assert "\n" not in message
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "option, value, complaint",
    [
        ("--batch-size", "0", "expected --batch-size of 1 or more, got 0"),
        ("--cuda-device", "97", "expected a GPU with the number 97"),
        ("--shard", "3/2", "expected --shard I/N"),
        ("--shard", "1/2", "--shard needs --state reset or warm"),
        ("--max-tokens", "100", "--max-tokens needs --state reset or warm"),
    ],
)
def test_a_number_out_of_range_is_an_error(
    option: str, value: str, complaint: str, export: Callable[..., h5py.File], tmp_path: Path
) -> None:
    assert complaint in fails(lambda: export("--all", option, value))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "output, settings, complaint",
    [
        ("x.hdf5", ["--batch-size", "0"], "expected --batch-size of 1 or more"),
        ("x.hdf5", ["--shard", "1/2"], "--shard needs --state reset or warm"),
        ("nowhere/x.hdf5", [], "nowhere doesn't exist"),
    ],
)
def test_what_cannot_work_is_told_before_the_model_is_fetched(
    output: str,
    settings: List[str],
    complaint: str,
    allennlp: Allennlp,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_source.ModelSource, "load", lambda _: pytest.fail("fetched"))
    assert complaint in fails(lambda: allennlp("elmo", TOUR, output, "--all", *settings))


@pytest.mark.parametrize(
    "number, status, engine",
    [
        (signal.SIGTERM, 143, []),
        (signal.SIGINT, 130, []),
        (signal.SIGTERM, 143, ["--state", "reset", "--engine", "ray", "--workers", "1"]),
    ],
)
@pytest.mark.exhaustive
def test_a_real_export_ends_by_a_signal_and_goes_on(
    number: signal.Signals,
    status: int,
    engine: List[str],
    allennlp: Allennlp,
    files: OfficialFiles,
    tmp_path: Path,
) -> None:
    (tmp_path / "text.txt").write_text("\n".join(LINES * 150), encoding="utf-8")
    words = ["elmo", "text.txt", "x.hdf5", "--all", "--batch-size", "2", *engine]
    words += ["--options-file", files.options, "--weight-file", files.weights]
    process = subprocess.Popen(
        [*OWN_PROCESS, *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        # What runs in the background of a shell has SIGINT ignored, and so have its children.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    # The facts about the parts come before them.
    while not list(tmp_path.glob("x.hdf5.parts/.unfinished-*.part")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in errors) == (status, False), errors
    is_kept = bool(list(tmp_path.glob("x.hdf5.parts/0*.hdf5")))
    assert is_kept or number != signal.SIGINT
    told = "; go on with --resume" if is_kept else " before there was anything to keep"
    assert errors.splitlines()[-1] == f"allennlp elmo: interrupted{told}"
    allennlp(*words, "--resume")
    assert sorted(os.listdir(tmp_path)) == ["text.txt", "x.hdf5"]
    with h5py.File(tmp_path / "x.hdf5") as file:
        assert len(file) == 150 * len(LINES) + 1


def test_an_export_ends_by_a_signal_and_goes_on(
    allennlp: Allennlp,
    files: OfficialFiles,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    (tmp_path / "text.txt").write_text("\n".join(LINES * 20), encoding="utf-8")
    words = ["elmo", "text.txt", "x.hdf5", "--all", "--batch-size", "2"]
    words += ["--options-file", files.options, "--weight-file", files.weights]

    def export_until_a_part_is_written() -> None:
        pipeline.SENTENCES_A_PART = 16
        parts = tmp_path / "x.hdf5.parts"
        raise_signal_once(lambda: any(parts.glob("0*.hdf5")), signal.SIGTERM)
        allennlp(*words)

    ended = run_forked(export_until_a_part_is_written, tmp_path_factory.mktemp("log") / "errors")
    assert ended.status == 143
    assert ended.errors.splitlines()[-1] == "allennlp elmo: interrupted; go on with --resume"
    assert sorted(os.listdir(tmp_path)) == ["text.txt", "x.hdf5.parts"]
    allennlp(*words, "--resume")
    assert sorted(os.listdir(tmp_path)) == ["text.txt", "x.hdf5"]
    with h5py.File(tmp_path / "x.hdf5") as file:
        assert len(file) == 20 * len(LINES) + 1


def test_a_full_disk_is_an_error(
    export: Callable[..., h5py.File], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LayerFileWriter, "write", write)
    message = fails(lambda: export("--all"))
    assert message.endswith("--all.hdf5: [Errno 28] No space left on device")
    assert os.listdir(tmp_path) == []


def test_an_export_goes_on_when_there_is_room_again(
    allennlp: Allennlp,
    files: OfficialFiles,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    long_line = " ".join(40 * LINES)
    (tmp_path / "text.txt").write_text("\n".join([*10 * LINES, long_line, *LINES]))
    words = ["text.txt", "x.hdf5", "--all", "--batch-size", "8"]
    words += ["--options-file", files.options, "--weight-file", files.weights]

    def export_where_files_cannot_grow() -> None:
        # The system refuses to let a file grow, which a full disk does too.
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**17, resource.RLIM_INFINITY))
        pipeline.SENTENCES_A_PART = 16
        allennlp("elmo", *words)

    ended = run_forked(export_where_files_cannot_grow, tmp_path_factory.mktemp("log") / "errors")
    assert ended.status == 1
    last = ended.errors.splitlines()[-1]
    assert last.startswith("allennlp elmo: error: x.hdf5: [Errno 27] File too large")
    assert last.endswith("What is done is kept: go on with --resume")
    assert sorted(os.listdir(tmp_path)) == ["text.txt", "x.hdf5.parts"]
    assert len(list((tmp_path / "x.hdf5.parts").glob("0*.hdf5"))) == 7
    allennlp("elmo", *words, "--resume")
    words[1] = "whole.hdf5"
    allennlp("elmo", *words)
    with h5py.File(tmp_path / "x.hdf5") as one, h5py.File(tmp_path / "whole.hdf5") as other:
        assert dict(one.attrs) == dict(other.attrs) and list(one) == list(other)
        for resumed, whole in zip(arrays_of(one), arrays_of(other), strict=True):
            assert numpy.array_equal(resumed, whole)
    assert sorted(os.listdir(tmp_path)) == ["text.txt", "whole.hdf5", "x.hdf5"]


@pytest.mark.parametrize(
    "interruption, status", [(KeyboardInterrupt(), 130), (Terminated(15), 143)]
)
@pytest.mark.parametrize("given", [[], ["--overwrite"]])
def test_an_interruption_is_one_line(
    given: List[str],
    interruption: KeyboardInterrupt,
    status: int,
    export: Callable[..., h5py.File],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    def interrupt(*_: Any) -> None:
        raise interruption

    monkeypatch.setattr(SentenceLayers, "read", interrupt)
    with pytest.raises(SystemExit) as stop:
        export("--all", *given)
    assert stop.value.code == status
    told = "allennlp elmo: interrupted before there was anything to keep\n"
    assert capsys.readouterr().err.endswith(told)


def test_ctrl_c_keeps_the_sentences_that_are_done(
    allennlp: Allennlp,
    files: OfficialFiles,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Long before a part is full."""
    (tmp_path / "text.txt").write_text("\n".join(LINES * 20), encoding="utf-8")
    words = ["elmo", "text.txt", "x.hdf5", "--all", "--batch-size", "2"]
    words += ["--options-file", files.options, "--weight-file", files.weights]

    def export_until_sentences_are_written() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        read, batches = SentenceLayers.read, count(1)

        def read_and_interrupt(self: SentenceLayers, *arguments: Any) -> Any:
            if next(batches) == 10:
                signal.raise_signal(signal.SIGINT)
            return read(self, *arguments)

        # In a process of its own.
        SentenceLayers.read = read_and_interrupt  # type: ignore[method-assign, assignment]
        allennlp(*words)

    ended = run_forked(
        export_until_sentences_are_written, tmp_path_factory.mktemp("log") / "errors"
    )
    assert ended.status == 130
    assert "finishing the sentences at hand" in ended.errors
    assert ended.errors.splitlines()[-1] == "allennlp elmo: interrupted; go on with --resume"
    (part,) = (tmp_path / "x.hdf5.parts").glob("0*.hdf5")
    assert part.name == "000000000000-000000000020.hdf5"
    allennlp(*words, "--resume")
    words[2] = "whole.hdf5"
    allennlp(*words)
    with h5py.File(tmp_path / "x.hdf5") as one, h5py.File(tmp_path / "whole.hdf5") as other:
        assert list(one) == list(other)
        for resumed, whole in zip(arrays_of(one), arrays_of(other), strict=True):
            assert numpy.array_equal(resumed, whole)


@pytest.mark.exhaustive
def test_in_a_process_of_its_own_an_error_is_exit_status_1_and_one_line(tmp_path: Path) -> None:
    text = FIXTURES_ROOT / "bad" / "blank_line.txt"
    words = ["elmo", str(text), "layers.hdf5", "--all", "--weight-file", "none.tar.gz"]
    path = os.pathsep.join([str(PROJECT_ROOT), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [*OWN_PROCESS, *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"allennlp elmo: error: {text}, line 2: expected a sentence")
    assert ended.stdout == ""
    assert os.listdir(tmp_path) == []


def test_a_text_to_warm_up_with_is_cut_too(
    export: Callable[..., h5py.File], bilm_archive: Path, tmp_path: Path
) -> None:
    raw, cut = tmp_path / "raw.txt", tmp_path / "cut.txt"
    raw.write_text("I don't know.\n")
    cut.write_text("I do n't know .\n")
    kept = []
    for text, options in ((raw, ["--tokenize", "en"]), (cut, [])):
        warm = ["--state", "warm", "--warm-up-file", str(text)]
        with export("--top", *warm, *options, text=text) as file:
            kept.append(file["0"][...])
    numpy.testing.assert_array_equal(*kept)


def test_what_is_cut_already_is_not_cut_again(
    export: Callable[..., h5py.File], tmp_path: Path
) -> None:
    (tmp_path / "cut.jsonl").write_text('{"tokens": ["a"]}\n')
    with pytest.raises(ConfigurationError, match="cut.jsonl: .* Leave --tokenize out"):
        export("--all", "--tokenize", "en", text=tmp_path / "cut.jsonl")


def test_a_text_is_cut_as_in_the_training(
    export: Callable[..., h5py.File], bilm_archive: Path, tmp_path: Path
) -> None:
    text = tmp_path / "raw.txt"
    text.write_text("I don't know.\n")
    expected = SentenceLayers.from_archive(bilm_archive)([["I", "do", "n't", "know", "."]])
    with export("--all", "--tokenize", "en", text=text) as file:
        numpy.testing.assert_allclose(file["0"][...], expected[0], atol=1e-6)
        assert json.loads(file["sentence_to_index"][0]) == {"I do n't know .": "0"}


def test_treebanks_and_json_lines_have_the_vectors_of_their_tokens(
    export: Callable[..., h5py.File], bilm_archive: Path, tmp_path: Path
) -> None:
    sentences = [["New York", "sleeps", "."], ["do", "n't"]]
    treebank, lines = tmp_path / "words.conllu", tmp_path / "words.txt"
    rows = [
        "\n".join(f"{n}\t{word}" + "\t_" * 8 for n, word in enumerate(words, start=1))
        for words in sentences
    ]
    treebank.write_text("# a comment\n" + "\n\n".join(rows) + "\n\n")
    lines.write_text("".join(json.dumps({"tokens": words}) + "\n" for words in sentences))
    expected = SentenceLayers.from_archive(bilm_archive, state="reset")(sentences)
    for text, options in ((treebank, []), (lines, ["--input-format", "jsonl"])):
        with export("--all", "--state", "reset", *options, text=text) as file:
            assert set(file) == {"0", "1", "sentence_to_index"}
            for number, layers in enumerate(expected):
                numpy.testing.assert_allclose(file[str(number)][...], layers, atol=1e-6)
            kept = json.loads(file["sentence_to_index"][0])
        assert kept == {"New▁York sleeps .": "0", "do n't": "1"}
        next(tmp_path.glob("*.hdf5")).unlink()
