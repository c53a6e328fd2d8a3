"""
A biLM in a pipeline of spaCy's: how like each other the two meanings of a word are, layer by layer.

    python examples/in_spacy.py runs/bilm/model.tar.gz
"""

import sys
from pathlib import Path

import spacy

TOUR = Path(__file__).parent.parent / "fixtures/text/tour.txt"  # two lines for each word
WORDS = ("apple", "bank", "mouse", "bat", "court", "crane")

model = sys.argv[1] if len(sys.argv) > 1 else "runs/bilm/model.tar.gz"
lines = TOUR.read_text(encoding="utf-8").splitlines()
print("layer  " + "".join(f"{word:>8}" for word in WORDS))
for layer in ("0", "1", "top"):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_scratch", config={"model": model, "layer": layer})
    texts = list(nlp.pipe(lines))
    print(f"{layer:<7}", end="")
    for word, *pair in zip(WORDS, texts[::2], texts[1::2]):
        one, other = (next(token for token in text if token.lower_ == word) for text in pair)
        print(f"{one.similarity(other):8.2f}", end="")
    print()
print("1.00 is the same vector: only above layer 0 does the sentence make a difference.")
