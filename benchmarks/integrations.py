"""
How fast a pipeline of spaCy's and one of scikit-learn's turn texts into vectors, beside the bare
biLM on the same batches; in one run and by turns:

    python benchmarks/integrations.py --model small --dtype float32

It prints one table and one line of JSON. Weights are random, of the released models' sizes. The
pipelines split texts, make ids, batch sentences by length and give the average of all layers; the
biLM reads ids that were made before.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Dict, List

import torch
from embed import MODELS, new_bilm
from export import read_lines
from spacy.lang.en import English
from work import timed

import elmo_scratch.integrations.spacy_component  # noqa: F401  (registers the component)
from elmo_scratch import ElmoVectorizer, SentenceLayers, write_official_bilm
from elmo_scratch.export.pipeline import blocks_of_batches
from elmo_scratch.export.plan import ExportSettings
from elmo_scratch.export.text import Sentence


def main() -> None:
    """Prints what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=MODELS, default="small", help="(default: small)")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--text", type=Path, help="sentences, one a line")
    parser.add_argument("--batches", type=int, default=16, help="at most so many (default: 16)")
    parser.add_argument("--repeats", type=int, default=5, help="passes (default: 5)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(args, folder)


def measure(args: argparse.Namespace, folder: str) -> None:
    """Times the systems by turns, each with a model of its own."""
    torch.manual_seed(0)
    write_official_bilm(new_bilm(args.model), folder)
    files = [f"{folder}/options.json", f"{folder}/weights.hdf5"]
    texts = read_lines(args)
    cpu = torch.device("cpu")

    nlp = English()
    nlp.add_pipe("elmo_scratch", config={"model": files, "matmul_dtype": args.dtype})
    vectorizer = ElmoVectorizer(files, matmul_dtype=args.dtype).fit(texts)
    bare = SentenceLayers.from_official(*files, state="reset", matmul_dtype=args.dtype)
    words = [[token.text for token in nlp.make_doc(text)] for text in texts]
    numbered = [Sentence(number, "", sentence) for number, sentence in enumerate(words)]
    batches = [
        bare.spell([sentence.tokens for sentence in batch])
        for block in blocks_of_batches(numbered, ExportSettings(), is_carried=False)
        for batch in block
    ]
    ids = [(batch.token_ids(), batch.mask) for batch in batches]
    encoders = {
        "bare_bilm": bare.bilm.token_encoder,
        "spacy": nlp.get_pipe("elmo_scratch").layers.bilm.token_encoder,
        "scikit_learn": vectorizer._layers.bilm.token_encoder,
    }

    def run_bare() -> None:
        with torch.inference_mode():
            for batch in ids:
                bare.bilm(*batch)

    runs = {
        "bare_bilm": run_bare,
        "spacy": lambda: list(nlp.pipe(texts)),
        "scikit_learn": lambda: vectorizer.transform(texts),
    }
    times: Dict[str, List[float]] = {system: [] for system in runs}
    for repeat in range(args.repeats + 1):
        for system, run in runs.items():
            encoders[system].forget_words()
            seconds, _ = timed(run, cpu)
            if repeat > 0:  # the first one warms up
                times[system].append(seconds)
    tokens = sum(map(len, words))
    speeds = {system: tokens / statistics.median(passes) for system, passes in times.items()}
    found = {
        "model": args.model,
        "dtype": args.dtype,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "texts": len(texts),
        "tokens": tokens,
        **{f"{system}_tokens_per_s": round(speed, 1) for system, speed in speeds.items()},
        **{
            f"{system}_share_of_bare_bilm": round(speeds[system] / speeds["bare_bilm"], 3)
            for system in ("spacy", "scikit_learn")
        },
    }
    for name, value in found.items():
        print(f"{name:>34}  {value}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
