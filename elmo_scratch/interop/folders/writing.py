"""Writes model folders, and the model card in each."""

import json
import os
import platform
import re
import shlex
import sys
from os import PathLike
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

import safetensors
import torch
from allennlp.common.checks import ConfigurationError
from safetensors.torch import save

from elmo_scratch.data.spelling import CharacterWordIndexer, WordIndexer
from elmo_scratch.files.atomic import atomic_writes, check_folder
from elmo_scratch.interop.archives.blueprint import ListedWordIndexer, WordList, config_of
from elmo_scratch.interop.archives.sidecar import NO_FACTS, TrainingFacts
from elmo_scratch.interop.archives.weights import (
    BILM_PREFIX,
    LANGUAGE_MODEL,
    SOFTMAX_PREFIX,
    Tensors,
)
from elmo_scratch.interop.folders.config import DTYPES, FolderConfig, write_words
from elmo_scratch.interop.folders.reading import (
    CARD_NAME,
    CONFIG_NAME,
    MIXES_PREFIX,
    VOCABULARY_NAME,
    WEIGHTS_NAME,
)
from elmo_scratch.interop.softmax import NO_SOFTMAX, LoadedMixes, LoadedSoftmax
from elmo_scratch.interop.zipped_models import OPTIONS_NAME, official_files
from elmo_scratch.modules import BiLm
from elmo_scratch.version import VERSION

FILES = (WEIGHTS_NAME, VOCABULARY_NAME, CARD_NAME, CONFIG_NAME)
"""The files of a folder; the last one is written last, so that all others are there if it is."""

STATE_MEMORY = "state_memory."
"""The prefix of the warm state among a biLM's tensors: NaN until a text has warmed it up."""


def write_bilm_folder(
    bilm: BiLm,
    folder: Union[str, PathLike],
    *,
    word_indexer: Optional[WordIndexer] = None,
    words: Optional[WordList] = None,
    softmax: LoadedSoftmax = NO_SOFTMAX,
    mixes: Optional[LoadedMixes] = None,
    facts: TrainingFacts = NO_FACTS,
    dtype: str = "float32",
    overwrite: bool = False,
) -> None:
    """
    Writes a model folder, whole or not at all, for `read_bilm` and for sharing. No file in it holds
    code.

    # Parameters

    bilm : `BiLm`
        A biLM with the token encoder `char_cnn` or `word`.
    folder : `Union[str, PathLike]`
        The output folder, made if it doesn't exist.
    word_indexer : `WordIndexer`, optional (default = of the biLM's characters)
        The maker of the biLM's ids: needed for a biLM of words.
    words : `WordList`, optional (default = those of `word_indexer`)
        The words that `softmax` scores.
    softmax : `LoadedSoftmax`, optional (default = none)
        The softmax of the language model.
    mixes : `LoadedMixes`, optional (default = `None`)
        The mixes of an `Elmo`.
    facts : `TrainingFacts`, optional (default = none)
        What is known of the training, for the model card.
    dtype : `str`, optional (default = `"float32"`)
        The type that the weights are stored in. With `"float16"` and `"bfloat16"` the file is half
        as large, and the weights are rounded. `read_bilm` reads all of them as float32.
    overwrite : `bool`, optional (default = `False`)
        Replace the files of another biLM there, its model card included.

    # Raises

    ConfigurationError
        If the folder can't be written to, or holds one of the files already, or official files.
    OSError
        If the disk is full.
    ValueError
        If a folder can't hold the biLM: its token encoder is another one, its ids are not made by a
        list of words or by characters, or a weight is not finite, also after rounding; or `dtype`
        is another one.
    """
    if dtype not in DTYPES:
        raise ValueError(f"expected `dtype` to be one of {', '.join(DTYPES)}, but got {dtype!r}")
    folder = Path(folder)
    check_model_folder(folder, overwrite, "`overwrite=True`")
    lowercase = False
    if isinstance(word_indexer, ListedWordIndexer):
        words, lowercase = word_indexer.words, word_indexer.lowercase
    elif not bilm.token_encoder.reads_characters or not isinstance(
        word_indexer, (CharacterWordIndexer, type(None))
    ):
        raise ValueError(
            "expected ids of words by a list of words, or of characters as "
            "`elmo_scratch_characters` makes them, but got those of "
            f"{type(word_indexer).__name__}, which a model folder can't hold"
        )
    if words is None and softmax.config is not None:
        raise ValueError("expected `words`, those that the softmax scores")
    has_words = softmax.config is not None or isinstance(word_indexer, ListedWordIndexer)
    names = [name for name in FILES if has_words or name != VOCABULARY_NAME]
    tensors = {
        **_named(bilm.state_dict(), BILM_PREFIX, dtype),
        **_named(softmax.tensors, SOFTMAX_PREFIX, dtype),
        **({} if mixes is None else _named(mixes.tensors, MIXES_PREFIX, dtype)),
    }
    config = FolderConfig(
        config_of(bilm),
        lowercase,
        None,
        softmax.config,
        None if mixes is None else mixes.settings,
        dtype,
    )
    with atomic_writes(folder, names) as temporary:
        if has_words:
            assert words is not None
            vocabulary = write_words(words, temporary / VOCABULARY_NAME)
            # A biLM of words reads them as it predicts them, which the config's `tokens` say.
            predicts_lowercase = softmax.lowercase and bilm.token_encoder.reads_characters
            vocabulary = vocabulary._replace(lowercase=predicts_lowercase)
            config = config._replace(vocabulary=vocabulary)
        (temporary / WEIGHTS_NAME).write_bytes(save(tensors, metadata={"format": "pt"}))
        card = model_card(bilm, config, facts, Path(os.path.realpath(folder)).name)
        # A path may hold bytes that are no UTF-8.
        (temporary / CARD_NAME).write_text(card, encoding="utf-8", errors="backslashreplace")
        (temporary / CONFIG_NAME).write_text(config.to_json(), encoding="utf-8")
    if not has_words:
        # The biLM that was replaced may have left one.
        (folder / VOCABULARY_NAME).unlink(missing_ok=True)


