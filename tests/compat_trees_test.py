"""AllenNLP's reader of constituency trees and their scorer, helped by `elmo_scratch_compat`."""

import shutil
from pathlib import Path

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.training.metrics import DEFAULT_EVALB_DIR, EvalbBracketingScorer, Metric
from allennlp_models.structured_prediction import PennTreeBankConstituencySpanDatasetReader
from nltk import Tree
from nltk.corpus.reader import BracketParseCorpusReader

from tests.allennlp_behaviours import names_in

TREES = """\
(TOP (S (NP-SBJ (DT The) (NN rain)) (VP (VBD fell)) (. .)))
( (S
    (NP (PRP It))
    (VP (VBZ is) (ADJP (JJ schön)))))
"""


def test_trees_are_read_from_the_file_that_is_named_and_nltk_opens_no_more_than_before(
    tmp_path: Path,
) -> None:
    file = tmp_path / "trees.txt"
    file.write_text(TREES, encoding="utf-8")
    # NLTK would read such a file from none of its folders, wherever `tmp_path` is.
    file.chmod(0o666)
    (tmp_path / "link.txt").symlink_to(file)
    for name in ("trees.txt", "link.txt"):
        with pytest.raises(PermissionError):
            list(BracketParseCorpusReader(str(tmp_path), [name]).parsed_sents())
        instances = PennTreeBankConstituencySpanDatasetReader().read(tmp_path / name)
        trees = [instance["metadata"]["gold_tree"] for instance in instances]
        assert [tree.pformat(margin=1000) for tree in trees] == [
            "(S (NP (DT The) (NN rain)) (VP (VBD fell)) (. .))",
            "(S (NP (PRP It)) (VP (VBZ is) (ADJP (JJ schön))))",
        ]


@pytest.fixture
def evalb(tmp_path: Path) -> Path:
    """A folder with the source of EVALB."""
    folder = tmp_path / "EVALB"
    shutil.copytree(DEFAULT_EVALB_DIR, folder, ignore=shutil.ignore_patterns("evalb"))
    return folder


def score(folder: Path) -> float:
    """The F1 that a scorer from a config gives to a tree with two of three constituents."""
    scorer = Metric.from_params(Params({"type": "evalb", "evalb_directory_path": str(folder)}))
    assert isinstance(scorer, EvalbBracketingScorer)
    gold = Tree.fromstring("(S (NP (DT The) (NN rain)) (VP (VBD fell)))")
    scorer([Tree.fromstring("(S (NP (DT The) (NN rain)) (PP (VBD fell)))")], [gold])
    return scorer.get_metric()["evalb_f1_measure"]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="EVALB is compiled by gcc")
def test_trees_are_scored_and_nothing_is_written_beside_the_source(evalb: Path) -> None:
    before = names_in(evalb)
    assert score(evalb) == pytest.approx(2 / 3)
    assert names_in(evalb) == before


def test_that_no_compiler_is_there_is_said_before_the_trees_are(
    evalb: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(evalb))
    with pytest.raises(ConfigurationError, match=f"{evalb}: EVALB is not compiled.*: null` trains"):
        score(evalb)
    assert "without `make` and `gcc` it can't be compiled" in caplog.text


def test_a_compiled_evalb_is_used_where_it_is(
    evalb: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (evalb / "evalb").write_text("#!/bin/sh\necho 1 2 0 50.00 50.00 3 6 6 0 2 2 100.00\n")
    (evalb / "evalb").chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert score(evalb) == 0.5
    assert caplog.text == ""
