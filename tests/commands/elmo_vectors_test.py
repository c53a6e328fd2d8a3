import logging
import os
from dataclasses import astuple
from pathlib import Path
from typing import Any, Callable

import numpy
import pytest
from gensim.models import KeyedVectors

from elmo_scratch import static_vectors
from elmo_scratch.commands import elmo_vectors
from tests import FIXTURES_ROOT
from tests.commands.conftest import Allennlp

TEXT = FIXTURES_ROOT / "text"
SENSES = TEXT / "senses.txt"
NEWS = FIXTURES_ROOT / "news" / "train.csv"
LOST_TOKENIZER = """{
  "type": "ag_news", "tokenizer": {"type": "pretrained_transformer", "model_name": "/no/model"}
}"""
BOTH = pytest.mark.parametrize("method", ["word2vec", "svd"])


@pytest.fixture(autouse=True)
def own_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Prepared corpora of the test's own, and gensim as talkative as before."""
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    level = logging.getLogger("gensim").level
    yield
    logging.getLogger("gensim").setLevel(level)


@pytest.fixture
def vectors_of(allennlp: Allennlp) -> Callable[..., KeyedVectors]:
    """Runs the command for small vectors and reads what it wrote."""

    def run(corpus: Any, *options: Any, name: str = "out.txt") -> KeyedVectors:
        allennlp("elmo-vectors", corpus, name, "--dim", 16, *options)
        return KeyedVectors.load_word2vec_format(name)

    return run


def fails(run: Callable[[], Any]) -> str:
    """The message that the command prints on its way out with exit status 1."""
    with pytest.raises(SystemExit) as stop:
        run()
    assert isinstance(stop.value.code, str)  # which Python prints on stderr before status 1
    assert stop.value.code.startswith("allennlp elmo-vectors: error: ")
    assert "\n" not in stop.value.code
    return stop.value.code


@BOTH
def test_every_frequent_word_gets_a_vector(
    method: str, vectors_of: Callable[..., KeyedVectors]
) -> None:
    vectors = vectors_of(SENSES, "--method", method, "--min-count", 10)
    counts: dict = {}
    for word in SENSES.read_text(encoding="utf-8").split():
        counts[word] = counts.get(word, 0) + 1
    assert set(vectors.index_to_key) == {word for word, count in counts.items() if count >= 10}
    assert vectors.index_to_key[0] == max(counts, key=lambda word: counts[word])
    assert vectors.vectors.shape[1] == 16
    assert numpy.abs(vectors.vectors).max() > 0


@BOTH
def test_words_that_go_together_are_neighbours(
    method: str, vectors_of: Callable[..., KeyedVectors]
) -> None:
    more = ["--epochs", 60, "--learning-rate", 0.05] if method == "word2vec" else []
    vectors = vectors_of(SENSES, "--method", method, "--lowercase", *more)
    for word, friend, stranger in (
        ("river", "water", "loan"),
        ("loan", "interest", "river"),
        ("pie", "apple", "screen"),
    ):
        assert vectors.similarity(word, friend) > vectors.similarity(word, stranger) + 0.1, word


@BOTH
def test_the_same_command_writes_the_same_file(
    method: str, allennlp: Allennlp, tmp_path: Path
) -> None:
    for name in ("1.txt", "2.txt"):
        allennlp("elmo-vectors", SENSES, name, "--method", method, "--dim", 16, "--seed", 3)
    assert (tmp_path / "1.txt").read_bytes() == (tmp_path / "2.txt").read_bytes()


