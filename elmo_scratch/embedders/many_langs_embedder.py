"""ELMo as a token embedder, from a model folder of ELMoForManyLangs."""

from os import PathLike
from typing import Optional, Union

import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.modules.token_embedders import TokenEmbedder

from elmo_scratch.data.indexers import spelled_words
from elmo_scratch.embedders.output_encoder import mixed_vectors
from elmo_scratch.embedders.task_bilm import many_langs_task_bilm
from elmo_scratch.modules.mixes import LayerMix, TrainableMix
from elmo_scratch.modules.sequences import remove_boundaries
from elmo_scratch.modules.token_encoders.spelled_word_encoder import UniqueWords


@TokenEmbedder.register("elmo_scratch_from_many_langs")
class ManyLangsEmbedder(TokenEmbedder):
    """
    Runs a biLM of ELMoForManyLangs over each text and mixes its layers into one vector a token. Its
    indexer is `elmo_scratch_code_points`.

    The model's weights are saved among the task's, its sizes and dictionaries in the task's
    archive, so that the archive loads where the folder is gone.

    Registered as a `TokenEmbedder` with name "elmo_scratch_from_many_langs".

    # Parameters

    folder : `str`
        The model folder.
    mix : `Lazy[LayerMix]`, optional (default = `TrainableMix`)
        Combines the layers.
    requires_grad : `bool`, optional (default = `False`)
        Train the biLM on with the task. Otherwise it is frozen, its dropout off.
    dropout : `float`, optional (default = `0.0`)
        Share of the mixed vectors that is dropped in training.
    state : `str`, optional (default = `"reset"`)
        The state that each text starts from: `"reset"` or `"carry"`, as in `BiLm`.
    serialization_dir : `str`, optional (default = `None`)
        The task's output folder. AllenNLP supplies it.

    # Raises

    ConfigurationError
        If the folder can't be read, or there is no such `state`.
    """

    pretrained_part = "bilm"
    """The module whose weights an initializer of the whole model leaves alone."""

    def __init__(
        self,
        folder: str,
        *,
        mix: Lazy[LayerMix] = Lazy(TrainableMix),
        requires_grad: bool = False,
        dropout: float = 0.0,
        state: str = "reset",
        serialization_dir: Optional[Union[str, PathLike]] = None,
    ) -> None:
        super().__init__()
        if state not in ("reset", "carry"):
            raise ConfigurationError(f'expected a `state` "reset" or "carry", but got "{state}"')
        self.bilm, blueprint = many_langs_task_bilm(folder, serialization_dir, state=state)
        self._indexer = blueprint.word_indexer
        self._is_frozen = not requires_grad
        self.bilm.requires_grad_(requires_grad)
        self.mix = mix.construct(num_layers=self.bilm.num_layers, width=self.bilm.width)
        self.dropout = torch.nn.Dropout(dropout)
        self.train(self.training)

    def get_output_dim(self) -> int:
        """The `width` of the biLM."""
        return self.bilm.width

    def train(self, mode: bool = True) -> "ManyLangsEmbedder":
        """
        Sets the mode as `torch.nn.Module.train` does, but keeps a frozen biLM in evaluation mode.
        """
        super().train(mode)
        if self._is_frozen:
            self.bilm.eval()
        return self

    def forward(self, code_points: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        code_points : `torch.Tensor`
            Shape `(batch, tokens, ids)`, from the indexer; 0 where a row has ended.

        # Returns

        `torch.Tensor`
            Shape `(batch, tokens, width)`.
        """
        mask = code_points[..., 0] != 0  # (batch, tokens)
        words = UniqueWords.of(code_points[mask])
        rows = self._indexer.spelled(spelled_words(words.ids)).to(code_points.device)
        ids = rows.new_zeros(*mask.shape, rows.size(1))
        ids[mask] = rows[words.places]
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self._is_frozen):
            layers = remove_boundaries(self.bilm(ids, mask).layers)
        return mixed_vectors(layers, mask, self.mix, None, self.dropout)
