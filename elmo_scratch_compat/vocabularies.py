"""Vocabularies that are written to files and read from them."""

import filecmp
import functools
import json
from pathlib import Path
from typing import Any

from elmo_scratch_compat.unfinished import unfinished
from elmo_scratch_compat.whole_files import move

UNKNOWN_WORD = "<UNK>"
"""The unknown word of the vocabulary `elmo_scratch_corpus`."""


CHECKPOINTS = "model_state_e*.th"
"""The files of a training after which its words must not change any more."""


OTHER_WORDS = (
    "Bring the files that its words come from back as they were, or train in another folder."
)

ANOTHER_ORDER = (
    "Its words are the same in another order: several workers (`num_workers`) bring texts in none. "
    "In the config.json of the training's folder, let it begin with the vocabulary that is there: "
    '"vocabulary": {{"type": "from_files", "directory": {}}}, and train by that file.'
)


def read_and_write_whole(vocabulary: Any) -> None:
    """Patches how `Vocabulary` reads and writes its files."""
    find_unknown_word(vocabulary)
    keep_words_of_checkpoints(vocabulary)


def keep_words_of_checkpoints(vocabulary: Any) -> None:
    """
    A training that is recovered writes its vocabulary anew before anything is compared, so that the
    words of another text would come beside the weights of the first. That is an error here, and the
    files stay. Files appear whole: AllenNLP would read half of one without a word.
    """
    original = vocabulary.Vocabulary.save_to_files

    @functools.wraps(original)
    def save_to_files(self: Any, directory: Any) -> None:
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        with unfinished(str(folder.absolute())) as temporary:
            original(self, temporary)
            new = [file for file in Path(temporary).iterdir() if file.name != ".lock"]
            # The file that AllenNLP reads first comes last: without it there is no vocabulary yet.
            new.sort(key=lambda file: file.name == vocabulary.NAMESPACE_PADDING_FILE)
            with vocabulary.FileLock(str(folder / ".lock")):
                if any(folder.absolute().parent.glob(CHECKPOINTS)):
                    for file in new:
                        there = folder / file.name
                        # The names of namespaces without padding are written in no order.
                        is_set = file.name == vocabulary.NAMESPACE_PADDING_FILE
                        if there.exists() and not _are_equal(file, there, is_set):
                            way_out = (
                                ANOTHER_ORDER.format(json.dumps(str(folder)))
                                if _are_equal(file, there, is_set=True)
                                else OTHER_WORDS
                            )
                            raise vocabulary.ConfigurationError(
                                f"{there}: the training can't be recovered: its vocabulary is not "
                                f"the one that it began with. {way_out}"
                            )
                for file in new:
                    move(str(file), str(folder.absolute() / file.name))

    vocabulary.Vocabulary.save_to_files = save_to_files


def _are_equal(one: Path, other: Path, is_set: bool) -> bool:
    """Whether two files hold the same, or the same lines in any order."""
    if is_set:
        return set(one.read_bytes().splitlines()) == set(other.read_bytes().splitlines())
    return filecmp.cmp(one, other, shallow=False)


def find_unknown_word(vocabulary: Any) -> None:
    """
    A caller that lets AllenNLP read a vocabulary must name its unknown word, and AllenNLP itself
    doesn't when it recovers a distributed training. If no word is named and the default is missing,
    the unknown word of the vocabulary `elmo_scratch_corpus` is tried. If a training was stopped
    before it had a vocabulary, AllenNLP shows a traceback; here it is an error. And AllenNLP finds
    the vocabulary in an archive, but not in a training's output folder.
    """
    original = vocabulary.Vocabulary.from_files.__func__

    @functools.wraps(original)
    def from_files(
        cls: Any, directory: Any, padding_token: Any = None, oov_token: Any = None
    ) -> Any:
        inner = Path(directory, "vocabulary")
        if inner.is_dir():
            directory = inner
        words = [oov_token or vocabulary.DEFAULT_OOV_TOKEN]
        if words == [vocabulary.DEFAULT_OOV_TOKEN]:
            words.append(UNKNOWN_WORD)
        for word in words:
            try:
                return original(cls, directory, padding_token, word)
            except AssertionError:
                pass
            except FileNotFoundError as error:
                raise vocabulary.ConfigurationError(
                    f"{directory}: expected a vocabulary, but it is missing or not whole: {error}. "
                    "A training that was stopped before it had one is started anew, with --force."
                ) from None
        raise vocabulary.ConfigurationError(
            f"{directory}: expected a vocabulary with a word that stands for unknown ones, "
            f"{' or '.join(words)}, but a file in it has none. Add a line with it, or name "
            "another by `oov_token`."
        )

    vocabulary.Vocabulary.from_files = classmethod(from_files)
