"""A local server of one page, which tells the page when there is another version of it."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps
from threading import Condition, Thread
from typing import NamedTuple

KEEPALIVE_SECONDS = 15.0
"""Seconds after which a page that waits for changes is sent a comment, which shows that it is still there."""


class ServedPage(NamedTuple):
    """A version of the page, and the diagnostics of later contents of the spec that do not compile."""

    page: str
    version: int = 1
    error: str | None = None


class PageServer:
    """A server on a free port of this machine, which `serve` changes the page of.

    Pages ask for `changes?VERSION` and are sent a message as soon as there is another version, or an error.
    """

    def __init__(self, page: Callable[[int], str]) -> None:
        self._served = ServedPage(page(1))
        self._changed = Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def renew(self, page: Callable[[int], str]) -> None:
        """Serve another version, which `page` makes for its number."""
        version = self._served.version + 1
        self._set(ServedPage(page(version), version))

    def report(self, error: str) -> None:
        """Show an error on the page, which stays as it is."""
        self._set(self._served._replace(error=error))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _set(self, served: ServedPage) -> None:
        with self._changed:
            self._served = served
            self._changed.notify_all()

    def _next(self, seen: tuple[int, str | None]) -> tuple[int, str | None]:
        """Wait until the version or the error is another; return them after a while in any case."""
        with self._changed:
            self._changed.wait_for(lambda: self._state() != seen, KEEPALIVE_SECONDS)
            return self._state()

    def _state(self) -> tuple[int, str | None]:
        return self._served.version, self._served.error

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                host = self.headers.get("Host", "")
                if host.rpartition(":")[0] not in ("127.0.0.1", "localhost"):  # a name that another site resolves to us
                    self.send_error(403)
                elif path == "/":
                    self._page(server._served.page.encode("utf-8", "backslashreplace"))
                elif path == "/changes":
                    self._changes(int(query) if query.isdecimal() else 0)
                else:
                    self.send_error(404)

            def _page(self, page: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(page)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(page)

            def _changes(self, version: int) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                seen: tuple[int, str | None] = (version, None)
                try:
                    while True:
                        state = server._next(seen)
                        message = ": still here" if state == seen else f"data: {dumps(state)}"
                        self.wfile.write(f"{message}\n\n".encode())
                        self.wfile.flush()
                        seen = state
                except OSError:  # the page was closed
                    return

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
