import pytest

from tests.commands.conftest import Allennlp


def test_an_error_is_one_line(allennlp: Allennlp) -> None:
    with pytest.raises(SystemExit) as stop:
        allennlp("elmo-join", "x.hdf5")
    assert str(stop.value.code).startswith(
        "allennlp elmo-join: error: x.hdf5: expected the outputs"
    )


def test_the_help_text_tells_what_it_joins(
    allennlp: Allennlp, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit):
        allennlp("elmo-join", "--help")
    assert "OUTPUT.1-of-N" in capsys.readouterr().out
