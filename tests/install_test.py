"""A release is built, and installed by the lines of docs/install.md, as they stand there."""

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from typing import Dict, Iterator, List
from zipfile import ZipFile

import h5py
import pytest
from packaging.metadata import Metadata

from elmo_scratch import VERSION
from elmo_scratch.kernels.library import KERNELS, LIBRARY
from tests import PROJECT_ROOT

pytestmark = pytest.mark.install

OWN_PROGRAMS = Path(sys.executable).parent
"""Where the environment that runs the tests has its programs."""

COMPILERS = re.compile(r"(.*-)?(cc|c\+\+|gcc|g\+\+|clang|clang\+\+)(-[\d.]+)?")
"""The names of programs that an installation could compile by."""

LIBRARY_NAME = str(KERNELS.relative_to(PROJECT_ROOT))

TEXT = PROJECT_ROOT / "fixtures" / "text" / "sentences.txt"

MODEL = PROJECT_ROOT / "fixtures" / "elmo" / "residual"

WARNING = "Compiled code is missing"


def lines_in_docs(name: str) -> str:
    """The block of shell lines that follows the comment `<!-- install:NAME -->`."""
    page = (PROJECT_ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    (lines,) = re.findall(rf"<!-- install:{name} -->\n```bash\n(.*?)```", page, re.DOTALL)
    return lines


def tracked_files() -> List[str]:
    """What a fresh clone would hold, with the changes that are not committed yet."""
    git = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(git, cwd=PROJECT_ROOT, check=True, capture_output=True, text=True)
    names = filter(None, listed.stdout.split("\0"))
    return [name for name in names if (PROJECT_ROOT / name).is_file()]


def copy_of_the_checkout(folder: Path) -> Path:
    for name in tracked_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT_ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout in which `make dist` has built a release."""
    if sys.platform != "linux" or shutil.which("c++") is None:
        pytest.skip("releases are built on Linux, by a C++ compiler")
    folder = copy_of_the_checkout(tmp_path_factory.mktemp("release") / "checkout")
    # `-o`: with the environment that runs the tests, not with one of its own.
    make = ["make", "-o", "setup", "dist", f"BIN={OWN_PROGRAMS}"]
    made = subprocess.run(make, cwd=folder, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


def release_in(folder: Path, pattern: str) -> Path:
    (path,) = (folder / "dist").glob(pattern)
    return path


def shell_of(environment: Path, programs: str) -> Dict[str, str]:
    """The variables of a shell with these programs, in which a virtual environment is active."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    path = os.pathsep.join([str(environment / "bin"), programs])
    variables.update(PATH=path, VIRTUAL_ENV=str(environment), PIP_NO_COMPILE="1")
    # uv doesn't read what pip is told of places that have packages.
    return {"UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", ""), **variables}


