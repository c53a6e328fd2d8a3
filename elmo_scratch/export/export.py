"""
From a text to an HDF5 file of the layers of its sentences, in this process or by workers of Ray.
"""

import logging
import math
import os
import signal
import socket
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable, List, Optional, Sequence

from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from allennlp.common.util import import_module_and_submodules

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export.model_source import ModelSource
from elmo_scratch.export.parts import PartFolder, PartWriting
from elmo_scratch.export.pipeline import (
    DEPTH,
    SENTENCES_A_PART,
    StepEmbedder,
    consume_behind,
    run_ahead,
    spelled_steps,
)
from elmo_scratch.export.plan import (
    ExportSettings,
    Span,
    check_index,
    check_output,
    check_room,
    estimated_size,
    facts_of,
    in_words,
)
from elmo_scratch.export.text import InputText
from elmo_scratch.files.atomic import check_place
from elmo_scratch.files.signals import first_interruption_waits
from elmo_scratch.interop import LayerFile

logger = logging.getLogger(__name__)

SECONDS_A_PART = 300.0
"""
About the most work that an interruption loses. A shorter export has one part, which becomes the
output as it is; the parts of a longer one are copied at the end.
"""


FINISHING = "\nfinishing the sentences at hand, to keep them; Ctrl-C once more stops at once"


class Engine(ABC):
    """Writes the parts of an export. Abstract."""

    follows_the_text = False
    """Whether every sentence is read after all before it, as carried states need."""

    @abstractmethod
    def write(
        self,
        writing: PartWriting,
        missing: List[Span],
        layers: SentenceLayers,
        done: Callable[[int], None],
    ) -> None:
        """
        # Parameters

        writing : `PartWriting`
            Writes the parts of a span.
        missing : `List[Span]`
            The spans to write.
        layers : `SentenceLayers`
            The biLM, in this process.
        done : `Callable[[int], None]`
            Is told how many more sentences have been written.

        # Raises

        ConfigurationError
            If the text has changed since it was checked, a carried state can't be read, no part of
            a batch fits into a GPU's memory, or workers can't be had.
        OSError
            If the disk is full.
        """


@dataclass
class OneProcess(Engine):
    """
    Does everything in this process.

    # Parameters

    seconds_a_part : `float`, optional (default = `SECONDS_A_PART`)
        A part ends at the first chance after so many seconds.
    """

    follows_the_text = True

    seconds_a_part: float = SECONDS_A_PART

    def write(
        self,
        writing: PartWriting,
        missing: List[Span],
        layers: SentenceLayers,
        done: Callable[[int], None],
    ) -> None:
        for span in missing:
            if layers.state == "carry":
                writing.folder.carry_on(layers, span.start)
            steps = spelled_steps(writing.text, span, layers, writing.settings)
            # Threads that find no processor take turns with the biLM: reading ahead would keep
            # Python from it, and writing would stop one of the threads of each product, while all
            # others wait for that one.
            depth = 0
            if layers.leaves_a_processor:
                steps, depth = run_ahead(steps), DEPTH
            with first_interruption_waits(FINISHING) as is_interrupted:
                embed = StepEmbedder(span, layers, self.seconds_a_part, is_interrupted)
                write = partial(writing.write_parts, span, done)
                consume_behind(embed.until_interrupted(steps), embed, write, depth)
                if is_interrupted():
                    raise KeyboardInterrupt


