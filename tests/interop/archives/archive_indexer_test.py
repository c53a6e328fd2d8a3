from pathlib import Path
from typing import Any, Dict

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer, SingleIdTokenIndexer

from elmo_scratch.data import CharacterIndexer
from elmo_scratch.data.spelling import CharacterWordIndexer
from elmo_scratch.interop import PretrainedBiLm, read_bilm_archive
from elmo_scratch.interop.archives.archive_indexer import ReaderWordIndexer, archive_word_indexer
from elmo_scratch.interop.archives.blueprint import ListedWordIndexer
from tests.tiny_archives import archive_of

SENTENCES = [["The", "naïve", "bank"], [], ["<S>", "x" * 60]]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return archive_of(tmp_path_factory.mktemp("characters"))


@pytest.fixture
def of_characters(archive: Path) -> PretrainedBiLm:
    return read_bilm_archive(archive)


def indexers_of(pretrained: PretrainedBiLm) -> Dict[str, Any]:
    return pretrained.reader.token_indexers  # type: ignore[attr-defined]


def test_characters_are_spelled_without_the_reader(of_characters: PretrainedBiLm) -> None:
    word_indexer = archive_word_indexer(of_characters)
    assert isinstance(word_indexer, CharacterWordIndexer)
    encoder = of_characters.bilm.token_encoder
    slow = ReaderWordIndexer(of_characters.reader, of_characters.vocab, encoder)
    ours, theirs = word_indexer.spell(SENTENCES), slow.spell(SENTENCES)
    assert torch.equal(ours.token_ids().long(), theirs.token_ids())
    assert torch.equal(ours.mask, theirs.mask)
    assert ours.lengths == theirs.lengths


def test_words_are_looked_up_without_the_reader(pretrained: PretrainedBiLm) -> None:
    word_indexer = archive_word_indexer(pretrained)
    assert isinstance(word_indexer, ListedWordIndexer) and word_indexer.lowercase
    slow = ReaderWordIndexer(pretrained.reader, pretrained.vocab, pretrained.bilm.token_encoder)
    sentences = [["The", "river", "zzyzx"], [], ["<S>", "@@PADDING@@", "GOAL", "@@UNKNOWN@@"]]
    ours, theirs = word_indexer.spell(sentences), slow.spell(sentences)
    assert torch.equal(ours.ids, theirs.ids) and torch.equal(ours.mask, theirs.mask)
    assert ours.lengths == theirs.lengths


def test_an_indexer_that_adds_words_is_used(pretrained: PretrainedBiLm) -> None:
    indexers = indexers_of(pretrained)
    indexers["tokens"] = SingleIdTokenIndexer(lowercase_tokens=True, end_tokens=["the"])
    assert isinstance(archive_word_indexer(pretrained), ReaderWordIndexer)


@pytest.mark.parametrize("is_alone", [True, False])
def test_an_indexer_of_someone_else_is_used(of_characters: PretrainedBiLm, is_alone: bool) -> None:
    indexers = indexers_of(of_characters)
    indexers["characters" if is_alone else "others"] = ELMoTokenCharactersIndexer()
    word_indexer = archive_word_indexer(of_characters)
    assert isinstance(word_indexer, ReaderWordIndexer)
    assert word_indexer.spell(SENTENCES[:1]).ids.shape == (1, 3, 50)


def test_an_indexer_that_spells_otherwise_is_an_error(of_characters: PretrainedBiLm) -> None:
    indexers = indexers_of(of_characters)
    indexers["characters"] = CharacterIndexer(max_characters_per_token=20)
    with pytest.raises(ConfigurationError, match="`max_characters_per_token` to 50"):
        archive_word_indexer(of_characters).spell(SENTENCES)
    del indexers["characters"]
    with pytest.raises(ConfigurationError, match=r"but the indexers \['tokens'\] make \['tokens'"):
        archive_word_indexer(of_characters).spell(SENTENCES)
