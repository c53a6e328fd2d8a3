"""The training of a trial that ended while nobody looked."""

from typing import List, Optional

from allennlp.models.archival import archive_model

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

    def pack(self, more: Optional[List[str]]) -> None:
        """
        Makes the archive, where the training was ended between its result and that.

        # Parameters

        more : `List[str]`, optional
            What else of the folder goes into it: `include_in_archive` of the config.
        """
        is_missing = not (self.folder / "model.tar.gz").exists()
        if is_missing and (self.folder / "best.th").exists():
            archive_model(self.folder, include_in_archive=more)

    def _untold(self) -> List[str]:
        return [] if self.has_result() else [NO_RESULT]