def export_layers(
    text: InputText,
    output_file: Path,
    layers: SentenceLayers,
    settings: ExportSettings,
    *,
    span: Optional[Span] = None,
    resume: bool = False,
    overwrite: bool = False,
    keep_parts: bool = False,
    engine: Optional[Engine] = None,
) -> None:
    """
    Writes the layers of the sentences of a text. `output_file` appears when it is whole; until then
    the finished parts lie in `NAME.parts` beside it.

    # Parameters

    text : `InputText`
        The text.
    output_file : `Path`
        The HDF5 file to write.
    layers : `SentenceLayers`
        The biLM.
    settings : `ExportSettings`
        The layers to keep, and their form in the file.
    span : `Span`, optional (default = all)
        Which sentences.
    resume : `bool`, optional (default = `False`)
        Resume an interrupted run. If it left nothing, begin.
    overwrite : `bool`, optional (default = `False`)
        Replace whatever is there.
    keep_parts : `bool`, optional (default = `False`)
        Resume an interrupted run of this export, and don't replace the parts of another, whatever
        `resume` and `overwrite` say.
    engine : `Engine`, optional (default = `OneProcess`)
        The processes that do the work.

    # Raises

    ConfigurationError
        If the settings don't go together, the output can't be written or would replace an input, it
        or its parts belong to another export, or parts are removed or the text is changed
        meanwhile.
    OSError
        If the disk is full. Finished parts are kept.
    """
    engine = engine or OneProcess()
    if text.is_file(output_file):
        raise ConfigurationError(f"{output_file}: the output would replace the input")
    if layers.files.hold(output_file):
        raise ConfigurationError(f"{output_file}: the output would replace a file of the model")
    check_settings(text, settings, layers.state, span, engine)
    facts = facts_of(text, layers, settings)
    whole = span or Span(0, text.num_sentences)
    # Parts and output lie where a link leads, and the link stays.
    folder = PartFolder(Path(os.path.realpath(output_file)))
    num_done = folder.num_done(facts.export)
    is_whole = check_output(output_file, facts.export, overwrite, num_done, whole.num_sentences)
    output_file = Path(os.path.realpath(output_file))
    if is_whole and resume:
        with LayerFile(output_file) as there:
            there.check()
        logger.info("%s is whole already", output_file)
        folder.remove_if_of(facts.export)
        return
    if settings.has_index:
        check_index(text, output_file.parent)
    size = estimated_size(text, whole, layers, settings)
    logger.info("%s will take about %s", output_file, in_words(size))
    with folder.opened(
        facts.export, resume=resume or keep_parts, overwrite=overwrite and not keep_parts
    ):
        parts, missing = folder.parts(), folder.missing(whole)
        # A short export has one part, so that nothing has to be joined at the end.
        is_short = whole.num_sentences <= SENTENCES_A_PART
        has_one_part = is_short and engine.follows_the_text and parts in ([], [whole])
        # The room is checked only now: leftovers of a killed run, now removed, may have taken some.
        check_room(
            output_file,
            size,
            num_copies=1 if has_one_part else 2,
            num_there=sum(folder.file_of(part).stat().st_size for part in parts),
            is_compressed=settings.compression is not None,
        )
        writing = PartWriting(text, whole, folder, facts, settings)
        with Tqdm.tqdm(total=whole.num_sentences, unit=" sentences") as progress:
            to_do = sum(span.num_sentences for span in missing)
            progress.update(whole.num_sentences - to_do)
            if missing:
                engine.write(writing, missing, layers, progress.update)
        writing.join(output_file)
        folder.remove()


def check_export_place(output_file: Path) -> None:
    """
    Checks before a biLM is loaded that the output and its parts can be written. Raises
    `ConfigurationError` if not.
    """
    check_place(output_file)
    PartFolder(Path(os.path.realpath(output_file)))


def has_parts(output_file: Path) -> bool:
    """Whether an interrupted export to that file has left parts to resume from."""
    try:
        return bool(PartFolder(Path(os.path.realpath(output_file))).parts())
    except OSError:
        return False


def check_settings(
    text: InputText, settings: ExportSettings, state: str, span: Optional[Span], engine: Engine
) -> None:
    """Raises `ConfigurationError` if the settings don't go together, or don't suit the text."""
    for option, number in (
        ("batch-size", settings.batch_size),
        ("max-tokens", settings.max_tokens),
    ):
        if number is not None and number < 1:
            raise ConfigurationError(f"expected --{option} of 1 or more, got {number}")
    if state == "carry":
        for option, is_given in (
            ("--max-tokens", settings.max_tokens is not None),
            ("--shard", span is not None),
            ("--engine ray", not engine.follows_the_text),
        ):
            if is_given:
                raise ConfigurationError(
                    f"{option} needs --state reset or warm: with carry, the default, the vectors "
                    "of a sentence depend on all that were read before it"
                )
    if settings.use_sentence_keys:
        text.check_keys()


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
    """
    Starts Ray, whose workers get the priority of this process, or joins the cluster. The caller's
    handler of SIGTERM is kept.
    """
    before = signal.getsignal(signal.SIGTERM)
    is_terminated = False
    # By default they give way to all else on the machine: beside a training an export would stand.
    os.environ.setdefault("RAY_worker_niceness", "0")
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
