"""The output of `allennlp predict`."""

import functools
import os
from argparse import Namespace
from typing import Any


def write_whole_file(predict: Any) -> None:
    """
    `allennlp predict` empties its output file at the start and fills it as it goes: a bad row in
    the input costs the answers of an earlier run, and leaves half of the new ones. Here the answers
    go to a file beside it, which takes its place when all are there.
    """
    predict_to = predict._predict

    @functools.wraps(predict_to)
    def _predict(args: Namespace) -> None:
        wanted = args.output_file
        if not wanted:
            predict_to(args)
            return
        args.output_file = f"{wanted}.{os.getpid()}.part"
        try:
            predict_to(args)
            os.replace(args.output_file, wanted)
        finally:
            if os.path.exists(args.output_file):
                os.remove(args.output_file)

    predict._predict = _predict
