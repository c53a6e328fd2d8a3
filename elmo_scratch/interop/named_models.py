"""
Models by name: the small one that comes with the package, and the released ELMo models, which are
found in folders and on mirrors of the user's, or fetched once from where they were published.

The addresses are those of the page allennlp.org/elmo in its last version, at the address of the
bucket that AllenNLP 2.10 uses. Nobody has published checksums: the two SHA-256 come from Git LFS
pointers to the files in public repositories, `tamu-nlp/Dialogue-Act-Classification` for `original`
and `why2011btv/tf_1.2.0_event` for `small`. Sizes are known of the same files.

Models of the Hugging Face Hub are fetched and uploaded by its own library; no code in them is run.
"""

import difflib
import os
import re
import shutil
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple, Union

import h5py
from allennlp.common import file_utils
from allennlp.common.checks import ConfigurationError
from cached_path.util import find_latest_cached

from elmo_scratch.data.vocabulary_file import MARKS, read_vocabulary_file
from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.files.identity import identity_of
from elmo_scratch.files.paths import FetchError, cache_dir, download, is_address, local_file
from elmo_scratch.interop.official.options import Options
from elmo_scratch.interop.zipped_models import (
    OPTIONS_NAME,
    SOFTMAX_NAME,
    VOCABULARY_NAME,
    WEIGHTS_NAME,
    ModelFiles,
    SoftmaxFiles,
    official_files,
    softmax_files,
    unpacked,
)

PLACES_VARIABLE = "ELMO_SCRATCH_MODELS"
"""
The environment variable that names folders and addresses to look for named models at first, parted
by `:`. Each has the files `NAME/options.json` and `NAME/weights.hdf5`, and those by which the model
scores words, `NAME/softmax_weights.hdf5` and `NAME/vocab.txt`.
"""

BUCKETS = (
    "https://allennlp.s3.amazonaws.com/models/elmo/",
    "https://s3-us-west-2.amazonaws.com/allennlp/models/elmo/",
)
"""The addresses of the folder of published models. Both lead to the same files."""


class PublishedFile(NamedTuple):
    """The path of a file in the folder of published models, and its bytes and SHA-256 if known."""

    path: str
    size: Optional[int] = None
    sha256: Optional[str] = None

    def flaw_of(self, file: Path) -> str:
        """
        Tells in words what is wrong with a copy of the file; `""` if nothing is. A page that some
        networks answer every request with is told from a model.
        """
        if self.size is not None and file.stat().st_size != self.size:
            return f"it has {file.stat().st_size} bytes, but the published file has {self.size}"
        if self.sha256 is not None and identity_of([file]) != f"sha256:{self.sha256}":
            return "its SHA-256 is not that of the published file"
        if self.path.endswith(".json"):
            try:
                Options.from_json(file.read_bytes(), "what came")
            except ConfigurationError as error:
                return error.message
            return ""
        if self.path.endswith(".txt"):
            try:
                read_vocabulary_file(file)
            except ConfigurationError:
                return f"what came is no list of words with {', '.join(MARKS)}, one a line"
            return ""
        return "" if h5py.is_hdf5(file) else "what came is no HDF5 file"


class NamedModel(NamedTuple):
    """The published files of a model."""

    options: PublishedFile
    weights: PublishedFile


class NamedSoftmax(NamedTuple):
    """The published files by which a model scores words."""

    softmax: PublishedFile
    words: PublishedFile


def _of_sizes(
    sizes: str, options: Optional[int] = None, weights: Optional[int] = None, sha256: str = ""
) -> NamedModel:
    """
    A model of AllenNLP's own, which are called by their sizes; the bytes of its files and the
    SHA-256 of its weights, where they are known.
    """
    start = f"{sizes}/elmo_{sizes}"
    return NamedModel(
        PublishedFile(f"{start}_options.json", options),
        PublishedFile(f"{start}_weights.hdf5", weights, sha256 or None),
    )