def test_settings_reach_the_method(
    allennlp: Allennlp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    class Method(static_vectors.Word2Vec):
        def __post_init__(self) -> None:
            asked.append(astuple(self))

    monkeypatch.setitem(elmo_vectors.METHODS, "word2vec", Method)
    options = "--algorithm cbow --dim 5 --window 2 --epochs 1 --negatives 3 --sample 0.01"
    options += " --learning-rate 0.05 --seed 9 --threads 2 --max-words 20"
    allennlp("elmo-vectors", SENSES, "out.txt", "--method", "word2vec", *options.split())
    assert asked == [("cbow", 5, 2, 1, 3, 0.01, 0.05, 9, 2)]
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").startswith("20 5\n")


def test_a_pattern_names_many_files(vectors_of: Callable[..., KeyedVectors]) -> None:
    vectors = vectors_of(f"{TEXT}/s*.txt", "--method", "svd", "--min-count", 1)
    words = {
        word
        for name in ("senses.txt", "senses_heldout.txt", "sentences.txt")
        for word in (TEXT / name).read_text(encoding="utf-8").split()
    }
    assert set(vectors.index_to_key) == words


@pytest.mark.parametrize(
    "reader, has_title",
    [("ag_news", False), ('{"type": "ag_news", "use_title": true}', True)],
)
def test_any_reader_supplies_the_text(
    reader: str, has_title: bool, vectors_of: Callable[..., KeyedVectors]
) -> None:
    vectors = vectors_of(NEWS, "--method", "svd", "--min-count", 2, "--reader", reader)
    assert "the" in vectors
    assert "," in vectors  # cut off by the reader's tokenizer
    assert ("Firm" in vectors) == has_title  # in six titles, and in no description


def test_the_output_is_compressed_if_its_name_says_so(
    vectors_of: Callable[..., KeyedVectors],
) -> None:
    plain = vectors_of(SENSES, "--method", "svd")
    packed = vectors_of(SENSES, "--method", "svd", name="out.txt.gz")
    assert numpy.array_equal(plain.vectors, packed.vectors)
    assert Path("out.txt.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_an_older_file_is_replaced_only_if_asked(
    vectors_of: Callable[..., KeyedVectors], tmp_path: Path
) -> None:
    (tmp_path / "out.txt").write_text("old")
    message = fails(lambda: vectors_of(SENSES, "--method", "svd"))
    assert "out.txt: it is there already" in message and "--overwrite" in message
    assert (tmp_path / "out.txt").read_text() == "old"
    assert len(vectors_of(SENSES, "--method", "svd", "--overwrite").vectors) > 100


def test_a_link_to_where_nothing_is_is_written_only_if_asked(
    vectors_of: Callable[..., KeyedVectors], tmp_path: Path
) -> None:
    (tmp_path / "out.txt").symlink_to("vectors.txt")
    assert "it is there already" in fails(lambda: vectors_of(SENSES, "--method", "svd"))
    vectors_of(SENSES, "--method", "svd", "--overwrite")
    assert (tmp_path / "out.txt").is_symlink() and (tmp_path / "vectors.txt").is_file()


@pytest.mark.parametrize("options", [[], ["--reader", "elmo_scratch_sentences"]])
def test_the_input_is_never_replaced(options: list, allennlp: Allennlp, tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("a b\n" * 9)
    words = ["elmo-vectors", text, tmp_path / "." / "a.txt", "--method", "svd", "--overwrite"]
    assert "the output would replace the input" in fails(lambda: allennlp(*words, *options))
    assert text.read_text() == "a b\n" * 9


@pytest.mark.parametrize(
    "output, complaint",
    [
        (".", "expected a file to write to, but it is a folder"),
        ("no/x.txt", "no doesn't exist"),
        ("/dev/null", "it is no regular file"),
        ("x.txt.xz", "the file would not be compressed as .xz says"),
    ],
)
def test_an_output_that_cant_be_written_is_an_error_before_the_work(
    output: str, complaint: str, allennlp: Allennlp
) -> None:
    message = fails(lambda: allennlp("elmo-vectors", "none.txt", output, "--method", "svd"))
    assert complaint in message


@pytest.mark.parametrize(
    "corpus, options, complaint",
    [
        ("none.txt", ["--method", "svd"], "none.txt: no file matches"),
        (FIXTURES_ROOT / "bad" / "not_utf8.txt", ["--method", "svd"], "not_utf8.txt, line 2: "),
        (NEWS, ["--method", "svd"], "train.csv: expected text with one sentence a line"),
        (SENSES, ["--method", "svd", "--min-count", "9999"], "there are none: the most frequent"),
        (SENSES, ["--method", "svd", "--window", "0"], "expected --window of 1 or more, got 0"),
        (SENSES, ["--method", "svd", "--dim", "9999"], "expected --dim of at most"),
        (
            SENSES,
            ["--method", "svd", "--learning-rate", "0.1"],
            "--learning-rate is a setting of --method word2vec, and the method is svd",
        ),
        (SENSES, ["--method", "word2vec", "--shift", "2"], "--shift is a setting of --method svd"),
        (SENSES, ["--method", "svd", "--reader", "{bad"], "expected --reader to be JSON"),
        (SENSES, ["--method", "svd", "--reader", "no_reader"], "no_reader"),
        (SENSES, ["--method", "svd", "--reader", '{"type": "ag_news", "titel": 1}'], "titel"),
        (SENSES, ["--method", "svd", "--reader", "ag_news"], "senses.txt, line 1: expected the"),
        (
            SENSES,
            ["--method", "svd", "--reader", "sequence_tagging"],
            "senses.txt: can't be read by SequenceTaggingDatasetReader (ValueError: ",
        ),
        (
            SENSES,
            ["--method", "svd", "--reader", LOST_TOKENIZER],
            'error: --reader { "type": "ag_news"',
        ),
        ("none.csv", ["--method", "svd", "--reader", "ag_news"], "none.csv: there is no such file"),
    ],
)
def test_what_the_command_line_or_a_file_causes_is_one_line(
    corpus: Any, options: list, complaint: str, allennlp: Allennlp, tmp_path: Path
) -> None:
    assert complaint in fails(lambda: allennlp("elmo-vectors", corpus, "out.txt", *options))
    assert set(os.listdir(tmp_path)) <= {"cache"}


def test_without_gensim_the_way_out_is_named(
    allennlp: Allennlp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(static_vectors, "find_spec", lambda _: None)
    message = fails(lambda: allennlp("elmo-vectors", SENSES, "out.txt", "--method", "word2vec"))
    assert "pip install 'gensim>=4.3.3'" in message
    allennlp("elmo-vectors", SENSES, "out.txt", "--method", "svd", "--dim", 16)
    assert (tmp_path / "out.txt").exists()


def test_all_commands_together_list_it(allennlp: Allennlp, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        allennlp("--help")
    assert "Train static word vectors on a text" in " ".join(capsys.readouterr().out.split())
