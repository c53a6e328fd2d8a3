"""What commands, and a program of one's own, print in a terminal of 80 columns."""

import logging
import re
from functools import partial
from pathlib import Path
from typing import Callable, Dict, List

import pytest
from allennlp import commands

from benchmarks.terminal import in_terminal, run_allennlp
from elmo_scratch import ElmoEmbedder
from elmo_scratch.embedders import SentenceLayers
from tests import FIXTURES_ROOT
from tests.tiny_elmo import OfficialFiles
from tests.tiny_training import CONFIGS, EXT_VARS

TOUR = str(FIXTURES_ROOT / "text" / "tour.txt")
NEWS = {name: EXT_VARS[name] for name in ("NEWS_TRAIN", "NEWS_DEV")}
LOGGED = re.compile(r" - (INFO|WARNING) - ")


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs `allennlp` in a terminal, in `tmp_path`, and returns all that it writes there."""
    monkeypatch.setattr(commands, "import_plugins", lambda: None)

    def run(words: List[str], variables: Dict[str, str]) -> str:
        return in_terminal(partial(run_allennlp, words, tmp_path, variables))

    return run


TRAINING = ["train", str(CONFIGS / "bilm" / "fixture.jsonnet"), "-s", "run"]
TRAINING += ["-o", '{"trainer.num_epochs": 1}']


@pytest.mark.parametrize(
    "words, bar",
    [
        (TRAINING, "perplexity: "),
        (["evaluate", "ARCHIVE", NEWS["NEWS_DEV"]], "perplexity: "),
        (["elmo", TOUR, "x.hdf5", "--all", "--weight-file", "ARCHIVE"], " 12/12 "),
        (["elmo-vectors", TOUR, "x.txt", *"--method svd --dim 3".split()], "preparing corpus: "),
    ],
)
def test_no_line_of_progress_is_wider_than_the_terminal(
    words: List[str], bar: str, printed: Callable[..., str], bilm_archive: Path
) -> None:
    words = [str(bilm_archive) if word == "ARCHIVE" else word for word in words]
    output = printed(words, {**NEWS, "ELMO_SCRATCH_CACHE": "cache"})
    assert not LOGGED.search(output)
    progress = [line for line in re.split(r"[\r\n]+", output) if re.search(r"\[\d\d:\d\d", line)]
    assert any(bar in line for line in progress)
    assert max(map(len, progress)) < 80
    assert "\nnext         " in output.replace("\r", "")


def test_a_program_of_ones_own_is_told_nothing(
    files: OfficialFiles, bilm_archive: Path, tmp_path: Path
) -> None:
    def embed() -> None:
        logging.basicConfig(level=logging.INFO)
        for embedder in (
            ElmoEmbedder(files.options, files.weights),
            ElmoEmbedder(weight_file=bilm_archive),
        ):
            embedder.embed_sentence(["The", "river", "bank", "."])
            embedder.embed_file(TOUR, tmp_path / "layers.hdf5")
        SentenceLayers.from_archive(str(bilm_archive))([["The", "bank"]])

    rows = in_terminal(embed).replace("\r", "\n").split("\n")
    # Only how far the file is.
    assert [row for row in rows if row.strip() and "sentences/s" not in row] == []
    assert all(len(row) < 80 for row in rows)
