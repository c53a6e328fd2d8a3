"""Writes output files that appear whole or not at all."""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, List, Optional, Sequence

from allennlp.common.checks import ConfigurationError

from elmo_scratch_compat.unfinished import unfinished
from elmo_scratch_compat.whole_files import move, sync


def check_place(path: Path, *, told: Optional[Path] = None) -> None:
    """
    Checks before the work starts that a file can be written at `path`, or at the target of a link.
    Raises `ConfigurationError` if not, which names `told` if `path` is only a part of it.
    """
    reason = None
    try:
        target = Path(os.path.realpath(path))
        folder = target.parent
        if path.is_dir():
            reason = "expected a file to write to, but it is a folder"
        # A target that is still a link belongs to a circle of links.
        elif (path.exists() or target.is_symlink()) and not path.is_file():
            reason = "expected a file to write to, but it is no regular file"
        elif not os.access(folder, os.W_OK | os.X_OK):
            found = "can't be written to" if folder.is_dir() else "doesn't exist"
            reason = f"the folder {folder} {found}"
    except OSError as error:  # The system refuses the name.
        reason = f"can't be written to ({error.strerror})"
    if reason is not None:
        raise ConfigurationError(f"{told or path}: {reason}")


@contextmanager
def atomic_write(path: Path, *, told: Optional[Path] = None) -> Iterator[Path]:
    """
    Gives the block a temporary path in a folder beside `path`, and moves what the block wrote there
    to `path` when it ends without an error. Until then an older file at `path` stays as it is;
    after an error nothing is left of the new one, and what a killed process has left goes with the
    next write. A link stays, and the file that it leads to is replaced. The folder of `path` must
    exist. The file is on the disk before it has its name, which is there when the block has ended.
    Errors name `told` if `path` is only a part of it.
    """
    target = Path(os.path.realpath(path))
    with unfinished(str(target), told=str(told or path)) as temporary:
        yield Path(temporary)
        move(temporary, target)


@contextmanager
def atomic_writes(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """
    Gives the block an empty folder, and moves the files `names` that the block wrote there to
    `folder` when it ends without an error, each after its content is on the disk. After an error
    the older files are there. The folder above `folder` must exist.

    A new folder appears with all its files at once. In an existing folder the last of the files is
    removed first and moved last: if it is there, the others belong to it. A process that is killed
    in between leaves neither model whole.
    """
    told, folder = str(folder), Path(os.path.realpath(folder))
    # The folder above may be on another disk, or may not be writable.
    place = folder if folder.exists() else folder.parent
    with unfinished(str(folder), folder=str(place), told=told) as part:
        temporary = Path(part)
        temporary.mkdir()
        yield temporary
        if folder.exists():
            _exchange(temporary, folder, names)
        else:
            move(temporary, folder)


def _exchange(temporary: Path, folder: Path, names: Sequence[str]) -> None:
    """Moves new files to the places of older ones, which come back after an error."""
    older = temporary / ".older"
    older.mkdir()
    begun: List[str] = []
    try:
        for name in reversed(names):
            if os.path.lexists(folder / name):
                os.replace(folder / name, older / name)
        # Without the last file the others count for nothing.
        sync(folder)
        for name in names:
            begun.append(name)
            move(temporary / name, folder / name)
    except BaseException:
        for name in names:
            if os.path.lexists(older / name):
                os.replace(older / name, folder / name)
            elif name in begun and not (temporary / name).exists():
                (folder / name).unlink(missing_ok=True)
        raise


def check_folder_place(folder: Path) -> None:
    """
    Checks before the work starts that there can be a folder at `folder`. Raises
    `ConfigurationError` if a file is in the way, or a link that leads nowhere.
    """
    # A target that is still a link belongs to a circle of links.
    if Path(os.path.realpath(folder)).is_symlink():
        raise ConfigurationError(
            f"{folder}: expected a folder to write to, but it is a link that leads nowhere"
        )
    for above in (folder, *folder.absolute().parents):
        what = "a file" if above.exists() else "a link that leads nowhere"
        is_link = above != folder and above.is_symlink() and not above.exists()
        if is_link or (above.exists() and not above.is_dir()):
            raise ConfigurationError(
                f"{folder}: expected a folder to write to, but {above} is {what}"
            )


def check_folder(folder: Path, names: Sequence[str], overwrite: bool, way: str) -> None:
    """
    Checks before the work starts that the files `names` of a biLM can be written to a folder, and
    makes the folders above it. Raises `ConfigurationError` if not, or if one of them is there and
    may not be replaced; `way` says how it may.
    """
    check_folder_place(folder)
    older = [name for name in names if (folder / name).exists()]
    for name in older:
        if (folder / name).is_dir():
            raise ConfigurationError(f"{folder / name}: expected a file, but it is a folder")
    if older and not overwrite:
        raise ConfigurationError(
            f"{folder}: there are files of another biLM already: {', '.join(sorted(older))}. "
            f"Choose another folder, or replace them by {way}."
        )
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
