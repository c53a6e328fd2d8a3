import threading
from pathlib import Path
from typing import Iterator

import pytest
from allennlp.common import file_utils
from allennlp.common.checks import ConfigurationError
from cached_path.util import resource_to_filename

from elmo_scratch.files import paths as download_module
from elmo_scratch.files.paths import (
    BLOCK,
    TRIES,
    FetchError,
    download,
    fetched,
    local_file,
    resolve_path,
)
from tests.local_server import LocalServer, local_server

CONTENT = bytes(range(251)) * 2000  # between 7 and 8 blocks
SIZE = len(CONTENT)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    monkeypatch.setattr(download_module, "PAUSE", 0)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with local_server() as server:
        server.files["/weights.hdf5"] = CONTENT
        yield server


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """AllenNLP's cache."""
    monkeypatch.setattr(file_utils, "CACHE_DIRECTORY", str(tmp_path / "cache"))
    return tmp_path / "cache"


def interrupt(server: LocalServer, target: Path, after: int) -> None:
    """Lets a download break off for good after so many bytes."""
    server.breaks_after = after
    with pytest.MonkeyPatch.context() as patch, pytest.raises(FetchError):
        patch.setattr(download_module, "TRIES", 1)
        download(f"{server.address}/weights.hdf5", target)
    server.breaks_after = None
    server.requests.clear()


def test_a_file_comes_whole(server: LocalServer, tmp_path: Path) -> None:
    target = tmp_path / "new" / "weights.hdf5"
    download(f"{server.address}/weights.hdf5", target, size=SIZE)
    assert target.read_bytes() == CONTENT
    assert server.ranges() == [None]
    download(f"{server.address}/weights.hdf5", target)
    assert len(server.requests) == 1


def test_a_connection_that_breaks_off_is_taken_up_again(
    server: LocalServer, tmp_path: Path
) -> None:
    server.breaks_after = 3 * BLOCK
    download(f"{server.address}/weights.hdf5", tmp_path / "weights.hdf5")
    assert (tmp_path / "weights.hdf5").read_bytes() == CONTENT
    assert server.ranges() == [None, f"bytes={3 * BLOCK}-", f"bytes={6 * BLOCK}-"]


def test_what_a_killed_process_left_is_not_fetched_again(
    server: LocalServer, tmp_path: Path
) -> None:
    target = tmp_path / "weights.hdf5"
    interrupt(server, target, after=4 * BLOCK)
    assert not target.exists()
    download(f"{server.address}/weights.hdf5", target)
    assert target.read_bytes() == CONTENT
    assert server.ranges() == [f"bytes={4 * BLOCK}-"]


@pytest.mark.parametrize("change", ["another file", "no ranges", "no version"])
def test_a_download_starts_anew_where_it_cannot_go_on(
    change: str, server: LocalServer, tmp_path: Path
) -> None:
    if change == "no version":
        server.etag = None
    interrupt(server, tmp_path / "weights.hdf5", after=4 * BLOCK)
    content = CONTENT
    if change == "another file":
        content = server.files["/weights.hdf5"] = CONTENT[::-1]
        server.etag = '"2"'
    elif change == "no ranges":
        server.knows_ranges = False
    download(f"{server.address}/weights.hdf5", tmp_path / "weights.hdf5")
    assert (tmp_path / "weights.hdf5").read_bytes() == content


def test_more_than_the_server_has_is_thrown_away(server: LocalServer, tmp_path: Path) -> None:
    target = tmp_path / "weights.hdf5"
    interrupt(server, target, after=4 * BLOCK)
    server.files["/weights.hdf5"] = CONTENT[:1000]
    download(f"{server.address}/weights.hdf5", target)
    assert target.read_bytes() == CONTENT[:1000]
    assert server.ranges() == [f"bytes={4 * BLOCK}-", None]


def test_a_connection_that_breaks_off_for_good_is_an_error_that_says_what_is_kept(
    server: LocalServer, tmp_path: Path
) -> None:
    server.breaks_after = BLOCK
    with pytest.raises(FetchError, match=f"broke off .{TRIES * BLOCK:,} bytes are kept: the next"):
        download(f"{server.address}/weights.hdf5", tmp_path / "weights.hdf5")
    assert len(server.requests) == TRIES


