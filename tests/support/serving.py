"""A server of a built site: it compresses as hosts do, may limit the rate, and counts what it sends."""

from __future__ import annotations

import gzip
import time
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

POLICY = "default-src 'self' 'unsafe-inline' 'wasm-unsafe-eval' data: blob:; report-uri /violations"
COMPRESSED = {".html", ".css", ".js", ".mjs", ".json", ".svg", ".wasm"}
CHUNK = 16384
DELAY = 0.02
"""The seconds before each answer of a limited server."""


class Server(ThreadingHTTPServer):
    """Serves a site with a policy by which browsers report all requests of pages and workers to other servers.

    `rate` limits the bytes per second of all answers together.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, site: Path, rate: float | None = None) -> None:
        super().__init__(("127.0.0.1", 0), partial(Handler, directory=str(site)))
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.rate = rate
        self.asked: list[str] = []
        self.violations: list[str] = []
        self.blocked = ""
        self.sent = 0
        self._link = Lock()
        Thread(target=self.serve_forever, daemon=True).start()

    def send(self, size: int) -> None:
        """Count bytes, and take as long as they take."""
        self.sent += size
        if self.rate is not None:
            with self._link:
                time.sleep(size / self.rate)

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class Handler(SimpleHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path /= "index.html"
        if (self.server.blocked and self.server.blocked in self.path) or not path.is_file():
            self.send_error(404)
            return
        body, encoding = encoded(path)
        if self.server.rate is not None:
            time.sleep(DELAY)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Length", str(len(body)))
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.end_headers()
        for start in range(0, len(body), CHUNK):
            chunk = body[start : start + CHUNK]
            self.server.send(len(chunk))
            try:
                self.wfile.write(chunk)
            except OSError:  # the page was closed
                return

    def do_POST(self) -> None:
        self.server.violations.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


@cache
def encoded(path: Path) -> tuple[bytes, str]:
    """The contents of a file as they are sent, and their encoding."""
    data = path.read_bytes()
    return (gzip.compress(data, 9), "gzip") if path.suffix in COMPRESSED else (data, "")


Handler.extensions_map = {**Handler.extensions_map, ".mjs": "text/javascript", ".wasm": "application/wasm"}
