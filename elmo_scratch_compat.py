"""
Lets stock AllenNLP 2.10.1, archived in 2022, run on today's PyTorch.

PyTorch calls `apply` at the end of `import torch` (entry points of the group `torch.backends`), so
nothing here may import AllenNLP, or the package, or anything slow: every program of the environment
that imports PyTorch passes by. `apply` only leaves a note of the few AllenNLP modules that need
help; each is helped when it is imported, and where it isn't, nothing happens. The environment
variable `TORCH_DEVICE_BACKEND_AUTOLOAD=0` turns it all off.

Each function below that takes a module explains what breaks without it.
"""

import copy
import functools
import inspect
import shutil
import sys
import tarfile
import tempfile
import zlib
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import PurePosixPath
from types import ModuleType, SimpleNamespace
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence


def apply() -> None:
    """Called by PyTorch; a second call changes nothing."""
    if not any(isinstance(finder, _HelpingFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _HelpingFinder())
        _allow_numpy_scalars()


def _allow_numpy_scalars() -> None:
    """
    Since PyTorch 2.6 `torch.load` unpickles only what it knows to be harmless. AllenNLP's scheduler
    "cosine" keeps NumPy numbers in its state, so `--recover` could not read its own checkpoint.
    A NumPy number and its type hold no code.
    """
    import numpy
    import torch

    core = getattr(numpy, "_core", None) or numpy.core
    torch.serialization.add_safe_globals(
        [
            (core.multiarray.scalar, "numpy._core.multiarray.scalar"),
            (core.multiarray.scalar, "numpy.core.multiarray.scalar"),
            numpy.dtype,
            *{type(numpy.dtype(kind)) for kind in ("float64", "float32", "int64", "bool")},
        ]
    )


class _HelpingFinder(MetaPathFinder):
    """Finds the modules of `HELP` where they are, and has them helped when they have run."""

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        help_module = HELP.get(name)
        if help_module is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                run = spec.loader.exec_module
                spec.loader.exec_module = functools.partial(  # type: ignore[method-assign]
                    _run_and_help, run, help_module
                )
                return spec
        return None


def _run_and_help(
    run: Callable[[ModuleType], None],
    help_module: Callable[[ModuleType], Any],
    module: ModuleType,
) -> None:
    """Runs a module's code, and then its help; or within it, where the help is a generator."""
    if inspect.isgeneratorfunction(help_module):
        with contextmanager(help_module)(module):
            run(module)
    else:
        run(module)
        help_module(module)


class _AbsentTorchvision(ModuleType):
    """Stands for torchvision, or a module in it, where that is not installed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        import torch

        raise ImportError(
            f"{self.__name__}.{name} is needed, but torchvision is not installed. Text needs no "
            f"torchvision; for images install the release that belongs to PyTorch "
            f"{torch.__version__}."
        )


def _without_torchvision(module: Any) -> Iterator[None]:
    """
    AllenNLP imports torchvision whatever it is used for. Where it is not installed, the modules
    that import it get a placeholder; for all others it stays absent, so that a library that asks
    whether torchvision is there hears the truth. An installed torchvision is left alone.
    """
    if find_spec("torchvision") is not None:
        yield
        return
    names = ("torchvision", "torchvision.ops", "torchvision.ops.boxes")
    placeholders = {name: _AbsentTorchvision(name) for name in names}
    for name in names[1:]:
        parent, _, child = name.rpartition(".")
        setattr(placeholders[parent], child, placeholders[name])
        placeholders[parent].__path__ = []
    placeholders["torchvision"].__path__ = []
    sys.modules.update(placeholders)
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)


def _find_plugin(plugins: Any) -> None:
    """
    AllenNLP looks for plugins in a file of the current folder or of the home folder. It loads those
    of `DEFAULT_PLUGINS` in any folder, if they are installed.
    """
    plugins.DEFAULT_PLUGINS += ("elmo_scratch",)


def _print_numbers_only(console_logger: Any) -> None:
    """
    AllenNLP's default callback formats every metric as a number, and prints a traceback at the end
    of each epoch when a metric is a list, such as a confusion matrix.
    """
    callback = console_logger.ConsoleLoggerCallback
    on_epoch = callback.on_epoch

    @functools.wraps(on_epoch)
    def on_epoch_with_numbers(
        self: Any, trainer: Any, metrics: Dict[str, Any], *args: Any, **kwargs: Any
    ) -> None:
        numbers = {name: value for name, value in metrics.items() if hasattr(value, "__float__")}
        on_epoch(self, trainer, numbers, *args, **kwargs)

    callback.on_epoch = on_epoch_with_numbers


def _drop_verbose(schedulers: Any) -> None:
    """
    PyTorch 2.7 took the argument `verbose` from `ReduceLROnPlateau`; AllenNLP's scheduler
    "reduce_on_plateau" always passes it. It only ever printed, so it is dropped.
    """
    scheduler = schedulers.ReduceOnPlateauLearningRateScheduler
    original = scheduler.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        import torch

        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        settings = {
            name: value
            for name, value in bound.arguments.items()
            if name not in ("self", "verbose")
        }
        super(scheduler, self).__init__(torch.optim.lr_scheduler.ReduceLROnPlateau(**settings))

    scheduler.__init__ = __init__


def _clip_sparse_norms(module: Any) -> None:
    """
    `torch.nn.utils.clip_grad_norm_` works by fused kernels that know no sparse gradients, which
    AllenNLP's "embedding" makes with `sparse: true`. Only the values of a sparse gradient count.
    """
    clip_dense = module.clip_grad_norm_

    @functools.wraps(clip_dense)
    def clip_grad_norm_(parameters: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        return clip_dense(_with_dense_gradients(parameters), *args, **kwargs)

    module.clip_grad_norm_ = clip_grad_norm_


def _clip_sparse(trainer: Any) -> None:
    """The same for `grad_norm` and `grad_clipping` of AllenNLP's trainer."""
    _clip_sparse_norms(trainer)
    clip_dense = trainer.GradientDescentTrainer.clip_gradient

    @functools.wraps(clip_dense)
    def clip_gradient(self: Any) -> None:
        stand_in = copy.copy(self)
        parameters = _with_dense_gradients(self.model.parameters())
        stand_in.model = SimpleNamespace(parameters=lambda: parameters)
        clip_dense(stand_in)

    trainer.GradientDescentTrainer.clip_gradient = clip_gradient


def _with_dense_gradients(parameters: Iterable[Any]) -> List[Any]:
    """
    The parameters; for one with a sparse gradient a stand-in, whose gradient is the tensor of its
    values, in the same memory.
    """
    stand_ins = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
            parameter = SimpleNamespace(grad=parameter.grad._values())
        stand_ins.append(parameter)
    return stand_ins


def _unpack_safely(archival: Any) -> None:
    """
    AllenNLP unpacks archives without a look at where their members go, and shows a traceback from
    the depths of `tarfile` for a file that is no archive.
    """

    @contextmanager
    def extracted_archive(resolved_archive_file: str, cleanup: bool = True) -> Iterator[str]:
        from allennlp.common.checks import ConfigurationError

        folder = tempfile.mkdtemp()
        try:
            try:
                with tarfile.open(resolved_archive_file, "r:gz") as archive:
                    _extract_all(archive, folder)
            except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
                cleanup = True
                raise ConfigurationError(
                    f"{resolved_archive_file}: expected an archive made by `allennlp train` "
                    f"(model.tar.gz), but it can't be unpacked: {error}"
                ) from None
            yield folder
        finally:
            if cleanup:
                shutil.rmtree(folder, ignore_errors=True)

    archival.extracted_archive = extracted_archive


def _extract_all(archive: tarfile.TarFile, folder: str) -> None:
    """Refuses members that lead out of the folder, and links where Python can't judge them."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
        return
    # Python before 3.10.12 and 3.11.4.
    for member in archive.getmembers():
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
            raise tarfile.TarError(f"{member.name!r} would be outside the folder, or is a link")
    archive.extractall(folder)


def _without_downloads(narrativeqa: Any) -> Iterator[None]:
    """
    A reader of allennlp-models downloads NLTK's data when it is imported, that is on every command,
    which without a network waits and prints errors. Where the data is needed and missing, NLTK
    itself says how to get it.
    """
    import nltk

    download = nltk.download
    nltk.download = lambda *args, **kwargs: False
    try:
        yield
    finally:
        nltk.download = download


HELP: Dict[str, Callable[[ModuleType], Any]] = {
    "allennlp.common.plugins": _find_plugin,
    "allennlp.data.image_loader": _without_torchvision,
    "allennlp.models.archival": _unpack_safely,
    "allennlp.modules.vision.grid_embedder": _without_torchvision,
    "allennlp.modules.vision.region_detector": _without_torchvision,
    "allennlp.nn.parallel.ddp_accelerator": _clip_sparse_norms,
    "allennlp.training.callbacks.console_logger": _print_numbers_only,
    "allennlp.training.gradient_descent_trainer": _clip_sparse,
    "allennlp.training.learning_rate_schedulers.pytorch_lr_schedulers": _drop_verbose,
    "allennlp.training.util": _clip_sparse_norms,
    "allennlp_models.rc.tools.narrativeqa": _without_downloads,
}
"""The modules that need help, and what helps them: a function that is called when the module has
run, or a generator that runs around it."""
