import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
import torch
from allennlp.common import Lazy, Params
from allennlp.common.checks import ConfigurationError

import elmo_scratch
from elmo_scratch.data import batch_to_ids
from elmo_scratch.embedders import Elmo
from elmo_scratch.interop import read_bilm_archive
from elmo_scratch.interop.official import read_official_bilm
from elmo_scratch.interop.official.options import Options
from elmo_scratch.modules import LayerMix
from tests.tiny_archives import archive_of
from tests.tiny_elmo import (
    BATCHES,
    OPTIONS,
    SENTENCES,
    WIDTH,
    OfficialFiles,
    vocabulary_of,
    word_ids,
    write_files,
)

IDS = batch_to_ids(SENTENCES)
MASK = (IDS > 0).any(dim=-1)


def vectors_of(elmo: Elmo, *inputs: torch.Tensor) -> torch.Tensor:
    """The first mix."""
    return elmo(*inputs)["elmo_representations"][0]


def bilm_layers(files: OfficialFiles, ids: torch.Tensor) -> torch.Tensor:
    """What the biLM itself makes of a first batch, sentence marks included."""
    mask = (ids > 0).any(dim=-1) if ids.dim() == 3 else ids > 0
    with torch.no_grad():
        return read_official_bilm(*files)(ids, mask).layers


def test_a_user_finds_it_where_the_package_begins() -> None:
    assert elmo_scratch.Elmo is Elmo


def test_each_token_gets_a_vector_of_each_mix(files: OfficialFiles) -> None:
    elmo = files.ours(2)
    output = elmo(IDS)
    assert [one.shape for one in output["elmo_representations"]] == [(2, 7, WIDTH)] * 2
    assert output["mask"].tolist() == [[True] * 3 + [False] * 4, [True] * 7]
    assert elmo.get_output_dim() == WIDTH


def test_without_training_it_is_the_mean_of_the_layers(files: OfficialFiles) -> None:
    expected = bilm_layers(files, IDS).mean(dim=0)[:, 1:-1]
    vectors = vectors_of(Elmo(Path(files.options), Path(files.weights), 1).eval(), IDS)
    assert torch.allclose(vectors[1], expected[1], atol=1e-6)
    assert torch.allclose(vectors[0, :3], expected[0, :3], atol=1e-6)


def test_sentence_boundaries_can_be_kept(files: OfficialFiles) -> None:
    output = files.ours(keep_sentence_boundaries=True)(IDS)
    assert output["mask"].tolist() == [[True] * 5 + [False] * 4, [True] * 9]
    expected = bilm_layers(files, IDS).mean(dim=0)
    assert torch.allclose(output["elmo_representations"][0], expected, atol=1e-6)


@pytest.mark.parametrize("do_layer_norm", [False, True])
@pytest.mark.parametrize("keep_sentence_boundaries", [False, True])
@pytest.mark.parametrize("mix", sorted(LayerMix.list_available()))
def test_where_a_sentence_has_ended_there_are_zeros(
    mix: str, keep_sentence_boundaries: bool, do_layer_norm: bool, files: OfficialFiles
) -> None:
    settings = {
        "mix": Lazy(LayerMix.by_name(mix)),
        "keep_sentence_boundaries": keep_sentence_boundaries,
        "do_layer_norm": do_layer_norm,
    }
    elmo = files.ours(2, **settings)
    for batch in BATCHES:
        for output in (elmo.eval()(batch_to_ids(batch)), elmo.train()(batch_to_ids(batch))):
            for one in output["elmo_representations"]:
                assert not one[~output["mask"]].any()
                assert one[output["mask"]].any(dim=-1).all()


def test_a_batch_of_padding_is_all_zeros(files: OfficialFiles) -> None:
    for do_layer_norm in (False, True):
        output = files.ours(do_layer_norm=do_layer_norm)(torch.zeros(2, 3, 50, dtype=torch.long))
        assert output["mask"].tolist() == [[False] * 3] * 2
        assert output["elmo_representations"][0].tolist() == [[[0.0] * WIDTH] * 3] * 2


@pytest.mark.parametrize("sentences", [[], [[], []]])
@pytest.mark.parametrize("do_layer_norm", [False, True])
def test_a_batch_without_words_has_no_vectors(
    do_layer_norm: bool, sentences: List[List[str]], files: OfficialFiles
) -> None:
    elmo = files.ours(do_layer_norm=do_layer_norm)
    output = elmo(batch_to_ids(sentences))
    assert output["elmo_representations"][0].shape == (len(sentences), 0, WIDTH)
    assert output["mask"].shape == (len(sentences), 0)


