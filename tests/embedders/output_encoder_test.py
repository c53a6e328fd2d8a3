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
from allennlp.modules.seq2seq_encoders import (
    LstmSeq2SeqEncoder,
    PassThroughEncoder,
    PytorchTransformer,
    Seq2SeqEncoder,
)

from elmo_scratch.embedders import OutputEncoder
from tests.tiny_training import BILM_WIDTH, train

MASK = torch.tensor([[True, True, True], [True, True, False]])
INPUTS = torch.arange(2 * 3 * 6.0).view(2, 3, 6)


@pytest.mark.parametrize(
    "start, read, beside",
    [(None, [0, 1, 2, 3], [4, 5]), (4, [0, 1, 2, 3], [4, 5]), (1, [0, 3, 4, 5], [1, 2])],
)
def test_the_encoder_does_not_see_what_is_laid_beside_its_output(
    start: Optional[int], read: list[int], beside: list[int]
) -> None:
    encoder = OutputEncoder(PassThroughEncoder(4), 2, start=start)
    expected = INPUTS[..., read + beside].clone()
    expected[1, 2, :4] = 0.0  # what the wrapped encoder makes of padding
    assert torch.equal(encoder(INPUTS, MASK), expected)


def test_any_encoder_can_be_wrapped() -> None:
    torch.manual_seed(13)
    for wrapped in (
        LstmSeq2SeqEncoder(input_size=4, hidden_size=5, bidirectional=True),
        PytorchTransformer(
            input_dim=4, num_layers=1, feedforward_hidden_dim=8, num_attention_heads=2
        ),
    ):
        encoder = OutputEncoder(wrapped, 2).eval()
        output = encoder(INPUTS, MASK)
        assert encoder.get_input_dim() == 6
        assert encoder.get_output_dim() == output.size(-1) == wrapped.get_output_dim() + 2
        assert torch.equal(output[..., :-2], wrapped(INPUTS[..., :4], MASK))
        assert torch.equal(output[..., -2:], INPUTS[..., 4:])
        assert not encoder.is_bidirectional()


def test_it_drops_from_the_second_vector_in_training_only() -> None:
    torch.manual_seed(13)
    encoder = OutputEncoder(PassThroughEncoder(4), 2, dropout=0.5)
    inputs, mask = torch.ones(10, 20, 6), torch.ones(10, 20, dtype=torch.bool)
    output = encoder(inputs, mask)
    assert set(output[..., 4:].flatten().tolist()) == {0.0, 2.0}
    assert torch.equal(output[..., :4], inputs[..., :4])
    assert torch.equal(encoder.eval()(inputs, mask), inputs)


def test_an_encoder_that_carries_its_state_is_reset() -> None:
    torch.manual_seed(13)
    encoder = OutputEncoder(LstmSeq2SeqEncoder(input_size=4, hidden_size=5, stateful=True), 2)
    first, second = encoder(INPUTS, MASK), encoder(INPUTS, MASK)
    encoder.reset_states()
    assert not torch.equal(first, second)
    assert torch.equal(encoder(INPUTS, MASK), first)


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
