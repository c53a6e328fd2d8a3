"""`docs/determinism.md`: its claims name tests, and its program runs."""

import re

import pytest
import torch

from elmo_scratch.kernels import rows_are_independent
from tests import PROJECT_ROOT

PAGE = (PROJECT_ROOT / "docs" / "determinism.md").read_text("utf-8")


def test_the_tests_that_it_names_are_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 30
    missing = [
        f"{file}::{test}"
        for file, test in named
        if f"def {test}(" not in (PROJECT_ROOT / file).read_text("utf-8")
    ]
    assert missing == []


def test_each_claim_names_one() -> None:
    claims = re.split(r"^- ", PAGE, flags=re.MULTILINE)[1:]
    assert [
        claim for claim in claims if "::test_" not in claim and "benchmarks/" not in claim
    ] == []


def test_it_shows_how_to_ask_the_machine(capsys: pytest.CaptureFixture) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(program, "determinism.md", "exec"), {})
    answers = [rows_are_independent(dtype) for dtype in (torch.float32, torch.bfloat16)]
    assert capsys.readouterr().out.split() == list(map(str, answers))
