"""The probes of examples/probe_layers, on words whose answers are known."""

import json
import subprocess
import sys
from pathlib import Path
from typing import List

import numpy
import pytest

from elmo_scratch import LayerFile
from elmo_scratch.interop.static_vectors import write_static_vectors
from tests import PROJECT_ROOT
from tests.examples.run_program import Ended, run_program

PROBE = PROJECT_ROOT / "examples" / "probe_layers"

NOUNS, VERBS = ["river", "bank", "game", "striker"], ["rose", "fell", "won", "lost"]


def conllu(sentences: List[List[str]]) -> str:
    """Sentences in which every word has the tag of its list; and one word that is two."""
    blocks = []
    for words in sentences:
        rows = [
            f"{number}\t{word}\t_\t{'NOUN' if word in NOUNS else 'VERB'}" + "\t_" * 6
            for number, word in enumerate(words, start=1)
        ]
        blocks.append("\n".join(["1-2\twhole" + "\t_" * 8, *rows]) + "\n")
    return "\n".join(blocks) + "\n"


def wic(folder: Path, name: str, count: int) -> str:
    """Pairs in which the same sense stands in the same sentence."""
    data, gold = [], []
    for number in range(count):
        noun, verb = NOUNS[number % 4], VERBS[number % 3]
        is_same = number % 2 == 0
        other = f"the {noun} {verb}" if is_same else f"{verb} quickly , it said , a {noun}"
        place = other.split().index(noun)
        data.append(f"{noun}\tN\t1-{place}\tthe {noun} {verb}\t{other}\n")
        gold.append("T\n" if is_same else "F\n")
    (folder / f"{name}.data.txt").write_text("".join(data), encoding="utf-8")
    (folder / f"{name}.gold.txt").write_text("".join(gold), encoding="utf-8")
    return str(folder / name)


@pytest.fixture
def arguments(bilm_archive: Path, tmp_path: Path) -> List[str]:
    sentences = [[noun, verb] for noun in NOUNS for verb in VERBS]
    (tmp_path / "train.conllu").write_text(conllu(sentences * 3), encoding="utf-8")
    (tmp_path / "dev.conllu").write_text(conllu(sentences), encoding="utf-8")
    vectors = [[1.0, 0.1 * n] for n in range(4)] + [[-1.0, 0.1 * n] for n in range(4)]
    write_static_vectors([*NOUNS, *VERBS], numpy.array(vectors, "float32"), tmp_path / "static.txt")
    pos = [str(tmp_path / "train.conllu"), str(tmp_path / "dev.conllu")]
    parts = [wic(tmp_path, "train", 24), wic(tmp_path, "dev", 12)]
    return [
        *["--weight-file", str(bilm_archive), "--vectors", str(tmp_path / "static.txt")],
        *["--lowercase", "--pos", *pos, "--wic", *parts, "--json", str(tmp_path / "table.json")],
    ]


def probe(*arguments: str) -> Ended:
    """Runs the example in this process."""
    return run_program(PROBE, *arguments)


def test_layers_and_static_vectors_stand_in_one_table(arguments: List[str], tmp_path: Path) -> None:
    done = probe(*arguments)
    assert done.status == 0, done.errors[-2000:]
    table = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    static = str(tmp_path / "static.txt")
    assert list(table) == [static, "biLM, layer 0", "biLM, layer 1", "biLM, layer 2"]
    lines = done.output.splitlines()
    assert lines[0] == "| | part of speech | known | word sense | both known |"
    assert len(lines) == 2 + len(table) + 2
    assert "32 of 32 tokens and 12 of 12 pairs" in lines[-1]
    assert all(scores["part of speech"] == 1.0 for scores in table.values())
    # What doesn't see the sentence can't tell senses, an LSTM here can.
    assert table[static]["word sense"] == table["biLM, layer 0"]["word sense"] == 0.5
    assert table["biLM, layer 2"]["word sense"] == 1.0


def test_words_that_static_vectors_lack_are_left_out_of_a_column(
    arguments: List[str], tmp_path: Path
) -> None:
    vectors = [[1.0, 0.1 * n] for n in range(3)] + [[-1.0, 0.1 * n] for n in range(4)]
    lacking = tmp_path / "lacking.txt"
    nouns = [noun for noun in NOUNS if noun != "bank"]
    write_static_vectors([*nouns, *VERBS], numpy.array(vectors, "float32"), lacking)
    done = probe(*arguments, "--vectors", str(lacking))
    assert done.status == 0, done.errors[-2000:]
    # A bank stands in a quarter of the sentences, as one of two words, and of the pairs.
    assert "28 of 32 tokens and 9 of 12 pairs" in done.output.splitlines()[-1]
    table = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert all(scores["known"] == 1.0 for scores in table.values())
    assert table["biLM, layer 2"]["both known"] == 1.0


