"""The input and output of `allennlp predict`."""

import functools
import sys
from argparse import Namespace
from collections import deque
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Callable, Iterable, Iterator, List, NamedTuple, Tuple, Type

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


SHOWN = 60
"""Characters of a line in an error."""

UNREAD = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The errors of predictors that get something else than they expect."""


def name_bad_lines(predict: Any) -> None:
    """
    AllenNLP names neither the file nor the line of an input that is no JSON, or that the predictor
    can't read, and fails at a byte order mark.
    """
    manager = predict._PredictManager
    begin, predict_json = manager.__init__, manager._predict_json

    @functools.wraps(begin)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        self._unanswered = deque()
        make = self._predictor._json_to_instance

        def make_instance(asked: Any) -> Any:
            # By identity: two lines may ask the same.
            place = next((line.place for line in self._asked if line.value is asked), None)
            if place is None:
                return make(asked)
            with _line_named(place, UNREAD):
                return make(asked)

        self._asked = ()
        self._predictor._json_to_instance = make_instance

    def _get_json_data(self: Any) -> Iterator[Any]:
        name = "standard input" if self._input_file == "-" else self._input_file
        with _opened(self._input_file, predict.cached_path) as lines:
            for number, raw in enumerate(lines, start=1):
                place = f"{name}, line {number}"
                line = _decoded(raw, place)
                if not line or line.isspace():
                    continue
                try:
                    value = self._predictor.load_line(line)
                except (ValueError, RecursionError) as error:
                    reason = getattr(error, "msg", error)
                    raise predict.ConfigurationError(
                        f"{place}: expected a JSON object, but got {line.strip()[:SHOWN]!r} "
                        f"({reason}). Texts in the format of the training data need "
                        "--use-dataset-reader."
                    ) from None
                self._unanswered.append(_Asked(place, value))
                yield value

    @functools.wraps(predict_json)
    def _predict_json(self: Any, batch_data: List[Any]) -> Iterator[str]:
        self._asked = [self._unanswered.popleft() for _ in batch_data]
        places = [asked.place for asked in self._asked]
        with _line_named(places[0] if len(places) == 1 else f"{places[0]} or one after it"):
            yield from predict_json(self, batch_data)

    manager.__init__, manager._predict_json = __init__, _predict_json
    manager._get_json_data = _get_json_data


class _Asked(NamedTuple):
    """A line's place, with the name of its file, and what its JSON holds."""

    place: str
    value: Any


@contextmanager
def _opened(path: str, fetched: Callable[[str], Any]) -> Iterator[Iterable[bytes]]:
    """Yields the lines of a file, plain or compressed, or of the standard input, `"-"`."""
    # The plugin's half: it reads compressed texts.
    packed = import_module("elmo_scratch.data.lines")
    if path == "-":
        yield sys.stdin.buffer
        return
    with open(fetched(path), "rb") as file, packed.damage_told(path):
        yield packed.unpacked(file)


def _decoded(raw: bytes, place: str) -> str:
    """A line as text, without a byte order mark. Raises `ConfigurationError` if it isn't UTF-8."""
    from allennlp.common.checks import ConfigurationError

    try:
        return raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{place}: expected UTF-8 text, but byte {error.start + 1} of the line is "
            f"0x{raw[error.start]:02x}. Convert the file to UTF-8 first."
        ) from None


@contextmanager
def _line_named(place: str, kinds: Tuple[Type[Exception], ...] = ()) -> Iterator[None]:
    """
    Turns a `ConfigurationError`, or an error of one of `kinds`, into one that begins with a line's
    place, unless it names a line of the same file already.
    """
    from allennlp.common.checks import ConfigurationError

    name = place.partition(", line ")[0]
    try:
        yield
    except ConfigurationError as error:
        if str(error.message).startswith(f"{name}, line "):
            raise
        raise ConfigurationError(f"{place}: {error.message}") from error
    except kinds as error:
        raise ConfigurationError(
            f"{place}: the predictor can't read it ({type(error).__name__}: {error})"
        ) from error
