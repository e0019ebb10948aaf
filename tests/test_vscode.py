"""The VS Code extension in a real editor: code-server, which is VS Code in a browser.

`npm install --ignore-scripts && npm run build` in `editors/vscode/test` installs it; without it, the test is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from browser import Browser, Page, executable

EXTENSION = Path(__file__).parent.parent / "editors" / "vscode"
EDITOR = EXTENSION / "test" / "node_modules" / "code-server"
SETTINGS = {
    "archspec.command": [sys.executable, "-m", "archspec", "lsp"],
    "extensions.ignoreRecommendations": True,
    "keyboard.dispatch": "keyCode",
    "workbench.startupEditor": "none",
}
WRITTEN = """\
import std { Linear, gelu }

dim batch, seq

block Mlp(hidden, inner)(x [batch, seq, hidden]) -> [batch, seq, hidden] {
  return x
    |> up: Linaer(hidden, inner)
    |> gelu
      |> down:   Linear(inner, hidden)
}

model "tiny" = Mlp(hidden=8, inner=32) { expect params == 552 }
"""
WANTED = """\
import std { Linear, gelu }

dim batch, seq

block FeedForward(hidden, inner)(x [batch, seq, hidden]) -> [batch, seq, hidden] {
  return x
    |> up:   Linear(hidden, inner)
    |> gelu
    |> down: Linear(inner, hidden)
}

model "tiny" = FeedForward(hidden = 8, inner = 32) { expect params == 552 }
"""
CONTROL, SHIFT = 2, 8
KEYS = {"Enter": 13, "Escape": 27}


class Editor:
    """What a person does in VS Code, on the page that shows it."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def press(self, key: str, modifiers: int = 0) -> None:
        shared = {"key": key, "modifiers": modifiers, "windowsVirtualKeyCode": KEYS.get(key) or ord(key)}
        # A key that also sends its text would type it into whatever has the focus after a command.
        self._page.send("Input.dispatchKeyEvent", type="rawKeyDown", **shared)
        self._page.send("Input.dispatchKeyEvent", type="keyUp", **shared)

    def type(self, text: str) -> None:
        self._page.type(text)

    def wait_for(self, selector: str) -> None:
        self._page.wait(f"document.querySelector({json.dumps(selector)}) !== null")

    def wait_for_none(self, selector: str) -> None:
        self._page.wait(f"document.querySelector({json.dumps(selector)}) === null")

    def wait_for_focus(self, selector: str) -> None:
        self._page.wait(f"document.activeElement.matches({json.dumps(selector)})")

    def wait_for_text(self, selector: str, text: str) -> None:
        elements = f"[...document.querySelectorAll({json.dumps(selector)})]"
        self._page.wait(f"{elements}.some(e => e.innerText.replaceAll('\\u00a0', ' ').includes({json.dumps(text)}))")

    def go_to(self, line: int, column: int) -> None:
        self.press("P", CONTROL)
        self.wait_for_focus(".quick-input-widget input")
        self.type(f":{line}:{column}")
        self.wait_for_text(".quick-input-list", f"line {line}")
        self.press("Enter")
        self.wait_for_text(".statusbar", f"Ln {line}, Col {column}")
        self.wait_for_focus(".monaco-editor *")

    def command(self, name: str) -> None:
        self.press("P", CONTROL | SHIFT)
        self.wait_for_focus(".quick-input-widget input")
        self.type(name)
        self.wait_for_text(".quick-input-list .monaco-list-row.focused", name)
        self.press("Enter")


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    """An editor with the packaged extension, which has a file with an error open."""
    package, browser_path, node = EXTENSION / "archspec.vsix", executable(), shutil.which("node")
    if browser_path is None or node is None or not package.is_file() or not EDITOR.is_dir():
        pytest.skip("a browser, Node.js, the packaged extension or code-server is missing")
    profile, folder = tmp_path / "profile", tmp_path / "folder"
    (profile / "User").mkdir(parents=True)
    (profile / "User" / "settings.json").write_text(json.dumps(SETTINGS))
    folder.mkdir()
    (folder / "tiny.arch").write_text(WRITTEN)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [node, str(EDITOR), "--user-data-dir", str(profile), "--extensions-dir", str(tmp_path / "extensions")]
    environment = {**os.environ, "HOME": str(tmp_path)}
    subprocess.run([*command, "--install-extension", str(package)], env=environment, check=True, timeout=60)
    options = ["--auth", "none", "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"]
    server = subprocess.Popen([*command, *options, "--bind-addr", address], env=environment, start_new_session=True)
    browser = Browser(browser_path)
    try:
        _wait_until_it_listens(address)
        opened = json.dumps([["openFile", f"vscode-remote://{address}{folder}/tiny.arch"]])
        yield Editor(browser.page(f"http://{address}/?folder={folder}&payload={quote(opened)}"))
    finally:
        browser.close()
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)


def _wait_until_it_listens(address: str) -> None:
    host, port = address.split(":")
    for _ in range(300):
        try:
            socket.create_connection((host, int(port))).close()
        except ConnectionRefusedError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(address)


def _text_after_saving(path: Path) -> str:
    """What a file has when it no longer is as it was written, at the latest after ten seconds."""
    for _ in range(100):
        if (text := path.read_text()) not in ("", WRITTEN):
            return text
        time.sleep(0.1)
    return path.read_text()


@pytest.mark.slow
def test_vscode_shows_fixes_renames_and_formats(editor: Editor, tmp_path: Path) -> None:
    editor.wait_for(".squiggly-error")
    editor.go_to(7, 13)
    editor.command("Show or Focus Hover")
    editor.wait_for_text(".monaco-hover", "unknown name `Linaer`")
    editor.press("Escape")
    editor.command("Quick Fix")
    editor.wait_for_text(".action-widget", "Change to `Linear`")
    editor.press("Enter")
    editor.wait_for_none(".squiggly-error")

    editor.go_to(9, 20)
    editor.command("Show or Focus Hover")
    editor.wait_for_text(".monaco-hover", "layer Linear(in_features, out_features")
    editor.press("Escape")

    editor.go_to(5, 8)
    editor.command("Rename Symbol")
    editor.wait_for_focus(".rename-box input")
    editor.type("FeedForward")
    editor.press("Enter")
    editor.wait_for_text(".view-lines", 'model "tiny" = FeedForward(')
    editor.command("Format Document")
    editor.wait_for_text(".view-lines", "|> down: Linear(")
    editor.wait_for_focus(".monaco-editor *")
    editor.press("S", CONTROL)
    assert _text_after_saving(tmp_path / "folder" / "tiny.arch") == WANTED

    editor.wait_for_text(".codelens-decoration", "552 parameters")
