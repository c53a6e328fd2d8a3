"""Which layers of a biLM a task comes to rely on, followed through its training."""

from typing import Any, Dict, List, Optional

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import TensorDict
from allennlp.training import GradientDescentTrainer
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.callbacks.log_writer import LogWriterCallback

from elmo_scratch.modules import LayerMix
from elmo_scratch.training.averaged_weights import averaged_weights
from elmo_scratch.training.epoch_metrics import add_to_epoch_metrics


@TrainerCallback.register("elmo_scratch_mix_shares")
class MixShares(TrainerCallback):
    """
    Adds to the metrics of each epoch, as they are at its end and in the model that is kept of it:

    - `layer_share_<mix>.<layer>`, how much of what a mix gives each layer makes up; layer 0 is the
      token layer;
    - `gamma_<mix>`, its scale, where it has one.

    Mixes are called by their place in the model, such as
    `text_field_embedder.token_embedder_elmo.mix`. Where the trainer has a callback for TensorBoard
    or Weights & Biases, those of the weights as they are trained go there, from the first batch on.

    Registered as a `TrainerCallback` with name "elmo_scratch_mix_shares".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.
    every_num_batches : `int`, optional (default = `100`)
        How many batches of the training lie between two points of a curve in TensorBoard.

    # Raises

    ConfigurationError
        If that is less than 1; later, if the model mixes no layers.
    """

    def __init__(self, serialization_dir: str, every_num_batches: int = 100) -> None:
        super().__init__(serialization_dir)
        if every_num_batches < 1:
            raise ConfigurationError(
                f"expected an `every_num_batches` of 1 or more, but got {every_num_batches}"
            )
        self._every = every_num_batches

    def on_start(
        self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any
    ) -> None:
        super().on_start(trainer, is_primary, **kwargs)
        if not mix_numbers(trainer.model):
            raise ConfigurationError(
                "`elmo_scratch_mix_shares` needs a model with an embedder that mixes the layers of "
                f"a biLM, but {type(trainer.model).__name__} has none"
            )

    def on_batch(
        self,
        trainer: GradientDescentTrainer,
        batch_inputs: List[TensorDict],
        batch_outputs: List[Dict[str, Any]],
        batch_metrics: Dict[str, Any],
        epoch: int,
        batch_number: int,
        is_training: bool,
        is_primary: bool = True,
        batch_grad_norm: Optional[float] = None,
        **kwargs: Any,
    ) -> None:
        if is_training and is_primary and (trainer._total_batches_completed - 1) % self._every == 0:
            for writer in trainer._callbacks:
                if isinstance(writer, LogWriterCallback):
                    writer.log_scalars(mix_numbers(trainer.model), log_prefix="mix")

    def on_epoch(
        self,
        trainer: GradientDescentTrainer,
        metrics: Dict[str, Any],
        epoch: int,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        if is_primary:
            with averaged_weights(trainer):
                numbers = mix_numbers(trainer.model)
            add_to_epoch_metrics(self.serialization_dir, metrics, epoch, numbers)


def mix_numbers(model: torch.nn.Module) -> Dict[str, float]:
    """
    # Returns

    `Dict[str, float]`
        Of every mix of the model, `layer_share_<mix>.<layer>` of each layer, and `gamma_<mix>` if
        it has a scale.
    """
    numbers: Dict[str, float] = {}
    for name, module in model.named_modules():
        if isinstance(module, LayerMix):
            for layer, share in enumerate(module.shares().tolist()):
                numbers[f"layer_share_{name}.{layer}"] = share
            gamma = getattr(module, "gamma", None)
            if gamma is not None:
                numbers[f"gamma_{name}"] = gamma.item()
    return numbers
