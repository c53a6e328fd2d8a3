"""The example that trains a biLM by one step is run, and its loss computed word by word."""

import runpy

import pytest
import torch

from tests import PROJECT_ROOT


def test_one_step_lowers_the_loss_of_both_directions(capsys: pytest.CaptureFixture) -> None:
    run = runpy.run_path(str(PROJECT_ROOT / "examples" / "one_step.py"))
    before, after = run["before"].item(), run["after"].item()
    assert after < before
    printed = capsys.readouterr().out
    assert printed == f"loss before the step: {before:.3f}, after it: {after:.3f}\n"

    weight, bias = run["softmax"].weight, run["softmax"].bias
    losses = []
    with torch.no_grad():
        for sentence in run["SENTENCES"]:
            ids = run["batch_to_ids"]([sentence])
            top = run["bilm"](ids, ids[:, :, 0] > 0).layers[-1][0]
            bounded = ["<S>", *sentence, "</S>"]
            for place, word in enumerate(bounded):
                states = [top[place - 1, :32]] if place > 0 else []
                states += [top[place + 1, 32:]] if place + 1 < len(bounded) else []
                for state in states:
                    scores = (weight @ state + bias).log_softmax(0)
                    losses.append(-scores[run["id_of"][word]].item())
    assert after == pytest.approx(sum(losses) / len(losses), abs=1e-5)
