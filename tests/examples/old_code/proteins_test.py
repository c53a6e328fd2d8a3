from pathlib import Path

import numpy

from elmo_scratch import ElmoEmbedder
from tests import FIXTURES_ROOT, PROJECT_ROOT
from tests.examples.run_program import run_program

PROGRAM = PROJECT_ROOT / "examples" / "old_code" / "proteins.py"
MODEL = FIXTURES_ROOT / "elmo" / "residual"
OPTIONS, WEIGHTS = str(MODEL / "options.json"), str(MODEL / "weights.hdf5")


def test_each_residue_has_the_sum_of_its_layers(tmp_path: Path) -> None:
    fasta, vectors = FIXTURES_ROOT / "proteins" / "three.fasta", tmp_path / "new" / "vectors.npz"
    files = ["--options-file", OPTIONS, "--weight-file", WEIGHTS]
    done = run_program(PROGRAM, str(fasta), str(vectors), *files)
    assert done.status == 0, done.errors
    assert done.output == f"{vectors}: 3 proteins, 86 residues of 12 numbers\n"
    with numpy.load(vectors) as found:
        assert {name: found[name].shape for name in found} == {
            "made_up_1": (33, 12),
            "made_up_2": (20, 12),
            "made_up_3": (33, 12),
        }
        # The shortest sequence is the first of the batch.
        layers = ElmoEmbedder(OPTIONS, WEIGHTS).embed_sentence(list("GAVLIPFMWSTCYNQDEKRH"))
        numpy.testing.assert_allclose(found["made_up_2"], layers.sum(axis=0), atol=1e-5)