_ORIGINAL = "2x4096_512_2048cnn_2xhighway"
"""The sizes of the two original models."""

NAMED_MODELS = {
    "small": _of_sizes(
        "2x1024_128_2048cnn_1xhighway",
        weights=54402456,
        sha256="747ba97abce8a5f446558369e10bb0f7931437a46867476fdd156f5d7f576229",
    ),
    "medium": _of_sizes("2x2048_256_2048cnn_1xhighway"),
    "original": _of_sizes(
        _ORIGINAL,
        options=336,
        weights=374434792,
        sha256="a6b92b9ccbb13fe489faacd2221c795d4bebe84b75f8aded9d85ea464fa5c994",
    ),
    "original-5.5B": _of_sizes(f"{_ORIGINAL}_5.5B"),
    "pt": NamedModel(
        PublishedFile("contributed/pt/wikipedia/options.json"),
        PublishedFile("contributed/pt/wikipedia/elmo_pt_weights.hdf5"),
    ),
    "pubmed": NamedModel(
        PublishedFile("contributed/pubmed/elmo_2x4096_512_2048cnn_2xhighway_options.json"),
        PublishedFile(
            "contributed/pubmed/elmo_2x4096_512_2048cnn_2xhighway_weights_PubMed_only.hdf5"
        ),
    ),
}
"""The released models: four of AllenNLP's for English, one of Portuguese, one of PubMed's texts."""

NAMED_SOFTMAXES = {
    "original": NamedSoftmax(
        PublishedFile(f"{_ORIGINAL}/elmo_{_ORIGINAL}_softmax_weights.hdf5"),
        PublishedFile(f"{_ORIGINAL}/vocab-2016-09-10.txt"),
    ),
    "original-5.5B": NamedSoftmax(
        PublishedFile(f"{_ORIGINAL}_5.5B/elmo_{_ORIGINAL}_5.5B_softmax_weights.hdf5"),
        PublishedFile(f"{_ORIGINAL}_5.5B/tf_checkpoint/vocab-enwiki-news-500000.txt"),
    ),
}
"""The softmaxes of released models. The others were published without one."""

PACKAGED_MODELS = {"tiny": Path(__file__).parent / "tiny"}
"""The model folders that come with the package. Its card says what the model is."""

DEFAULT_MODEL = "original"
"""The model that AllenNLP took where none was named."""

PUBLISHED: Dict[str, Tuple[str, str]] = {
    bucket + file.path: (name, file_name)
    for name, model in NAMED_MODELS.items()
    for file_name, file in zip((OPTIONS_NAME, WEIGHTS_NAME), model)
    for bucket in BUCKETS
}
"""The name of the model and of its file, for each address of a published file."""


def resolve_model(name: str) -> str:
    """
    The local path of a named or zipped model, fetched or unpacked if need be.

    # Parameters

    name : `str`
        A path, an address, or a name of `PACKAGED_MODELS` or `NAMED_MODELS`. A path that is there
        is never taken for a name.

    # Returns

    `str`
        The path of a folder with `options.json` and `weights.hdf5` for a name, and for the path or
        address of a `.zip`; or with the files of ELMoForManyLangs, if the `.zip` has those. For a
        model of the package, its model folder. All else comes back as it is.

    # Raises

    ConfigurationError
        If the model can't be found, fetched or unpacked, or `name` is nearly that of a model.
    """
    path = Path(os.path.expanduser(name))
    if os.path.exists(path) or is_address(name):
        if re.sub("[?#].*", "", name).endswith(".zip") and not path.is_dir():
            return str(unpacked(local_file(name), _cache() / "zipped"))
        return name
    if name in PACKAGED_MODELS:
        return str(PACKAGED_MODELS[name])
    if name in NAMED_MODELS:
        return str(named_files(name).options.parent)
    names = [*PACKAGED_MODELS, *NAMED_MODELS]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.8)
    if near:
        raise ConfigurationError(
            f"{name}: there is no such file, and no model of this name; did you mean {near[0]}? "
            f"The names are {', '.join(names)}"
        )
    return name


