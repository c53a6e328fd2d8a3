"""The class `Elmo`, with the arguments and results of AllenNLP's."""

import logging
import re
from os import PathLike
from reprlib import repr as short_repr
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from allennlp.common import FromParams, Lazy, Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.alphabet import NUM_BATCH_IDS, character_ids
from elmo_scratch.data.spelling import WordIndexer, are_words, batch_to_ids, warm_up_batches
from elmo_scratch.embedders.layer_cache import KeptLayers, LayerStore
from elmo_scratch.interop import read_bilm, write_bilm_folder
from elmo_scratch.interop.archives.sidecar import NO_FACTS, TrainingFacts
from elmo_scratch.interop.named_models import push_folder
from elmo_scratch.interop.official import read_official_bilm
from elmo_scratch.interop.official.files import bilm_weights, mix_weights
from elmo_scratch.interop.softmax import LoadedMixes
from elmo_scratch.kernels import FrozenWeightCache, MixedPrecision, are_frozen, precision_of
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.mixes import LayerMix, TrainableMix, normalize_layers
from elmo_scratch.modules.sequences import add_boundaries, remove_boundaries
from elmo_scratch.modules.token_encoders import CharCnnEncoder, EncodedTokens
from elmo_scratch.modules.token_encoders.token_encoder import check_ids

logger = logging.getLogger(__name__)

Weights = Dict[str, torch.Tensor]

CACHED = "_word_embedding.weight"
"""The name of the vectors of `vocab_to_cache`, which AllenNLP trains with the biLM."""


def rename_allennlp_weights(elmo: Any, weights: Weights, prefix: str, *_: Any) -> None:
    """
    A hook for `register_load_state_dict_pre_hook`: renames the weights that AllenNLP's `Elmo` has
    saved, in `weights`, before they are loaded into `elmo`. The names of `elmo`'s weights begin
    with `prefix`. A weight without a counterpart keeps its name, so that loading reports it.
    """
    bilm = _taken(weights, f"{prefix}_elmo_lstm.")
    if CACHED in bilm and any(weight.requires_grad for weight in elmo.bilm.parameters()):
        logger.warning(
            "What AllenNLP's Elmo learned about the words of `vocab_to_cache` (%s_elmo_lstm.%s) is "
            "left out: here their vectors come from their characters. Where words were looked up "
            "in that training, vectors differ.",
            prefix,
            CACHED,
        )
    # A `module` that is no `BiLm` keeps its own names.
    ours = bilm_weights(bilm) if isinstance(elmo.bilm, BiLm) else bilm
    _put(weights, f"{prefix}bilm.", ours)
    numbers = {
        int(match[1])
        for name in weights
        if (match := re.match(rf"{re.escape(prefix)}scalar_mix_(\d+)\.", name))
    }
    for number, mix in enumerate(elmo.mixes):
        if number in numbers and isinstance(mix, TrainableMix):
            theirs = _taken(weights, f"{prefix}scalar_mix_{number}.")
            _put(weights, f"{prefix}mixes.{number}.", mix_weights(theirs))


def accept_embedder(_: Any, weights: Weights, prefix: str, *__: Any) -> None:
    """Renames in `weights` what AllenNLP's `elmo_token_embedder` has saved around its `Elmo`."""
    for theirs, ours in (("_elmo.", "elmo."), ("_projection.", "projection.")):
        _put(weights, prefix + ours, _taken(weights, prefix + theirs))


def _taken(weights: Weights, prefix: str) -> Weights:
    """Removes the weights whose names begin with `prefix`; returns them without the prefix."""
    names = [name for name in weights if name.startswith(prefix)]
    return {name[len(prefix) :]: weights.pop(name) for name in names}


def _put(weights: Weights, prefix: str, more: Weights) -> None:
    weights.update({prefix + name: tensor for name, tensor in more.items()})


