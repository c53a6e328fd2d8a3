import gzip
import logging
import multiprocessing
import os
import pickle
import signal
from pathlib import Path
from typing import Any, List

import numpy
import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.tokenizers import CharacterTokenizer, WhitespaceTokenizer

from elmo_scratch.data.corpus import PreparedCorpus, preparation
from elmo_scratch.data.corpus import prepared_corpus as module
from elmo_scratch.data.corpus.prepared_corpus import PART
from elmo_scratch.files.paths import CACHE_VARIABLE, default_cache_dir
from tests import FIXTURES_ROOT

FORK = multiprocessing.get_context("fork")
TOUR = str(FIXTURES_ROOT / "text" / "tour.txt")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of prepared corpora."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def sentences_of(corpus: PreparedCorpus) -> List[str]:
    words = list(corpus.words)
    starts = corpus.sentence_starts.tolist()
    return [
        " ".join(words[number] for number in corpus.tokens[start:end])
        for start, end in zip(starts, starts[1:])
    ]


def leftovers(cache: Path) -> List[str]:
    return sorted(path.name for path in cache.glob(f"*{PART}"))


def no_preparation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "prepare_corpus", None)  # calling it would fail


def test_a_corpus_is_what_its_files_say() -> None:
    corpus = PreparedCorpus.of([TOUR, str(FIXTURES_ROOT / "text" / "held*.txt")])
    lines = Path(TOUR).read_text().splitlines()
    more = (FIXTURES_ROOT / "text" / "heldout.txt").read_text().splitlines()
    assert sentences_of(corpus) == lines + more
    assert corpus.shard_starts.tolist() == [0, len(lines), len(lines) + len(more)]
    assert corpus.tokens.dtype == numpy.uint32
    assert corpus.sentence_starts.dtype == numpy.int64
    assert corpus.audit.sentences == len(lines) + len(more)


def test_plain_and_packed_text_are_the_same_corpus(tmp_path: Path) -> None:
    packed = tmp_path / "tour.txt.gz"
    packed.write_bytes(gzip.compress(Path(TOUR).read_bytes()))
    assert sentences_of(PreparedCorpus.of(packed)) == sentences_of(PreparedCorpus.of(TOUR))


def test_it_is_prepared_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = PreparedCorpus.of(TOUR)
    no_preparation(monkeypatch)
    again = PreparedCorpus.of(TOUR, WhitespaceTokenizer(), cache_dir=str(cache))
    assert again.folder == first.folder
    assert first.folder.parent == cache


def test_other_settings_are_another_corpus() -> None:
    corpora = [
        PreparedCorpus.of(TOUR),
        PreparedCorpus.of(TOUR, max_tokens=3),
        PreparedCorpus.of(TOUR, CharacterTokenizer()),
    ]
    assert len({corpus.folder for corpus in corpora}) == 3
    assert sentences_of(corpora[1])[0] == "She ate a"
    assert list(corpora[2].words)[:2] == [" ", "e"]


def test_it_is_kept_in_the_home_folder_unless_said_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / ".cache" / "elmo_scratch" / "corpora"


def test_a_corpus_that_somebody_truncated_is_prepared_anew() -> None:
    corpus = PreparedCorpus.of(TOUR)
    sentences = sentences_of(corpus)
    folder = corpus.folder
    del corpus
    os.truncate(folder / "tokens.bin", 8)
    again = PreparedCorpus.of(TOUR)
    assert again.folder == folder
    assert sentences_of(again) == sentences


def test_a_corpus_with_a_bent_byte_is_prepared_anew() -> None:
    corpus = PreparedCorpus.of(TOUR)
    sentences, folder = sentences_of(corpus), corpus.folder
    del corpus
    for file in sorted(folder.glob("*.bin")):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 0x10
        file.write_bytes(content)
        assert sentences_of(PreparedCorpus.of(TOUR)) == sentences, file.name


