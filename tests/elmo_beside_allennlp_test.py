"""The same calls of this package's `Elmo` and of AllenNLP's give the same, to the last digits."""

import inspect
from typing import Any, Dict, List, Sequence, cast

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.modules import FeedForward
from allennlp.modules.elmo import Elmo as AllenNlpElmo
from allennlp.modules.elmo import _ElmoBiLm
from allennlp.modules.seq2seq_encoders import PytorchSeq2SeqWrapper
from allennlp.modules.text_field_embedders import BasicTextFieldEmbedder
from allennlp.modules.token_embedders import Embedding
from allennlp.nn import Activation
from allennlp_models.classification import BiattentiveClassificationNetwork

from elmo_scratch import Elmo, batch_to_ids, read_official_bilm
from tests.tiny_elmo import (
    BATCHES,
    NUM_LAYERS,
    SENTENCES,
    WIDTH,
    OfficialFiles,
    vocabulary_of,
    word_ids,
)

Output = Dict[str, Any]


def assert_same(ours: Output, theirs: Output, only_real: bool = False) -> None:
    """Equal masks and, at all positions or at the real ones, equal representations."""
    assert list(ours) == list(theirs) == ["elmo_representations", "mask"]
    assert ours["mask"].dtype == theirs["mask"].dtype == torch.bool
    assert torch.equal(ours["mask"], theirs["mask"])
    assert len(ours["elmo_representations"]) == len(theirs["elmo_representations"])
    for one, other in zip(ours["elmo_representations"], theirs["elmo_representations"]):
        assert one.shape == other.shape
        assert one.dtype == other.dtype == torch.float32
        if only_real:
            one, other = one[ours["mask"]], other[ours["mask"]]
        assert torch.allclose(one, other, atol=1e-5)
        assert len(one) == 0 or one.abs().max() > 0.5


def assert_same_over_batches(
    ours: torch.nn.Module,
    theirs: torch.nn.Module,
    batches: Sequence[Sequence[torch.Tensor]],
    only_real: bool = False,
) -> None:
    """The same for one batch after the other, the states carried on."""
    for inputs in batches:
        assert_same(ours(*inputs), theirs(*inputs), only_real)


def test_arguments_and_defaults_are_those_of_allennlp() -> None:
    ours = inspect.signature(Elmo.__init__).parameters
    theirs = inspect.signature(AllenNlpElmo.__init__).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    assert {name: ours[name].default for name in theirs} == {
        name: parameter.default for name, parameter in theirs.items()
    }
    for function in (Elmo.forward, AllenNlpElmo.forward):
        assert list(inspect.signature(function).parameters)[1:] == ["inputs", "word_inputs"]


def test_states_are_reset_by_the_names_that_they_have_in_allennlp(files: OfficialFiles) -> None:
    ids = batch_to_ids([["A", "river", "rose"], ["It", "fell"]])
    for kind in (Elmo, AllenNlpElmo):
        elmo: Any = kind(*files, 1).eval()
        first, carried = (elmo(ids)["elmo_representations"][0] for _ in range(2))
        assert not torch.allclose(carried, first, atol=1e-4)
        elmo._elmo_lstm._elmo_lstm.reset_states()
        torch.testing.assert_close(elmo(ids)["elmo_representations"][0], first)
        assert elmo._elmo_lstm._elmo_lstm.stateful
        elmo._elmo_lstm._elmo_lstm.stateful = False
        for _ in range(2):
            torch.testing.assert_close(elmo(ids)["elmo_representations"][0], first)


def test_each_mix_has_the_name_that_it_has_in_allennlp(files: OfficialFiles) -> None:
    ours: Any = Elmo(*files, 2)
    theirs: Any = AllenNlpElmo(*files, 2)
    for elmo in (ours, theirs):
        torch.nn.init.constant_(elmo.scalar_mix_1.gamma, 3.0)
        penalty = sum(weight.square().sum() for weight in elmo.scalar_mix_0.scalar_parameters)
        assert penalty.requires_grad and not penalty
    assert [elmo.scalar_mix_1.gamma.item() for elmo in (ours, theirs)] == [3.0, 3.0]
    assert len(ours.scalar_mix_0.scalar_parameters) == NUM_LAYERS
    for elmo in (ours, theirs):
        assert not hasattr(elmo, "scalar_mix_2")


