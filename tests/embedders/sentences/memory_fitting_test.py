import logging
from typing import Any, List

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.spelling import CharacterWordIndexer, IndexedBatch
from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.embedders.sentence_layers import MAX_POSITIONS_AT_ONCE
from elmo_scratch.files.identity import ReadFiles
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.lstm import LstmStack, ProjectedLstm
from elmo_scratch.modules.sequences import PackedVectors
from elmo_scratch.modules.token_encoders import CharCnnEncoder, EncodedTokens
from elmo_scratch.modules.token_encoders.spelled_word_encoder import UniqueWords
from tests.kernels.frozen_weights import needs_independent_rows
from tests.modules.tiny_bilms import bilm_of, each_encoder, ids_for

LAYERS = 3
BATCHES = [
    [[2, 3, 4, 5, 6], [7, 8, 9], [], [1], [10, 4], [3, 3, 3, 3], [6, 5]],
    [[8], [], [5, 5, 2, 10], [4, 9]],
    [[1, 2, 3], [4], [5, 6, 7, 8, 9, 10, 1], [2], [], [9, 9]],
]

each_state = pytest.mark.parametrize("state", ["carry", "reset"])


def spelled(bilm: BiLm, sentences: List[List[int]]) -> IndexedBatch:
    numbers = torch.zeros(len(sentences), max(map(len, sentences))).long()
    for row, sentence in zip(numbers, sentences):
        row[: len(sentence)] = torch.tensor(sentence)
    return IndexedBatch.of(ids_for(bilm, numbers), [len(sentence) for sentence in sentences])


def layers_of(bilm: BiLm, positions_at_once: int = MAX_POSITIONS_AT_ONCE) -> SentenceLayers:
    """The layers of a biLM that gets its ids from elsewhere."""
    return SentenceLayers(
        bilm, CharacterWordIndexer(50), ReadFiles([]), positions_at_once=positions_at_once
    )


def read_all(layers: SentenceLayers) -> List[torch.Tensor]:
    return [layers.read(spelled(layers.bilm, sentences)) for sentences in BATCHES]


def same(some: List[torch.Tensor], others: List[torch.Tensor]) -> bool:
    return all(
        one.shape == other.shape and torch.allclose(one, other, rtol=0, atol=1e-6)
        for one, other in zip(some, others, strict=True)
    )


OUT_OF_MEMORY = torch.cuda.OutOfMemoryError("CUDA out of memory.")
OF_CUBLAS = RuntimeError(
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
)


