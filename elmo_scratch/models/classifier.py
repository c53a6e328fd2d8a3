"""A model of text classification, and a pooling for it."""

from typing import Any, Dict, Optional, Tuple

import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError, check_dimensions_match
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import Seq2SeqEncoder, Seq2VecEncoder, TextFieldEmbedder
from allennlp.modules.seq2seq_encoders import PassThroughEncoder
from allennlp.nn import InitializerApplicator
from allennlp.nn.util import (
    get_final_encoder_states,
    get_text_field_mask,
    masked_max,
    masked_mean,
)

from elmo_scratch.metrics import ConfusionMatrix

INPUT_SIZES = ("embedding_dim", "input_size", "input_dim")
"""What AllenNLP's encoders call the width of what they read."""


@Seq2VecEncoder.register("elmo_scratch_pooling")
class ConcatenatedPooling(Seq2VecEncoder):
    """
    Pools the vectors of a text in three ways, side by side: the last one, the maximum and the mean
    of each number.

    Registered as a `Seq2VecEncoder` with name "elmo_scratch_pooling".

    # Parameters

    embedding_dim : `int`
        The width of a vector. The classifier supplies it.
    bidirectional : `bool`, optional (default = `True`)
        Whether the second half of a vector reads the text from its end, as that of a biLM or of a
        bidirectional LSTM does: the last vector is then the first half at the end of the text and
        the second half at its beginning. `False` where a word vector stands beside ELMo's, since
        the halves are others then.

    # Raises

    ConfigurationError
        If `embedding_dim` is below 1, or odd and `bidirectional` true.

    # Source

    Howard and Ruder 2018, "Universal Language Model Fine-tuning for Text Classification", section
    3.3, "Concat pooling".
    """

    def __init__(self, embedding_dim: int, bidirectional: bool = True) -> None:
        super().__init__()
        if embedding_dim < 1 or (bidirectional and embedding_dim % 2):
            kind = "an even `embedding_dim`" if bidirectional else "an `embedding_dim`"
            raise ConfigurationError(f"expected {kind} of 1 or more, but got {embedding_dim}")
        self._embedding_dim = embedding_dim
        self._bidirectional = bidirectional

    def get_input_dim(self) -> int:
        return self._embedding_dim

    def get_output_dim(self) -> int:
        return 3 * self._embedding_dim

    def forward(self, tokens: torch.Tensor, mask: torch.BoolTensor) -> torch.Tensor:
        """
        Shape `(batch, tokens, embedding_dim)` and mask `(batch, tokens)`, at least one token in
        each row → `(batch, 3 * embedding_dim)`: last, maximum, mean.
        """
        last = get_final_encoder_states(tokens, mask, self._bidirectional)
        is_token: torch.BoolTensor = mask.unsqueeze(-1)  # type: ignore[assignment]
        pooled = masked_max(tokens, is_token, dim=1), masked_mean(tokens, is_token, dim=1)
        return torch.cat([last, *pooled], dim=1)


