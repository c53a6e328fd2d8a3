"""Vectors and their words, for the embedding projector of TensorBoard."""

from pathlib import Path
from typing import Callable, Optional, Sequence

import numpy

from elmo_scratch.explore.tokens import ExportedTokens
from elmo_scratch.files.atomic import atomic_writes

VECTORS, METADATA, CONFIG = "vectors.tsv", "metadata.tsv", "projector_config.pbtxt"


def write_projector(
    tokens: ExportedTokens,
    layer: int,
    folder: Path,
    *,
    labels: Optional[Sequence[str]] = None,
    done: Callable[[int], object] = lambda rows: None,
) -> None:
    """
    Writes the unit vectors of a layer, a token a line, what each token is, and the config by which
    `tensorboard --logdir FOLDER` shows them. All three files appear, or none.

    # Parameters

    tokens : `ExportedTokens`
        The tokens.
    layer : `int`
        The number of the layer.
    folder : `Path`
        Where to write. The folder above must exist.
    labels : `Sequence[str]`, optional (default = none)
        A label for each sentence.
    done : `Callable[[int], object]`, optional (default = nothing)
        Is told how many more tokens have been written.

    # Raises

    ConfigurationError
        If the file of layers is damaged.
    IndexError
        If there is no such layer.
    OSError
        If the disk is full.
    """
    tokens.check_layer(layer)
    with atomic_writes(folder, [VECTORS, METADATA, CONFIG]) as written:
        with (written / VECTORS).open("w", encoding="utf-8") as file:
            for _, block in tokens.blocks([layer]):
                numpy.savetxt(file, block[0], fmt="%.6g", delimiter="\t")
                done(block.shape[1])
        with (written / METADATA).open("w", encoding="utf-8", errors="replace") as file:
            print("word", "sentence", "position", "label", "text", sep="\t", file=file)
            for place, sentence in enumerate(tokens.sentences):
                # A label may hold tabs; words are what stands between white space.
                label = "" if labels is None else " ".join(labels[place].split())
                number = tokens.numbers[place]
                for position, word in enumerate(sentence.split()):
                    print(word, number, position, label, sentence, sep="\t", file=file)
        (written / CONFIG).write_text(
            f'embeddings {{\n  tensor_name: "{tokens.layer_name(layer)}"\n'
            f'  tensor_path: "{VECTORS}"\n  metadata_path: "{METADATA}"\n}}\n',
            encoding="utf-8",
        )
