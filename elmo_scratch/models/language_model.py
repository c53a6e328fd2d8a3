"""Pre-training: a bidirectional language model over the words of a vocabulary."""

import logging
import math
from os import PathLike
from typing import Any, Dict, Optional, Union

import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_distributed
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.nn import InitializerApplicator
from allennlp.nn.parallel import TorchDdpAccelerator
from allennlp.nn.util import dist_reduce_sum, get_text_field_mask

from elmo_scratch.alphabet import BEGIN_SENTENCE_WORD, END_SENTENCE_WORD
from elmo_scratch.interop.archives.blueprint import WordList
from elmo_scratch.interop.archives.weights import LANGUAGE_MODEL
from elmo_scratch.interop.static_vectors import read_static_vectors
from elmo_scratch.kernels import MixedPrecision, without_autocast
from elmo_scratch.metrics import Perplexity, WordPrediction
from elmo_scratch.modules import (
    BiLm,
    Dropout,
    OutputSoftmax,
    Predictions,
    predict_sentences,
    predict_windows,
)
from elmo_scratch.modules.softmaxes import FullSoftmax
from elmo_scratch.modules.token_encoders import TokenEncoder, WordEncoder

logger = logging.getLogger(__name__)


@Model.register(LANGUAGE_MODEL)
class LanguageModel(Model):
    """
    Predicts each word, and the end, of a sentence from the words before it, and each word, and the
    beginning, from the words after it. Both directions share one softmax.

    Registered as a `Model` with name "elmo_scratch_bilm".

    # Parameters

    vocab : `Vocabulary`
        Its namespace of words; the marks of sentence boundaries are added to it.
    bilm : `Lazy[BiLm]`
        The network.
    softmax : `Lazy[OutputSoftmax]`, optional (default = `FullSoftmax`)
        Scores words, given a state.
    dropout : `float`, optional (default = `0.1`)
        Share of the last layer's outputs that is dropped before the softmax in training.
    locked_dropout : `bool`, optional (default = `False`)
        Whether `dropout` drops the same numbers of all outputs of a sentence, or of a row of a
        window. The biLM's own `dropout` has a setting of this name too.
    activation_penalty : `float`, optional (default = `0.0`)
        Adds this many times the mean square of the outputs that the softmax reads, after dropout,
        to the training loss. Neither evaluation nor a perplexity counts it.
    temporal_penalty : `float`, optional (default = `0.0`)
        The same for the mean square of the difference between successive outputs of a sentence, or
        of a row of a window, before dropout.
    namespace : `str`, optional (default = `"tokens"`)
        The namespace of the words in `vocab`.
    pretrained_file : `str`, optional (default = `None`)
        A text file of word vectors, in the format of word2vec, that the token encoder `word` starts
        from: as `allennlp elmo-vectors` writes it. Words that it lacks start at random. The archive
        of the training loads where the file is gone.
    matmul_dtype : `str`, optional (default = `None`)
        With `"bfloat16"` all matrix products of the training run in bfloat16, including those of
        the softmax; weights, memory cells and losses stay in float32. `None` leaves it to `bilm`.
    loss_weight : `float`, optional (default = `1.0`)
        Multiplies the training loss. The original trains on the loss of a window, not of a word:
        its settings of optimizer and clipping go with the weight `unroll_steps`.
    state_reset_probability : `float`, optional (default = `0.0`, as in the original)
        In training on windows of running text, each row of a window starts from zeros with this
        probability, and not from the state that the window before has left. With 0 only an epoch's
        first window starts from zeros, too rarely to learn how: at high learning rates one layer
        may then reach the bounds of its clipping and stay there for all of an evaluation.
    num_confusion_words : `int`, optional (default = `20`)
        The confusion matrix tells this many of the most frequent words apart, at most 1,000.
    initializer : `InitializerApplicator`, optional (default = `None`)
        Draws the weights anew whose names it matches. `None` leaves them as the parts drew them:
        `training_config/bilm/official.libsonnet` shows how the original draws them.

    # Raises

    ConfigurationError
        If `state_reset_probability`, `num_confusion_words` or a penalty is out of its range.

    # Source

    Peters et al. 2018, section 3.1. The penalties are AR and TAR of Merity, McCann and Socher 2017,
    "Revisiting Activation Regularization for Language RNNs".
    """

    default_predictor = "elmo_scratch_score"

    _begin: torch.Tensor
    _end: torch.Tensor

    def __init__(
        self,
        vocab: Vocabulary,
        *,
        bilm: Lazy[BiLm],
        softmax: Lazy[OutputSoftmax] = Lazy(FullSoftmax),
        dropout: float = 0.1,
        locked_dropout: bool = False,
        activation_penalty: float = 0.0,
        temporal_penalty: float = 0.0,
        namespace: str = "tokens",
        pretrained_file: Optional[str] = None,
        matmul_dtype: Optional[str] = None,
        loss_weight: float = 1.0,
        state_reset_probability: float = 0.0,
        num_confusion_words: int = 20,
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, **kwargs)
        words = WordList.from_vocabulary(vocab, namespace)
        self._namespace = namespace
        self.words = words
        """The vocabulary of the biLM and of the softmax."""
        sizes = words.sizes()
        self.bilm = bilm.construct(**sizes)
        self.softmax = softmax.construct(num_words=sizes["num_words"], dim=self.bilm.dim)
        if self.softmax.wants_frequent_first and sizes["end_id"] > sizes["num_words"] // 2:
            logger.warning(
                "The softmax takes words for frequent whose ids are low, but %r, the end of each "
                "sentence, comes late in the vocabulary: it will be learned badly. Take the "
                "vocabulary `elmo_scratch_corpus`, which begins with it.",
                END_SENTENCE_WORD,
            )
        self.dropout = Dropout(dropout)
        self._locked_dropout = locked_dropout
        self._activation_penalty = activation_penalty
        self._temporal_penalty = temporal_penalty
        if matmul_dtype is not None:
            MixedPrecision.set_everywhere(self, matmul_dtype)
        self._loss_weight = loss_weight
        for name, value, most in (
            ("state_reset_probability", state_reset_probability, 1),
            ("num_confusion_words", num_confusion_words, 1000),
        ):
            if not 0 <= value <= most:
                raise ConfigurationError(f"expected `{name}` from 0 to {most}, but got {value}")
        for name, weight in (
            ("activation_penalty", activation_penalty),
            ("temporal_penalty", temporal_penalty),
        ):
            if not 0.0 <= weight < math.inf:
                raise ConfigurationError(f"expected `{name}` of 0 or more, but got {weight}")
        self._running_text = self.bilm.new_state_memory("carry")
        self._state_reset_probability = state_reset_probability
        self.register_buffer("_begin", torch.tensor(sizes["begin_id"]), persistent=False)
        self.register_buffer("_end", torch.tensor(sizes["end_id"]), persistent=False)
        if initializer is not None:
            initializer(self)
        if pretrained_file is not None:
            start_words(self.bilm.token_encoder, words, pretrained_file)
        if isinstance(self.ddp_accelerator, (TorchDdpAccelerator, type(None))):
            # PyTorch's `DistributedDataParallel` ignores the parameters that this attribute names.
            self._ddp_params_and_buffers_to_ignore = [
                f"softmax.{name}" for name in self.softmax.average_gradients()
            ]
        # A vocabulary numbers its words in order of frequency, after the padding.
        marks = (BEGIN_SENTENCE_WORD, END_SENTENCE_WORD, words.unknown_word)
        known = [word for word in words.words[1:] if word not in marks]
        self._confusion_words = known[:num_confusion_words]
        self._left_to_right, self._right_to_left = Perplexity(), Perplexity()
        self._prediction = WordPrediction(
            sizes["num_words"],
            torch.tensor(
                [vocab.get_token_index(word, namespace) for word in self._confusion_words],
                dtype=torch.long,
            ),
        )

    def extend_vocab(self, extended_vocab: Vocabulary, *_: Any, **__: Any) -> None:
        """
        Called by AllenNLP after words were added to the vocabulary of an archived model. Raises
        `ConfigurationError`, since neither the biLM nor the softmax can learn of more words.
        """
        num_words = extended_vocab.get_vocab_size(self._namespace)
        if num_words != len(self.words.words):
            raise ConfigurationError(
                f"the archived language model knows {len(self.words.words)} words, but with those "
                f"of the training's texts its vocabulary has {num_words}. To train it on with new "
                "words take the model `elmo_scratch_bilm_from_archive` with the same "
                "`archive_file`, as in training_config/bilm/fine_tune.jsonnet; to keep its words "
                'alone take `vocabulary: { type: "from_files", directory: "…/vocabulary" }` with '
                "the folder of the unpacked archive."
            )

    def forward(
        self,
        sentence: Optional[TextFieldTensors] = None,
        windows: Optional[Dict[str, torch.Tensor]] = None,
    ) -> Dict[str, Any]:
        """
        # Parameters

        sentence : `TextFieldTensors`, optional (default = `None`)
            A batch of independent sentences: the ids of their words by a `single_id` indexer, and
            those of their characters by an `elmo_scratch_characters` if the biLM reads them.
        windows : `Dict[str, torch.Tensor]`, optional (default = `None`)
            Or a batch of the loader `elmo_scratch_stream`: windows of running text. The states of
            the LSTMs are carried from window to window.

        # Returns

        `Dict[str, Any]`
            `loss`, shape `()`: the mean loss of a word over both directions, in nats; in training
            with the penalties, and multiplied by `loss_weight` and the share of the window that
            holds text. `num_tokens`,
            shape `()`: how many words each direction predicted; the weight of `loss` in an average
            over batches (`--batch-weight-key num_tokens`).
        """
        if windows is not None:
            predictions = self._of_windows(windows)
        elif sentence is not None:
            predictions = self._of_sentences(sentence)
        else:
            raise ValueError("expected a batch with the field `sentence` or `windows`")
        targets, num_left_to_right = predictions.targets, predictions.num_left_to_right
        # Losses stay in float32, even with the trainer's `use_amp`.
        states = self._dropped(predictions)
        with without_autocast(states.device):
            scored = self.softmax(states, targets)  # over (predicted,)
            loss = scored.loss
            if self.training and len(targets):
                loss = self._with_penalties(loss, states, predictions)
        if scored.is_exact:
            self._left_to_right(scored.losses[:num_left_to_right])
            self._right_to_left(scored.losses[num_left_to_right:])
        if scored.best.size(1):
            self._prediction(scored.best, targets)
        # AllenNLP averages the workers' gradients as if all had predicted the same number of words.
        share = len(targets) / (mean_over_workers(len(targets)) or 1.0)
        if self.training:
            # A word weighs the same in each window of an epoch. The mean over the few words of a
            # last one would throw weights far off: to an optimizer such as Adam it is a gradient
            # as large as any, and for rare words larger than all before.
            share *= mean_over_workers(predictions.fullness) * self._loss_weight
        return {"loss": loss * share, "num_tokens": torch.tensor(num_left_to_right)}

    def _dropped(self, predictions: Predictions) -> torch.Tensor:
        """The states as the softmax reads them, shape `(predicted, dim)`."""
        states = predictions.states
        states = states.to(torch.promote_types(states.dtype, torch.float32))
        if not (self._locked_dropout and self.training and self.dropout.p > 0.0):
            dropped: torch.Tensor = self.dropout(states)
            return dropped
        num_rows = 2 * len(predictions.last_layer.mask)  # of both directions
        masks = self.dropout(states.new_ones(num_rows, states.size(1)))
        return states * masks.index_select(0, predictions.rows)

    def _with_penalties(
        self, loss: torch.Tensor, states: torch.Tensor, predictions: Predictions
    ) -> torch.Tensor:
        """The training loss of a word with its penalties. `states` are those after dropout."""
        if self._activation_penalty > 0.0:
            loss = loss + self._activation_penalty * states.square().mean()
        if self._temporal_penalty > 0.0:
            change = predictions.last_layer.mean_square_change()
            loss = loss + self._temporal_penalty * change
        return loss

    def _of_sentences(self, sentence: TextFieldTensors) -> Predictions:
        mask = get_text_field_mask(sentence)  # (batch, tokens)
        by_name = {name: ids for tensors in sentence.values() for name, ids in tensors.items()}
        if "tokens" not in by_name:
            raise ConfigurationError(
                "the language model predicts words: add an indexer `single_id` to the "
                "`token_indexers` of the reader"
            )
        words = by_name["tokens"]  # (batch, tokens)
        ids = self.bilm.token_encoder.token_ids(sentence)
        return predict_sentences(self.bilm, ids, words, mask, self._begin, self._end)

    def _of_windows(self, windows: Dict[str, torch.Tensor]) -> Predictions:
        if bool(windows["is_first"]):
            self._running_text.forget()
        if self.training:
            self._running_text.forget_some(self._state_reset_probability)
        return predict_windows(self.bilm, windows, self._running_text, self._begin, self._end)

    def get_metrics(self, reset: bool = False) -> Dict[str, Any]:
        """
        Returns `perplexity` (the exponential of the mean of both directions' losses),
        `perplexity_left_to_right` and `perplexity_right_to_left`, where the exact softmax was
        computed, and the accuracies of the best guess and the five best, `top_1_accuracy` and
        `top_5_accuracy`, where there were guesses.

        At the end of an epoch (`reset`) also `loss_left_to_right` and `loss_right_to_left`, the
        mean losses of a word in nats, `macro_precision`, `macro_recall` and `macro_f1`,
        `confusion`, the counts of true words in rows and guessed words in columns, and
        `confusion_words`, the names of both.
        """
        metrics: Dict[str, Any] = {}
        if self._left_to_right.num_tokens or self._right_to_left.num_tokens:
            metrics.update(self._perplexities(reset))
        if self._prediction.num_predicted:
            metrics.update(self._guesses(reset))
        if reset:
            self._left_to_right.reset()
            self._right_to_left.reset()
            self._prediction.reset()
        return metrics

    def _perplexities(self, is_end: bool) -> Dict[str, float]:
        losses = {
            "left_to_right": self._left_to_right.loss,
            "right_to_left": self._right_to_left.loss,
        }
        metrics = {"perplexity": Perplexity.of_loss(sum(losses.values()) / 2)}
        for direction, loss in losses.items():
            metrics[f"perplexity_{direction}"] = Perplexity.of_loss(loss)
        if is_end:
            metrics.update({f"loss_{direction}": loss for direction, loss in losses.items()})
        return metrics

    def _guesses(self, is_end: bool) -> Dict[str, Any]:
        metrics: Dict[str, Any] = {
            "top_1_accuracy": self._prediction.top_1_accuracy,
            "top_5_accuracy": self._prediction.top_5_accuracy,
        }
        if is_end:
            macro = self._prediction.macro()
            metrics["macro_precision"] = macro.precision
            metrics["macro_recall"] = macro.recall
            metrics["macro_f1"] = macro.f1
            metrics["confusion"] = self._prediction.confusion.tolist()
            metrics["confusion_words"] = [*self._confusion_words, "(the rest)"]
        return metrics


