"""Hugging Face data sets as text, wherever a corpus or a text can be named."""

import json
from pathlib import Path
from typing import Any, List

import datasets
import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DataLoader, Vocabulary
from datasets import Dataset, DatasetDict, IterableDataset

from elmo_scratch.data import CorpusVocabulary, SentencesReader, StreamLoader
from elmo_scratch.data.corpus import PreparedCorpus, data_set_lines, list_shards
from elmo_scratch.data.corpus.shards import data_set_file

TEXTS = ["the river rose", "", "the bank lent\r\nit lent more", "the river bank"]
LINES = ["the river rose", "", "the bank lent", "it lent more", "the river bank"]
SENTENCES = [line.split() for line in LINES if line]


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that is kept lies in the test's folder, and nothing comes from the network."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hugging_face")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "corpora"))
    return tmp_path / "corpora"


@pytest.fixture
def rows() -> Dataset:
    return Dataset.from_dict({"number": list(range(len(TEXTS))), "text": TEXTS})


def streamed() -> IterableDataset:
    return IterableDataset.from_generator(lambda: ({"text": text} for text in TEXTS))


def json_lines(folder: Path, texts: List[Any] = TEXTS, column: str = "text") -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps({column: text}) + "\n" for text in texts), encoding="utf-8")
    return path


def read_by(reader: SentencesReader, source: Any) -> List[List[str]]:
    return [[token.text for token in found["sentence"]] for found in reader.read(source)]


def test_every_form_of_a_data_set_is_read_as_the_same_sentences(
    rows: Dataset, tmp_path: Path
) -> None:
    rows.save_to_disk(tmp_path / "one")
    DatasetDict({"train": rows, "test": rows.select([0])}).save_to_disk(tmp_path / "splits")
    files = json_lines(tmp_path)
    sources = [
        rows,
        rows.to_iterable_dataset(),
        streamed(),
        f"datasets:{tmp_path}/one",
        f"datasets:{tmp_path}/one?streaming=true",
        f"datasets:{tmp_path}/splits?split=train&column=text",
        f"datasets:json?data_files={files}",
        f"datasets:json?data_files={files}&streaming=true",
    ]
    for source in sources:
        assert list(data_set_lines(source)) == LINES
        assert read_by(SentencesReader(), source) == SENTENCES
        corpus = PreparedCorpus.of(source)
        assert corpus.audit.sentences == len(SENTENCES)
        assert [corpus.words[number] for number in corpus.tokens] == sum(SENTENCES, [])
    assert read_by(SentencesReader(), f"datasets:{tmp_path}/splits?split=test") == SENTENCES[:1]


def test_slices_of_a_split_are_read(tmp_path: Path) -> None:
    address = f"datasets:json?data_files={json_lines(tmp_path)}&split=train[:25%]+train[3:]"
    assert list(data_set_lines(address)) == [LINES[0], LINES[-1]]


def test_data_sets_stand_beside_files(rows: Dataset, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a file\n")
    assert read_by(SentencesReader(), [str(text), rows]) == [["a", "file"], *SENTENCES]
    assert PreparedCorpus.of([str(text), rows]).audit.sentences == 1 + len(SENTENCES)


def test_a_config_trains_on_the_address_of_a_data_set(tmp_path: Path) -> None:
    address = f"datasets:json?data_files={json_lines(tmp_path, column='body')}&column=body"
    vocabulary = {"type": "elmo_scratch_corpus", "data_path": address}
    vocab = Vocabulary.from_params(Params(vocabulary))
    assert isinstance(vocab, CorpusVocabulary)
    assert vocab.get_token_index("the") < vocab.get_token_index("rose")
    loader = DataLoader.from_params(
        Params({"type": "elmo_scratch_stream", "batch_size": 2, "unroll_steps": 3}),
        reader=SentencesReader(),
        data_path=address,
    )
    assert isinstance(loader, StreamLoader)
    loader.index_with(vocab)
    assert sum(int(batch["windows"]["mask"].sum()) for batch in loader) > 12  # type: ignore
    assert [len(found["sentence"]) for found in loader.iter_instances()] == [3, 3, 3, 3]


def test_a_data_set_is_written_once_and_known_by_its_content(rows: Dataset) -> None:
    (path,) = list_shards(rows)  # type: ignore[arg-type]
    assert path.read_text(encoding="utf-8").splitlines() == LINES
    path.write_text("as it was\n")
    assert data_set_file(rows) == path and path.read_text() == "as it was\n"
    assert data_set_file(rows.select([0])) != path
    stream = data_set_file(streamed())
    assert stream == data_set_file(rows.to_iterable_dataset()) != path
    assert {file.name for file in path.parent.iterdir()} == {
        *(path.name, stream.name, data_set_file(rows.select([0])).name)
    }


def test_a_stream_is_read_row_by_row() -> None:
    seen = []

    def texts() -> Any:
        for number in range(10_000):
            seen.append(number)
            yield {"text": f"line {number}"}

    lines = data_set_lines(IterableDataset.from_generator(texts))
    assert [next(lines), next(lines)] == ["line 0", "line 1"]
    assert len(seen) < 2000


@pytest.mark.parametrize(
    "settings, message",
    [
        ("column=body", r"expected a column 'body', but there are 'text'. Name one by `column=`"),
        ("split=dev", "the data set can't be read: Unknown split"),
        ("splits=dev", r"with settings among column, data_dir, .*streaming, and"),
        ("streaming=yes", "`streaming` true or false"),
    ],
)
def test_wrong_addresses_are_refused(settings: str, message: str, tmp_path: Path) -> None:
    address = f"datasets:json?data_files={json_lines(tmp_path)}&{settings}"
    with pytest.raises(ConfigurationError, match=message) as caught:
        list(data_set_lines(address))
    assert str(caught.value).startswith(address) and "\n" not in str(caught.value)


@pytest.mark.parametrize("row", [None, 7, ["a", "list"]])
def test_a_row_without_text_is_named(row: Any) -> None:
    rows = IterableDataset.from_generator(lambda: ({"text": text} for text in ["a line", row]))
    with pytest.raises(ConfigurationError, match=r"row 2: expected text in the column 'text', but"):
        PreparedCorpus.of(rows)  # type: ignore[arg-type]


def test_a_data_set_that_is_missing_and_one_without_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nowhere: the data set can't be read: .*nowhere"):
        list_shards(f"datasets:{tmp_path}/nowhere")
    with pytest.raises(ConfigurationError, match="no line holds a token"):
        PreparedCorpus.of(Dataset.from_dict({"text": ["", " "]}))  # type: ignore[arg-type]


def test_no_code_of_a_data_set_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_TRUST_REMOTE_CODE", True)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "set.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(ConfigurationError, match="requires you to execute"):
        list(data_set_lines(f"datasets:{tmp_path}/set"))
    assert not (tmp_path / "ran").exists()


def test_a_folder_that_can_not_be_written_to_is_named(
    rows: Dataset, caches: Path, tmp_path: Path
) -> None:
    caches.write_text("a file")
    with pytest.raises(ConfigurationError, match="cannot be written .*ELMO_SCRATCH_CACHE"):
        data_set_file(rows)
