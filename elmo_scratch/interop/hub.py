"""Models of the Hugging Face Hub, by its own library: their files come and go without any code."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Callable, Optional

from allennlp.common.checks import ConfigurationError

HUB = "hf://"
"""What begins the address of a repository: `hf://owner/name`, or `hf://owner/name@revision`."""

ADDRESS = re.compile(r"hf://([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")

READ = (
    *("config.json", "model.safetensors", "vocab.txt"),
    *("options.json", "*.hdf5"),
    *("weights.th", "best.th", "vocabulary/*", "metrics.json"),
)
"""Files of a model folder, official files, and files of an archive. No others are fetched."""

CARD = "README.md"
"""The model card. One that a repository has is not replaced: people complete it there."""

WAY_OUT = (
    "Is the name right? A private model needs `hf auth login`; without a network only models that "
    "were fetched before can be read."
)


def hub_folder(address: str) -> Path:
    """
    The folder of a repository's files in the cache of the hub's library, fetched if need be; with
    `HF_HUB_OFFLINE=1` nothing is asked for. Raises `ConfigurationError` if the address is none of a
    repository or the model can't be had.
    """
    # Whoever reads local files doesn't wait for the library.
    from huggingface_hub import snapshot_download

    match = ADDRESS.fullmatch(address)
    if match is None:
        raise ConfigurationError(
            f"{address}: expected the address of a model on the hub, hf://owner/name or "
            "hf://owner/name@revision"
        )
    name, revision = match.groups()
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(READ)))
    except Exception as error:  # of the library, of its connections, of the disk
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"{address}: it can't be fetched: {reason} {WAY_OUT}") from None


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
    from huggingface_hub import HfApi

    api = HfApi()
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / name.rpartition("/")[2]
        write(folder)
        try:
            made = api.create_repo(name, private=private, exist_ok=True)
            has_card = CARD in api.list_repo_files(made.repo_id)
            api.upload_folder(
                repo_id=made.repo_id,
                folder_path=folder,
                commit_message=message,
                ignore_patterns=[CARD] if has_card else None,
            )
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ConfigurationError(
                f"{name}: it can't be uploaded: {reason} Log in by `hf auth login`, or set the "
                "environment variable HF_TOKEN."
            ) from None
    return f"{HUB}{made.repo_id}"
