"""`archspec view`: the file that it writes, and the page that it renews while a spec is edited."""

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from threading import Timer
from zlib import decompress

import pytest

import archspec
from archspec.drawing.page import view
from archspec.drawing.page.page import page
from archspec.drawing.page.view import PageServer
from archspec.testing import main

SPEC = """
import std {{ Linear }}

dim batch

block Tiny(n = {n})(x [batch, n]) -> [batch, n] {{
  return x |> {layer}: Linear(n, n)
}}

model "tiny" = Tiny()
"""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was asked to open."""
    found: list[str] = []
    monkeypatch.setattr(view.webbrowser, "open", found.append)
    return found


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.arch"
    path.write_text(SPEC.format(n=4, layer="only"))
    return path


def test_the_command_writes_a_file_and_opens_it(
    spec: Path, opened: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["view", str(spec), "--set", "n=8"]) == 0
    written = Path(capsys.readouterr().out.strip())
    assert opened == [written.as_uri()] and written.parent == tmp_path
    assert written.name.startswith("tiny-") and written.suffix == ".html"
    assert total_of(written.read_text()) == 72


def test_graph_writes_the_page_too(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tiny.html"
    assert main(["graph", str(spec), "-o", str(file)]) == 0
    assert file.read_text() == page(str(spec))
    assert main(["graph", str(spec), "--to", "html"]) == 0
    assert capsys.readouterr().out == page(str(spec))
    assert main(["graph", str(spec), "--to", "html", "--level", "op"]) == 2


def test_a_name_that_is_no_file_name(opened: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    text = SPEC.format(n=4, layer="only").replace('"tiny"', '"../</script>\u202e"')
    path = Path(archspec.view(archspec.loads(text)))
    assert path.parent == tmp_path and re.fullmatch(r"script-[a-z0-9_]{8}\.html", path.name)


def test_a_spec_that_does_not_compile_opens_nothing(spec: Path, opened: list[str]) -> None:
    spec.write_text("block")
    assert main(["view", str(spec)]) == 1
    assert main(["view", str(spec), "--watch"]) == 1
    assert not opened


def test_the_page_is_renewed_when_the_spec_changes(spec: Path, opened: list[str]) -> None:
    versions = view.watch(str(spec), {})
    url, diagnostics = next(versions)
    assert opened == [url] and not diagnostics
    address = url.removeprefix("http://").rstrip("/")
    assert total_of(fetched(address, "/")) == 20

    after(0.1, spec, "block")
    _, diagnostics = next(versions)
    assert [d.code for d in diagnostics] == ["syntax"]
    assert total_of(fetched(address, "/")) == 20
    version, error = next(changes(address, 1))
    assert version == 1 and "error[syntax]" in error

    after(0.1, spec, SPEC.format(n=2, layer="other"))
    next(versions)
    assert total_of(fetched(address, "/")) == 6
    assert next(changes(address, 1)) == [2, None]
    versions.close()


def after(seconds: float, path: Path, text: str) -> None:
    Timer(seconds, path.write_text, [text]).start()


def total_of(page: str) -> int:
    """The parameter count in the plan of a page."""
    packed = page.partition('id="plan">')[2].partition("<")[0]
    return json.loads(decompress(b64decode(packed)))["total"]


def fetched(address: str, path: str, host: str | None = None) -> str:
    connection = HTTPConnection(address, timeout=10)
    connection.request("GET", path, headers={"Host": host} if host else {})
    response = connection.getresponse()
    text = response.read().decode()
    if response.status != 200:
        return str(response.status)
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert response.headers["Cache-Control"] == "no-store"
    return text


def changes(address: str, version: int) -> Iterator[list[object]]:
    connection = HTTPConnection(address, timeout=10)
    connection.request("GET", f"/changes?{version}")
    response = connection.getresponse()
    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.headers["Cache-Control"] == "no-store"
    for line in response:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def test_the_server_answers_its_own_page_only() -> None:
    server = PageServer(lambda version: f"page {version}")
    address = server.url.removeprefix("http://").rstrip("/")
    assert fetched(address, "/") == "page 1"
    assert fetched(address, "/other") == "404"
    assert fetched(address, "/", host="example.org:80") == "403"
    server.renew(lambda version: f"page {version}")
    assert fetched(address, "/") == "page 2"
    other = PageServer(lambda version: "other page")
    assert fetched(other.url.removeprefix("http://").rstrip("/"), "/") == "other page"
    other.close()
    server.close()
