"""The output of `allennlp predict`."""

import functools
import os
from argparse import Namespace
from typing import Any


def write_whole_file(predict: Any) -> None:
    """
    `allennlp predict` empties its output file at the start and fills it as it goes: a bad row in
    the input costs the answers of an earlier run, and leaves half of the new ones. Here the answers
    go to a file beside it, which takes its place when all are there. Devices and pipes are written
    to as they come.
    """
    predict_to = predict._predict

    @functools.wraps(predict_to)
    def _predict(args: Namespace) -> None:
        if not args.output_file or not _can_be_replaced(args.output_file):
            predict_to(args)
            return
        # A link stays, and the file that it leads to is replaced.
        wanted = os.path.realpath(args.output_file)
        args.output_file = f"{wanted}.{os.getpid()}.part"
        try:
            predict_to(args)
            os.replace(args.output_file, wanted)
        finally:
            if os.path.exists(args.output_file):
                os.remove(args.output_file)

    predict._predict = _predict


def _can_be_replaced(path: str) -> bool:
    """Whether a file can be made beside a path and moved there."""
    is_file = os.path.isfile(path) or not os.path.exists(path)
    return is_file and os.access(os.path.dirname(os.path.realpath(path)), os.W_OK | os.X_OK)
