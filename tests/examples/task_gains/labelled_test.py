from pathlib import Path
from types import ModuleType
from typing import Any, Dict

import pytest
from allennlp.common.checks import ConfigurationError


@pytest.fixture
def labelled(modules: Dict[str, ModuleType]) -> Any:
    return modules["labelled"]


TREES = "(3 (2 It) (4 (3 shines) (2 \\/)))\n(1 (2 -LRB-) (1 Dull))\n"
ENTITIES = "-DOCSTART- -X- O O\n\nAda NNP I-NP I-PER\nwaits VBZ I-VP O\n\nNo UH O O\n"
TREEBANK = (
    "# text = vámonos\n1-2\tvámonos\t_\n1\tvamos\tir\n2\tnos\tnosotros\n2.1\tya\t_\n\n"
    "# t\n1\tNo\tno\n"
)


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("sst/train.txt", TREES, [["It", "shines", "/"], ["(", "Dull"]]),
        ("conll2003/eng.train", ENTITIES, [["Ada", "waits"], ["No"]]),
        ("ud/train.conllu", TREEBANK, [["vamos", "nos"], ["No"]]),
    ],
)
def test_sentences_keep_their_labels_and_give_their_words(
    name: str, text: str, words: Any, labelled: Any, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    sentences = labelled.sentences_of(file)
    assert list(map(labelled.words_of, sentences)) == words
    again = file.with_name("again.txt")
    again.write_text(labelled.join_sentences(sentences), encoding="utf-8")
    assert labelled.sentences_of(again) == sentences


def test_a_share_is_part_of_every_larger_one(labelled: Any, data: Path, tmp_path: Path) -> None:
    texts = labelled.write_texts(data, tmp_path)
    shares = [
        labelled.sentences_of(texts.tasks["named entities", share][0]) for share in (0.01, 0.1, 1.0)
    ]
    assert len(shares[0]) == len(shares[1]) == 1
    assert shares[0] == shares[1] == shares[2][:1]
    whole = labelled.sentences_of(data / "conll2003" / "eng.train")
    assert sorted(shares[2]) == sorted(whole)


def test_the_bilm_reads_no_dev_set(labelled: Any, data: Path, tmp_path: Path) -> None:
    texts = labelled.write_texts(data, tmp_path)
    read = [
        line
        for files in (texts.corpus, texts.tenth, *texts.own.values())
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    tried = {
        " ".join(labelled.words_of(sentence))
        for _, dev in texts.tasks.values()
        for sentence in labelled.sentences_of(dev)
    }
    trained = {
        " ".join(labelled.words_of(sentence))
        for train, _ in texts.tasks.values()
        for sentence in labelled.sentences_of(train)
    }
    assert set(read) >= trained - tried
    assert not set(read) & (tried - trained)


def test_no_data_is_an_error(labelled: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected at least one of conll2000/train.txt"):
        labelled.write_texts(tmp_path, tmp_path / "texts")
