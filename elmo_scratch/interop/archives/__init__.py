"""AllenNLP's archives: their weights, their biLM, and the files stored beside them."""

__all__: list = []
