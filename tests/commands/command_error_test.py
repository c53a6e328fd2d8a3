import subprocess
import sys

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.commands.command_error import CommandError


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
