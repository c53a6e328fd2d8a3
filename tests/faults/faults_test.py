import sqlite3
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Callable, Set

import h5py
import numpy
import pytest
import torch

from elmo_scratch.files.atomic import atomic_write
from tests.faults.campaign import Campaign, Case
from tests.faults.injection import COMPILER, FAULTS, NO_FAULT, Kind, run_faulty
from tests.faults.writers import WRITERS, Writer, older

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no cc here")


SLOW = (
    "allennlp train",
    "allennlp evaluate",
    "allennlp predict",
    "allennlp elmo-search",
    "allennlp elmo-report",
)
"""Writers that take a second or more for a run."""


@pytest.mark.parametrize("name", [name for name in WRITERS if name not in SLOW])
def test_a_writer_survives_a_fault(name: str, tmp_path: Path) -> None:
    campaign = Campaign(name, WRITERS[name], tmp_path)
    for case in campaign.sampled(1):
        assert not campaign.problems(case), case


@pytest.fixture(scope="module")
def imported() -> None:
    """What slow writers import: otherwise each copy of this process would import it anew."""
    for name in (
        "matplotlib.backends.backend_pdf",
        "optuna.storages._rdb.storage",
        "alembic.command",
        "torch._dynamo",
    ):
        import_module(name)


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("imported")
@pytest.mark.parametrize("name", WRITERS)
def test_a_writer_survives_more_faults(name: str, tmp_path: Path) -> None:
    """`python -m tests.faults` tries all of them, which takes about an hour."""
    campaign = Campaign(name, WRITERS[name], tmp_path)
    found = {str(case): campaign.problems(case) for case in campaign.standing_for_all()}
    assert {case: problems for case, problems in found.items() if problems} == {}


def write_in_place(folder: Path) -> None:
    (folder / "file").write_text("new")


def write_and_leave(folder: Path) -> None:
    (folder / "file.tmp").write_text("new")
    (folder / "file.tmp").replace(folder / "file")


def write_and_say_nothing(folder: Path) -> None:
    try:
        with atomic_write(folder / "file") as part:
            part.write_text("new")
    except OSError:
        pass


def write_with_another_error(folder: Path) -> None:
    try:
        with atomic_write(folder / "file") as part:
            part.write_text("new")
    except OSError:
        raise KeyError("file") from None


@pytest.mark.parametrize(
    "write, told",
    [
        (write_in_place, "file is neither the old nor the new file"),
        (write_and_leave, "file.tmp is left over"),
        (write_and_say_nothing, "it ended without an error, but file differs"),
        (write_with_another_error, "an error of another kind: KeyError: 'file'"),
    ],
)
def test_a_bad_writer_is_found(write: Callable[[Path], None], told: str, tmp_path: Path) -> None:
    campaign = Campaign("bad", Writer(write, older("file")), tmp_path)
    cases = [
        case
        for case in campaign.cases()
        if case.fault.name in ("EIO", "kill before") and is_of_file(case)
    ]
    assert any(told in campaign.problems(case) for case in cases)


def is_of_file(case: Case) -> bool:
    """Whether a case is about the file or its temporary one, and not about folders and locks."""
    return "write" in case.call or "rename" in case.call


def write_by_libraries(folder: Path) -> None:
    torch.save(torch.zeros(3), folder / "torch")
    numpy.save(folder / "numpy.npy", numpy.zeros(3))
    with h5py.File(folder / "hdf5", "w") as file:
        file["numbers"] = numpy.zeros(3)
    with closing(sqlite3.connect(folder / "sqlite")) as database:
        database.execute("CREATE TABLE numbers (number)")


def test_the_calls_of_each_library_are_seen(tmp_path: Path) -> None:
    here, said = tmp_path / "here", tmp_path / "said"
    here.mkdir()
    said.mkdir()
    outcome = run_faulty(lambda: write_by_libraries(here), here, said, fault=NO_FAULT)
    assert outcome.error is None
    written: Set[str] = {
        path
        for call, _, path in (line.partition("\t") for line in outcome.calls)
        if "write" in call
    }
    assert {"/torch", "/numpy.npy", "/hdf5", "/sqlite"} <= written


def test_a_full_disk_takes_a_half_and_then_nothing(tmp_path: Path) -> None:
    here, said = tmp_path / "here", tmp_path / "said"
    here.mkdir()
    said.mkdir()

    def write() -> None:
        try:
            with open(here / "file", "wb", buffering=0) as file:
                assert file.write(b"12345678") == 4
                file.write(b"5678")
        except OSError:
            (here / "other").touch()

    full = next(fault for fault in FAULTS if fault.kind is Kind.FILL_DISK)
    outcome = run_faulty(write, here, said, 2, full)
    assert (here / "file").read_bytes() == b"1234" and not (here / "other").exists()
    assert outcome.error is not None and "No space left on device" in outcome.error
