"""
What ELMo brings to tasks, at its input, and at its input and output, beside the same model without
it and with a biLM that has learned nothing:

    python examples/task_gains DATA --folder runs/gains

DATA holds the published files, as far as they are there; tasks without any are left out:

    sst/train.txt             Stanford Sentiment Treebank, a bracketed tree a line (and dev.txt)
    conll2003/eng.train       named entities (and eng.testa)
    conll2000/train.txt       chunks; a tenth of it is held out as dev
    ud_ewt/en_ewt-ud-train.conllu   Universal Dependencies, English EWT (and en_ewt-ud-dev.conllu)
    wikitext103/*.txt         running text, a paragraph a line, tokens between spaces
    ag_news/train.csv         news: class, title, description

A biLM over characters is pre-trained on all the text there is, without labels and without dev. Then
each task is trained on all of its training set and on shares of it, in four forms, with several
seeds, and everything but the form equal. The smallest share of the named entities, whose trainings
are short, is trained in more forms, which tell what it is that helps: more text, more training on
the task's own text, other mixes. gains.md has the tables, gains.json every number. Started
again after it was stopped, it goes on where it was; in another folder or on another machine, with
`--results gains.json` of the first, it trains what that lacks.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Tuple

from allennlp.common.checks import ConfigurationError
from forms import FORMS, HELPS, Plan, chosen
from gains import read_scores, score_of, write_results
from labelled import write_texts

from elmo_scratch.search.tasks import add_jobs, check_settings, run_all, study_in


def parse_arguments() -> Tuple[argparse.ArgumentParser, argparse.Namespace]:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder of the published files")
    parser.add_argument("--folder", type=Path, required=True, help="where everything is written")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each (default: 3)")
    add_jobs(parser)
    parser.add_argument(
        "--only",
        type=re.compile,
        metavar="REGEX",
        default="",
        help="the trainings in whose name it is found, such as 'named entities, 1%%: ' or 'seed 0'",
    )
    for name, what in (("--bilm", "biLM"), ("--overrides", "task")):
        parser.add_argument(
            name,
            type=json.loads,
            default={},
            metavar="JSON",
            help=f"changes to the config of each {what}",
        )
    parser.add_argument(
        "--results",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a gains.json from another folder or machine: what it has is not trained again",
    )
    return parser, parser.parse_args()


def main() -> None:
    """Runs what has not been run yet, and writes the results."""
    parser, args = parse_arguments()
    if args.seeds < 1 or args.jobs < 1:
        parser.error("expected at least one of `--seeds` and of `--jobs`")
    folder = args.folder.resolve()
    with study_in(folder, parser):
        try:
            known = {key: one for path in args.results for key, one in read_scores(path).items()}
            texts = write_texts(args.data, folder / "texts")
            plan = Plan(folder, args.bilm, args.overrides)
            plan.add_bilms(texts)
            for (name, share), files in texts.tasks.items():
                for title, form in {**FORMS, **HELPS.get((name, share), {})}.items():
                    for seed in range(args.seeds):
                        plan.add_form(name, share, title, form, files, seed)
        except ConfigurationError as error:
            parser.error(error.message)
        check_settings(plan.tasks, parser)
        undone = run_all(chosen(plan.tasks, args.only, known), args.jobs)
        done = {
            task.fingerprint(): score_of(task) for task in plan.tasks if task.row and task.is_done
        }
        scores = [{**known, **done}.get(task.fingerprint()) for task in plan.tasks]
        write_results([score for score in scores if score is not None], folder)
    if undone.failed:
        sys.exit(f"failed: {', '.join(undone.failed)}. Their logs are in {folder}")


if __name__ == "__main__":
    main()
