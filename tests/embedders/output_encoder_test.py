import json
from pathlib import Path
from typing import Any, Dict, Optional

import allennlp_models.tagging  # noqa: F401  (registers `crf_tagger`)
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Token
from allennlp.models.archival import load_archive
from allennlp.modules import Highway
from allennlp.modules.seq2seq_encoders import (
    LstmSeq2SeqEncoder,
    PassThroughEncoder,
    PytorchTransformer,
    Seq2SeqEncoder,
)
from allennlp.modules.span_extractors import BidirectionalEndpointSpanExtractor

from elmo_scratch.embedders import OutputEncoder
from elmo_scratch.embedders.output_encoder import FIRST_TOKENS, HALVES, joined_vectors
from tests.tiny_training import BILM_WIDTH, train

MASK = torch.tensor([[True, True, True], [True, True, False]])
INPUTS = torch.arange(2 * 3 * 6.0).view(2, 3, 6)


@pytest.fixture(autouse=True)
def no_vectors_of_other_tests() -> None:
    FIRST_TOKENS.clear()


def laid_out(read: torch.Tensor, second: torch.Tensor, start: int) -> torch.Tensor:
    """What a model hands to the encoder, with the second vector at `start`."""
    joined_vectors(second, second)
    return torch.cat([read[..., :start], second, read[..., start:]], dim=-1)


READ, SECOND = INPUTS[..., :4], 1 + INPUTS[..., 4:]


@pytest.mark.parametrize("start", [None, 4, 1])
def test_the_encoder_does_not_see_what_is_laid_beside_its_output(start: Optional[int]) -> None:
    encoder = OutputEncoder(PassThroughEncoder(4), 2, start=start)
    encoded = READ * MASK.unsqueeze(-1)  # what the wrapped encoder makes of padding
    inputs = laid_out(READ, SECOND, 4 if start is None else start)
    assert torch.equal(encoder(inputs, MASK), torch.cat([encoded, SECOND], dim=-1))


def test_any_encoder_can_be_wrapped() -> None:
    torch.manual_seed(13)
    wrapped = PytorchTransformer(
        input_dim=4, num_layers=1, feedforward_hidden_dim=8, num_attention_heads=2
    )
    encoder = OutputEncoder(wrapped, 2).eval()
    output = encoder(laid_out(READ, SECOND, 4), MASK)
    assert encoder.get_input_dim() == 6
    assert encoder.get_output_dim() == output.size(-1) == wrapped.get_output_dim() + 2
    assert torch.equal(output, torch.cat([wrapped(READ, MASK), SECOND], dim=-1))
    assert not encoder.is_bidirectional()


def bidirectional() -> LstmSeq2SeqEncoder:
    return LstmSeq2SeqEncoder(input_size=4, hidden_size=5, bidirectional=True)


def test_each_half_of_a_bidirectional_output_has_one_direction_of_elmo() -> None:
    encoder = OutputEncoder(bidirectional(), 2)
    output = encoder(laid_out(READ, SECOND, 4), MASK)
    encoded = encoder.encoder(READ, MASK)
    parts = [encoded[..., :5], SECOND[..., :1], encoded[..., 5:], SECOND[..., 1:]]
    assert torch.equal(output, torch.cat(parts, dim=-1))
    assert encoder.is_bidirectional()
    spans = BidirectionalEndpointSpanExtractor(encoder.get_output_dim(), "y", "y")
    ends = spans(output, torch.tensor([[[0, 2]], [[0, 1]]]))  # (batch, spans, dim)
    # The extractor takes the left-to-right half at the end, the right-to-left half at the start.
    assert ends[0, 0, 5] == SECOND[0, 2, 0] and ends[0, 0, -1] == SECOND[0, 0, 1]


def test_a_width_without_halves_stands_at_the_end() -> None:
    encoder = OutputEncoder(bidirectional(), 3)
    second = torch.rand(2, 3, 3)
    output = encoder(laid_out(READ, second, 4), MASK)
    assert torch.equal(output[..., 10:], second)
    assert not encoder.is_bidirectional()


