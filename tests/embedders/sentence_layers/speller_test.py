import torch

from elmo_scratch.embedders.sentence_layers.speller import Sentences, Speller


class NumbersOfLetters(Speller):
    """Spells a word by how many letters it has, with room to spare."""

    def ids_of(self, sentences: Sentences) -> torch.Tensor:
        ids = torch.zeros(len(sentences), 7).long()
        for row, sentence in zip(ids, sentences):
            row[: len(sentence)] = torch.tensor([len(word) for word in sentence])
        return ids


def test_a_batch_has_the_ids_and_the_lengths_of_its_sentences() -> None:
    batch = NumbersOfLetters().spell([["a", "river"], [], ["the", "stone", "wall"]])
    assert batch.ids.tolist() == [[1, 5, 0], [0, 0, 0], [3, 5, 4]]
    assert batch.lengths == [2, 0, 3]
    assert batch.mask.sum(dim=1).tolist() == [2, 0, 3]
