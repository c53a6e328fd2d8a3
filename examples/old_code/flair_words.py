"""
Words of sentences and their nearest words, by Flair's class for ELMo:

    python examples/old_code/flair_words.py sentences.txt --options-file options.json \
        --weight-file weights.hdf5

Each line of the text is a sentence, its words between spaces.
"""

import argparse

import torch
from flair.data import Sentence
from flair.embeddings.legacy import ELMoEmbeddings


def main() -> None:
    """Prints for the first word of each sentence the word of the text whose vector is nearest."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sentences")
    parser.add_argument("--options-file", required=True)
    parser.add_argument("--weight-file", required=True)
    args = parser.parse_args()

    embeddings = ELMoEmbeddings(options_file=args.options_file, weight_file=args.weight_file)
    with open(args.sentences, encoding="utf-8") as lines:
        sentences = [Sentence(line.split()) for line in lines if line.strip()]
    embeddings.embed(sentences)
    tokens = [token for sentence in sentences for token in sentence]
    vectors = torch.nn.functional.normalize(torch.stack([one.embedding for one in tokens]), dim=1)
    print(f"{len(tokens)} words of {embeddings.embedding_length} numbers")
    cosines = vectors @ vectors.T  # (tokens, tokens)
    place = 0
    for sentence in sentences:
        row = cosines[place].clone()
        row[place : place + len(sentence)] = -1.0  # not of its own sentence
        nearest = int(row.argmax())
        print(f"{tokens[place].text:>12}  {tokens[nearest].text:<12}  {row[nearest]:.3f}")
        place += len(sentence)


if __name__ == "__main__":
    main()
