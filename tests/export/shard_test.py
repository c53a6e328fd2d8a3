from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.export import Shard


def test_a_shard_is_read_from_its_words() -> None:
    assert Shard.parse("2/8") == Shard(2, 8)


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "1/0", "-1/4", "1/4/2", ""])
def test_what_is_no_shard_is_an_error(text: str) -> None:
    with pytest.raises(ConfigurationError, match="expected --shard I/N with I from 1 to N"):
        Shard.parse(text)


@pytest.mark.parametrize("count, num_sentences", [(1, 1), (3, 10), (7, 7), (8, 1000)])
def test_shards_share_a_text_evenly(count: int, num_sentences: int) -> None:
    spans = [shard.span_of(num_sentences) for shard in Shard.all_of(count)]
    assert spans[0].start == 0 and spans[-1].stop == num_sentences
    assert all(one.stop == other.start for one, other in zip(spans, spans[1:]))
    sizes = [stop - start for start, stop in spans]
    assert max(sizes) - min(sizes) <= 1


def test_more_shards_than_sentences_are_an_error() -> None:
    with pytest.raises(ConfigurationError, match="no more shards than sentences"):
        Shard(1, 5).span_of(4)


def test_each_shard_has_a_file_beside_the_output() -> None:
    assert Shard(2, 8).file_of(Path("folder/x.hdf5")) == Path("folder/x.hdf5.2-of-8")
