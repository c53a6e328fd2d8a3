"""Settings of AllenNLP 0.9 and 1 that AllenNLP 2 has no more, and what it reads in their place."""

import json
from typing import Any, Callable, Dict, List, Optional, Union

Words = Union[str, Callable[[Any], str]]
"""A sentence on what to write, or what makes one of the old value."""


def _write(new: str) -> str:
    return f"Write `{new}` in its place."


def _leave_out(why: str) -> str:
    return f"Leave it out: {why}."


def _data_loader(name: str, *, is_shuffled: bool) -> Callable[[Any], str]:
    """What becomes of an iterator."""

    def words(iterator: Any) -> str:
        old: Dict[str, Any] = iterator if isinstance(iterator, dict) else {}
        size = old.get("batch_size", 32)
        loader: Dict[str, Any] = {"batch_size": size}
        if old.get("type") == "bucket":
            sampler = {"type": "bucket", "batch_size": size}
            fields = _fields(old.get("sorting_keys"))
            sampler.update({"sorting_keys": fields} if fields else {})
            loader = {"batch_sampler": sampler}
        elif is_shuffled:
            loader["shuffle"] = True
        return _write(f"{name}: {json.dumps(loader)}")

    return words


def _fields(sorting_keys: Any) -> List[str]:
    """The names of the fields in `[["tokens", "num_tokens"]]`."""
    pairs = sorting_keys if isinstance(sorting_keys, list) else []
    return list(dict.fromkeys(pair[0] for pair in pairs if isinstance(pair, list) and pair))


def _tokenizer(splitter: Any) -> str:
    """What becomes of a tokenizer of the type `word`, by its `word_splitter`."""
    kind = splitter.get("type") if isinstance(splitter, dict) else splitter
    known = kind if kind in ("just_spaces", "letters_digits") else "spacy"
    return _write(f'tokenizer: {{"type": "{known}"}}')


def _checkpointer(count: Any) -> str:
    kept = count if isinstance(count, int) and count >= 0 else None
    return _write(f'trainer.checkpointer: {{"keep_most_recent_by_count": {json.dumps(kept)}}}')


def _tensorboard(name: str) -> Callable[[Any], str]:
    return lambda value: _write(
        f'trainer.callbacks: [{{"type": "tensorboard", "{name}": {json.dumps(value)}}}]'
    )


def _regexes(name: str, _: Any) -> str:
    return f"Write the list as `{name}: {{regexes: […]}}`."


_SAMPLER = 'batch_sampler: {{type: "bucket", batch_size: …, {}}}'
_SEED = "It stands at the top of the config, beside `trainer`."
_CALLBACKS = "All callbacks stand in one list, `trainer.callbacks`."

