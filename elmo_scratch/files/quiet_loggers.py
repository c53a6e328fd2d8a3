"""Messages that a library's caller didn't ask for."""

import logging
from contextlib import contextmanager
from typing import Iterator


@contextmanager
def without_information(*names: str) -> Iterator[None]:
    """Keeps messages below a warning of the loggers of these names from everybody in the block."""
    loggers = [logging.getLogger(name) for name in names]
    for logger in loggers:
        logger.addFilter(_is_warning)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_is_warning)


def _is_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING
