"""The model card of a model folder: Markdown with a head that the Hugging Face Hub reads."""

import json
import platform
import re
import shlex
from typing import Any, Dict, List

import safetensors
import torch

from elmo_scratch.interop.archives.training_facts import TrainingFacts
from elmo_scratch.interop.folders.config import FolderConfig
from elmo_scratch.modules import BiLm
from elmo_scratch.version import VERSION

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

LANGUAGE_MODEL = "elmo_scratch_bilm"
"""What the registered names of language models begin with."""

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
        if isinstance(facts.audit.get(key), (int, float))
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
        if isinstance(value, (int, float)):
            direction = name.removeprefix("perplexity").strip("_").replace("_", " ")
            rows.append(f"| {direction or 'both directions'} | {value:.2f} |")
    if not rows:
        return []
    epoch = metrics.get("best_epoch")
    when = f", after epoch {epoch + 1}" if isinstance(epoch, int) else ""
    return [f"## Perplexity on the validation data{when}\n", "| | |", "|---|---:|", *rows, ""]


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
