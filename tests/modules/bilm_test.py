import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import WordEncoder

WORDS, DIM, CELL, LAYERS = 13, 3, 7, 3
IDS = torch.tensor([[2, 3, 4, 5, 6], [7, 8, 9, 0, 0]])


@pytest.fixture
def bilm() -> BiLm:
    torch.manual_seed(13)
    encoder = WordEncoder(dim=DIM, num_words=WORDS, begin_id=11, end_id=12)
    return BiLm(token_encoder=encoder, cell_size=CELL, dropout=0.5).eval()


def test_axes_are_layers_batch_positions_width(bilm: BiLm) -> None:
    output = bilm(IDS, IDS > 0)
    assert output.layers.shape == (LAYERS, 2, 5 + 2, 2 * DIM)
    assert output.mask.tolist() == [[True] * 7, [True] * 5 + [False] * 2]
    assert (bilm.num_layers, bilm.dim, bilm.width) == (LAYERS, DIM, 2 * DIM)


def test_the_token_layer_is_each_tokens_vector_twice(bilm: BiLm) -> None:
    vectors = bilm.token_encoder(IDS, IDS > 0).vectors
    assert torch.equal(bilm(IDS, IDS > 0).layers[0], torch.cat([vectors, vectors], dim=-1))


def test_lstm_layers_are_the_two_stacks_side_by_side(bilm: BiLm) -> None:
    layers = bilm(IDS, IDS > 0).layers
    vectors = bilm.token_encoder(IDS, IDS > 0).vectors
    first = vectors[:1]  # the row that has no padding
    ahead, back = bilm.left_to_right(first), bilm.right_to_left(first.flip(1))
    for layer in (1, 2):
        expected = torch.cat([ahead[layer - 1], back[layer - 1].flip(1)], dim=-1)
        assert torch.allclose(layers[layer, :1], expected, atol=1e-6)


def test_the_right_to_left_stack_starts_at_a_sentences_own_end(bilm: BiLm) -> None:
    layers = bilm(IDS, IDS > 0).layers
    short = bilm.token_encoder(IDS, IDS > 0).vectors[1:, :5]  # three tokens and two marks
    back = bilm.right_to_left(short.flip(1))[-1].flip(1)
    assert torch.allclose(layers[-1, 1:, :5, DIM:], back, atol=1e-6)


@pytest.mark.parametrize("row, token", [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 2)])
def test_no_state_sees_what_it_must_predict(bilm: BiLm, row: int, token: int) -> None:
    changed = IDS.clone()
    changed[row, token] = 10
    before = bilm(IDS, IDS > 0).layers
    after = bilm(changed, IDS > 0).layers
    position, end = token + 1, int((IDS[row] > 0).sum()) + 2
    assert torch.equal(before[:, 1 - row], after[:, 1 - row])
    # Of shape (layers, positions): whether a state differs, one for each direction.
    ahead, back = (before[:, row] != after[:, row]).unflatten(-1, (2, DIM)).any(dim=-1).unbind(-1)
    assert not ahead[:, :position].any()
    assert not back[:, position + 1 :].any()
    # It isn't that nothing ever changes: every state that may see the token does see it.
    assert ahead[1:, position:end].all()
    assert back[1:, : position + 1].all()
    assert ahead[0].nonzero().tolist() == back[0].nonzero().tolist() == [[position]]


def test_a_sentence_alone_equals_itself_among_others(bilm: BiLm) -> None:
    alone = bilm(IDS[1:, :3], IDS[1:, :3] > 0).layers
    among = bilm(IDS, IDS > 0).layers[:, 1:, :5]
    padded = torch.nn.functional.pad(IDS, (0, 6))
    assert torch.allclose(alone, among, atol=1e-6)
    assert torch.allclose(alone, bilm(padded, padded > 0).layers[:, 1:, :5], atol=1e-6)
    assert torch.equal(alone[0], among[0])


def test_what_lies_under_the_padding_changes_no_bit(bilm: BiLm) -> None:
    littered = IDS.clone()
    littered[1, 3:] = 10
    assert torch.equal(bilm(IDS, IDS > 0).layers, bilm(littered, IDS > 0).layers)


def test_states_of_one_sentence_do_not_reach_the_next_batch(bilm: BiLm) -> None:
    first = bilm(IDS, IDS > 0).layers
    bilm(IDS.flip(1).roll(1, 0), torch.ones(2, 5).bool())
    assert torch.equal(bilm(IDS, IDS > 0).layers, first)


def test_masked_positions_are_zero(bilm: BiLm) -> None:
    output = bilm(IDS, IDS > 0)
    assert (output.layers[:, ~output.mask] == 0).all()
    assert (output.layers[:, output.mask] != 0).any(dim=-1).all()


def test_an_empty_sentence_is_its_two_marks(bilm: BiLm) -> None:
    ids = torch.stack([IDS[0], torch.zeros(5).long()])
    output = bilm(ids, ids > 0)
    assert output.mask[1].tolist() == [True] * 2 + [False] * 5
    assert (output.layers[:, 1, 2:] == 0).all()
    marks = bilm(torch.zeros(1, 0).long(), torch.zeros(1, 0).bool()).layers
    assert torch.allclose(output.layers[:, 1, :2], marks[:, 0], atol=1e-6)


def test_gradients_reach_every_parameter(bilm: BiLm) -> None:
    bilm(IDS, IDS > 0).layers[-1].pow(2).sum().backward()
    for name, parameter in bilm.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name


def test_the_directions_share_nothing_but_the_token_encoder(bilm: BiLm) -> None:
    ahead = {parameter.data_ptr() for parameter in bilm.left_to_right.parameters()}
    back = {parameter.data_ptr() for parameter in bilm.right_to_left.parameters()}
    assert len(ahead) == len(back) == 8
    assert not ahead & back


def test_names_of_its_tensors_are_a_file_format(bilm: BiLm) -> None:
    tensors = ("input_weight", "recurrent_weight", "bias", "projection_weight")
    assert set(bilm.state_dict()) == {"token_encoder.embedding.weight"} | {
        f"{direction}.layers.{layer}.{tensor}"
        for direction in ("left_to_right", "right_to_left")
        for layer in (0, 1)
        for tensor in tensors
    }


def test_it_is_built_from_a_config_and_the_sizes_of_a_vocabulary() -> None:
    config = {
        "token_encoder": {"type": "word", "dim": DIM},
        "cell_size": CELL,
        "num_layers": 4,
        "dropout": 0.25,
        "projection_clip": None,
    }
    bilm = BiLm.from_params(Params(config), num_words=WORDS, begin_id=11, end_id=12)
    assert bilm.num_layers == 5
    for stack in (bilm.left_to_right, bilm.right_to_left):
        assert stack.dropout.p == 0.25
        assert {layer.cell_clip for layer in stack.layers} == {3.0}
        assert {layer.projection_clip for layer in stack.layers} == {None}


def test_a_misspelled_setting_is_an_error() -> None:
    config = {"token_encoder": {"type": "word", "dim": DIM}, "cell_size": CELL, "cel_clip": 1.0}
    with pytest.raises(ConfigurationError, match="Extra parameters passed to BiLm.*cel_clip"):
        BiLm.from_params(Params(config), num_words=WORDS, begin_id=11, end_id=12)
