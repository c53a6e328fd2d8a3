"""A data loader that tells before it draws."""

from typing import Callable, Iterator

import torch
from allennlp.data import DataLoader, Instance, TensorDict, Vocabulary


class WatchedLoader(DataLoader):
    """
    Yields the batches of another loader, and calls a function right before each of them is drawn.

    # Parameters

    loader : `DataLoader`
        Where the batches come from.
    before_drawing : `Callable[[int, int], None]`
        Called with the number of epochs completed and the number of batches drawn in this epoch:
        before anything of an epoch is drawn, before each further batch, and before the end.
    at_end : `Callable[[int, int], None]`
        Called with the same where an epoch has no further batch.
    """

    def __init__(
        self,
        loader: DataLoader,
        before_drawing: Callable[[int, int], None],
        at_end: Callable[[int, int], None],
    ) -> None:
        self.loader = loader
        self.num_drawn = 0
        self._before_drawing = before_drawing
        self._at_end = at_end
        self._epochs_begun = 0

    def __iter__(self) -> Iterator[TensorDict]:
        epoch = self._epochs_begun
        self._epochs_begun += 1
        self.num_drawn = 0
        self._before_drawing(epoch, 0)
        for batch in self.loader:
            self.num_drawn += 1
            yield batch
            self._before_drawing(epoch, self.num_drawn)
        self._at_end(epoch, self.num_drawn)

    def __len__(self) -> int:
        return len(self.loader)

    def iter_instances(self) -> Iterator[Instance]:
        return self.loader.iter_instances()

    def index_with(self, vocab: Vocabulary) -> None:
        self.loader.index_with(vocab)

    def set_target_device(self, device: torch.device) -> None:
        self.loader.set_target_device(device)
