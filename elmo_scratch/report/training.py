"""The part of a report on one training."""

import json
import math
from typing import Any, Dict, List, Optional, Tuple

from allennlp.models.archival import CONFIG_NAME

from elmo_scratch.files.strict_json import printable
from elmo_scratch.report.charts import Series, curves
from elmo_scratch.report.document import (
    Block,
    Cell,
    Column,
    Folded,
    Paragraph,
    Section,
    Table,
    is_share,
    metric_cell,
    shown,
    shown_metric,
    shown_seconds,
)
from elmo_scratch.report.errors import Errors, class_table, matrix, most_confused
from elmo_scratch.report.metrics import SCORES
from elmo_scratch.report.run import Run, State
from elmo_scratch.terminal import counted, last_checkpoint, way_on

SHARE, GAMMA = "layer_share_", "gamma_"
"""How the metrics of `elmo_scratch_mix_shares` begin."""

SPEED = "training_tokens_per_second"
"""The metric of `elmo_scratch_speed`."""

DATA = {
    "training data": "train_data_path",
    "validation data": "validation_data_path",
    "test data": "test_data_path",
}
"""The settings that name data."""

SEEDS = ("random_seed", "numpy_seed", "pytorch_seed")
"""AllenNLP's settings of seeds."""

CHOSEN_PARTS = {
    "test": "the test data",
    "best_validation": "the validation data, best epoch",
    "validation": "the validation data, last epoch",
    "training": "the training data",
}
"""Which parts' scores of classes are shown: those that say most of new texts come first."""


def training_section(run: Run, name: str, errors: Optional[Errors] = None) -> Section:
    """Shows what was run, how it went, and what it came to, with its errors if there are any."""
    blocks: List[Block] = [_facts(run)]
    if run.state is not State.FINISHED:
        blocks.insert(0, Paragraph(_condition(run)))
    if run.problems:
        blocks.append(Paragraph(f"What couldn't be read: {'; '.join(run.problems)}."))
    blocks += [*_curves(run), *_final(run), *_classes(run)]
    if errors is not None:
        blocks.append(_surest_errors(errors))
    blocks += [*_layers(run), _settings(run)]
    return Section(name, blocks)


def shown_state(run: Run) -> str:
    """How far it is, in a few words."""
    return f"{run.state.value} ({run.reason})" if run.reason else run.state.value


def _condition(run: Run) -> str:
    """What is to be known of a training that is not finished."""
    so_far = "What follows is what it has measured so far."
    if run.state is State.RUNNING:
        return f"This training is in progress. {so_far}"
    ends = {
        State.FAILED: "An error ended this training; the end of its log says where.",
        State.STOPPED: (
            "This training stopped before its end, and its log says nothing of it: a signal, a "
            "lack of memory or the end of the machine does that."
        ),
    }
    end = ends.get(run.state, "This training is not finished, and may still run elsewhere.")
    kept = last_checkpoint(run.folder)
    if not kept:
        return f"{end} There is no checkpoint to go on from. {so_far}"
    return f"{end} Its last checkpoint holds {kept}. {so_far}"


def _way_on(run: Run) -> str:
    """The command for a training that doesn't run, and is not finished."""
    if run.state in (State.FINISHED, State.RUNNING):
        return ""
    return way_on(run.folder, run.folder / CONFIG_NAME)


def shown_epochs(run: Run) -> str:
    """How many epochs are done, of how many."""
    done = len(run.epochs)
    return f"{done} of {run.num_epochs}" if run.num_epochs else str(done)


def tokens_per_second(run: Run) -> Optional[float]:
    """The mean over epochs; `None` if it was not measured."""
    speeds = [speed for _, speed in run.curve(SPEED) if math.isfinite(speed)]
    return sum(speeds) / len(speeds) if speeds else None


def shown_seeds(run: Run) -> str:
    """The values of AllenNLP's three seeds, once if they are equal."""
    values = [str(run.settings[name]) for name in SEEDS if name in run.settings]
    return printable(", ".join(dict.fromkeys(values)), 60)


def _facts(run: Run) -> Table:
    title = "goes on by" if last_checkpoint(run.folder) else "begins anew by"
    facts: List[Tuple[str, str]] = [("state", shown_state(run)), (title, _way_on(run))]
    facts.append(("folder", str(run.folder)))
    facts.append(("model", run.model_type))
    for title, setting in DATA.items():
        if run.settings.get(setting):
            facts.append((title, _data(run.settings[setting])))
    sizes = (f"{size:,} {namespace}" for namespace, size in run.vocabulary.items())
    facts.append(("vocabulary", ", ".join(sizes)))
    facts.append(("epochs", _epochs(run)))
    measure = run.measure
    better = "higher" if measure.higher_is_better else "lower"
    facts.append(("chosen by", f"{measure.name} on the validation data; {better} is better"))
    facts.append(("seeds", shown_seeds(run) or "AllenNLP's own"))
    facts += [*_effort(run), *_environment(run)]
    rows = [[Cell(title), Cell(printable(text, 1000))] for title, text in facts if text]
    return Table("What was run.", [Column(""), Column("")], rows)


def _epochs(run: Run) -> str:
    text = shown_epochs(run)
    if run.state is State.FINISHED and run.num_epochs and len(run.epochs) < run.num_epochs:
        text += ", where patience ended"
    if run.best_epoch is not None:
        text += f"; the best is number {run.best_epoch + 1}, metrics_epoch_{run.best_epoch}.json"
    return text


def _effort(run: Run) -> List[Tuple[str, str]]:
    facts = []
    if run.seconds:
        each = shown_seconds(run.seconds / len(run.epochs))
        facts.append(("time", f"{shown_seconds(run.seconds)}, {each} an epoch"))
    speed = tokens_per_second(run)
    if speed is not None:
        facts.append(("speed", f"{speed:,.0f} tokens a second in training"))
    for kind, title in (("worker", "memory"), ("gpu", "memory of the GPU")):
        peak = run.final.numbers.get(f"peak_{kind}_0_memory_MB")
        if peak is not None and math.isfinite(peak):
            facts.append((title, f"{peak:,.0f} MiB at most"))
    return facts


def _environment(run: Run) -> List[Tuple[str, str]]:
    """Versions and the machine. The file may come from anyone."""
    found = run.environment
    versions = found.get("versions")
    if not isinstance(versions, dict) or not versions:
        versions = {"AllenNLP": run.allennlp_version} if run.allennlp_version else {}
    names = ("processor", "system", "gpu")
    machine = [str(found[name]) for name in names if isinstance(found.get(name), str)]
    if type(found.get("num_processors")) is int:
        machine.append(counted(found["num_processors"], "processor"))
    if type(found.get("num_threads")) is int:
        machine.append(counted(found["num_threads"], "thread"))
    if type(found.get("memory_bytes")) is int:
        machine.append(f"{found['memory_bytes'] / 2**30:.0f} GiB of memory")
    started = found.get("started")
    return [
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("machine", ", ".join(machine)),
        ("started", started if isinstance(started, str) else ""),
    ]


def _data(value: Any) -> str:
    """What a setting names as data: a path, several of them, or what a reader of others takes."""
    is_several = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return ", ".join(value) if is_several else _as_text(value)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _settings(run: Run) -> Folded:
    rows = [
        [Cell(name), Cell(printable(_as_text(value), 500))] for name, value in run.settings.items()
    ]
    table = Table("By their dotted names.", [Column("setting"), Column("value")], rows)
    return Folded("All settings of the config", [table])


def _curves(run: Run) -> List[Block]:
    if not run.epochs:
        return [Paragraph("No epoch has ended yet: there is nothing measured.")]
    if len(run.epochs) < 2:
        return [Paragraph("One epoch has ended. Curves begin with the second.")]
    found: List[Block] = []
    loss = _series(run, {"training": "training_loss", "validation": "validation_loss"})
    if loss:
        note = "The training loss is a mean over the epoch, with dropout and while weights change."
        found.append(curves(f"Loss after each epoch. {note}", "loss", loss))
    directions = {"left to right": "left_to_right", "right to left": "right_to_left"}
    perplexity = _series(
        run,
        {
            f"{part}, {title}": f"{part}_perplexity_{direction}"
            for part in ("validation", "training")
            for title, direction in directions.items()
        },
    )
    if perplexity:
        best = run.final.of("best_validation").get("perplexity")
        end = "" if best is None else f" Both together reach {shown(best)} in the best epoch."
        caption = f"Perplexity of each direction of the biLM; lower is better.{end}"
        found.append(curves(caption, "perplexity", perplexity))
    for name in _rates(run):
        series = _series(run, {"training": f"training_{name}", "validation": f"validation_{name}"})
        if series:
            best = run.final.of("best_validation").get(name)
            end = "" if best is None else f": {shown_metric(name, best)} in the best epoch"
            better = "higher" if is_share(name) or run.measure.higher_is_better else "lower"
            caption = f"Course of {name}; {better} is better. On the validation data{end}."
            found.append(curves(caption, name, series))
    return found


