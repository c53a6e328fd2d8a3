"""Two workers train like one with the streams of both."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.util import find_open_port
from allennlp.models import load_archive
from torch import multiprocessing

from benchmarks.terminal import in_terminal, rows_of
from tests import FIXTURES_ROOT, PROJECT_ROOT
from tests.tiny_training import CONFIGS, EXT_VARS, logging_as_before

pytestmark = pytest.mark.exhaustive

TEXT = FIXTURES_ROOT / "text" / "sentences.txt"
NUM_LINES = 60
NUM_STREAMS = 4
PATIENCE = 300  # seconds; it takes a tenth of that
FIRST_ADDRESS = "10.77.0.1"
LIBC = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are copies of their parent. Otherwise each imports PyTorch and AllenNLP anew."""
    monkeypatch.setattr(
        multiprocessing, "spawn", partial(multiprocessing.start_processes, start_method="fork")
    )


def config(num_workers: int, folder: Path) -> Dict[str, Any]:
    """A training whose result shall not depend on the number of workers; its text is written."""
    text = folder / "text.txt"
    text.write_text("\n".join(TEXT.read_text(encoding="utf-8").splitlines()[:NUM_LINES]))
    loader = {
        "type": "elmo_scratch_stream",
        "batch_size": NUM_STREAMS // num_workers,
        "unroll_steps": 7,
        "cache_dir": str(folder / "cache"),
    }
    encoder = {"type": "char_cnn", "dim": 6, "filters": [[1, 4], [3, 6]]}
    parallel = {"distributed": {"cuda_devices": [-1] * num_workers}} if num_workers > 1 else {}
    return {
        "dataset_reader": {
            "type": "elmo_scratch_sentences",
            "token_indexers": {
                "tokens": {"type": "single_id"},
                "characters": {"type": "elmo_scratch_characters"},
            },
        },
        "train_data_path": str(text),
        "validation_data_path": str(text),
        "model": {
            "type": "elmo_scratch_bilm",
            "bilm": {"token_encoder": encoder, "cell_size": 9, "dropout": 0.0},
            "dropout": 0.0,
        },
        "data_loader": {**loader, "shuffle_sentences": True},
        "validation_data_loader": loader,
        # At a higher rate two windows of a word came so close that rounding decided between them.
        "trainer": {"num_epochs": 2, "optimizer": {"type": "sgd", "lr": 0.1}, "grad_norm": 1.0},
        **parallel,
    }


