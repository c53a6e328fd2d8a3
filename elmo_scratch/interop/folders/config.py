"""
The `config.json` of a model folder, which may come from an untrusted source, and its `vocab.txt`:
the words in the order of their ids, from id 1 on, one a line. For words without a backslash or a
line break it is a vocabulary file as `bilm-tf` has them.
"""

import inspect
import json
import math
import re
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, NoReturn, Optional

from allennlp.common.checks import ConfigurationError

from elmo_scratch.alphabet import BEGIN_SENTENCE_WORD, END_SENTENCE_WORD
from elmo_scratch.files.strict_json import StrictJson
from elmo_scratch.interop.archives.blueprint import TOKEN_ENCODERS, WordList
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.softmaxes import AdaptiveSoftmax, FullSoftmax, SampledSoftmax
from elmo_scratch_compat.bounds import FOLDER_CONFIG_SIZE, OPTIONS_NUMBER

MODEL_TYPE = "elmo_scratch"
"""The value of the key `model_type`, by which libraries tell their folders apart."""

FORMAT_VERSION = 1

EXTENDED_FORMAT_VERSION = 2
"""
The version of folders whose weights aren't float32, or which predict words in lower case from
characters. A reader that knows version 1 alone refuses them, and says that it is too old.
"""

DTYPES = ("float32", "float16", "bfloat16")
"""The types that a folder's weights may be stored in."""

SOFTMAXES = {"adaptive": AdaptiveSoftmax, "full": FullSoftmax, "sampled": SampledSoftmax}
"""The softmaxes that a folder may name, beside `TOKEN_ENCODERS`. No other class is looked for."""

SUPPLIED = {"self", "num_words", "begin_id", "end_id"}
"""Arguments of their constructors that the vocabulary decides."""


class ListedVocabulary(NamedTuple):
    """
    What `vocab.txt` leaves open: how many words it has, what id 0 is called, which of the words
    stands for all unknown ones, and whether a biLM of characters predicts words in lower case.
    """

    num_words: int
    padding_word: str
    unknown_word: str
    lowercase: bool = False


