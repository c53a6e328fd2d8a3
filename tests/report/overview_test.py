from pathlib import Path
from typing import List

from elmo_scratch.report import Contents, Report, read_run, report_of
from elmo_scratch.report.document import Chart, Folded, Paragraph, Table
from tests.report.run_folders import write_crash, write_run


def report(*folders: Path) -> Report:
    return report_of(Contents([read_run(folder) for folder in folders]))


def tables(found: Report, section: int) -> List[Table]:
    return [block for block in found.sections[section].blocks if isinstance(block, Table)]


def charts(found: Report, section: int) -> List[Chart]:
    return [block for block in found.sections[section].blocks if isinstance(block, Chart)]


def texts(table: Table) -> List[List[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_a_training_is_told_from_its_state_to_its_settings(tmp_path: Path) -> None:
    mix = {f"layer_share_elmo.mix.{layer}": share for layer, share in enumerate((0.25, 0.75))}
    folder = write_run(tmp_path / "cats", more={**mix, "gamma_elmo.mix": 1.5})
    found = report(folder)
    assert found.title == "Training cats"
    facts, measured, classes, confused = tables(found, 0)
    folded = found.sections[0].blocks[-1]
    assert isinstance(folded, Folded) and folded.title == "All settings of the config"
    (settings,) = folded.blocks
    assert isinstance(settings, Table)
    told = dict(texts(facts))
    assert told["state"] == "finished"
    assert told["validation data"] == "dev.csv"
    assert told["epochs"] == "2 of 2; the best is number 2, metrics_epoch_1.json"
    assert told["time"] == "20 s, 10 s an epoch"
    assert told["versions"] == "AllenNLP 2.10.1"
    assert texts(measured)[0] == ["accuracy", "", "75.00 %", "75.00 %"]
    assert texts(classes)[0] == ["cats", "4", "60.00 %", "75.00 %", "66.67 %"]
    assert texts(confused)[0] == ["dogs", "cats", "2", "28.6 %"]
    assert ["trainer.num_epochs", "2"] in texts(settings)
    assert [chart.alternative.split(":")[0] for chart in charts(found, 0)] == [
        "Curves of loss over epochs",
        "Curves of accuracy over epochs",
        "Confusion matrix of 2 classes",
    ]
    (path,) = [block for block in found.sections[0].blocks if isinstance(block, Paragraph)]
    assert path.text.endswith("In the end they are 25.0 %, 75.0 %; its scale gamma is 1.5.")


def test_the_path_of_layers_is_drawn(tmp_path: Path) -> None:
    first = write_run(tmp_path, [0.5, 0.6, 0.7])
    for epoch in range(3):
        shares = {f"layer_share_mix.{layer}": (epoch + layer) / 10 for layer in range(11)}
        write_run(tmp_path / "other", [0.5] * (epoch + 1), is_over=False, more=shares)
        name = f"metrics_epoch_{epoch}.json"
        (tmp_path / "other" / name).replace(first / name)
    path = charts(report(first), 0)[-1]
    assert "Shares of the layers in mix after each epoch" in path.caption
    assert "layer 2 from 0.2 in epoch 1 to 0.4 in epoch 3; layer 3" in path.alternative


def test_both_directions_of_a_bilm_are_drawn(tmp_path: Path) -> None:
    directions = {
        f"validation_perplexity_{direction}": value
        for direction, value in (("left_to_right", 99.0), ("right_to_left", 101.0))
    }
    folder = write_run(tmp_path, more={**directions, "best_validation_perplexity": 100.0})
    _, perplexity, *_ = charts(report(folder), 0)
    assert "Both together reach 100 in the best epoch" in perplexity.caption
    assert "validation, right to left from 101 in epoch 1 to 101" in perplexity.alternative


def test_each_state_is_shown_for_what_it_is(tmp_path: Path) -> None:
    failed = write_run(tmp_path / "failed", [0.5], is_over=False)
    write_crash(failed, "ValueError: the loss is NaN")
    begun = write_run(tmp_path / "begun", [], is_over=False)
    odd = write_run(tmp_path / "odd", more={"validation_loss": ["x"]})
    found = report(failed, begun, odd)
    overview = texts(tables(found, 0)[0])
    assert [row[1] for row in overview] == ["ended by an error", "not finished", "finished"]
    assert [dict(texts(tables(found, section)[0])).get("state") for section in (2, 3)] == [
        "ended by an error (ValueError: the loss is NaN)",
        "not finished (nothing tells whether a process still trains)",
    ]
    assert [row[4] for row in overview] == ["1 of 2", "0 of 2", "2 of 2"]
    paragraphs = [
        block.text
        for section in found.sections
        for block in section.blocks
        if isinstance(block, Paragraph)
    ]
    for said in (
        "One epoch has ended. Curves begin with the second.",
        "No epoch has ended yet: there is nothing measured.",
        "metrics_epoch_0.json: validation_loss is left out: it is no number",
    ):
        assert any(said in text for text in paragraphs), said


def test_experiments_are_compared_in_words_and_numbers(tmp_path: Path) -> None:
    folders = [
        write_run(tmp_path / f"{size}_{seed}", [accuracy], config={"size": size}, seed=seed)
        for size, accuracies in {"small": (0.5, 0.7), "large": (0.8, 0.9)}.items()
        for seed, accuracy in enumerate(accuracies)
    ]
    found = report(*folders)
    (table,) = tables(found, 1)
    assert [row[:6] for row in texts(table)] == [
        ["large", 'size = "large"', "2", "85.00 % ± 7.07", "", "best"],
        ["small", 'size = "small"', "2", "60.00 % ± 14.14", "−25.00 points", "within noise"],
    ]
    words = found.sections[1].blocks[0]
    assert isinstance(words, Paragraph)
    assert "“large” has the best mean accuracy, 85.00 % ± 7.07" in words.text
    assert "Within noise of it: “small”." in words.text
    (dots,) = charts(found, 1)
    assert dots.alternative == "Means of accuracy: large 85.00 % (of 2); small 60.00 % (of 2)."


def test_one_seed_each_is_said_to_be_too_few(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / size, config={"size": size}) for size in ("a", "b")]
    words = report(*folders).sections[1].blocks[0]
    assert isinstance(words, Paragraph)
    assert "how much of the differences is noise is not known" in words.text