def printed(command: List[str], folder: Path, shell: Dict[str, str]) -> str:
    """What a command that succeeds prints, its warnings included."""
    folder.mkdir(exist_ok=True)
    # By its path, since a program's name is looked up in the PATH of this process.
    program = shutil.which(command[0], path=shell["PATH"])
    assert program is not None, command[0]
    done = subprocess.run(
        [program, *command[1:]],
        cwd=folder,
        env=shell,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def without_compilers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with all programs of this machine but compilers, and of this environment only uv."""
    folder = tmp_path_factory.mktemp("programs")
    found = [OWN_PROGRAMS / "uv"]
    for place in map(Path, os.environ["PATH"].split(os.pathsep)):
        if place.is_dir() and place != OWN_PROGRAMS:
            found.extend(place.iterdir())
    for program in filter(Path.is_file, found):
        if not COMPILERS.fullmatch(program.name) and not (folder / program.name).is_symlink():
            (folder / program.name).symlink_to(program)
    return str(folder)


def empty_environment(folder: Path, shell: Dict[str, str]) -> None:
    """
    A new virtual environment. Where PyTorch's own registry can't be reached, it has the release of
    PyTorch that the first line names, from the registry that pip knows.
    """
    venv.create(folder, with_pip=True, symlinks=True)
    try:
        socket.getaddrinfo("download.pytorch.org", 443)
    except OSError:
        (release,) = re.findall(r"torch==[\d.]+", lines_in_docs("wheel"))
        printed(["pip", "install", "--quiet", release], folder, shell)


@pytest.fixture(scope="module")
def environment(
    checkout: Path, without_compilers: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """
    An environment that was empty before the lines for a wheel, without a compiler and outside the
    checkout. It goes with the tests of this file, since it is large.
    """
    folder = tmp_path_factory.mktemp("wheel")
    shell = shell_of(folder / "environment", without_compilers)
    empty_environment(folder / "environment", shell)
    follow_lines("wheel", checkout, folder, shell)
    yield folder / "environment"
    shutil.rmtree(folder)


def follow_lines(name: str, checkout: Path, folder: Path, shell: Dict[str, str]) -> None:
    """Follows the lines for a wheel or an sdist in a folder that has nothing else."""
    (folder / "dist").mkdir()
    pattern = {"wheel": "*.whl", "sdist": "*.tar.gz"}[name]
    shutil.copy(release_in(checkout, pattern), folder / "dist")
    printed(["pip", "uninstall", "--quiet", "--yes", "elmo-scratch"], folder, shell)
    printed(["bash", "-euo", "pipefail", "-c", lines_in_docs(name)], folder, shell)


def embed(folder: Path, shell: Dict[str, str]) -> str:
    """What `allennlp elmo` prints that embeds a text in this folder."""
    layers = folder / "layers.hdf5"
    layers.unlink(missing_ok=True)
    files = [f"--options-file={MODEL / 'options.json'}", f"--weight-file={MODEL / 'weights.hdf5'}"]
    said = printed(["allennlp", "elmo", str(TEXT), str(layers), "--all", *files], folder, shell)
    with h5py.File(layers) as file:
        assert file["0"].ndim == 3
    return said


def compiled_code(folder: Path, shell: Dict[str, str]) -> str:
    """The file of the compiled code that Python uses in this folder, or `None`."""
    script = "from elmo_scratch.kernels.library import LIBRARY as own; print(own and own._name)"
    return printed(["python", "-c", script], folder, shell).strip()


def test_a_wheel_has_all_files_of_the_package(checkout: Path) -> None:
    wheel = release_in(checkout, "*.whl")
    assert re.fullmatch(r"elmo_scratch-.*-py3-none-manylinux_2_\d+_\w+\.whl", wheel.name)
    native = str(Path(LIBRARY_NAME).parent)
    recipes = "training_config/bilm"
    expected = {
        name.replace(recipes, "elmo_scratch/own_text/configs")
        for name in tracked_files()
        if name.startswith(("elmo_scratch/", "elmo_scratch_compat/", recipes))
        and not name.startswith(native)
    }
    with ZipFile(wheel) as files:
        names = {name for name in files.namelist() if not name.endswith("/")}
        (info,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = Metadata.from_email(files.read(info), validate=True)
    own = {name for name in names if ".dist-info/" not in name}
    assert own == {*expected, LIBRARY_NAME}
    assert (metadata.name, str(metadata.version)) == ("elmo-scratch", VERSION)
    assert metadata.description and "allennlp" in (metadata.provides_extra or [])


def test_an_sdist_has_the_sources_and_no_tests(checkout: Path) -> None:
    with tarfile.open(release_in(checkout, "*.tar.gz")) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    for name in tracked_files():
        if name.startswith(("elmo_scratch/", "training_config/bilm/")):
            assert name in names or name.endswith(".md"), name
    assert not [name for name in names if name.startswith(("tests", "fixtures", ".", "docs"))]
    assert LIBRARY_NAME not in names


@pytest.mark.skipif(shutil.which("objdump") is None, reason="there is no objdump here")
def test_a_wheel_needs_no_more_than_avx2(checkout: Path, tmp_path: Path) -> None:
    """Newer instructions lie in functions that are called where the processor has them."""
    with ZipFile(release_in(checkout, "*.whl")) as files:
        library = files.extract(LIBRARY_NAME, tmp_path)
    newer = re.compile(r"%zmm|%[xy]mm(1[6-9]|2\d|3[01])\b|%k[0-7]\b|%tmm|\btile|\bldtilecfg")
    chosen = re.compile(
        r"of_avx512|of_bfloat16|\.arch_x86_64_v4|_avx512$|^(multiply|pack|read)_\w+_bfloat16"
    )
    found: Dict[str, bool] = {}
    function = ""
    for line in printed(["objdump", "-d", library], tmp_path, dict(os.environ)).splitlines():
        heading = re.match(r"[0-9a-f]+ <(.+)>:$", line)
        if heading:
            function = heading[1]
        found[function] = found.get(function, False) or bool(newer.search(line))
    if not any("of_avx512" in name for name in found):
        pytest.skip("this compiler or processor knows nothing newer")
    assert any(found.values())
    assert [name for name, is_newer in found.items() if is_newer and not chosen.search(name)] == []


def test_a_wheel_works_without_a_compiler_and_has_compiled_code(
    environment: Path, checkout: Path, without_compilers: str, tmp_path: Path
) -> None:
    shell = shell_of(environment, without_compilers)
    follow_lines("wheel", checkout, tmp_path, shell)
    assert WARNING not in embed(tmp_path, shell)
    assert compiled_code(tmp_path, shell).startswith(str(environment)) == (LIBRARY is not None)
    # The configs of recipes came along.
    own = ["allennlp", "elmo-train", str(TEXT), "-s", "own", "--recipe", "small", "--dry-run"]
    assert "recipe small: 10 epochs" in printed(own, tmp_path, shell)
    # In the checkout, which has no compiled code, Python takes the package from there.
    assert WARNING not in embed(checkout, shell)
    assert compiled_code(checkout, shell) == compiled_code(tmp_path, shell)


@pytest.mark.parametrize("has_compiler", [False, True])
def test_an_sdist_works_with_and_without_a_compiler(
    has_compiler: bool, environment: Path, checkout: Path, without_compilers: str, tmp_path: Path
) -> None:
    shell = shell_of(environment, os.environ["PATH"] if has_compiler else without_compilers)
    follow_lines("sdist", checkout, tmp_path, shell)
    is_compiled = compiled_code(tmp_path, shell) != "None"
    assert is_compiled == (has_compiler and LIBRARY is not None)
    is_missing = not has_compiler and platform.machine() == "x86_64"
    assert embed(tmp_path, shell).count(WARNING) == is_missing


@pytest.mark.parametrize("name", ["pip", "uv"])
def test_the_lines_in_a_checkout_install_what_works_without_it(
    name: str, request: pytest.FixtureRequest, without_compilers: str, tmp_path: Path
) -> None:
    if name == "uv" and shutil.which("uv", path=without_compilers) is None:
        pytest.skip("there is no uv here")
    if name == "pip":  # which has filled an empty environment already
        environment = request.getfixturevalue("environment")
        shell = shell_of(environment, without_compilers)
        printed(["pip", "uninstall", "--quiet", "--yes", "elmo-scratch"], tmp_path, shell)
    else:
        environment = tmp_path / "environment"
        shell = shell_of(environment, without_compilers)
        empty_environment(environment, shell)
    checkout = copy_of_the_checkout(tmp_path / "checkout")
    printed(["bash", "-euo", "pipefail", "-c", lines_in_docs(name)], checkout, shell)
    shutil.rmtree(checkout)
    embed(tmp_path, shell)
    shutil.rmtree(tmp_path / "environment", ignore_errors=True)
