"""The sizes of official files as the configuration of a biLM."""

from typing import Any, Dict

from elmo_scratch.interop.official.options import Options


def bilm_config(options: Options) -> Dict[str, Any]:
    """
    # Parameters

    options : `Options`
        The content of an `options.json`.

    # Returns

    `Dict[str, Any]`
        What the block `bilm` of a language model's config would be.
    """
    lstm, cnn = options.lstm, options.char_cnn
    token_encoder: Dict[str, Any] = {"type": "word", "dim": lstm.projection_dim}
    if cnn is not None:
        token_encoder = {
            "type": "char_cnn",
            "dim": lstm.projection_dim,
            "filters": [list(pair) for pair in cnn.filters],
            "character_dim": cnn.embedding_dim,
            "num_highway": cnn.n_highway,
            "activation": cnn.activation,
            "max_characters_per_token": cnn.max_characters_per_token,
        }
    return {
        "token_encoder": token_encoder,
        "cell_size": lstm.dim,
        "num_layers": lstm.n_layers,
        "cell_clip": lstm.cell_clip,
        "projection_clip": lstm.proj_clip,
        "use_skip_connections": lstm.use_skip_connections,
    }
