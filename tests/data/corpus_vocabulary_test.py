import logging
import os
import pickle
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Type

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance, TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.models.archival import load_archive
from allennlp.nn import util

from elmo_scratch.data.corpus_vocabulary import CorpusVocabulary
from elmo_scratch.data.vocabulary_file import read_vocabulary_file
from tests.tiny_training import train

TEXT = "the cat sat on the mat\nThe Cat saw the <S> and the <UNK>\n\n<s> cat @@PADDING@@ mat\n"


@Model.register("test_word_counter")
class WordCounter(Model):
    """A model that has one weight for each word of the vocabulary."""

    def __init__(self, vocab: Vocabulary) -> None:
        super().__init__(vocab)
        self.weights = torch.nn.Parameter(torch.rand(vocab.get_vocab_size("tokens")))

    def forward(self, sentence: TextFieldTensors) -> Dict[str, torch.Tensor]:
        ids = util.get_token_ids_from_text_field_tensors(sentence)
        return {"loss": self.weights[ids].sum()}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return str(path)


def unread() -> Iterator[Instance]:
    raise AssertionError("instances shall not be read")
    yield


def built(**settings: Any) -> Vocabulary:
    params = Params({"type": "elmo_scratch_corpus", **settings})
    return Vocabulary.from_params(params, instances=unread())


def words_of(vocab: Vocabulary, namespace: str = "tokens") -> list:
    by_id = vocab.get_index_to_token_vocabulary(namespace)
    assert vocab.get_token_to_index_vocabulary(namespace) == {
        word: number for number, word in by_id.items()
    }
    return [by_id[number] for number in range(len(by_id))]


MARKS = ["@@PADDING@@", "<S>", "</S>", "<UNK>"]


def test_marks_come_first_and_then_words_by_frequency(text: str) -> None:
    vocab = built(data_path=text)
    assert isinstance(vocab, CorpusVocabulary)
    words = ["the", "cat", "mat", "<s>", "Cat", "The", "and", "on", "sat", "saw"]
    assert words_of(vocab) == [*MARKS, *words]


def test_allennlps_own_unknown_word_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("the @@UNKNOWN@@ cat\n")
    vocab = built(data_path=str(path))
    assert words_of(vocab) == [*MARKS, "cat", "the"]
    vocab.save_to_files(str(tmp_path / "vocabulary"))
    # As AllenNLP reads it when it recovers a distributed training.
    again = Vocabulary.from_files(str(tmp_path / "vocabulary"))
    assert again.get_token_index("dog") == again.get_token_index("<UNK>") == 3


def test_an_unknown_word_has_the_id_of_its_mark(text: str) -> None:
    vocab = built(data_path=text)
    assert vocab.get_token_index("dog") == vocab.get_token_index("<UNK>") == 3
    assert vocab.get_token_index("<S>") == 1


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"min_count": 2}, ["the", "cat", "mat"]),
        ({"max_size": 2}, ["the", "cat"]),
        ({"min_count": 2, "max_size": 9}, ["the", "cat", "mat"]),
        ({"min_count": 3, "lowercase": True}, ["the", "cat"]),
        ({"min_count": 2, "lowercase": True}, ["the", "cat", "mat"]),
        ({"min_count": 2, "max_tokens": 2}, ["cat"]),
        ({"min_count": 4, "tokenizer": "character"}, None),
    ],
)
def test_settings_say_which_words_are_known(text: str, settings: Dict, words: Any) -> None:
    vocab = built(data_path=text, **settings)
    if words is None:
        assert all(len(word) == 1 for word in words_of(vocab)[4:])
        assert " " not in words_of(vocab)  # which no vocabulary file could hold
    else:
        assert words_of(vocab) == [*MARKS, *words]


@pytest.mark.parametrize("lowercase", [False, True])
def test_a_vocabulary_without_words_is_an_error(text: str, lowercase: bool) -> None:
    with pytest.raises(ConfigurationError, match="words that occur 9 times or more, but there are"):
        built(data_path=text, min_count=9, lowercase=lowercase)


