"""AllenNLP where torchvision is not installed."""

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Iterator


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


def without_torchvision(module: Any) -> Iterator[None]:
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
