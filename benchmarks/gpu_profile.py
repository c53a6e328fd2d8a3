"""
Where the time of a batch goes, on a GPU or, where there is none, on a CPU:

    python benchmarks/gpu_profile.py --model small original --task inference training

For each model, task and precision it prints how long a batch takes from beginning to end, how much
of that the GPU works, how many operations the processor asks it for, and what takes longest. The
difference between the first two is what the GPU waits for the processor.
"""

import argparse
import tempfile
from itertools import product
from typing import List

import torch
from embed import add_model_and_text, load, new_bilm, read_batches, run_batch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from work import timed

from elmo_scratch.interop.official import write_official_bilm

LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync")
"""Beginnings of the names of what asks a GPU for work."""

MOST_SHOWN = 8


def main() -> None:
    """Prints a table for each combination that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_model_and_text(parser, "+")
    asked = parser.parse_args()
    for model, task, dtype in product(asked.model, asked.task, asked.dtype):
        measure(argparse.Namespace(**{**vars(asked), "model": model, "task": task, "dtype": dtype}))


def measure(args: argparse.Namespace) -> None:
    """Of one model, task and precision: a first pass warms up, a second one is profiled."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        write_official_bilm(new_bilm(args.model), folder)
        model = load("elmo_scratch", args, folder).to(device)
    batches = [ids.to(device) for ids in read_batches(args)]

    def run() -> None:
        model.bilm.token_encoder.forget_words()
        for ids in batches:
            run_batch(model, ids, args.task)

    run()
    seconds, _ = timed(run, device)
    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with profile(activities=kinds) as profiler:
        timed(run, device)
    report(args, device, len(batches), seconds, profiler)


def report(
    args: argparse.Namespace,
    device: torch.device,
    num_batches: int,
    seconds: float,
    profiler: torch.profiler.profile,
) -> None:
    """Prints what was found, each figure of one batch."""
    events = list(profiler.events() or [])
    on_gpu = [event for event in events if event.device_type == DeviceType.CUDA]
    asked = sum(event.name.startswith(LAUNCHES) for event in events)
    print(f"{args.model}, {args.task}, {args.dtype}, on {device.type}: a batch takes")
    print(f"{1000 * seconds / num_batches:12.3f} ms")
    if on_gpu:
        print(f"{busy_microseconds(on_gpu) / 1000 / num_batches:12.3f} ms of work of the GPU")
        print(f"{asked / num_batches:12.1f} requests to the GPU")
    shown = on_gpu or events
    times = {name: 0.0 for name in (event.name for event in shown)}
    counts = dict.fromkeys(times, 0)
    for event in shown:
        times[event.name] += event.time_range.elapsed_us() if on_gpu else event.self_cpu_time_total
        counts[event.name] += 1
    for name in sorted(times, key=lambda name: -times[name])[:MOST_SHOWN]:
        print(
            f"{times[name] / 1000 / num_batches:12.3f} ms, {counts[name] / num_batches:6.1f} times:"
            f" {name[:70]}"
        )
    print(flush=True)


def busy_microseconds(events: List[torch.autograd.profiler_util.FunctionEvent]) -> float:
    """How long at least one of them runs."""
    total = end = 0.0
    for event in sorted(events, key=lambda event: event.time_range.start):
        start = max(end, event.time_range.start)
        total += max(0.0, event.time_range.end - start)
        end = max(end, event.time_range.end)
    return total


if __name__ == "__main__":
    main()