def test_weights_of_an_older_release_keep_their_order() -> None:
    encoder, older = OutputEncoder(bidirectional(), 2), OutputEncoder(bidirectional(), 2)
    weights = {name: value for name, value in encoder.state_dict().items() if name != HALVES}
    older.load_state_dict(weights)
    inputs = laid_out(READ, SECOND, 4)
    output = older(inputs, MASK)
    assert torch.equal(output, torch.cat([encoder.encoder(READ, MASK), SECOND], dim=-1))
    assert not older.is_bidirectional()
    # And still do, saved again; those of today have halves.
    again = OutputEncoder(bidirectional(), 2)
    again.load_state_dict(older.state_dict())
    assert torch.equal(again(inputs, MASK), output)
    again.load_state_dict(encoder.state_dict())
    assert torch.equal(again(inputs, MASK), encoder(inputs, MASK))


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_dropout_on_the_way_is_no_error(share: float, is_training: bool) -> None:
    second = torch.rand(2, 3, 40) - 0.5
    inputs = laid_out(torch.rand(2, 3, 4), second, 4)
    encoder = OutputEncoder(PassThroughEncoder(4), 40).train(is_training)
    given = torch.nn.functional.dropout(inputs, share)
    assert torch.equal(encoder(given, MASK)[..., 4:], given[..., 4:])


def test_texts_may_come_in_another_order_and_among_others() -> None:
    second = torch.rand(2, 2, 3, 40)
    joined_vectors(second, second)
    joined_vectors(torch.rand(2, 3, 40), torch.rand(2, 3, 40))
    encoder = OutputEncoder(PassThroughEncoder(4), 40)
    given = torch.cat([torch.rand(4, 3, 4), second.flatten(0, 1).flip(0)], dim=-1)
    assert torch.equal(encoder(given, MASK.repeat(2, 1))[..., 4:], given[..., 4:])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(torch.nn.Linear(44, 44), id="projection"),
        pytest.param(Highway(44), id="highway"),
        pytest.param(lambda inputs: inputs.roll(3, -1), id="other place"),
        pytest.param(lambda inputs: torch.cat([inputs[..., :4], inputs[..., :40]], -1), id="none"),
        pytest.param(torch.nn.LayerNorm(44), id="normalized"),
    ],
)
@pytest.mark.parametrize("is_training", [True, False])
def test_what_is_not_the_second_vector_is_an_error(change: Any, is_training: bool) -> None:
    encoder = OutputEncoder(PassThroughEncoder(4), 40).train(is_training)
    inputs = laid_out(torch.rand(2, 3, 4), torch.rand(2, 3, 40) - 0.5, 4)
    batch, mask = change(inputs.flatten(0, 1)).view(2, 3, 44), MASK
    with pytest.raises(ConfigurationError, match=r"at 4 to 44 of the 44 .*num_highway_layers: 0"):
        encoder(batch, mask)
    # Padding tells nothing, and a batch that is right is no pardon for the other mode.
    encoder(torch.zeros(2, 3, 44), mask)
    encoder(inputs, mask)
    with pytest.raises(ConfigurationError):
        encoder.train(not is_training)(batch, mask)


def test_it_drops_from_the_second_vector_in_training_only() -> None:
    torch.manual_seed(13)
    encoder = OutputEncoder(PassThroughEncoder(4), 2, dropout=0.5)
    mask = torch.ones(10, 20, dtype=torch.bool)
    inputs = laid_out(torch.ones(10, 20, 4), torch.ones(10, 20, 2), 4)
    output = encoder(inputs, mask)
    assert set(output[..., 4:].flatten().tolist()) == {0.0, 2.0}
    assert torch.equal(output[..., :4], inputs[..., :4])
    assert torch.equal(encoder.eval()(inputs, mask), inputs)


def test_an_encoder_that_carries_its_state_is_reset() -> None:
    torch.manual_seed(13)
    encoder = OutputEncoder(LstmSeq2SeqEncoder(input_size=4, hidden_size=5, stateful=True), 2)
    inputs = laid_out(READ, SECOND, 4)
    first, second = encoder(inputs, MASK), encoder(inputs, MASK)
    encoder.reset_states()
    assert not torch.equal(first, second)
    assert torch.equal(encoder(inputs, MASK), first)


@pytest.mark.parametrize(
    "settings", [{"width": 0}, {"width": 2, "start": 5}, {"width": 2, "start": -1}]
)
def test_a_place_that_there_is_not_is_an_error(settings: Dict[str, Any]) -> None:
    encoder = {"type": "pass_through", "input_dim": 4}
    params = Params({"type": "elmo_scratch_output", "encoder": encoder, **settings})
    with pytest.raises(ConfigurationError, match="from 0 to what the encoder reads, 4, but got"):
        Seq2SeqEncoder.from_params(params)


