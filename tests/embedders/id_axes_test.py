from typing import Any

import numpy
import pytest
import torch

from elmo_scratch import Elmo
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder, TokenEncoder, WordEncoder

CHARACTERS = 5


def elmo_of(reads_characters: bool) -> Elmo:
    torch.manual_seed(13)
    encoder: TokenEncoder = WordEncoder(dim=4, num_words=20, begin_id=1, end_id=2)
    if reads_characters:
        encoder = CharCnnEncoder(dim=4, filters=[(1, 4)], max_characters_per_token=CHARACTERS)
    return Elmo(None, None, 1, module=BiLm(token_encoder=encoder, cell_size=6)).eval()


@pytest.mark.parametrize("reads_characters", [True, False])
@pytest.mark.parametrize("axes", [(4,), (2, 3), (1, 2, 3)])
def test_the_axes_before_the_tokens_are_sentences(axes: tuple, reads_characters: bool) -> None:
    elmo = elmo_of(reads_characters)
    ids = torch.randint(1, 20, (*axes, 7, CHARACTERS) if reads_characters else (*axes, 7))
    ids[..., 0, 5:] = 0
    together = elmo(ids)
    assert together["mask"].shape == (*axes, 7)
    alone = elmo(ids.flatten(0, len(axes) - 1))
    (vectors,), (expected,) = together["elmo_representations"], alone["elmo_representations"]
    assert torch.equal(vectors, expected.unflatten(0, axes))
    assert torch.equal(together["mask"], alone["mask"].unflatten(0, axes))


@pytest.mark.parametrize(
    "reads_characters, form", [(True, "batch, tokens, characters"), (False, "batch, tokens")]
)
def test_too_few_axes_are_an_error(reads_characters: bool, form: str) -> None:
    ids = torch.zeros((7, CHARACTERS) if reads_characters else (7,)).long()
    with pytest.raises(ValueError, match=rf"the shape \({form}\), but got \(7"):
        elmo_of(reads_characters)(ids)


@pytest.mark.parametrize("wrong", [[[[1, 2]]], numpy.ones((1, 2, 3))])
def test_what_is_no_tensor_is_an_error(wrong: Any) -> None:
    with pytest.raises(ValueError, match=f"ids in a tensor, .* a {type(wrong).__name__}$"):
        elmo_of(True)(wrong)
