import copy
import json
import pickle
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy
import pytest
import torch
from allennlp.commands.evaluate import evaluate_from_archive
from allennlp.common.checks import ConfigurationError

from elmo_scratch import batch_to_ids, read_official_bilm
from elmo_scratch.embedders import Elmo, OfficialEmbedder, layer_cache
from elmo_scratch.embedders.layer_cache import (
    FileStore,
    KeptLayers,
    LayerStore,
    MemoryStore,
    identity_of,
    settings_of,
)
from elmo_scratch.kernels import precision
from elmo_scratch.modules import BiLm
from tests.kernels.frozen_weights import as_promised, needs_independent_rows
from tests.tiny_elmo import BATCHES, OfficialFiles
from tests.tiny_training import CONFIGS, EXT_VARS, params_on_fixtures, train

Batch = Tuple[torch.Tensor, torch.Tensor]


@pytest.fixture(autouse=True)
def much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little other processes have left."""
    monkeypatch.setattr(layer_cache, "free_memory", lambda: float("inf"))


def batch_of(sentences: List[List[str]]) -> Batch:
    ids = batch_to_ids(sentences)
    return ids, (ids > 0).any(dim=-1)


def frozen(files: OfficialFiles, state: str = "reset", **settings: Any) -> BiLm:
    bilm = read_official_bilm(*files, state=state, **settings)
    return bilm.requires_grad_(False).eval()


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> LayerStore:
    return MemoryStore() if request.param == "memory" else FileStore(str(tmp_path / "layers.lmdb"))


def rows_read(bilm: torch.nn.Module) -> List[int]:
    """How many texts pass the biLM in each call of it from now on."""
    rows: List[int] = []
    bilm.register_forward_pre_hook(lambda _, inputs: rows.append(len(inputs[0])))
    return rows


def test_each_text_passes_the_bilm_once_and_every_batch_is_the_same_to_the_bit(
    store: LayerStore, files: OfficialFiles
) -> None:
    bilm = frozen(files)
    kept = KeptLayers(store, bilm)
    expected = [bilm(*batch_of(sentences)) for sentences in BATCHES]
    rows = rows_read(bilm)
    for _ in range(3):
        for sentences, output in zip(BATCHES, expected, strict=True):
            layers, mask = kept(bilm, *batch_of(sentences))
            assert as_promised(layers, output.layers)
            assert torch.equal(mask, output.mask)
    distinct = {tuple(sentence) for sentences in BATCHES for sentence in sentences}
    assert sum(rows) == len(distinct)


@pytest.mark.parametrize("are_independent", [False, True])
def test_where_layers_are_not_equal_to_the_bit_it_says_so_once(
    are_independent: bool,
    files: OfficialFiles,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(layer_cache, "rows_are_independent", lambda dtype: are_independent)
    bilm = frozen(files)
    kept = KeptLayers(MemoryStore(), bilm)
    with caplog.at_level("INFO"):
        for sentences in BATCHES:
            kept(bilm, *batch_of(sentences))
    assert caplog.text.count("within rounding") == (0 if are_independent else 1)


def test_a_text_that_comes_twice_in_a_batch_is_read_once(files: OfficialFiles) -> None:
    bilm = frozen(files)
    batch = batch_of([["a", "b"], ["c"], ["a", "b"]])
    expected = bilm(*batch).layers
    rows = rows_read(bilm)
    assert torch.equal(KeptLayers(MemoryStore(), bilm)(bilm, *batch).layers, expected)
    assert rows == [2]


def test_ids_that_are_not_whole_do_not_pass_for_those_of_another_text(
    files: OfficialFiles,
) -> None:
    bilm = frozen(files)
    kept = KeptLayers(MemoryStore(), bilm)
    ids, mask = batch_of([["a", "b"]])
    kept(bilm, ids, mask)
    with pytest.raises(
        ValueError, match="expected ids of tokens of the type int16, int32 or int64"
    ):
        kept(bilm, ids + 0.5, mask)


@pytest.mark.parametrize("is_known", [True, False])
def test_padding_before_a_token_is_an_error(is_known: bool, files: OfficialFiles) -> None:
    bilm = frozen(files)
    kept = KeptLayers(MemoryStore(), bilm)
    ids, mask = batch_of([["a", "b"]])
    if is_known:
        kept(bilm, ids[:, :1], mask[:, :1])
    mask[:, 0] = False
    with pytest.raises(ValueError, match="real tokens of a row come before padding"):
        kept(bilm, ids, mask)


def test_replicas_keep_nothing(files: OfficialFiles) -> None:
    """As `torch.nn.DataParallel` makes them: their weights are no parameters."""
    bilm = frozen(files)
    store = MemoryStore()
    kept = KeptLayers(store, bilm)
    replica = copy.copy(bilm)
    replica.parameters = lambda *_, **__: iter(())  # type: ignore[method-assign]
    rows = rows_read(bilm)
    for _ in range(2):
        kept(replica, *batch_of([["a"], ["b", "c"]]))
    assert rows == [2, 2]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_layers_have_the_type_of_the_weights(
    dtype: torch.dtype, store: LayerStore, files: OfficialFiles
) -> None:
    bilm = frozen(files).to(dtype)
    expected = bilm(*batch_of(BATCHES[0])).layers
    for _ in range(2):
        layers = KeptLayers(store, bilm)(bilm, *batch_of(BATCHES[0])).layers
        assert layers.dtype == dtype
        # Kept in single precision.
        assert torch.equal(layers, expected.float().to(dtype))


def test_texts_in_another_company_are_the_same(store: LayerStore, files: OfficialFiles) -> None:
    bilm = frozen(files)
    kept = KeptLayers(store, bilm)
    for sentences in BATCHES:
        kept(bilm, *batch_of(sentences))
    mixed = [
        sentence for sentences in zip(*(batch[:2] for batch in BATCHES)) for sentence in sentences
    ]
    assert torch.equal(kept(bilm, *batch_of(mixed)).layers, bilm(*batch_of(mixed)).layers)


def test_padding_beyond_the_longest_text_stays(store: LayerStore, files: OfficialFiles) -> None:
    bilm = frozen(files)
    kept = KeptLayers(store, bilm)
    # As an indexer's `token_min_padding_length` makes it.
    ids, mask = (
        torch.nn.functional.pad(part, (0, 0) * (part.dim() - 2) + (0, 3))
        for part in batch_of([["a"], ["b", "c"]])
    )
    for _ in range(2):
        output = kept(bilm, ids, mask)
        assert torch.equal(output.mask, bilm(ids, mask).mask)
        assert torch.equal(output.layers, bilm(ids, mask).layers)


def test_another_bilm_in_its_place_is_noticed(store: LayerStore, files: OfficialFiles) -> None:
    bilm = frozen(files)
    kept = KeptLayers(store, bilm)
    batch = batch_of([["a"], ["b", "c"]])
    first = kept(bilm, *batch).layers
    weights = copy.deepcopy(bilm.state_dict())
    bilm.load_state_dict({name: 2 * tensor for name, tensor in weights.items()})
    assert torch.equal(kept(bilm, *batch).layers, bilm(*batch).layers)
    bilm.load_state_dict(weights)
    assert torch.equal(kept(bilm, *batch).layers, first)
    with pytest.raises(ConfigurationError, match="needs a frozen biLM, but"):
        kept(bilm.requires_grad_(), *batch)


def test_texts_are_read_without_dropout(store: LayerStore, files: OfficialFiles) -> None:
    bilm = frozen(files)
    batch = batch_of([["a"], ["b", "c"]])
    expected = bilm(*batch).layers
    elmo = Elmo(None, None, 1, module=bilm, keep_layers=store, dropout=0.0)
    bilm.left_to_right.dropout.p = bilm.right_to_left.dropout.p = 0.5
    elmo.train()
    bilm.train()
    for _ in range(2):
        assert torch.equal(elmo.kept_layers(bilm, *batch).layers, expected)  # type: ignore[misc]
        assert bilm.training


def test_what_is_kept_is_not_rounded(store: LayerStore, files: OfficialFiles) -> None:
    bilm = frozen(files)
    ids, mask = batch_of([["a"], ["b", "c"]])
    exact = bilm(ids, mask).layers
    rounds: List[bool] = []
    bilm.register_forward_pre_hook(lambda *_: rounds.append(torch.is_autocast_enabled("cpu")))
    with torch.autocast("cpu", torch.bfloat16):
        kept = KeptLayers(store, bilm).train()(bilm, ids, mask).layers
        bilm(ids, mask)
    assert rounds == [False, True]
    assert torch.allclose(kept, exact, atol=1e-6)


def test_models_that_never_train_keep_nothing(files: OfficialFiles) -> None:
    bilm = frozen(files)
    kept = KeptLayers(MemoryStore(), bilm).eval()
    rows = rows_read(bilm)
    for _ in range(2):
        kept(bilm, *batch_of([["a"], ["b", "c"]]))
    assert rows == [2, 2]


def test_the_validation_of_a_training_keeps_as_well(files: OfficialFiles) -> None:
    bilm = frozen(files)
    kept = KeptLayers(MemoryStore(), bilm)
    rows = rows_read(bilm)
    kept(bilm, *batch_of([["a"]]))
    for _ in range(2):
        kept.eval()(bilm, *batch_of([["a"], ["b", "c"]]))
    assert rows == [1, 1]


def test_a_model_that_only_predicts_may_be_asked_for_gradients(files: OfficialFiles) -> None:
    """As AllenNLP's `Predictor.get_gradients` asks for those of all weights."""
    bilm = frozen(files)
    kept = KeptLayers(MemoryStore(), bilm).eval()
    bilm.requires_grad_(True)
    batch = batch_of([["a", "b"]])
    kept(bilm, *batch).layers.sum().backward()
    assert all(weight.grad is not None for weight in bilm.parameters())
    with pytest.raises(ConfigurationError, match="needs a frozen biLM"):
        kept.train()(bilm, *batch)


