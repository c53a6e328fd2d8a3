from pathlib import Path

import pytest

from elmo_scratch.search.trial_folder import TrialFolder


def test_it_is_abstract(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="abstract"):
        TrialFolder(tmp_path)  # type: ignore[abstract]
