from pathlib import Path
from typing import List

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Vocabulary
from allennlp.data.data_loaders.multiprocess_data_loader import WorkerInfo
from allennlp.data.tokenizers import Token

from elmo_scratch.data import UdPosReader
from elmo_scratch.data.readers import TaggedSentence, tagged_sentences
from tests import FIXTURES_ROOT

DEV = FIXTURES_ROOT / "tasks" / "ud" / "dev.conllu"


def row(place: str, form: str, upos: str, xpos: str) -> str:
    return "\t".join([place, form, "_", upos, xpos, "_", "0", "root", "_", "_"])


CONTRACTED = [
    "# text = I don't 10 000",
    row("1", "I", "PRON", "PRP"),
    row("2-3", "don't", "_", "_"),
    row("2", "do", "AUX", "VBP"),
    row("3", "n't", "PART", "RB"),
    row("3.1", "pay", "VERB", "VB"),
    row("4", "10 000", "NUM", "CD"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "words.conllu"


def write(path: Path, lines: List[str], end: str = "\n") -> None:
    path.write_bytes("".join(line + end for line in lines).encode())


def test_words_are_those_that_have_a_tag(path: Path) -> None:
    write(path, CONTRACTED)
    words = ["I", "do", "n't", "10 000"]
    upos = TaggedSentence(words, ["PRON", "AUX", "PART", "NUM"])
    assert list(tagged_sentences(path)) == [upos]
    assert list(tagged_sentences(path, "xpos")) == [upos._replace(tags=["PRP", "VBP", "RB", "CD"])]


def test_blank_lines_end_sentences(path: Path) -> None:
    sentence = [row("1", "Go", "VERB", "VB")]
    write(path, ["", *sentence, "", " ", "# next", *sentence, ""], end="\r\n")
    assert [one.words for one in tagged_sentences(path)] == [["Go"], ["Go"]]


@pytest.mark.parametrize(
    "lines, message",
    [
        ([row("1", "Go", "VERB", "VB"), "2 on _ ADV"], "line 2: expected the 10 columns"),
        ([row("1", "a", "X", "X"), row("1", "b", "X", "X")], "line 2: expected word 2 .*found '1'"),
        ([row("1", "", "X", "X")], "line 1: expected a word"),
        ([row("1", "a", "_", "X")], "line 1: .* column 4 .* found '_'.* use `tags: \"xpos\"`"),
        (["# nothing", ""], "no line holds a word"),
    ],
)
def test_what_is_no_conllu_is_an_error_that_names_the_line(
    path: Path, lines: List[str], message: str
) -> None:
    write(path, lines)
    with pytest.raises(ConfigurationError, match=f"words.conllu.*{message}"):
        list(tagged_sentences(path))


def test_only_the_two_columns_of_tags_can_be_asked_for() -> None:
    with pytest.raises(ConfigurationError, match='expected `tags` "upos" or "xpos", but got'):
        UdPosReader(tags="deprel")


def test_a_config_finds_it_and_its_instances_are_what_a_tagger_takes() -> None:
    reader = DatasetReader.from_params(Params({"type": "ud_pos", "tags": "xpos"}))
    instances = list(reader.read(str(DEV)))
    expected = list(tagged_sentences(DEV, "xpos"))
    assert [one["metadata"]["words"] for one in instances] == [one.words for one in expected]
    assert [one["tags"].labels for one in instances] == [one.tags for one in expected]
    vocab = Vocabulary.from_instances(instances)
    instances[0].index_fields(vocab)
    tensors = instances[0].as_tensor_dict()
    assert tensors["tokens"]["tokens"]["tokens"].shape == tensors["tags"].shape
    assert vocab.get_vocab_size("labels") == len({tag for one in expected for tag in one.tags})


def test_a_sentence_to_be_tagged_has_no_tags() -> None:
    instance = UdPosReader().text_to_instance([Token("Go")])
    assert set(instance.fields) == {"tokens", "metadata"}


def test_each_worker_reads_its_own_sentences() -> None:
    words = [one.words for one in tagged_sentences(DEV)]
    for number in range(2):
        reader = UdPosReader()
        reader._set_worker_info(WorkerInfo(num_workers=2, id=number))
        read = [one["metadata"]["words"] for one in reader.read(str(DEV))]
        assert read == words[number::2]
