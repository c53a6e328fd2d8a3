"""
What can be typed after `allennlp`: the arguments of the package's subcommands, apart from what they
do.

The room promises to import nothing but the standard library: help, and an error in arguments, come
before AllenNLP is imported.
"""

from elmo_scratch.command_line.check import COMMANDS as COMMANDS
from elmo_scratch.command_line.check import check_words as check_words
from elmo_scratch.command_line.command_line import CommandLine as CommandLine

__all__ = ["COMMANDS", "CommandLine", "check_words"]
