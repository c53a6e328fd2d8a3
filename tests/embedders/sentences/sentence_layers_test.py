import hashlib
from pathlib import Path
from typing import Any, List, Sequence

import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError

import elmo_scratch
from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.interop import read_bilm_archive, read_official_bilm
from elmo_scratch.modules.token_encoders import CharCnnEncoder
from tests.kernels.frozen_weights import needs_independent_rows
from tests.tiny_elmo import BATCHES, NUM_LAYERS, WIDTH, OfficialFiles, write_files

SENTENCES = ["the bank of the river".split(), ["Goal"], "a mouse ran at night".split(), []]
OTHERS = [["one", "two"], ["naïve", "鶴", "."]]
TEXT = [["The", "river", "rose", "."], ["It", "was", "late"]]

Arrays = Sequence[numpy.ndarray]


def same(some: Arrays, others: Arrays, atol: float = 0.0) -> bool:
    return all(
        one.shape == other.shape and numpy.allclose(one, other, rtol=0, atol=atol)
        for one, other in zip(some, others, strict=True)
    )


def official(files: OfficialFiles, **settings: Any) -> SentenceLayers:
    return SentenceLayers.from_official(*files, **settings)


@pytest.fixture(params=["official", "archive"])
def layers(request: pytest.FixtureRequest, files: OfficialFiles, bilm_archive: Path) -> Any:
    """Layers of a biLM of characters and of one of words; each sentence starts from zeros."""
    if request.param == "official":
        return official(files, state="reset")
    return SentenceLayers.from_archive(bilm_archive, state="reset")


def test_a_user_finds_it_where_the_package_begins() -> None:
    assert elmo_scratch.SentenceLayers is SentenceLayers


def test_each_sentence_has_its_own_length(layers: SentenceLayers) -> None:
    arrays = layers(SENTENCES)
    assert [array.shape for array in arrays] == [
        (layers.num_layers, tokens, layers.width) for tokens in (5, 1, 5, 0)
    ]
    assert {array.dtype for array in arrays} == {numpy.dtype("float32")}
    assert all(array.flags.c_contiguous for array in arrays)


def test_sizes_are_those_of_the_bilm(files: OfficialFiles, bilm_archive: Path) -> None:
    layers = official(files)
    assert (layers.num_layers, layers.width) == (NUM_LAYERS, WIDTH)
    assert (layers.state, layers.matmul_dtype) == ("carry", "float32")
    layers = SentenceLayers.from_archive(bilm_archive, state="warm", matmul_dtype="bfloat16")
    assert (layers.num_layers, layers.width) == (3, 64)
    assert (layers.state, layers.matmul_dtype) == ("warm", "bfloat16")


def test_layers_of_official_files_are_those_of_the_bilm_without_the_boundaries(
    files: OfficialFiles,
) -> None:
    layers, bilm = official(files), read_official_bilm(*files)
    for sentences in BATCHES:
        batch = layers.spell(sentences)
        ids, mask = batch.token_ids(), batch.mask
        with torch.no_grad():
            expected = bilm(ids, mask).layers[:, :, 1:-1].masked_fill(~mask.unsqueeze(-1), 0.0)
        assert torch.allclose(layers.read(batch), expected, rtol=0, atol=1e-6)


def test_layers_of_an_archive_are_those_of_the_bilm(bilm_archive: Path) -> None:
    pretrained = read_bilm_archive(bilm_archive)
    words = pretrained.blueprint.words.words
    ids = torch.tensor([[words.index(word) for word in SENTENCES[0]]])
    with torch.no_grad():
        expected = pretrained.bilm.eval()(ids, ids > 0).layers[:, 0, 1:-1]
    layers = SentenceLayers.from_archive(bilm_archive, state="reset")
    assert numpy.allclose(layers(SENTENCES[:1])[0], expected.numpy(), atol=1e-6)


def test_where_a_sentence_has_ended_there_are_zeros(layers: SentenceLayers) -> None:
    batch = layers.spell(SENTENCES)
    read = layers.read(batch)
    assert not read[:, ~batch.mask].any()
    assert (read[:, batch.mask] != 0).any(dim=-1).all()


def test_without_a_word_there_is_nothing_to_read(layers: SentenceLayers) -> None:
    assert layers([]) == []
    assert [array.shape for array in layers([[], []])] == [(3, 0, layers.width)] * 2
    assert layers.read(layers.spell([])).shape == (3, 0, 0, layers.width)


def test_sentences_before_change_nothing_where_states_are_not_carried(
    layers: SentenceLayers,
) -> None:
    first = layers(SENTENCES)
    layers(SENTENCES[::-1])
    assert same(layers(SENTENCES), first)
    assert layers.carried() is None


def test_vectors_can_enter_a_model_that_is_trained(layers: SentenceLayers) -> None:
    model = torch.nn.Linear(layers.width, 1)
    model(layers.read(layers.spell(SENTENCES))).sum().backward()
    assert model.weight.grad is not None


def test_nothing_is_dropped(bilm_archive: Path) -> None:
    layers = SentenceLayers.from_archive(bilm_archive, state="reset")
    assert not any(module.training for module in layers.bilm.modules())
    assert not any(weight.requires_grad for weight in layers.bilm.parameters())


def test_words_are_treated_as_in_the_bilms_training(bilm_archive: Path) -> None:
    layers = SentenceLayers.from_archive(bilm_archive, state="reset")
    assert same(layers([["The", "BANK"]]), layers([["the", "bank"]]))
    assert same(layers([["zzyzx", "bank"]]), layers([["yzzyx", "bank"]]))


