"""Makes one file of the outputs of all shards."""

import os
import re
from itertools import chain
from pathlib import Path
from typing import Dict, Set

from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm

from elmo_scratch.export.export import check_output
from elmo_scratch.export.part_folder import PartFolder
from elmo_scratch.export.part_writing import JOINED
from elmo_scratch.export.shard import Shard
from elmo_scratch.files.atomic import sync
from elmo_scratch.interop import LayerFile, LayerFileFacts, LayerFileWriter


def join_shards(output_file: Path, *, remove: bool = False, overwrite: bool = False) -> None:
    """
    Writes `output_file` from the files `NAME.I-of-N` beside it. It is the same, data set by data
    set, as if one process had made it.

    # Parameters

    output_file : `Path`
        The file to write.
    remove : `bool`, optional (default = `False`)
        Remove the files of the shards when the output is whole.
    overwrite : `bool`, optional (default = `False`)
        Replace another file of that name.

    # Raises

    ConfigurationError
        If a shard is missing, they don't belong together, or the output can't be written.
    OSError
        If the disk is full. The shards stay.
    """
    shards = _shards_beside(output_file)
    facts = _shared_facts(shards)
    is_there = check_output(output_file, facts.export, overwrite)
    are_all_there = len(shards) == next(iter(shards)).total
    # Some are gone where the run before was ended while it removed them.
    if are_all_there or not (is_there and _holds_all(output_file, shards)):
        _join_all(output_file, shards, facts, overwrite)
    if remove:
        for path in shards.values():
            path.unlink()


def _holds_all(output_file: Path, shards: Dict[Shard, Path]) -> bool:
    """Whether the output has what the shards have: a shard by its name is of that export too."""
    with LayerFile(output_file) as output:
        keys = set(output.keys())
    for path in shards.values():
        with LayerFile(path) as shard:
            if not keys.issuperset(shard.keys()):
                return False
    return True


def _join_all(
    output_file: Path, shards: Dict[Shard, Path], facts: LayerFileFacts, overwrite: bool
) -> None:
    """Makes the output, if all shards are there."""
    total = next(iter(shards)).total
    missing = [f"{shard.number}/{total}" for shard in Shard.all_of(total) if shard not in shards]
    if missing:
        raise ConfigurationError(
            f"{output_file}: the output of --shard {', '.join(missing)} is missing. Run it first, "
            "or once more with --resume if it was interrupted."
        )
    # Where a link leads; and within a folder in which the next run clears away what is left of one
    # that was killed.
    output_file = Path(os.path.realpath(output_file))
    folder = PartFolder(output_file)
    with folder.opened(facts.export, resume=True, overwrite=overwrite):
        joined = folder.path / JOINED
        _join(shards, facts, joined)
        sync(joined)
        os.replace(joined, output_file)
        sync(output_file.parent)
        # Those of an interrupted run without shards are of no more use either.
        folder.remove()


def _join(shards: Dict[Shard, Path], facts: LayerFileFacts, output_file: Path) -> None:
    """Copies what is in the files of all shards into one."""
    with LayerFileWriter.open(output_file, facts) as file:
        indexes = []
        for path in shards.values():
            with LayerFile(path) as shard:
                if shard.has_index:
                    indexes.append(path)
        # First, while HDF5 holds no memory from copying yet.
        if indexes:
            file.write_index(chain.from_iterable(LayerFile(path).sentences() for path in indexes))
        for path in Tqdm.tqdm(shards.values(), unit=" shards"):
            file.copy_from(path)


def _shards_beside(output_file: Path) -> Dict[Shard, Path]:
    """The files of the shards that are there, in their order."""
    pattern = re.compile(re.escape(output_file.name) + r"\.(\d+)-of-(\d+)")
    matches = [pattern.fullmatch(path.name) for path in output_file.parent.glob("*-of-*")]
    found: Set[Shard] = {Shard(int(match[1]), int(match[2])) for match in matches if match}
    counts = sorted({shard.total for shard in found})
    if not counts:
        raise ConfigurationError(
            f"{output_file}: expected the outputs of its shards beside it, such as "
            f"{Shard(1, 2).file_of(output_file).name}, but there are none"
        )
    if len(counts) > 1:
        raise ConfigurationError(
            f"{output_file}: expected shards of one division, but there are some of "
            f"{' and of '.join(map(str, counts))}. Remove those that don't belong to it."
        )
    return {shard: shard.file_of(output_file) for shard in sorted(found)}


def _shared_facts(shards: Dict[Shard, Path]) -> LayerFileFacts:
    """What all shards say of themselves."""
    facts: Dict[Path, LayerFileFacts] = {}
    for path in shards.values():
        with LayerFile(path) as shard:
            facts[path] = shard.facts
    first = shards[min(shards)]
    for path, own in facts.items():
        if own != facts[first]:
            raise ConfigurationError(
                f"{path}: expected a shard of the same export as {first}, but the text, the model "
                "or the settings were others; or products in bfloat16 ran in float32 for one of "
                "them, on a processor that is slow in it: `--matmul-dtype float32` is the same "
                "everywhere"
            )
    return facts[first]
