import itertools
import json
import shutil
from pathlib import Path
from typing import Any, Dict, List

import pytest
import torch
from allennlp.commands.evaluate import evaluate_from_archive
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Token, Vocabulary
from allennlp.models import load_archive

from elmo_scratch import SentenceScorer
from elmo_scratch.interop import WordList, export_bilm, export_model_folder
from elmo_scratch.interop.archives.archive import read_language_model
from elmo_scratch.interop.softmax import LoadedSoftmax, build_softmax
from elmo_scratch.kernels import rows_are_independent
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.softmaxes import FullSoftmax
from elmo_scratch.modules.token_encoders import WordEncoder
from elmo_scratch.scoring import LikelyWord, SentenceScore, TextScore
from elmo_scratch.scoring.sentence_scorer import ListIndexer
from tests import FIXTURES_ROOT
from tests.scoring.official_models import official_model
from tests.tiny_archives import BILM, LINES, WORD_BILM, archive_of, config_of, write_lines
from tests.tiny_training import train

TEXT = [*LINES, "The bank sat", "a", "the unseen river rose above the bank", "rates rose"]

KINDS: Dict[str, Dict[str, Any]] = {
    "sampled": {
        "softmax": {"type": "sampled", "num_samples": 3, "sparse": False},
        "has_corpus_vocabulary": True,
    },
    "adaptive, carried": {
        "softmax": {"type": "adaptive", "div_value": 2.0},
        "bilm": {**BILM, "state": "carry"},
    },
    "words, lower case, bfloat16": {
        "bilm": WORD_BILM,
        "indexer": {"lowercase_tokens": True},
        "matmul_dtype": "bfloat16",
    },
}


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return archive_of(tmp_path_factory.mktemp("sampled"), **KINDS["sampled"])