TAGGED = "The###D river###N rose###V .###P\nA###D bank###N lends###V\nIt###N rained###V .###P\n"


def test_a_stock_tagger_gets_elmo_at_its_input_and_its_output(
    bilm_archive: Path, tmp_path: Path
) -> None:
    text = tmp_path / "tagged.txt"
    text.write_text(TAGGED, encoding="utf-8")
    indexer = {"type": "single_id", "lowercase_tokens": True}
    config = {
        "dataset_reader": {
            "type": "sequence_tagging",
            "token_indexers": {"elmo": {**indexer, "namespace": "elmo"}, "words": indexer},
        },
        "train_data_path": str(text),
        "validation_data_path": str(text),
        "model": {
            "type": "crf_tagger",
            "text_field_embedder": {
                "token_embedders": {
                    "elmo": {
                        "type": "elmo_scratch",
                        "pretrained_file": str(bilm_archive),
                        "namespace": "elmo",
                        "output_mix": {"type": "trainable"},
                    },
                    "words": {"type": "embedding", "embedding_dim": 10},
                },
            },
            "encoder": {
                "type": "elmo_scratch_output",
                "width": BILM_WIDTH,
                "start": BILM_WIDTH,  # [ELMo; second ELMo; word]
                "encoder": {
                    "type": "lstm",
                    "input_size": BILM_WIDTH + 10,
                    "hidden_size": 7,
                    "bidirectional": True,
                },
            },
        },
        "data_loader": {"batch_size": 2},
        "trainer": {
            "num_epochs": 12,
            "optimizer": {"type": "adam", "lr": 0.05},
            "cuda_device": -1,
            "callbacks": ["elmo_scratch_mix_shares"],
        },
    }
    model = train(Params(config), tmp_path / "run")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["best_validation_accuracy"] == 1.0
    place = "text_field_embedder.token_embedder_elmo"
    for mix in ("mix", "output_mix"):
        # Both have learned.
        weights = model.get_parameter(f"{place}.{mix}.weights")
        assert weights.abs().sum() > 0.01
        assert f"layer_share_{place}.{mix}.2" in metrics
    archive = load_archive(tmp_path / "run" / "model.tar.gz")
    words = [Token(word) for word in ("A", "river", "rose", ".")]
    instance = archive.dataset_reader.text_to_instance(words)
    archive.dataset_reader.apply_token_indexers(instance)
    assert archive.model.forward_on_instance(instance)["tags"] == ["D", "N", "V", "P"]


def test_a_stock_classifier_gets_both_too(bilm_archive: Path, tmp_path: Path) -> None:
    texts = [{"text": "The river rose .", "label": "news"}, {"text": "A bank", "label": "none"}]
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(map(json.dumps, texts)), encoding="utf-8")
    config = {
        "dataset_reader": {
            "type": "text_classification_json",
            "tokenizer": "whitespace",
            "token_indexers": {"elmo": {"type": "single_id", "lowercase_tokens": True}},
        },
        "train_data_path": str(file),
        "validation_data_path": str(file),
        "model": {
            "type": "basic_classifier",
            "text_field_embedder": {
                "token_embedders": {
                    "elmo": {
                        "type": "elmo_scratch",
                        "pretrained_file": str(bilm_archive),
                        "output_mix": {"type": "trainable"},
                    },
                },
            },
            "seq2seq_encoder": {
                "type": "elmo_scratch_output",
                "width": BILM_WIDTH,
                "encoder": {"type": "gru", "input_size": BILM_WIDTH, "hidden_size": 7},
            },
            "seq2vec_encoder": {"type": "boe", "embedding_dim": 7 + BILM_WIDTH},
        },
        "data_loader": {"batch_size": 2},
        "trainer": {
            "num_epochs": 12,
            "optimizer": {"type": "adam", "lr": 0.05},
            "cuda_device": -1,
        },
    }
    model = train(Params(config), tmp_path / "run")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["best_validation_accuracy"] == 1.0
    for mix in ("mix", "output_mix"):
        place = f"_text_field_embedder.token_embedder_elmo.{mix}.weights"
        assert model.get_parameter(place).abs().sum() > 0.01
