"""AllenNLP's archives: their weights, their biLM, and what is kept beside them."""

__all__: list = []