@pytest.mark.parametrize("axes", [(4,), (2, 3)])
def test_more_axes_are_read_as_one(axes: Tuple[int, ...], files: OfficialFiles) -> None:
    # The same batch, without a copy of it, at every place of the further axes.
    expected, ids = vectors_of(files.ours(), IDS), IDS.expand(*axes, *IDS.shape)
    words = word_ids(SENTENCES, vocabulary_of([SENTENCES])).expand(*axes, 2, 7)
    for inputs, vocabulary in (((ids,), None), ((ids, words), vocabulary_of([SENTENCES]))):
        output = files.ours(vocab_to_cache=vocabulary)(*inputs)
        assert output["mask"].shape == (*axes, 2, 7)
        (vectors,) = output["elmo_representations"]
        assert vectors.shape == (*axes, 2, 7, WIDTH)
        assert torch.allclose(vectors, expected.expand_as(vectors), atol=1e-6)


def test_batches_on_a_further_axis_are_read_as_one_by_one(files: OfficialFiles) -> None:
    batches = [SENTENCES, [["1", "2"], list("1234567")], [list("1234567"), ["The"]]]
    ids, elmo = [batch_to_ids(batch) for batch in batches], files.ours()
    together = vectors_of(elmo, torch.stack(ids, dim=1))
    for number, one in enumerate(ids):
        elmo.reset_states()
        assert torch.allclose(together[:, number], vectors_of(elmo, one), atol=1e-6)


def test_ids_without_an_axis_for_sentences_are_an_error(files: OfficialFiles) -> None:
    with pytest.raises(ValueError, match=r"\(batch, tokens, characters\), but got \(7, 50\)"):
        files.ours()(IDS[0])


def test_words_of_another_number_of_characters_are_an_error(files: OfficialFiles) -> None:
    with pytest.raises(ValueError, match=r"\(batch, tokens, 50\), but got the shape \(2, 7, 20\)"):
        files.ours()(IDS[:, :, :20])


def test_a_word_of_padding_within_a_sentence_is_an_error(files: OfficialFiles) -> None:
    ids = IDS.clone()
    ids[1, 2] = 0
    words = (ids > 0).any(dim=-1).long()
    with pytest.raises(ValueError, match="real tokens of a row come before padding"):
        files.ours()(ids)
    with pytest.raises(ValueError, match="real tokens of a row come before padding"):
        files.ours(vocab_to_cache=["@@PADDING@@", "The"])(ids, words)


def test_ids_can_be_of_any_whole_type(files: OfficialFiles) -> None:
    vocabulary = vocabulary_of([SENTENCES])
    words, expected = word_ids(SENTENCES, vocabulary), vectors_of(files.ours(), IDS)
    for dtype in (torch.int32, torch.int16):
        assert torch.allclose(vectors_of(files.ours(), IDS.to(dtype)), expected, atol=1e-6)
        elmo = files.ours(vocab_to_cache=vocabulary)
        vectors = vectors_of(elmo, IDS.to(dtype), words.to(dtype))
        assert torch.allclose(vectors, expected, atol=1e-6)


@pytest.mark.parametrize("mix", sorted(LayerMix.list_available()))
def test_every_mix_can_be_asked_for(mix: str, files: OfficialFiles) -> None:
    torch.manual_seed(13)
    elmo = files.ours(2, mix=Lazy(LayerMix.by_name(mix)), dropout=0.0)
    layers = bilm_layers(files, IDS)[:, :, 1:-1]
    for vectors, one in zip(elmo(IDS)["elmo_representations"], elmo.mixes, strict=True):
        assert type(one) is LayerMix.by_name(mix)
        assert torch.allclose(vectors[1], one(layers, MASK)[1], atol=1e-6)


