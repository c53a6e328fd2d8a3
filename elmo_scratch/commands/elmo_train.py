"""
`allennlp elmo-train`: pre-trains a biLM on a text of one's own, without a config.
"""

import json
from argparse import Namespace
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Dict

from allennlp.commands.subcommand import Subcommand
from allennlp.commands.train import train_model_from_args
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.command_line.elmo_train import ELMO_TRAIN
from elmo_scratch.commands.command_error import (
    PackageSubcommand,
    check_arguments,
    command_errors,
    run_plainly,
)
from elmo_scratch.data.corpus import check_no_table, list_shards
from elmo_scratch.data.spacy_blank_tokenizer import SpacyBlankTokenizer
from elmo_scratch.files.atomic import check_folder_place
from elmo_scratch.own_text import (
    OwnText,
    check_size,
    fitted_recipe,
    hold_out,
    measure,
    recipe_for,
)
from elmo_scratch.report import check_matplotlib, read_contents, report_of, write_page
from elmo_scratch.terminal import counted, last_checkpoint, without_information
from elmo_scratch.training.checkpointer import end_training
from elmo_scratch_compat.unfinished import unfinished
from elmo_scratch_compat.whole_files import move

CONFIG, ARCHIVE = "config.json", "model.tar.gz"
"""By AllenNLP's names."""

REPORT, TEXTS, ARGUMENTS = "report.html", "texts", "arguments.json"
"""What the folder holds beside the files of `allennlp train`."""


@Subcommand.register("elmo-train")
class ElmoTrain(PackageSubcommand):
    """Pre-trains a biLM on a text of one's own; see `allennlp elmo-train --help`."""

    command_line = ELMO_TRAIN

    def run(self, args: Namespace) -> None:
        """Runs the command; raises as `command_errors` and `run_plainly` say."""
        folder = Path(args.serialization_dir)
        with command_errors("elmo-train", str(folder), is_verbose=args.verbose):
            check_arguments(ELMO_TRAIN, args)
            check_matplotlib()
            check_folder_place(folder)
            names = ("texts", "dev", "tokenize", "recipe", "epochs")
            given = {name: getattr(args, name) for name in names}
            if not _is_begun(folder, given):
                _begin(args, given, folder)
            if args.dry_run:
                return
        training = Namespace(
            param_path=str(folder / CONFIG),
            serialization_dir=str(folder),
            overrides="",
            # A training that has no checkpoint yet begins at its beginning.
            recover=True,
            force=False,
            node_rank=0,
            include_package=args.include_package,
            dry_run=False,
            file_friendly_logging=False,
            verbose=args.verbose,
            debug=args.verbose,
        )
        run_plainly("elmo-train", _train_and_report, training)


def _is_begun(folder: Path, given: Dict[str, Any]) -> bool:
    """
    Whether the command was stopped in `folder` with the same arguments. Raises
    `ConfigurationError` if something else is there.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    # The report comes last: without it the command was stopped between the two.
    if (folder / ARCHIVE).exists() and (folder / REPORT).exists():
        raise ConfigurationError(f"{folder}: a finished training is there. Choose another folder.")
    if not (folder / ARGUMENTS).is_file():
        raise ConfigurationError(f"{folder}: expected an empty folder, or none")
    before = json.loads((folder / ARGUMENTS).read_text(encoding="utf-8"))
    differ = [name for name in given if before.get(name) != given[name]]
    if differ:
        way = "" if last_checkpoint(folder) else ", or remove this one: it has no checkpoint yet"
        raise ConfigurationError(
            f"{folder}: a training with other arguments has begun there ({', '.join(differ)}). "
            f"Choose another folder{way}."
        )
    return True


def _begin(args: Namespace, given: Dict[str, Any], folder: Path) -> None:
    """
    Measures the text and tells what is chosen. Then `folder` appears with the config, the arguments
    and the parts of the text at once, unless this is a dry run.
    """
    if args.tokenize is not None:
        SpacyBlankTokenizer(args.tokenize)  # a language that spaCy lacks leaves no folder behind
    files = list_shards(args.texts)
    check_no_table([*args.texts, *files])
    size = measure(files)
    check_size(size, args.texts[0])
    # As they are counted, without `--tokenize`.
    between = " between white space" if args.tokenize else ""
    words, sentences = counted(size.tokens, "word"), counted(size.num_sentences, "sentence")
    print(f"{words}{between} in {sentences}")
    if size.is_raw and args.tokenize is None:
        print(
            f"{size.raw_share:.0%} of the words have a punctuation mark at their end. With "
            "--tokenize and a language such as en, or xx for any, spaCy's rules cut it off."
        )
    dev_tokens = round(size.tokens * size.held_share)
    if args.dev is None:
        train, dev = [str(folder / TEXTS / "train.txt")], str(folder / TEXTS / "dev.txt")
        print(f"held out for validation: the last {size.held_share:.1%} of each file")
    else:
        train, dev = [str(file) for file in files], args.dev
        dev_tokens = measure(list_shards(dev)).tokens
    text = OwnText(train, dev, size.tokens, dev_tokens, args.tokenize)
    recipe = args.recipe or recipe_for(size.tokens)
    config = fitted_recipe(recipe, text, args.epochs)
    epochs = counted(config["trainer"]["num_epochs"], "epoch")
    streams = counted(config["data_loader"]["batch_size"], "stream")
    print(f"recipe {recipe}: {epochs}, {streams}")
    if args.dry_run:
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with unfinished(str(folder)) as part:
        new = Path(part)
        new.mkdir()
        if args.dev is None:
            (new / TEXTS).mkdir()
            hold_out(files, size, *(new / TEXTS / name for name in ("train.txt", "dev.txt")))
        Params(config).to_file(str(new / CONFIG))
        (new / ARGUMENTS).write_text(json.dumps(given, indent=2), encoding="utf-8")
        move(new, folder)


def _train_and_report(training: Namespace) -> None:
    folder = Path(training.serialization_dir)
    is_new = not any(folder.glob("training_state_*"))
    # AllenNLP says that it goes on with a training wherever it finds a config.
    with without_information("allennlp.training.util") if is_new else nullcontext():
        train_model_from_args(training)
    end_training(folder)
    write_page(report_of(read_contents([folder])), folder / REPORT)
