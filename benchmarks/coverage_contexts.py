"""
A plugin of pytest that keeps apart which test file runs which lines. A process that a test starts
finds the test's file in the environment.
"""

import os
from typing import Generator

import coverage
import pytest

TEST_FILE = "COVERAGE_TEST_FILE"
"""The environment variable."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Fixtures included; one that several files share counts for the first of them."""
    test_file = item.nodeid.split("::")[0]
    measured = coverage.Coverage.current()
    os.environ[TEST_FILE] = test_file
    if measured is not None:
        measured.switch_context(test_file)
    try:
        return (yield)
    finally:
        del os.environ[TEST_FILE]
        if measured is not None:
            measured.switch_context("")
