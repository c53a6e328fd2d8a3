from typing import Dict, List

import pytest
import torch

from elmo_scratch.modules import BiLm, predict_windows
from tests.modules.tiny_bilms import DIM, bilm_of, each_encoder, ids_for, read

BEGIN, END, SEED = 11, 12, 5
IDS = torch.tensor([[2, 3, 2, 4, 3, 5], [5, 2, 6, 7, 0, 0]])
WINDOWS = {
    # Two of the words have the same id.
    "words": torch.tensor([BEGIN, END, 2, 3, 5, 5]),
    "left_to_right": torch.tensor([[0, 2, 3, 4, 1, 0, 2], [5, 2, 1, 0, 3, 1, 0]]),
    "right_to_left": torch.tensor([[1, 3, 2, 3, 0, 1, 5], [4, 3, 0, 1, 2, 3, 0]]),
    "left_to_right_targets": torch.ones(2, 7, dtype=torch.long),
    "right_to_left_targets": torch.ones(2, 7, dtype=torch.long),
    "mask": torch.ones(2, 7, dtype=torch.bool),
}


def scales_of(bilm: BiLm, windows: bool) -> List[List[float]]:
    """
    What each vector is multiplied with on its way to the LSTMs, in the order of reading: left to
    right, then right to left.
    """
    found: List[List[float]] = []
    handles = [
        stack.register_forward_pre_hook(lambda _, given: found.append(given[0].vectors))
        for stack in (bilm.left_to_right, bilm.right_to_left)
    ]
    read_windows(bilm) if windows else read(bilm, IDS)
    twin_found, found[:] = list(found), []
    mode = bilm.training
    bilm.eval()
    read_windows(bilm) if windows else read(bilm, IDS)
    bilm.train(mode)
    for handle in handles:
        handle.remove()
    return [(ours / whole)[:, 0].tolist() for ours, whole in zip(twin_found, found, strict=True)]


def read_windows(bilm: BiLm) -> None:
    given: Dict[str, torch.Tensor] = dict(WINDOWS)
    if bilm.token_encoder.reads_characters:
        # The marks are written otherwise than their ids say, and so are known by these alone.
        given["characters"] = ids_for(bilm, WINDOWS["words"].clamp(max=9))
    memory = bilm.new_state_memory("carry")
    predict_windows(bilm, given, memory, torch.tensor(BEGIN), torch.tensor(END))


def words_in_order(direction: int, windows: bool) -> List[int]:
    if windows:
        rows = WINDOWS[("left_to_right", "right_to_left")[direction]]
        return WINDOWS["words"][rows].t().flatten().tolist()
    sentences = [[BEGIN, *(word for word in row if word), END] for row in IDS.tolist()]
    if direction:
        sentences = [sentence[::-1] for sentence in sentences]
    longest = max(map(len, sentences))
    return [one[step] for step in range(longest) for one in sentences if step < len(one)]


@pytest.mark.parametrize("windows", [False, True])
@each_encoder
def test_a_word_is_dropped_wherever_it_stands_and_marks_never(encoder: str, windows: bool) -> None:
    bilm = bilm_of(encoder, dropout=0.0, word_dropout=0.5).train()
    dropped = set()
    for seed in range(20):
        torch.manual_seed(seed)
        by_word: Dict[int, float] = {BEGIN: 1.0, END: 1.0}
        for direction, scales in enumerate(scales_of(bilm, windows)):
            for word, scale in zip(words_in_order(direction, windows), scales, strict=True):
                assert by_word.setdefault(word, scale) == pytest.approx(scale, abs=1e-4)
                assert word in (BEGIN, END) or scale == pytest.approx(2.0, abs=1e-4) or scale == 0
        dropped.add(tuple(word for word, scale in by_word.items() if scale == 0))
    # Each draw has words of its own.
    assert len(dropped) > 3


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("share, is_trained", [(0.5, False), (0.0, True)])
def test_without_word_dropout_all_words_are_read(
    share: float, is_trained: bool, windows: bool
) -> None:
    bilm = bilm_of(dropout=0.0, word_dropout=share).train(is_trained)
    before = torch.get_rng_state()
    for scales in scales_of(bilm, windows):
        assert set(scales) == {1.0}
    assert torch.equal(torch.get_rng_state(), before)


def test_the_token_layer_stays_whole() -> None:
    bilm = bilm_of(dropout=0.0, word_dropout=0.5)
    whole = read(bilm, IDS).layers
    torch.manual_seed(SEED)
    dropped = read(bilm.train(), IDS).layers
    assert torch.equal(dropped[0], whole[0])
    assert not torch.allclose(dropped[1], whole[1], atol=1e-3)
    torch.manual_seed(SEED)
    assert torch.equal(read(bilm, IDS).layers, dropped)


def test_a_word_that_is_dropped_has_no_gradient() -> None:
    bilm = bilm_of(dropout=0.0, word_dropout=0.5).train()
    torch.manual_seed(SEED)
    scales = bilm.word_scales(torch.arange(2, 8))
    torch.manual_seed(SEED)
    # The same words in the same order, so that the same are drawn.
    read(bilm, torch.arange(2, 8).unsqueeze(0)).layers[-1].square().sum().backward()
    gradients = bilm.get_parameter("token_encoder.embedding.weight").grad
    assert gradients is not None and 0 < int((scales == 0).sum()) < 6
    assert torch.equal(gradients[2:8].any(dim=1), scales > 0)


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_share_out_of_range_is_an_error(share: float) -> None:
    with pytest.raises(ValueError, match="expected `word_dropout` from 0 on and below 1"):
        bilm_of(word_dropout=share)


def test_no_word_is_no_draw() -> None:
    assert bilm_of(word_dropout=0.5).train().word_scales(torch.zeros(0).long()).shape == (0,)
    empty = torch.zeros(1, 0, dtype=torch.long)
    assert read(bilm_of(word_dropout=0.5).train(), empty).layers.shape == (3, 1, 2, 2 * DIM)