@pytest.fixture(scope="module")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a language model that is evaluated on three streams of running text."""
    folder = tmp_path_factory.mktemp("streamed")
    config = config_of(folder, lines=TEXT)
    streams = {"type": "elmo_scratch_stream", "batch_size": 3, "unroll_steps": 5}
    config.update(data_loader={**streams, "shuffle_sentences": True})
    config.update(validation_data_loader=streams)
    train(Params(config), folder / "run")
    return folder / "run" / "model.tar.gz"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "text.txt", TEXT)


def metrics_of(archive: Path, text: Path, **settings: Any) -> Dict[str, float]:
    metrics = evaluate_from_archive(archive, str(text), **settings)
    return {name: metrics[name] for name in metrics if name.startswith("perplexity")}


def perplexities_of(scores: List[SentenceScore]) -> Dict[str, float]:
    total = TextScore()
    for score in scores:
        total.add(score)
    return total.perplexities()


def rounding() -> float:
    """Beside an evaluation, which has other sentences in a batch."""
    dtypes = (torch.float32, torch.bfloat16)
    return 1e-12 if all(map(rows_are_independent, dtypes)) else 1e-5


def losses_of(scores: List[SentenceScore]) -> torch.Tensor:
    return torch.tensor([[*score.left_to_right, *score.right_to_left] for score in scores])


def assert_same(one: SentenceScore, other: SentenceScore) -> None:
    """All but the number is the same, within rounding."""
    assert (one.words, one.unknown) == (other.words, other.unknown)
    assert one.left_to_right == pytest.approx(other.left_to_right, abs=1e-5)
    assert one.right_to_left == pytest.approx(other.right_to_left, abs=1e-5)
    assert len(one.likely) == len(one.words)
    for place, same in zip(one.likely, other.likely, strict=True):
        assert [word for word, _ in place] == [word for word, _ in same]
        assert [share for _, share in place] == pytest.approx(
            [share for _, share in same], abs=1e-5
        )


# What evaluation finds


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_has_the_perplexity_of_its_evaluation(kind: str, text: Path, tmp_path: Path) -> None:
    archive = archive_of(tmp_path / "model", **KINDS[kind])
    scores = list(SentenceScorer.from_archive(archive).score_text(text))
    assert [" ".join(score.words) for score in scores] == TEXT
    assert perplexities_of(scores) == pytest.approx(metrics_of(archive, text), rel=rounding())


@pytest.mark.parametrize("batch_size", [None, 1])
def test_running_text_has_the_perplexity_of_its_evaluation(
    batch_size: int, streamed: Path, text: Path
) -> None:
    scorer = SentenceScorer.from_archive(streamed, batch_size=batch_size)
    told: List[int] = []
    scores = list(scorer.score_text(text, done=told.append))
    assert [score.number for score in scores] == list(range(len(TEXT)))
    assert [" ".join(score.words) for score in scores] == TEXT
    assert sum(told) == len(TEXT)
    assert perplexities_of(scores) == pytest.approx(
        metrics_of(streamed, text, batch_size=batch_size), rel=1e-12
    )


def test_a_corpus_of_streams_is_no_news_of_a_score(
    streamed: Path, text: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scorer = SentenceScorer.from_archive(streamed)
    with caplog.at_level("INFO"):
        list(scorer.score_text(text))
    told = [record.name for record in caplog.records]
    assert not [name for name in told if name.startswith("elmo_scratch.data")]


def test_a_text_too_short_for_the_streams_can_be_read_by_sentences(
    streamed: Path, tmp_path: Path
) -> None:
    short = write_lines(tmp_path / "short.txt", ["the bank"])
    with pytest.raises(ConfigurationError, match="too short for 3 streams.*--state reset"):
        list(SentenceScorer.from_archive(streamed).score_text(short))
    (score,) = SentenceScorer.from_archive(streamed, state="reset").score_text(short)
    assert score.words == ["the", "bank"]


# States and batches


def test_from_zeros_scores_depend_on_nothing_but_the_sentence(streamed: Path) -> None:
    sentences = [line.split() for line in TEXT]
    by_batch = [
        list(SentenceScorer.from_archive(streamed, state="reset", batch_size=size).score(part, 2))
        for size, part in ((64, sentences), (3, sentences), (1, sentences[::-1]))
    ]
    by_batch[2].reverse()
    for other in by_batch[1:]:
        for one, another in zip(by_batch[0], other, strict=True):
            assert_same(one, another)


def test_carried_a_sentence_depends_on_those_before_but_not_on_the_call_before(
    streamed: Path,
) -> None:
    scorer = SentenceScorer.from_archive(streamed, state="carry", batch_size=1)
    twice = list(scorer.score([["the", "bank"]] * 2))
    assert not torch.equal(losses_of(twice[:1]), losses_of(twice[1:]))
    assert torch.equal(losses_of(list(scorer.score([["the", "bank"]]))), losses_of(twice[:1]))


def test_one_stream_scores_each_word_as_sentences_that_carry_their_state(
    streamed: Path, text: Path
) -> None:
    running = SentenceScorer.from_archive(streamed, batch_size=1).score_text(text, 2)
    carried = SentenceScorer.from_archive(streamed, state="carry", batch_size=1)
    for one, other in zip(running, carried.score_text(text, 2), strict=True):
        assert_same(one, other)


def test_a_text_of_any_length_is_scored_as_it_comes(sampled: Path) -> None:
    endless = itertools.cycle(line.split() for line in LINES)
    scores = SentenceScorer.from_archive(sampled, batch_size=2).score(endless)
    assert [score.number for score in itertools.islice(scores, 200)] == list(range(200))


# Numbers by hand


def even_scorer(probabilities: Dict[str, float]) -> SentenceScorer:
    """A language model that predicts the same at every place."""
    vocab = Vocabulary(tokens_to_add={"tokens": [word for word in probabilities if word[0] != "@"]})
    words = WordList.from_vocabulary(vocab, "tokens")
    sizes: Dict[str, Any] = dict(words.sizes())
    bilm = BiLm(token_encoder=WordEncoder(dim=3, **sizes), cell_size=7)
    softmax = FullSoftmax(num_words=sizes["num_words"], dim=3)
    with torch.no_grad():
        softmax.weight.zero_()
        shares = [probabilities.get(word, 0.0) for word in words.words]
        softmax.bias.copy_(torch.tensor(shares).log())
    return SentenceScorer(bilm, softmax, words, ListIndexer(words, None))


def test_both_directions_say_how_likely_a_word_is() -> None:
    shares = {"a": 1 / 4, "b": 1 / 8, "<S>": 1 / 8, "</S>": 1 / 4, "@@UNKNOWN@@": 1 / 4}
    (score,) = even_scorer(shares).score([["a", "b", "zebra"]], top=9)
    words = torch.tensor([*score.left_to_right[:-1], score.left_to_right[-1]]).exp().tolist()
    assert words == pytest.approx([1 / 4, 1 / 8, 1 / 4, 1 / 4])  # a, b, zebra, the end
    others = torch.tensor(score.right_to_left).exp().tolist()
    assert others == pytest.approx([1 / 8, 1 / 4, 1 / 8, 1 / 4])  # the beginning, a, b, zebra
    assert score.unknown == [2]
    assert score.perplexities()["perplexity_left_to_right"] == pytest.approx(2 ** (9 / 4))
    assert score.perplexities()["perplexity"] == pytest.approx(2 ** (19 / 8))
    # The product of both directions over a and b: 1/16 and 1/64.
    assert len(score.likely) == 3
    for place in score.likely:
        assert [word for word, _ in place] == ["a", "b"]
        assert [share for _, share in place] == pytest.approx([4 / 5, 1 / 5])


def test_likely_words_are_those_of_both_softmaxes_together(sampled: Path) -> None:
    (score,) = SentenceScorer.from_archive(sampled).score([["the", "bank", "rose"]], top=2)
    model = load_archive(sampled).model
    shares = {}
    for word in ("the", "bank", "river", "rose", "lent", "a", "é"):
        (other,) = SentenceScorer.from_archive(sampled).score([["the", word, "rose"]])
        shares[word] = other.left_to_right[1] + other.right_to_left[2]
    names = sorted(shares, key=lambda word: -shares[word])
    joint = torch.tensor([shares[name] for name in names]).softmax(0)
    expected = [LikelyWord(name, float(share)) for name, share in zip(names, joint)][:2]
    assert [word for word, _ in score.likely[1]] == [word for word, _ in expected]
    assert [share for _, share in score.likely[1]] == pytest.approx(
        [share for _, share in expected], abs=1e-5
    )
    assert model.words.words[:2] == ["@@PADDING@@", "<S>"]


# Official files


def test_official_files_score_as_the_archive_that_they_were_made_of(
    sampled: Path, text: Path, tmp_path: Path
) -> None:
    files = official_model(sampled, tmp_path / "official")
    theirs = SentenceScorer.from_official(*files, state="reset")
    ours = SentenceScorer.from_archive(sampled, state="reset")
    for one, other in zip(ours.score_text(text, 2), theirs.score_text(text, 2), strict=True):
        assert_same(one, other)


def test_official_files_have_the_perplexities_of_the_original_code() -> None:
    """The files and the numbers are TensorFlow's: `fixtures/ORIGIN.md`."""
    folder = FIXTURES_ROOT / "elmo" / "language_model"
    names = ("options.json", "weights.hdf5", "softmax_weights.hdf5", "vocab.txt")
    scorer = SentenceScorer.from_official(*(folder / name for name in names), state="reset")
    scores = list(scorer.score_text(FIXTURES_ROOT / "text" / "tour.txt"))
    original = json.loads((folder / "perplexities.json").read_text("utf-8"))
    assert [score.perplexities()["perplexity"] for score in scores] == pytest.approx(
        original["sentences"], rel=3e-6
    )
    assert perplexities_of(scores)["perplexity"] == pytest.approx(original["text"], rel=3e-6)