def named_files(name: str) -> ModelFiles:
    """
    The official files of a model of `NAMED_MODELS`. The first place that has them is taken: those
    of `ELMO_SCRATCH_MODELS`, in order, then the address where they were published. What is fetched
    is checked, and kept in the cache. Raises `ConfigurationError` if the model is nowhere, can't be
    reached, or is not what was published.
    """
    wanted = _Wanted(f"the model {name}", (OPTIONS_NAME, WEIGHTS_NAME), NAMED_MODELS[name])
    return ModelFiles(*_found(name, wanted, official_files))


def named_softmax(name: str) -> Optional[SoftmaxFiles]:
    """
    The files by which a model of `NAMED_MODELS` scores words, found and fetched as those of
    `named_files` are, with its errors. `None` if the model was published without them and no folder
    of `ELMO_SCRATCH_MODELS` has them.
    """
    if name not in NAMED_SOFTMAXES:
        places = (place for place in _places() if not is_address(place))
        folders = (Path(os.path.expanduser(place), name) for place in places)
        return next(filter(None, map(softmax_files, folders)), None)
    wanted = _Wanted(
        f"the softmax of the model {name}", (SOFTMAX_NAME, VOCABULARY_NAME), NAMED_SOFTMAXES[name]
    )
    return SoftmaxFiles(*_found(name, wanted, softmax_files))


class _Wanted(NamedTuple):
    """Two files that belong together: in words, their names here, and where they were published."""

    told: str
    names: Tuple[str, str]
    published: Tuple[PublishedFile, PublishedFile]


def _found(
    name: str, wanted: _Wanted, in_folder: Callable[[Path], Optional[Tuple[Path, Path]]]
) -> Tuple[Path, Path]:
    """The files of a model at the first place that has them; `in_folder` looks into a folder."""
    first, second = wanted.names
    tried: List[str] = []
    for place in _places():
        if not is_address(place):
            folder = Path(os.path.expanduser(place), name)
            files = in_folder(folder)
            if files is not None:
                return files
            tried.append(f"{folder}: there are no {first} and {second}")
            continue
        try:
            return _fetched_files(name, wanted, place)
        except FetchError as error:
            tried.append(error.message)
    raise ConfigurationError(
        f"{wanted.told} can't be had: {'; '.join(tried)}. Without a connection, put {name}/{first} "
        f"and {name}/{second} into a folder, and name the folder by the environment variable "
        f"{PLACES_VARIABLE}"
    )


def official_file(source: Union[str, PathLike]) -> Path:
    """
    The local path of an official file that is given by its path or address. The address of a
    published file means the file of the named model. Raises `ConfigurationError` as `local_file`
    and `named_files` do.
    """
    if str(source) not in PUBLISHED:
        return local_file(source)
    name, file_name = PUBLISHED[str(source)]
    files = named_files(name)
    return files.options if file_name == OPTIONS_NAME else files.weights


def _places() -> List[str]:
    """Folders and addresses, in the order in which they are asked. An address holds a `:` too."""
    places = re.findall(r"\w+://[^/:]+(?::\d+)?(?:/[^:]*)?|[^:]+", os.getenv(PLACES_VARIABLE, ""))
    return [*places, BUCKETS[0]]


def _cache() -> Path:
    """The folder for fetched and unpacked models."""
    return cache_dir() / "models"


def _fetched_files(name: str, wanted: _Wanted, place: str) -> Tuple[Path, Path]:
    """
    The files of a model in the cache. What it lacks comes from a mirror or, where `place` is where
    models were published, also from AllenNLP's cache.
    """
    first, second = (_cache() / name / file_name for file_name in wanted.names)
    for target, file in zip((first, second), wanted.published):
        if target.exists():
            continue
        address = f"{place.rstrip('/')}/{name}/{target.name}"
        if place == BUCKETS[0]:
            if _take_from_allennlp(file, target):
                continue
            address = place + file.path
        download(address, target, size=file.size, flaw_of=file.flaw_of)
    return first, second