def check_model_folder(folder: Path, overwrite: bool, way: str) -> None:
    """Checks as `check_folder` does that there can be a model folder, and no official files."""
    if official_files(folder) is not None:
        raise ConfigurationError(
            f"{folder}: expected a folder without {OPTIONS_NAME}: official files have their words "
            f"in another order in {VOCABULARY_NAME}. Choose another folder"
        )
    check_folder(folder, FILES, overwrite, way)


def _named(tensors: Tensors, prefix: str, dtype: str) -> Dict[str, torch.Tensor]:
    """
    Returns the tensors of a part by their names in the file, weights rounded to `dtype`. Raises
    `ValueError` if one is not finite.
    """
    named: Dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        number = tensor.detach().cpu().contiguous()
        if number.is_floating_point():
            number = number.float()
            is_weight = not name.startswith(STATE_MEMORY)
            if is_weight and not number.isfinite().all():
                raise ValueError(
                    f"{prefix}{name}: expected finite numbers, but there are others; such weights "
                    "come of a training that diverged"
                )
            number = number.to(getattr(torch, dtype))
            if is_weight and not number.isfinite().all():
                raise ValueError(
                    f"{prefix}{name}: expected numbers that {dtype} can hold, but one is larger. "
                    "Take `dtype` bfloat16 or float32"
                )
        named[f"{prefix}{name}"] = number
    return named


HEAD = """\
---
# The licence of the weights: fill in an identifier of https://hf.co/docs/hub/repositories-licenses
license: unknown
library_name: elmo_scratch
pipeline_tag: feature-extraction
tags:
- elmo
- allennlp
- word-embeddings
---
"""

USE = """\
```python
from elmo_scratch import ElmoEmbedder

elmo = ElmoEmbedder.from_pretrained({folder})
layers = elmo.embed_sentence(["The", "river", "bank", "."])  # {shape}
```
"""

PERPLEXITIES = ("perplexity", "perplexity_left_to_right", "perplexity_right_to_left")
"""The metrics of a language model that a card shows, by their names in `metrics.json`."""

AUDITED = {
    "tokens": "tokens",
    "sentences": "sentences",
    "distinct_words": "distinct words",
    "duplicate_lines": "repeated lines",
    "unknown_share": "of the tokens outside the vocabulary",
    "cut_share": "of the tokens cut at 50 characters",
}
"""The figures of a corpus that a card shows, and their names there."""


def model_card(bilm: BiLm, config: FolderConfig, facts: TrainingFacts, name: str) -> str:
    """
    Writes the card of a biLM that is saved in a folder called `name`. Whatever comes from files is
    quoted, so that none of it is read as Markdown.
    """
    parts = [
        HEAD,
        f"# {_quoted(name)}\n",
        _introduction(bilm, config),
        USE.format(folder=json.dumps(name), shape=_shape_of(bilm)),
        _training(facts),
        "## Licence\n\nNot stated yet: fill in the field `license` at the head of this file, and "
        "say here what it covers.\n",
        _versions(facts),
    ]
    return "\n".join(part for part in parts if part)