def characters() -> List[List[torch.Tensor]]:
    return [[batch_to_ids(batch)] for batch in BATCHES]


def characters_and_words(vocabulary: Sequence[str]) -> List[List[torch.Tensor]]:
    return [[batch_to_ids(batch), word_ids(batch, vocabulary)] for batch in BATCHES]


@pytest.mark.parametrize("num_output_representations", [1, 2, 3])
@pytest.mark.parametrize("keep_sentence_boundaries", [False, True])
def test_batches_one_after_the_other(
    files: OfficialFiles, num_output_representations: int, keep_sentence_boundaries: bool
) -> None:
    arguments = (num_output_representations,)
    settings = {"keep_sentence_boundaries": keep_sentence_boundaries}
    assert_same_over_batches(
        files.ours(*arguments, **settings), files.theirs(*arguments, **settings), characters()
    )


def test_the_states_that_are_carried_matter_here(files: OfficialFiles) -> None:
    # Otherwise the tests over batches would show less than they seem to.
    carried, fresh = files.ours(), files.ours()
    for (ids,) in characters()[:3]:
        carried(ids)
    (ids,) = characters()[3]
    one, other = carried(ids)["elmo_representations"][0], fresh(ids)["elmo_representations"][0]
    assert (one - other).abs().max() > 0.05


def test_layer_norm(files: OfficialFiles) -> None:
    settings = {"do_layer_norm": True}
    assert_same_over_batches(files.ours(**settings), files.theirs(**settings), characters())


def test_layer_norm_with_sentence_boundaries(files: OfficialFiles) -> None:
    settings = {"do_layer_norm": True, "keep_sentence_boundaries": True}
    # AllenNLP's padding is not zero here.
    assert_same_over_batches(
        files.ours(**settings), files.theirs(**settings), characters(), only_real=True
    )


@pytest.mark.parametrize("parameters", [[0.3, -1.2, 2.0], [-9e10, 1, -9e10], [0.0, 0.0, 0.0]])
@pytest.mark.parametrize("do_layer_norm", [False, True])
def test_mixes_with_given_weights(
    files: OfficialFiles, parameters: List[float], do_layer_norm: bool
) -> None:
    settings: Dict[str, Any] = {
        "scalar_mix_parameters": parameters,
        "do_layer_norm": do_layer_norm,
    }
    ours, theirs = files.ours(2, **settings), files.theirs(2, **settings)
    assert_same_over_batches(ours, theirs, characters())
    assert not any(weight.requires_grad for weight in [*ours.parameters(), *theirs.parameters()])


@pytest.mark.parametrize("do_layer_norm", [False, True])
def test_words_whose_vectors_were_computed_ahead(files: OfficialFiles, do_layer_norm: bool) -> None:
    vocabulary = vocabulary_of(BATCHES)
    settings: Dict[str, Any] = {"vocab_to_cache": vocabulary, "do_layer_norm": do_layer_norm}
    ours, theirs = files.ours(**settings), files.theirs(**settings)
    assert_same_over_batches(ours, theirs, characters_and_words(vocabulary))
    assert_same_over_batches(ours, theirs, characters())


def test_words_by_their_ids_alone(files: OfficialFiles) -> None:
    vocabulary = vocabulary_of(BATCHES)
    settings: Dict[str, Any] = {"vocab_to_cache": vocabulary}
    inputs = [[torch.zeros_like(ids), words] for ids, words in characters_and_words(vocabulary)]
    assert_same_over_batches(files.ours(**settings), files.theirs(**settings), inputs)


