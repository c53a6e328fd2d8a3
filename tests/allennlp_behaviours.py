"""
What stock AllenNLP does in the places where `elmo_scratch_compat` helps it. Run as a program,

    python -m tests.allennlp_behaviours FOLDER

it tries them all and writes `FOLDER/outcomes.json`: of each behaviour what it returned, or the
error that it raised. `compat_test.py` runs it with the help and without.
"""

import io
import json
import logging
import subprocess
import sys
import tarfile
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List

import torch
from allennlp.commands.subcommand import Subcommand
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.plugins import import_plugins
from allennlp.data import DatasetReader
from allennlp.models import Model, archival
from allennlp.nn.parallel.ddp_accelerator import DdpWrappedModel
from allennlp.training import GradientDescentTrainer
from allennlp.training import util as training_util
from allennlp.training.callbacks import ConsoleLoggerCallback

TEXTS = [
    {"text": "rain and wind and rain", "label": "weather"},
    {"text": "a goal and a goal", "label": "sport"},
    {"text": "wind in the north", "label": "weather"},
]


def plugins_are_found(folder: Path) -> List[str]:
    """The subcommands that there are when all plugins have been imported, from any folder."""
    import_plugins()
    return Subcommand.list_available()


def nothing_is_downloaded(folder: Path) -> List[str]:
    """What allennlp-models downloads when it is imported on a machine that has no data of NLTK."""
    import nltk

    downloads: List[str] = []

    def not_there(name: str) -> None:
        raise LookupError(name)

    with_data = nltk.data.find, nltk.download
    nltk.data.find, nltk.download = not_there, downloads.append
    try:
        import allennlp_models.rc.tools.narrativeqa  # noqa: F401
    finally:
        nltk.data.find, nltk.download = with_data
    return downloads


def states_of_a_cosine_training_load(folder: Path) -> List[int]:
    """The epochs of the checkpoints of a training with NumPy numbers in its state."""
    train_on_texts(folder, learning_rate_scheduler={"type": "cosine", "t_initial": 4})
    states = sorted((folder / "run").glob("training_state_*.th"))
    return [torch.load(state)["epochs_completed"] for state in states]


def learning_rate_falls_on_a_plateau(folder: Path) -> List[float]:
    """The learning rate of each epoch, of which none is ever seen as better than the first."""
    plateau = {"patience": 0, "factor": 0.5, "threshold": 1000.0, "threshold_mode": "abs"}
    scheduler = {"type": "reduce_on_plateau", "verbose": True, **plateau}
    train_on_texts(folder, learning_rate_scheduler=scheduler)
    states = sorted((folder / "run").glob("training_state_*.th"))
    return [torch.load(state)["optimizer"]["param_groups"][0]["lr"] for state in states]


def sparse_gradients_are_clipped_by_norm(folder: Path) -> List[float]:
    """The embedding's first column after a training with short sparse gradients."""
    return embedding_after_training(folder, grad_norm=0.01)


def sparse_gradients_are_clipped_by_value(folder: Path) -> List[float]:
    """The embedding's first column after a training with small sparse gradients."""
    return embedding_after_training(folder, grad_clipping=0.01)


def dense_gradients_are_clipped_by_norm(folder: Path) -> List[float]:
    """What must be the same with a sparse gradient."""
    return embedding_after_training(folder, sparse=False, grad_norm=0.01)


def dense_gradients_are_clipped_by_value(folder: Path) -> List[float]:
    """What must be the same with a sparse gradient."""
    return embedding_after_training(folder, sparse=False, grad_clipping=0.01)


def sparse_norm_is_clipped_by_ddp(folder: Path) -> float:
    """The norm that it finds before it clips to 1."""
    return float(DdpWrappedModel(sparse_gradient(), 0, 1).clip_grad_norm_(1.0))


def sparse_norm_is_clipped_by_util(folder: Path) -> float:
    """The norm that it finds before it clips to 1."""
    norm = training_util.rescale_gradients(sparse_gradient(), 1.0)  # type: ignore[arg-type]
    assert norm is not None
    return float(norm)


