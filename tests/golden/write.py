"""
This script wrote the golden files, with the package at commit d07cdda. From the root of the
checkout:

    python -m tests.golden.write

It makes each folder of PARTS that isn't there yet, and never rewrites one. A new format is a new
part. Seeds are fixed: the same code on the same processor writes the same numbers. Archives and
databases also hold the time. The part `layers` patches names inside the package as they were at
d07cdda, since no command line stops an export at a given sentence.
"""

import json
import os
import shutil
import sqlite3
import sys
from contextlib import closing, suppress
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, List
from unittest.mock import patch

import numpy
import torch
from allennlp import commands
from allennlp.common import Params
from allennlp.data import DatasetReader, Vocabulary
from allennlp.modules.token_embedders import TokenEmbedder
from allennlp.training import Checkpointer

from elmo_scratch import BiLm, Elmo, batch_to_ids, read_official_bilm, write_official_bilm
from elmo_scratch.modules.token_encoders import CharCnnEncoder
from tests import PROJECT_ROOT
from tests.golden.reading import (
    batch_digests,
    checksums,
    layers_of,
    predictions,
    stream_loader,
    together,
    words_of,
)
from tests.tiny_training import logging_as_before

# Relative to the root of the checkout: configs keep these paths in the files that are written.
GOLDEN = Path("tests/golden")
SUMS = GOLDEN / "SHA256SUMS"
TEXTS = GOLDEN / "texts"
CORPUS, HELDOUT, TOUR = TEXTS / "corpus.txt", TEXTS / "heldout.txt", TEXTS / "tour.txt"
NEWS, NEWS_DEV = TEXTS / "news.csv", TEXTS / "news_dev.csv"
WORDS, CHARACTERS = GOLDEN / "words" / "model.tar.gz", GOLDEN / "characters" / "model.tar.gz"
OFFICIAL = GOLDEN / "official"

Config = Dict[str, Any]

LOWER_CASE = {"type": "single_id", "lowercase_tokens": True}
SPACY = {"type": "spacy_blank"}
MEASURED = ("best_epoch", "best_validation_perplexity", "best_validation_loss")
RECOVERABLE = ["elmo_scratch_exact_resume", "elmo_scratch_stop_at_nan"]


class Stopped(Exception):
    """Raised to end a training, an export or a search early."""


def allennlp(*words: Any) -> None:
    """Runs `allennlp` with these words on its command line."""
    with (
        logging_as_before(),
        patch.object(commands, "import_plugins", lambda: None),
        patch.object(sys, "argv", ["allennlp", *map(str, words)]),
    ):
        commands.main("allennlp")


def train(config: Config, folder: Path) -> Path:
    """Runs `allennlp train` and returns the archive."""
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "config.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        allennlp("train", file, "-s", folder)
    return folder / "model.tar.gz"


def train_to(config: Config, archive: Path) -> None:
    """Runs `allennlp train` and keeps the archive alone."""
    with TemporaryDirectory() as scratch:
        shutil.copy(train(config, Path(scratch) / "run"), archive)


def save(path: Path, /, **arrays: Any) -> None:
    """Writes the arrays that the test expects."""
    numpy.savez_compressed(path, **arrays)


def save_json(folder: Path, expected: Any) -> None:
    """Writes the values that the test expects."""
    text = json.dumps(expected, indent=2, ensure_ascii=False) + "\n"
    (folder / "expected.json").write_text(text, encoding="utf-8")


def word_config() -> Config:
    """A language model of words, on news."""
    return {
        "dataset_reader": {
            "type": "elmo_scratch_sentences",
            "tokenizer": SPACY,
            "token_indexers": {"tokens": LOWER_CASE},
        },
        "train_data_path": str(NEWS),
        "validation_data_path": str(NEWS_DEV),
        "datasets_for_vocab_creation": ["train"],
        "vocabulary": {"min_count": {"tokens": 2}},
        "model": {
            "type": "elmo_scratch_bilm",
            "bilm": {"token_encoder": {"type": "word", "dim": 4}, "cell_size": 6, "dropout": 0.1},
            "num_confusion_words": 3,
        },
        "data_loader": {
            "batch_sampler": {"type": "bucket", "batch_size": 4, "sorting_keys": ["sentence"]},
        },
        "trainer": {
            "num_epochs": 2,
            "optimizer": {"type": "adam", "lr": 0.02},
            "grad_norm": 1.0,
            "validation_metric": "-perplexity",
            "cuda_device": -1,
            "checkpointer": {"type": "elmo_scratch_whole", "keep_most_recent_by_count": 1},
            "callbacks": RECOVERABLE,
        },
    }