def test_a_model_folder_of_official_files_keeps_their_softmax(tmp_path: Path) -> None:
    official = FIXTURES_ROOT / "elmo" / "language_model"
    export_model_folder(official, tmp_path / "folder")
    sentences = [["the", "river", "bank"], ["zzyzx"]]
    theirs = SentenceScorer.from_pretrained(official, state="reset").score(sentences, 2)
    ours = SentenceScorer.from_pretrained(tmp_path / "folder").score(sentences, 2)
    for one, other in zip(theirs, ours, strict=True):
        assert_same(one, other)


def test_official_files_are_not_written_beside_a_softmax_that_would_not_fit(
    tmp_path: Path,
) -> None:
    folder = Path(shutil.copytree(FIXTURES_ROOT / "elmo" / "language_model", tmp_path / "model"))
    words = (folder / "vocab.txt").read_bytes()
    with pytest.raises(ConfigurationError, match="a folder without softmax_weights.hdf5"):
        export_bilm(folder, folder, overwrite=True)
    assert (folder / "vocab.txt").read_bytes() == words


def test_official_files_of_words_need_a_vocabulary_of_their_size(tmp_path: Path) -> None:
    archive = archive_of(tmp_path, bilm=WORD_BILM, has_corpus_vocabulary=True)
    files = official_model(archive, tmp_path / "official")
    (score,) = SentenceScorer.from_official(*files).score([["the", "zebra", "rose"]])
    assert score.unknown == [1]
    files.words.write_text("<S>\n</S>\n<UNK>\nthe\n", "utf-8")
    with pytest.raises(ConfigurationError, match="vocab.txt: expected as many words as"):
        SentenceScorer.from_official(*files)