class FolderConfig(NamedTuple):
    """
    The content of a `config.json`.

    # Parameters

    bilm : `Dict[str, Any]`
        The `bilm` block of a language model's config.
    lowercase : `bool`
        For a biLM of words: whether words are looked up in lower case.
    vocabulary : `ListedVocabulary`, optional
        Of `vocab.txt`; `None` where there is none.
    softmax : `Dict[str, Any]`, optional
        The `softmax` block of a language model's config; `None` where there is none.
    elmo : `Dict[str, Any]`, optional
        The settings of an `Elmo` that was saved with its mixes; `None` for a biLM alone.
    dtype : `str`, optional (default = `"float32"`)
        The type that the weights are stored in, one of `DTYPES`. In memory they are float32.
    """

    bilm: Dict[str, Any]
    lowercase: bool
    vocabulary: Optional[ListedVocabulary]
    softmax: Optional[Dict[str, Any]]
    elmo: Optional[Dict[str, Any]]
    dtype: str = DTYPES[0]

    @property
    def reads_characters(self) -> bool:
        encoder: str = self.bilm["token_encoder"]["type"]
        reads_characters: bool = TOKEN_ENCODERS[encoder].reads_characters
        return reads_characters

    def to_json(self) -> str:
        """The text of a file that `read` reads back."""
        tokens: Dict[str, Any] = {"unit": "characters"}
        if not self.reads_characters:
            tokens = {"unit": "words", "lowercase": self.lowercase}
        vocabulary = None if self.vocabulary is None else self.vocabulary._asdict()
        is_extended = self.dtype != DTYPES[0] or (self.elmo is not None and "fixed" in self.elmo)
        if vocabulary is not None:
            is_extended |= vocabulary["lowercase"]
            if not vocabulary["lowercase"]:
                del vocabulary["lowercase"]
        record: Dict[str, Any] = {
            "model_type": MODEL_TYPE,
            "format_version": FORMAT_VERSION,
            "tokens": tokens,
            "bilm": self.bilm,
            "vocabulary": vocabulary,
            "softmax": self.softmax,
        }
        if self.elmo is not None:
            record["elmo"] = self.elmo
        if is_extended:
            record["format_version"] = EXTENDED_FORMAT_VERSION
            record["dtype"] = self.dtype
        return json.dumps(record, indent=2) + "\n"

    @classmethod
    def read(cls, path: Path) -> "FolderConfig":
        """
        Reads the file. Raises `ConfigurationError` if it is missing, of another kind or version, or
        names a class that is not among those above.
        """
        record = _record(path)
        kind = record.take("model_type", None)
        if kind != MODEL_TYPE:
            raise ConfigurationError(
                f"{path}: expected the config of a model folder of this package, whose "
                f"`model_type` is {MODEL_TYPE!r}, but it is {kind!r}. Such folders are written by "
                "`allennlp elmo-export … --format safetensors` and by `save_pretrained`."
            )
        version = record.take("format_version")
        if version not in (FORMAT_VERSION, EXTENDED_FORMAT_VERSION):
            raise ConfigurationError(
                f"{path}: expected the `format_version` {FORMAT_VERSION} or "
                f"{EXTENDED_FORMAT_VERSION}, but it is {version!r}: a later release has written "
                "it. Update elmo_scratch."
            )
        dtype = DTYPES[0]
        if version == EXTENDED_FORMAT_VERSION:
            dtype = record.take("dtype")
            if dtype not in DTYPES:
                raise record.error("dtype", f"one of {', '.join(DTYPES)}", dtype)
        bilm = _block(record.take("bilm"), "bilm", _settings_of(BiLm), path)
        encoder = bilm.get("token_encoder")
        bilm["token_encoder"] = _typed_block(encoder, "token_encoder", TOKEN_ENCODERS, path)
        flags = [(bilm, "use_skip_connections"), (bilm, "locked_dropout")]
        for block, flag in [*flags, (bilm["token_encoder"], "sparse")]:
            if not isinstance(block.get(flag, False), bool):
                raise record.error(flag, "true or false", block[flag])
        softmax = record.take("softmax", None)
        if softmax is not None:
            softmax = _typed_block(softmax, "softmax", SOFTMAXES, path)
        config = cls(
            bilm,
            lowercase=False,
            vocabulary=_vocabulary(record, version),
            softmax=softmax,
            elmo=_elmo(record, version),
            dtype=dtype,
        )
        config = config._replace(lowercase=_lowercase(record, config.reads_characters))
        record.finish()
        needs_words = softmax is not None or not config.reads_characters
        if needs_words and config.vocabulary is None:
            raise ConfigurationError(
                f"{path}: expected the block `vocabulary`, as there are words to read or to "
                "predict, but it is missing"
            )
        return config


def _record(path: Path) -> StrictJson:
    """Reads a file that holds one JSON object."""
    try:
        if path.stat().st_size > FOLDER_CONFIG_SIZE:
            raise ConfigurationError(
                f"{path}: expected the config of a biLM, but it has more than {FOLDER_CONFIG_SIZE} "
                "bytes"
            )
        record = json.loads(path.read_text("utf-8"), parse_constant=_refuse)
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(
            f"{path}: expected the config of a biLM as JSON, but it can't be read: {reason}"
        ) from None
    return StrictJson(str(path), "", record)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _settings_of(built: type) -> List[str]:
    """The settings of a class that a config decides."""
    return [name for name in inspect.signature(built).parameters if name not in SUPPLIED]


def _typed_block(block: Any, name: str, classes: Dict[str, Any], path: Path) -> Dict[str, Any]:
    """Checks a block whose `type` names a class."""
    kind = block.get("type") if isinstance(block, dict) else block
    if not isinstance(kind, str) or kind not in classes:
        raise ConfigurationError(
            f"{path}: expected the `type` of `{name}` to be one of {', '.join(classes)}, but got "
            f"{json.dumps(kind)}. A model folder names no other classes, and none is imported."
        )
    return _block(block, name, ["type", *_settings_of(classes[kind])], path)


def _block(block: Any, name: str, keys: List[str], path: Path) -> Dict[str, Any]:
    """
    Checks that a block has only these keys, and values of which nothing is built: numbers, texts
    and lists of them; `token_encoder` is checked elsewhere.
    """
    record = StrictJson(str(path), name, block)
    values = {key: record.take(key) for key in keys if key in record}
    record.finish()
    for key, value in values.items():
        if key != "token_encoder" and not _is_plain(value):
            raise record.error(
                key, f"a number of at most {OPTIONS_NUMBER}, a text, or a list of them", value
            )
    return values


def _is_plain(value: Any, depth: int = 2) -> bool:
    if isinstance(value, list):
        return depth > 0 and all(_is_plain(part, depth - 1) for part in value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) <= OPTIONS_NUMBER
    return value is None or isinstance(value, str)


