"""What is imported for whom: nobody waits for what isn't used."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Optional, Set

from elmo_scratch.interop import export_model_folder
from tests import FIXTURES_ROOT, PROJECT_ROOT

HEAVY = {
    "allennlp.commands",
    "allennlp.data",
    "allennlp.models",
    "allennlp.modules",
    "allennlp.nn",
    "allennlp.training",
    "allennlp_models",
    "nltk",
    "pandas",
    "scipy",
    "sklearn",
    "spacy",
    "transformers",
}
"""Seconds, and needed only for trainings and archives."""


def imported_by(program: str, folder: Optional[Path] = None) -> Set[str]:
    """All modules that a program of a process of its own has imported in the end."""
    program += "\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert finished.returncode == 0, finished.stderr
    return set(json.loads(finished.stdout.splitlines()[-1]))


def test_the_package_alone_costs_nothing() -> None:
    imported = imported_by("import elmo_scratch; assert elmo_scratch.VERSION; dir(elmo_scratch)")
    assert not imported & {"allennlp", "h5py", "numpy", "torch"}
    assert not {name for name in imported if name.startswith("elmo_scratch")} - {
        "elmo_scratch",
        "elmo_scratch.files",
        "elmo_scratch.files.lazy_exports",
        "elmo_scratch.version",
    }


def test_a_folder_of_its_name_is_not_taken_for_it(tmp_path: Path) -> None:
    """As in the folder above a clone."""
    (tmp_path / "elmo_scratch").mkdir()
    assert "elmo_scratch.version" in imported_by("from elmo_scratch import VERSION", tmp_path)


def test_drop_ins_and_model_folders_import_no_more_than_they_need(tmp_path: Path) -> None:
    official = FIXTURES_ROOT / "elmo" / "residual"
    files = [str(official / name) for name in ("options.json", "weights.hdf5")]
    archive = PROJECT_ROOT / "tests" / "golden" / "words" / "model.tar.gz"
    export_model_folder(archive, tmp_path / "folder")
    imported = imported_by(
        "from elmo_scratch import BiLm, Elmo, ElmoEmbedder, SentenceLayers, batch_to_ids\n"
        f"files = {files}\n"
        "Elmo(*files, 1)(batch_to_ids([['The', 'river']]))\n"
        "ElmoEmbedder(*files).embed_sentence(['The', 'river'])\n"
        f"folder = {str(tmp_path / 'folder')!r}\n"
        "Elmo.from_pretrained(folder)\n"
        "ElmoEmbedder.from_pretrained(folder).embed_sentence(['The', 'river'])\n"
        "SentenceLayers(folder)([['The', 'river']])"
    )
    assert {"allennlp.common", "h5py", "safetensors", "torch"} <= imported
    assert imported & {*HEAVY, "torch._dynamo", "sympy"} == set()


def test_a_command_imports_no_more_than_allennlp_needs(tmp_path: Path) -> None:
    # Parts of AllenNLP have these names.
    for name in ("data", "lm", "models"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a file of the user has run')")
    imported = imported_by(
        "from allennlp.common.plugins import import_plugins; import_plugins()", tmp_path
    )
    assert {"allennlp_models.rc.tools.narrativeqa", "elmo_scratch.commands.elmo"} <= imported
    unused = {
        "ftfy",
        "nltk",
        "pandas",
        "pkg_resources",
        "rouge",
        "scipy.sparse",
        "scipy.stats",
        "sklearn",
        "spacy",
    }
    unused |= {"transformers.modeling_utils", "transformers.models", "torch._dynamo"}
    assert imported & {*unused, "elmo_scratch.integrations"} == set()


def test_an_archive_is_read_without_pytorchs_compiler(bilm_archive: Path) -> None:
    """It would take seconds, for weights that are never drawn."""
    imported = imported_by(
        f"import elmo_scratch; elmo_scratch.read_bilm_archive({str(bilm_archive)!r})"
    )
    assert "elmo_scratch.interop.archives.archive" in imported
    assert not imported & {"torch._dynamo", "sympy"}
