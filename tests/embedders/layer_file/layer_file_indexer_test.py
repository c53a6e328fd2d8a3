import copy
import pickle
from pathlib import Path
from typing import Any, List

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Batch, Instance, Token, TokenIndexer, Vocabulary
from allennlp.data.fields import ListField, TextField
from allennlp.nn.util import get_text_field_mask

from elmo_scratch.embedders import LayerFileIndexer
from elmo_scratch.embedders.layer_file import shared_token_numbers
from tests.interop.layer_files.tiny_layers import write_layers

SENTENCES = ["The river rose .", "a", "x y z"]


@pytest.fixture
def indexer(tmp_path: Path) -> LayerFileIndexer:
    return LayerFileIndexer(str(write_layers(tmp_path / "layers.hdf5", SENTENCES)))


def text_field(text: str, indexer: TokenIndexer) -> TextField:
    return TextField([Token(word) for word in text.split()], {"elmo": indexer})


def batch_of(fields: List[Any]) -> Any:
    batch = Batch([Instance({"text": field}) for field in fields])
    batch.index_instances(Vocabulary())
    return batch.as_tensor_dict()["text"]


def places_of(numbers: torch.Tensor, indexer: LayerFileIndexer) -> torch.Tensor:
    """The places of tokens in the file, from 1, and 0 for padding."""
    before_first = shared_token_numbers(indexer.file).before_first
    return torch.where(numbers == 0, 0, numbers - before_first)


def test_it_is_built_from_a_config(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "layers.hdf5", SENTENCES)
    params = Params({"type": "elmo_scratch_layer_file", "file": str(path)})
    assert isinstance(TokenIndexer.from_params(params), LayerFileIndexer)


def test_tokens_get_their_numbers_and_padding_none(indexer: LayerFileIndexer) -> None:
    batch = batch_of([text_field(text, indexer) for text in ("x y z", "The river rose .", "")])
    numbers = places_of(batch["elmo"]["token_numbers"], indexer)
    assert numbers.tolist() == [[6, 7, 8, 0], [1, 2, 3, 4], [0, 0, 0, 0]]
    assert get_text_field_mask(batch).tolist() == [
        [True, True, True, False],
        [True, True, True, True],
        [False, False, False, False],
    ]


def test_texts_in_lists_are_padded(indexer: LayerFileIndexer) -> None:
    batch = batch_of(
        [
            ListField([text_field("a", indexer), text_field("x y z", indexer)]),
            ListField([text_field("a", indexer)]),
        ]
    )
    numbers = batch["elmo"]["token_numbers"]
    places = places_of(numbers, indexer)
    assert places.tolist() == [[[5, 0, 0], [6, 7, 8]], [[5, 0, 0], [0, 0, 0]]]
    mask = get_text_field_mask(batch, num_wrapping_dims=1)
    assert torch.equal(mask, numbers != 0)


def test_a_text_that_is_not_in_the_file_is_an_error(indexer: LayerFileIndexer) -> None:
    with pytest.raises(ConfigurationError, match="layers.hdf5: .* the 2 tokens 'x y', but"):
        batch_of([text_field("x y", indexer)])


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no such file of layers"):
        LayerFileIndexer(str(tmp_path / "none.hdf5"))


def test_another_file_in_its_place_is_an_error(indexer: LayerFileIndexer) -> None:
    write_layers(Path(indexer.file), ["a", *SENTENCES])
    with pytest.raises(ConfigurationError, match="layers.hdf5: another file took the place"):
        batch_of([text_field("a", indexer)])


def test_it_goes_to_other_processes(indexer: LayerFileIndexer) -> None:
    for other in (pickle.loads(pickle.dumps(indexer)), copy.deepcopy(indexer)):
        assert other == indexer
        numbers = batch_of([text_field("a", other)])["elmo"]["token_numbers"]
        assert places_of(numbers, indexer).tolist() == [[5]]
