"""The programs of examples/tiny_model, on small texts and on the model that they made."""

import re
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Dict
from unittest.mock import patch

import pytest

from elmo_scratch import read_bilm
from elmo_scratch.interop.named_models import PACKAGED_MODELS
from tests import FIXTURES_ROOT, PROJECT_ROOT
from tests.examples.run_program import modules_of, run_program

PROGRAMS = PROJECT_ROOT / "examples" / "tiny_model"
ARCHIVE = PROJECT_ROOT / "tests" / "golden" / "words" / "model.tar.gz"
CARD = (PACKAGED_MODELS["tiny"] / "README.md").read_text("utf-8")

WIKI = """ = One =

 The <unk> wasn 't half @-@ built in 1 @,@ 200 . It fell . He said " no . Never . " She left .
 = = A part = =
 Mr . jones met ( the others . ) They ate .
 = Two =
 Not read .
"""

CONLLU = "# text = Don't run.\n1-2\tDon't\n1\tDo\n2\tn't\n3\trun\n3.1\tx\n4\t. .\n\n1\tYes\n\n"


@pytest.fixture(scope="module")
def modules() -> Dict[str, ModuleType]:
    return modules_of(PROGRAMS)


def test_sentences_are_split_and_words_put_back(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    (tmp_path / "wiki").write_text(WIKI, "utf-8")
    assert modules["tiny_texts"].wiki_sentences(tmp_path / "wiki", 1) == [
        "The <UNK> was n't half-built in 1,200 .",
        "It fell .",
        'He said " no . Never . "',
        "She left .",
        "Mr . jones met ( the others . )",
        "They ate .",
    ]
    (tmp_path / "ewt").write_text(CONLLU, "utf-8")
    assert modules["tiny_texts"].ewt_sentences(tmp_path / "ewt") == [
        "Do n't run . .",
        "Yes",
    ]


def test_a_finished_training_becomes_a_folder_with_its_card(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    (tmp_path / "wiki").write_text(WIKI, "utf-8")
    (tmp_path / "ewt").write_text(CONLLU, "utf-8")
    (tmp_path / "run" / "training").mkdir(parents=True)
    shutil.copy(ARCHIVE, tmp_path / "run" / "training")
    wiki, ewt = str(tmp_path / "wiki"), str(tmp_path / "ewt")
    words = ["make_tiny.py", "--wikitext", wiki, wiki, "--ewt", ewt, ewt]
    words += ["--run", str(tmp_path / "run"), "--output", str(tmp_path / "model")]
    with patch.object(sys, "argv", words):
        modules["make_tiny"].main()
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert "| layers | 3, of 8 numbers each" in card
    # All of WIKI, as it has no 163 articles, and CONLLU.
    assert "Together they have 43 words." in card
    assert re.search(r"^\| UD English EWT \| 6 \| 66.7% \| [\d.]+ \|", card, re.MULTILINE)
    assert read_bilm(tmp_path / "model").bilm.width == 8


def test_the_recipe_is_that_of_the_model(modules: Dict[str, ModuleType]) -> None:
    config = modules["make_tiny"].CONFIG
    bilm = read_bilm("tiny").blueprint.config
    text = config.read_text("utf-8")
    assert f"cell_size: {bilm['cell_size']}," in text
    assert f"dim: {bilm['token_encoder']['dim']}," in text
    assert f"filters: {bilm['token_encoder']['filters']}," in text


def test_the_card_counts_senses_as_the_program_does() -> None:
    printed = run_program(PROGRAMS / "tiny_senses.py")
    assert printed.status == 0, printed.errors
    assert printed.output in CARD
    shares = re.findall(r"^\| all \| 96 \| ([\d.]+)% \| ([\d.]+)% \|$", CARD, re.MULTILINE)[0]
    chance = float(re.findall(r"^\| chance \| \| ([\d.]+)%", CARD, re.MULTILINE)[0])
    # 96 draws by chance stay below 60 % in 99 of 100 cases.
    assert chance == 46.7 and all(float(share) > 60 for share in shares)


def test_the_picture_is_drawn_from_the_model(tmp_path: Path) -> None:
    # Other versions place letters a little differently.
    pytest.importorskip("matplotlib", minversion="3.11")
    drawn = run_program(PROGRAMS / "tiny_picture.py", str(tmp_path / "bank.svg"))
    assert drawn.status == 0, drawn.errors
    picture = PROJECT_ROOT / "docs" / "pictures" / "bank.svg"
    assert (tmp_path / "bank.svg").read_bytes() == picture.read_bytes()
    assert picture.stat().st_size < 60_000
    other = FIXTURES_ROOT / "elmo" / "residual"
    run_program(PROGRAMS / "tiny_picture.py", str(tmp_path / "bank.svg"), "--model", str(other))
    assert (tmp_path / "bank.svg").read_bytes() != picture.read_bytes()
