"""From a text to an HDF5 file of the layers of its sentences."""

import logging
import os
from pathlib import Path
from typing import Optional

from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export.engines import Engine, OneProcess
from elmo_scratch.export.parts import PartFolder, PartWriting
from elmo_scratch.export.pipeline import SENTENCES_A_PART
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

logger = logging.getLogger(__name__)


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
    # Parts and output lie where a link leads, and the link stays.
    folder = PartFolder(Path(os.path.realpath(output_file)))
    whole = span or Span(0, text.num_sentences)
    num_done = folder.num_done(facts.export)
    is_whole = check_output(output_file, facts.export, overwrite, num_done, whole.num_sentences)
    output_file = Path(os.path.realpath(output_file))
    if is_whole and resume:
        logger.info("%s is whole already", output_file)
        folder.remove_if_of(facts.export)
        return
    if settings.has_index:
        check_index(text, output_file.parent)
    size = estimated_output_size(text, whole, layers, settings)
    logger.info("%s will take about %s", output_file, in_words(size))
    with folder.opened(
        facts.export, resume=resume or keep_parts, overwrite=overwrite and not keep_parts
    ):
        # The room is checked only now: leftovers of a killed run, now removed, may have taken some.
        check_room(
            output_file,
            size,
            num_copies=1 if _has_one_part(whole, folder, engine) else 2,
            num_there=folder.num_bytes(),
            is_compressed=settings.compression is not None,
        )
        writing = PartWriting(text, whole, folder, facts, settings)
        missing = folder.missing(whole)
        with Tqdm.tqdm(total=whole.num_sentences, unit=" sentences") as progress:
            to_do = sum(span.num_sentences for span in missing)
            progress.update(whole.num_sentences - to_do)
            if missing:
                engine.write(writing, missing, layers, progress.update)
        writing.join(output_file)
        folder.remove()


def has_parts(output_file: Path) -> bool:
    """Whether an interrupted export to that file has left parts to resume from."""
    try:
        return bool(PartFolder(Path(os.path.realpath(output_file))).finished())
    except OSError:
        return False


def _has_one_part(whole: Span, folder: PartFolder, engine: Engine) -> bool:
    """Whether a short export has one part, so that nothing has to be joined at the end."""
    is_short = whole.num_sentences <= SENTENCES_A_PART
    return is_short and engine.follows_the_text and folder.finished() in ([], [whole])


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


def estimated_output_size(
    text: InputText, span: Span, layers: SentenceLayers, settings: ExportSettings
) -> int:
    """Returns the size of the output in bytes, before compression."""
    num_tokens = text.num_tokens * span.num_sentences // max(1, text.num_sentences)
    return estimated_size(
        settings.num_bytes(layers.num_layers, layers.width, span.num_sentences, num_tokens),
        span.num_sentences,
    )
