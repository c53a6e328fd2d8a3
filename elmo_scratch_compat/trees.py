"""The reader of constituency trees in allennlp-models."""

import os
from typing import Any, List, Optional


def open_named_file(penn_tree_bank: Any) -> None:
    """
    NLTK 3.10 reads corpora only below its own data folders, and there only files that nobody else
    may write or own, so `ptb_trees` reads no file that a config names. Here the reader opens the
    file, as AllenNLP's other readers do, and NLTK parses what is in it; what NLTK itself may open
    stays the same.
    """
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

    class NamedFileReader(penn_tree_bank.BracketParseCorpusReader):
        def __init__(self, root: str, fileids: List[str]) -> None:
            super().__init__(NamedFile(root), fileids)

        def _guard_fileid(self, fileid: str) -> NamedFile:
            return self.root.join(fileid)

    penn_tree_bank.BracketParseCorpusReader = NamedFileReader