def character_config() -> Config:
    """A language model of characters, on running text."""
    stream = {"type": "elmo_scratch_stream", "batch_size": 4, "unroll_steps": 12}
    config = word_config()
    config.update(
        dataset_reader={
            "type": "elmo_scratch_sentences",
            "token_indexers": {
                "tokens": {"type": "single_id"},
                "characters": {"type": "elmo_scratch_characters"},
            },
        },
        train_data_path=str(CORPUS),
        validation_data_path=str(HELDOUT),
        datasets_for_vocab_creation=[],
        vocabulary={"type": "elmo_scratch_corpus", "data_path": str(CORPUS), "min_count": 2},
        data_loader={**stream, "shuffle_sentences": True},
        validation_data_loader=stream,
    )
    config["model"]["bilm"]["token_encoder"] = {
        "type": "char_cnn",
        "dim": 4,
        "filters": [[1, 3], [2, 4], [3, 5]],
        "character_dim": 3,
        "num_highway": 1,
    }
    return config


def write_words(folder: Path) -> None:
    """The archive of a language model of words."""
    train_to(word_config(), folder / "model.tar.gz")
    save(folder / "expected.npz", layers=layers_of(TOUR, weight_file=WORDS))


def write_characters(folder: Path) -> None:
    """The archive of a language model of characters."""
    train_to(character_config(), folder / "model.tar.gz")
    save(folder / "expected.npz", layers=layers_of(TOUR, weight_file=CHARACTERS))


def write_exported(folder: Path) -> None:
    """What `allennlp elmo-export` makes of both archives."""
    allennlp("elmo-export", WORDS, folder / "words")
    allennlp("elmo-export", CHARACTERS, folder / "characters")


def write_official(folder: Path) -> None:
    """Official files in the form of a released model, with residual connections."""
    residual = PROJECT_ROOT / "fixtures" / "elmo" / "residual"
    bilm = read_official_bilm(residual / "options.json", residual / "weights.hdf5")
    write_official_bilm(bilm, folder)
    options, weights = OFFICIAL / "options.json", OFFICIAL / "weights.hdf5"
    with torch.no_grad():
        mixed = Elmo(str(options), str(weights), 1, dropout=0)(batch_to_ids(words_of(TOUR)))
    save(
        folder / "expected.npz",
        mixed=mixed["elmo_representations"][0].numpy(),
        layers=layers_of(TOUR, options_file=options, weight_file=weights),
    )


def write_folders(folder: Path) -> None:
    """Model folders of the archives, and of an `Elmo` with mixes, whose vectors are `mixed`."""
    for name in ("words", "characters"):
        archive = GOLDEN / name / "model.tar.gz"
        allennlp("elmo-export", archive, folder / name, "--format", "safetensors")
    elmo = Elmo.from_pretrained(CHARACTERS, 2, do_layer_norm=True, keep_sentence_boundaries=True)
    with torch.no_grad():
        for mix in elmo.mixes:
            mix.get_parameter("weights").normal_()
            mix.get_parameter("gamma").fill_(1.75)
        elmo.save_pretrained(folder / "elmo")
        ids = batch_to_ids(words_of(TOUR))
        mixed = elmo.eval()(ids)["elmo_representations"]
    save(folder / "expected.npz", mixed=torch.stack(mixed).numpy())


def write_unprojected(folder: Path) -> None:
    """Official files with projections that change nothing, of a biLM that has none itself."""
    encoder = CharCnnEncoder(dim=6, filters=[(1, 2), (3, 4)], character_dim=3, num_highway=1)
    bilm = BiLm(token_encoder=encoder, cell_size=6, projection_clip=0.5, state="carry")
    write_official_bilm(bilm, folder)
    options, weights = folder / "options.json", folder / "weights.hdf5"
    save(
        folder / "expected.npz",
        layers=layers_of(TOUR, options_file=options, weight_file=weights),
    )


def write_started(folder: Path) -> None:
    """Archives of language models that started from an archive and from official files."""
    config = word_config()
    config["model"] = {
        "type": "elmo_scratch_bilm_from_archive",
        "archive_file": str(WORDS),
        "softmax": {"type": "adaptive", "cutoffs": [20, 40], "div_value": 1.5},
    }
    config["trainer"]["num_epochs"] = 1
    train_to(config, folder / "archive.tar.gz")
    config = character_config()
    config["model"] = {
        "type": "elmo_scratch_bilm_from_official",
        "options_file": str(OFFICIAL / "options.json"),
        "weight_file": str(OFFICIAL / "weights.hdf5"),
        "bilm": {"dropout": 0.2},
    }
    config["trainer"]["num_epochs"] = 1
    train_to(config, folder / "official.tar.gz")
    save(
        folder / "expected.npz",
        **{
            name: layers_of(TOUR, weight_file=folder / f"{name}.tar.gz")
            for name in ("archive", "official")
        },
    )


