"""On a GPU everything is as on a processor, within rounding. Skipped where PyTorch sees none."""

import json
import math
from copy import deepcopy
from pathlib import Path
from typing import Any, Dict, List

import h5py
import pytest
import torch
from allennlp.models import load_archive

import elmo_scratch.training  # noqa: F401  (registers what the configs name)
from elmo_scratch import batch_to_ids
from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.modules import LstmState
from elmo_scratch.modules.token_encoders import EncodedTokens
from tests import FIXTURES_ROOT
from tests.commands.conftest import Allennlp, allennlp  # noqa: F401  (a fixture)
from tests.gpu import needs_gpu
from tests.recover_streams_test import OPTIMIZERS, SOFTMAXES
from tests.tiny_elmo import BATCHES, OfficialFiles
from tests.tiny_training import CONFIGS, config_on_fixtures, params_on_fixtures, train
from tests.training.tiny_runs import EPOCHS, differences, outcome, run, run_until

pytestmark = needs_gpu

GPU = 0
PLACES = {"cpu": -1, "gpu": GPU}
TOUR = FIXTURES_ROOT / "text" / "tour.txt"


def closest(one: torch.Tensor, other: torch.Tensor) -> float:
    """The smallest cosine of two vectors of the same token, neither of them zeros."""
    one, other = one.float().flatten(0, -2).cpu(), other.float().flatten(0, -2).cpu()
    are_vectors = one.any(dim=-1) & other.any(dim=-1)
    return float(torch.cosine_similarity(one[are_vectors], other[are_vectors], dim=-1).min())


@pytest.mark.parametrize("state", ["carry", "reset"])
def test_vectors_are_those_of_the_processor(files: OfficialFiles, state: str) -> None:
    here, there = (files.ours(state=state, dropout=0.0) for _ in range(2))
    there.cuda(GPU)
    for batch in BATCHES:
        ids = batch_to_ids(batch)
        (expected,), (vectors,) = (
            elmo(place)["elmo_representations"]
            for elmo, place in ((here, ids), (there, ids.cuda()))
        )
        assert torch.allclose(vectors.cpu(), expected, atol=1e-5)


def test_gradients_are_those_of_the_processor(files: OfficialFiles) -> None:
    gradients: List[Dict[str, torch.Tensor]] = []
    for device in ("cpu", "cuda"):
        elmo = files.ours(requires_grad=True, dropout=0.0).to(device)
        for batch in BATCHES[:2]:
            elmo(batch_to_ids(batch).to(device))["elmo_representations"][
                0
            ].square().sum().backward()
        found = {name: weight.grad for name, weight in elmo.named_parameters()}
        gradients.append({name: grad.cpu() for name, grad in found.items() if grad is not None})
    expected, found = gradients
    assert expected.keys() == found.keys() and len(found) > 20
    for name, gradient in expected.items():
        bound = 1e-5 * max(1.0, float(gradient.abs().max()))
        assert torch.allclose(found[name], gradient, rtol=1e-4, atol=bound), name


@pytest.mark.parametrize("is_trained", [True, False])
def test_bfloat16_is_close(files: OfficialFiles, is_trained: bool) -> None:
    exact = files.ours(dropout=0.0, requires_grad=is_trained).cuda(GPU)
    rounded = files.ours(dropout=0.0, requires_grad=is_trained, matmul_dtype="bfloat16").cuda(GPU)
    for batch in BATCHES:
        ids = batch_to_ids(batch).cuda()
        (expected,), (vectors,) = (elmo(ids)["elmo_representations"] for elmo in (exact, rounded))
        assert vectors.dtype == torch.float32
        assert not torch.equal(vectors, expected)
        assert closest(vectors, expected) > 0.999


def test_a_sentence_has_the_same_vectors_in_any_batch(files: OfficialFiles) -> None:
    elmo = files.ours(state="reset", dropout=0.0).cuda(GPU)
    sentences = [sentence for batch in BATCHES for sentence in batch]
    (together,) = elmo(batch_to_ids(sentences).cuda())["elmo_representations"]
    for sentence, row in zip(sentences, together):
        if sentence:
            (alone,) = elmo(batch_to_ids([sentence]).cuda())["elmo_representations"]
            assert torch.allclose(alone[0], row[: len(sentence)], atol=1e-5)


def streams(kind: str, folder: Path) -> Dict[str, Any]:
    """A pre-training on streams over characters, with random numbers but for what is dropped."""
    config = config_on_fixtures(CONFIGS / "bilm" / "fixture_characters.jsonnet")
    config["model"]["softmax"] = SOFTMAXES[kind.split(",")[0]]
    config["model"]["dropout"] = config["model"]["bilm"]["dropout"] = 0.0
    for loader in ("data_loader", "validation_data_loader"):
        config[loader]["cache_dir"] = str(folder / "cache")
    config["trainer"].update(num_epochs=EPOCHS, optimizer=OPTIMIZERS[kind])
    config["trainer"]["checkpointer"] = {"type": "elmo_scratch_whole", "save_every_num_batches": 5}
    config["trainer"]["callbacks"] = ["elmo_scratch_exact_resume", "tests_interrupt"]
    return config


