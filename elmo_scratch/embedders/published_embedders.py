"""ELMo as a token embedder, from official files or a model folder of ELMoForManyLangs."""

from os import PathLike
from typing import List, Optional, Union

import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.modules.token_embedders import TokenEmbedder

from elmo_scratch.data.indexers import spelled_words
from elmo_scratch.data.lines import split_lines
from elmo_scratch.embedders.elmo import Elmo, accept_embedder
from elmo_scratch.embedders.layer_cache import LayerStore
from elmo_scratch.embedders.output_encoder import joined_vectors, mixed_vectors
from elmo_scratch.embedders.task_bilm import many_langs_task_bilm, official_task_bilm
from elmo_scratch.interop.official import RELEASED_OPTIONS, RELEASED_WEIGHTS
from elmo_scratch.kernels import are_frozen
from elmo_scratch.modules.mixes import LayerMix, TrainableMix
from elmo_scratch.modules.sequences import remove_boundaries
from elmo_scratch.modules.token_encoders.spelled_word_encoder import UniqueWords


@TokenEmbedder.register("elmo_scratch_from_official")
class OfficialEmbedder(TokenEmbedder):
    """
    Runs a biLM over each text and mixes its layers into one vector a token, or into two. It
    replaces AllenNLP's `elmo_token_embedder`. Its indexer is `elmo_scratch_characters`, or
    AllenNLP's `elmo_characters`.

    The biLM's weights are saved among the task's, its options in the task's archive, so that the
    archive loads where the files are gone. An archive with weights of `elmo_token_embedder` loads
    too.

    Registered as a `TokenEmbedder` with name "elmo_scratch_from_official".

    # Parameters

    options_file, weight_file : `str`, optional (default = the released original model's addresses)
        Paths or addresses of an `options.json` and a `weights.hdf5`.
    do_layer_norm : `bool`, optional (default = `False`)
        Bring layers to one scale before they are mixed.
    dropout : `float`, optional (default = `0.5`)
        Share of the mixed vectors that is dropped in training.
    requires_grad : `bool`, optional (default = `False`)
        Train the biLM on with the task.
    projection_dim : `int`, optional (default = `None`)
        Project the mixed vectors to this size. Neither `None` nor 0 projects.
    vocab_to_cache : `List[str]`, optional (default = `None`)
        Words whose vectors are cached, as in `Elmo`.
    scalar_mix_parameters : `List[float]`, optional (default = `None`)
        One weight a layer, before the softmax, for mixes that are not trained.
    mix : `Lazy[LayerMix]`, optional (default = `TrainableMix`)
        Combines the layers.
    output_mix : `Lazy[LayerMix]`, optional (default = `None`)
        Makes the second vector, as in `elmo_scratch`; it is projected as well.
    state : `str`, optional (default = `"carry"`, as in AllenNLP)
        The state that a sentence starts from, as in `BiLm`.
    warm_up_file : `str`, optional (default = `None`)
        With the state `"warm"`: a text, one sentence a line, words between spaces. The biLM reads
        it once to find the state that every sentence starts from.
    matmul_dtype : `str`, optional (default = `"float32"`)
        With `"bfloat16"`, matrix products run in bfloat16.
    keep_layers : `LayerStore`, optional (default = `None`)
        Caches the layers of each text, as in `elmo_scratch`; not with `vocab_to_cache`, nor with
        the state `"carry"`.
    serialization_dir : `str`, optional (default = `None`)
        The task's output folder. AllenNLP supplies it.

    # Raises

    ConfigurationError
        If the files can't be read, or the arguments don't go together.

    # Source

    Peters et al. 2018, section 3.2.
    """

    allennlp_names = {"elmo": "_elmo", "projection": "_projection"}
    """The parts as in `TrainableMix.allennlp_names`."""

    def __init__(
        self,
        options_file: str = RELEASED_OPTIONS,
        weight_file: str = RELEASED_WEIGHTS,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        requires_grad: bool = False,
        projection_dim: Optional[int] = None,
        vocab_to_cache: Optional[List[str]] = None,
        scalar_mix_parameters: Optional[List[float]] = None,
        *,
        mix: Optional[Lazy[LayerMix]] = None,
        output_mix: Optional[Lazy[LayerMix]] = None,
        state: str = "carry",
        warm_up_file: Optional[str] = None,
        matmul_dtype: str = "float32",
        keep_layers: Optional[LayerStore] = None,
        serialization_dir: Optional[Union[str, PathLike]] = None,
    ) -> None:
        super().__init__()
        if (state == "warm") != (warm_up_file is not None):
            raise ConfigurationError('`state` "warm" and `warm_up_file` need each other')
        bilm, is_archived = official_task_bilm(
            options_file, weight_file, serialization_dir, state=state, matmul_dtype=matmul_dtype
        )
        self.elmo = Elmo(
            None,
            None,
            1,
            do_layer_norm=do_layer_norm,
            dropout=dropout,
            vocab_to_cache=vocab_to_cache,
            scalar_mix_parameters=scalar_mix_parameters,
            module=bilm.requires_grad_(requires_grad),
            mix=mix,
            keep_layers=keep_layers,
        )
        width = self.elmo.get_output_dim()
        if output_mix is not None:
            self.elmo.mixes.append(output_mix.construct(num_layers=bilm.num_layers, width=width))
        if warm_up_file is not None:
            self._warm_up(warm_up_file, is_archived)
        self.projection: Optional[torch.nn.Linear] = None
        self.output_projection: Optional[torch.nn.Linear] = None
        if projection_dim:
            self.projection = torch.nn.Linear(width, projection_dim)
            if output_mix is not None:
                self.output_projection = torch.nn.Linear(width, projection_dim)
        self.register_load_state_dict_pre_hook(accept_embedder)

    def _warm_up(self, warm_up_file: str, is_archived: bool) -> None:
        """
        Warms up with a text. In an archive, where the state is among the weights, the text may be
        gone.
        """
        try:
            self.elmo.warm_up(split_lines(warm_up_file))
        except ConfigurationError:
            if not is_archived:
                raise

    @property
    def output_dim(self) -> int:
        """`get_output_dim()`, by the name of AllenNLP's attribute."""
        return self.get_output_dim()

    def get_output_dim(self) -> int:
        """`projection_dim`, or the `width` of the biLM; twice that with `output_mix`."""
        width = self.elmo.get_output_dim()
        if self.projection is not None:
            width = self.projection.out_features
        return width * len(self.elmo.mixes)

    def forward(
        self, elmo_tokens: torch.Tensor, word_inputs: Optional[torch.Tensor] = None
    ) -> torch.Tensor:
        """
        # Parameters

        elmo_tokens : `torch.Tensor`
            Shape `(batch, tokens, characters)`, or with more axes first.
        word_inputs : `torch.Tensor`, optional (default = `None`)
            Shape `(batch, tokens)`: places in `vocab_to_cache`, as in `Elmo`.

        # Returns

        `torch.Tensor`
            Shape `(batch, tokens, get_output_dim())`.
        """
        vectors = self.elmo(elmo_tokens, word_inputs)["elmo_representations"]
        projections = [self.projection, self.output_projection]
        projected = [
            one if projection is None else projection(one)
            for one, projection in zip(vectors, projections)
        ]
        return projected[0] if len(projected) == 1 else joined_vectors(*projected)


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
        if are_frozen(list(self.bilm.parameters())):
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
        layers = remove_boundaries(self.bilm(ids, mask).layers)
        return mixed_vectors(layers, mask, self.mix, None, self.dropout)
