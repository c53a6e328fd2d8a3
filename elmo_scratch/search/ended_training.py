"""The training of a trial that ended while nobody looked."""

from typing import List

from elmo_scratch.search.trial_folder import NO_RESULT, TrialFolder


class EndedTraining(TrialFolder):
    """
    A training that is over, as far as its folder tells.

    # Parameters

    folder : `Path`
        Where it wrote to.
    """

    def has_ended(self) -> bool:
        """As in `TrialFolder`."""
        return True

    def has_failed(self) -> bool:
        """As in `TrialFolder`."""
        return not self.has_result()

    def stop(self) -> None:
        """As in `TrialFolder`."""

    def _untold(self) -> List[str]:
        return [] if self.has_result() else [NO_RESULT]