def _vocabulary(record: StrictJson, version: int) -> Optional[ListedVocabulary]:
    if record.take("vocabulary", None) is None:
        return None
    block = record.block("vocabulary")
    padding_word, unknown_word = (block.take(key) for key in ("padding_word", "unknown_word"))
    for key, name in (("padding_word", padding_word), ("unknown_word", unknown_word)):
        if not isinstance(name, str):
            raise block.error(key, "a word", name)
    lowercase = "lowercase" in block and version >= EXTENDED_FORMAT_VERSION
    lowercase = lowercase and block.flag("lowercase")
    vocabulary = ListedVocabulary(block.size("num_words"), padding_word, unknown_word, lowercase)
    block.finish()
    return vocabulary


def _lowercase(record: StrictJson, reads_characters: bool) -> bool:
    """Checks the block `tokens` against the token encoder."""
    tokens = record.block("tokens")
    unit = "characters" if reads_characters else "words"
    found = tokens.take("unit")
    if found != unit:
        raise tokens.error("unit", f'"{unit}", which the token encoder reads', found)
    lowercase = False if reads_characters else tokens.flag("lowercase")
    tokens.finish()
    return lowercase


def _elmo(record: StrictJson, version: int) -> Optional[Dict[str, Any]]:
    """Checks the block `elmo`."""
    if record.take("elmo", None) is None:
        return None
    block = record.block("elmo")
    dropout = block.take("dropout")
    if type(dropout) not in (int, float) or not 0 <= dropout <= 1:
        raise block.error("dropout", "a number from 0 to 1", dropout)
    settings: Dict[str, Any] = {
        "num_output_representations": block.size("num_output_representations", least=0),
        "dropout": dropout,
        "do_layer_norm": block.flag("do_layer_norm"),
        "keep_sentence_boundaries": block.flag("keep_sentence_boundaries"),
    }
    if version >= EXTENDED_FORMAT_VERSION and "fixed" in block:
        fixed = settings["fixed"] = block.take("fixed")
        if not isinstance(fixed, list) or not all(isinstance(name, str) for name in fixed):
            raise block.error("fixed", "a list of the names of weights", fixed)
    block.finish()
    return settings


ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}
"""Characters that would end a line or be taken for an escape, and how they are written."""

ESCAPE = re.compile(r"\\[\\nr]")
PLAIN = {escape: character for character, escape in ESCAPED.items()}


def write_words(words: WordList, path: Path) -> ListedVocabulary:
    """Writes the words, and returns what the file leaves open."""
    padding, *listed = words.words
    table = str.maketrans(ESCAPED)
    path.write_bytes("".join(f"{word.translate(table)}\n" for word in listed).encode("utf-8"))
    return ListedVocabulary(len(words.words), padding, words.unknown_word)


def read_words(path: Path, vocabulary: ListedVocabulary) -> WordList:
    """
    Reads the words. Raises `ConfigurationError` if the file can't be read, is not UTF-8, has
    another number of words than `vocabulary` says, or one of them twice, or lacks a word that a
    biLM needs.
    """
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(
            f"{path}: expected the words of the biLM, but they can't be read: {reason}"
        ) from None
    if lines.pop() or len(lines) + 1 != vocabulary.num_words:
        raise ConfigurationError(
            f"{path}: expected {vocabulary.num_words - 1} lines with a word each, as config.json "
            f"says, but there are {len(lines)}. Do both files come from the same model?"
        )
    words = [vocabulary.padding_word, *(ESCAPE.sub(_plain, line) for line in lines)]
    places = {word: number for number, word in enumerate(words)}
    if len(places) < len(words):
        number, word = next(
            (number, word) for number, word in enumerate(words) if places[word] != number
        )
        raise ConfigurationError(
            f"{path}: the word {word!r} is in line {places[word]}, but it is in line {number} "
            "already: a word has one id"
        )
    needed = (vocabulary.unknown_word, BEGIN_SENTENCE_WORD, END_SENTENCE_WORD)
    missing = [word for word in needed if word not in places]
    if missing:
        raise ConfigurationError(f"{path}: the word {missing[0]!r}, which a biLM needs, is missing")
    return WordList(words, vocabulary.unknown_word)


def _plain(escape: "re.Match[str]") -> str:
    """Returns the character that an escape stands for."""
    return PLAIN[escape[0]]