OLD_KEYS: Dict[str, Words] = {
    # The iterator, and what people leave in the loader that takes its place.
    "iterator": _data_loader("data_loader", is_shuffled=True),
    "validation_iterator": _data_loader("validation_data_loader", is_shuffled=False),
    "trainer.shuffle": lambda value: _write(f"data_loader.shuffle: {json.dumps(value)}"),
    "data_loader.sorting_keys": lambda value: _write(
        _SAMPLER.format(f"sorting_keys: {json.dumps(_fields(value))}")
    ),
    "data_loader.padding_noise": lambda value: _write(_SAMPLER.format(f"padding_noise: {value}")),
    "biggest_batch_first": _leave_out("AllenNLP 2 shuffles the batches"),
    "instances_per_epoch": _write("data_loader.batches_per_epoch") + " It counts batches.",
    "skip_smaller_batches": lambda value: _write(f"drop_last: {json.dumps(value)}"),
    "maximum_samples_per_batch": _write(
        'batch_sampler: {type: "max_tokens_sampler", max_tokens: …}'
    ),
    "cache_instances": _leave_out("instances are kept unless `max_instances_in_memory` is set"),
    "track_epoch": _leave_out("callbacks are told the epoch"),
    # The reader
    "lazy": lambda value: (
        _write("data_loader.max_instances_in_memory: 1000") + " So many are read at a time."
        if value
        else _leave_out("it is the default")
    ),
    "cache_directory": _leave_out("AllenNLP 2 stores no instances"),
    "word_splitter": _tokenizer,
    "word_filter": _leave_out("a tokenizer of AllenNLP 2 leaves out no words"),
    "word_stemmer": _leave_out("a tokenizer of AllenNLP 2 stems no words"),
    # The vocabulary
    "directory_path": lambda value: _write(
        f'vocabulary: {{"type": "from_files", "directory": {json.dumps(value)}}}'
    ),
    "vocabulary.extend": lambda value: (
        _write('vocabulary: {type: "extend", directory: …}')
        if value
        else _leave_out("it is the default")
    ),
    # The model
    "embedder_to_indexer_map": "Name each of `token_embedders` as its indexer, and leave it out.",
    "allow_unmatched_keys": (
        'Leave it out, and give an indexer that no embedder reads one: `{type: "empty"}`.'
    ),
    "namespace_to_cache": _leave_out("the vectors of a frozen biLM's words are cached anyway"),
    # The trainer
    "num_serialized_models_to_keep": _checkpointer,
    "keep_serialized_model_every_num_seconds": _write(
        "trainer.checkpointer: {keep_most_recent_by_count: null}"
    )
    + " It keeps all.",
    "model_save_interval": lambda value: _write(
        f"trainer.checkpointer: {{save_every_num_seconds: {value}}}"
    ),
    "summary_interval": _tensorboard("summary_interval"),
    "histogram_interval": _tensorboard("distribution_interval"),
    "log_batch_size_period": _tensorboard("batch_size_interval"),
    "should_log_parameter_statistics": _tensorboard("should_log_parameter_statistics"),
    "should_log_learning_rate": _tensorboard("should_log_learning_rate"),
    "tensorboard_writer": _write('trainer.callbacks: [{type: "tensorboard"}]'),
    "batch_callbacks": _CALLBACKS,
    "epoch_callbacks": _CALLBACKS,
    "end_callbacks": _CALLBACKS,
    "opt_level": _write("trainer.use_amp: true"),
    # The config
    "random_seed": _SEED,
    "numpy_seed": _SEED,
    "pytorch_seed": _SEED,
}
"""Each old setting, with as much of its place as tells it from others, to what to write."""

OLD_LISTS: Dict[str, Callable[[str, Any], str]] = {
    "InitializerApplicator": _regexes,
    "RegularizerApplicator": _regexes,
    "GradientDescentTrainer.cuda_device": lambda _, devices: (
        f"Write `distributed: {{cuda_devices: {json.dumps(devices)}}}` at the top of the config."
    ),
}
"""Lists that AllenNLP 2 takes in another form: what is built of one, or the setting of a class."""


OLD_TYPES: Dict[str, Callable[[Dict[str, Any]], str]] = {
    "Tokenizer.word": lambda settings: _tokenizer(settings.get("word_splitter")),
    "Trainer.callback": lambda _: "Leave it out. " + _CALLBACKS,
    "Trainer.default": lambda _: _leave_out("there is one trainer"),
    "Vocabulary.default": lambda _: _leave_out("it is the default"),
}
"""Registered names that AllenNLP 2 has no more, each with the class that a config asks for."""


def old_setting(place: str, class_name: str, value: Any) -> Optional[str]:
    """
    What to write for a setting that a class of AllenNLP 2 doesn't read, at a place such as
    `"trainer.shuffle"`; `None` if no older AllenNLP is known to have read it there.
    """
    names = place.split(".")
    for start in range(len(names)):
        words = OLD_KEYS.get(".".join(names[start:]))
        if words is not None:
            return words if isinstance(words, str) else words(value)
    if class_name == "BasicTextFieldEmbedder" and isinstance(value, dict):
        return f"Embedders stand in `token_embedders`: write `token_embedders: {{{names[-1]}: …}}`."
    return None


def old_list(name: str, class_name: str, built: Any, value: Any) -> Optional[str]:
    """
    What to write for a list as the setting `name` of a class, which is annotated as `built`; `None`
    if no older AllenNLP is known to have taken one there.
    """
    if not isinstance(value, list):
        return None
    words = OLD_LISTS.get(getattr(built, "__name__", "")) or OLD_LISTS.get(f"{class_name}.{name}")
    return None if words is None else words(name, value)


def old_type(class_name: str, settings: Dict[str, Any]) -> Optional[str]:
    """
    What to write for the `type` in the settings of what is to be a `class_name`; `None` if it is no
    name of an older AllenNLP.
    """
    words = OLD_TYPES.get(f"{class_name}.{settings.get('type')}")
    return None if words is None else words(settings)
