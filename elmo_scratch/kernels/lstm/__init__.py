"""The steps of a projected LSTM: reference, compiled code and CUDA graphs."""

__all__: list = []
