from allennlp.common import Params

from elmo_scratch.modules.token_encoders import TokenEncoder, WordEncoder


def test_encoders_are_built_by_name() -> None:
    params = Params({"type": "word", "dim": 3})
    encoder = TokenEncoder.from_params(params, num_words=11, begin_id=2, end_id=5)
    assert isinstance(encoder, WordEncoder)
    assert encoder.dim == 3
