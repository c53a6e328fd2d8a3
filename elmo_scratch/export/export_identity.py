"""What tells one export from another."""

import hashlib
import json

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export.export_settings import ExportSettings
from elmo_scratch.export.text import InputText
from elmo_scratch.interop import LayerFileFacts


def facts_of(text: InputText, layers: SentenceLayers, settings: ExportSettings) -> LayerFileFacts:
    """
    What the output of an export says of itself. Its `export` is the same for two exports if and
    only if they write the same vectors of the same sentences under the same keys.
    """
    identity = {
        "text": text.digest,
        "model": layers.identity,
        "matmul_dtype": layers.matmul_dtype,
        "state": layers.state,
        "kept": settings.kept,
        "pool": settings.pool,
        "dtype": settings.dtype,
        "has_index": settings.has_index,
        "use_sentence_keys": settings.use_sentence_keys,
        # Only where states are carried from row to row does it matter which sentences meet.
        "batch_size": settings.batch_size if layers.state == "carry" else None,
    }
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode("utf-8")).hexdigest()
    return LayerFileFacts(
        model=layers.identity,
        export=f"sha256:{digest}",
        kept=settings.kept,
        pool=settings.pool,
        layers=layers.num_layers,
        width=layers.width,
        dtype=settings.dtype,
        state=layers.state,
        keys="sentences" if settings.use_sentence_keys else None,
    )
