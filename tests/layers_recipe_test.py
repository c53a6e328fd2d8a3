"""The recipe of docs/using/allennlp.md for the layers of a task, on data that are not as tidy."""

import re
from pathlib import Path

import pytest

from elmo_scratch.data import AgNewsReader
from elmo_scratch.export import InputText
from tests import FIXTURES_ROOT, PROJECT_ROOT


def test_the_texts_of_a_task_are_written_as_their_layers_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (PROJECT_ROOT / "docs" / "using" / "allennlp.md").read_text("utf-8")
    (recipe,) = re.findall(r"```python\n(from elmo_scratch.data import AgNews.*?)```", page, re.S)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    folder = tmp_path / "fixtures" / "news"
    folder.mkdir(parents=True)
    rows = ['"1","Nothing",""', '"2","Blank"," "', '"3","Wide","a b  \u2003 c\\\\d"']
    (folder / "train.csv").write_text("\n".join(rows), "utf-8")
    (folder / "dev.csv").write_bytes((FIXTURES_ROOT / "news" / "dev.csv").read_bytes())
    exec(compile(recipe, "docs/using/allennlp.md", "exec"), {})
    text = InputText("texts.txt", tmp_path / "runs" / "texts.txt")
    assert text.num_sentences == 1 + 80
    reader = AgNewsReader()
    read = [
        one["text"].tokens
        for name in ("train", "dev")
        for one in reader.read(folder / f"{name}.csv")
    ]
    assert text.num_tokens == sum(map(len, read)) and [] in read
