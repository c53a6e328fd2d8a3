"""AllenNLP's search for plugins, which runs at the start of every command."""

import functools
import logging
import sys
from typing import Any, Iterator

from elmo_scratch_compat.command_line import LOADING


def find_plugin(plugins: Any) -> None:
    """
    AllenNLP looks for plugins in a file of the current folder or of the home folder. It loads those
    of `DEFAULT_PLUGINS` in any folder, if they are installed. Each command began with a line for
    each of them; `--verbose` brings these back. With the last plugin all is loaded.
    """
    original = plugins.import_plugins

    @functools.wraps(original)
    def import_plugins() -> None:
        original()
        LOADING.end()

    plugins.import_plugins = import_plugins
    plugins.DEFAULT_PLUGINS += ("elmo_scratch",)
    if "--verbose" not in sys.argv:
        plugins.logger.setLevel(logging.WARNING)


def without_downloads(narrativeqa: Any) -> Iterator[None]:
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