def test_another_size_than_the_published_one_is_told_before_the_rest_is_fetched(
    server: LocalServer, tmp_path: Path
) -> None:
    with pytest.raises(FetchError, match="it has 502000 bytes, but 502001 were"):
        download(f"{server.address}/weights.hdf5", tmp_path / "weights.hdf5", size=SIZE + 1)
    assert not (tmp_path / "weights.hdf5").exists()


def test_a_file_with_a_flaw_is_not_kept(server: LocalServer, tmp_path: Path) -> None:
    address, target = f"{server.address}/weights.hdf5", tmp_path / "weights.hdf5"
    with pytest.raises(FetchError, match="weights.hdf5: it can't be fetched: it is green"):
        download(address, target, flaw_of=lambda _: "it is green")
    download(address, target)
    assert server.ranges() == [None, None]


def test_several_who_want_a_file_fetch_it_once(server: LocalServer, tmp_path: Path) -> None:
    address, target = f"{server.address}/weights.hdf5", tmp_path / "weights.hdf5"
    threads = [threading.Thread(target=download, args=(address, target)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_bytes() == CONTENT
    assert server.asked("GET") == ["/weights.hdf5"]


def test_a_folder_that_cannot_be_written_to_is_an_error(
    server: LocalServer, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot be written .*is kept in .*/file/models"):
        download(f"{server.address}/weights.hdf5", tmp_path / "file" / "models" / "weights.hdf5")


def test_an_error_names_the_file_and_not_what_is_there_of_it(
    server: LocalServer, tmp_path: Path
) -> None:
    target = tmp_path / "weights.hdf5"
    (tmp_path / ".weights.hdf5.incomplete").mkdir()
    with pytest.raises(ConfigurationError, match=f"^{target}: cannot be written .Is a directory"):
        download(f"{server.address}/weights.hdf5", target)


def test_the_cache_is_that_of_allennlp(server: LocalServer, cache: Path) -> None:
    address = f"{server.address}/weights.hdf5"
    assert local_file(address).read_bytes() == CONTENT
    assert fetched(address) == cache / resource_to_filename(address, '"1"')
    assert server.asked("GET") == ["/weights.hdf5"]
    # By AllenNLP's own function, which lists its cache by these files.
    assert file_utils.cached_path(address, cache_dir=cache) == str(fetched(address))
    assert file_utils.filename_to_url(fetched(address).name, cache) == (address, '"1"')
    server.etag, server.files["/weights.hdf5"] = '"2"', b"newer"
    assert fetched(address).read_bytes() == b"newer"


def test_without_a_connection_the_copy_serves(server: LocalServer, cache: Path) -> None:
    address = f"{server.address}/weights.hdf5"
    kept = fetched(address)
    server.status = 503
    assert fetched(address) == kept


def test_a_file_that_a_server_lacks_is_missing(server: LocalServer, cache: Path) -> None:
    with pytest.raises(FileNotFoundError, match="none.txt: there is no such file"):
        resolve_path(f"{server.address}/none.txt")


@pytest.mark.parametrize("status, words", [(403, "403 Forbidden"), (502, "502 Bad Gateway")])
def test_what_the_server_answers_is_told(
    status: int, words: str, server: LocalServer, cache: Path
) -> None:
    server.status = status
    with pytest.raises(FetchError, match=f"it can't be fetched: the server answers {words}$"):
        resolve_path(f"{server.address}/weights.hdf5")


@pytest.mark.parametrize(
    "address, reason",
    [
        ("http://127.0.0.1:9/weights.hdf5", "Connection refused"),
        (
            "https://nowhere.invalid/weights.hdf5",
            "(Name or .*|Temporary failure .*)",
        ),
    ],
)
def test_without_a_connection_the_error_is_a_line(
    address: str, reason: str, server: LocalServer, cache: Path
) -> None:
    with pytest.raises(FetchError, match=f"^{address}: it can't be fetched: {reason}$"):
        resolve_path(address)


def test_a_proxy_that_is_gone_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with pytest.raises(FetchError, match="it can't be fetched: the proxy: Connection refused$"):
        resolve_path("http://nowhere.invalid/weights.hdf5")
