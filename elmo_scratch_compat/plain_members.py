"""Members of tar archives that are what they seem."""

import tarfile
from typing import Any

from elmo_scratch_compat.bounds import ARCHIVE_HEADER


class PlainMember(tarfile.TarInfo):
    """
    Refuses headers that would take memory or time before an archive has named a single file: huge
    headers, sizes below 0, and maps of sparse files. No training packs any.
    """

    def _proc_member(self, archive: Any) -> Any:
        """Checks a header; `tarfile` calls this for each, and lets it be overridden."""
        if self.size < 0:
            raise tarfile.TarError(f"{self.name!r} has a size below 0")
        if self.type == tarfile.GNUTYPE_SPARSE:
            self._refuse_sparse()
        if not (self.isreg() or self.isdir()) and self.size > ARCHIVE_HEADER:
            raise tarfile.TarError(f"it says more of a member than {ARCHIVE_HEADER} bytes")
        return super()._proc_member(archive)  # type: ignore[misc]

    def _refuse_sparse(self, *_: Any) -> None:
        raise tarfile.TarError("it holds a sparse file")

    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse_sparse
