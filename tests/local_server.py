"""A server of HTTP on this machine, which can be told to behave badly."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Dict, Iterator, List, NamedTuple, Optional


class Request(NamedTuple):
    """One question to the server."""

    method: str
    path: str
    range: Optional[str]


class LocalServer:
    """
    Serves `files`, by their paths. `requests` lists what was asked for. Attributes change how it
    answers.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.files: Dict[str, bytes] = {}
        self.requests: List[Request] = []
        self.etag: Optional[str] = '"1"'
        self.knows_ranges = True
        self.breaks_after: Optional[int] = None
        """Of the content of each answer, so many bytes are sent before the connection breaks."""
        self.status: Optional[int] = None
        """Answers all requests, in the place of what they ask for."""

    def asked(self, method: str) -> List[str]:
        return [request.path for request in self.requests if request.method == method]

    def ranges(self) -> List[Optional[str]]:
        """The ranges that were asked for, one for each file that was."""
        return [request.range for request in self.requests if request.method == "GET"]


@contextmanager
def local_server() -> Iterator[LocalServer]:
    """Runs a server while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            content = self._answer()
            if server.breaks_after is not None and len(content) > server.breaks_after:
                content = content[: server.breaks_after]
                self.close_connection = True
            self.wfile.write(content)

        def _answer(self) -> bytes:
            asked = self.headers["Range"]
            server.requests.append(Request(self.command, self.path, asked))
            content = server.files.get(self.path)
            if server.status is not None or content is None:
                self.send_error(server.status or 404)
                return b""
            start = 0
            is_same = self.headers["If-Range"] in (None, server.etag)
            if asked is not None and server.knows_ranges and is_same:
                start = int(asked.removeprefix("bytes=").removesuffix("-"))
                if start >= len(content):
                    self.send_error(416)
                    return b""
                self.send_response(206)
                end = f"{len(content) - 1}/{len(content)}"
                self.send_header("Content-Range", f"bytes {start}-{end}")
            else:
                self.send_response(200)
            if server.etag is not None:
                self.send_header("ETag", server.etag)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            return content[start:]

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = LocalServer(f"http://127.0.0.1:{http.server_port}")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