def test_in_lower_case_marks_keep_their_case(text: str) -> None:
    words = words_of(built(data_path=text, lowercase=True))
    assert words[:4] == MARKS
    assert words.count("<s>") == 1  # that of the text's own <s>


def test_another_namespace_can_hold_the_words(text: str) -> None:
    vocab = built(data_path=text, namespace="words", max_size=1)
    assert words_of(vocab, "words") == [*MARKS, "the"]


def test_the_log_tells_size_and_share_of_unknown_words(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        built(data_path=text, min_count=2)
    # Unknown are 9 of 18 tokens: The, Cat, saw, and, <UNK>, <s>, @@PADDING@@, sat, on.
    assert "Vocabulary of 6 words; 50.0000% of the corpus's tokens are unknown" in caplog.text
    assert "WARNING" not in caplog.text
    built(data_path=text, min_count=3)
    assert "WARNING" in caplog.text


def test_a_vocabulary_file_keeps_its_order(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("</S>\n<S>\nthe\n<UNK>\ncat\n")
    vocab = built(vocab_file=str(path))
    assert words_of(vocab) == ["@@PADDING@@", "</S>", "<S>", "the", "<UNK>", "cat"]
    assert vocab.get_token_index("dog") == 4


@pytest.mark.parametrize("namespace", ["tokens", "words"])
def test_what_is_saved_is_a_vocabulary_file_and_loads_as_equal(
    text: str, tmp_path: Path, namespace: str
) -> None:
    vocab = built(data_path=text, namespace=namespace)
    folder = tmp_path / "vocabulary"
    vocab.save_to_files(str(folder))
    path = folder / f"{namespace}.txt"
    assert read_vocabulary_file(path) == words_of(vocab, namespace)[1:]
    assert CorpusVocabulary.from_files(str(folder)) == vocab
    assert Vocabulary.from_files(str(folder), oov_token="<UNK>") == vocab
    assert words_of(built(vocab_file=str(path))) == words_of(vocab, namespace)


def test_allennlp_itself_reads_what_is_saved(text: str, tmp_path: Path) -> None:
    """As `allennlp train --recover` does with several workers."""
    vocab = CorpusVocabulary.from_corpus(data_path=text)
    vocab.save_to_files(str(tmp_path / "saved"))
    read = Vocabulary.from_files(str(tmp_path / "saved"))
    assert read.get_token_to_index_vocabulary() == vocab.get_token_to_index_vocabulary()
    assert read.get_token_index("never seen") == vocab.get_token_index("<UNK>")


@pytest.mark.parametrize("kind", [Vocabulary, CorpusVocabulary])
def test_the_output_folder_of_a_training_will_do(kind: Type[Vocabulary], tmp_path: Path) -> None:
    vocab = Vocabulary(counter={"tokens": {"the": 2}}, oov_token="<UNK>")
    vocab.save_to_files(str(tmp_path / "vocabulary"))
    read = kind.from_files(str(tmp_path))
    assert read.get_token_to_index_vocabulary() == vocab.get_token_to_index_vocabulary()
    assert os.listdir(tmp_path) == ["vocabulary"]


def test_allennlp_reads_its_own_vocabularies_as_ever(tmp_path: Path) -> None:
    vocab = Vocabulary(counter={"tokens": {"the": 2, "<UNK>": 1}})
    vocab.save_to_files(str(tmp_path / "saved"))
    read = Vocabulary.from_files(str(tmp_path / "saved"))
    assert read.get_token_index("never seen") == read.get_token_index("@@UNKNOWN@@") == 1


@pytest.mark.parametrize(
    "kind, words", [(Vocabulary, "@@UNKNOWN@@ or <UNK>"), (CorpusVocabulary, "<UNK>")]
)
def test_a_folder_without_an_unknown_word_is_an_error(
    kind: Type[Vocabulary], words: str, tmp_path: Path
) -> None:
    Vocabulary(counter={"tokens": {"the": 2, "cat": 1}}).save_to_files(str(tmp_path))
    (tmp_path / "tokens.txt").write_text("the\ncat\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=f"{words}, but a file in it has none"):
        kind.from_files(str(tmp_path))


@pytest.mark.parametrize("removed", ["non_padded_namespaces.txt", None])
def test_a_folder_that_is_not_whole_is_an_error(removed: Optional[str], tmp_path: Path) -> None:
    folder = tmp_path / "vocabulary"
    if removed is not None:
        Vocabulary(counter={"tokens": {"the": 2}}).save_to_files(str(folder))
        (folder / removed).unlink()
    with pytest.raises(ConfigurationError, match="vocabulary: .* missing or not whole.*--force"):
        Vocabulary.from_files(str(folder))


def test_what_is_read_first_is_written_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: List[str] = []
    monkeypatch.setattr(os, "replace", lambda _, there: moved.append(Path(there).name))
    counter = {f"{letter}_tokens": {"the": 2} for letter in "abcdefghpqrstuvwxyz"}
    Vocabulary(counter=counter).save_to_files(str(tmp_path / "vocabulary"))
    assert len(moved) == len(counter) + 1 and moved[-1] == "non_padded_namespaces.txt"


def test_files_may_be_empty_where_that_is_said(text: str, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    both = [text, str(tmp_path / "empty.txt")]
    with pytest.raises(ConfigurationError, match="skip_empty_shards"):
        built(data_path=both)
    assert words_of(built(data_path=both, skip_empty_shards=True)) == words_of(
        built(data_path=text)
    )


def test_a_pickle_is_equal(text: str) -> None:
    vocab = built(data_path=text)
    assert pickle.loads(pickle.dumps(vocab)) == vocab


def test_an_archive_of_a_model_loads_its_vocabulary(text: str, tmp_path: Path) -> None:
    config = {
        "dataset_reader": {"type": "elmo_scratch_sentences"},
        "vocabulary": {"type": "elmo_scratch_corpus", "data_path": text, "min_count": 2},
        "train_data_path": text,
        "model": {"type": "test_word_counter"},
        "data_loader": {"batch_size": 2},
        "trainer": {"optimizer": {"type": "sgd", "lr": 0.1}, "num_epochs": 1},
    }
    model = train(Params(config), tmp_path / "run")
    archive = load_archive(tmp_path / "run" / "model.tar.gz")
    assert isinstance(archive.model.vocab, CorpusVocabulary)
    assert archive.model.vocab == model.vocab
    assert len(archive.model.state_dict()["weights"]) == 7


def test_exactly_one_source_is_needed(text: str) -> None:
    for settings in ({}, {"data_path": text, "vocab_file": text}):
        with pytest.raises(ConfigurationError, match="either `data_path`, .* or `vocab_file`"):
            built(**settings)


@pytest.mark.parametrize("settings", [{"min_count": 0}, {"max_size": 0}, {"max_size": -1}])
def test_sizes_that_make_no_sense_are_an_error(text: str, settings: Dict) -> None:
    with pytest.raises(ConfigurationError, match="`min_count` and `max_size` of at least 1"):
        built(data_path=text, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        *({"min_count": 2}, {"max_size": 5}, {"lowercase": True}, {"tokenizer": "whitespace"}),
        *({"max_tokens": 9}, {"cache_dir": "cache"}, {"skip_empty_shards": True}),
    ],
)
def test_a_vocabulary_file_is_not_counted(text: str, settings: Dict) -> None:
    with pytest.raises(ConfigurationError, match="with `vocab_file` leave them out"):
        built(vocab_file=text, **settings)


@pytest.mark.parametrize("word", ["@@PADDING@@", "@@NEWLINE@@"])
def test_a_file_with_a_word_that_means_something_to_allennlp_is_an_error(
    word: str, tmp_path: Path
) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text(f"<S>\n</S>\n<UNK>\n{word}\n")
    with pytest.raises(ConfigurationError, match=f"vocab.txt: the word '{word}' has a meaning"):
        built(vocab_file=str(path))


def test_a_namespace_without_padding_is_an_error(text: str) -> None:
    with pytest.raises(ConfigurationError, match="'word_tags' has no place for padding"):
        built(data_path=text, namespace="word_tags")
