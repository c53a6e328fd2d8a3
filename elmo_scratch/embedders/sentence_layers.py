"""The layers of sentences, from lists of words to arrays."""

from typing import List, Sequence

import numpy
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Batch, Token
from allennlp.nn.util import get_text_field_mask, move_to_device

from elmo_scratch.interop import PretrainedBiLm
from elmo_scratch.modules.boundaries import remove_boundaries
from elmo_scratch.modules.token_ids import token_ids


class SentenceLayers:
    """
    Runs a trained biLM, its dropout off, over sentences that are split already.

    # Parameters

    pretrained : `PretrainedBiLm`
        The biLM, with the vocabulary and the reader that it was trained with.
    cuda_device : `int`, optional (default = `-1`)
        The number of a GPU, or -1 for the processor.

    # Raises

    ConfigurationError
        If there is no such GPU.
    """

    def __init__(self, pretrained: PretrainedBiLm, cuda_device: int = -1) -> None:
        if cuda_device >= torch.cuda.device_count():
            raise ConfigurationError(
                f"expected a GPU with the number {cuda_device}, but PyTorch sees "
                f"{torch.cuda.device_count()}; -1 stands for the processor"
            )
        self._device = torch.device(cuda_device if cuda_device >= 0 else "cpu")
        self._pretrained = pretrained
        self._bilm = pretrained.bilm.to(self._device).eval().requires_grad_(False)

    def __call__(self, sentences: Sequence[Sequence[str]]) -> List[numpy.ndarray]:
        """
        # Parameters

        sentences : `Sequence[Sequence[str]]`
            The words of each sentence.

        # Returns

        `List[numpy.ndarray]`
            For each sentence its layers, float32, shape `(layers, tokens, width)`.

        # Raises

        ConfigurationError
            If the reader's indexers don't make what the biLM reads.
        """
        reader = self._pretrained.reader
        instances = [
            reader.text_to_instance([Token(word) for word in sentence]) for sentence in sentences
        ]
        for instance in instances:
            reader.apply_token_indexers(instance)
        batch = Batch(instances)
        batch.index_instances(self._pretrained.vocab)
        text = move_to_device(batch.as_tensor_dict()["sentence"], self._device)
        with torch.inference_mode():
            ids = token_ids(text, self._bilm.token_encoder)
            output = self._bilm(ids, get_text_field_mask(text))
            layers = remove_boundaries(output.layers).cpu()  # (layers, batch, tokens, width)
        return [layers[:, row, : len(sentence)].numpy() for row, sentence in enumerate(sentences)]
