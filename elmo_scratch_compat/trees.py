"""Constituency trees: the reader in allennlp-models, and AllenNLP's scorer."""

import atexit
import functools
import logging
import os
import shutil
import subprocess
import tempfile
from typing import Any, List, Optional

from elmo_scratch_compat.later_imports import Later

logger = logging.getLogger(__name__)

WITHOUT_SCORES = "A model with `evalb_directory_path: null` trains without these scores."


def open_named_file(penn_tree_bank: Any) -> None:
    """
    NLTK 3.10 reads corpora only below its own data folders, and there only files that nobody else
    may write or own, so `ptb_trees` reads no file that a config names. Here the reader opens the
    file, as AllenNLP's other readers do, and NLTK parses what is in it; what NLTK itself may open
    stays the same.
    """
    reader: Any = penn_tree_bank.BracketParseCorpusReader

    def named_file_reader() -> Any:
        """The class of readers, once NLTK is needed."""
        from nltk.data import PathPointer, SeekableUnicodeStreamReader

        class NamedFile(PathPointer):
            """A path in NLTK's terms, which NLTK neither checks nor opens."""

            def __init__(self, path: str) -> None:
                self._path = path

            def open(self, encoding: Optional[str] = None) -> Any:
                return SeekableUnicodeStreamReader(open(self._path, "rb"), encoding)

            def file_size(self) -> int:
                return os.path.getsize(self._path)

            def join(self, fileid: str) -> "NamedFile":
                return NamedFile(os.path.join(self._path, fileid))

        class NamedFileReader(reader):
            def __init__(self, root: str, fileids: List[str]) -> None:
                super().__init__(NamedFile(root), fileids)

            def _guard_fileid(self, fileid: str) -> NamedFile:
                return self.root.join(fileid)

        return NamedFileReader

    penn_tree_bank.BracketParseCorpusReader = Later(named_file_reader)


def compile_in_a_copy(evalb_bracketing_scorer: Any) -> None:
    """
    The first trees to be scored have EVALB compiled where AllenNLP is installed. Where that can't
    be written to, or no compiler is, a training fails after its first epoch; and of several
    processes each removes the program of the others. Here each compiles a copy of its own, and that
    there is no compiler is said before the training.
    """
    scorer = evalb_bracketing_scorer.EvalbBracketingScorer
    original, score = scorer.__init__, scorer.__call__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not os.path.exists(self._evalb_program_path) and not _can_compile():
            logger.warning(
                "%s: there is no EVALB yet, and without `make` and `gcc` it can't be compiled, so "
                "that no tree can be scored. %s",
                *(self._evalb_directory_path, WITHOUT_SCORES),
            )

    @functools.wraps(score)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> None:
        if not os.path.exists(self._evalb_program_path):
            self._evalb_program_path = _compiled(self._evalb_directory_path)
        score(self, *args, **kwargs)

    scorer.__init__, scorer.__call__ = __init__, __call__


def _can_compile() -> bool:
    return shutil.which("make") is not None and shutil.which("gcc") is not None


@functools.lru_cache(maxsize=None)
def _compiled(source: str) -> str:
    """EVALB, compiled in a folder that is removed when the process ends."""
    from allennlp.common.checks import ConfigurationError

    folder = tempfile.mkdtemp(prefix="evalb-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = os.path.join(folder, "evalb")
    try:
        for name in ("Makefile", "evalb.c"):
            shutil.copyfile(os.path.join(source, name), os.path.join(folder, name))
        make = subprocess.run(["make", "evalb"], cwd=folder, capture_output=True, text=True)
        reason = make.stderr.strip()
    except OSError as error:
        reason = str(error)
    if not os.access(program, os.X_OK):
        raise ConfigurationError(
            f"{source}: EVALB is not compiled, and can't be. Expected its source, `make`, `gcc` "
            f"and a TMPDIR that programs may run in. {WITHOUT_SCORES}\n{reason}"
        )
    return program
