import copy
from typing import Any, Dict, List, Tuple

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules import BiLm
from elmo_scratch.modules.sequences import PackedVectors
from elmo_scratch.modules.token_encoders import EncodedTokens
from tests.kernels.frozen_weights import EACH_INDEPENDENT_PRECISION
from tests.modules.tiny_bilms import (
    CELL,
    DIM,
    WORDS,
    bilm_of,
    each_encoder,
    ids_for,
    read,
    read_alone,
)

LAYERS = 3
IDS = torch.tensor([[2, 3, 4, 5, 6], [7, 8, 9, 0, 0]])
NEXT_IDS = torch.tensor([[8, 0, 0, 0], [5, 5, 2, 10], [1, 2, 3, 0]])

PRECISIONS = ["float32", "bfloat16"]


def same_layers(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=0, atol=1e-6)


@each_encoder
def test_axes_are_layers_batch_positions_width(encoder: str) -> None:
    bilm = bilm_of(encoder)
    output = read(bilm, IDS)
    assert output.layers.shape == (LAYERS, 2, 5 + 2, 2 * DIM)
    assert output.mask.tolist() == [[True] * 7, [True] * 5 + [False] * 2]
    assert (bilm.num_layers, bilm.dim, bilm.width) == (LAYERS, DIM, 2 * DIM)


@each_encoder
@pytest.mark.parametrize("use_skip_connections", [True, False])
@pytest.mark.parametrize("cell_size", [CELL, DIM])
def test_layers_are_the_token_vectors_twice_and_the_two_stacks_side_by_side(
    encoder: str, use_skip_connections: bool, cell_size: int
) -> None:
    bilm = bilm_of(encoder, use_skip_connections=use_skip_connections, cell_size=cell_size)
    layers = read(bilm, IDS).layers
    # A stack that reads right to left starts at a sentence's own end.
    for row, positions in enumerate([7, 5]):
        assert same_layers(layers[:, row, :positions], read_alone(bilm, IDS[row]))


def test_without_skip_connections_a_layer_that_outputs_zeros_hands_nothing_on() -> None:
    for use_skip_connections in (True, False):
        bilm = bilm_of(use_skip_connections=use_skip_connections)
        for stack in (bilm.left_to_right, bilm.right_to_left):
            torch.nn.init.zeros_(stack.get_parameter("layers.1.projection_weight"))
        layers = read(bilm, IDS).layers
        assert layers[1].any()
        assert torch.equal(layers[2], layers[1] if use_skip_connections else layers[1] * 0)


@each_encoder
@pytest.mark.parametrize("matmul_dtype", PRECISIONS)
@pytest.mark.parametrize("row, token", [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 2)])
def test_no_state_sees_what_it_must_predict(
    encoder: str, matmul_dtype: str, row: int, token: int
) -> None:
    bilm = bilm_of(encoder, matmul_dtype=matmul_dtype).requires_grad_(False)
    changed = IDS.clone()
    changed[row, token] = 1
    before, after = read(bilm, IDS).layers, read(bilm, changed).layers
    position, end = token + 1, int((IDS[row] > 0).sum()) + 2
    assert torch.equal(before[:, 1 - row], after[:, 1 - row])
    # Of shape (layers, positions): whether a state differs, one for each direction.
    differs = (before[:, row] != after[:, row]).unflatten(-1, (2, DIM)).any(dim=-1)
    left_to_right, right_to_left = differs.unbind(-1)
    assert not left_to_right[:, :position].any()
    assert not right_to_left[:, position + 1 :].any()
    # It isn't that nothing ever changes: every state that may see the token does see it.
    assert left_to_right[1:, position:end].all()
    assert right_to_left[1:, : position + 1].all()
    for direction in (left_to_right, right_to_left):
        assert direction[0].nonzero().tolist() == [[position]]


