import json
from pathlib import Path

import pytest
import torch
import yaml

from elmo_scratch import VERSION
from elmo_scratch.data import CorpusVocabulary
from elmo_scratch.data.corpus import ARCHIVED_AUDIT
from elmo_scratch.interop import export_model_folder
from tests import PROJECT_ROOT
from tests.tiny_archives import unpack

GOLDEN = PROJECT_ROOT / "tests" / "golden"
WORDS = GOLDEN / "words" / "model.tar.gz"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The output folder of a training, with what a training leaves there."""
    return unpack(WORDS, tmp_path / "run")


def card_of(model: Path, folder: Path) -> str:
    export_model_folder(model, folder)
    return (folder / "README.md").read_text(encoding="utf-8")


def test_a_card_tells_of_model_data_quality_training_and_versions(
    run: Path, tmp_path: Path
) -> None:
    metrics = {
        "best_epoch": 4,
        "best_validation_perplexity": 101.256,
        "best_validation_perplexity_left_to_right": 100.5,
        "best_validation_perplexity_right_to_left": 102.0,
    }
    (run / "metrics.json").write_text(json.dumps(metrics))
    (run / "environment.json").write_text('{"versions": {"PyTorch": "1.2.3"}}')
    audit = {"tokens": 12345, "sentences": 678, "unknown_share": 0.0123}
    (run / "vocabulary" / ".elmo_scratch-audit.json").write_text(json.dumps(audit))
    card = card_of(run, tmp_path / "my model")
    for line in (
        "# `my model`",
        "| reads | words in lower case |",
        "| layers | 3, of 8 numbers each |",
        "| vocabulary | 60 words |",
        "| softmax | `full`, to score texts |",
        'elmo = ElmoEmbedder.from_pretrained("my model")',
        "- trained on `tests/golden/texts/news.csv`",
        "- chosen by `tests/golden/texts/news_dev.csv`",
        "- 12,345 tokens, 678 sentences, 1.23% of the tokens outside the vocabulary",
        "## Perplexity on the validation data, after epoch 5",
        "| both directions | 101.26 |",
        "| left to right | 100.50 |",
        "| right to left | 102.00 |",
        "allennlp train training.json -s run",
        "- trained by `PyTorch` `1.2.3`",
    ):
        assert line in card.splitlines(), line
    assert f"`elmo_scratch` `{VERSION}`, `PyTorch` `{torch.__version__}`" in card
    block = card.split("```json\n")[1].split("\n```")[0]
    assert json.loads(block) == json.loads((run / "config.json").read_text())


def test_numbers_that_no_float_holds_are_left_out(run: Path, tmp_path: Path) -> None:
    metrics = {
        "best_validation_perplexity": 10**400,
        "best_validation_perplexity_left_to_right": float("nan"),
        "best_validation_perplexity_right_to_left": 102.0,
    }
    (run / "metrics.json").write_text(json.dumps(metrics))
    audit = {"tokens": 12345, "unknown_share": 10**400}
    (run / "vocabulary" / ".elmo_scratch-audit.json").write_text(json.dumps(audit))
    card = card_of(run, tmp_path / "folder")
    assert "| right to left | 102.00 |" in card and "- 12,345 tokens\n" in card
    assert "both directions" not in card and "left to right" not in card


def test_the_name_of_a_folder_need_not_be_utf8(run: Path, tmp_path: Path) -> None:
    assert "# `folder \\udce9`\n" in card_of(run, tmp_path / "folder \udce9")


def test_the_figures_of_a_corpus_come_with_its_vocabulary(run: Path, tmp_path: Path) -> None:
    text = GOLDEN / "texts" / "corpus.txt"
    vocab = CorpusVocabulary.from_corpus(data_path=str(text), min_count=2)
    vocab.save_to_files(str(tmp_path / "counted" / "vocabulary"))
    (tmp_path / "counted" / "vocabulary" / ARCHIVED_AUDIT).rename(
        run / "vocabulary" / ARCHIVED_AUDIT
    )
    words = text.read_text(encoding="utf-8").split()
    card = card_of(run, tmp_path / "folder")
    assert f"- {len(words):,} tokens, " in card
    assert f", {len(set(words))} distinct words, " in card
    # As the vocabulary is read back, nothing is known of a corpus.
    again = CorpusVocabulary.from_files(str(tmp_path / "counted" / "vocabulary"))
    assert again.audit is None and again.get_namespaces() == {"tokens"}


def test_metrics_beside_an_archive_are_its_own(run: Path, tmp_path: Path) -> None:
    (tmp_path / "model.tar.gz").write_bytes(WORDS.read_bytes())
    (tmp_path / "metrics.json").write_text('{"best_validation_perplexity": 101.256}')
    card = card_of(tmp_path / "model.tar.gz", tmp_path / "folder")
    assert "| both directions | 101.26 |" in card.splitlines()


def test_the_hub_reads_its_head(tmp_path: Path) -> None:
    _, head, _ = card_of(WORDS, tmp_path / "folder").split("---\n", 2)
    fields = yaml.safe_load(head)
    # The licence is for whoever publishes the weights to fill in.
    assert fields["license"] == "unknown"
    assert fields["library_name"] == "elmo_scratch"
    assert fields["pipeline_tag"] == "feature-extraction"
    assert "elmo" in fields["tags"]


def test_what_comes_from_files_is_quoted(run: Path, tmp_path: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    config["train_data_path"] = "`a` | <b>\n# c"
    config["validation_data_path"] = ["````x"]
    (run / "config.json").write_text(json.dumps(config))
    lines = card_of(run, tmp_path / "`<i>").splitlines()
    assert "# `` `<i> ``" in lines
    assert "- trained on `` `a` \\| <b> # c ``" in lines
    assert '- chosen by ````` ["````x"] `````' in lines
    # The block of the config ends where it should.
    start, end = lines.index("`````json"), lines.index("`````")
    assert json.loads("\n".join(lines[start + 1 : end])) == config


def test_the_card_of_a_tasks_bilm_says_where_it_was(tmp_path: Path) -> None:
    card = card_of(GOLDEN / "classifiers" / "words.tar.gz", tmp_path / "folder")
    assert "- taken out of a model of the type `elmo_scratch_classifier`" in card


def test_a_card_goes_without_what_is_not_known(tmp_path: Path) -> None:
    card = card_of(GOLDEN / "official", tmp_path / "folder")
    assert "## Data" not in card and "## Perplexity" not in card
    assert "## Licence" in card and "## Versions" in card
