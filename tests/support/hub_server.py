"""A small HTTP server that behaves as the hub does: files, ranges, redirects to storage, and its errors."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """The files of each model by id, and the requests that were made. `gated` are ids that may not be read."""

    def __init__(self) -> None:
        self.models: dict[str, dict[str, bytes]] = {}
        self.gated: set[str] = set()
        self.requests: list[tuple[str, str, str | None]] = []
        self.sent = 0
        self.has_ranges = True
        self.claims: dict[str, int] = {}  # sizes that are not those of the files
        self.url = ""


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None: ...

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def answer(self, with_body: bool) -> None:
            path = self.path.split("?")[0].strip("/")
            hub.requests.append((self.command, path, self.headers.get("Range")))
            stored = path.startswith("storage/")
            id, _, file = path.removeprefix("storage/").partition("/resolve/main/")
            listed = path.removeprefix("api/models/").removesuffix("/tree/main")
            if path == f"api/models/{listed}/tree/main" and listed in hub.models:
                return self.send_list([*hub.models[listed]])
            if id in hub.gated:
                return self.fail(401, "GatedRepo")
            if id not in hub.models:
                return self.fail(401 if "/api/" in path else 404, "RepoNotFound")
            if file not in hub.models[id]:
                return self.fail(404, "EntryNotFound")
            data = hub.models[id][file]
            if file.endswith((".safetensors", ".gguf")) and not stored:  # large files are somewhere else
                return self.send(302, b"", with_body, data, {"Location": f"{hub.url}/storage/{path}"})
            asked = self.headers.get("Range")
            if asked and hub.has_ranges:
                first, last = (int(n) for n in asked.removeprefix("bytes=").split("-"))
                total = hub.claims.get(file, len(data))
                part = data[first : last + 1]
                shown = f"bytes {first}-{first + len(part) - 1}/{total}"
                return self.send(206, part, with_body, data, {"Content-Range": shown})
            self.send(200, data, with_body, data, {})

        def send(self, status: int, part: bytes, with_body: bool, whole: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            file = self.path.rpartition("/")[2]
            size = str(hub.claims.get(file, len(whole))) if self.command == "HEAD" else str(len(part))
            headers |= {"ETag": f'"{hashlib.sha1(whole).hexdigest()}"', "X-Repo-Commit": COMMIT}
            for name, value in {**headers, "Content-Length": size, "X-Linked-Size": str(len(whole))}.items():
                self.send_header(name, value)
            self.end_headers()
            if with_body:
                hub.sent += len(part)
                try:
                    self.wfile.write(part)
                except OSError:  # the client has seen enough
                    self.close_connection = True

        def send_list(self, files: list[str]) -> None:
            rows = [{"type": "file", "path": file, "size": 1, "oid": COMMIT} for file in files]
            data = json.dumps(rows).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def fail(self, status: int, code: str) -> None:
            self.send_response(status)
            for name, value in {"X-Error-Code": code, "X-Error-Message": code, "Content-Length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