def test_copies_of_a_store_are_empty_and_keep_on(store: LayerStore, tmp_path: Path) -> None:
    store.put({b"a": numpy.ones(3, dtype="float32")})
    for other in (copy.deepcopy(store), pickle.loads(pickle.dumps(store))):
        assert type(other) is type(store)
        other.put({b"b": numpy.zeros(2, dtype="float32")})
        found = other.get(b"b")
        assert found is not None and found.tolist() == [0.0, 0.0]
        # What is in a file is there for all.
        assert (other.get(b"a") is None) == isinstance(store, MemoryStore)


def test_a_bilm_whose_buffers_are_written_anew_is_looked_at_once(
    files: OfficialFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As each worker of a distributed training writes those of the first before each batch."""
    looks = []

    def look(bilm: BiLm) -> bytes:
        looks.append(bilm)
        return identity_of(bilm)

    monkeypatch.setattr("elmo_scratch.embedders.layer_cache.identity_of", look)
    bilm = frozen(files, state="warm")
    bilm.warm_up([batch_of([["to", "begin", "with"]])])
    kept = KeptLayers(MemoryStore(), bilm)
    for _ in range(2):
        for buffer in bilm.buffers():
            buffer.copy_(buffer.clone())
        kept(bilm, *batch_of([["a"]]))
    assert len(looks) == 1
    bilm.warm_up([batch_of([["to", "go", "on"]])])
    assert torch.equal(kept(bilm, *batch_of([["a"]])).layers, bilm(*batch_of([["a"]])).layers)
    assert len(looks) == 2


def test_another_state_is_noticed(store: LayerStore, files: OfficialFiles) -> None:
    bilm, batch = frozen(files), batch_of([["a"], ["b", "c"]])
    kept = KeptLayers(store, bilm)
    first = kept(bilm, *batch).layers
    bilm.use_state("warm")
    bilm.warm_up([batch_of([["to", "begin", "with"]])])
    warm = kept(bilm, *batch).layers
    assert torch.equal(warm, bilm(*batch).layers) and not torch.equal(warm, first)
    bilm.use_state("reset")
    assert torch.equal(kept(bilm, *batch).layers, first)
    bilm.stateful = True
    with pytest.raises(ConfigurationError, match='the `state` "reset" or "warm"'):
        kept(bilm, *batch)


def test_another_setting_is_noticed(store: LayerStore, files: OfficialFiles) -> None:
    bilm, batch = frozen(files), batch_of([["a"], ["b", "c"]])
    kept = KeptLayers(store, bilm)
    first = kept(bilm, *batch).layers
    for layer in (*bilm.left_to_right.layers, *bilm.right_to_left.layers):
        layer.projection_clip = 0.01
    clipped = kept(bilm, *batch).layers
    assert torch.equal(clipped, bilm(*batch).layers) and not torch.equal(clipped, first)


def test_what_two_bilms_make_of_a_text_lies_side_by_side(
    files: OfficialFiles, store: LayerStore
) -> None:
    one, other = frozen(files), frozen(files)
    with torch.no_grad():
        next(other.parameters()).mul_(1.5)
    batch = batch_of(BATCHES[0])
    for _ in range(2):
        assert torch.equal(KeptLayers(store, one)(one, *batch).layers, one(*batch).layers)
        assert torch.equal(KeptLayers(store, other)(other, *batch).layers, other(*batch).layers)


def test_a_bilm_is_known_by_its_weights_and_its_settings(files: OfficialFiles) -> None:
    bilm = frozen(files)
    clipped = copy.deepcopy(bilm)
    clipped.left_to_right.cell_clip = 0.1
    warm = frozen(files, state="warm")
    assert identity_of(frozen(files)) == identity_of(bilm)
    assert identity_of(copy.deepcopy(bilm).train()) == identity_of(bilm)
    others = [clipped, warm, frozen(files, matmul_dtype="bfloat16")]
    assert len({identity_of(one) for one in [bilm, *others]}) == 4
    before = identity_of(warm)
    warm.warm_up([batch_of([["to", "begin", "with"]])])
    assert identity_of(warm) != before


def test_settings_are_known_whatever_they_are_made_of(files: OfficialFiles) -> None:
    def identity_with(setting: Any) -> bytes:
        bilm = frozen(files)
        bilm.token_encoder.setting = setting
        return identity_of(bilm)

    settings: List[Any] = [
        *([1.0, 1.0], [5.0, 0.1], (1, (2, 3)), (1, (2, 4)), {"a": [1]}, {"a": [2]}, {3, 4}, {3, 5}),
        *(torch.float32, torch.bfloat16, torch.ones(2), torch.zeros(2), b"x", "x", None),
    ]
    identities = [identity_with(setting) for setting in settings]
    assert len(set(identities)) == len(settings)
    assert [identity_with(setting) for setting in settings] == identities
    # Nothing is known of others but what they are.
    assert identity_with(object()) == identity_with(object())


def test_buffers_that_are_not_saved_are_a_part_of_it(files: OfficialFiles) -> None:
    bilm = frozen(files)
    bilm.token_encoder.register_buffer("mark", torch.tensor(3), persistent=False)
    before = identity_of(bilm)
    bilm.token_encoder.mark.add_(1)
    assert identity_of(bilm) != before


def test_reading_changes_no_setting(files: OfficialFiles) -> None:
    bilm = frozen(files)
    before = settings_of(bilm)
    bilm(*batch_of(BATCHES[0]))
    assert settings_of(bilm) == before


def test_what_is_rounded_is_not_taken_for_what_is_not(
    files: OfficialFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where bfloat16 takes longer than float32, products are not rounded to it."""
    exact, asking = frozen(files), frozen(files, matmul_dtype="bfloat16")
    identities = []
    for pays in (True, False):
        monkeypatch.setattr(precision, "_pays", lambda _, pays=pays: pays)
        identities.append((identity_of(exact), identity_of(asking)))
    assert identities[0][0] == identities[1][0]
    assert identities[0][1] != identities[1][1]


def test_what_an_older_package_has_kept_is_not_taken(
    files: OfficialFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = identity_of(frozen(files))
    monkeypatch.setattr(layer_cache, "COMPUTATION", layer_cache.COMPUTATION + 1)
    assert identity_of(frozen(files)) != before


def test_a_state_that_is_carried_is_an_error(files: OfficialFiles) -> None:
    with pytest.raises(ConfigurationError, match='the `state` "reset" or "warm"'):
        Elmo(*files, 1, keep_layers=MemoryStore())


def test_a_bilm_that_is_trained_is_an_error(files: OfficialFiles) -> None:
    with pytest.raises(ConfigurationError, match="a frozen biLM, but this one is trained"):
        Elmo(*files, 1, requires_grad=True, state="reset", keep_layers=MemoryStore())


def test_words_that_are_cached_beside_it_are_an_error(files: OfficialFiles) -> None:
    with pytest.raises(ConfigurationError, match="no `vocab_to_cache` beside it"):
        Elmo(*files, 1, state="reset", keep_layers=MemoryStore(), vocab_to_cache=["a"])


def test_an_embedder_of_official_files_keeps_too(files: OfficialFiles) -> None:
    settings: Dict[str, Any] = {"dropout": 0.0, "state": "reset", "do_layer_norm": True}
    plain = OfficialEmbedder(*files, **settings)
    keeping = OfficialEmbedder(*files, keep_layers=MemoryStore(), **settings)
    rows = rows_read(keeping.elmo.bilm)
    for _ in range(2):
        for sentences in BATCHES:
            ids = batch_to_ids(sentences)
            assert torch.equal(keeping(ids), plain(ids))
    assert sum(rows) == len({tuple(text) for sentences in BATCHES for text in sentences})


@needs_independent_rows
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_training_reads_each_text_once_and_ends_in_the_same_weights(
    kind: str, bilm_archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward, models = BiLm.forward, []
    rows = {False: 0, True: 0}

    def counting(bilm: BiLm, ids: torch.Tensor, mask: torch.Tensor) -> Any:
        rows[keep] += len(ids)
        return forward(bilm, ids, mask)

    monkeypatch.setattr(BiLm, "forward", counting)
    for keep in (False, True):
        params = params_on_fixtures(CONFIGS / "ag_news" / "elmo_trainable.jsonnet", bilm_archive)
        params["trainer"]["num_epochs"] = 3
        embedder = params["model"]["text_field_embedder"]["token_embedders"]["elmo"]
        embedder["keep_layers"] = {"type": kind} if keep else None
        if keep and kind == "file":
            embedder["keep_layers"]["path"] = str(tmp_path / "layers.lmdb")
        models.append(train(params, tmp_path / f"run-{keep}"))
    num_texts = sum(
        len(Path(EXT_VARS[name]).read_text(encoding="utf-8").splitlines())
        for name in ("AG_NEWS_TRAIN", "AG_NEWS_DEV")
    )
    assert rows[False] == 3 * num_texts
    assert num_texts / 2 < rows[True] <= num_texts
    plain, keeping = (model.state_dict() for model in models)
    assert plain.keys() == keeping.keys()
    for name, tensor in plain.items():
        assert torch.equal(tensor, keeping[name]), name
    if kind == "file":
        (tmp_path / "layers.lmdb").unlink()
    metrics = evaluate_from_archive(tmp_path / "run-True" / "model.tar.gz", EXT_VARS["AG_NEWS_DEV"])
    expected = json.loads((tmp_path / "run-True" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["accuracy"] == expected["best_validation_accuracy"]
    # An evaluation keeps nothing, and needs nothing that was kept.
    assert not (tmp_path / "layers.lmdb").exists()