def console_logger_passes_lists_over(folder: Path) -> List[str]:
    """What it logs of a number and of a list, and whether that made an error in the logging."""
    metrics = {"loss": 1.25, "tensor": torch.tensor(2.5), "confusion": [[1, 2], [3, 4]]}
    text, errors = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(text)
    logger = logging.getLogger("allennlp.training.callbacks.console_logger")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    stderr, sys.stderr = sys.stderr, errors
    try:
        callback = ConsoleLoggerCallback(str(folder))
        prefixed = {f"training_{name}": value for name, value in metrics.items()}
        callback.on_epoch(None, prefixed, epoch=0)  # type: ignore[arg-type]
    finally:
        sys.stderr = stderr
        logger.removeHandler(handler)
    logged = [name for name in metrics if f"{name} " in text.getvalue()]
    return logged + [line for line in errors.getvalue().splitlines() if "Logging error" in line]


def training_warns_of_old_names(folder: Path) -> List[str]:
    """What PyTorch would rather have called otherwise, in the words of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        train_on_texts(folder)
    messages = [str(warning.message) for warning in caught]
    return [message.split(" is ")[0] for message in messages if "is deprecated" in message]


def archives_stay_in_their_folder(folder: Path) -> List[str]:
    """What is in the folder around an archive's own, after it was unpacked."""
    archive_with(folder / "evil.tar.gz", "../outside")
    (folder / "around").mkdir()
    try:
        unpack_in(folder / "around", folder / "evil.tar.gz")
    except Exception as error:
        return [type(error).__name__, *names_in(folder / "around")]
    return names_in(folder / "around")


def text_is_no_archive(folder: Path) -> None:
    """Raises."""
    (folder / "model.tar.gz").write_text("no archive", encoding="utf-8")
    unpack_in(folder, folder / "model.tar.gz")


def older_archive_outlasts_a_failure(folder: Path) -> List[Any]:
    """What is in an archive when packing a newer one failed, and what files there are."""
    for name in ("config.json", "best.th", "model.tar.gz"):
        (folder / name).write_text("older", encoding="utf-8")
    with suppress(FileNotFoundError):  # there is no vocabulary
        archival.archive_model(folder)
    return [(folder / "model.tar.gz").read_bytes() == b"older", names_in(folder)]


def best_weights_outlast_a_failure(folder: Path) -> List[Any]:
    """What is in the best weights when those of a better epoch failed, and what files there are."""
    (folder / "best.th").write_text("older", encoding="utf-8")
    # A lock cannot be saved, so that writing fails.
    model = SimpleNamespace(state_dict=lambda: {"weight": threading.Lock()})
    trainer: Any = SimpleNamespace(model=model, _ddp_wrapped_model=None)
    with suppress(TypeError):
        GradientDescentTrainer._save_model_state(trainer, str(folder / "best.th"))
    return [(folder / "best.th").read_bytes() == b"older", names_in(folder)]