def test_it_is_built_from_a_config(files: OfficialFiles) -> None:
    config: Dict[str, Any] = {
        "options_file": files.options,
        "weight_file": files.weights,
        "num_output_representations": 2,
        "mix": {"type": "frozen", "seed": 7},
        "state": "reset",
        "matmul_dtype": "bfloat16",
    }
    elmo = Elmo.from_params(Params(config))
    assert [one.shape for one in elmo(IDS)["elmo_representations"]] == [(2, 7, WIDTH)] * 2
    assert elmo.bilm.state_memory.state == "reset"


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_config_may_name_an_archive(requires_grad: bool, tmp_path: Path) -> None:
    archive, task = archive_of(tmp_path / "bilm"), str(tmp_path / "task")
    config = {"num_output_representations": 1, "dropout": 0.0, "requires_grad": requires_grad}
    named = Params({**config, "pretrained_file": str(archive), "state": "carry"})
    elmo = Elmo.from_params(named, serialization_dir=task).eval()
    weights = read_bilm_archive(archive).bilm.state_dict()
    assert all(torch.equal(weights[name], one) for name, one in elmo.bilm.state_dict().items())
    assert {one.requires_grad for one in elmo.bilm.parameters()} == {requires_grad}
    assert elmo.bilm.state_memory.state == "carry"
    # The task's archive has no `pretrained_file`.
    again = Elmo.from_params(Params(config), serialization_dir=task).eval()
    again.load_state_dict(elmo.state_dict())
    elmo.bilm.use_state("reset")
    assert torch.equal(vectors_of(again, IDS), vectors_of(elmo, IDS))


def test_a_config_needs_files_or_an_archive() -> None:
    with pytest.raises(ConfigurationError, match="ELMo needs `pretrained_file`"):
        Elmo.from_params(Params({"num_output_representations": 1}))


def test_products_in_bfloat16_give_nearly_the_same(files: OfficialFiles) -> None:
    elmo = files.ours(matmul_dtype="bfloat16")
    output = elmo(IDS)
    (vectors,), expected = output["elmo_representations"], vectors_of(files.ours(), IDS)
    assert vectors.dtype == torch.float32
    assert not torch.equal(vectors, expected)
    cosines = torch.cosine_similarity(vectors, expected, dim=-1)[output["mask"]]
    assert cosines.min() >= 0.999


def test_a_bilm_without_skip_connections_is_read(files: OfficialFiles, tmp_path: Path) -> None:
    lstm = replace(OPTIONS.lstm, use_skip_connections=False)
    plain = write_files(tmp_path, replace(OPTIONS, lstm=lstm))
    with pytest.raises(ConfigurationError):
        plain.theirs()
    expected, with_skips = (bilm_layers(one, IDS)[:, 1, 1:-1] for one in (plain, files))
    assert torch.allclose(vectors_of(plain.ours(), IDS)[1], expected.mean(dim=0), atol=1e-6)
    assert torch.equal(expected[:2], with_skips[:2])
    assert not torch.allclose(expected[2], with_skips[2], atol=0.1)


def test_a_bilm_of_words_reads_their_rows(tmp_path: Path) -> None:
    files = write_files(tmp_path, Options(OPTIONS.lstm, None), num_words=9)
    ids = torch.tensor([[3, 4, 5, 9], [6, 3, 0, 0], [0, 0, 0, 0]])
    output = files.ours()(ids)
    (vectors,) = output["elmo_representations"]
    assert output["mask"].tolist() == (ids > 0).tolist()
    assert torch.allclose(vectors[0], bilm_layers(files, ids).mean(dim=0)[0, 1:-1], atol=1e-6)
    assert not vectors[ids == 0].any()
    stacked = vectors_of(files.ours(), torch.stack([ids, ids]))
    assert torch.allclose(stacked, vectors.expand(2, -1, -1, -1), atol=1e-6)
    with pytest.raises(ConfigurationError, match="expected a biLM that encodes characters"):
        files.ours(state="warm").warm_up(SENTENCES)


def test_the_bilm_is_trained_on_only_if_asked(files: OfficialFiles) -> None:
    for requires_grad in (False, True):
        elmo = files.ours(2, requires_grad=requires_grad)
        torch.cat(elmo(IDS)["elmo_representations"]).pow(2).sum().backward()
        for name, parameter in elmo.bilm.named_parameters():
            assert (parameter.grad is not None) is requires_grad, name
        for name, parameter in elmo.mixes.named_parameters():
            assert parameter.grad is not None and parameter.grad.any(), name


def test_a_mix_with_given_weights_is_not_trained(files: OfficialFiles) -> None:
    elmo = files.ours(2, scalar_mix_parameters=[-9e10, 1.0, -9e10])
    assert not any(parameter.requires_grad for parameter in elmo.parameters())
    expected = bilm_layers(files, IDS)[1, 1, 1:-1]
    for vectors in elmo(IDS)["elmo_representations"]:
        assert torch.allclose(vectors[1], expected, atol=1e-6)