# Mistakes


def test_a_sentence_has_words(sampled: Path) -> None:
    scorer = SentenceScorer.from_archive(sampled)
    (one,) = scorer.score([[Token("the"), Token("bank")]])
    (other,) = scorer.score([("the", "bank")])
    assert one == other
    with pytest.raises(ValueError, match="expected at least one word in each sentence"):
        list(scorer.score([["the"], []]))
    with pytest.raises(ValueError, match="to be a sequence of words, but got 'the bank'"):
        list(scorer.score(["the bank"]))


def test_a_model_needs_its_softmax(sampled: Path) -> None:
    read = read_language_model(sampled)
    num_words, dim = read.softmax["weight"].shape

    def build(**changes: torch.Tensor) -> None:
        tensors = {**read.softmax, **changes} if changes else {}
        softmax = LoadedSoftmax(read.config["model"]["softmax"], tensors)
        build_softmax(softmax, num_words, dim, "model.tar.gz")

    with pytest.raises(ConfigurationError, match="expected the weights of a softmax"):
        build()
    with pytest.raises(ConfigurationError, match="the softmax's weights do not fit the config"):
        build(weight=read.softmax["weight"][:-1])
    with pytest.raises(ConfigurationError, match="softmax.bias holds numbers that are not finite"):
        build(bias=read.softmax["bias"] * float("nan"))


@pytest.mark.parametrize("kind", ["sampled", "adaptive, carried"])
def test_a_model_folder_scores_as_its_archive(kind: str, tmp_path: Path) -> None:
    archive = archive_of(tmp_path / "archive", **KINDS[kind])
    export_model_folder(archive, tmp_path / "folder")
    sentences = [line.split() for line in TEXT]
    expected, found = (
        list(SentenceScorer.from_pretrained(model, batch_size=4).score(sentences, top=2))
        for model in (archive, tmp_path / "folder")
    )
    assert found == expected


def test_a_folder_looks_words_up_in_lower_case(tmp_path: Path) -> None:
    archive = archive_of(tmp_path / "archive", bilm=WORD_BILM, indexer={"lowercase_tokens": True})
    export_model_folder(archive, tmp_path / "folder")
    scorer = SentenceScorer.from_pretrained(tmp_path / "folder")
    upper, lower = scorer.score([["The", "BANK"], ["the", "bank"]])
    assert upper.left_to_right == lower.left_to_right
    assert upper.unknown == []


def test_the_news_of_a_table_are_read_as_in_evaluation(bilm_archive: Path) -> None:
    news = FIXTURES_ROOT / "news" / "dev.csv"
    scores = list(SentenceScorer.from_archive(bilm_archive).score_text(news))
    metrics = metrics_of(bilm_archive, news)
    assert perplexities_of(scores) == pytest.approx(metrics, rel=rounding())
    assert json.dumps(scores[0]._asdict())
