"""Contents of files, changed at random: for runs of seconds, without a fuzzer."""

import random
from typing import Sequence

TOKENS = (
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\n\n", b"\t", b" "),
    *(b"-1", b"0", b"1e400", b"9" * 30, b"NaN", b"null", b"true", b"[]", b"{}", b'"', b"[" * 300),
)
"""What readers stumble over."""


def mutated(seeds: Sequence[bytes], number: int) -> bytes:
    """The change of this number of one of the contents. Equal numbers make equal changes."""
    chance = random.Random(number)
    content = bytearray(seeds[number % len(seeds)])
    for _ in range(chance.choice((1, 1, 2, 5))):
        place = chance.randrange(len(content) + 1)
        stop = min(len(content), place + chance.choice((1, 1, 2, 8, 64, 1024)))
        kind = chance.randrange(6)
        if kind == 0 and place < len(content):
            content[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            content[place:stop] = chance.choice(TOKENS)
        elif kind == 2:
            content[place:place] = chance.choice(TOKENS)
        elif kind == 3:
            del content[place:stop]
        elif kind == 4:
            content[place:place] = content[place:stop]
        else:
            del content[place:]
    return bytes(content)
