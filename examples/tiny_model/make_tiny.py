"""
Makes the model `tiny`, which comes with the package, from texts that others have published: the
files of WikiText-103 (Merity et al. 2016) and of UD English EWT 2.16.

    python examples/tiny_model/make_tiny.py --run runs/tiny --output runs/tiny/model \\
      --wikitext wiki.train.tokens wiki.valid.tokens \\
      --ewt en_ewt-ud-train.conllu en_ewt-ud-dev.conllu

The first 163 articles of WikiText-103 are read. `--run` holds the prepared texts and the training;
called again, it goes on where it stopped. The model is stored in float16, measured as it is stored,
and described by its card.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

from tiny_senses import sense_table
from tiny_texts import TinyTexts

from elmo_scratch import SentenceScorer, read_bilm
from elmo_scratch.data.vocabulary_file import MARKS
from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.interop import export_model_folder
from elmo_scratch.scoring import TextScore

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "training_config" / "bilm" / "tiny.jsonnet"
FIXTURE = "fixtures/text/heldout.txt"
"""A small text of this project's, on which a test measures the card's perplexity again."""

CARD = """\
---
license: cc-by-sa-4.0
language: en
library_name: elmo_scratch
pipeline_tag: feature-extraction
tags:
- elmo
- allennlp
- word-embeddings
---

# tiny

A small bidirectional language model over characters, in the form of ELMo (Peters et al. 2018). It
comes with the package to try it within a minute, offline, and to test one's own code.

```python
from elmo_scratch import ElmoEmbedder

elmo = ElmoEmbedder.from_pretrained("tiny")
layers = elmo.embed_sentence(["The", "river", "bank", "."])  # shape ({layers}, 4, {width})
```

| | |
|---|---|
| reads | the characters of words |
| layers | {layers}, of {width} numbers each: the static token layer, and LSTMs above it |
| weights | {weights:,} and {softmax:,} of the softmax, stored in float16, read as float32 |
| predicts | {words:,} words in lower case, and three marks |

It is no model for work: the released ELMo models have read 800 million words, this one {tokens:,}.
Its layers follow the words beside a word more than the topic of its sentence, it knows the spelling
of English alone, and whatever prejudice its texts hold, it may hold too.

## Data

- WikiText-103 (Merity et al. 2016), the first 163 articles of its training text
- UD English EWT 2.16 (Silveira et al. 2014), its training text: weblogs, newsgroups, e-mails,
  reviews and answers

Together they have {tokens:,} words. Spelling counts upper and lower case; what is predicted is in
lower case, and the words beyond the {words:,} most frequent are one unknown word.

## Perplexity

Per word and sentence end, each sentence from zeros, with the weights of this folder. The unknown
word counts as one word. `allennlp elmo-score tiny TEXT` measures it.

| held-out text | words | unknown | left to right | right to left | both |
|---|---:|---:|---:|---:|---:|
{perplexities}

## Senses

How many of a word's occurrences have their nearest other occurrence, by the cosine of a layer, in
the same sense: of 96 sentences that were written for it, six words in two senses each. The static
layer gives all of them one vector. `python examples/tiny_model/tiny_senses.py` counts.

{senses}

## Training

`training_config/bilm/tiny.jsonnet` by `examples/tiny_model/make_tiny.py`, which has the command.

## Licence

The weights are offered under [CC BY-SA 4.0](https://creativecommons.org/licenses/by-sa/4.0/), since
the texts that they were computed from are under Creative Commons Attribution-ShareAlike: UD English
EWT under 4.0, WikiText-103 under the terms of Wikipedia, whose authors wrote it. Name the two
sources above and this project. The package's code is under the Apache License 2.0.
"""


def main() -> None:
    """Prepares, trains, stores, measures and describes the model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for option, names in (("--wikitext", ("TRAIN", "VALID")), ("--ewt", ("TRAIN", "DEV"))):
        parser.add_argument(option, nargs=2, type=Path, required=True, metavar=names)
    parser.add_argument("--run", type=Path, required=True, help="the folder of the training")
    parser.add_argument("--output", type=Path, required=True, help="the model folder to write")
    parser.add_argument("--overwrite", action="store_true", help="replace the files of --output")
    args = parser.parse_args()
    missing = [str(path) for path in (*args.wikitext, *args.ewt) if not path.is_file()]
    if missing:
        parser.error(f"expected files of text, but there is no {', no '.join(missing)}")
    texts = TinyTexts(args.run / "texts")
    num_words = texts.write(*args.wikitext, *args.ewt)[0]
    train(texts, args.run / "training")
    archive = args.run / "training" / "model.tar.gz"
    export_model_folder(archive, args.output, dtype="float16", overwrite=args.overwrite)
    card = card_of(args.output, {**texts.held_out, f"`{FIXTURE}`": ROOT / FIXTURE}, num_words)
    with atomic_write(args.output / "README.md") as temporary:
        temporary.write_text(card, encoding="utf-8")
    print(card)


def train(texts: TinyTexts, folder: Path) -> None:
    """Trains the language model, or goes on with it; does nothing if it is finished."""
    if (folder / "model.tar.gz").exists():
        return
    command = ["allennlp", "train", str(CONFIG), "-s", str(folder)]
    recover = ["--recover"] if folder.exists() else []
    paths = {"CORPUS_TRAIN": str(texts.train), "CORPUS_DEV": texts.dev_pattern}
    subprocess.run(
        [sys.executable, "-m", *command, *recover], check=True, env={**os.environ, **paths}
    )


def card_of(folder: Path, held_out: Dict[str, Path], num_tokens: int) -> str:
    """The model card of a folder, by what is measured now."""
    read = read_bilm(folder, with_softmax=True)
    scorer = SentenceScorer.from_pretrained(folder)
    return CARD.format(
        layers=read.bilm.num_layers,
        width=read.bilm.width,
        weights=sum(weight.numel() for weight in read.bilm.parameters()),
        softmax=sum(tensor.numel() for tensor in read.softmax.tensors.values()),
        words=len(read.blueprint.words.words) - 1 - len(MARKS),  # padding and marks
        tokens=num_tokens,
        perplexities="\n".join(_perplexity_row(scorer, *text) for text in held_out.items()),
        senses="\n".join(sense_table(str(folder))),
    )


def _perplexity_row(scorer: SentenceScorer, name: str, text: Path) -> str:
    total = TextScore()
    for score in scorer.score_text(text):
        total.add(score)
    both, *directions = total.perplexities().values()
    cells: List[str] = [f"{perplexity:.2f}" for perplexity in (*directions, both)]
    unknown = f"{total.num_unknown / total.num_words:.1%}"
    return f"| {name} | {total.num_words:,} | {unknown} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
