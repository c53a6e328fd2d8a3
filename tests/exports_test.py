import ast
import importlib
import inspect
from types import ModuleType
from typing import Dict, List, Set

from allennlp.commands.subcommand import Subcommand
from allennlp.common import Registrable
from allennlp.data import DataLoader, DatasetReader, TokenIndexer, Tokenizer, Vocabulary
from allennlp.models import Model
from allennlp.modules import Seq2SeqEncoder, Seq2VecEncoder
from allennlp.modules.token_embedders import TokenEmbedder
from allennlp.predictors import Predictor
from allennlp.training import Checkpointer, TrainerCallback
from allennlp.training.optimizers import Optimizer

import elmo_scratch.commands  # noqa: F401  (all names that command lines know)
import elmo_scratch.registered  # noqa: F401  (and all that configs do)
from elmo_scratch.embedders.layer_cache import LayerStore
from elmo_scratch.modules import LayerMix, OutputSoftmax, TokenEncoder
from tests import PROJECT_ROOT

REGISTERED: Dict[type, Set[str]] = {
    Checkpointer: {"elmo_scratch_whole"},
    DataLoader: {"elmo_scratch_stream"},
    DatasetReader: {"ag_news", "elmo_scratch_sentences", "ud_pos"},
    LayerMix: {"frozen", "function", "gate", "mean", "top", "trainable"},
    LayerStore: {"file", "memory"},
    Model: {
        "elmo_scratch_bilm",
        "elmo_scratch_bilm_from_archive",
        "elmo_scratch_bilm_from_official",
        "elmo_scratch_classifier",
    },
    Optimizer: {"elmo_scratch_adagrad"},
    OutputSoftmax: {"adaptive", "full", "sampled"},
    Predictor: {"ag_news", "elmo_scratch_score"},
    Seq2SeqEncoder: {"elmo_scratch_output"},
    Seq2VecEncoder: {"elmo_scratch_pooling"},
    Subcommand: {
        *("elmo", "elmo-explore", "elmo-export", "elmo-join", "elmo-report", "elmo-search"),
        *("elmo-score", "elmo-train", "elmo-vectors"),
    },
    TokenEmbedder: {
        *("elmo_scratch", "elmo_scratch_from_many_langs", "elmo_scratch_from_official"),
        "elmo_scratch_layer_file",
    },
    TokenEncoder: {"char_cnn", "word"},
    TokenIndexer: {
        *("elmo_scratch_characters", "elmo_scratch_code_points", "elmo_scratch_layer_file"),
    },
    Tokenizer: {"spacy_blank"},
    TrainerCallback: {
        "elmo_scratch_exact_resume",
        "elmo_scratch_forecast",
        "elmo_scratch_mix_shares",
        "elmo_scratch_norms",
        "elmo_scratch_speed",
        "elmo_scratch_stop_at_nan",
    },
    Vocabulary: {"elmo_scratch_corpus"},
}
"""The names that a config or a command line may use: they are never taken back."""

ROOMS = sorted(
    ".".join(file.relative_to(PROJECT_ROOT).parent.parts)
    for file in (PROJECT_ROOT / "elmo_scratch").rglob("__init__.py")
)


MEANS = {"TYPE_CHECKING", "lazy_exports"}
"""What rooms are written with."""


def public_names(module: ModuleType) -> List[str]:
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name not in MEANS
    )


def names_for_type_checkers(module: ModuleType) -> Dict[str, str]:
    """The names that a room imports only for type checkers, and the modules that it names."""
    return {
        alias.asname or alias.name: node.module or ""
        for block in ast.parse(inspect.getsource(module)).body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_rooms_list_their_public_names_in_order() -> None:
    assert "elmo_scratch.modules" in ROOMS
    for module in map(importlib.import_module, ROOMS):
        for name in module.__all__:
            getattr(module, name)  # imports what is there on demand
        assert module.__all__ == public_names(module), module.__name__


def test_type_checkers_and_programs_find_the_same() -> None:
    for module in map(importlib.import_module, ROOMS):
        for name, place in names_for_type_checkers(module).items():
            assert getattr(module, name) is getattr(importlib.import_module(place), name), name


def test_the_registered_names_are_those_of_the_plan() -> None:
    registered: Dict[type, Set[str]] = {}
    for base, names in Registrable._registry.items():
        for name, (registered_class, _) in names.items():
            if registered_class.__module__.startswith("elmo_scratch."):
                registered.setdefault(base, set()).add(name)
    assert registered == REGISTERED