def mean_over_workers(number: float) -> float:
    """
    Returns the mean of a number over the workers of a distributed training, or else the number.
    """
    if not is_distributed():
        return number
    return dist_reduce_sum(number) / torch.distributed.get_world_size()


def start_words(
    encoder: TokenEncoder, words: WordList, pretrained_file: Union[str, PathLike]
) -> None:
    """
    Copies the vectors of a file, as `read_static_vectors` reads it, to the rows of its words in the
    token encoder `word`. All other words, and the padding, keep their vectors.

    Raises `ConfigurationError` if the encoder reads characters, or the file can't be read, has
    vectors of another size, or has none of the words.
    """
    if not isinstance(encoder, WordEncoder):
        raise ConfigurationError(
            "`pretrained_file` holds word vectors, so it needs the token encoder `word`, but the "
            f"config has {type(encoder).__name__}"
        )
    ids = {word: number for number, word in enumerate(words.words) if number > 0}
    found = read_static_vectors(pretrained_file, ids)
    dim = found.vectors.shape[1]
    if dim != encoder.dim:
        raise ConfigurationError(
            f"{pretrained_file}: expected vectors of {encoder.dim} numbers, the `dim` of the token "
            f"encoder, but they have {dim}. Set the encoder's `dim` to {dim}."
        )
    if not found.words:
        raise ConfigurationError(
            f"{pretrained_file}: it has a vector for none of the {len(ids)} words of the "
            "vocabulary. Are they spelled alike, in lower case or not?"
        )
    rows = torch.tensor([ids[word] for word in found.words])
    with torch.no_grad():
        encoder.embedding.weight[rows] = torch.from_numpy(found.vectors)
    logger.info("%d of %d words start from the vectors in %s", len(rows), len(ids), pretrained_file)
