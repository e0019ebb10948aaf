"""`archspec.view`: the page of a model in a browser, written once or renewed while its spec is edited."""

from __future__ import annotations

import re
import sys
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Condition, Thread
from typing import NamedTuple

from archspec.core.diagnostics import ArchError, Diagnostic
from archspec.drawing.page.page import page
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import as_model, compile_location
from archspec.pipeline.locate import locate
from archspec.pipeline.model import Model, ModelLike
from archspec.pipeline.watching import Files, read_contents, wait_for_change

# A local server of one page, which tells the page when there is another version of it.

KEEPALIVE_SECONDS = 15.0
"""Seconds between keepalive comments sent to a waiting page, which reveal closed connections."""


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


NOTEBOOK_HEIGHT = 640
"""Height of a page in a notebook, in pixels."""


class ViewedPage(str):
    """The path of a page, which a notebook shows as the page itself."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own."""
        with open(self, encoding="utf-8") as file:
            content = escape(file.read())
        style = "width: 100%; border: 1px solid #d5dbe4"
        return f'<iframe srcdoc="{content}" height="{NOTEBOOK_HEIGHT}" style="{style}"></iframe>'


def _is_in_notebook() -> bool:
    """Return whether a notebook runs this program."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def view(model: ModelLike, /, **overrides: PlainValue) -> ViewedPage:
    """Write the page of a model to a temporary file, open it in a browser, and return the path of the file.

    `model` is a Model, or what `archspec.load` takes with its overrides. The page is a single file that needs no
    network, so it can be kept or sent. If there is no browser, the file is written all the same. A notebook shows the
    page itself, and opens no other browser.

    Raises ArchError as `archspec.load` does.
    """
    compiled = as_model(model, overrides)
    name = re.sub(r"[^\w.-]+", "-", compiled.name, flags=re.ASCII).strip("-.")[:80] or "model"
    with NamedTemporaryFile("wb", prefix=f"{name}-", suffix=".html", delete=False) as file:
        file.write(page(compiled).encode())
    if not _is_in_notebook():
        webbrowser.open(Path(file.name).as_uri())
    return ViewedPage(file.name)


def watch(spec: str, overrides: Mapping[str, PlainValue]) -> Iterator[tuple[str, Sequence[Diagnostic]]]:
    """Open the page of a spec in a browser, and renew it whenever one of the spec's files changes.

    Yields the address of the page and the diagnostics of the files: at once, and after each change. If the files do not
    compile, the page shows the errors above the last picture.

    Raises ArchError if the spec does not compile at first.
    """
    model, files = _compile(spec, overrides)
    server = PageServer(lambda version: page(model, version))
    webbrowser.open(server.url)
    try:
        yield server.url, model.warnings
        while True:
            files = wait_for_change(files, lambda paths=files: read_contents(paths))
            try:
                model, files = _compile(spec, overrides)
            except ArchError as error:
                server.report(str(error))
                yield server.url, error.diagnostics
            else:
                server.renew(lambda version, model=model: page(model, version))
                yield server.url, model.warnings
    finally:
        server.close()


def _compile(spec: str, overrides: Mapping[str, PlainValue]) -> tuple[Model, Files]:
    """Compile a spec; return its model, and the files that were read with their contents."""
    model, loaded = compile_location(locate(spec), dict(overrides))
    return model, dict(loaded.library.raw)
