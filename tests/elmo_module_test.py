"""An `Elmo` over a module in place of the official files."""

from pathlib import Path
from typing import Any, Dict

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.elmo import _ElmoBiLm

from elmo_scratch import Elmo, batch_to_ids, read_official_bilm
from elmo_scratch.interop import read_bilm_archive
from tests.tiny_elmo import (
    SENTENCES,
    WIDTH,
    OfficialFiles,
    vocabulary_of,
    word_ids,
)

IDS = batch_to_ids(SENTENCES)


class Counting(torch.nn.Module):
    """The least that can stand in for a biLM: its vectors are the ids of first characters."""

    num_layers = 2

    mask_type = torch.bool

    def get_output_dim(self) -> int:
        return 1

    def forward(self, inputs: torch.Tensor, word_inputs: Any = None) -> Dict[str, Any]:
        ids = torch.nn.functional.pad(inputs[:, :, :1].float(), (0, 0, 1, 1))
        mask = torch.arange(inputs.size(1) + 2) < (inputs[:, :, 0] > 0).sum(1, keepdim=True) + 2
        return {"activations": [ids, 3 * ids], "mask": mask.to(self.mask_type)}


def test_any_module_can_stand_in_for_the_bilm() -> None:
    output = Elmo(None, None, 1, module=Counting()).eval()(torch.tensor([[[5], [2]], [[7], [0]]]))
    assert output["elmo_representations"][0].flatten().tolist() == [10, 4, 14, 0]
    assert output["mask"].tolist() == [[True, True], [True, False]]


@pytest.mark.parametrize("do_layer_norm", [False, True])
def test_a_modules_mask_may_be_of_whole_numbers(do_layer_norm: bool) -> None:
    ids = torch.tensor([[[5], [2]], [[7], [0]]])
    module = Counting()
    elmo = Elmo(None, None, 1, module=module, do_layer_norm=do_layer_norm).eval()
    expected = elmo(ids)["elmo_representations"][0]
    module.mask_type = torch.int64
    assert torch.equal(elmo(ids)["elmo_representations"][0], expected)
    assert elmo(ids)["mask"].dtype == torch.bool


def test_a_bilm_can_be_given(files: OfficialFiles) -> None:
    bilm = read_official_bilm(*files, state="reset")
    elmo = Elmo(None, None, 2, module=bilm, vocab_to_cache=vocabulary_of([SENTENCES])).eval()
    assert elmo.bilm is bilm
    assert [one.shape for one in elmo(IDS)["elmo_representations"]] == [(2, 7, WIDTH)] * 2
    assert all(parameter.requires_grad for parameter in bilm.parameters())
    (expected,) = files.ours()(IDS)["elmo_representations"]
    zeros, words = torch.zeros_like(IDS), word_ids(SENTENCES, vocabulary_of([SENTENCES]))
    for representation in elmo(zeros, words)["elmo_representations"]:
        assert torch.allclose(representation, expected, atol=1e-6)


def test_what_only_a_bilm_of_ours_can_do_is_an_error_with_another(files: OfficialFiles) -> None:
    for module in (_ElmoBiLm(*files), Counting()):
        elmo = Elmo(None, None, 1, module=module)
        with pytest.raises(ConfigurationError, match="expected a `BiLm`, but `module` is a"):
            elmo.reset_states()
        with pytest.raises(ConfigurationError, match="expected a biLM that encodes characters"):
            elmo.warm_up([["word"]])


class Listening(Counting):
    """Remembers what it was asked for."""

    def forward(self, inputs: torch.Tensor, word_inputs: Any = None) -> Dict[str, Any]:
        self.asked = (inputs, word_inputs)
        return super().forward(inputs.view(*inputs.shape[:2], -1), word_inputs)


def test_a_module_of_another_kind_gets_the_ids_of_words() -> None:
    for vocabulary in (None, ["", "word"]):
        module, words = Listening(), torch.tensor([[[1, 1], [1, 0]], [[0, 0], [1, 0]]])
        elmo = Elmo(None, None, 1, module=module, vocab_to_cache=vocabulary).eval()
        output = elmo(words, words)
        assert [one.tolist() for one in module.asked] == [words.flatten(0, 1).tolist()] * 2
        assert output["mask"].shape == (2, 2, 2)
        elmo(words.unsqueeze(-1), words)
        assert module.asked[0].shape == (4, 2, 1)


def test_a_frozen_bilm_drops_nothing(bilm_archive: Path) -> None:
    bilm = read_bilm_archive(bilm_archive).bilm
    bilm.use_state("reset")
    ids = torch.tensor([[3, 4, 5], [6, 7, 0]])
    for is_trained in (False, True):
        elmo = Elmo(None, None, 1, module=bilm.requires_grad_(is_trained), dropout=0.0).train()
        assert elmo.training and bilm.training == is_trained
        one, other = (elmo(ids)["elmo_representations"][0] for _ in range(2))
        assert torch.equal(one, other) != is_trained
