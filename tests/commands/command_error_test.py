import subprocess
import sys

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.commands.command_error import CommandError, command_errors


@pytest.mark.parametrize("kind", [ConfigurationError, SystemExit])
def test_it_is_caught_as_either(kind: type) -> None:
    with pytest.raises(kind):
        raise CommandError("elmo", "no such file")


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
        with command_errors("elmo", "x.hdf5", ". Make room"):
            raise OSError(28, "No space left on device")
    assert str(stop.value) == (
        "allennlp elmo: error: x.hdf5: [Errno 28] No space left on device. Make room"
    )


def test_a_mistake_in_the_program_stays_what_it_is() -> None:
    with pytest.raises(TypeError):
        with command_errors("elmo", "x.hdf5"):
            raise TypeError