@each_encoder
@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_sentence_alone_equals_itself_among_others(encoder: str, is_frozen: bool) -> None:
    bilm = bilm_of(encoder).requires_grad_(not is_frozen)
    alone = read(bilm, IDS[1:, :3]).layers
    assert same_layers(alone, read(bilm, IDS).layers[:, 1:, :5])
    padded = torch.nn.functional.pad(IDS, (0, 6))
    assert same_layers(alone, read(bilm, padded).layers[:, 1:, :5])
    many = torch.cat([NEXT_IDS, torch.nn.functional.pad(IDS[1:, :3], (0, 1)), NEXT_IDS])
    assert same_layers(alone, read(bilm, many).layers[:, 3:4, :5])


@each_encoder
@pytest.mark.parametrize("matmul_dtype", EACH_INDEPENDENT_PRECISION)
@pytest.mark.parametrize("cell_size", [CELL, 32])
def test_a_sentence_alone_equals_itself_among_others_to_the_bit(
    encoder: str, cell_size: int, matmul_dtype: str
) -> None:
    settings = {"cell_size": cell_size, "matmul_dtype": matmul_dtype}
    bilm = bilm_of(encoder, **settings).requires_grad_(False)
    many = torch.cat([NEXT_IDS, torch.nn.functional.pad(IDS[1:, :3], (0, 1)), NEXT_IDS])
    alone = read(bilm, IDS[1:, :3]).layers
    assert torch.equal(alone, read(bilm, many).layers[:, 3:4, :5])


@each_encoder
def test_what_lies_under_the_padding_changes_no_bit(encoder: str) -> None:
    bilm, littered = bilm_of(encoder), IDS.clone()
    littered[1, 3:] = 10
    output = bilm(ids_for(bilm, littered), IDS > 0)
    assert torch.equal(output.layers, read(bilm, IDS).layers)


@each_encoder
def test_masked_positions_are_zero(encoder: str) -> None:
    output = read(bilm_of(encoder), IDS)
    assert (output.layers[:, ~output.mask] == 0).all()
    assert (output.layers[:, output.mask] != 0).any(dim=-1).all()


@each_encoder
def test_an_empty_sentence_is_its_two_marks(encoder: str) -> None:
    bilm, ids = bilm_of(encoder), torch.stack([IDS[0], torch.zeros(5).long()])
    output = read(bilm, ids)
    assert output.mask[1].tolist() == [True] * 2 + [False] * 5
    assert (output.layers[:, 1, 2:] == 0).all()
    marks = read(bilm, torch.zeros(1, 0).long()).layers
    assert same_layers(output.layers[:, 1, :2], marks[:, 0])


@each_encoder
@pytest.mark.parametrize("state", ["reset", "carry"])
def test_a_batch_without_a_sentence_has_no_layers_of_one(encoder: str, state: str) -> None:
    output = read(bilm_of(encoder, state=state), torch.zeros(0, 5).long())
    assert output.layers.shape == (LAYERS, 0, 7, 2 * DIM)
    assert output.mask.shape == (0, 7)


@each_encoder
def test_a_mask_with_a_hole_is_an_error(encoder: str) -> None:
    bilm, ids = bilm_of(encoder), torch.tensor([[2, 3, 4], [5, 0, 6]])
    with pytest.raises(ValueError, match="real tokens of a row come before padding"):
        read(bilm, ids)


@each_encoder
def test_gradients_reach_every_parameter(encoder: str) -> None:
    bilm = bilm_of(encoder)
    read(bilm, IDS).layers[-1].pow(2).sum().backward()
    for name, parameter in bilm.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name


