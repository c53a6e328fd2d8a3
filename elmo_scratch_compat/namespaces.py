"""The namespaces of a vocabulary that indexers write, and those that embedders read."""

import functools
import logging
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

logger = logging.getLogger(__name__)

OURS = "elmo_scratch"
"""The embedder of this package that reads the ids of words."""

INDEXED: Dict[str, str] = {"single_id": "tokens", "characters": "token_characters"}
"""AllenNLP's indexers that write a namespace, and which one by default."""

DEFAULT = "tokens"
"""The namespace that embedders read by default."""


def compare_namespaces(from_params: Any) -> None:
    """
    AllenNLP hands the ids of an indexer to the embedder of its name, and nothing looks whether both
    mean the same namespace. If they don't, a model trains on the vectors of other words, without a
    word, or ends in an `IndexError`. Here that is an error for the embedder of this package, and a
    warning for AllenNLP's own tables, before anything is read.
    """
    original = from_params.create_kwargs

    @functools.wraps(original)
    def create_kwargs(constructor: Any, cls: Any, params: Any, **extras: Any) -> Dict[str, Any]:
        if "dataset_reader" in params and "model" in params:
            for mismatch in _mismatches(params.params["dataset_reader"], params.params["model"]):
                if mismatch.is_ours:
                    raise from_params.ConfigurationError(mismatch.told())
                logger.warning(mismatch.told())
        return original(constructor, cls, params, **extras)

    from_params.create_kwargs = create_kwargs


class _Mismatch(NamedTuple):
    """An embedder, by its name, what it reads, by which setting, and what its indexers write."""

    name: str
    read: str
    setting: str
    written: List[str]
    is_ours: bool

    def told(self) -> str:
        written = " and ".join(map(repr, self.written))
        return (
            f"The embedder {self.name!r} reads the namespace {self.read!r}, but the indexer "
            f"{self.name!r} writes {written}. Set `{self.setting}` of the embedder, or `namespace` "
            "of the indexer, so that both are the same."
        )


def _mismatches(reader: Any, model: Any) -> Iterator[_Mismatch]:
    """Yields the embedders for which no indexer of their name writes what they read."""
    indexers = list(_blocks(reader, "token_indexers"))
    for embedders in _blocks(model, "token_embedders"):
        for name, embedder in embedders.items():
            setting = _setting(embedder)
            written = [_written(block[name]) for block in indexers if name in block]
            if setting is None or not written or None in written:
                continue
            named = embedder
            *places, key = setting.split(".")
            for place in places:
                named = named[place]
            read = named.get(key, DEFAULT)
            if read not in written:
                found = [one for one in dict.fromkeys(written) if one is not None]
                yield _Mismatch(name, read, setting, found, embedder.get("type") == OURS)


def _blocks(config: Any, key: str) -> Iterator[Dict[str, Any]]:
    """Yields the maps below `key`, or below a key that ends so, anywhere in a config."""
    members = config.items() if isinstance(config, dict) else ()
    for name, value in members:
        if name.endswith(key) and isinstance(value, dict):
            yield value
        yield from _blocks(value, key)
    for value in config if isinstance(config, list) else ():
        yield from _blocks(value, key)


def _written(indexer: Any) -> Optional[str]:
    """The namespace that an indexer writes; `None` if it has none, or that isn't known."""
    settings = indexer if isinstance(indexer, dict) else {"type": indexer}
    default = INDEXED.get(settings.get("type", "single_id"))
    found = settings.get("namespace", default)
    return found if default is not None and isinstance(found, str) else None


def _setting(embedder: Any) -> Optional[str]:
    """
    The setting by which an embedder names the namespace that its ids, or the size of its table, are
    of; `None` if there is none.
    """
    if not isinstance(embedder, dict):
        return None
    if embedder.get("type") == OURS:
        return "namespace"
    if embedder.get("type", "embedding") == "embedding":
        return None if "num_embeddings" in embedder else "vocab_namespace"
    table = embedder.get("embedding")
    if embedder.get("type") == "character_encoding" and isinstance(table, dict):
        return None if "num_embeddings" in table else "embedding.vocab_namespace"
    return None