def test_vectors_made_in_inference_mode_serve_a_training(files: OfficialFiles) -> None:
    vocabulary = vocabulary_of([SENTENCES])
    words = word_ids(SENTENCES, vocabulary)
    for requires_grad in (False, True):
        elmo = files.ours(requires_grad=requires_grad, vocab_to_cache=vocabulary)
        for inputs in ((IDS,), (IDS, words)):
            with torch.inference_mode():
                vectors_of(elmo, *inputs)
            elmo.zero_grad()
            vectors_of(elmo, *inputs).pow(2).sum().backward()
            assert elmo.mixes[0].weights.grad.any()


def test_ids_of_words_without_a_vocabulary_are_warned_of(
    files: OfficialFiles, caplog: pytest.LogCaptureFixture
) -> None:
    expected = vectors_of(files.ours(), IDS)
    with caplog.at_level(logging.WARNING):
        vectors = vectors_of(files.ours(), IDS, torch.ones(2, 7, dtype=torch.long))
    assert torch.equal(vectors, expected)
    assert "no effect without `vocab_to_cache`" in caplog.text


def test_there_may_be_no_mix(files: OfficialFiles) -> None:
    output = files.ours(0)(IDS)
    assert output["elmo_representations"] == []
    assert torch.equal(output["mask"], MASK)


def test_ids_of_words_alone_need_a_vocabulary(files: OfficialFiles) -> None:
    words = word_ids(SENTENCES, vocabulary_of([SENTENCES]))
    with pytest.raises(ValueError, match=r"\(batch, tokens, characters\), but got \(2, 7\)"):
        files.ours()(words, words)


def test_negative_ids_of_words_do_not_pass_for_padding(tmp_path: Path) -> None:
    files = write_files(tmp_path, Options(OPTIONS.lstm, None), num_words=9)
    for bad in (-1, 10):
        with pytest.raises(ValueError, match=f"ids of words from 0 to 9, but got.* {bad}"):
            files.ours()(torch.tensor([[3, 4], [3, bad]]))


def given(files: OfficialFiles, **arguments: Any) -> Elmo:
    named = {"options_file": files.options, "weight_file": files.weights}
    return Elmo(**{**named, "num_output_representations": 1, **arguments})


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"module": torch.nn.Identity()}, "either `module` or `options_file`.* got both"),
        ({"options_file": None, "module": torch.nn.Identity()}, "got both"),
        ({"options_file": None, "weight_file": None}, "both `options_file` and `weight_file`, or"),
        ({"options_file": None}, "weights.hdf5: official weights need their options: name both"),
        ({"weight_file": None}, "both `options_file` and `weight_file`, or another model as"),
        ({"options_file": "/no/such.json"}, "/no/such.json: there is no such file"),
        ({"weight_file": "/no/such.hdf5"}, "/no/such.hdf5: there is no such file"),
        ({"num_output_representations": -1}, "of 0 or more, but got -1"),
        ({"vocab_to_cache": "abc"}, "`vocab_to_cache` to be a list of words, but got 'abc'"),
        ({"vocab_to_cache": [1, 2]}, r"`vocab_to_cache` to be a list of words, but got \[1, 2\]"),
        ({"scalar_mix_parameters": [1.0, 2.0]}, "each of the 3 layers.* but got 2"),
        ({"scalar_mix_parameters": [1.0] * 4}, "each of the 3 layers.* but got 4"),
        (
            {"scalar_mix_parameters": [1.0] * 3, "mix": Lazy(LayerMix.by_name("trainable"))},
            "either `mix` or `scalar_mix_parameters`, not both",
        ),
    ],
)
def test_arguments_that_do_not_go_together_are_an_error(
    arguments: Dict[str, Any], message: str, files: OfficialFiles
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        given(files, **arguments)


@pytest.mark.parametrize("argument", ["state", "matmul_dtype"])
def test_a_setting_that_does_not_exist_is_an_error(argument: str, files: OfficialFiles) -> None:
    with pytest.raises((ConfigurationError, ValueError), match=f"`{argument}` among .* 'other'"):
        given(files, **{argument: "other"})


def test_before_its_constructor_has_run_it_lacks_what_it_is_asked_for() -> None:
    # As `copy` and subclasses may ask.
    bare = Elmo.__new__(Elmo)
    assert not hasattr(bare, "anything") and not hasattr(bare, "scalar_mix_0")
