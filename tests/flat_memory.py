"""
A program that reads batches of varying text in one of `PATHS`, and prints how much memory it takes
after a warm-up and after `MORE` batches.
"""

import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Callable, Dict, Iterator, List

import torch

from elmo_scratch.data import batch_to_ids
from elmo_scratch.embedders import Elmo
from elmo_scratch.export import ElmoEmbedder
from elmo_scratch.interop.official.options import CharCnnOptions, LstmOptions, Options
from tests import FIXTURES_ROOT
from tests.tiny_elmo import OfficialFiles, write_files

OPTIONS = Options(
    LstmOptions(
        dim=128,
        projection_dim=64,
        n_layers=2,
        cell_clip=3.0,
        proj_clip=3.0,
        use_skip_connections=True,
    ),
    CharCnnOptions(
        embedding_dim=16,
        filters=((1, 32), (2, 32), (3, 64), (4, 128), (5, 256)),
        n_highway=1,
        activation="relu",
        max_characters_per_token=50,
    ),
)
"""Large enough that what oneDNN keeps for one number of words takes 0.6 MB."""

WARM_UP, MORE = 100, 1000
"""Batches: what one batch takes is known after few, and whether each adds to it after many."""

MOST_SENTENCES = 12
"""In a batch."""

TOGETHER = 20
"""So many batches are the text of an export."""

Step = Callable[[List[List[str]]], None]


def resident() -> float:
    """The memory of this process in MiB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 2**10


def batches(seed: int) -> Iterator[List[List[str]]]:
    """Sentences of the fixture, in which every second word is one that nobody has seen."""
    lines = (FIXTURES_ROOT / "text" / "sentences.txt").read_text(encoding="utf-8").splitlines()
    known = [line.split() for line in lines]
    draw = random.Random(seed)
    while True:
        sentences = draw.choices(known, k=draw.randint(1, MOST_SENTENCES))
        yield [
            [
                word if draw.random() < 0.5 else "".join(draw.choices(word + "aeiou", k=len(word)))
                for word in sentence[: draw.randint(1, len(sentence))]
            ]
            for sentence in sentences
        ]


def inference(files: OfficialFiles) -> Step:
    elmo = Elmo(files.options, files.weights, 1).eval()

    def step(batch: List[List[str]]) -> None:
        with torch.inference_mode():
            elmo(batch_to_ids(batch))

    return step


def training(files: OfficialFiles, requires_grad: bool) -> Step:
    elmo = Elmo(files.options, files.weights, 1, requires_grad=requires_grad)
    head = torch.nn.Linear(elmo.get_output_dim(), 3)
    weights = [one for part in (elmo, head) for one in part.parameters() if one.requires_grad]
    optimizer = torch.optim.SGD(weights, lr=1e-4)

    def step(batch: List[List[str]]) -> None:
        (vectors,) = elmo(batch_to_ids(batch))["elmo_representations"]
        optimizer.zero_grad()
        head(vectors).square().mean().backward()
        optimizer.step()

    return step


def export(files: OfficialFiles) -> Step:
    embedder = ElmoEmbedder(files.options, files.weights)
    waiting: List[List[List[str]]] = []

    def step(batch: List[List[str]]) -> None:
        waiting.append(batch)
        if len(waiting) < TOGETHER:
            return
        with TemporaryDirectory() as folder:
            text = Path(folder, "text.txt")
            lines = [" ".join(sentence) for batch in waiting for sentence in batch]
            text.write_text("\n".join(lines), encoding="utf-8")
            embedder.embed_file(text, Path(folder, "layers.hdf5"), batch_size=MOST_SENTENCES // 2)
        waiting.clear()

    return step


PATHS: Dict[str, Callable[[OfficialFiles], Step]] = {
    "inference": inference,
    "frozen": lambda files: training(files, requires_grad=False),
    "trained": lambda files: training(files, requires_grad=True),
    "export": export,
}


def main() -> None:
    torch.manual_seed(13)
    stream = batches(seed=7)
    taken: List[float] = []
    with TemporaryDirectory() as folder:
        step = PATHS[sys.argv[1]](write_files(Path(folder), OPTIONS))
        for size in (WARM_UP, MORE):
            for _ in range(size):
                step(next(stream))
            taken.append(resident())
    print(*taken)


if __name__ == "__main__":
    main()
