"""The operations of ELMo, faster: each with a readable reference in PyTorch."""

__all__: list = []
