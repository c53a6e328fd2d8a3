"""What a training does otherwise with a biLM than the training before."""

from dataclasses import asdict, dataclass, fields
from typing import Any, Dict, Iterable, Optional

from allennlp.common import FromParams


@dataclass(frozen=True)
class BiLmChanges(FromParams):
    """
    What a training may do otherwise than the training before. `None` leaves a setting as it was;
    official files tell none of them, so it is then `BiLm`'s default.

    # Parameters

    dropout, recurrent_dropout : `float`, optional (default = `None`)
    state, matmul_dtype : `str`, optional (default = `None`)
        As in `BiLm`.
    sparse : `bool`, optional (default = `None`)
        As in `WordEncoder`, for a biLM of words. It belongs to the optimizer, so that what is read
        from an archive has `False`, whatever it was trained with.
    """

    dropout: Optional[float] = None
    recurrent_dropout: Optional[float] = None
    state: Optional[str] = None
    matmul_dtype: Optional[str] = None
    sparse: Optional[bool] = None

    def of(self, config: Dict[str, Any]) -> Dict[str, Any]:
        """The configuration of a biLM with these changes."""
        changes = {key: value for key, value in asdict(self).items() if value is not None}
        sparse = changes.pop("sparse", None)
        if sparse is not None:
            changes["token_encoder"] = {**config["token_encoder"], "sparse": sparse}
        return {**config, **changes}


NO_CHANGES = BiLmChanges()


def dense(config: Dict[str, Any]) -> Dict[str, Any]:
    """The configuration of a biLM without `sparse`."""
    encoder = config.get("token_encoder")
    if not isinstance(encoder, dict):
        return config
    return {**config, "token_encoder": _without(["sparse"], encoder)}


def has_same_weights(one: Dict[str, Any], other: Dict[str, Any]) -> bool:
    """Whether two configurations of a biLM differ in what `BiLmChanges` can change, if at all."""
    changeable = [field.name for field in fields(BiLmChanges)]
    return _without(changeable, dense(one)) == _without(changeable, dense(other))


def _without(keys: Iterable[str], config: Dict[str, Any]) -> Dict[str, Any]:
    """A configuration without some of its settings."""
    return {key: value for key, value in config.items() if key not in keys}