class SmallMemory:
    """A GPU that runs the LSTMs over so many positions, or so many sentences, and no more."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        positions: int,
        sentences: int,
        error: RuntimeError = OUT_OF_MEMORY,
    ) -> None:
        self.failures = 0
        forward = LstmStack.forward

        def limited(stack: LstmStack, inputs: PackedVectors, state: Any) -> Any:
            if len(inputs.vectors) > positions or state.hidden.size(1) > sentences:
                self.failures += 1
                raise error
            return forward(stack, inputs, state)

        monkeypatch.setattr(LstmStack, "forward", limited)


@each_encoder
@each_state
def test_layers_are_those_of_the_bilm(encoder: str, state: str) -> None:
    bilm, twin = (bilm_of(encoder, state=state).requires_grad_(False) for _ in range(2))
    for sentences, layers in zip(BATCHES, read_all(layers_of(bilm)), strict=True):
        batch = spelled(bilm, sentences)
        mask = batch.mask
        expected = twin(batch.ids, mask).layers[:, :, 1:-1]
        assert torch.equal(layers, expected.masked_fill(~mask.unsqueeze(-1), 0.0))


def with_distinct_words(batch: IndexedBatch) -> IndexedBatch:
    """Each word once, and the padding as one more."""
    words = UniqueWords.of(batch.ids.flatten(0, 1))
    return batch._replace(words=words.ids, ids=words.places.view(batch.mask.shape))


@needs_independent_rows
@each_state
@pytest.mark.parametrize("positions_at_once", [13, 1000])
def test_words_that_are_spelled_once_have_the_same_layers(
    state: str, positions_at_once: int
) -> None:
    bilm, twin = (bilm_of("char_cnn", state=state).requires_grad_(False) for _ in range(2))
    reader, other = (layers_of(one, positions_at_once) for one in (bilm, twin))
    for sentences in BATCHES:
        batch = spelled(bilm, sentences)
        once = with_distinct_words(batch)
        assert once.words is not None and len(once.words) < batch.mask.numel()
        assert torch.equal(reader.read(once), other.read(batch))


def test_before_less_is_read_recordings_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: List[ProjectedLstm] = []
    monkeypatch.setattr(ProjectedLstm, "forget_recordings", lambda lstm: forgotten.append(lstm))
    SmallMemory(monkeypatch, positions=1000, sentences=4)
    bilm = bilm_of().requires_grad_(False)
    forgotten.clear()
    layers_of(bilm).read(spelled(bilm, BATCHES[0]))
    # Two layers of each direction, once.
    assert len(forgotten) == 4


def test_half_of_a_batch_has_its_own_words_to_encode(monkeypatch: pytest.MonkeyPatch) -> None:
    bilm, twin = (bilm_of("char_cnn").requires_grad_(False) for _ in range(2))
    batch = spelled(bilm, BATCHES[0])
    expected = layers_of(twin).read(batch)
    encoded: List[int] = []
    encode = CharCnnEncoder.encode_laid

    def limited(encoder: CharCnnEncoder, words: torch.Tensor, *laid: Any) -> EncodedTokens:
        encoded.append(len(words))
        if len(words) > 8:
            raise OUT_OF_MEMORY
        return encode(encoder, words, *laid)

    monkeypatch.setattr(CharCnnEncoder, "encode_laid", limited)
    layers = layers_of(bilm).read(with_distinct_words(batch))
    assert torch.allclose(layers, expected, rtol=0, atol=1e-6)
    # The padding is a word of the whole, and comes in no sentence.
    assert encoded == [11, 8, 4, 2]


@each_encoder
@each_state
@pytest.mark.parametrize("positions_at_once", [1, 5, 13, 31])
def test_what_is_read_in_pieces_is_the_same(
    encoder: str, state: str, positions_at_once: int
) -> None:
    bilm, twin = (bilm_of(encoder, state=state).requires_grad_(False) for _ in range(2))
    pieces = read_all(layers_of(bilm, positions_at_once))
    assert same(pieces, read_all(layers_of(twin)))


@each_state
@pytest.mark.parametrize("positions, sentences", [(1000, 4), (1000, 1), (20, 1000), (3, 3), (1, 1)])
def test_where_memory_is_short_less_is_read_at_once(
    state: str, positions: int, sentences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bilm, twin = (bilm_of(state=state).requires_grad_(False) for _ in range(2))
    expected = read_all(layers_of(twin))
    memory = SmallMemory(monkeypatch, positions, sentences)
    assert same(read_all(layers_of(bilm)), expected)
    assert memory.failures > 0
    if state == "carry":
        carried = [one.state_memory.carried() for one in (bilm, twin)]
        assert same(*(list(one) for one in carried if one is not None))


@pytest.mark.parametrize("error", [OUT_OF_MEMORY, OF_CUBLAS])
def test_what_was_too_much_once_is_not_tried_again(
    error: RuntimeError, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bilm = bilm_of().requires_grad_(False)
    memory = SmallMemory(monkeypatch, 1000, 3, error)
    reader = layers_of(bilm)
    with caplog.at_level(logging.WARNING):
        read_all(reader)
    assert memory.failures == 1
    assert [record.getMessage() for record in caplog.records] == [
        "the GPU's memory does not hold a batch; it is read in parts of 3 sentences and 4096 "
        "positions from now on"
    ]


def test_a_batch_that_fails_leaves_carried_states_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bilm = bilm_of(state="carry").requires_grad_(False)
    reader = layers_of(bilm)
    read_all(reader)
    before = bilm.state_memory.carried()
    monkeypatch.setattr(LstmStack, "forward", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        read_all(reader)
    assert bilm.state_memory.carried() is before


def test_other_errors_are_not_taken_for_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    bilm = bilm_of().requires_grad_(False)
    memory = SmallMemory(monkeypatch, 1, 1, RuntimeError("device-side assert triggered"))
    with pytest.raises(RuntimeError, match="device-side assert"):
        read_all(layers_of(bilm))
    assert memory.failures == 1


def test_a_gpu_that_holds_no_word_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    bilm = bilm_of().requires_grad_(False)
    SmallMemory(monkeypatch, 0, 0)
    with pytest.raises(ConfigurationError, match="memory doesn't hold the work on a single word"):
        read_all(layers_of(bilm))


def test_there_are_as_many_layers_as_the_bilm_has() -> None:
    bilm = bilm_of().requires_grad_(False)
    assert read_all(layers_of(bilm))[0].shape == (LAYERS, 7, 5, bilm.width)
