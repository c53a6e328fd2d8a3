"""Texts of any origin in the columns of a terminal."""

import unicodedata


def printable(text: str) -> str:
    """The text without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def text_width(text: str) -> int:
    """How many columns a terminal gives to a text."""
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )


def clipped(text: str, columns: int) -> str:
    """The beginning of a text that has room in so many columns."""
    width = 0
    for place, letter in enumerate(text):
        width += text_width(letter)
        if width > columns:
            return text[:place]
    return text
