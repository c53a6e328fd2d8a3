"""How the package's own commands close: what was reached, where it lies, what to type next."""

import json
import re
import shlex
from pathlib import Path
from typing import Callable, List

import pytest

from tests import FIXTURES_ROOT
from tests.commands.conftest import Allennlp
from tests.tiny_archives import archive_of

TOUR = FIXTURES_ROOT / "text" / "tour.txt"
TOKENS = len(TOUR.read_text("utf-8").split())
SPEED = r"in \d+\.\d s"


@pytest.fixture
def closing(allennlp: Allennlp, capsys: pytest.CaptureFixture) -> Callable[..., List[str]]:
    """Runs a command and returns what it prints on stdout."""

    def run(*words: object) -> List[str]:
        capsys.readouterr()
        allennlp(*map(str, words))
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == ""
        return lines[1:]

    return run


def step_of(line: str) -> List[str]:
    """The words of the command that the last line names."""
    assert line.startswith("next         ")
    return shlex.split(line[13:], comments=True)


def test_an_export_tells_its_vectors_and_the_page_to_look_at(
    closing: Callable[..., List[str]], bilm_archive: Path, tmp_path: Path
) -> None:
    words = ["elmo", TOUR, "my layers.hdf5", "--all", "--weight-file", bilm_archive]
    read, written, empty, place, step = closing(*words)
    assert re.fullmatch(rf"12 sentences, {TOKENS} tokens {SPEED}: [\d,]+ tokens/s", read)
    size = (tmp_path / "my layers.hdf5").stat().st_size / 1000
    assert written == f"3 layers of 64 numbers for each token: float32, {size:.1f} KB"
    assert (empty, place) == ("", "layers       my layers.hdf5")
    # What it says can be typed.
    closing(*step_of(step)[1:])
    assert (tmp_path / "my layers.html").is_file()
    # Of an export that is whole already nothing is timed.
    assert closing(*words, "--resume")[0] == f"12 sentences, {TOKENS} tokens"


def test_shards_name_the_join_and_the_join_tells_of_the_whole(
    closing: Callable[..., List[str]], bilm_archive: Path
) -> None:
    words = ["elmo", TOUR, "x.hdf5", "--average", "--pool", "mean", "--state", "reset"]
    words += ["--dtype", "float16", "--weight-file", str(bilm_archive)]
    for number in (1, 2):
        read, *_, step = closing(*words, "--shard", f"{number}/2")
    assert re.fullmatch(f"6 sentences {SPEED}", read)
    assert step_of(step) == ["allennlp", "elmo-join", "x.hdf5"]
    assert step.endswith("# when all 2 are there")
    read, written, _, place, step = closing(*step_of(step)[1:])
    assert (read, place) == ("12 sentences", "layers       x.hdf5")
    assert written.startswith(
        "the mean of 3 layers of 64 numbers for each sentence, the mean over its tokens: float16, "
    )
    # Vectors of sentences have no neighbouring words.
    assert step_of(step)[:2] == ["python", "-c"]
    exec(step_of(step)[2])


def test_official_files_are_named_to_what_reads_them(
    closing: Callable[..., List[str]], bilm_archive: Path, tmp_path: Path
) -> None:
    reached, _, *places, step = closing("elmo-export", archive_of(tmp_path), "official")
    options = json.loads((tmp_path / "official" / "options.json").read_text("utf-8"))
    width, layers = 2 * options["lstm"]["projection_dim"], 1 + options["lstm"]["n_layers"]
    assert re.fullmatch(
        rf"{layers} layers of {width} numbers over characters, [\d,]+ weights", reached
    )
    assert places == [
        "options      official/options.json",
        "weights      official/weights.hdf5",
        "vocabulary   official/vocab.txt",
    ]
    closing(*[str(TOUR) if word == "TEXT" else word for word in step_of(step)[1:]])
    # A biLM of words can't be read by its official files alone.
    *_, step = closing("elmo-export", bilm_archive, "words")
    assert step_of(step)[-2:] == ["--weight-file", str(bilm_archive)]


def test_vectors_of_words_show_the_neighbours_of_one(
    closing: Callable[..., List[str]], capsys: pytest.CaptureFixture
) -> None:
    pytest.importorskip("gensim")
    words = ["elmo-vectors", TOUR, "my vectors.txt", "--method", "word2vec", "--min-count", "1"]
    reached, _, place, step = closing(*words, "--dim", "7")
    assert re.fullmatch(rf"[\d,]+ words of 7 numbers, from {TOKENS} tokens {SPEED}", reached)
    assert place == "vectors      my vectors.txt"
    exec(step_of(step)[2])
    assert len(eval(capsys.readouterr().out)) == 10
