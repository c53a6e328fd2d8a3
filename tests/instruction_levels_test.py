from tests import PROJECT_ROOT
from tests.instruction_levels import NOT_NUMERIC, NUMERIC_TESTS


def test_what_is_run_and_what_is_left_out_are_there() -> None:
    """Pytest says nothing of a file to be left out that isn't there."""
    for path in (*NUMERIC_TESTS, *NOT_NUMERIC):
        assert (PROJECT_ROOT / path).exists(), path
    assert all(file.startswith(tuple(NUMERIC_TESTS)) for file in NOT_NUMERIC)
