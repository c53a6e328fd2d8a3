"""The door: one subcommand of `allennlp` a file."""

from elmo_scratch.commands.elmo import Elmo as Elmo

__all__ = ["Elmo"]