def write_layers(folder: Path) -> None:
    """Files of layers, those of two shards, and what an export that was stopped has left."""
    whole = ["--weight-file", WORDS, "--all", "--state", "reset"]
    allennlp("elmo", TOUR, folder / "words.hdf5", *whole)
    carried = ["--weight-file", CHARACTERS, "--all", "--batch-size", "3"]
    with TemporaryDirectory() as scratch:
        allennlp("elmo", TOUR, Path(scratch) / "whole.hdf5", *carried)
        save(folder / "expected.npz", unfinished=together(Path(scratch) / "whole.hdf5"))
    model = ["--options-file", OFFICIAL / "options.json", "--weight-file"]
    model += [OFFICIAL / "weights.hdf5", "--state", "reset"]
    kept = ["--average", "--pool", "mean", "--dtype", "float16", "--use-sentence-keys"]
    for shard in ("1/2", "2/2"):
        words = [*model, *kept, "--shard", shard]
        allennlp("elmo", TOUR, folder / "pooled.hdf5", *words)
    inside = "elmo_scratch.export"
    with (
        patch(f"{inside}.embedded_batches.SENTENCES_A_PART", 3),
        patch(f"{inside}.part_writing.PartWriting.join", side_effect=Stopped),
        suppress(Stopped),
    ):
        allennlp("elmo", TOUR, folder / "unfinished.hdf5", *carried)
    parts = folder / "unfinished.hdf5.parts"
    (parts / "lock").unlink(missing_ok=True)
    # The export was stopped before its last part.
    sorted(parts.glob("*.hdf5"))[-1].unlink()


def classifier_config(indexers: Config, embedders: Config, **model: Any) -> Config:
    """A classifier of news."""
    return {
        "dataset_reader": {"type": "ag_news", "tokenizer": SPACY, "token_indexers": indexers},
        "train_data_path": str(NEWS),
        "validation_data_path": str(NEWS_DEV),
        "datasets_for_vocab_creation": ["train"],
        "model": {
            "type": "elmo_scratch_classifier",
            "text_field_embedder": {"token_embedders": embedders},
            **model,
        },
        "data_loader": {"batch_size": 6, "shuffle": True},
        "trainer": {
            "num_epochs": 2,
            "optimizer": {"type": "adam", "lr": 0.02},
            "validation_metric": "+accuracy",
            "cuda_device": -1,
            "checkpointer": "elmo_scratch_whole",
            "callbacks": [*RECOVERABLE, "elmo_scratch_mix_shares"],
        },
    }


def bag(dim: int) -> Config:
    """The mean of a text's vectors."""
    return {"type": "bag_of_embeddings", "embedding_dim": dim, "averaged": True}


