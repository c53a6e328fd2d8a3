"""The subcommands that the package adds to `allennlp`."""

from elmo_scratch.commands.elmo import Elmo as Elmo
from elmo_scratch.commands.elmo import ElmoJoin as ElmoJoin
from elmo_scratch.commands.elmo_explore import ElmoExplore as ElmoExplore
from elmo_scratch.commands.elmo_export import ElmoExport as ElmoExport
from elmo_scratch.commands.elmo_report import ElmoReport as ElmoReport
from elmo_scratch.commands.elmo_score import ElmoScore as ElmoScore
from elmo_scratch.commands.elmo_search import ElmoSearch as ElmoSearch
from elmo_scratch.commands.elmo_train import ElmoTrain as ElmoTrain
from elmo_scratch.commands.elmo_vectors import ElmoVectors as ElmoVectors

__all__ = [
    "Elmo",
    "ElmoExplore",
    "ElmoExport",
    "ElmoJoin",
    "ElmoReport",
    "ElmoScore",
    "ElmoSearch",
    "ElmoTrain",
    "ElmoVectors",
]
