"""Which sentences a biLM reads together."""

from typing import Iterable, Iterator, List

from allennlp.common.util import lazy_groups_of

from elmo_scratch.export.export_settings import ExportSettings
from elmo_scratch.export.text import Sentence

Batch = List[Sentence]

BATCHES_SORTED_AT_ONCE = 32
"""Among the sentences of so many batches those of like length are found."""

SENTENCES_SORTED_AT_ONCE, TOKENS_SORTED_AT_ONCE = 2**13, 2**20
"""
At most, however large a batch is: the words of all lie in memory, and a part of an export ends only
where they do.
"""


def blocks_of_batches(
    sentences: Iterable[Sentence], settings: ExportSettings, is_carried: bool
) -> Iterator[List[Batch]]:
    """
    Sentences in their order, a block after the other. Where states are carried, a block is one
    batch, its sentences in their order, because vectors depend on it. Otherwise the sentences of a
    block are batched by length: a batch takes as long as its longest sentence.

    # Parameters

    sentences : `Iterable[Sentence]`
        In the order of the text.
    settings : `ExportSettings`
        `batch_size` and `max_tokens` count.
    is_carried : `bool`
        Whether states are carried from batch to batch.

    # Returns

    `Iterator[List[List[Sentence]]]`
        The batches of each block.
    """
    if is_carried:
        for batch in lazy_groups_of(sentences, settings.batch_size):
            yield [batch]
        return
    for block in _blocks(sentences, settings):
        # The longest first: if memory doesn't suffice, that shows at once.
        yield list(_filled(sorted(block, key=_length, reverse=True), settings))


def _blocks(sentences: Iterable[Sentence], settings: ExportSettings) -> Iterator[List[Sentence]]:
    """Sentences enough for `BATCHES_SORTED_AT_ONCE` batches, or for one of the largest."""
    enough = SENTENCES_SORTED_AT_ONCE
    enough_tokens = TOKENS_SORTED_AT_ONCE
    if settings.max_tokens is None:
        a_block = BATCHES_SORTED_AT_ONCE * settings.batch_size
        enough = max(settings.batch_size, min(a_block, enough))
    else:
        a_block = BATCHES_SORTED_AT_ONCE * settings.max_tokens
        enough_tokens = max(settings.max_tokens, min(a_block, enough_tokens))
    block: List[Sentence] = []
    tokens = 0
    for sentence in sentences:
        block.append(sentence)
        tokens += _length(sentence)
        if len(block) >= enough or tokens >= enough_tokens:
            yield block
            block, tokens = [], 0
    if block:
        yield block


def _filled(sentences: List[Sentence], settings: ExportSettings) -> Iterator[Batch]:
    """Batches of sentences, of which the first is the longest of each."""
    batch: Batch = []
    for sentence in sentences:
        if batch and _is_full(batch, settings):
            yield batch
            batch = []
        batch.append(sentence)
    if batch:
        yield batch


def _is_full(batch: Batch, settings: ExportSettings) -> bool:
    """Whether there is no room for one sentence more."""
    if settings.max_tokens is None:
        return len(batch) >= settings.batch_size
    return (len(batch) + 1) * _length(batch[0]) > settings.max_tokens


def _length(sentence: Sentence) -> int:
    return len(sentence.tokens)
