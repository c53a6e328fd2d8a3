"""The engine of an export that shares its work out among workers of Ray."""

import logging
import math
import signal
import socket
import threading
from importlib.util import find_spec
from typing import Any, Callable, List, Optional, Sequence

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import import_module_and_submodules

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export.export import Engine, OneProcess
from elmo_scratch.export.model_source import ModelSource
from elmo_scratch.export.parts import PartWriting
from elmo_scratch.export.plan import Span, facts_of

TASKS_A_WORKER = 4
"""At least so many spans for each worker, so that all end at about the same time."""

SENTENCES_A_TASK = 8192
"""
The most sentences of a task. If its worker dies or the export is interrupted, its work is lost.
"""

MAX_RETRIES = 3
"""
How often a task is retried whose worker dies. A task that always kills its workers is an error.
"""

logger = logging.getLogger(__name__)


class RayEngine(Engine):
    """
    Has workers of a Ray cluster write the parts. The environment variable `RAY_ADDRESS` names the
    cluster; without it one is started on this machine. Each worker holds a biLM of its own. A
    worker that dies is started again, and so is its task. All machines must reach the input, the
    model and the output under the same paths.

    # Parameters

    source : `ModelSource`
        Where workers get the biLM.
    num_workers : `int`, optional (default = as many as the cluster has GPUs or processors free)
        How many processes.
    packages : `Sequence[str]`, optional (default = none)
        Packages that workers import before they load the biLM, as `--include-package` does.

    # Raises

    ConfigurationError
        If Ray is not installed.
    """

    def __init__(
        self,
        source: ModelSource,
        num_workers: Optional[int] = None,
        *,
        packages: Sequence[str] = (),
    ) -> None:
        if find_spec("ray") is None:
            raise ConfigurationError(
                "--engine ray needs Ray, which is not installed: pip install 'ray>=2.40'"
            )
        if num_workers is not None and num_workers < 1:
            raise ConfigurationError(f"expected --workers of 1 or more, got {num_workers}")
        self._source = source.from_anywhere()
        self._num_workers = num_workers
        self._packages = list(packages)

    def write(
        self,
        writing: PartWriting,
        missing: List[Span],
        layers: SentenceLayers,
        done: Callable[[int], None],
    ) -> None:
        """
        Shares the spans out among the workers.

        # Raises

        ConfigurationError
            As `OneProcess.write`; or if the cluster has fewer processors or GPUs than workers are
            asked for, a worker can't start or reads another biLM, or workers keep dying at the same
            sentences.
        OSError
            If the disk is full.
        """
        import ray
        from ray.util import ActorPool

        is_own = not ray.is_initialized()
        if is_own:
            _start(ray)
        workers: List[Any] = []
        try:
            is_on_gpus = self._source.cuda_device >= 0
            num_workers = self._workers(ray, "GPU" if is_on_gpus else "CPU")
            tasks = cut(missing, num_workers)
            # Each worker computes with one thread.
            is_alone = ray.cluster_resources().get("CPU", 0) >= 2 * num_workers
            worker = ray.remote(_Worker).options(
                num_cpus=1, num_gpus=int(is_on_gpus), max_restarts=-1, max_task_retries=MAX_RETRIES
            )
            for _ in range(min(num_workers, len(tasks))):
                workers.append(worker.remote(self._source, writing, self._packages, is_alone))
            for num_sentences in ActorPool(workers).map_unordered(_written, tasks):
                done(num_sentences)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            raise ConfigurationError(
                f"--engine ray: a worker ended {MAX_RETRIES + 1} times at the same sentences, or "
                f"could not start: {_reason(error)}"
            ) from None
        finally:
            # In a cluster that goes on they would keep writing for nobody.
            for one in workers:
                ray.kill(one)
            if is_own:
                ray.shutdown()

    def _workers(self, ray: Any, resource: str) -> int:
        """Returns the number of processes, each with a processor or a GPU of its own."""
        described = {"CPU": "processor", "GPU": "GPU"}[resource]
        there_are = int(ray.cluster_resources().get(resource, 0))
        free = int(ray.available_resources().get(resource, 0))
        wanted = self._num_workers or max(1, free)
        if there_are < wanted:
            # Ray would silently wait for more machines to join.
            raise ConfigurationError(
                f"--engine ray: expected one {described} for each of {wanted} workers, but the "
                f"cluster has {there_are}"
            )
        if free < wanted:
            logger.warning(
                "--engine ray: %d of the %d %ss of the cluster are in use; workers wait for them",
                there_are - free,
                there_are,
                described,
            )
        return wanted


def _start(ray: Any) -> None:
    """Starts Ray, or joins the cluster, and keeps the caller's handler of SIGTERM."""
    before = signal.getsignal(signal.SIGTERM)
    is_terminated = False
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR)
    except SystemExit:
        # Ray turns SIGTERM into this exit while it starts.
        is_terminated = True
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
    if is_terminated:
        signal.raise_signal(signal.SIGTERM)
        raise KeyboardInterrupt


def _reason(error: Exception) -> str:
    """Returns the last line of Ray's message, which holds the error that was raised."""
    return [line.strip() for line in str(error).splitlines() if line.strip()][-1]


class _Worker:
    """Runs in a process of the cluster."""

    def __init__(
        self, source: ModelSource, writing: PartWriting, packages: Sequence[str], is_alone: bool
    ) -> None:
        for package in packages:
            import_module_and_submodules(package)
        # Ray makes each worker's own GPU the first that it sees.
        own = source._replace(cuda_device=min(source.cuda_device, 0))
        self._layers = own.load()
        self._layers.is_alone = is_alone
        self._writing = writing
        if facts_of(writing.text, self._layers, writing.settings) != writing.facts:
            raise ConfigurationError(
                f"{socket.gethostname()}: the biLM there, or the precision of its products, is "
                "not that of the machine where the export was started"
            )
        writing.text.check_unchanged()

    def write(self, span: Span) -> int:
        OneProcess(math.inf).write(self._writing, [span], self._layers, lambda _: None)
        return span.num_sentences


def _written(worker: Any, span: Span) -> Any:
    return worker.write.remote(span)


def cut(spans: List[Span], num_workers: int) -> List[Span]:
    """
    Cuts spans into pieces: at least `TASKS_A_WORKER` for each worker if there are enough sentences,
    none larger than `SENTENCES_A_TASK`.
    """
    total = sum(span.num_sentences for span in spans)
    size = min(SENTENCES_A_TASK, max(1, math.ceil(total / (TASKS_A_WORKER * num_workers))))
    return [
        Span(first, min(first + size, stop))
        for start, stop in spans
        for first in range(start, stop, size)
    ]