class CachedWords(torch.nn.Module):
    """
    Looks up the vectors of listed words by id, instead of encoding their characters.

    A look-up gives what encoding would: the vectors are encoded anew when the encoder's weights
    have changed, and at each call while they are trained. A word that is not in the list is encoded
    from its characters. `words` are in the order of their ids; id 0 is padding, whatever its name.
    The encoder is not a submodule.
    """

    characters: torch.Tensor

    def __init__(self, words: Sequence[str], encoder: CharCnnEncoder) -> None:
        super().__init__()
        spelled = [
            character_ids(word, encoder.max_characters_per_token)
            # Id 0 is padding, so that an empty list has an entry too.
            for word in list(words) or [""]
        ]
        self.register_buffer(
            # `torch.distributed` can't send 16-bit integers.
            "characters",
            torch.tensor(spelled, dtype=torch.int32),
            persistent=False,
        )
        self._vectors = FrozenWeightCache[torch.Tensor]()
        if are_frozen(list(encoder.parameters())):
            self._table(encoder)

    def forward(
        self,
        words: torch.Tensor,
        characters: Optional[torch.Tensor],
        encoder: CharCnnEncoder,
    ) -> EncodedTokens:
        """
        `words` are ids of shape `(batch, tokens)`, 0 where a sentence has ended. `characters`, of
        shape `(batch, tokens, characters)`, decide where they are given: a word with id 0, or with
        other characters than its id has in the list, is encoded from them. Returns vectors of shape
        `(batch, tokens + 2, dim)`.

        Raises `ValueError` if a word is neither listed nor given by characters, or an id is out of
        range.
        """
        check_ids(words, "words")
        is_listed = (words >= 0) & (words < len(self.characters))
        places = words.long().where(is_listed, 0)
        # As ids of characters, with those of the list where nothing else is known.
        listed = self.characters[places].long()
        if characters is None:
            given = torch.zeros_like(listed)
        elif characters.shape == listed.shape:
            # Beyond them another word's vector might pass for the right one.
            check_ids(characters, "characters", NUM_BATCH_IDS)
            given = characters.long()
        else:
            raise ValueError(
                f"expected the ids of characters in the shape {tuple(listed.shape)}, as for the "
                f"ids of words, but got the shape {tuple(characters.shape)}"
            )
        is_given = (given != 0).any(dim=-1)
        mask = (words != 0) | is_given
        if bool((mask & ~is_listed & ~is_given).any()):
            raise ValueError(
                f"expected ids of words from 0 to {len(self.characters) - 1}, as in "
                f"`vocab_to_cache`, but got {words[mask & ~is_listed & ~is_given].tolist()}; give "
                "the ids of their characters as well"
            )
        spelled = torch.where(is_given.unsqueeze(-1), given, listed)
        if not are_frozen(list(encoder.parameters())):
            return encoder(spelled, mask)
        is_cached = mask & is_listed & (spelled == listed).all(dim=-1)
        table = self._table(encoder)
        vectors = table[places]  # (batch, tokens, dim)
        is_other = mask & ~is_cached
        if bool(is_other.any()):
            vectors[is_other] = encoder.encode_words(spelled[is_other])
        begin, end = encoder.encode_marks()
        bounded = add_boundaries(vectors, mask, begin, end)
        return EncodedTokens(bounded.ids, bounded.mask)

    def _table(self, encoder: CharCnnEncoder) -> torch.Tensor:
        """Returns the vectors of all words, shape `(words, dim)`."""
        weights = list(encoder.parameters())

        def encode() -> torch.Tensor:
            with torch.no_grad():
                return encoder.encode_distinct(self.characters.long())

        return self._vectors.of(weights, precision_of(weights), encode)


class SavedWith(NamedTuple):
    """What a model folder holds of an `Elmo` besides its numbers, if they came with its biLM."""

    word_indexer: Optional[WordIndexer] = None
    facts: TrainingFacts = NO_FACTS


def _set(bilm: BiLm, state: Optional[str], matmul_dtype: str) -> BiLm:
    """Gives a biLM its state, unless it keeps its own, and the precision of its products."""
    if state is not None:
        bilm.use_state(state)
    MixedPrecision.set_everywhere(bilm, matmul_dtype)
    return bilm