def test_words_by_their_ids_in_the_place_of_characters(files: OfficialFiles) -> None:
    vocabulary = vocabulary_of(BATCHES)
    settings: Dict[str, Any] = {"vocab_to_cache": vocabulary}
    inputs = [[words, words] for _, words in characters_and_words(vocabulary)]
    assert_same_over_batches(files.ours(**settings), files.theirs(**settings), inputs)
    stacked = [[words.expand(3, *words.shape).contiguous()] * 2 for words, _ in inputs]
    assert_same_over_batches(files.ours(**settings), files.theirs(**settings), stacked)


@pytest.mark.parametrize("axes", [(2, 2), (2, 1, 3), (1, 1)])
def test_more_axes(files: OfficialFiles, axes: Sequence[int]) -> None:
    vocabulary = vocabulary_of(BATCHES)
    settings: Dict[str, Any] = {"vocab_to_cache": vocabulary}
    ours, theirs = files.ours(**settings), files.theirs(**settings)
    for ids, words in characters_and_words(vocabulary):
        inputs = [one.expand(*axes, *one.shape) for one in (ids, words)]
        # AllenNLP refuses what doesn't lie in memory in one piece.
        inputs = [one.contiguous() for one in inputs]
        assert_same(ours(inputs[0]), theirs(inputs[0]))
        assert_same(ours(*inputs), theirs(*inputs))


@pytest.mark.parametrize("tokens", [1, 6])
def test_any_ids_of_characters(files: OfficialFiles, tokens: int) -> None:
    # Not only such as a word can have; padding within a word, too.
    ours, theirs = files.ours(), files.theirs()
    generator = torch.Generator().manual_seed(5)
    for batch in (3, 5, 2):
        ids = torch.randint(1, 262, (batch, tokens, 50), generator=generator)
        assert_same_over_batches(ours, theirs, [[ids], [ids.where(ids < 200, 261)]])


def test_words_that_end_in_zeros(files: OfficialFiles) -> None:
    ids = torch.zeros(2, 3, 50, dtype=torch.long)
    ids[0, 0, :4] = torch.tensor([6, 5, 4, 3])
    ids[0, 1, 0] = 9
    ids[1, 0, 49] = 261
    assert_same_over_batches(files.ours(), files.theirs(), [[ids], [ids.flip(0)]])


def test_padding_after_the_longest_sentence(files: OfficialFiles) -> None:
    inputs = [[torch.nn.functional.pad(ids, (0, 0, 0, 4))] for (ids,) in characters()]
    assert_same_over_batches(files.ours(), files.theirs(), inputs)


@pytest.mark.parametrize("num_output_representations", [1, 2])
@pytest.mark.parametrize("do_layer_norm", [False, True])
def test_the_gradients_of_the_mix(
    files: OfficialFiles, num_output_representations: int, do_layer_norm: bool
) -> None:
    arguments, settings = (num_output_representations,), {"do_layer_norm": do_layer_norm}
    ours, theirs = files.ours(*arguments, **settings), files.theirs(*arguments, **settings)
    ids = batch_to_ids(BATCHES[1])
    for elmo in (ours, theirs):
        loss_of(elmo(ids)).backward()
    for number, mix in enumerate(ours.mixes):
        their_mix = getattr(theirs, f"scalar_mix_{number}")
        their_weights = torch.cat([weight.grad for weight in their_mix.scalar_parameters])
        assert mix.weights.grad.abs().max() > 0.01
        assert torch.allclose(mix.weights.grad, their_weights, rtol=1e-4, atol=1e-4)
        assert torch.allclose(mix.gamma.grad, their_mix.gamma.grad, rtol=1e-4)
    for name, parameter in [*ours.bilm.named_parameters(), *theirs._elmo_lstm.named_parameters()]:
        assert parameter.grad is None and not parameter.requires_grad, name


def loss_of(output: Output) -> torch.Tensor:
    representations: List[torch.Tensor] = output["elmo_representations"]
    return cast(
        torch.Tensor,
        sum(number * one.pow(2).sum() for number, one in enumerate(representations, start=1)),
    )