def write_classifiers(folder: Path) -> None:
    """Archives of classifiers: over a biLM, over official files, over a file of layers."""
    over_words = classifier_config(
        {"words": LOWER_CASE, "elmo": {**LOWER_CASE, "namespace": "elmo"}},
        {
            "words": {"type": "embedding", "embedding_dim": 4},
            "elmo": {
                "type": "elmo_scratch",
                "pretrained_file": str(WORDS),
                "mix": {"type": "trainable", "do_layer_norm": True},
                "output_mix": {"type": "function", "hidden_dim": 5},
                "namespace": "elmo",
                "requires_grad": True,
            },
        },
        seq2seq_encoder={
            "type": "elmo_scratch_output",
            "width": 8,
            "start": 8,
            "encoder": {"type": "lstm", "input_size": 8 + 4, "hidden_size": 5},
        },
        seq2vec_encoder=bag(5 + 8),
    )
    train_to(over_words, folder / "words.tar.gz")
    over_characters = classifier_config(
        {"elmo": {"type": "elmo_scratch_characters"}},
        {
            "elmo": {
                "type": "elmo_scratch",
                "pretrained_file": str(CHARACTERS),
                "mix": {"type": "frozen", "seed": 3},
                "output_mix": {"type": "mean"},
            },
        },
        seq2vec_encoder=bag(16),
    )
    train_to(over_characters, folder / "characters.tar.gz")
    over_official = classifier_config(
        {"elmo": {"type": "elmo_scratch_characters"}},
        {
            "elmo": {
                "type": "elmo_scratch_from_official",
                "options_file": str(OFFICIAL / "options.json"),
                "weight_file": str(OFFICIAL / "weights.hdf5"),
                "mix": {"type": "gate"},
                "projection_dim": 5,
                "state": "warm",
                "warm_up_file": str(HELDOUT),
            },
        },
        seq2vec_encoder=bag(5),
    )
    train_to(over_official, folder / "official.tar.gz")
    tokens = folder / "news.txt"
    with open(tokens, "w", encoding="utf-8") as file:
        reader = DatasetReader.from_params(Params(deepcopy(over_official["dataset_reader"])))
        for instance in reader.read(NEWS_DEV):
            print(*(token.text for token in instance["text"]), file=file)
    layers = folder / "news.hdf5"
    words = ["--all", "--dtype", "float16", "--state", "reset", "--weight-file", WORDS]
    allennlp("elmo", tokens, layers, *words)
    of_layers = {"type": "elmo_scratch_layer_file", "file": str(layers)}
    over_layers = classifier_config(
        {"elmo": of_layers},
        {"elmo": {**of_layers, "mix": {"type": "trainable"}}},
        seq2vec_encoder=bag(8),
    )
    over_layers["train_data_path"] = str(NEWS_DEV)
    train_to(over_layers, folder / "layer_file.tar.gz")
    names = ("words", "characters", "official", "layer_file")
    save_json(folder, {name: predictions(folder / f"{name}.tar.gz", NEWS_DEV) for name in names})


def write_kept_layers(folder: Path) -> None:
    """The layers that an embedder keeps in a file."""
    path = folder / "layers.lmdb"
    embedder = TokenEmbedder.from_params(
        Params(
            {
                "type": "elmo_scratch",
                "pretrained_file": str(CHARACTERS),
                "keep_layers": {"type": "file", "path": str(path)},
            }
        ),
        vocab=Vocabulary(),
    )
    with torch.no_grad():
        expected = embedder(batch_to_ids(words_of(TOUR)))
    Path(f"{path}-lock").unlink()
    save(folder / "expected.npz", mixed=expected.numpy())


def write_vectors(folder: Path) -> None:
    """Static vectors."""
    words = ["--method", "svd", "--dim", "4", "--min-count", "2"]
    allennlp("elmo-vectors", CORPUS, folder / "svd.txt", *words)


def write_corpora(folder: Path) -> None:
    """Corpora as the package prepares them, cut at white space and by a tokenizer."""
    expected = {}
    with patch.dict(os.environ, {"ELMO_SCRATCH_CACHE": str(folder)}):
        expected["white_space"] = batch_digests(stream_loader(CORPUS))
        expected["spacy_blank"] = batch_digests(stream_loader(HELDOUT, SPACY, max_tokens=9))
    shutil.rmtree(folder / "digests", ignore_errors=True)
    for lock in folder.glob("*.lock"):
        lock.unlink()
    save_json(folder, {"spacy": version("spacy"), "batches": expected})


def stopped_configs() -> Dict[str, Config]:
    """Trainings with all that a checkpoint keeps, from schedules to carried states."""
    words, characters = word_config(), character_config()
    words["model"]["bilm"].update(num_layers=1, recurrent_dropout=0.1)
    words["data_loader"]["batch_sampler"]["padding_noise"] = 0.2
    words["trainer"].update(
        num_epochs=3,
        num_gradient_accumulation_steps=2,
        learning_rate_scheduler={"type": "linear_with_warmup", "warmup_steps": 2},
        moving_average={"type": "exponential", "decay": 0.9},
        patience=5,
    )
    words["trainer"]["checkpointer"]["save_every_num_batches"] = 2
    characters["model"].update(
        softmax={"type": "sampled", "num_samples": 20}, state_reset_probability=0.1, dropout=0.2
    )
    characters["trainer"].update(
        num_epochs=3, optimizer={"type": "elmo_scratch_adagrad", "lr": 0.2}
    )
    characters["trainer"]["checkpointer"]["save_every_num_batches"] = 5
    return {"words": words, "characters": characters}


