"""
Pages of `docs/reference/` that are made from the code: registered names, settings, subcommands.

    python -m benchmarks.reference            # tells which pages are not what the code gives
    python -m benchmarks.reference --write    # writes them

`tests/reference_pages_test.py` holds them to the code.
"""