def in_their_order(gates: torch.Tensor) -> torch.Tensor:
    """The rows of the four gates; AllenNLP has the third before the second."""
    first, second, third, fourth = gates.chunk(4)
    return torch.cat([first, third, second, fourth])


def test_the_gradients_of_the_bilm(files: OfficialFiles) -> None:
    ours, theirs = files.ours(requires_grad=True), files.theirs(requires_grad=True)
    for batch in BATCHES[:2]:  # the second starts from states of the first
        for elmo in (ours, theirs):
            elmo.zero_grad()
            loss_of(elmo(batch_to_ids(batch))).backward()
    for name, parameter in [*ours.named_parameters(), *theirs.named_parameters()]:
        assert parameter.grad is not None and parameter.grad.any(), name
    encoder, their_encoder = ours.bilm.token_encoder, theirs._elmo_lstm._token_embedder
    embedding = encoder.convolution.embedding.weight.grad
    pairs = [
        (embedding[1:], their_encoder._char_embedding_weights.grad[1:]),
        (encoder.convolution.convolutions[1].bias.grad, their_encoder.char_conv_1.bias.grad),
        (encoder.projection.weight.grad, their_encoder._projection.weight.grad),
    ]
    for stack, name in (
        (ours.bilm.left_to_right, "forward"),
        (ours.bilm.right_to_left, "backward"),
    ):
        for number, layer in enumerate(stack.layers):
            theirs_layer = getattr(theirs._elmo_lstm._elmo_lstm, f"{name}_layer_{number}")
            pairs += [
                (in_their_order(weight.grad), linearity.grad)
                for weight, linearity in (
                    (layer.input_weight, theirs_layer.input_linearity.weight),
                    (layer.recurrent_weight, theirs_layer.state_linearity.weight),
                    (layer.bias, theirs_layer.state_linearity.bias),
                )
            ]
            pairs.append((layer.projection_weight.grad, theirs_layer.state_projection.weight.grad))
    for place, (grad, their_grad) in enumerate(pairs):
        assert torch.allclose(grad, their_grad, rtol=1e-3, atol=1e-4), place


def over(
    elmo: Any, module: torch.nn.Module, num_output_representations: int = 1, **settings: Any
) -> Any:
    """Either `Elmo` with a module in place of the files."""
    return elmo(None, None, num_output_representations, module=module, **settings).eval()


@pytest.mark.parametrize("do_layer_norm", [False, True])
def test_a_bilm_of_allennlp_in_place_of_the_files(
    files: OfficialFiles, do_layer_norm: bool
) -> None:
    ours, theirs = (
        over(elmo, _ElmoBiLm(*files), 2, do_layer_norm=do_layer_norm)
        for elmo in (Elmo, AllenNlpElmo)
    )
    assert ours.get_output_dim() == theirs.get_output_dim() == WIDTH
    assert_same_over_batches(ours, theirs, characters())


def test_a_bilm_of_allennlp_that_has_words_computed_ahead(files: OfficialFiles) -> None:
    vocabulary = vocabulary_of(BATCHES)
    ours = over(Elmo, _ElmoBiLm(*files, vocab_to_cache=vocabulary))
    bilm = _ElmoBiLm(*files, vocab_to_cache=vocabulary)
    theirs = over(AllenNlpElmo, bilm, vocab_to_cache=vocabulary)
    assert_same_over_batches(ours, theirs, characters_and_words(vocabulary))


def test_a_bilm_of_allennlp_with_the_words_that_it_has_computed_ahead(files: OfficialFiles) -> None:
    vocabulary = vocabulary_of(BATCHES)
    ours, theirs = (
        over(elmo, _ElmoBiLm(*files, vocab_to_cache=vocabulary), vocab_to_cache=vocabulary)
        for elmo in (Elmo, AllenNlpElmo)
    )
    both = characters_and_words(vocabulary)
    assert_same_over_batches(ours, theirs, both)
    assert_same_over_batches(ours, theirs, [[words, words] for _, words in both])


