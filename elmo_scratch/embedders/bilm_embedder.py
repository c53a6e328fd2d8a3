"""ELMo as a token embedder: a trained biLM and a mix of its layers."""

import logging
from os import PathLike
from typing import Any, Optional, Union

import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.modules.token_embedders import TokenEmbedder

from elmo_scratch.embedders.layer_cache import KeptLayers, LayerStore
from elmo_scratch.embedders.output_encoder import mixed_vectors
from elmo_scratch.embedders.task_bilm import archived_task_bilm
from elmo_scratch.kernels import are_frozen
from elmo_scratch.modules.mixes import LayerMix, TrainableMix
from elmo_scratch.modules.sequences import remove_boundaries

logger = logging.getLogger(__name__)


@TokenEmbedder.register("elmo_scratch")
class BiLmEmbedder(TokenEmbedder):
    """
    Runs a trained biLM over each text and mixes its layers into one vector a token, or into two.

    A biLM of words needs the indexer `single_id`. Its words join `namespace`, so that at prediction
    time words are known that the task's training data lacked. A biLM of characters knows every
    word; its indexer is `elmo_scratch_characters`.

    The configuration and the words of the biLM are saved in the task's output folder and archive,
    its weights among the task's weights, so that the archive loads where `pretrained_file` is gone.

    Registered as a `TokenEmbedder` with name "elmo_scratch".

    # Parameters

    vocab : `Vocabulary`
        The task's vocabulary.
    pretrained_file : `str`, optional (default = `None`)
        The biLM, needed for training: the archive of a language model or of another task
        (`model.tar.gz`), a model folder, a folder of official files, or a name. AllenNLP itself
        leaves it out when it loads the task's archive.
    mix : `Lazy[LayerMix]`, optional (default = `TrainableMix`)
        Combines the layers.
    output_mix : `Lazy[LayerMix]`, optional (default = `None`)
        Combines them once more, for the encoder `elmo_scratch_output`: each token then has two
        vectors, this one after that of `mix`.
    requires_grad : `bool`, optional (default = `False`)
        Train the biLM on with the task. Otherwise it is frozen, its dropout off.
    dropout : `float`, optional (default = `0.0`)
        Share of the mixed vectors that is dropped in training.
    keep_layers : `LayerStore`, optional (default = `None`)
        Caches the layers of each text, so that a frozen biLM reads it once and not once an epoch:
        `"memory"`, or `{ type: "file", path: ... }`.
    state : `str`, optional (default = that of the archive)
        The state that each text starts from: `"reset"` zeros, `"carry"` where the batch before
        ended, so that vectors depend on it, `"warm"` the state that such a biLM was warmed up to.
    namespace : `str`, optional (default = `"tokens"`)
        The namespace of this embedder's indexer, which must treat words as the biLM's own indexer
        did, above all by `lowercase_tokens`. Give it a namespace of its own where another embedder
        has a table of words: the biLM's words join the namespace, and a table that was made before
        lacks them. For a biLM of characters it is only a name that tells the model's biLMs apart.
    serialization_dir : `str`, optional (default = `None`)
        The task's output folder. AllenNLP supplies it.

    # Raises

    ConfigurationError
        If the archive can't be read, no indexer writes `namespace`, there is no such `state`, or
        `keep_layers` doesn't go with the biLM; later, if the indexer makes other ids than the biLM
        reads.

    # Source

    Peters et al. 2018, section 3.2.
    """

    pretrained_part = "bilm"
    """The module whose weights an initializer of the whole model leaves alone."""

    joins_any_vocabulary = True
    """Whether `extend_vocab` takes a vocabulary that numbers words otherwise than the last one."""

    _id_table: torch.Tensor

    def __init__(
        self,
        vocab: Vocabulary,
        *,
        pretrained_file: Optional[str] = None,
        mix: Lazy[LayerMix] = Lazy(TrainableMix),
        output_mix: Optional[Lazy[LayerMix]] = None,
        requires_grad: bool = False,
        dropout: float = 0.0,
        keep_layers: Optional[LayerStore] = None,
        state: Optional[str] = None,
        namespace: str = "tokens",
        serialization_dir: Optional[Union[str, PathLike]] = None,
    ) -> None:
        super().__init__()
        self.bilm, blueprint = archived_task_bilm(
            pretrained_file, serialization_dir, namespace, state
        )
        self._words = blueprint.words
        self._namespace = namespace
        if not self.bilm.token_encoder.reads_characters:
            self._check_namespace(vocab)
            self._join(vocab)
        if pretrained_file is not None and serialization_dir is not None:
            blueprint.write(serialization_dir, namespace)
        self.bilm.requires_grad_(requires_grad)
        self.kept_layers = None if keep_layers is None else KeptLayers(keep_layers, self.bilm)
        sizes = {"num_layers": self.bilm.num_layers, "width": self.bilm.width}
        self.mix = mix.construct(**sizes)
        self.output_mix = None if output_mix is None else output_mix.construct(**sizes)
        self.dropout = torch.nn.Dropout(dropout)
        self.train(self.training)

    def get_output_dim(self) -> int:
        """The `width` of the biLM, or twice that with `output_mix`."""
        return self.bilm.width if self.output_mix is None else 2 * self.bilm.width

    def train(self, mode: bool = True) -> "BiLmEmbedder":
        """
        Sets the mode as `torch.nn.Module.train` does, but keeps a frozen biLM in evaluation mode.
        """
        super().train(mode)
        if are_frozen(list(self.bilm.parameters())):
            self.bilm.eval()
        return self

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        tokens : `torch.Tensor`
            Shape `(batch, tokens)`: ids of the task's namespace; or, for a biLM of characters,
            `(batch, tokens, characters)`. 0 where a row has ended.

        # Returns

        `torch.Tensor`
            Shape `(batch, tokens, get_output_dim())`.
        """
        encoder = self.bilm.token_encoder
        encoder.check_token_ids(tokens)
        if encoder.reads_characters:
            ids, mask = tokens, (tokens != 0).any(dim=-1)
        else:
            ids, mask = self._ids_of(tokens), tokens != 0
        if self.kept_layers is None:
            layers = self.bilm(ids, mask).layers
        else:
            layers = self.kept_layers(self.bilm, ids, mask).layers
        layers = remove_boundaries(layers)  # (layers, batch, tokens, width)
        return mixed_vectors(layers, mask, self.mix, self.output_mix, self.dropout)

    def _ids_of(self, tokens: torch.Tensor) -> torch.Tensor:
        """The biLM's ids of words, shape `(batch, tokens)`, by those of the task's namespace."""
        try:
            return self._id_table[tokens]
        except IndexError as error:
            raise ConfigurationError(
                f"The embedder reads words of the namespace {self._namespace!r}, which has "
                f"{len(self._id_table)}, but got the id {int(tokens.max())}. Give the `single_id` "
                "indexer and the embedder `elmo_scratch` the same `namespace`."
            ) from error

    def extend_vocab(self, extended_vocab: Vocabulary, *_: Any, **__: Any) -> None:
        """Called by AllenNLP after words were added to the task's vocabulary."""
        if not self.bilm.token_encoder.reads_characters:
            self._join(extended_vocab)

    def _check_namespace(self, vocab: Vocabulary) -> None:
        """Raises `ConfigurationError` if no indexer makes the ids that the embedder reads."""
        if self._namespace not in vocab.get_namespaces():
            raise ConfigurationError(
                f"The embedder reads words of the namespace {self._namespace!r}, but no token "
                f"indexer writes it; the vocabulary has {sorted(vocab.get_namespaces())}. Give the "
                "`single_id` indexer and the embedder `elmo_scratch` the same `namespace`."
            )

    def _join(self, vocab: Vocabulary) -> None:
        """Adds the biLM's words to the task's, and builds the table between their ids."""
        num_words = vocab.get_vocab_size(self._namespace)
        num_known = self._words.count_known(vocab, self._namespace)
        logger.info(
            "the biLM knows %d of %d words of the namespace %r",
            num_known,
            num_words,
            self._namespace,
        )
        vocab.add_tokens_to_namespace(self._words.words, self._namespace)
        id_table = self._words.ids_from(vocab, self._namespace)
        # AllenNLP extends the vocabulary of a loaded model that is on its device already.
        device = next(self.bilm.parameters()).device
        self.register_buffer("_id_table", id_table.to(device), persistent=False)
