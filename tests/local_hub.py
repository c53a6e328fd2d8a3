"""A stand-in for the Hugging Face Hub on this machine: what a push and a read ask of its API."""

import base64
import hashlib
import json
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Dict, Iterator, List, Tuple

import pytest

TOKEN = "hf_of_the_tests"
USER = "me"
REVISION = "7" * 40
LARGE = (".th",)
"""How names of files end that are sent apart from the commit."""


class LocalHub:
    """The repositories of the stand-in: of each the files, and the messages of its commits."""

    def __init__(self) -> None:
        self.address = ""
        self.repositories: Dict[str, Dict[str, bytes]] = {}
        self.messages: Dict[str, List[str]] = {}
        self.status = 200
        """The status of all answers to POST; another than 200 refuses."""
        self._large: Dict[str, bytes] = {}

    def post(self, path: str, body: bytes, token: str) -> Tuple[int, Any]:
        """Answers a POST: a status and what becomes JSON."""
        if token != f"Bearer {TOKEN}":
            return 401, {"error": "Invalid credentials in Authorization header"}
        if self.status != 200:
            return self.status, {"error": "not\ntoday"}
        if path == "/api/repos/create":
            wanted = json.loads(body)
            name = f"{wanted['organization'] or USER}/{wanted['name']}"
            status = 409 if name in self.repositories else 200
            self.repositories.setdefault(name, {".gitattributes": b""})
            return status, {"url": f"{self.address}/{name}"}
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if path.endswith("/preupload/main"):
            return 200, {"files": [self._mode_of(file) for file in json.loads(body)["files"]]}
        if path.endswith(".git/info/lfs/objects/batch"):
            objects = json.loads(body)["objects"]
            return 200, {"transfer": "basic", "objects": [self._place_of(one) for one in objects]}
        name = path.removeprefix("/api/models/").removesuffix("/commit/main")
        self._apply(name, [json.loads(line) for line in body.splitlines()])
        return 200, {"commitUrl": f"{self.address}/{name}/commit/{REVISION}", "commitOid": REVISION}

    def put(self, path: str, body: bytes) -> None:
        """Keeps a large file until a commit names it."""
        assert hashlib.sha256(body).hexdigest() == path.rpartition("/")[2]
        self._large[path.rpartition("/")[2]] = body

    def get(self, path: str) -> Tuple[int, Any]:
        """Answers a GET or HEAD: a status, and what becomes JSON or the bytes of a file."""
        listed = re.fullmatch(r"/api/models/(.+?/[^/]+)/(tree/main|revision/.+)", path)
        if listed is not None:
            files = self.repositories[listed[1]]
            if listed[2] == "tree/main":
                told = [{"type": "file", "path": name, "size": 1, "oid": "0"} for name in files]
                return 200, told
            return 200, {
                "id": listed[1],
                "sha": REVISION,
                "siblings": [{"rfilename": name} for name in files],
            }
        wanted = re.fullmatch(r"/(.+?/[^/]+)/resolve/[^/]+/(.+)", path)
        if wanted is None or wanted[2] not in self.repositories.get(wanted[1], {}):
            return 404, {"error": "Repository not found"}
        return 200, self.repositories[wanted[1]][wanted[2]]

    def _mode_of(self, file: Dict[str, Any]) -> Dict[str, Any]:
        mode = "lfs" if file["path"].endswith(LARGE) else "regular"
        return {"path": file["path"], "uploadMode": mode, "shouldIgnore": False}

    def _place_of(self, one: Dict[str, Any]) -> Dict[str, Any]:
        upload = {"href": f"{self.address}/large/{one['oid']}"}
        return {**one, "actions": {"upload": upload}}

    def _apply(self, name: str, lines: List[Dict[str, Any]]) -> None:
        files = self.repositories[name]
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                self.messages.setdefault(name, []).append(value["summary"])
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self._large[value["oid"]]
            else:
                assert line["key"] == "deletedFile"
                del files[value["path"]]


@contextmanager
def served(hub: LocalHub) -> Iterator[None]:
    """Serves the stand-in within the block, at a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self, status: int, told: Any) -> None:
            body = told if isinstance(told, bytes) else json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
            self.send_header("X-Repo-Commit", REVISION)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers["Content-Length"]))

        def do_GET(self) -> None:
            self._answer(*hub.get(self.path.partition("?")[0]))

        do_HEAD = do_GET

        def do_POST(self) -> None:
            self._answer(*hub.post(self.path, self._body(), self.headers.get("Authorization", "")))

        def do_PUT(self) -> None:
            hub.put(self.path, self._body())
            self._answer(200, {})

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def local_hub(cache: Any) -> Iterator[LocalHub]:
    """The hub library asks the stand-in within the block, with a token, and caches in a folder."""
    hub = LocalHub()
    with served(hub), pytest.MonkeyPatch.context() as patch:
        template = f"{hub.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        patch.setattr("huggingface_hub.constants.ENDPOINT", hub.address)
        patch.setattr("huggingface_hub.file_download.HUGGINGFACE_CO_URL_TEMPLATE", template)
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        patch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(cache / "token"))
        patch.setattr("allennlp.common.file_utils.CACHE_DIRECTORY", cache)
        patch.setenv("HF_TOKEN", TOKEN)
        patch.setenv("no_proxy", "127.0.0.1")
        yield hub
