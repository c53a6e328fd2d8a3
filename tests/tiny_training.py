"""Trainings of a second or two: the configs of `training_config/`, pointed at the fixtures."""

import json
import logging
import re
import sys
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common import tqdm as common_tqdm
from allennlp.common.params import evaluate_file
from allennlp.models import Model

from tests import FIXTURES_ROOT, PROJECT_ROOT

CONFIGS = PROJECT_ROOT / "training_config"

TASK_FILES = {
    "CHUNKING": "conll2000/{}.txt",
    "COREF": "conll2012/{0}/{0}.gold_conll",
    "NER": "conll2003/{}.txt",
    "PAIRS": "seq2seq/{}.tsv",
    "PARAPHRASE": "paraphrase/{}.tsv",
    "QUAC": "quac/{}.json",
    "SDP": "sdp/{}.sdp",
    "SNLI": "snli/{}.jsonl",
    "SQUAD": "squad/{}.json",
    "SRL": "conll2012/{}",
    "SST": "sst/{}.txt",
    "TREES": "ptb/{}.txt",
    "UD": "ud/{}.conllu",
}
"""What the variables `…_TRAIN` and `…_DEV` of tasks name below `fixtures/tasks`."""

EXT_VARS = {
    "AG_NEWS_TRAIN": str(FIXTURES_ROOT / "news" / "train.csv"),
    "AG_NEWS_DEV": str(FIXTURES_ROOT / "news" / "dev.csv"),
    "CORPUS_TRAIN": str(FIXTURES_ROOT / "text" / "sentences.txt"),
    "CORPUS_DEV": str(FIXTURES_ROOT / "text" / "heldout.txt"),
    "PTB_TRAIN": str(FIXTURES_ROOT / "text" / "sentences.txt"),
    "PTB_DEV": str(FIXTURES_ROOT / "text" / "heldout.txt"),
    "NEWS_TRAIN": str(FIXTURES_ROOT / "news" / "train.csv"),
    "NEWS_DEV": str(FIXTURES_ROOT / "news" / "dev.csv"),
    "WORD_VECTORS": "",
    "STUDY_VECTORS": "random",
    "STUDY_FILE": "",
    "STUDY_MIX": "",
    "STUDY_SEED": "0",
    "BILM_WIDTH": "64",
    "ELMO_OPTIONS": str(FIXTURES_ROOT / "elmo" / "residual" / "options.json"),
    "ELMO_WEIGHTS": str(FIXTURES_ROOT / "elmo" / "residual" / "weights.hdf5"),
    **{
        f"{task}_{part.upper()}": str(FIXTURES_ROOT / "tasks" / files.format(part))
        for task, files in TASK_FILES.items()
        for part in ("train", "dev")
    },
}
"""What the configs ask for by `std.extVar`, but for `BILM_ARCHIVE`."""

BILM_WIDTH = 64
"""Of the biLM that `training_config/bilm/fixture.jsonnet` describes."""


def config_on_fixtures(config_file: Path, bilm_archive: Optional[Path] = None) -> Dict[str, Any]:
    """The config as it stands, with data from the fixtures."""
    return json.loads(evaluated(config_file, bilm_archive))


@lru_cache(maxsize=None)
def evaluated(config_file: Path, bilm_archive: Optional[Path]) -> str:
    """The JSON that a config of `training_config/` makes, worked out once."""
    ext_vars = dict(EXT_VARS)
    if bilm_archive is not None:
        ext_vars["BILM_ARCHIVE"] = str(bilm_archive)
    try:
        return evaluate_file(str(config_file), ext_vars=ext_vars)
    except RuntimeError as error:
        unknown = re.search(r"undefined external variable: (\w+)", str(error))
        if unknown is None:
            raise
        raise ValueError(
            f"{config_file} asks for std.extVar({unknown[1]!r}), but the tests know only "
            f"{sorted(ext_vars)}. Add what it stands for to EXT_VARS in {__file__}."
        ) from None


def params_on_fixtures(config_file: Path, bilm_archive: Optional[Path] = None) -> Params:
    """The config with data from the fixtures, sizes that fit them, and one epoch."""
    config = config_on_fixtures(config_file, bilm_archive)
    fit_encoder(config["model"], BILM_WIDTH)
    softmax = config["model"].get("softmax", {})
    if "num_samples" in softmax:
        softmax["num_samples"] = 100
    config["trainer"]["num_epochs"] = 1
    return Params(config)


def fit_encoder(model: Dict[str, Any], bilm_width: int) -> None:
    """Gives the encoder that reads the embedded tokens the size that they have with such a biLM."""
    embedders = model.get("text_field_embedder", {}).get("token_embedders", {}).values()
    if not any(embedder.get("type") == "elmo_scratch" for embedder in embedders):
        return
    encoder = model.get("seq2seq_encoder") or model["seq2vec_encoder"]
    for key in {"input_size", "input_dim", "embedding_dim"} & set(encoder):
        encoder[key] = sum(
            bilm_width if embedder.get("type") == "elmo_scratch" else embedder["embedding_dim"]
            for embedder in embedders
        )


def train(params: Params, folder: Path) -> Model:
    """What `allennlp train` does; afterwards the logging is again as it was."""
    with logging_as_before():
        model = train_model(params, str(folder))
    assert model is not None
    return model


@contextmanager
def logging_as_before() -> Iterator[None]:
    """Undoes what a training in the block does to the logging of the process."""
    root = logging.getLogger()
    handlers, level, excepthook = root.handlers[:], root.level, sys.excepthook
    try:
        yield
    finally:
        for handler in [*root.handlers, *common_tqdm.logger.handlers]:
            if handler not in handlers:
                handler.close()
        common_tqdm.logger.handlers.clear()
        root.handlers[:] = handlers
        root.setLevel(level)
        sys.excepthook = excepthook
