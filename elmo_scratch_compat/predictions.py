"""The input and output of `allennlp predict`."""

import functools
from argparse import Namespace
from typing import Any, Iterator

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


def name_bad_lines(predict: Any) -> None:
    """
    AllenNLP names neither the file nor the line that is no JSON, but a place within the line, as if
    it were one of the file.
    """
    manager = predict._PredictManager
    read = manager._get_json_data

    @functools.wraps(read)
    def _get_json_data(self: Any) -> Iterator[Any]:
        load_line = self._predictor.load_line

        def load_named_line(line: str) -> Any:
            try:
                return load_line(line)
            except predict.json.JSONDecodeError as error:
                raise predict.ConfigurationError(
                    f"{self._input_file}: expected a JSON object in each line, but got "
                    f"{line.strip()[:60]!r} ({error.msg}). Texts in the format of the training "
                    "data need --use-dataset-reader."
                ) from None

        self._predictor.load_line = load_named_line
        yield from read(self)

    manager._get_json_data = _get_json_data