def forced_training_waits_for_another(folder: Path) -> List[str]:
    """The error for `--force` in a folder where another process trains, and what is left there."""
    run = folder / "run"
    run.mkdir()
    (run / "training.lock").touch()
    command = [sys.executable, "-c", LOCKS, str(run / "training.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"locked\n"
        found = []
        try:
            training_util.create_serialization_dir(Params({}), str(run), recover=False, force=True)
        except ConfigurationError as error:
            found.append(error.message)
        other.kill()
    found += names_in(run)
    training_util.create_serialization_dir(Params({}), str(run), recover=False, force=True)
    return [message.replace(str(run), "RUN") for message in found + names_in(run)]


LOCKS = """
import fcntl, sys
with open(sys.argv[1], "a") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("locked", flush=True)
    sys.stdin.read()
"""


def train_on_texts(folder: Path, sparse: bool = False, **trainer: Any) -> Model:
    """Three epochs of a bag of embeddings, on the CPU, each with a checkpoint that stays."""
    data = folder / "texts.jsonl"
    data.write_text("\n".join(map(json.dumps, TEXTS)), encoding="utf-8")
    embedding = {"type": "embedding", "embedding_dim": 3, "sparse": sparse}
    config = {
        "dataset_reader": {
            "type": "text_classification_json",
            "tokenizer": "whitespace",
        },
        "train_data_path": str(data),
        "validation_data_path": str(data),
        "model": {
            "type": "basic_classifier",
            "text_field_embedder": {"token_embedders": {"tokens": embedding}},
            "seq2vec_encoder": {"type": "bag_of_embeddings", "embedding_dim": 3},
        },
        "data_loader": {"batch_size": 3, "shuffle": False},
        "trainer": {
            "num_epochs": 3,
            "cuda_device": -1,
            "validation_metric": "-loss",
            "optimizer": {"type": "sgd", "lr": 0.5},
            "checkpointer": {"keep_most_recent_by_count": 3},
            **trainer,
        },
    }
    model = train_model(Params(config), str(folder / "run"))
    assert model is not None
    return model


def embedding_after_training(folder: Path, sparse: bool = True, **trainer: Any) -> List[float]:
    """The first number of each word."""
    model = train_on_texts(folder, sparse=sparse, **trainer)
    weights = dict(model.named_parameters())["_text_field_embedder.token_embedder_tokens.weight"]
    return weights[:, 0].tolist()


def sparse_gradient() -> torch.nn.Embedding:
    """Its gradient is 2 in the 3 numbers of row 1, which was looked up twice, and 1 in row 4's."""
    embedding = torch.nn.Embedding(7, 3, sparse=True)
    embedding(torch.tensor([1, 4, 1])).sum().backward()
    return embedding


def archive_with(path: Path, *names: str) -> Path:
    """A tar file, packed by gzip, of tiny files with these names, JSON as config.json must be."""
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 4
            archive.addfile(member, io.BytesIO(b"null"))
    return path


def names_are_found_after_a_plain_import(folder: Path) -> str:
    """What a name of the package stands for where the package was imported and no more."""
    import elmo_scratch  # noqa: F401

    return DatasetReader.by_name("ag_news").__name__


def unpack_in(folder: Path, archive: Path) -> List[str]:
    """Unpacks as `load_archive` does, in a new folder within this one; what is in it then."""
    archival.tempfile.tempdir, before = str(folder), archival.tempfile.tempdir
    try:
        with archival.extracted_archive(str(archive)) as unpacked:
            return names_in(Path(unpacked))
    finally:
        archival.tempfile.tempdir = before


def names_in(folder: Path) -> List[str]:
    """The paths of all that is in a folder, relative to it."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


BEHAVIOURS: List[Callable[[Path], Any]] = [
    training_warns_of_old_names,
    nothing_is_downloaded,
    plugins_are_found,
    states_of_a_cosine_training_load,
    learning_rate_falls_on_a_plateau,
    sparse_gradients_are_clipped_by_norm,
    sparse_gradients_are_clipped_by_value,
    dense_gradients_are_clipped_by_norm,
    dense_gradients_are_clipped_by_value,
    sparse_norm_is_clipped_by_ddp,
    sparse_norm_is_clipped_by_util,
    console_logger_passes_lists_over,
    archives_stay_in_their_folder,
    text_is_no_archive,
    older_archive_outlasts_a_failure,
    best_weights_outlast_a_failure,
    forced_training_waits_for_another,
    names_are_found_after_a_plain_import,
]


def main(folder: Path) -> None:
    """Tries all behaviours, each in a folder of its own."""
    torch.set_num_threads(1)
    outcomes: Dict[str, Any] = {}
    for behaviour in BEHAVIOURS:
        own_folder = folder / behaviour.__name__
        own_folder.mkdir(parents=True)
        try:
            outcomes[behaviour.__name__] = behaviour(own_folder)
        except Exception as error:
            outcomes[behaviour.__name__] = f"{type(error).__name__}: {error}"
    (folder / "outcomes.json").write_text(json.dumps(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
