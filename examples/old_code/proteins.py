"""
Vectors of proteins, by a biLM of amino acids such as SeqVec:

    python examples/old_code/proteins.py sequences.fasta vectors.npz \
        --options-file options.json --weight-file weights.hdf5

For each sequence of the FASTA file vectors.npz has an array of shape (residues, width), the sum of
the layers, under the first word of the sequence's header.
"""

import argparse
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

import numpy
from allennlp.commands.elmo import ElmoEmbedder


def sequences_of(path: str) -> Iterator[Tuple[str, str]]:
    """The name and the residues of each sequence of a FASTA file."""
    name, residues = "", ""
    with open(path, encoding="ascii") as lines:
        for line in lines:
            if line.startswith(">"):
                if residues:
                    yield name, residues
                name, residues = line[1:].split()[0], ""
            else:
                residues += line.strip().upper().rstrip("*")
    if residues:
        yield name, residues


def main() -> None:
    """Reads the sequences and writes the vectors."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sequences", help="a FASTA file")
    parser.add_argument("vectors", help="the file to write, whose name ends in .npz")
    parser.add_argument("--options-file", required=True)
    parser.add_argument("--weight-file", required=True)
    parser.add_argument("--cuda-device", type=int, default=-1, help="-1 (default): the processor")
    args = parser.parse_args()

    embedder = ElmoEmbedder(args.options_file, args.weight_file, cuda_device=args.cuda_device)
    # Sequences of like length share a batch.
    sequences = sorted(sequences_of(args.sequences), key=lambda one: len(one[1]))
    layers = embedder.embed_sentences([list(residues) for _, residues in sequences], batch_size=8)
    vectors: Dict[str, Any] = {
        name: three.sum(axis=0) for (name, _), three in zip(sequences, layers)
    }
    Path(args.vectors).parent.mkdir(parents=True, exist_ok=True)
    numpy.savez(args.vectors, **vectors)
    width = next(iter(vectors.values())).shape[1]
    residues = sum(map(len, vectors.values()))
    print(f"{args.vectors}: {len(vectors)} proteins, {residues} residues of {width} numbers")


if __name__ == "__main__":
    main()
