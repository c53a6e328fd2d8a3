from typing import Any

import numpy
import pytest
import torch

from elmo_scratch.embedders.elmo import FlatSentences


@pytest.mark.parametrize("axes", [(4,), (2, 3), (1, 2, 3)])
def test_the_axes_before_the_tokens_become_one(axes: tuple) -> None:
    characters = torch.arange(7 * 5).expand(*axes, -1).reshape(*axes, 7, 5)
    words = torch.arange(7).expand(*axes, 7)
    flat = FlatSentences.of(characters, words, 3)
    assert flat.axes == axes
    assert torch.equal(flat.inputs.unflatten(0, axes), characters)
    assert flat.word_inputs is not None
    assert torch.equal(flat.word_inputs.unflatten(0, axes), words)
    flat = FlatSentences.of(words, None, 2)
    assert flat.axes == axes and flat.word_inputs is None
    assert torch.equal(flat.inputs.unflatten(0, axes), words)


@pytest.mark.parametrize("id_axes, form", [(3, "batch, tokens, characters"), (2, "batch, tokens")])
def test_too_few_axes_are_an_error(id_axes: int, form: str) -> None:
    with pytest.raises(ValueError, match=rf"the shape \({form}\), but got \(7"):
        FlatSentences.of(torch.zeros((7, 5)[: id_axes - 1]), None, id_axes)


@pytest.mark.parametrize("wrong", [[[[1, 2]]], numpy.ones((1, 2, 3))])
def test_what_is_no_tensor_is_an_error(wrong: Any) -> None:
    with pytest.raises(ValueError, match=f"ids in a tensor, .* a {type(wrong).__name__}$"):
        FlatSentences.of(wrong, None, 3)
