"""Cuts parallel streams of text into windows, for a language model that carries its state."""

from elmo_scratch.data.streams.stream_loader import NumberedSentence as NumberedSentence
from elmo_scratch.data.streams.stream_loader import StreamLoader as StreamLoader
from elmo_scratch.data.streams.stream_loader import TooShort as TooShort

__all__ = ["NumberedSentence", "StreamLoader", "TooShort"]
