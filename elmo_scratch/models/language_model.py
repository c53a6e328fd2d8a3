"""Pre-training: a bidirectional language model over the words of a vocabulary."""

from typing import Any, Dict, Optional

import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules.token_embedders import Embedding
from allennlp.nn.util import get_text_field_mask, get_token_ids_from_text_field_tensors

from elmo_scratch.interop.bilm_archive import LANGUAGE_MODEL
from elmo_scratch.interop.word_list import BEGIN_WORD, END_WORD, WordList
from elmo_scratch.metrics import Perplexity, WordPrediction
from elmo_scratch.modules import BiLm, OutputSoftmax
from elmo_scratch.modules.boundaries import add_boundaries
from elmo_scratch.modules.softmaxes import FullSoftmax
from elmo_scratch.modules.token_encoders import WordEncoder


@Model.register(LANGUAGE_MODEL)
class LanguageModel(Model):
    """
    Predicts each word, and the end, of a sentence from the words before it, and each word, and
    the beginning, from the words after it. Both directions share one softmax.

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
    namespace : `str`, optional (default = `"tokens"`)
        The namespace of the words in `vocab`.
    pretrained_file : `str`, optional (default = `None`)
        A text file of word vectors, in the format of word2vec, that the token encoder `word`
        starts from. Words that it lacks start at random.
    num_confusion_words : `int`, optional (default = `20`)
        The confusion matrix tells this many of the most frequent words apart.

    # Source

    Peters et al. 2018, section 3.1.
    """

    _begin: torch.Tensor
    _end: torch.Tensor

    def __init__(
        self,
        vocab: Vocabulary,
        *,
        bilm: Lazy[BiLm],
        softmax: Lazy[OutputSoftmax] = Lazy(FullSoftmax),
        dropout: float = 0.1,
        namespace: str = "tokens",
        pretrained_file: Optional[str] = None,
        num_confusion_words: int = 20,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, **kwargs)
        words = WordList.from_vocabulary(vocab, namespace)
        sizes = words.sizes()
        self.bilm = bilm.construct(**sizes)
        self.softmax = softmax.construct(num_words=sizes["num_words"], dim=self.bilm.dim)
        self.dropout = torch.nn.Dropout(dropout)
        self.register_buffer("_begin", torch.tensor(sizes["begin_id"]), persistent=False)
        self.register_buffer("_end", torch.tensor(sizes["end_id"]), persistent=False)
        if pretrained_file is not None:
            self._start_from(pretrained_file, namespace)
        # A vocabulary counts its words in order of frequency.
        self._confusion_words = [
            word for word in words.words[2:] if word not in (BEGIN_WORD, END_WORD)
        ][:num_confusion_words]
        self._left_to_right, self._right_to_left = Perplexity(), Perplexity()
        self._prediction = WordPrediction(
            sizes["num_words"],
            torch.tensor(
                [vocab.get_token_index(word, namespace) for word in self._confusion_words],
                dtype=torch.long,
            ),
        )

    def forward(self, sentence: TextFieldTensors) -> Dict[str, torch.Tensor]:
        """
        # Parameters

        sentence : `TextFieldTensors`
            The ids of a batch of sentences, by one `single_id` indexer.

        # Returns

        `Dict[str, torch.Tensor]`
            `loss`, shape `()`: the mean over both directions of the loss of a word, in nats.
        """
        mask = get_text_field_mask(sentence)  # (batch, tokens)
        ids = get_token_ids_from_text_field_tensors(sentence)  # (batch, tokens)
        output = self.bilm(ids, mask)
        words = add_boundaries(ids, mask, self._begin, self._end).ids  # (batch, positions)
        top = self.dropout(output.layers[-1])  # (batch, positions, width)
        ahead, back = top.split(self.bilm.dim, dim=-1)  # each (batch, positions, dim)
        # Every position but the first is predicted from its left, and every one but the last from
        # its right: as many predictions in both directions, `followed` marks where.
        followed = output.mask[:, 1:]  # (batch, positions - 1)
        states = torch.cat([ahead[:, :-1][followed], back[:, 1:][followed]])
        targets = torch.cat([words[:, 1:][followed], words[:, :-1][followed]])
        scored = self.softmax(states, targets)  # over (2 * predicted,)
        ahead_losses, back_losses = scored.losses.chunk(2)
        self._left_to_right(ahead_losses)
        self._right_to_left(back_losses)
        self._prediction(scored.best, targets)
        return {"loss": scored.loss}

    def get_metrics(self, reset: bool = False) -> Dict[str, Any]:
        """
        # Returns

        `Dict[str, Any]`
            Perplexities (over both directions, left to right, right to left) and the accuracy of
            the first and of the five best guesses. At the end of an epoch (`reset`) also the mean
            losses behind the perplexities in nats, macro precision, recall and F1, `confusion`, the
            counts of true words in rows and guessed words in columns, and `confusion_words`, the
            names of both.
        """
        both = (self._left_to_right.loss + self._right_to_left.loss) / 2
        metrics: Dict[str, Any] = {
            "perplexity": Perplexity.of_loss(both),
            "perplexity_left_to_right": self._left_to_right.perplexity,
            "perplexity_right_to_left": self._right_to_left.perplexity,
            "top_1_accuracy": self._prediction.top_1_accuracy,
            "top_5_accuracy": self._prediction.top_5_accuracy,
        }
        if reset:
            macro = self._prediction.macro()
            metrics["loss_left_to_right"] = self._left_to_right.loss
            metrics["loss_right_to_left"] = self._right_to_left.loss
            metrics["macro_precision"] = macro.precision
            metrics["macro_recall"] = macro.recall
            metrics["macro_f1"] = macro.f1
            metrics["confusion"] = self._prediction.confusion.tolist()
            metrics["confusion_words"] = [*self._confusion_words, "(the rest)"]
            self._left_to_right.reset()
            self._right_to_left.reset()
            self._prediction.reset()
        return metrics

    def _start_from(self, pretrained_file: str, namespace: str) -> None:
        """Copies word vectors into the token encoder."""
        encoder = self.bilm.token_encoder
        if not isinstance(encoder, WordEncoder):
            raise ConfigurationError(
                "`pretrained_file` holds word vectors, so it needs the token encoder `word`, but "
                f"the config has {type(encoder).__name__}"
            )
        vectors = Embedding(
            embedding_dim=encoder.dim,
            vocab=self.vocab,
            vocab_namespace=namespace,
            pretrained_file=pretrained_file,
            padding_index=0,
        )
        encoder.embedding.load_state_dict({"weight": vectors.weight.detach()})
