"""Cuts parallel streams of text into windows, for a language model that carries its state."""

from elmo_scratch.data.streams.stream_loader import StreamLoader as StreamLoader

__all__ = ["StreamLoader"]