def write_stopped(folder: Path) -> None:
    """Trainings that were stopped after the first checkpoint within their second epoch."""
    checkpointer: Any = Checkpointer.by_name("elmo_scratch_whole")
    save_checkpoint = checkpointer.save_checkpoint

    def save_and_stop(self: Any, trainer: Any) -> None:
        save_checkpoint(self, trainer)
        if trainer._epochs_completed == 1 and trainer._batches_in_epoch_completed:
            raise Stopped

    metrics = {}
    for name, config in stopped_configs().items():
        with TemporaryDirectory() as scratch:
            through = Path(scratch) / "run"
            train(config, through)
            weights = torch.load(through / "best.th", weights_only=True)
            measured = json.loads((through / "metrics.json").read_text(encoding="utf-8"))
        run = folder / name
        with patch.object(checkpointer, "save_checkpoint", save_and_stop), suppress(Stopped):
            train(config, run)
        checkpoints = [path.name for path in run.glob("*.th")]
        keep_only(run, "config.json", "metrics_epoch_0.json", "vocabulary", *checkpoints)
        keep_only(run / "vocabulary", "tokens.txt", "non_padded_namespaces.txt")
        metrics[name] = {key: measured[key] for key in MEASURED}
        save(folder / f"{name}.npz", **{key: tensor.numpy() for key, tensor in weights.items()})
    save_json(folder, metrics)


SWEEP = """\
method: random
metric: { name: validation/perplexity, goal: minimize }
run_cap: 2
parameters:
  trainer.optimizer.lr: { distribution: log_uniform_values, min: 0.001, max: 0.1 }
  trainer.optimizer.type: { values: [adam, adagrad] }
  model.bilm.cell_size: { min: 5, max: 7 }
"""


def in_small_pages(database: Path) -> None:
    """Lets SQLite write a database anew, as a smaller file."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("VACUUM")


def write_search(folder: Path) -> None:
    """A search that was stopped when its second training was over, but not yet noted."""
    import optuna

    config = word_config()
    config["model"]["bilm"]["num_layers"] = 1
    config["trainer"]["num_epochs"] = 1
    (folder / "sweep.yaml").write_text(SWEEP, encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    search = ["elmo-search", folder / "sweep.yaml", folder / "config.json", "-s"]
    found = folder / "found"
    tell = optuna.Study.tell
    told: List[Any] = []

    def tell_one(*args: Any, **kwargs: Any) -> Any:
        if told:
            raise Stopped
        told.append(args)
        return tell(*args, **kwargs)

    with patch.object(optuna.Study, "tell", tell_one), suppress(Stopped):
        allennlp(*search, found)
    keep_only(found, "study.db", "trial-1")
    keep_only(found / "trial-1", "config.json", "metrics.json", "best.th", "vocabulary")
    keep_only(found / "trial-1" / "vocabulary", "tokens.txt", "non_padded_namespaces.txt")
    in_small_pages(found / "study.db")
    with TemporaryDirectory() as scratch:
        copy = Path(scratch) / "found"
        shutil.copytree(found, copy)
        allennlp(*search, copy)
        save_json(folder, json.loads((copy / "best.json").read_text(encoding="utf-8")))


def keep_only(folder: Path, *names: str) -> None:
    """Removes everything else from a folder."""
    for path in folder.iterdir():
        if path.is_dir() and path.name not in names:
            shutil.rmtree(path)
        elif path.name not in names:
            path.unlink()


PARTS: Dict[str, Callable[[Path], None]] = {
    "words": write_words,
    "characters": write_characters,
    "exported": write_exported,
    "official": write_official,
    "unprojected": write_unprojected,
    "folders": write_folders,
    "started": write_started,
    "layers": write_layers,
    "classifiers": write_classifiers,
    "kept_layers": write_kept_layers,
    "vectors": write_vectors,
    "corpora": write_corpora,
    "stopped": write_stopped,
    "search": write_search,
}


def add_checksums(folder: Path) -> None:
    """Appends the checksums of a folder's files to SHA256SUMS."""
    with open(SUMS, "a", encoding="utf-8") as sums:
        sums.writelines(f"{line}\n" for line in checksums(folder))


def main() -> None:
    """Writes the parts that are not there."""
    os.chdir(PROJECT_ROOT)
    torch.set_num_threads(1)
    if not SUMS.exists():
        add_checksums(TEXTS)
    with TemporaryDirectory() as corpora:
        os.environ["ELMO_SCRATCH_CACHE"] = corpora
        for name, write in PARTS.items():
            folder = GOLDEN / name
            if folder.exists():
                continue
            folder.mkdir()
            torch.manual_seed(13)
            try:
                write(folder)
            except BaseException:
                shutil.rmtree(folder)
                raise
            add_checksums(folder)


if __name__ == "__main__":
    main()
