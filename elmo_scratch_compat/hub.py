"""`allennlp push-to-hf`, which takes a trained model to the Hugging Face Hub."""

import os
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Union

NAMES = ("config.json", "meta.json", "metrics.json", "vocabulary", "log")
"""What goes to the hub of a training's folder or archive beside the weights, if it is there."""

WEIGHTS = ("weights.th", "best.th")
"""What the weights may be called, in the order in which AllenNLP looks for them."""

WITHOUT_REPOSITORY = "hub"
"""AllenNLP's default for the folder in which it made a copy of the repository."""

LOG_IN = "Log in by `hf auth login`, or set the environment variable HF_TOKEN."

CARD = """\
---
tags:
- allennlp
---

# {name}

A model of AllenNLP 2.10.1, which reads it by the name `hf://{repository}`.
"""
"""The model card that a repository without one gets."""


def push_by_http(push_to_hf: Any) -> None:
    """
    AllenNLP names the arguments of the hub library of 2022, and clones the repository by git: today
    each push ends in a `TypeError`. Here the files go by HTTP, in one commit. Nothing is cloned. A
    model card that the repository has is left as it is.
    """

    def push(
        repo_name: str,
        serialization_dir: Optional[Union[str, os.PathLike]] = None,
        archive_path: Optional[Union[str, os.PathLike]] = None,
        organization: Optional[str] = None,
        commit_message: str = "Update repository",
        local_repo_path: Union[str, os.PathLike] = WITHOUT_REPOSITORY,
        use_auth_token: Union[bool, str] = True,
    ) -> str:
        if (serialization_dir is None) == (archive_path is None):
            raise ValueError("expected one of `serialization_dir` and `archive_path`")
        if os.fspath(local_repo_path) != WITHOUT_REPOSITORY:
            push_to_hf.logger.warning(
                "Files go straight to the hub: %s is not made, nor looked at.", local_repo_path
            )
        repository = repo_name if organization is None else f"{organization}/{repo_name}"
        with ExitStack() as stack:
            if archive_path is not None:
                archival = import_module("allennlp.models.archival")
                folder = Path(stack.enter_context(archival.extracted_archive(archive_path)))
            else:
                folder = Path(str(serialization_dir))
            files = _files_of(folder)
            stack.enter_context(_told_in_a_line(repository))
            return _commit(repository, files, commit_message, _token(use_auth_token))

    push_to_hf.push_to_hf = push


def _files_of(folder: Path) -> Dict[str, Path]:
    """The files of a trained model, by their places in the repository."""
    from allennlp.common.checks import ConfigurationError

    weights = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if weights is None or not (folder / NAMES[0]).is_file():
        raise ConfigurationError(
            f"{folder}: expected the folder of a training, with {NAMES[0]} and {WEIGHTS[1]}, but "
            "they are not there. An archive goes as --archive-path."
        )
    files = {WEIGHTS[0]: weights}
    for name in NAMES:
        path = folder / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            # Locks and the like are of this machine.
            if file.is_file() and not file.name.startswith("."):
                files[file.relative_to(folder).as_posix()] = file
    return files


def _token(use_auth_token: Union[bool, str]) -> str:
    from allennlp.common.checks import ConfigurationError
    from huggingface_hub import get_token

    token = use_auth_token if isinstance(use_auth_token, str) else get_token()
    if token is None:
        raise ConfigurationError(f"there is no token of the Hugging Face Hub here. {LOG_IN}")
    return token


def _commit(repository: str, files: Dict[str, Path], message: str, token: str) -> str:
    """Makes the repository if there is none, and gives it these files. Returns its address."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    api = HfApi(token=token)
    url = api.create_repo(repository, private=False, exist_ok=True)
    there = api.list_repo_files(url.repo_id)
    operations: list = [CommitOperationAdd(name, path) for name, path in files.items()]
    if "README.md" not in there:
        card = CARD.format(name=url.repo_name, repository=url.repo_id)
        operations.append(CommitOperationAdd("README.md", card.encode("utf-8")))
    # A word list of a namespace that is gone would be read with the others.
    operations += [
        CommitOperationDelete(name)
        for name in there
        if name.startswith("vocabulary/") and name not in files
    ]
    api.create_commit(url.repo_id, operations, commit_message=message)
    return url


@contextmanager
def _told_in_a_line(repository: str) -> Iterator[None]:
    """Turns what the network or the hub causes into a `ConfigurationError`."""
    from allennlp.common.checks import ConfigurationError

    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        told = _mistake_of(error, repository)
        if told is None:
            raise
        raise ConfigurationError(told) from error


def _mistake_of(error: Exception, repository: str) -> Optional[str]:
    """The line for an error in a push; `None` for those that neither hub nor network causes."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    from requests import RequestException

    if isinstance(error, RuntimeError) and isinstance(error.__cause__, Exception):
        error = error.__cause__  # of one of the threads that send files
    if isinstance(error, HFValidationError):
        return (
            "expected the name of a repository, of letters, digits, dots, `-` and `_`, but got "
            f"{repository!r}. The name of an organization goes as --organization."
        )
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status == 401:
        return f"the Hugging Face Hub doesn't know the token. {LOG_IN}"
    if status == 403:
        return (
            f"the token may not write to {repository}. Take one with the right to write, and an "
            f"organization that you are in. {LOG_IN}"
        )
    if isinstance(error, HfHubHTTPError):
        said = " ".join(str(error.server_message or error).split())
        return f"the Hugging Face Hub refuses {repository}: {said}"
    if isinstance(error, (ConnectionError, RequestException)):
        told = " ".join(str(error).split())
        return f"the Hugging Face Hub can't be reached, so nothing was pushed: {told[:200]}"
    return None
