"""The notebook of examples/ is run from its first cell to its last, on a model that it trains."""

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import nbformat
import pytest
from ipykernel.kernelspec import write_kernel_spec
from nbclient import NotebookClient
from nbformat import NotebookNode

from tests import FIXTURES_ROOT, PROJECT_ROOT

pytestmark = pytest.mark.exhaustive

NOTEBOOK = PROJECT_ROOT / "examples" / "elmo.ipynb"
KERNEL = "tour"

FOUND = """
print(json.dumps({
    "exported": [layers.shape for layers in exported],
    "representations": [tuple(mixed.shape) for mixed in output["elmo_representations"]],
    "from the embedder": once.shape,
    "breakfast": {line: cosines.tolist() for line, cosines in elsewhere.items()},
    "means": [[word, name, *cosines.tolist()] for (word, name), cosines in means.items()],
    "neighbours": {
        line: [
            [" ".join(sentence) for _, sentence, _ in nearest("bank", line, layer)[:6]]
            for layer in range(3)
        ]
        for line in (RIVER, MONEY)
    },
}))
"""
"""What the cells computed, asked of their kernel in a last cell."""


class Run(NamedTuple):
    """A notebook that was run, and what its cells computed."""

    notebook: NotebookNode
    folder: Path
    found: Dict[str, Any]


def outputs(notebook: NotebookNode) -> List[NotebookNode]:
    """What all cells put out, in their order."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [output for cell in cells for output in cell.outputs]


def printed(notebook: NotebookNode) -> str:
    """All that its cells printed."""
    return "".join(output.text for output in outputs(notebook))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """
    Runs the notebook as if it were opened in `examples/` of a new checkout, by this Python and
    whatever kernels are installed.
    """
    checkout, jupyter = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("jupyter")
    (checkout / "examples").mkdir()
    (checkout / "fixtures").symlink_to(FIXTURES_ROOT)
    (checkout / "training_config").symlink_to(PROJECT_ROOT / "training_config")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(FOUND))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JUPYTER_PATH", str(jupyter))
        environment.setenv("JUPYTER_DATA_DIR", str(jupyter / "data"))
        environment.setenv("IPYTHONDIR", str(jupyter / "ipython"))
        write_kernel_spec(jupyter / "kernels" / KERNEL)
        client = NotebookClient(
            notebook,
            kernel_name=KERNEL,
            timeout=600,
            coalesce_streams=True,
            resources={"metadata": {"path": str(checkout / "examples")}},
        )
        client.execute()
    (last,) = notebook.cells.pop().outputs
    return Run(notebook, checkout, json.loads(last.text))


def test_it_trains_a_model_and_exports_three_layers(run: Run) -> None:
    lines = (FIXTURES_ROOT / "text" / "tour.txt").read_text().splitlines()
    assert run.found["exported"] == [[3, len(line.split()), 128] for line in lines]
    assert (run.folder / "runs" / "tour" / "model" / "options.json").is_file()
    assert os.listdir(run.folder / "examples") == []


def test_elmo_and_the_embedder_have_the_shapes_of_the_original(run: Run) -> None:
    assert run.found["representations"] == [[2, 9, 128], [2, 9, 128]]
    assert run.found["from the embedder"] == [3, 5, 128]


def test_the_words_around_it_tell_an_apple_for_breakfast_from_one_on_a_laptop(run: Run) -> None:
    lunch, laptop = run.found["breakfast"].values()
    assert lunch[0] == pytest.approx(1) and laptop[0] == pytest.approx(1)
    assert lunch[2] > laptop[2] + 0.1


def test_words_of_the_same_sense_are_closer_in_the_lstm_layers(run: Run) -> None:
    means = {(word, name): cosines for word, name, *cosines in run.found["means"]}
    for word in ("apple", "bank"):
        same, different = means[word, "same sense"], means[word, "different"]
        assert same[0] == pytest.approx(1) and different[0] == pytest.approx(1)
        assert same[2] > different[2] + 0.02


def test_the_nearest_banks_are_of_the_same_sense_in_the_top_layer(run: Run) -> None:
    river, money = run.found["neighbours"].values()
    assert river[0] == money[0]  # the token layer can't tell them apart
    by_the_river = re.compile(r"\b(boat|canoe|fish\w*|mud\w*|raft|river|stream|tied|water)\b")
    assert sum(bool(by_the_river.search(line)) for line in river[2]) >= 4
    assert sum(bool(by_the_river.search(line)) for line in money[2]) <= 2


@pytest.mark.parametrize("which", ["as committed", "as run here"])
def test_it_shows_results_and_nothing_else(which: str, run: Run) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4) if which == "as committed" else run.notebook
    assert {output.get("name") for output in outputs(notebook)} == {"stdout"}  # no warning, no bar
    assert "LSTM 2" in printed(notebook)
    assert not re.search(r"(?<!\S)(/|[A-Z]:\\)\w", printed(notebook))  # no path of a machine


def test_the_committed_outputs_are_those_of_the_cells(run: Run) -> None:
    committed = nbformat.read(NOTEBOOK, as_version=4)
    for cell, again in zip(committed.cells, run.notebook.cells, strict=True):
        if cell.id in ("export", "elmo", "embedder"):  # the others may differ by a rounding
            assert [output.text for output in cell.outputs] == [o.text for o in again.outputs]
