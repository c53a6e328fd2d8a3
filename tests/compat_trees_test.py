"""AllenNLP's reader of constituency trees, with the help of `elmo_scratch_compat`."""

from pathlib import Path

import pytest
from allennlp_models.structured_prediction import PennTreeBankConstituencySpanDatasetReader
from nltk.corpus.reader import BracketParseCorpusReader

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