def test_states_are_carried_from_batch_to_batch(files: OfficialFiles) -> None:
    layers = official(files)
    first = layers(SENTENCES)
    assert not same(layers(SENTENCES), first)
    layers.reset_states()
    assert same(layers(SENTENCES), first)


def test_a_batch_without_a_word_carries_nothing_on(files: OfficialFiles) -> None:
    layers = official(files)
    layers(SENTENCES)
    before = layers.carried()
    layers([[], []])
    after = layers.carried()
    assert before is not None and after is not None
    assert same(list(before.values()), list(after.values()))


def test_another_process_carries_on(files: OfficialFiles) -> None:
    layers, other = official(files), official(files)
    layers(SENTENCES)
    carried = layers.carried()
    assert carried is not None
    assert {name: part.shape for name, part in carried.items()} == {
        "hidden": (2 * (NUM_LAYERS - 1), len(SENTENCES), WIDTH // 2),
        "cell": (2 * (NUM_LAYERS - 1), len(SENTENCES), 24),
    }
    expected = layers(OTHERS)
    for _ in range(2):
        other.carry_on_from(carried)
        assert same(other(OTHERS), expected)
    other.carry_on_from(None)
    assert other.carried() is None


def test_a_state_of_another_bilm_is_not_carried_on(
    files: OfficialFiles, bilm_archive: Path
) -> None:
    layers = official(files)
    layers(SENTENCES)
    other = SentenceLayers.from_archive(bilm_archive)
    with pytest.raises(ValueError, match="expected a state whose 'hidden' has the shape"):
        other.carry_on_from(layers.carried())
    with pytest.raises(ValueError, match="only where `state` is `carry`"):
        official(files, state="reset").carry_on_from(layers.carried())


def test_warm_every_sentence_starts_from_where_a_text_ended(files: OfficialFiles) -> None:
    layers, carrying = official(files, state="warm"), official(files)
    with pytest.raises(ValueError, match="`warm` state is not known yet"):
        layers(SENTENCES)
    layers.warm_up(iter(TEXT))
    for sentence in TEXT:
        carrying([sentence])
    carried = carrying.carried()
    for sentence, array in zip(SENTENCES, layers(SENTENCES), strict=True):
        carrying.carry_on_from(carried)
        assert same(carrying([sentence]), [array], atol=1e-6)
    with pytest.raises(ValueError, match="only a biLM whose `state` is `warm`"):
        carrying.warm_up(TEXT)


@needs_independent_rows
def test_words_that_are_encoded_ahead_have_the_same_vectors(
    files: OfficialFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = official(files)(SENTENCES)
    layers = official(files)
    words = [word for sentence in SENTENCES for word in sentence]
    layers.cache_words(iter(words))
    encoded: List[int] = []
    encode = CharCnnEncoder.encode_distinct

    def watched(encoder: CharCnnEncoder, ids: torch.Tensor) -> torch.Tensor:
        encoded.append(len(ids))
        return encode(encoder, ids)

    monkeypatch.setattr(CharCnnEncoder, "encode_distinct", watched)
    assert same(layers(SENTENCES), expected)
    # The marks of sentences.
    assert encoded == [2]


def test_words_of_a_vocabulary_need_no_encoding(bilm_archive: Path) -> None:
    layers = SentenceLayers.from_archive(bilm_archive, state="reset")
    expected = layers(SENTENCES)
    layers.cache_words(["the", "bank"])
    assert same(layers(SENTENCES), expected)


def test_products_can_run_in_less_precision(files: OfficialFiles) -> None:
    exact = official(files)(SENTENCES)
    rounded = official(files, matmul_dtype="bfloat16")(SENTENCES)
    assert not same(rounded, exact, atol=1e-5)
    assert same(rounded, exact, atol=0.1)


def test_equal_files_have_one_identity(files: OfficialFiles, tmp_path: Path) -> None:
    layers = official(files)
    again, other = write_files(tmp_path / "again"), write_files(tmp_path / "other", seed=7)
    assert layers.identity == official(again).identity != official(other).identity
    assert layers.identity.startswith("sha256:")


def test_what_it_was_warmed_up_with_is_a_part_of_its_identity(files: OfficialFiles) -> None:
    cold = official(files, state="warm").identity
    found = []
    for text in (TEXT, TEXT[::-1], [TEXT[0] + TEXT[1]], TEXT):
        layers = official(files, state="warm")
        layers.warm_up(text)
        found.append(layers.identity)
    assert found[0] == found[3]
    assert len({cold, *found}) == 4


def test_a_text_of_arrays_warms_up_as_one_of_lists_does(files: OfficialFiles) -> None:
    lists, arrays = official(files, state="warm"), official(files, state="warm")
    lists.warm_up(TEXT)
    arrays.warm_up(numpy.array(sentence) for sentence in TEXT)  # type: ignore[misc]
    assert arrays.identity == lists.identity
    words = [numpy.array(sentence, dtype=str) for sentence in SENTENCES]
    assert same(arrays(words), lists(SENTENCES))  # type: ignore[arg-type]


def test_an_archives_identity_is_the_number_that_other_tools_print(bilm_archive: Path) -> None:
    layers = SentenceLayers.from_archive(bilm_archive)
    expected = hashlib.sha256(bilm_archive.read_bytes()).hexdigest()
    assert layers.identity == f"sha256:{expected}"


def test_a_gpu_that_is_not_there_is_an_error(files: OfficialFiles, bilm_archive: Path) -> None:
    with pytest.raises(ConfigurationError, match="a GPU with the number 97, but PyTorch sees"):
        official(files, cuda_device=97)
    with pytest.raises(ConfigurationError, match="a GPU with the number 97, but PyTorch sees"):
        SentenceLayers.from_archive(bilm_archive, cuda_device=97)