@Model.register("elmo_scratch_classifier", constructor="with_derived_sizes")
class Classifier(Model):
    """
    Embeds a text, encodes it in context, pools it to one vector and classifies that. Two embedders
    side by side, a word's own vector and ELMo, make the `[x; ELMo]` of the paper.

    Registered as a `Model` with name "elmo_scratch_classifier". A config may leave out the width of
    what its encoders read, their `embedding_dim`, `input_size` or `input_dim`: it is that of the
    part before.

    # Parameters

    vocab : `Vocabulary`
        Its namespace `labels` names the classes.
    text_field_embedder : `TextFieldEmbedder`
        Embeds tokens.
    seq2vec_encoder : `Seq2VecEncoder`
        Pools the vectors of a text.
    seq2seq_encoder : `Seq2SeqEncoder`, optional (default = `None`)
        Encodes the vectors of a text before they are pooled. `None` leaves them as they are.
    dropout : `float`, optional (default = `0.0`)
        Share of the embedded tokens and of the pooled vector that is dropped in training.
    label_smoothing : `float`, optional (default = `0.0`)
        In training, the share of the probability that goes evenly to all classes instead of the
        right one (Szegedy et al. 2016, section 7), in `[0, 1)`.
    initializer : `InitializerApplicator`, optional (default = `None`)
        Draws the weights anew whose names it matches. `None` leaves them as the parts drew them.

    # Raises

    ConfigurationError
        If `label_smoothing` is out of its range, or a part's output has another width than the next
        one's input.

    # Source

    Peters et al. 2018, section 3.3.
    """

    default_predictor = "ag_news"

    def __init__(
        self,
        vocab: Vocabulary,
        *,
        text_field_embedder: TextFieldEmbedder,
        seq2vec_encoder: Seq2VecEncoder,
        seq2seq_encoder: Optional[Seq2SeqEncoder] = None,
        dropout: float = 0.0,
        label_smoothing: float = 0.0,
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, **kwargs)
        if not 0.0 <= label_smoothing < 1.0:
            raise ConfigurationError(
                f"expected `label_smoothing` of 0 or more and below 1, but got {label_smoothing}"
            )
        self._label_smoothing = label_smoothing
        self.text_field_embedder = text_field_embedder
        # A biLM adds its words to the vocabulary, also where an embedder was built before it.
        self.extend_embedder_vocab()
        self.seq2seq_encoder = seq2seq_encoder or PassThroughEncoder(
            text_field_embedder.get_output_dim()
        )
        check_dimensions_match(
            text_field_embedder.get_output_dim(),
            self.seq2seq_encoder.get_input_dim(),
            "the vectors of tokens",
            "the input of `seq2seq_encoder`",
        )
        check_dimensions_match(
            self.seq2seq_encoder.get_output_dim(),
            seq2vec_encoder.get_input_dim(),
            "the vectors of tokens in context",
            "the input of `seq2vec_encoder`, its `embedding_dim`",
        )
        self.seq2vec_encoder = seq2vec_encoder
        self.dropout = torch.nn.Dropout(dropout)
        self._class_names = [
            name for _, name in sorted(vocab.get_index_to_token_vocabulary("labels").items())
        ]
        self.output = torch.nn.Linear(seq2vec_encoder.get_output_dim(), len(self._class_names))
        self._confusion = ConfusionMatrix(len(self._class_names))
        if initializer is not None:
            initializer(self)

    @classmethod
    def with_derived_sizes(
        cls,
        vocab: Vocabulary,
        *,
        text_field_embedder: TextFieldEmbedder,
        seq2vec_encoder: Lazy[Seq2VecEncoder],
        seq2seq_encoder: Optional[Lazy[Seq2SeqEncoder]] = None,
        dropout: float = 0.0,
        label_smoothing: float = 0.0,
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> "Classifier":
        """The classifier of a config; the parameters are those of the class."""
        width = text_field_embedder.get_output_dim()
        in_context: Optional[Seq2SeqEncoder] = None
        if _states_its_size(seq2vec_encoder):
            # In the order in which configs without derived sizes have always drawn their weights.
            pooling = seq2vec_encoder.construct()
            if seq2seq_encoder is not None:
                in_context = _reading(width, seq2seq_encoder)
        else:
            if seq2seq_encoder is not None:
                in_context = _reading(width, seq2seq_encoder)
                width = in_context.get_output_dim()
            pooling = _reading(width, seq2vec_encoder)
        return cls(
            vocab,
            text_field_embedder=text_field_embedder,
            seq2vec_encoder=pooling,
            seq2seq_encoder=in_context,
            dropout=dropout,
            label_smoothing=label_smoothing,
            initializer=initializer,
            **kwargs,
        )

    def forward(
        self, text: TextFieldTensors, label: Optional[torch.Tensor] = None
    ) -> Dict[str, torch.Tensor]:
        """
        # Parameters

        text : `TextFieldTensors`
            A batch of texts.
        label : `torch.Tensor`, optional (default = `None`)
            Shape `(batch,)`: the ids of their classes.

        # Returns

        `Dict[str, torch.Tensor]`
            `probabilities`, shape `(batch, classes)`; with `label` also `loss`, shape `()`, the
            mean cross entropy in nats, in training with smoothed labels; in training also
            `num_tokens`, shape `()`, the number of tokens in the batch, for `elmo_scratch_speed`.
        """
        mask: torch.Tensor = get_text_field_mask(text)  # (batch, tokens)
        num_tokens = mask.sum()
        tokens = self.dropout(self.text_field_embedder(text))  # (batch, tokens, embedding)
        tokens, mask = _with_a_token_in_each(tokens, mask)
        encoded = self.seq2seq_encoder(tokens, mask)  # (batch, tokens, encoding)
        pooled = self.dropout(self.seq2vec_encoder(encoded, mask))  # (batch, pooled)
        scores = self.output(pooled)  # (batch, classes)
        output = {"probabilities": torch.softmax(scores, dim=-1)}
        if label is not None:
            smoothing = self._label_smoothing if self.training else 0.0
            output["loss"] = torch.nn.functional.cross_entropy(
                scores, label, label_smoothing=smoothing
            )
            self._confusion(scores.argmax(dim=-1), label)
            if self.training:
                output["num_tokens"] = num_tokens
        return output

    def make_output_human_readable(self, output_dict: Dict[str, torch.Tensor]) -> Dict[str, Any]:
        """
        Returns for each text `label`, the name of the most probable class, and `probabilities`, a
        map from the name of a class to its probability. A loss that gradients are computed of, as
        by AllenNLP's interpreters, stays.
        """
        probabilities = output_dict["probabilities"].tolist()
        readable: Dict[str, Any] = {
            "label": [self._class_names[row.index(max(row))] for row in probabilities],
            "probabilities": [
                dict(zip(self._class_names, row, strict=True)) for row in probabilities
            ],
        }
        loss = output_dict.get("loss")
        if loss is not None and loss.requires_grad:
            readable["loss"] = loss
        return readable

    def get_metrics(self, reset: bool = False) -> Dict[str, Any]:
        """
        Returns `accuracy`, `macro_precision`, `macro_recall` and `macro_f1`. At the end of an epoch
        (`reset`) also `precision_<class>`, `recall_<class>` and `f1_<class>` of each class,
        `confusion`, the counts of true classes in rows and predicted ones in columns, and
        `confusion_classes`, the names of both.
        """
        scores = self._confusion.scores()
        macro = scores.macro()
        metrics: Dict[str, Any] = {
            "accuracy": self._confusion.accuracy(),
            "macro_precision": macro.precision,
            "macro_recall": macro.recall,
            "macro_f1": macro.f1,
        }
        if reset:
            for number, name in enumerate(self._class_names):
                metrics[f"precision_{name}"] = scores.precision[number].item()
                metrics[f"recall_{name}"] = scores.recall[number].item()
                metrics[f"f1_{name}"] = scores.f1[number].item()
            metrics["confusion"] = self._confusion.counts.tolist()
            metrics["confusion_classes"] = list(self._class_names)
            self._confusion.reset()
        return metrics


def _states_its_size(encoder: Lazy[Any]) -> bool:
    return any(name in encoder._params for name in INPUT_SIZES)


def _reading(width: int, encoder: Lazy[Any]) -> Any:
    """The encoder of a config, which reads vectors of a width if it states no other."""
    if _states_its_size(encoder):
        return encoder.construct()
    return encoder.construct(**dict.fromkeys(INPUT_SIZES, width))


def _with_a_token_in_each(
    tokens: torch.Tensor, mask: torch.Tensor
) -> Tuple[torch.Tensor, torch.Tensor]:
    """Gives an empty text one token, a vector of zeros: an LSTM can't read a batch without any."""
    empty = ~mask.any(dim=1)  # (batch,)
    if empty.any():
        missing = max(1 - mask.size(1), 0)
        tokens = torch.nn.functional.pad(tokens, (0, 0, 0, missing))
        mask = torch.nn.functional.pad(mask, (0, missing))
        first = torch.arange(mask.size(1), device=mask.device) == 0  # (tokens,)
        added = empty.unsqueeze(1) & first  # (batch, tokens)
        tokens, mask = tokens.masked_fill(added.unsqueeze(-1), 0.0), mask | added
    return tokens, mask
