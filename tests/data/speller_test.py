import pytest
import torch

from elmo_scratch.data.spelling import IndexedBatch, Sentences, WordIndexer


class NumbersOfLetters(WordIndexer):
    """Spells a word by how many letters it has, with room to spare."""

    def spell(self, sentences: Sentences) -> IndexedBatch:
        ids = torch.zeros(len(sentences), 7).long()
        for row, sentence in zip(ids, sentences):
            row[: len(sentence)] = torch.tensor([len(str(word)) for word in sentence])
        return IndexedBatch.of(ids, [len(sentence) for sentence in sentences])


def test_a_way_of_spelling_makes_batches() -> None:
    batch = NumbersOfLetters().spell([["a", "river"], [], ["the", "stone", "wall"]])
    assert batch.ids.tolist() == [[1, 5, 0], [0, 0, 0], [3, 5, 4]]
    assert batch.mask.sum(dim=1).tolist() == [2, 0, 3]


def test_one_that_spells_nothing_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="spell"):
        WordIndexer()  # type: ignore[abstract]
