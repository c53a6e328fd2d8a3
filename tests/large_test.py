import pytest
import torch

from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import WordEncoder

BATCH, TOKENS, DIM, WORDS = 2**13, 64, 1024, 50


@pytest.mark.large
def test_more_than_two_billion_numbers_are_the_right_ones() -> None:
    torch.manual_seed(13)
    encoder = WordEncoder(dim=DIM, num_words=WORDS, begin_id=1, end_id=2)
    bilm = BiLm(token_encoder=encoder, cell_size=4, num_layers=1).eval().requires_grad_(False)
    ids = torch.randint(3, WORDS, (BATCH, TOKENS))
    lengths = torch.randint(1, TOKENS + 1, (BATCH,))
    ids[torch.arange(TOKENS) >= lengths.unsqueeze(1)] = 0
    ids[-1] = 3
    with torch.inference_mode():
        layers = bilm(ids, ids > 0).layers
        assert layers.numel() > 2**31
        for row in (0, BATCH // 2, BATCH - 1):
            sentence = ids[row : row + 1, : int((ids[row] > 0).sum())]
            alone = bilm(sentence, sentence > 0).layers
            positions = alone.size(2)
            assert torch.allclose(layers[:, row : row + 1, :positions], alone, atol=1e-6)
            assert not layers[:, row, positions:].any()
