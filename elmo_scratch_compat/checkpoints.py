"""Types that `torch.load` may read without running any code that a file holds."""


def allow_numpy_scalars() -> None:
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
