"""One language in another script goes the whole way, from bytes to a task and to official files."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
from allennlp import commands

from elmo_scratch import SentenceLayers, batch_to_ids
from elmo_scratch.alphabet import MAX_CHARACTERS_PER_TOKEN
from tests import FIXTURES_ROOT, PROJECT_ROOT

TEXT = FIXTURES_ROOT / "text" / "hindi.txt"
TREEBANK = FIXTURES_ROOT / "tasks" / "ud_hindi"
HINDI = {"type": "spacy_blank", "language": "hi"}
WORDS = ["बाज़ार", "का", "अंतर्राष्ट्रीयकरण", "।"]


def test_a_bilm_of_hindi_serves_tasks_and_official_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "import_plugins", lambda: None)

    def allennlp(*words: Any) -> None:
        monkeypatch.setattr(sys, "argv", ["allennlp", *map(str, words)])
        commands.main("allennlp")

    def train(config: str, folder: str, **overrides: Any) -> None:
        path = PROJECT_ROOT / "training_config" / f"{config}.jsonnet"
        overrides = {"trainer.num_epochs": 1, **overrides}
        allennlp("train", path, "-s", folder, "--overrides", json.dumps(overrides))

    monkeypatch.setenv("CORPUS_TRAIN", str(TEXT))
    monkeypatch.setenv("CORPUS_DEV", str(TEXT))
    tokenizers = {"dataset_reader.tokenizer": HINDI, "vocabulary.tokenizer": HINDI}
    train("bilm/fixture_characters", "bilm", **tokenizers)
    known = Path("bilm/vocabulary/tokens.txt").read_text(encoding="utf-8").split()
    assert {"।", "है", "पेड़"} <= set(known)  # words with their marks, and the full stop by itself

    # A word of more bytes than there is room for is cut, if need be within a character.
    ids = batch_to_ids([WORDS])[0]
    spelled = WORDS[2].encode()
    assert len(spelled) > MAX_CHARACTERS_PER_TOKEN - 2
    assert ids[2, 1:-1].tolist() == [byte + 1 for byte in spelled[: MAX_CHARACTERS_PER_TOKEN - 2]]

    allennlp("elmo-export", "bilm/model.tar.gz", "exported")
    archived = SentenceLayers.from_archive("bilm/model.tar.gz", state="reset")
    official = SentenceLayers.from_official(
        "exported/options.json", "exported/weights.hdf5", state="reset"
    )
    for one, other in zip(archived([WORDS]), official([WORDS])):
        assert one.shape == (3, len(WORDS), 64)
        assert numpy.allclose(one, other, atol=1e-6)

    for name, value in {
        "UD_TRAIN": TREEBANK / "train.conllu",
        "UD_DEV": TREEBANK / "dev.conllu",
        "BILM_ARCHIVE": "bilm/model.tar.gz",
        "BILM_WIDTH": 64,
        "ELMO_OPTIONS": "exported/options.json",
        "ELMO_WEIGHTS": "exported/weights.hdf5",
    }.items():
        monkeypatch.setenv(name, str(value))
    sentence = {"sentence": "किसान खेत में काम करता है।"}
    Path("sentences.jsonl").write_text(json.dumps(sentence), encoding="utf-8")
    for form in ("input", "official"):
        train(f"pos/{form}", form)
        allennlp(
            *("predict", f"{form}/model.tar.gz", "sentences.jsonl", "--silent"),
            *("--predictor-args", '{"language": "hi_core_news_sm"}', "--output-file", "tags.jsonl"),
        )
        predicted = json.loads(Path("tags.jsonl").read_text(encoding="utf-8"))
        assert predicted["words"] == ["किसान", "खेत", "में", "काम", "करता", "है", "।"]
        labels = Path(form, "vocabulary", "labels.txt").read_text(encoding="utf-8").split()
        assert set(predicted["tags"]) <= set(labels)