class Elmo(torch.nn.Module, FromParams):
    """
    Mixes the layers of a biLM. It replaces `allennlp.modules.elmo.Elmo`, and loads the weights that
    it has saved.

    # Parameters

    options_file, weight_file : `Optional[Union[str, PathLike]]`
        Paths or addresses of an `options.json` and a `weights.hdf5`; or, as `weight_file` alone, a
        model of any other kind that `read_bilm` reads: the archive of a trained biLM
        (`model.tar.gz`) or of a task, a model folder, a folder of official files, a name. Both are
        `None` with `module`.
    num_output_representations : `int`
        How many mixes to make of the layers.
    requires_grad : `bool`, optional (default = `False`)
        Train the biLM on.
    do_layer_norm : `bool`, optional (default = `False`)
        Bring layers to one scale before they are mixed.
    dropout : `float`, optional (default = `0.5`)
        Share of the mixed vectors that is dropped in training.
    vocab_to_cache : `List[str]`, optional (default = `None`)
        Words whose vectors are cached, in the order of their ids. `forward` then takes ids of words
        too. A `module` that is no `BiLm` computes them itself.
    keep_sentence_boundaries : `bool`, optional (default = `False`)
        Return the vectors of the sentence marks as well.
    scalar_mix_parameters : `List[float]`, optional (default = `None`)
        One weight a layer, before the softmax, for mixes that are not trained.
    module : `torch.nn.Module`, optional (default = `None`)
        A biLM that replaces the files: a `BiLm`, or a module with `num_layers`, `get_output_dim()`
        and a `forward` from ids of characters and words to a dictionary with `activations` and
        `mask`. `requires_grad`, `state` and `matmul_dtype` have no effect on it.
    mix : `Lazy[LayerMix]`, optional (default = `TrainableMix`)
        Combines the layers.
    state : `str`, optional (default = `"carry"`, as in AllenNLP)
        The state that a sentence starts from, as in `BiLm`.
    matmul_dtype : `str`, optional (default = `"float32"`)
        With `"bfloat16"`, matrix products run in bfloat16.
    keep_layers : `LayerStore`, optional (default = `None`)
        Caches the layers of each text, as in the token embedder `elmo_scratch`; not with
        `vocab_to_cache`.

    # Raises

    ConfigurationError
        If the files can't be read, or the arguments don't go together.

    # Source

    Peters et al. 2018, section 3.2, equation 1.
    """

    pretrained_part = "bilm"
    """The module whose weights an initializer of the whole model leaves alone."""

    def __init__(
        self,
        options_file: Optional[Union[str, PathLike]],
        weight_file: Optional[Union[str, PathLike]],
        num_output_representations: int,
        requires_grad: bool = False,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        vocab_to_cache: Optional[List[str]] = None,
        keep_sentence_boundaries: bool = False,
        scalar_mix_parameters: Optional[List[float]] = None,
        module: Optional[torch.nn.Module] = None,
        *,
        mix: Optional[Lazy[LayerMix]] = None,
        state: str = "carry",
        matmul_dtype: str = "float32",
        keep_layers: Optional[LayerStore] = None,
    ) -> None:
        super().__init__()
        self._saved_with = SavedWith()
        if num_output_representations < 0:
            raise ConfigurationError(
                "expected `num_output_representations` of 0 or more, but got "
                f"{num_output_representations}"
            )
        if vocab_to_cache is not None and not are_words(vocab_to_cache):
            raise ConfigurationError(
                "expected `vocab_to_cache` to be a list of words, but got "
                f"{short_repr(vocab_to_cache)}"
            )
        if module is not None:
            if options_file is not None or weight_file is not None:
                raise ConfigurationError(
                    "expected either `module` or `options_file` and `weight_file`, but got both"
                )
            bilm = module
        elif weight_file is None:
            raise ConfigurationError(
                "expected both `options_file` and `weight_file`, or another model as `weight_file` "
                "alone, or `module` in their place"
            )
        elif options_file is None:
            read = read_bilm(weight_file)
            self._saved_with = SavedWith(read.word_indexer, read.facts)
            bilm = _set(read.bilm, state, matmul_dtype).requires_grad_(requires_grad)
        else:
            bilm = read_official_bilm(
                options_file, weight_file, state=state, matmul_dtype=matmul_dtype
            ).requires_grad_(requires_grad)
        self.bilm = bilm
        self.cached_words: Optional[CachedWords] = None
        if vocab_to_cache is not None and (module is None or isinstance(module, BiLm)):
            self.cached_words = CachedWords(vocab_to_cache, self._character_encoder())
        self.kept_layers: Optional[KeptLayers] = None
        if keep_layers is not None:
            if vocab_to_cache is not None or not isinstance(bilm, BiLm):
                raise ConfigurationError(
                    "`keep_layers` needs a `BiLm`, and no `vocab_to_cache` beside it"
                )
            self.kept_layers = KeptLayers(keep_layers, bilm)
        self._do_layer_norm = do_layer_norm
        self._keep_sentence_boundaries = keep_sentence_boundaries
        self.dropout = torch.nn.Dropout(dropout)
        if mix is not None and scalar_mix_parameters is not None:
            raise ConfigurationError("expected either `mix` or `scalar_mix_parameters`, not both")
        num_layers = int(bilm.num_layers)  # type: ignore[arg-type]
        mixes: List[LayerMix] = []
        for _ in range(num_output_representations):
            # `Lazy` would need all of AllenNLP to be imported for the default.
            mixes.append(
                TrainableMix(num_layers, initial_weights=scalar_mix_parameters)
                if mix is None
                else mix.construct(num_layers=num_layers, width=self.get_output_dim())
            )
        self.mixes = torch.nn.ModuleList(mixes)
        if scalar_mix_parameters is not None:
            self.mixes.requires_grad_(False)
        self.train(self.training)
        self.register_load_state_dict_pre_hook(rename_allennlp_weights)

    @classmethod
    def from_pretrained(
        cls,
        model: Union[str, PathLike],
        num_output_representations: Optional[int] = None,
        *,
        requires_grad: bool = False,
        state: Optional[str] = None,
        matmul_dtype: str = "float32",
        **settings: Any,
    ) -> "Elmo":
        """
        Reads a model of any kind that `read_bilm` reads.

        # Parameters

        model : `Union[str, PathLike]`
            The model. A folder that `save_pretrained` has written gives the same vectors, to the
            bit.
        num_output_representations : `int`, optional (default = as saved, or 1)
            How many mixes to make of the layers. The saved mixes are loaded unless this is another
            number, or `settings` has a `mix` or `scalar_mix_parameters`.
        state : `str`, optional (default = the model's own)
            The state that a sentence starts from.
        requires_grad, matmul_dtype, **settings
            As in the constructor; `dropout`, `do_layer_norm` and `keep_sentence_boundaries` are by
            default as saved.

        # Raises

        ConfigurationError
            If the model can't be read, or the arguments don't go together.
        """
        read = read_bilm(model)
        bilm = _set(read.bilm, state, matmul_dtype).requires_grad_(requires_grad)
        saved = {} if read.mixes is None else dict(read.mixes.settings)
        saved_count = saved.pop("num_output_representations", 1)
        fixed = saved.pop("fixed", [])
        count = saved_count if num_output_representations is None else num_output_representations
        elmo = cls(None, None, count, module=bilm, **{**saved, **settings})
        elmo._saved_with = SavedWith(read.word_indexer, read.facts)
        has_own = any(settings.get(name) for name in ("mix", "scalar_mix_parameters"))
        if read.mixes is not None and count == saved_count and not has_own:
            elmo.mixes.load_state_dict(read.mixes.tensors)
            for name, weight in elmo.mixes.named_parameters():
                weight.requires_grad_(name not in fixed)
        return elmo

    def save_pretrained(
        self, folder: Union[str, PathLike], *, dtype: str = "float32", overwrite: bool = False
    ) -> None:
        """
        Writes a model folder, made if it doesn't exist, whole or not at all: the biLM, the mixes
        and their settings. Weights are stored as `dtype`, see `write_bilm_folder`.

        # Raises

        ConfigurationError
            If the folder can't be written to or, unless `overwrite`, holds a biLM already.
        OSError
            If the disk is full.
        ValueError
            If a model folder can't hold it: a mix is not that of the paper, `module` is no `BiLm`,
            its biLM reads words and came without their list, or `dtype` can't hold its weights.
        """
        plain = all(
            isinstance(mix, TrainableMix) and not mix.do_layer_norm and not mix.layer_dropout.share
            for mix in self.mixes
        )
        if not plain or not isinstance(self.bilm, BiLm):
            raise ValueError(
                "expected a `BiLm` and mixes of the kind `trainable` with its default settings, "
                "which a model folder can hold. Save others by `torch.save(elmo.state_dict(), …)`."
            )
        settings: Dict[str, Any] = {
            "num_output_representations": len(self.mixes),
            "dropout": self.dropout.p,
            "do_layer_norm": self._do_layer_norm,
            "keep_sentence_boundaries": self._keep_sentence_boundaries,
        }
        fixed = [name for name, one in self.mixes.named_parameters() if not one.requires_grad]
        if fixed:
            settings["fixed"] = fixed
        write_bilm_folder(
            self.bilm,
            folder,
            word_indexer=self._saved_with.word_indexer,
            mixes=LoadedMixes(settings, self.mixes.state_dict()),
            facts=self._saved_with.facts,
            dtype=dtype,
            overwrite=overwrite,
        )

    def push_to_hub(self, name: str, *, private: Optional[bool] = None) -> str:
        """
        Uploads what `save_pretrained` writes to the repository `owner/name` of the Hugging Face
        Hub, by `push_folder`, with its errors. Returns the address that reads it back.
        """
        return push_folder(self.save_pretrained, name, private=private)

    @classmethod
    def from_params(
        cls,
        params: Params,
        constructor_to_call: Any = None,
        constructor_to_inspect: Any = None,
        **extras: Any,
    ) -> "Elmo":
        """
        Builds the `Elmo` of a config, for a model that has one. In the place of both files the
        config can have `pretrained_file`, the archive of a biLM of characters, and a `namespace`
        (`"elmo"` by default), which tells several of one model apart. What it takes to build the
        biLM again is stored in the task's archive, as the embedders store it.
        """
        if "module" not in params:
            # Archives need much of AllenNLP that nobody else waits for.
            from elmo_scratch.embedders.task_bilm import configured_task_bilm

            requires_grad = params.get("requires_grad", False)
            bilm = configured_task_bilm(params, extras.get("serialization_dir"))
            files = {"options_file": None, "weight_file": None}
            extras = {**extras, **files, "module": bilm.requires_grad_(requires_grad)}
        return super().from_params(params, constructor_to_call, constructor_to_inspect, **extras)

    @property
    def _elmo_lstm(self) -> torch.nn.Module:
        """The biLM, by the name that AllenNLP code uses to reset states."""
        return self.bilm

    @property
    def _scalar_mixes(self) -> torch.nn.ModuleList:
        """The mixes, by the name by which models of allennlp-models count them."""
        return self.mixes

    @property
    def allennlp_names(self) -> Dict[str, str]:
        """The parts as in `TrainableMix.allennlp_names`."""
        mixes = {f"mixes.{number}": f"scalar_mix_{number}" for number in range(len(self.mixes))}
        return {"bilm": "_elmo_lstm", "mixes": "", **mixes}

    def __getattr__(self, name: str) -> Any:
        """Finds each mix by AllenNLP's name: `scalar_mix_0`, `scalar_mix_1` and so on."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if match := re.fullmatch(r"scalar_mix_(\d+)", name):
                # An object may be asked for attributes before its constructor has run.
                mixes = self.__dict__.get("_modules", {}).get("mixes", ())
                if int(match[1]) < len(mixes):
                    return mixes[int(match[1])]
            raise

    def train(self, mode: bool = True) -> "Elmo":
        """
        Sets the mode as `torch.nn.Module.train` does, but keeps a frozen `BiLm` in evaluation mode.
        """
        super().train(mode)
        bilm = self._modules.get("bilm")
        if isinstance(bilm, BiLm) and are_frozen(list(bilm.parameters())):
            bilm.eval()
        return self

    def get_output_dim(self) -> int:
        return (
            self.bilm.width if isinstance(self.bilm, BiLm) else self.bilm.get_output_dim()  # type: ignore
        )

    def reset_states(self) -> None:
        """
        Lets the next batch start from zeros where states are carried from batch to batch. Raises
        `ConfigurationError` if `module` is not a `BiLm`: its states are not known here.
        """
        if not isinstance(self.bilm, BiLm):
            raise ConfigurationError(
                f"expected a `BiLm`, but `module` is a {type(self.bilm).__name__}: reset it itself"
            )
        self.bilm.reset_states()

    def warm_up(self, sentences: Iterable[Sequence[str]]) -> None:
        """
        Computes the state that sentences start from where `state` is `"warm"`, from the words of
        each sentence of a text, in order. The state is stored with the weights. Raises
        `ConfigurationError` if the biLM reads no characters, `ValueError` if `state` is not
        `"warm"` or there is no sentence.
        """
        encoder = self._character_encoder()
        assert isinstance(self.bilm, BiLm)
        device = next(self.bilm.parameters()).device
        most = encoder.max_characters_per_token
        ids = (batch_to_ids(batch, most).to(device) for batch in warm_up_batches(sentences))
        self.bilm.warm_up((batch, (batch > 0).any(dim=-1)) for batch in ids)

    def forward(
        self, inputs: torch.Tensor, word_inputs: Optional[torch.Tensor] = None
    ) -> Dict[str, Union[torch.Tensor, List[torch.Tensor]]]:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(batch, tokens, characters)`, as from `batch_to_ids`; for a model of words
            `(batch, tokens)`. More axes may come first. Where all words are in `vocab_to_cache`,
            `inputs` can be `word_inputs` once more.
        word_inputs : `torch.Tensor`, optional (default = `None`)
            Shape `(batch, tokens)`, with the same axes first: places in `vocab_to_cache`. A word
            that is not there, or has other characters, is encoded from its characters.

        # Returns

        `Dict[str, Union[torch.Tensor, List[torch.Tensor]]]`
            `elmo_representations`: `num_output_representations` tensors of shape `(batch, tokens,
            width)`, zero where a sentence has ended. `mask`: shape `(batch, tokens)`. Both have the
            axes that came first in `inputs`, and `positions` for `tokens` with
            `keep_sentence_boundaries`.
        """
        ids, words, axes = self._flatten(inputs, word_inputs)
        bilm = self.bilm
        if not isinstance(bilm, BiLm):
            output: Dict[str, Any] = bilm(ids, words)
            layers, mask = torch.stack(list(output["activations"])), output["mask"].bool()
        elif words is not None and self.cached_words is not None:
            characters = ids if ids.dim() == 3 else None
            tokens = self.cached_words(words, characters, self._character_encoder())
            layers, mask = bilm.read_tokens(tokens).output
        else:
            if words is not None:
                logger.warning("ids of words have no effect without `vocab_to_cache`")
            mask = (ids > 0).any(dim=-1) if ids.dim() == 3 else ids > 0
            if self.kept_layers is None:
                layers, mask = bilm(ids, mask)
            else:
                layers, mask = self.kept_layers(bilm, ids, mask)
        if self._do_layer_norm:
            layers = normalize_layers(layers, mask)
        if not self._keep_sentence_boundaries:
            # The longest sentence's end goes, and with it one mark of every other sentence.
            layers, mask = remove_boundaries(layers), mask[:, 2:]
        padding = ~mask.unsqueeze(-1)
        representations: List[torch.Tensor] = []
        for mix in self.mixes:
            mixed = self.dropout(mix(layers, mask).masked_fill(padding, 0.0))
            representations.append(mixed.unflatten(0, axes))
        return {"elmo_representations": representations, "mask": mask.unflatten(0, axes)}

    def _flatten(
        self, inputs: torch.Tensor, word_inputs: Optional[torch.Tensor]
    ) -> Tuple[torch.Tensor, Optional[torch.Tensor], torch.Size]:
        """
        Returns `inputs` and `word_inputs` with one axis for all sentences, and the axes that it was
        before. Raises `ValueError` if `inputs` is no tensor or has too few axes.
        """
        if not isinstance(inputs, torch.Tensor):
            raise ValueError(
                "expected ids in a tensor, as `batch_to_ids` makes it, but got a "
                f"{type(inputs).__name__}"
            )
        id_axes, looks_up = 3, self.cached_words is not None
        if not isinstance(self.bilm, BiLm):
            looks_up = True
        elif not self.bilm.token_encoder.reads_characters:
            id_axes = 2
        if looks_up and word_inputs is not None and inputs.shape == word_inputs.shape:
            id_axes = 2  # AllenNLP allows ids of words in both places.
        if inputs.dim() < id_axes:
            form = "(batch, tokens, characters)" if id_axes == 3 else "(batch, tokens)"
            raise ValueError(f"expected ids in the shape {form}, but got {tuple(inputs.shape)}")
        axes = inputs.shape[: inputs.dim() - id_axes + 1]
        words = None if word_inputs is None else word_inputs.flatten(0, -2)
        return inputs.flatten(0, len(axes) - 1), words, axes

    def _character_encoder(self) -> CharCnnEncoder:
        """
        Returns the encoder that `vocab_to_cache` needs; raises `ConfigurationError` if it is
        another.
        """
        encoder = self.bilm.token_encoder if isinstance(self.bilm, BiLm) else None
        if not isinstance(encoder, CharCnnEncoder):
            raise ConfigurationError(
                "expected a biLM that encodes characters: one of official files with `char_cnn`, "
                "or a `BiLm` with the token encoder `char_cnn`"
            )
        return encoder
