"""README.md's lines for an environment of one's own, as they stand there."""

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Dict, Iterator

import pytest

from elmo_scratch.kernels.library import KERNELS, LIBRARY, load_library
from tests import PROJECT_ROOT

pytestmark = pytest.mark.install


def lines_in_readme(name: str) -> str:
    """The block of shell lines that follows the comment `<!-- install:NAME -->`."""
    readme = (PROJECT_ROOT / "README.md").read_text(encoding="utf-8")
    (lines,) = re.findall(rf"<!-- install:{name} -->\n```bash\n(.*?)```", readme, re.DOTALL)
    return lines


def copy_of_the_checkout(folder: Path) -> Path:
    """What a fresh clone would hold, with the changes that are not committed yet."""
    git = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(git, cwd=PROJECT_ROOT, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (PROJECT_ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT_ROOT / name, folder / name)
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Path]:
    """A new and empty virtual environment. It goes with the test: installed, it is large."""
    venv.create(tmp_path / "environment", with_pip=True, symlinks=True)
    yield tmp_path / "environment"
    shutil.rmtree(tmp_path / "environment")


def activated(environment: Path) -> Dict[str, str]:
    """The variables of a shell in which this virtual environment is active."""
    path = os.pathsep.join([str(environment / "bin"), os.environ["PATH"]])
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**inherited, "PATH": path, "VIRTUAL_ENV": str(environment), "PIP_NO_COMPILE": "1"}


@pytest.mark.parametrize("name", ["pip", "uv"])
def test_readme_installs_into_an_empty_environment(
    name: str, environment: Path, tmp_path: Path
) -> None:
    if name == "uv" and shutil.which("uv") is None:
        pytest.skip("there is no uv here")
    shell = activated(environment)
    checkout = copy_of_the_checkout(tmp_path / "checkout")
    bash = ["bash", "-euo", "pipefail", "-c", lines_in_readme(name)]
    installed = subprocess.run(bash, cwd=checkout, env=shell, stderr=subprocess.PIPE, text=True)
    assert installed.returncode == 0, installed.stderr
    # What works now works without the checkout.
    shutil.rmtree(checkout)
    (tmp_path / "empty").mkdir()
    # By its path, since a program's name is looked up in the PATH of this process.
    allennlp = str(environment / "bin" / "allennlp")
    helped = subprocess.run(
        [allennlp, "elmo", "--help"],
        cwd=tmp_path / "empty",
        env=shell,
        capture_output=True,
        text=True,
    )
    assert helped.returncode == 0, helped.stderr
    assert helped.stdout.startswith("usage: allennlp elmo")
    # The configs of recipes came along.
    text = PROJECT_ROOT / "fixtures" / "text" / "sentences.txt"
    chosen = subprocess.run(
        [allennlp, "elmo-train", str(text), "-s", "own", "--recipe", "small", "--dry-run"],
        cwd=tmp_path / "empty",
        env=shell,
        capture_output=True,
        text=True,
    )
    assert chosen.returncode == 0, chosen.stderr
    assert "recipe small: 10 epochs" in chosen.stdout


@pytest.mark.parametrize("compiler, is_compiled", [("c++", True), ("false", False)])
def test_it_installs_with_and_without_a_compiler(
    compiler: str, is_compiled: bool, tmp_path: Path
) -> None:
    if shutil.which(compiler) is None or sys.platform != "linux":
        pytest.skip(f"there is no {compiler} here")
    checkout = copy_of_the_checkout(tmp_path / "checkout")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    built = subprocess.run(
        [*pip, "--target", str(tmp_path / "installed"), str(checkout)],
        env={**os.environ, "CC": compiler, "CXX": compiler},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    library = tmp_path / "installed" / KERNELS.relative_to(PROJECT_ROOT)
    assert library.is_file() == is_compiled
    assert (load_library(library) is not None) == (is_compiled and LIBRARY is not None)
    assert not list(library.parent.glob("*.cpp"))
    explore = tmp_path / "installed" / "elmo_scratch" / "explore"
    assert {page.name for page in explore.glob("page.*")} == {
        *("page.css", "page.html", "page.js", "page.py")
    }
