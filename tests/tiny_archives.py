"""Archives of language models after a training of two steps, of every kind that is read back."""

import json
import tarfile
from copy import deepcopy
from pathlib import Path
from typing import Any, Dict, List, Optional

from allennlp.common import Params

import elmo_scratch.data.corpus_vocabulary  # noqa: F401  (registers the vocabulary)
from tests.tiny_training import train

LINES = ["the river bank rose", "the bank lent", "a naïve river", "lent rates rose the bank"]
SENTENCES = [line.split() for line in LINES]

CHAR_CNN: Dict[str, Any] = {
    "type": "char_cnn",
    "dim": 8,
    "filters": [[1, 4], [2, 5], [3, 7]],
    "character_dim": 4,
}
WORD: Dict[str, Any] = {"type": "word", "dim": 8}
BILM: Dict[str, Any] = {"token_encoder": CHAR_CNN, "cell_size": 12}
WORD_BILM: Dict[str, Any] = {**BILM, "token_encoder": WORD}

VOCABULARY_LINES = ["<S>", "</S>", "<UNK>", "the", "bank", "river", "rose", "lent", "é", "a"]
"""Of a vocabulary file in which "naïve" and "rates" are unknown."""


def unpack(archive_file: Path, folder: Path) -> Path:
    """Writes an archive's files into a folder, in a way that every Python knows."""
    with tarfile.open(archive_file) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                path = folder / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())
    return folder


def write_lines(path: Path, lines: List[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def config_of(
    folder: Path,
    *,
    bilm: Optional[Dict[str, Any]] = BILM,
    lines: Optional[List[str]] = None,
    has_corpus_vocabulary: bool = False,
    indexer: Optional[Dict[str, Any]] = None,
    **model: Any,
) -> Dict[str, Any]:
    """A training of two batches, one epoch, on lines that are written into the folder."""
    text = str(write_lines(folder / "text.txt", lines or LINES))
    indexers = {"tokens": {"type": "single_id", **(indexer or {})}}
    is_of_words = bilm is not None and bilm["token_encoder"]["type"] == "word"
    if not is_of_words:
        indexers["characters"] = {"type": "elmo_scratch_characters"}
    config: Dict[str, Any] = {
        "dataset_reader": {"type": "elmo_scratch_sentences", "token_indexers": indexers},
        "train_data_path": text,
        "model": {"type": "elmo_scratch_bilm", **model},
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 1, "optimizer": {"type": "adam", "lr": 0.05}},
    }
    if bilm is not None:
        config["model"]["bilm"] = bilm
    if has_corpus_vocabulary:
        vocab_file = write_lines(folder / "vocab.txt", VOCABULARY_LINES)
        config["vocabulary"] = {"type": "elmo_scratch_corpus", "vocab_file": str(vocab_file)}
    return json.loads(json.dumps(config))


def archive_of(folder: Path, **settings: Any) -> Path:
    """What comes of `config_of` these settings."""
    folder.mkdir(parents=True, exist_ok=True)
    train(Params(deepcopy(config_of(folder, **settings))), folder / "run")
    return folder / "run" / "model.tar.gz"