def test_they_print_as_much_as_an_ordinary_training(tmp_path: Path) -> None:
    options = {"trainer.num_epochs": 1, "distributed": {"cuda_devices": [-1, -1]}}
    words = ["train", str(CONFIGS / "bilm" / "fixture.jsonnet"), "-s", "run"]
    program = [sys.executable, "-m", "allennlp", *words, "-o", json.dumps(options)]
    path = os.pathsep.join([str(PROJECT_ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, **EXT_VARS, "PYTHONPATH": path}
    output = in_terminal(partial(subprocess.run, program, cwd=tmp_path, env=environment))
    starts = [row.partition(":")[0].partition(" ||")[0][:17] for row in rows_of(output)]
    # How many it takes to load AllenNLP depends on the machine.
    starts = [start for start in starts if not start.startswith("loading AllenNLP")]
    assert starts[:9] == [
        *["loading instances", "building vocab"],  # for the vocabulary
        *["loading instances"] * 2,
        "weights to train",
        *["perplexity"] * 2,
        "epoch 1 of 1  0",
        "packing the archi",
    ]
    assert starts.count("On the validation") == 1
    assert "whole log    run/out_worker0.log" in rows_of(output)


def metrics_of(folder: Path) -> Dict[str, Any]:
    return json.loads((folder / "metrics.json").read_text())


@pytest.mark.parametrize("softmax", ["full", "adaptive", "sampled"])
def test_two_workers_train_like_one_with_the_streams_of_both(
    softmax: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if softmax != "sampled":  # whose workers have most to agree on
        request.getfixturevalue("forked_workers")
    folders = {}
    for num_workers in (1, 2):
        folders[num_workers] = tmp_path / str(num_workers)
        made = config(num_workers, tmp_path)
        if softmax == "adaptive":
            made["model"]["softmax"] = {"type": "adaptive", "cutoffs": [50, 100], "div_value": 2.0}
            if num_workers > 1:
                # A batch may lack the words of one of its groups.
                accelerator = {"type": "torch", "find_unused_parameters": True}
                made["distributed"]["ddp_accelerator"] = accelerator
        if softmax == "sampled":
            made["model"]["softmax"] = {"type": "sampled", "num_samples": 40}
            # It moves words that are not in play, too, where their gradients are not sparse.
            made["trainer"]["optimizer"] = {"type": "dense_sparse_adam", "lr": 0.001}
        with logging_as_before():
            train_model(Params(made), str(folders[num_workers]))
    weights = {
        number: load_archive(str(folder)).model.state_dict() for number, folder in folders.items()
    }
    for name, tensor in weights[1].items():
        assert torch.allclose(weights[2][name], tensor, rtol=0, atol=1e-5), name
    alone, together = metrics_of(folders[1]), metrics_of(folders[2])
    names = {"perplexity_left_to_right", "perplexity_right_to_left", "top_5_accuracy"}
    validated = {f"validation_{name}" for name in names}
    # In training only a full softmax knows the five best words.
    compared = validated | {f"training_{name}" for name in names} & alone.keys()
    for key in compared:
        assert together[key] == pytest.approx(alone[key], rel=1e-4)
    assert together["validation_confusion"] == alone["validation_confusion"]


def recoverable(folder: Path) -> Dict[str, Any]:
    """A training of two workers as the configs have it: dropout, sampled words, checkpoints."""
    made = config(2, folder)
    made["model"]["bilm"]["dropout"] = made["model"]["dropout"] = 0.3
    made["model"]["softmax"] = {"type": "sampled", "num_samples": 40}
    made["trainer"].update(
        num_epochs=3,
        optimizer={"type": "adagrad", "lr": 0.2},
        checkpointer={
            "type": "elmo_scratch_whole",
            "save_every_num_batches": 9,
            "save_every_num_seconds": 0.2,
        },
        callbacks=["elmo_scratch_exact_resume", "elmo_scratch_stop_at_nan"],
    )
    return made


def started(
    made: Dict[str, Any],
    folder: Path,
    node_rank: int = 0,
    *,
    recover: bool = False,
    network: Optional[str] = None,
) -> BaseProcess:
    """
    A training in a copy of this process, which has a group of its own, and the network of this name
    alone.
    """
    made = json.loads(json.dumps(made))

    def run() -> None:
        os.setsid()
        if network is not None:
            with open(f"/run/netns/{network}") as namespace:
                assert LIBC.setns(namespace.fileno(), 0) == 0
        train_model(Params(made), str(folder), node_rank=node_rank, recover=recover)

    process = get_context("fork").Process(target=run)
    process.start()
    return process


def test_two_nodes_train_like_one_process(forked_workers: None, tmp_path: Path) -> None:
    with logging_as_before():
        train_model(Params(config(1, tmp_path)), str(tmp_path / "alone"))
    made = config(2, tmp_path)
    made["trainer"]["checkpointer"] = {"type": "elmo_scratch_whole"}
    made["distributed"] = {
        "cuda_devices": [-1],
        "num_nodes": 2,
        "primary_address": "127.0.0.1",
        "primary_port": find_open_port(),
    }
    folders = [tmp_path / f"node-{rank}" for rank in range(2)]
    nodes = [started(made, folder, rank) for rank, folder in enumerate(folders)]
    try:
        for node in nodes:
            node.join(PATIENCE)
        assert [node.exitcode for node in nodes] == [0, 0]
    finally:
        for node in nodes:
            node.kill()
    alone = load_archive(str(tmp_path / "alone")).model.state_dict()
    together = load_archive(str(folders[0])).model.state_dict()
    of_second = torch.load(folders[1] / "model_state_e2_b0.th", weights_only=True)
    for name, tensor in alone.items():
        assert torch.allclose(together[name], tensor, rtol=0, atol=1e-5), name
        assert torch.equal(of_second[name], together[name]), name


@pytest.fixture
def two_networks() -> Iterator[List[str]]:
    """
    Names of two networks as two machines have them, joined by a cable: each has a loopback of its
    own and an address in the network of both.
    """
    names = [f"elmo{os.getpid()}{end}" for end in "ab"]
    lines = [f"netns add {name}" for name in names]
    lines.append("link add {0} netns {0} type veth peer name {1} netns {1}".format(*names))
    for number, name in enumerate(names, start=1):
        lines.append(f"-n {name} addr add {FIRST_ADDRESS[:-1]}{number}/24 dev {name}")
        lines += [f"-n {name} link set {device} up" for device in ("lo", name)]
    try:
        for line in lines:
            made = subprocess.run(["ip", *line.split()], capture_output=True, text=True)
            if made.returncode != 0:
                pytest.skip(f"networks can't be made here: {made.stderr.strip()}")
        yield names
    except FileNotFoundError:
        pytest.skip("networks can't be made here: there is no program `ip`")
    finally:
        for name in names:
            if Path(f"/run/netns/{name}").exists():
                subprocess.run(["ip", "netns", "del", name], check=True)


def test_two_machines_go_on_to_the_bit_after_a_worker_was_killed(
    forked_workers: None, two_networks: List[str], tmp_path: Path
) -> None:
    made = recoverable(tmp_path)
    made["distributed"] = {
        "cuda_devices": [-1],
        "num_nodes": 2,
        "primary_address": FIRST_ADDRESS,
        "primary_port": 29517,
    }

    def on_both(name: str, recover: bool = False) -> List[BaseProcess]:
        """The trainings of both machines, each in its folder, begun."""
        return [
            started(made, tmp_path / f"{name}-{rank}", rank, recover=recover, network=network)
            for rank, network in enumerate(two_networks)
        ]

    def statuses(nodes: List[BaseProcess], patience: float = PATIENCE) -> List[Optional[int]]:
        for node in nodes:
            node.join(patience)
        return [node.exitcode for node in nodes]

    nodes = on_both("through")
    try:
        assert statuses(nodes) == [0, 0]
        nodes = on_both("killed")
        deadline = time.monotonic() + PATIENCE
        while not list((tmp_path / "killed-0").glob("model_state_e1_b*.th")):
            assert nodes[0].exitcode is None and time.monotonic() < deadline
            time.sleep(0.005)
        (worker,) = Path(f"/proc/{nodes[1].pid}/task/{nodes[1].pid}/children").read_text().split()
        os.kill(int(worker), signal.SIGKILL)
        # Both machines' trainings end, soon.
        assert statuses(nodes, patience=60) == [1, 1]
        nodes = on_both("killed", recover=True)
        assert statuses(nodes) == [0, 0]
    finally:
        for node in nodes:
            assert node.pid is not None
            with suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGKILL)
    folders = [tmp_path / f"{name}-0" for name in ("through", "killed")]
    weights = [load_archive(str(folder)).model.state_dict() for folder in folders]
    for name, tensor in weights[0].items():
        assert torch.equal(weights[1][name], tensor), name


def test_two_workers_that_were_killed_go_on_to_the_bit(
    forked_workers: None, tmp_path: Path
) -> None:
    made = recoverable(tmp_path)
    with logging_as_before():
        train_model(Params(json.loads(json.dumps(made))), str(tmp_path / "through"))
    folder = tmp_path / "killed"
    training = started(made, folder)
    deadline = time.monotonic() + PATIENCE
    while not list(folder.glob("model_state_e1_b*.th")):
        assert training.exitcode is None and time.monotonic() < deadline
        time.sleep(0.005)
    assert training.pid is not None
    os.killpg(training.pid, signal.SIGKILL)
    training.join()
    assert not (folder / "model.tar.gz").exists()
    with logging_as_before():
        train_model(Params(made), str(folder), recover=True)
    weights = [load_archive(str(one)).model.state_dict() for one in (tmp_path / "through", folder)]
    for name, tensor in weights[0].items():
        assert torch.equal(weights[1][name], tensor), name
