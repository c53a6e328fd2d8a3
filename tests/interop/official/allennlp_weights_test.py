import torch

from elmo_scratch.interop.official.files import bilm_weights, mix_weights

PARTS = ("transform", "carry")


def test_gates_are_put_in_the_originals_order() -> None:
    i, f, j, o = (torch.full((2, 3), float(number)) for number in range(4))
    theirs = {
        "_elmo_lstm.backward_layer_1.input_linearity.weight": torch.cat([i, f, j, o]),
        "_elmo_lstm.backward_layer_1.state_linearity.bias": torch.cat([i, f, j, o])[:, 0],
    }
    ours = bilm_weights(theirs)
    assert list(ours) == ["right_to_left.layers.1.input_weight", "right_to_left.layers.1.bias"]
    assert torch.equal(ours["right_to_left.layers.1.input_weight"], torch.cat([i, j, f, o]))
    # The forget gate's constant is no part of the bias here.
    assert ours["right_to_left.layers.1.bias"].tolist() == [0, 0, 2, 2, 0, 0, 3, 3]


def test_the_gate_of_a_highway_is_turned_round() -> None:
    both = torch.arange(8.0).view(4, 2)
    ours = bilm_weights({"_token_embedder._highways._layers.0.weight": both})
    assert ours.keys() == {f"token_encoder.highways.0.{part}.weight" for part in PARTS}
    assert torch.equal(ours["token_encoder.highways.0.transform.weight"], both[:2])
    assert torch.equal(ours["token_encoder.highways.0.carry.weight"], -both[2:])


def test_filters_lie_character_by_character() -> None:
    theirs = torch.arange(12.0).view(2, 2, 3)  # (filters, c, width)
    ours = bilm_weights({"_token_embedder.char_conv_2.weight": theirs})
    (weight,) = ours.values()
    assert list(ours) == ["token_encoder.convolution.convolutions.2.weight"]
    assert weight[0].tolist() == [0, 3, 1, 4, 2, 5]


def test_cached_vectors_are_left_out_and_unknown_names_stay() -> None:
    ours = bilm_weights({"_word_embedding.weight": torch.zeros(2, 3), "other": torch.ones(1)})
    assert list(ours) == ["other"]


def test_projections_that_change_nothing_are_left_out_and_others_stay() -> None:
    state, filters = "_elmo_lstm.forward_layer_0.state_projection", "_token_embedder._projection"
    theirs = {
        f"{state}.weight": torch.eye(3),
        f"{filters}.weight": torch.eye(2),
        f"{filters}.bias": torch.zeros(2),
    }
    assert bilm_weights(theirs) == {}
    changed = {f"{state}.weight": torch.eye(3) * 2, f"{filters}.bias": torch.ones(2)}
    assert list(bilm_weights({**theirs, **changed})) == [
        "left_to_right.layers.0.projection_weight",
        "token_encoder.projection.weight",
        "token_encoder.projection.bias",
    ]


def test_a_mix_has_its_weights_in_one_tensor() -> None:
    theirs = {f"scalar_parameters.{n}": torch.tensor([float(n)]) for n in range(11)}
    ours = mix_weights({"gamma": torch.tensor([0.5]), **theirs})
    assert ours["weights"].tolist() == list(range(11))
    assert ours["gamma"].shape == ()
    assert ours["gamma"].item() == 0.5
