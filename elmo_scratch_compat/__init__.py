"""
Lets stock AllenNLP 2.10.1, archived in 2022, run on today's PyTorch.

PyTorch calls `apply` at the end of `import torch` (entry points of the group `torch.backends`), so
nothing here may import AllenNLP, or the package, or anything slow: `apply` runs in every program of
the environment that imports PyTorch. It installs an import hook, which patches the few AllenNLP
modules in `HELP` when they are imported, lets `torch.load` read the kinds of numbers that
checkpoints of AllenNLP hold (`checkpoints.py`), and in the program `allennlp` reads what was typed
(`command_line.py`). Beyond that nothing changes. The environment variable
`TORCH_DEVICE_BACKEND_AUTOLOAD=0` turns it all off.

Each function that `HELP` names explains what breaks without it.
"""

import functools
import sys
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from inspect import isgeneratorfunction
from types import ModuleType
from typing import Callable, Dict, Optional, Sequence

from elmo_scratch_compat.checkpoints import allow_numpy_scalars
from elmo_scratch_compat.command_line import LOADING, begin_command
from elmo_scratch_compat.later_imports import IMPORTS, LATER, imported_when_used

HELP: Dict[str, str] = {
    "allennlp.commands.evaluate": "commands.evaluate_plainly",
    "allennlp.commands.predict": "commands.predict_plainly",
    "allennlp.commands.push_to_hf": "commands.push_plainly",
    "allennlp.commands.train": "commands.train_plainly",
    "allennlp.common.logging": "terminal.print_less",
    "allennlp.common.from_params": "parents.refuse_unread_keys_and_other_words",
    "allennlp.common.params": "configs.write_whole_files_and_name_unknown_keys",
    "allennlp.common.plugins": "plugins.find_plugin",
    "allennlp.common.push_to_hf": "hub.push_by_http",
    "allennlp.common.registrable": "registries.look_up_safely",
    "allennlp.common.tqdm": "terminal.fit_progress",
    "allennlp.common.util": "spacy_models.name_what_is_missing",
    "allennlp.data.data_loaders.multiprocess_data_loader": "data_loaders.share_locks",
    "allennlp.data.image_loader": "absent_torchvision.without_torchvision",
    "allennlp.data.tokenizers.sentence_splitter": "spacy_models.split_by_rules",
    "allennlp.data.tokenizers.spacy_tokenizer": "spacy_models.tokenize_by_rules",
    "allennlp.data.vocabulary": "vocabularies.read_and_write_whole",
    "allennlp.evaluation.evaluator": "evaluations.write_whole_results",
    "allennlp.models.archival": "archives.pack_whole_and_unpack_safely",
    "allennlp.models.model": "parents.follow_archives",
    "allennlp.modules.vision.grid_embedder": "absent_torchvision.without_torchvision",
    "allennlp.modules.vision.region_detector": "absent_torchvision.without_torchvision",
    "allennlp.nn.initializers": "applicators.spare_pretrained_weights",
    "allennlp.nn.parallel.ddp_accelerator": "sparse_gradients.clip_sparse_norms",
    "allennlp.nn.regularizers.regularizer_applicator": "applicators.match_old_names",
    "allennlp.training.callbacks.console_logger": "training.print_numbers_only",
    "allennlp.training.gradient_descent_trainer": "training.clip_sparse_and_keep_best_weights",
    "allennlp.training.learning_rate_schedulers.pytorch_lr_schedulers": "training.drop_verbose",
    "allennlp.training.metrics.evalb_bracketing_scorer": "trees.compile_in_a_copy",
    "allennlp.training.trainer": "training.accept_old_autocast",
    "allennlp.training.util": "training.clip_sparse_norms_and_keep_folders",
    "allennlp_models.classification.models.transformer_classification_tt": (
        "classifiers.build_elmo_and_predict"
    ),
    "allennlp_models.coref.predictors.coref": "spacy_models.resolve_with_tags_only",
    "allennlp_models.rc.tools.narrativeqa": "plugins.without_downloads",
    "allennlp_models.structured_prediction.dataset_readers.penn_tree_bank": "trees.open_named_file",
    "allennlp_models.structured_prediction.predictors.constituency_parser": (
        "spacy_models.parse_without_tags"
    ),
    "allennlp_models.structured_prediction.predictors.srl": (
        "spacy_models.find_verbs_with_tags_only"
    ),
}
"""The modules that need help, and the function of this package that helps: it is called when the
module has run or, if it is a generator, runs around it."""

ADDED: Dict[str, str] = {"allennlp.commands.elmo": "elmo_scratch.export.allennlp_names"}
"""Modules that AllenNLP had before and old code imports, and what is found in their place."""


def apply() -> None:
    """Does all this. PyTorch calls it; a second call changes nothing."""
    if not any(isinstance(finder, _HelpingFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _HelpingFinder())
        allow_numpy_scalars()
        begin_command()


class _HelpingFinder(MetaPathFinder):
    """
    Finds the modules of `HELP` by the other finders, and patches each when it has run; and those of
    `ADDED`, which no other finder finds.
    """

    def __init__(self) -> None:
        # Where nobody has imported PyTorch before, AllenNLP does, by way of transformers, before it
        # goes on with spaCy and with modules of its own.
        if "allennlp" in sys.modules:
            IMPORTS.begin("allennlp", LATER["allennlp"])

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        LOADING.go_on(name)
        if name.startswith("allennlp."):
            IMPORTS.end("allennlp")
        if name in ADDED:
            return spec_from_file_location(name, _file_of(ADDED[name]))
        if name not in HELP and name not in LATER:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module = functools.partial(  # type: ignore[method-assign]
                    _run_and_help, spec.loader.exec_module
                )
                return spec
        return None


def _file_of(module: str) -> str:
    """The path of a module's code, which is not run here; the packages that it is in are."""
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None, module
    return spec.origin


def _run_and_help(run: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Runs a module's code and then its help; a generator runs around the module's code."""
    with ExitStack() as around:
        if module.__name__ in LATER:
            around.enter_context(imported_when_used(module.__name__, LATER[module.__name__]))
        if module.__name__ not in HELP:
            run(module)
            return
        room, _, name = HELP[module.__name__].partition(".")
        help_module = getattr(import_module(f"{__name__}.{room}"), name)
        if isgeneratorfunction(help_module):
            around.enter_context(contextmanager(help_module)(module))
            run(module)
            return
        run(module)
    help_module(module)
