"""`docs/tutorial.md` shows by hand what the study runs; `.ci/run` runs the rest of the page."""

import json
import re
import shlex
from pathlib import Path
from typing import Any, List

from tests import PROJECT_ROOT
from tests.examples.ag_news_study import TRAIN

TUTORIAL = PROJECT_ROOT / "docs" / "tutorial.md"


def shown_commands(first_words: str) -> List[List[str]]:
    """The commands in the page's blocks that begin so, their words as a shell parts them."""
    blocks = re.findall(r"^```bash\n(.*?)^```", TUTORIAL.read_text("utf-8"), re.DOTALL | re.M)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.startswith(first_words)]


def test_the_vectors_are_made_as_the_study_makes_them(one_seed: List[Any]) -> None:
    planned = {task.name: task.command[3:] for task in one_seed}
    folders = {task.name: task.folder for task in one_seed}
    shown = shown_commands("allennlp elmo-vectors ")
    assert len(shown) == 2
    for method, (_, *words) in zip(("word2vec", "svd"), shown, strict=True):
        places = {str(TRAIN): "$AG_NEWS_TRAIN", str(folders[method] / "vectors.txt"): words[2]}
        expected = [places.get(word, word) for word in planned[method] if word != "--overwrite"]
        assert sorted(words) == sorted(expected)


def test_the_bilm_is_trained_as_the_study_trains_it(one_seed: List[Any]) -> None:
    (task,) = [one for one in one_seed if one.name == "words from word2vec"]
    (shown,) = shown_commands("allennlp train training_config/bilm/")
    assert Path(task.command[4]) == PROJECT_ROOT / shown[2]
    overrides = json.loads(shown[shown.index("--overrides") + 1])
    planned = json.loads(task.command[task.command.index("--overrides") + 1])
    assert overrides.keys() == planned.keys() == {"model.pretrained_file"}
