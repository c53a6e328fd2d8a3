import logging
import signal
import subprocess
import sys
from typing import Iterator

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.commands.command_error import CommandError, command_errors
from tests.commands.conftest import Allennlp


@pytest.mark.parametrize("kind", [ConfigurationError, SystemExit])
def test_it_is_caught_as_either(kind: type) -> None:
    with pytest.raises(kind):
        raise CommandError("elmo", "no such file")


@pytest.mark.exhaustive
def test_uncaught_it_is_one_line_and_exit_status_1() -> None:
    program = (
        "from elmo_scratch.commands.command_error import CommandError\n"
        "raise CommandError('elmo', 'no such file')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert ended.stderr == "allennlp elmo: error: no such file\n"


def test_what_a_file_causes_becomes_one() -> None:
    with pytest.raises(CommandError, match="^allennlp elmo: error: no such file$"):
        with command_errors("elmo", "x.hdf5"):
            raise ConfigurationError("no such file")


def test_what_the_disk_causes_names_the_output_and_the_way_out() -> None:
    with pytest.raises(CommandError) as stop:
        with command_errors("elmo", "x.hdf5", "go on with --resume"):
            raise OSError(28, "No space left on device")
    assert str(stop.value) == (
        "allennlp elmo: error: x.hdf5: [Errno 28] No space left on device. What is done is kept: "
        "go on with --resume"
    )
    with pytest.raises(CommandError, match="No space left on device$"):
        with command_errors("elmo", "x.hdf5", "go on with --resume", lambda: False):
            raise OSError(28, "No space left on device")
    with pytest.raises(CommandError, match="x.txt: .Errno 28. No space left on device$"):
        with command_errors("elmo-vectors", "x.txt"):
            raise OSError(28, "No space left on device")


def test_verbose_commands_show_where_an_error_comes_from(capsys: pytest.CaptureFixture) -> None:
    for is_verbose in (False, True):
        with pytest.raises(CommandError, match="^allennlp elmo: error: no such file$"):
            with command_errors("elmo", "x.hdf5", is_verbose=is_verbose):
                raise ConfigurationError("no such file")
        assert ("Traceback (most recent call last)" in capsys.readouterr().err) == is_verbose


MISTAKES = {
    "elmo": "none.txt x.hdf5 --all --weight-file none.tar.gz",
    "elmo-explore": "none.hdf5 --word x",
    "elmo-export": "none.tar.gz official",
    "elmo-join": "none.hdf5",
    "elmo-report": "none -o x.html",
    "elmo-search": "none.yaml none.json -s found",
    "elmo-vectors": "none.txt x.txt --method svd",
}


@pytest.mark.parametrize("command", MISTAKES)
def test_all_commands_can_be_verbose(
    command: str, allennlp: Allennlp, capsys: pytest.CaptureFixture
) -> None:
    for option in ([], ["--verbose"]):
        capsys.readouterr()
        with pytest.raises(CommandError, match=f"^allennlp {command}: error: "):
            allennlp(command, *MISTAKES[command].split(), *option)
        assert ("Traceback" in capsys.readouterr().err) == bool(option)


def test_a_verbose_command_prints_what_others_log(capsys: pytest.CaptureFixture) -> None:
    logger, handler = logging.getLogger("somewhere"), logging.StreamHandler(sys.stdout)
    logging.getLogger().addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        for is_verbose, printed in ((False, ""), (True, "reading line 7\n")):
            with command_errors("elmo", "x.hdf5", is_verbose=is_verbose):
                logger.info("reading line 7")
            assert capsys.readouterr().out == printed
    finally:
        logging.getLogger().removeHandler(handler)


@pytest.fixture
def _interrupted_by_sigint() -> Iterator[None]:
    """As in a foreground process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupted_by_sigint")
@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("way_on, then", [("", ""), ("go on", "; go on")])
def test_an_interruption_is_one_line(
    way_on: str,
    then: str,
    number: signal.Signals,
    status: int,
    capsys: pytest.CaptureFixture,
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as stop, command_errors("elmo-join", "x.hdf5", way_on):
        try:
            signal.raise_signal(number)
        except Exception:
            pytest.fail("what reads files would take it for an error of a file")
    assert signal.getsignal(signal.SIGTERM) == before
    assert stop.value.code == status
    assert capsys.readouterr().err == f"allennlp elmo-join: interrupted{then}\n"


def test_a_signal_shows_whatever_a_library_makes_of_it() -> None:
    with pytest.raises(SystemExit) as stop, command_errors("elmo", "x.hdf5"):
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None
    assert stop.value.code == 143


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with command_errors("elmo", "x.hdf5"):
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_mistake_in_the_program_stays_what_it_is() -> None:
    with pytest.raises(TypeError):
        with command_errors("elmo", "x.hdf5"):
            raise TypeError
