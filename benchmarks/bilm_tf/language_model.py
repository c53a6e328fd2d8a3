"""
Trains a tiny language model by the original implementation, and writes it in the form in which its
models were released, its softmax beside it. Runs in the environment that `vectors.py` tells of:

    text=fixtures/text/sentences.txt
    runs/bilm_tf/bin/python benchmarks/bilm_tf/language_model.py $text runs/tiny

The folder gets the checkpoint of the training, and out of it `options.json`, `weights.hdf5`,
`softmax_weights.hdf5` and `vocab.txt`. `perplexity.py` compares such a model's scores.
"""

import argparse
from collections import Counter
from pathlib import Path
from typing import Any, Dict

import h5py
import tensorflow_1  # noqa: F401
from bilm.data import BidirectionalLMDataset, UnicodeCharsVocabulary
from bilm.training import dump_weights, load_options_latest_checkpoint, train
from tensorflow.compat import v1 as tensorflow

SEED, STEPS, BATCH_SIZE, UNROLL_STEPS = 17, 80, 4, 7
MAX_CHARACTERS = 50


def main() -> None:
    """Writes the files."""
    args = parse_arguments()
    # Importing the original has asked for more.
    tensorflow.logging.set_verbosity(tensorflow.logging.ERROR)
    args.folder.mkdir(parents=True, exist_ok=True)
    words = write_vocabulary(args.text, args.folder / "vocab.txt", args.words)
    tensorflow.set_random_seed(SEED)
    text = BidirectionalLMDataset(str(args.text), words, shuffle_on_load=False)
    train(options_of(words.size), text, 1, str(args.folder), str(args.folder / "log"))
    tensorflow.reset_default_graph()
    dump_weights(str(args.folder), str(args.folder / "weights.hdf5"))
    # That function leaves the softmax out; the file with it was published in this form.
    _, checkpoint = load_options_latest_checkpoint(str(args.folder))
    reader = tensorflow.train.load_checkpoint(checkpoint)
    with h5py.File(args.folder / "softmax_weights.hdf5", "w") as file:
        for name in ("softmax/W", "softmax/b"):
            file.create_dataset(name, data=reader.get_tensor(f"lm/{name}"), dtype="float32")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path, help="sentences, one a line, words between spaces")
    parser.add_argument("folder", type=Path, help="is made if it isn't there")
    parser.add_argument("--words", type=int, default=300, help="of the vocabulary (default: 300)")
    return parser.parse_args()


def write_vocabulary(text: Path, path: Path, num_words: int) -> UnicodeCharsVocabulary:
    """The text's most frequent words, as the original wants them."""
    words = Counter(text.read_text(encoding="utf-8").split())
    in_order = ["<S>", "</S>", "<UNK>", *(word for word, _ in words.most_common(num_words))]
    path.write_text("\n".join(in_order) + "\n", encoding="utf-8")
    return UnicodeCharsVocabulary(str(path), MAX_CHARACTERS)


def options_of(num_words: int) -> Dict[str, Any]:
    """The options of the released models with smaller sizes, and bounds that are reached."""
    return {
        "bidirectional": True,
        "char_cnn": {
            "activation": "relu",
            "embedding": {"dim": 4},
            "filters": [[1, 5], [2, 6], [3, 8]],
            "max_characters_per_token": MAX_CHARACTERS,
            "n_characters": 261,
            "n_highway": 1,
        },
        "lstm": {
            "cell_clip": 0.5,
            "dim": 11,
            "n_layers": 2,
            "proj_clip": 0.4,
            "projection_dim": 7,
            "use_skip_connections": True,
        },
        "dropout": 0.1,
        "all_clip_norm_val": 10.0,
        "n_epochs": 1,
        "n_train_tokens": STEPS * BATCH_SIZE * UNROLL_STEPS,
        "batch_size": BATCH_SIZE,
        "n_tokens_vocab": num_words,
        "unroll_steps": UNROLL_STEPS,
        "n_negative_samples_batch": 32,
    }


if __name__ == "__main__":
    main()
