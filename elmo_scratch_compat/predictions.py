"""The output of `allennlp predict`."""

import functools
from argparse import Namespace
from typing import Any

from elmo_scratch_compat.whole_files import written_beside


def write_whole_file(predict: Any) -> None:
    """
    `allennlp predict` empties its output file at the start and fills it as it goes: a bad row in
    the input costs the answers of an earlier run, and leaves half of the new ones. Here the answers
    take the file's place when all are there.
    """
    predict_to = predict._predict

    @functools.wraps(predict_to)
    def _predict(args: Namespace) -> None:
        if not args.output_file:
            predict_to(args)
            return
        with written_beside(args.output_file) as args.output_file:
            predict_to(args)

    predict._predict = _predict
