"""Where the released original model lies, the one that AllenNLP took by default."""

_MODEL = (
    "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway/"
    "elmo_2x4096_512_2048cnn_2xhighway_"
)

RELEASED_OPTIONS = _MODEL + "options.json"
RELEASED_WEIGHTS = _MODEL + "weights.hdf5"