@pytest.mark.parametrize("step", ["_number_shards", "write_words", "replace_numbers"])
def test_after_a_kill_in_the_middle_the_next_start_begins_cleanly(
    step: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = getattr(preparation, step)

    def start_and_die(*args: object) -> None:
        before(*args)
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patched:
        patched.setattr(preparation, step, start_and_die)
        process = FORK.Process(target=PreparedCorpus.of, args=(TOUR,))
        process.start()
        process.join()
    assert process.exitcode == -signal.SIGKILL
    assert len(leftovers(cache)) == 1
    corpus = PreparedCorpus.of(TOUR)
    assert sentences_of(corpus) == Path(TOUR).read_text().splitlines()
    assert leftovers(cache) == []


def test_two_processes_that_start_at_once_find_the_same_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    barrier = FORK.Barrier(2)
    prepare = module.prepare_corpus

    def noted(*args: object) -> None:
        with open(log, "a") as file:
            file.write("prepared\n")
        prepare(*args)  # type: ignore[arg-type]

    def start() -> None:
        barrier.wait(30)
        is_right = sentences_of(PreparedCorpus.of(TOUR)) == Path(TOUR).read_text().splitlines()
        os._exit(0 if is_right else 1)

    monkeypatch.setattr(module, "prepare_corpus", noted)
    workers = [FORK.Process(target=start) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert log.read_text() == "prepared\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is full")
@pytest.mark.parametrize("file", ["TOKENS", "SENTENCE_STARTS", "_LINE_HASHES", "AUDIT"])
def test_a_disk_that_fills_up_is_one_clear_error_and_leaves_nothing(
    file: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(preparation, file, "/dev/full")
        with pytest.raises(ConfigurationError, match="cache: the disk is full"):
            PreparedCorpus.of(TOUR)
    assert [path for path in cache.iterdir() if path.is_dir() and path.name != "digests"] == []
    assert sentences_of(PreparedCorpus.of(TOUR)) == Path(TOUR).read_text().splitlines()


def test_after_an_error_in_the_text_the_mended_text_is_prepared(
    cache: Path, tmp_path: Path
) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"one\ntw\xf6\n")
    with pytest.raises(ConfigurationError, match="text.txt, line 2: expected UTF-8 .* byte 3"):
        PreparedCorpus.of(path)
    assert leftovers(cache) == []
    path.write_bytes(b"one\ntwo\n")
    assert sentences_of(PreparedCorpus.of(path)) == ["one", "two"]


def test_a_text_that_changes_while_it_is_read_is_an_error(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text.txt"
    path.write_text("one\n")

    def prepare(*arguments: Any) -> None:
        preparation.prepare_corpus(*arguments)
        path.write_text("one\ntwo\n")

    with monkeypatch.context() as changing:
        changing.setattr(module, "prepare_corpus", prepare)
        with pytest.raises(ConfigurationError, match="text.txt: it has changed while it was read"):
            PreparedCorpus.of(path)
    assert leftovers(cache) == []
    assert sentences_of(PreparedCorpus.of(path)) == ["one", "two"]


def test_a_table_is_no_corpus() -> None:
    with pytest.raises(ConfigurationError, match="train.csv: a corpus is plain text.*but this is"):
        PreparedCorpus.of(FIXTURES_ROOT / "news" / "train.csv")


def test_a_table_that_is_fetched_is_none_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = tmp_path / "0123abcd"
    fetched.write_bytes((FIXTURES_ROOT / "news" / "train.csv").read_bytes())
    monkeypatch.setattr("elmo_scratch.files.paths.fetched", lambda address: str(fetched))
    address = "https://example.com/train.csv"
    with pytest.raises(ConfigurationError, match=f"{address}: a corpus is plain text"):
        PreparedCorpus.of([TOUR, address])


def test_the_home_folder_has_its_short_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(CACHE_VARIABLE, "~/named")
    assert default_cache_dir() == tmp_path / "named"
    assert PreparedCorpus.of(TOUR, cache_dir="~/given").folder.parent == tmp_path / "given"


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_shard_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "empty.txt").write_text(content)
    with pytest.raises(ConfigurationError, match="/empty.txt: expected sentences.*skip_empty_shar"):
        PreparedCorpus.of([str(tmp_path / "empty.txt"), TOUR])


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_shards_that_may_be_empty_are_a_warning(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "empty.txt").write_text(content)
    with caplog.at_level(logging.INFO):
        PreparedCorpus.of([str(tmp_path / "empty.txt"), TOUR], skip_empty_shards=True)
    warnings = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert warnings == [f"Files of the corpus without a token: {tmp_path / 'empty.txt'}"]
    assert "12 sentences" in caplog.text
    assert f"; empty: {tmp_path / 'empty.txt'}" in caplog.text


def test_the_audit_calls_empty_shards_as_they_are_called_now(tmp_path: Path) -> None:
    folders = set()
    for name in ("one.txt", "another.txt"):
        shard = tmp_path / name
        shard.touch()
        corpus = PreparedCorpus.of([TOUR, str(shard)], skip_empty_shards=True)
        assert corpus.audit.empty_shards == [str(shard)]
        folders.add(corpus.folder)
        shard.unlink()
    assert len(folders) == 1


@pytest.mark.parametrize("max_tokens", [0, -1])
def test_sentences_of_no_tokens_are_an_error(max_tokens: int) -> None:
    with pytest.raises(ConfigurationError, match=f"of at least 1, but got {max_tokens}"):
        PreparedCorpus.of(TOUR, max_tokens=max_tokens)


def test_a_pickle_holds_the_folder_only() -> None:
    corpus = PreparedCorpus.of(TOUR)
    pickled = pickle.dumps(corpus)
    assert len(pickled) < 500
    assert sentences_of(pickle.loads(pickled)) == sentences_of(corpus)


def test_pages_can_be_given_back_at_any_time() -> None:
    corpus = PreparedCorpus.of(TOUR)
    before = sentences_of(corpus)
    corpus.release_pages()
    assert sentences_of(corpus) == before


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells")
def test_pages_that_were_given_back_take_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("a b c d\n" * 50_000)
    corpus = PreparedCorpus.of(path)
    arrays = (corpus.tokens, corpus.sentence_starts)
    for array in arrays:
        array.sum()
    assert resident_kib(corpus.folder) >= sum(array.nbytes for array in arrays) / 1024
    corpus.release_pages()
    assert resident_kib(corpus.folder) == 0


def resident_kib(folder: Path) -> int:
    """The memory that the files of a folder take which are mapped into this process."""
    total, is_inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        key, *rest = line.split()
        if not key.endswith(":"):  # of a mapping: its addresses first, its file last
            is_inside = line.find(f"{folder}/") > 0
        elif key == "Rss:" and is_inside:
            total += int(rest[0])
    return total


@pytest.fixture
def marked(tmp_path: Path) -> PreparedCorpus:
    path = tmp_path / "marked.txt"
    path.write_text("a a A b <S> @@PADDING@@\na b\n")
    return PreparedCorpus.of(path)


def test_words_have_the_ids_of_a_vocabulary(marked: PreparedCorpus) -> None:
    vocab = Vocabulary(tokens_to_add={"tokens": ["<S>", "b", "A"]})
    assert list(marked.words) == ["a", "b", "<S>", "@@PADDING@@", "A"]
    ids = marked.ids_in(vocab)
    assert ids.tolist() == [1, 3, 2, 1, 4]  # 0 would be padding, 1 is unknown
    assert ids.dtype == numpy.int64


def test_in_a_vocabulary_of_lower_case_marks_keep_their_case(marked: PreparedCorpus) -> None:
    vocab = Vocabulary(tokens_to_add={"tokens": ["<S>", "a", "B"]})
    assert marked.ids_in(vocab, lowercase=True).tolist() == [3, 1, 2, 1, 3]


def test_the_share_of_unknown_words_counts_tokens(marked: PreparedCorpus) -> None:
    vocab = Vocabulary(tokens_to_add={"words": ["a", "b"]})
    assert marked.unknown_share(vocab, "words") == 3 / 8
    assert marked.unknown_share(vocab, "words", lowercase=True) == 2 / 8
