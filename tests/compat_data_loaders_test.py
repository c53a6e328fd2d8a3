from pathlib import Path
from typing import Any, List

import pytest
from allennlp.data import Vocabulary
from allennlp.data.data_loaders import MultiProcessDataLoader
from torch import multiprocessing

from elmo_scratch.data import SentencesReader, SpacyBlankTokenizer
from tests import FIXTURES_ROOT

METHODS = multiprocessing.get_all_start_methods()
TEXT = FIXTURES_ROOT / "text" / "tour.txt"


@pytest.mark.parametrize("start", ["_start_instance_workers", "_start_batch_workers"])
@pytest.mark.parametrize("method", METHODS)
def test_workers_share_a_lock_of_their_own_context(
    method: str, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = multiprocessing.get_context(method)
    locks: List[Any] = []

    class Process:
        """Takes the place of a process that would be started."""

        def __init__(self, args: Any, **_: Any) -> None:
            locks.append(args[2])

        def start(self) -> None:
            pass

    monkeypatch.setattr(context, "Process", Process)
    loader = MultiProcessDataLoader(
        SentencesReader(), str(TEXT), batch_size=2, num_workers=3, max_instances_in_memory=2
    )
    getattr(loader, start)(None, context)
    # Python before 3.11.5 has no such mark, and hands on any lock.
    assert [getattr(lock, "_is_fork_ctx", method == "fork") for lock in locks] == [
        method == "fork"
    ] * 3


@pytest.mark.exhaustive
@pytest.mark.parametrize("most", [None, 4])
@pytest.mark.parametrize("method", METHODS)
def test_workers_read_a_text_however_they_are_started(method: str, most: Any) -> None:
    reader = SentencesReader(tokenizer=SpacyBlankTokenizer())
    loader = MultiProcessDataLoader(
        reader,
        str(TEXT),
        batch_size=2,
        num_workers=2,
        start_method=method,
        max_instances_in_memory=most,
        quiet=True,
    )
    loader.index_with(Vocabulary.from_instances(reader.read(str(TEXT))))
    num_sentences = sum(bool(line.strip()) for line in Path(TEXT).read_text("utf-8").splitlines())
    batches = [batch["sentence"]["tokens"]["tokens"] for batch in loader]
    assert sum(len(batch) for batch in batches) == num_sentences == 12