@pytest.mark.parametrize("is_trained, has_gradients", [(True, True), (False, True), (True, False)])
def test_freed_memory_is_kept_where_it_is_trained(
    is_trained: bool, has_gradients: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: List[None] = []
    monkeypatch.setattr(
        "elmo_scratch.kernels.lstm.function.release_spare_pages", lambda: calls.append(None)
    )
    bilm = bilm_of().requires_grad_(is_trained)
    with torch.set_grad_enabled(has_gradients):
        read(bilm, IDS)
    assert bool(calls) == (is_trained and has_gradients)


@each_encoder
def test_bfloat16_is_close_to_float32(encoder: str) -> None:
    found = []
    for matmul_dtype in PRECISIONS:
        bilm = bilm_of(encoder, matmul_dtype=matmul_dtype, cell_size=17)
        layers = read(bilm, IDS).layers
        names = [f"layers.0.{name}_weight" for name in ("input", "recurrent", "projection")]
        asking = [bilm.left_to_right.get_parameter(name) for name in names]
        gradients = torch.autograd.grad(layers.square().sum(), asking)
        assert {part.dtype for part in (layers, *gradients)} == {torch.float32}
        assert {parameter.dtype for parameter in bilm.parameters()} == {torch.float32}
        found.append([*layers.detach(), *gradients])
    for exact, rounded in zip(*found, strict=True):
        assert torch.cosine_similarity(exact.flatten(), rounded.flatten(), dim=0) >= 0.999
    assert not torch.equal(found[0][-1], found[1][-1])


@pytest.mark.parametrize("dropout, recurrent_dropout", [(0.5, 0.0), (0.0, 0.5)])
def test_in_training_inputs_and_outputs_are_dropped(
    dropout: float, recurrent_dropout: float
) -> None:
    bilm = bilm_of(dropout=dropout, recurrent_dropout=recurrent_dropout)
    evaluated = read(bilm, IDS).layers
    trained = read(bilm.train(), IDS).layers
    assert torch.equal(trained[0], evaluated[0])
    assert not same_layers(trained[1], evaluated[1])


@each_encoder
def test_vectors_of_tokens_can_be_read_by_themselves(encoder: str) -> None:
    bilm = bilm_of(encoder)
    vectors, mask = bilm.token_encoder(ids_for(bilm, IDS), IDS > 0)
    littered = EncodedTokens(vectors.masked_fill(~mask.unsqueeze(-1), 5.0), mask)
    assert torch.equal(bilm.read_tokens(littered).output.layers, read(bilm, IDS).layers)


def test_the_directions_share_nothing_but_the_token_encoder() -> None:
    bilm = bilm_of()
    left_to_right = {parameter.data_ptr() for parameter in bilm.left_to_right.parameters()}
    right_to_left = {parameter.data_ptr() for parameter in bilm.right_to_left.parameters()}
    assert len(left_to_right) == len(right_to_left) == 8
    assert not left_to_right & right_to_left


@pytest.mark.parametrize("state", ["reset", "carry", "warm"])
def test_names_of_its_tensors_are_a_file_format(state: str) -> None:
    tensors = ("input_weight", "recurrent_weight", "bias", "projection_weight")
    warm = {"state_memory.hidden", "state_memory.cell"} if state == "warm" else set()
    assert set(bilm_of(state=state).state_dict()) == warm | {"token_encoder.embedding.weight"} | {
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
        "locked_dropout": True,
        "recurrent_dropout": 0.125,
        "recurrent_weight_dropout": 0.375,
        "word_dropout": 0.0625,
        "projection_clip": None,
        "use_skip_connections": False,
        "state": "carry",
    }
    bilm = BiLm.from_params(Params(config), num_words=WORDS, begin_id=11, end_id=12)
    assert (bilm.num_layers, bilm.state_memory.state) == (5, "carry")
    assert bilm.word_dropout.p == 0.0625
    for stack in (bilm.left_to_right, bilm.right_to_left):
        assert (stack.dropout.p, stack.use_skip_connections) == (0.25, False)
        assert stack.locked_dropout
        for layer in stack.layers:
            assert (layer.cell_clip, layer.projection_clip) == (3.0, None)
            assert (layer.recurrent_dropout, layer.weight_dropout.p) == (0.125, 0.375)


@pytest.mark.parametrize("setting", ["state", "matmul_dtype"])
def test_a_setting_that_there_is_not_is_an_error(setting: str) -> None:
    with pytest.raises(ValueError, match=f"expected a `{setting}` among .*, but got 'none'"):
        bilm_of(**{setting: "none"})


@pytest.mark.parametrize(
    "settings",
    [
        {"num_layers": 0},
        {"cell_size": 0},
        {"cell_size": -4},
        {"cell_clip": 0.0},
        {"projection_clip": -3.0},
        {"recurrent_dropout": -0.1},
        {"recurrent_dropout": 1.0},
    ],
)
def test_a_setting_that_would_ruin_it_is_an_error(settings: Dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(ValueError, match=f"expected `{name}` "):
        bilm_of(**settings)


def test_a_misspelled_setting_is_an_error() -> None:
    config = {"token_encoder": {"type": "word", "dim": DIM}, "cell_size": CELL, "cel_clip": 1.0}
    with pytest.raises(
        ConfigurationError, match="cel_clip: BiLm has no such setting. Did you mean 'cell_clip'"
    ):
        BiLm.from_params(Params(config), num_words=WORDS, begin_id=11, end_id=12)


def test_reset_states_do_not_reach_the_next_batch() -> None:
    bilm = bilm_of()
    first = read(bilm, IDS).layers
    read(bilm, NEXT_IDS)
    assert torch.equal(read(bilm, IDS).layers, first)


@each_encoder
def test_carried_each_row_is_read_on_from_where_the_row_before_ended(encoder: str) -> None:
    bilm = bilm_of(encoder, state="carry")
    read(bilm, IDS)
    layers = read(bilm, NEXT_IDS).layers
    for row, (before, positions) in enumerate([([IDS[0]], 3), ([IDS[1]], 6), ([], 5)]):
        expected = read_alone(bilm, *before, NEXT_IDS[row])
        assert same_layers(layers[:, row, :positions], expected)
    # A row that the next batch doesn't have waits for one that does.
    read(bilm, IDS[:1])
    expected = read_alone(bilm, IDS[1], NEXT_IDS[1], IDS[1])
    assert same_layers(read(bilm, IDS).layers[:, 1, :5], expected)
    bilm.reset_states()
    assert same_layers(read(bilm, IDS).layers[:, 0], read_alone(bilm, IDS[0]))


def test_allennlps_name_for_carried_states() -> None:
    bilm = bilm_of(state="carry")
    assert bilm.stateful
    first = read(bilm, IDS).layers
    bilm.stateful = False
    assert not bilm.stateful
    for _ in range(2):
        assert torch.equal(read(bilm, IDS).layers, first)
    bilm.stateful = True
    read(bilm, IDS)
    assert not torch.equal(read(bilm, IDS).layers, first)


@each_encoder
def test_warmed_up_every_sentence_starts_where_the_last_of_a_text_ended(encoder: str) -> None:
    bilm = bilm_of(encoder, state="warm")
    bilm.warm_up([(ids_for(bilm, NEXT_IDS), NEXT_IDS > 0)])
    for _ in range(2):
        layers = read(bilm, IDS).layers
        for row, positions in enumerate([7, 5]):
            expected = read_alone(bilm, *NEXT_IDS, IDS[row])
            assert same_layers(layers[:, row, :positions], expected)
    carrying = bilm_of(encoder, state="carry")
    for row in NEXT_IDS:
        read(carrying, row[row > 0].unsqueeze(0))
    assert same_layers(read(carrying, IDS[:1]).layers, layers[:, :1])


def test_nothing_is_dropped_while_it_warms_up() -> None:
    still, training = (bilm_of(state="warm") for _ in range(2))
    training.left_to_right.dropout.p = training.right_to_left.dropout.p = 0.5
    still.warm_up([(NEXT_IDS, NEXT_IDS > 0)])
    training.train().warm_up([(NEXT_IDS, NEXT_IDS > 0)])
    assert training.training
    assert torch.equal(read(training.eval(), IDS).layers, read(still.eval(), IDS).layers)


def test_the_warm_state_is_kept_with_the_weights() -> None:
    bilm, loaded = bilm_of(state="warm"), bilm_of(state="warm")
    bilm.warm_up([(NEXT_IDS, NEXT_IDS > 0)])
    loaded.load_state_dict(bilm.state_dict())
    assert torch.equal(read(loaded, IDS).layers, read(bilm, IDS).layers)
    doubled = read(loaded.double(), IDS).layers
    assert same_layers(doubled.float(), read(bilm, IDS).layers)


def test_it_reads_from_where_it_is_told_and_remembers_nothing() -> None:
    bilm, told = bilm_of(state="carry"), bilm_of()
    read(bilm, IDS)
    start = bilm.state_memory.carried()
    assert start is not None
    for _ in range(2):
        ends = told.read_tokens(told.token_encoder(IDS, IDS > 0), start)
    assert torch.equal(ends.output.layers, read(bilm, IDS).layers)
    carried = bilm.state_memory.carried()
    assert carried is not None
    assert all(torch.equal(*parts) for parts in zip(ends.state, carried, strict=True))


def test_it_can_be_given_another_state() -> None:
    bilm = bilm_of(state="reset")
    bilm.use_state("carry")
    first = read(bilm, IDS).layers
    assert not torch.equal(read(bilm, IDS).layers, first)
    bilm.use_state("reset")
    assert torch.equal(read(bilm, IDS).layers, first)
    bilm.double().use_state("warm")
    with pytest.raises(ValueError, match="`warm` state is not known yet"):
        read(bilm, IDS)
    bilm.warm_up([(NEXT_IDS, NEXT_IDS > 0)])
    assert bilm.state_memory.hidden.dtype == torch.double
    with pytest.raises(ValueError, match="expected a `state` among .*, but got 'none'"):
        bilm.use_state("none")


def test_a_state_that_it_has_already_stays_as_it_is() -> None:
    warm, carrying = bilm_of(state="warm"), bilm_of(state="carry")
    warm.warm_up([(NEXT_IDS, NEXT_IDS > 0)])
    for bilm in (warm, carrying):
        read(bilm, IDS)
        other = copy.deepcopy(bilm)
        other.use_state(other.state_memory.state)
        assert torch.equal(read(other, IDS).layers, read(bilm, IDS).layers)


def test_a_bilm_that_is_cold_is_an_error() -> None:
    with pytest.raises(ValueError, match="`warm` state is not known yet"):
        read(bilm_of(state="warm"), IDS)
    with pytest.raises(ValueError, match="at least one sentence to warm up with"):
        bilm_of(state="warm").warm_up([(IDS[:0], IDS[:0] > 0)])
    with pytest.raises(ValueError, match="only a biLM whose `state` is `warm`.*'carry'"):
        bilm_of(state="carry").warm_up([(IDS, IDS > 0)])


WINDOW = 3
"""Positions of a window of running text."""


def read_running_text(bilm: BiLm, size: int) -> Tuple[torch.Tensor, torch.Tensor]:
    """The last layer of each direction over two rows of running text, read in windows."""
    torch.manual_seed(7)
    left_to_right, right_to_left = torch.randn(2, 2, 8, DIM)
    mask = torch.tensor([[True] * 8, [True] * 5 + [False] * 3])
    state = bilm.new_state_memory("carry").zeros(left_to_right, 2)
    tops = []
    for window in torch.arange(8).split(size):
        read = bilm.read_windows(
            left_to_right[:, window], right_to_left[:, window], mask[:, window], state
        )
        state = read.state
        tops.append(torch.stack([read.left_to_right, read.right_to_left]))
    whole = torch.cat(tops, dim=2)
    assert not whole[:, ~mask].any()
    return whole[0], whole[1]


def test_running_text_does_not_depend_on_where_it_is_cut() -> None:
    bilm = bilm_of().requires_grad_(False)
    whole = read_running_text(bilm, 8)
    for size in (1, WINDOW, 5):
        for ours, expected in zip(read_running_text(bilm, size), whole):
            assert torch.allclose(ours, expected, rtol=0, atol=1e-6)


def test_each_direction_reads_running_text_in_the_order_it_is_given() -> None:
    bilm = bilm_of().requires_grad_(False)
    torch.manual_seed(7)
    left_to_right, right_to_left = torch.randn(2, 2, 8, DIM)
    widths = [2] * 8
    for direction, vectors in ((0, left_to_right), (1, right_to_left)):
        stack = (bilm.left_to_right, bilm.right_to_left)[direction]
        expected = stack(PackedVectors(vectors.transpose(0, 1).flatten(0, 1), widths)).layers[-1]
        read = read_running_text(bilm, 8)[direction]
        assert torch.allclose(read[0], expected.view(8, 2, DIM)[:, 0], rtol=0, atol=1e-6)