def _introduction(bilm: BiLm, config: FolderConfig) -> str:
    unit = "the characters of words" if config.reads_characters else "words"
    if config.lowercase:
        unit += " in lower case"
    lines = [
        "The bidirectional language model of an ELMo (Peters et al. 2018). It gives each token of "
        "a sentence a vector in each of its layers.\n",
        "| | |",
        "|---|---|",
        f"| reads | {unit} |",
        f"| layers | {bilm.num_layers}, of {bilm.width:,} numbers each |",
        f"| weights | {sum(weight.numel() for weight in bilm.parameters()):,} |",
    ]
    if config.dtype != "float32":
        lines.append(f"| stored as | {config.dtype}; read as float32 |")
    if config.vocabulary is not None:
        lines.append(f"| vocabulary | {config.vocabulary.num_words:,} words |")
    if config.softmax is not None:
        lines.append(f"| softmax | {_quoted(config.softmax['type'])}, to score texts |")
    return "\n".join([*lines, ""])


def _shape_of(bilm: BiLm) -> str:
    return f"({bilm.num_layers} layers, 4 tokens, {bilm.width} numbers)"


def _training(facts: TrainingFacts) -> str:
    """What is known of the data, of the quality and of the way that the model was trained."""
    if not facts.config:
        return ""
    lines = ["## Data\n"]
    model = facts.config.get("model")
    kind = model.get("type") if isinstance(model, dict) else None
    if not str(kind).startswith(LANGUAGE_MODEL):
        lines.append(f"- taken out of a model of the type {_quoted(kind)}, with all that it knew")
    for key, meaning in (("train_data_path", "trained on"), ("validation_data_path", "chosen by")):
        if key in facts.config:
            lines.append(f"- {meaning} {_quoted(facts.config[key])}")
    figures = [
        f"{_figure(key, facts.audit[key])} {meaning}"
        for key, meaning in AUDITED.items()
        if _is_number(facts.audit.get(key))
    ]
    if figures:
        lines.append(f"- {', '.join(figures)}")
    lines += ["", *_perplexities(facts.metrics), "## Training\n"]
    lines.append(f"```bash\n{shlex.join(['allennlp', 'train', 'training.json', '-s', 'run'])}\n```")
    lines.append("\nwith `training.json`:\n")
    lines.append(_fenced(json.dumps(facts.config, indent=2), "json"))
    return "\n".join([*lines, ""])


def _perplexities(metrics: Dict[str, Any]) -> List[str]:
    """The perplexities of the epoch that was kept, if any were measured."""
    rows = []
    for name in PERPLEXITIES:
        value = metrics.get(f"best_validation_{name}")
        if _is_number(value):
            direction = name.removeprefix("perplexity").strip("_").replace("_", " ")
            rows.append(f"| {direction or 'both directions'} | {value:.2f} |")
    if not rows:
        return []
    epoch = metrics.get("best_epoch")
    when = f", after epoch {epoch + 1}" if isinstance(epoch, int) else ""
    return [f"## Perplexity on the validation data{when}\n", "| | |", "|---|---:|", *rows, ""]


def _is_number(value: Any) -> bool:
    """Whether a value is a finite number that a float can hold: JSON has larger ones."""
    return isinstance(value, (int, float)) and abs(value) <= sys.float_info.max


def _figure(name: str, value: float) -> str:
    return f"{value:.2%}" if name.endswith("_share") else f"{value:,}"


def _versions(facts: TrainingFacts) -> str:
    written = {
        "elmo_scratch": VERSION,
        "PyTorch": torch.__version__,
        "safetensors": safetensors.__version__,
        "Python": platform.python_version(),
    }
    lines = ["## Versions\n", f"- written by {_listed(written)}"]
    trained = facts.environment.get("versions")
    if isinstance(trained, dict):
        lines.append(f"- trained by {_listed(trained)}")
    return "\n".join([*lines, ""])


def _listed(versions: Dict[str, Any]) -> str:
    return ", ".join(f"{_quoted(name)} {_quoted(value)}" for name, value in versions.items())


def _quoted(value: Any) -> str:
    """Inline code, in which Markdown and HTML mean nothing."""
    text = value if isinstance(value, str) else json.dumps(value)
    text = " ".join(text.replace("|", "\\|").split())
    fence = "`" * (1 + _longest_run(text))
    return f"{fence} {text} {fence}" if "`" in text else f"`{text}`"


def _fenced(text: str, language: str) -> str:
    """A block of code, whose fence is longer than any that the text holds."""
    fence = "`" * max(3, 1 + _longest_run(text))
    return f"{fence}{language}\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    """How many backticks follow each other in a text, at most."""
    return max(map(len, re.findall("`+", text)), default=0)