def _take_from_allennlp(file: PublishedFile, target: Path) -> bool:
    """Copies a file that AllenNLP has fetched before. Returns whether there was such a one."""
    for bucket in BUCKETS:
        kept = find_latest_cached(bucket + file.path, file_utils.CACHE_DIRECTORY)
        if kept is not None and not file.flaw_of(kept):
            target.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(target) as temporary:
                shutil.copyfile(kept, temporary)
            return True
    return False


HUB = "hf://"
"""What begins the address of a repository: `hf://owner/name`, or `hf://owner/name@revision`."""

HUB_ADDRESS = re.compile(r"hf://([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")
"""The whole address of a repository: its name, and the revision if it has one."""

HUB_FILES = (
    *("config.json", "model.safetensors", "vocab.txt"),
    *("options.json", "*.hdf5"),
    *("weights.th", "best.th", "vocabulary/*", "metrics.json"),
)
"""Files of a model folder, official files, and files of an archive. No others are fetched."""

HUB_CARD = "README.md"
"""The model card. One that a repository has is not replaced: people complete it there."""

HUB_WAY_OUT = (
    "Is the name right? A private model needs `hf auth login`; without a network only models that "
    "were fetched before can be read."
)
"""What to try where a model can't be fetched."""


def hub_folder(address: str) -> Path:
    """
    The folder of a repository's files in the cache of the hub's library, fetched if need be; with
    `HF_HUB_OFFLINE=1` nothing is asked for. Raises `ConfigurationError` if the address is none of a
    repository or the model can't be had.
    """
    # Whoever reads local files doesn't wait for the library.
    from huggingface_hub import snapshot_download

    match = HUB_ADDRESS.fullmatch(address)
    if match is None:
        raise ConfigurationError(
            f"{address}: expected the address of a model on the hub, hf://owner/name or "
            "hf://owner/name@revision"
        )
    name, revision = match.groups()
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(HUB_FILES)))
    except Exception as error:  # of the library, of its connections, of the disk
        reason = " ".join(str(error).split())
        raise ConfigurationError(
            f"{address}: it can't be fetched: {reason} {HUB_WAY_OUT}"
        ) from None


def push_folder(
    write: Callable[[Path], None],
    name: str,
    *,
    private: Optional[bool] = None,
    message: str = "Upload an ELMo",
) -> str:
    """
    Uploads a model folder to the hub, in one commit.

    # Parameters

    write : `Callable[[Path], None]`
        Writes the model folder to a path.
    name : `str`
        The repository, `owner/name`; it is made if it doesn't exist. A model card that it has stays
        as it is.
    private : `bool`, optional (default = the owner's default)
        Whether a new repository is private.
    message : `str`, optional (default = `"Upload an ELMo"`)
        The commit's.

    # Returns

    `str`
        The address that reads it back: `hf://owner/name`.

    # Raises

    ConfigurationError
        If the hub refuses or can't be reached.
    """
    from huggingface_hub import HfApi  # optional

    api = HfApi()
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / name.rpartition("/")[2]
        write(folder)
        try:
            made = api.create_repo(name, private=private, exist_ok=True)
            has_card = HUB_CARD in api.list_repo_files(made.repo_id)
            api.upload_folder(
                repo_id=made.repo_id,
                folder_path=folder,
                commit_message=message,
                ignore_patterns=[HUB_CARD] if has_card else None,
            )
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ConfigurationError(
                f"{name}: it can't be uploaded: {reason} Log in by `hf auth login`, or set the "
                "environment variable HF_TOKEN."
            ) from None
    return f"{HUB}{made.repo_id}"