def test_what_cannot_be_told_is_no_number(arguments: List[str], tmp_path: Path) -> None:
    strange = tmp_path / "strange.txt"
    write_static_vectors(["Fluss"], numpy.ones((1, 2), "float32"), strange)
    done = probe(*arguments, "--vectors", str(strange))
    assert done.status == 0, done.errors[-2000:]
    table = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert {scores["known"] for scores in table.values()} == {None}


def test_a_place_that_cannot_be_written_to_is_told_first(
    arguments: List[str], tmp_path: Path
) -> None:
    done = probe(*arguments, "--json", str(tmp_path / "none" / "table.json"))
    assert done.status == 1
    assert done.errors.splitlines()[-1].endswith(f"the folder {tmp_path / 'none'} doesn't exist")


def test_a_sentence_may_hold_what_unicode_calls_the_end_of_a_line(
    arguments: List[str], tmp_path: Path
) -> None:
    data = tmp_path / "dev.data.txt"
    text = data.read_text(encoding="utf-8").replace("\n", " \u2028 x\u0085 \x1c\n")
    data.write_text(text, encoding="utf-8")
    done = probe(*arguments)
    assert done.status == 0, done.errors[-2000:]


def test_the_layers_come_from_a_file_that_is_written_once(
    arguments: List[str], tmp_path: Path
) -> None:
    # A word of the treebank may hold a space.
    path = tmp_path / "dev.conllu"
    text = path.read_text(encoding="utf-8").replace("bank", "river\u00a0bank")
    path.write_text(text, encoding="utf-8")
    layers = tmp_path / "layers.hdf5"
    arguments += ["--layers", str(layers)]
    tables, written = [], []
    for _ in range(2):
        done = probe(*arguments)
        assert done.status == 0, done.errors[-2000:]
        tables.append(done.output)
        written.append(layers.stat().st_mtime_ns)
    assert tables[0] == tables[1]
    assert written[0] == written[1]
    with LayerFile(layers) as file:
        assert file["river_bank rose"].shape[:2] == (3, 2)
        assert file.facts.state == "reset"
    (tmp_path / "dev.gold.txt").write_text("T\n" * 12, encoding="utf-8")
    data = tmp_path / "dev.data.txt"
    data.write_text(data.read_text(encoding="utf-8").replace("the", "a"), encoding="utf-8")
    done = probe(*arguments)
    assert done.status == 1
    assert "Traceback" not in done.errors
    last = done.errors.splitlines()[-1]
    assert last.startswith(f"probe_layers: error: {layers}"), last
    assert probe(*arguments, "--overwrite").status == 0
    with LayerFile(layers) as file:
        assert "a river rose" in file


@pytest.mark.parametrize("missing", ["static.txt", "dev.conllu", "train.gold.txt"])
def test_a_missing_file_is_one_line(missing: str, arguments: List[str], tmp_path: Path) -> None:
    (tmp_path / missing).unlink()
    done = probe(*arguments)
    assert done.status == 1
    assert "Traceback" not in done.errors
    last = done.errors.splitlines()[-1]
    assert last.startswith("probe_layers: error: ") and missing in last


@pytest.mark.parametrize(
    "file, content, message",
    [
        ("train.data.txt", b"bank\tN\t1-1\tthe bank\n" * 24, "line 1: expected a word"),
        ("train.data.txt", b"bank\tN\t1-2\tthe bank\ta bank\n" * 24, "no word 2 among 2"),
        ("train.gold.txt", b"T\nF\n", "an answer for each of the 24 lines"),
        ("dev.gold.txt", b"yes\n" * 12, "the answer T or F"),
        ("dev.gold.txt", b"\xff\n" * 12, "expected UTF-8"),
        ("train.conllu", b"1 the DET\n\n", "expected CoNLL-U"),
        ("dev.conllu", b"\n", "expected words with parts of speech"),
    ],
)
def test_bad_input_is_one_line(
    file: str, content: bytes, message: str, arguments: List[str], tmp_path: Path
) -> None:
    (tmp_path / file).write_bytes(content)
    done = probe(*arguments)
    assert done.status == 1
    assert "Traceback" not in done.errors
    last = done.errors.splitlines()[-1]
    assert last.startswith("probe_layers: error: ") and file in last and message in last


@pytest.mark.exhaustive
def test_in_a_process_of_its_own_it_does_the_same(arguments: List[str], tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    assert probe(*arguments).status == 0
    expected = table.read_text(encoding="utf-8")
    table.unlink()
    subprocess.run([sys.executable, str(PROBE), *arguments], check=True, capture_output=True)
    assert table.read_text(encoding="utf-8") == expected
    (tmp_path / "static.txt").unlink()
    command = [sys.executable, str(PROBE), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("probe_layers: error: ")


def test_nothing_to_probe_is_an_error(bilm_archive: Path) -> None:
    done = probe("--weight-file", str(bilm_archive))
    assert done.status == 2
    assert "expected --pos, --wic, or both" in done.errors