class Constant(torch.nn.Module):
    """A biLM whose padding is not zero."""

    num_layers = 2

    def get_output_dim(self) -> int:
        return 3

    def forward(self, inputs: torch.Tensor, word_inputs: Any = None) -> Dict[str, Any]:
        generator = torch.Generator().manual_seed(5)
        shape = (inputs.size(0), inputs.size(1) + 2, 3)
        layers = [torch.randn(shape, generator=generator) + 5 for _ in range(self.num_layers)]
        lengths = (inputs > 0).any(dim=-1).sum(dim=1, keepdim=True) + 2
        return {"activations": layers, "mask": torch.arange(shape[1]) < lengths}


@pytest.mark.parametrize("do_layer_norm", [False, True])
def test_a_module_whose_padding_is_not_zero(do_layer_norm: bool) -> None:
    ours, theirs = (
        over(elmo, Constant(), do_layer_norm=do_layer_norm) for elmo in (Elmo, AllenNlpElmo)
    )
    assert_same_over_batches(ours, theirs, characters())


def test_a_bilm_in_place_of_the_files(files: OfficialFiles) -> None:
    ours = over(Elmo, read_official_bilm(*files), 2)
    assert ours.bilm.num_layers == NUM_LAYERS
    assert_same_over_batches(ours, files.theirs(2), characters())


def test_sizes_and_dropout_by_default(files: OfficialFiles) -> None:
    ids = batch_to_ids(SENTENCES)
    for elmo in (files.ours().train(), files.theirs().train()):
        (representation,) = elmo(ids)["elmo_representations"]
        assert representation.shape == (2, 7, WIDTH)
        assert 0.4 < (representation[1] != 0).float().mean() < 0.6


def test_the_default_device_is_for_new_tensors_only(files: OfficialFiles) -> None:
    ours, theirs = files.ours(), files.theirs()
    batches = [batch_to_ids(sentences) for sentences in BATCHES]
    expected = [theirs(ids) for ids in batches]
    with torch.device("meta"):
        given = [ours(ids) for ids in batches]
    for one, other in zip(given, expected, strict=True):
        assert_same(one, other)


def test_a_model_of_allennlp_models_takes_it(files: OfficialFiles) -> None:
    vocab = Vocabulary(tokens_to_add={"tokens": ["a"], "labels": ["yes", "no"]})

    def reading(input_dim: int) -> PytorchSeq2SeqWrapper:
        lstm = torch.nn.LSTM(input_dim, 4, bidirectional=True, batch_first=True)
        return PytorchSeq2SeqWrapper(lstm)

    def model_with(elmo: torch.nn.Module) -> BiattentiveClassificationNetwork:
        torch.manual_seed(0)
        return BiattentiveClassificationNetwork(
            vocab,
            BasicTextFieldEmbedder({"tokens": Embedding(embedding_dim=4, vocab=vocab)}),
            embedding_dropout=0.0,
            pre_encode_feedforward=FeedForward(4 + WIDTH, 1, 6, Activation.by_name("relu")()),
            encoder=reading(6),
            integrator=reading(24),
            integrator_dropout=0.0,
            output_layer=FeedForward(4 * (8 + WIDTH), 1, 2, Activation.by_name("relu")()),
            elmo=elmo,
            use_input_elmo=True,
            use_integrator_output_elmo=True,
        ).eval()

    ids = batch_to_ids(SENTENCES)
    text = {"tokens": {"tokens": (ids[:, :, 0] > 0).long()}, "elmo": {"elmo_tokens": ids}}
    expected = model_with(files.theirs(2))(text)["logits"]
    assert torch.allclose(model_with(files.ours(2))(text)["logits"], expected, atol=1e-5)
    with pytest.raises(ConfigurationError, match="num_output_representations=1"):
        model_with(files.ours(1))