@pytest.mark.parametrize("kind", sorted(OPTIMIZERS))
def test_a_training_goes_as_on_the_processor(kind: str, tmp_path: Path) -> None:
    found = {}
    for place, device in PLACES.items():
        config = streams(kind, tmp_path)
        config["trainer"].update(cuda_device=device, num_epochs=1)
        run(config, tmp_path / place)
        found[place] = json.loads((tmp_path / place / "metrics.json").read_text())
    for name in ("training_loss", "validation_perplexity", "validation_perplexity_left_to_right"):
        assert found["gpu"][name] == pytest.approx(found["cpu"][name], rel=1e-2), name


@pytest.mark.parametrize("kind", sorted(OPTIMIZERS))
def test_a_training_that_was_stopped_goes_on(kind: str, tmp_path: Path) -> None:
    config = streams(kind, tmp_path)
    config["model"]["dropout"] = config["model"]["bilm"]["dropout"] = 0.3
    config["trainer"]["cuda_device"] = GPU
    run(config, tmp_path / "through")
    run_until((1, 12, True), config, tmp_path / "stopped")
    run(config, tmp_path / "stopped", recover=True)
    differ = differences(outcome(tmp_path / "through"), outcome(tmp_path / "stopped"))
    # Some of a GPU's sums are in no fixed order.
    for place, (one, other) in differ.items():
        if isinstance(one, torch.Tensor) and one.is_floating_point():
            assert torch.allclose(one.cpu(), other.cpu(), rtol=1e-2, atol=1e-3), place
        else:
            assert one == pytest.approx(other, rel=1e-2), place


def test_a_training_in_bfloat16_learns(tmp_path: Path) -> None:
    perplexities = {}
    for dtype in ("float32", "bfloat16"):
        config = streams("full", tmp_path)
        config["model"]["matmul_dtype"] = dtype
        config["trainer"]["cuda_device"] = GPU
        run(config, tmp_path / dtype)
        metrics = json.loads((tmp_path / dtype / "metrics.json").read_text())
        perplexities[dtype] = metrics["validation_perplexity"]
    assert perplexities["bfloat16"] == pytest.approx(perplexities["float32"], rel=0.05)
    # A processor reads the model that the GPU has trained.
    model = load_archive(str(tmp_path / "bfloat16" / "model.tar.gz"), cuda_device=-1).model
    assert all(weight.device.type == "cpu" for weight in model.parameters())


@pytest.mark.parametrize("options", [["--all"], ["--top", "--state", "reset"]])
def test_an_export_is_that_of_the_processor(
    options: List[str],
    files: OfficialFiles,
    allennlp: Allennlp,  # noqa: F811
    tmp_path: Path,
) -> None:
    model = ["--options-file", files.options, "--weight-file", files.weights]
    for place, device in PLACES.items():
        out = tmp_path / f"{place}.hdf5"
        allennlp("elmo", TOUR, out, *options, *model, "--cuda-device", device)
    with h5py.File(tmp_path / "cpu.hdf5") as here, h5py.File(tmp_path / "gpu.hdf5") as there:
        assert set(here) == set(there)
        for key in set(here) - {"sentence_to_index"}:
            expected, vectors = torch.from_numpy(here[key][...]), torch.from_numpy(there[key][...])
            assert torch.allclose(vectors, expected, atol=1e-5)


def test_a_batch_that_does_not_fit_is_read_in_parts(
    files: OfficialFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = SentenceLayers.from_official(
        files.options, files.weights, state="reset", cuda_device=GPU
    )
    sentences = [sentence for batch in BATCHES for sentence in batch if sentence]
    expected = layers(sentences)
    bilm = layers.bilm
    asked: List[int] = []
    read_tokens = bilm.read_tokens

    def in_little_memory(tokens: EncodedTokens, start: LstmState) -> Any:
        asked.append(len(tokens.vectors))
        if len(tokens.vectors) > 3:
            torch.empty(2**50, device="cuda")
        return read_tokens(tokens, start)

    monkeypatch.setattr(bilm, "read_tokens", in_little_memory)
    for vectors, wanted in zip(layers(sentences), expected):
        assert torch.allclose(torch.from_numpy(vectors), torch.from_numpy(wanted), atol=1e-5)
    assert max(asked) > 3 and min(asked) <= 3


@pytest.mark.parametrize(
    "name", ["elmo_trainable", "elmo_frozen", "elmo_function", "elmo_fine_tuned", "word2vec"]
)
@pytest.mark.parametrize("keep_layers", [None, "memory"])
def test_a_classifier_is_trained_there(
    name: str, keep_layers: Any, bilm_archive: Path, tmp_path: Path
) -> None:
    params = params_on_fixtures(CONFIGS / "ag_news" / f"{name}.jsonnet", bilm_archive)
    config = deepcopy(params.as_dict(quiet=True))
    embedders = config["model"]["text_field_embedder"]["token_embedders"].values()
    ours = [embedder for embedder in embedders if embedder["type"] == "elmo_scratch"]
    if keep_layers is not None and (not ours or name == "elmo_fine_tuned"):
        pytest.skip("keeps no layers")
    for embedder in ours:
        embedder.pop("keep_layers", None)
        if keep_layers is not None:
            embedder["keep_layers"] = keep_layers
    config["trainer"]["cuda_device"] = GPU
    model = train(type(params)(config), tmp_path / "run")
    assert all(weight.is_cuda for weight in model.parameters())
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    # Knowing nothing of four classes costs log 4.
    assert 0.0 < metrics["training_loss"] < 2 * math.log(4)
    assert 0.0 < metrics["validation_loss"] < 2 * math.log(4)
