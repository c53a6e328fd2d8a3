from elmo_scratch.interop.official import RELEASED_OPTIONS, RELEASED_WEIGHTS


def test_both_files_are_of_the_same_model() -> None:
    assert RELEASED_OPTIONS.removesuffix("options.json") == RELEASED_WEIGHTS.removesuffix(
        "weights.hdf5"
    )
    assert RELEASED_OPTIONS.startswith("https://")