def _rates(run: Run) -> List[str]:
    """The accuracies that it measures, and what it chose its best epoch by."""
    names = list(dict.fromkeys([run.measure.name, "accuracy", "top_1_accuracy", "top_5_accuracy"]))
    return [name for name in names if name not in ("loss", "perplexity")]


def _series(run: Run, names: Dict[str, str]) -> List[Series]:
    """Returns the named metrics that were measured. Curves of the training data are thin."""
    found = []
    for place, (title, name) in enumerate(names.items()):
        points = run.curve(name)
        if points:
            # Both directions keep their colours on training and validation data.
            color = place % 2 if len(names) > 2 else place
            found.append(Series(title, points, title.startswith("training"), color))
    return found


def _final(run: Run) -> List[Block]:
    parts = {
        "training, last epoch": run.final.of("training"),
        "validation, best epoch": run.final.of("best_validation"),
        "validation, last epoch": run.final.of("validation"),
        "test": run.final.of("test"),
    }
    parts = {title: numbers for title, numbers in parts.items() if numbers}
    scores = tuple(begin for begins in SCORES for begin in begins)
    names = dict.fromkeys(
        name
        for numbers in parts.values()
        for name in numbers
        if not name.startswith(scores) and not name.endswith("_memory_MB")
    )
    rows = [
        [Cell(name), *(metric_cell(name, numbers.get(name)) for numbers in parts.values())]
        for name in sorted(names, key=lambda name: (name != run.measure.name, name))
    ]
    if not rows:
        return []
    columns = [Column("metric"), *(Column(title, is_number=True) for title in parts)]
    at_end = "at the end" if run.state is State.FINISHED else "so far"
    caption = f"What was measured {at_end}; first what the best epoch is chosen by."
    return [Table(caption, columns, rows)]


def _classes(run: Run) -> List[Block]:
    """Scores of classes and matrices, of the test data and of the validation data."""
    parts = [part for part in CHOSEN_PARTS if run.final.class_scores(part)]
    if "best_validation" in parts:
        parts = [part for part in parts if part in ("test", "best_validation")]
    found: List[Block] = []
    for part in parts[:2]:
        confusion = run.final.confusions.get(part)
        if confusion is not None:
            found.append(matrix(confusion, CHOSEN_PARTS[part]))
        found.append(class_table(run.final.class_scores(part), CHOSEN_PARTS[part]))
        if confusion is not None:
            found += most_confused(confusion)
    return found


def _surest_errors(errors: Errors) -> Block:
    share = f"{errors.num_wrong:,} of {errors.num_texts:,} texts of {errors.data} are misclassified"
    columns = [
        Column("true"),
        Column("predicted"),
        Column("probability", is_number=True),
        Column("text"),
    ]
    rows = [
        [
            Cell(printable(one.true)),
            Cell(printable(one.predicted)),
            Cell(f"{100 * one.probability:.1f} %", one.probability),
            Cell(printable(one.text, 400)),
        ]
        for one in errors.surest
    ]
    if not rows:
        return Paragraph(f"{share}.")
    return Table(f"{share}. The classifier is surest of these.", columns, rows)


def _layers(run: Run) -> List[Block]:
    """The path of the layers' weights in each mix."""
    names = {name for metrics in run.epochs.values() for name in metrics.numbers}
    shares = sorted(name for name in names if name.startswith(SHARE) and _layer(name) is not None)
    found: List[Block] = []
    for mix in sorted({name.removeprefix(SHARE).rpartition(".")[0] for name in shares}):
        own = sorted(
            (name for name in shares if name.removeprefix(SHARE).rpartition(".")[0] == mix),
            key=lambda name: _layer(name) or 0,
        )
        ends = ", ".join(f"{100 * run.curve(name)[-1][1]:.1f} %" for name in own)
        gammas = run.curve(f"{GAMMA}{mix}")
        scale = f"; its scale gamma is {shown(gammas[-1][1])}" if gammas else ""
        caption = (
            f"Shares of the layers in {mix} after each epoch; layer 0 is the token layer. In the "
            f"end they are {ends}{scale}."
        )
        series = [
            Series(f"layer {_layer(name)}", run.curve(name), color=place)
            for place, name in enumerate(own)
        ]
        if any(len({share for _, share in one.points}) > 1 for one in series):
            found.append(curves(caption, "share of the mix", series, starts_at_zero=True))
        else:
            found.append(Paragraph(caption))
    return found


def _layer(name: str) -> Optional[int]:
    number = name.rpartition(".")[2]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 5 else None
