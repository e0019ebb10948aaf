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
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from browser import Browser, Page, executable
from paths import ROOT, read_spec

EXTENSION = ROOT / "editors" / "vscode"
EDITOR = EXTENSION / "test" / "node_modules" / "code-server"
SETTINGS = {
    "editor.quickSuggestions": False,  # completions come when the test asks for them
    "editor.suggestOnTriggerCharacters": False,
    "files.autoSave": "off",  # in a browser, it is on
    "archspec.command": [sys.executable, "-m", "archspec", "lsp"],
    "extensions.ignoreRecommendations": True,
    "keyboard.dispatch": "keyCode",
    "workbench.startupEditor": "none",
}
WRITTEN = read_spec("vscode_written")
WANTED = read_spec("vscode_wanted")
CONTROL, SHIFT = 2, 8
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}


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
        self._page.wait(_has_focus(selector))

    def wait_for_text(self, selector: str, text: str) -> None:
        self._page.wait(_has_text(selector, text))

    def go_to(self, line: int, column: int) -> None:
        self._open_list("P", CONTROL)
        self.type(f":{line}:{column}")
        self.wait_for_text(".quick-input-list", f"line {line}")
        self.press("Enter")
        self.wait_for_text(".statusbar", f"Ln {line}, Col {column}")
        self.wait_for_focus(".monaco-editor *")

    def command(self, name: str) -> None:
        self._open_list("P", CONTROL | SHIFT)
        self.type(name)
        self.wait_for_text(".quick-input-list .monaco-list-row.focused", name)
        self.press("Enter")

    def hover(self, text: str) -> None:
        """Show what is at the cursor, and wait for a text in it."""
        self._until(lambda: self.command("Show or Focus Hover"), _has_text(".monaco-hover", text))
        self.press("Escape")

    def fix(self, title: str) -> None:
        """Apply the first quick fix at the cursor, which has a title."""
        shown = f"{_has_text('.action-widget', title)} && {_has_focus('.action-widget *')}"
        self._until(lambda: self.command("Quick Fix"), shown)
        self.press("Enter")
        self.wait_for_none(".squiggly-error")

    def complete(self, label: str) -> None:
        """Accept the first completion at the cursor, which has a label."""
        row = ".suggest-widget.visible .monaco-list-row.focused"
        self._until(lambda: self.press(" ", CONTROL), _has_text(row, label))
        self.press("Enter")
        self.wait_for_none(row)

    def rename(self, name: str) -> None:
        """Rename what is at the cursor."""
        self._until(lambda: self.command("Rename Symbol"), _has_focus(".rename-box input"))
        self.type(name)
        self.press("Enter")
        self.wait_for_none(".rename-box input:focus")

    def _open_list(self, key: str, modifiers: int) -> None:
        self._until(lambda: self.press(key, modifiers), _has_focus(".quick-input-widget input"))

    def _until(self, act: Callable[[], None], condition: str) -> None:
        """Repeat what has no effect while the editor is still busy, until a condition holds."""
        for _ in range(10):
            act()
            try:
                self._page.wait(condition, seconds=10)
            except TimeoutError:
                self.press("Escape")
            else:
                return
        raise TimeoutError(condition)


def _has_focus(selector: str) -> str:
    return f"document.activeElement.matches({json.dumps(selector)})"


def _has_text(selector: str, text: str) -> str:
    elements = f"[...document.querySelectorAll({json.dumps(selector)})]"
    return f"{elements}.some(e => e.innerText.replaceAll('\\u00a0', ' ').includes({json.dumps(text)}))"


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
    subprocess.run([*command, "--install-extension", str(package)], env=environment, check=True, timeout=300)
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
    for _ in range(1200):
        try:
            socket.create_connection((host, int(port))).close()
        except ConnectionRefusedError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(address)


def _wait_for_contents(path: Path, text: str) -> None:
    """Wait until a file has a text, a minute at most."""
    deadline = time.monotonic() + 60
    while path.read_text() != text and time.monotonic() < deadline:
        time.sleep(0.1)
    assert path.read_text() == text


@pytest.mark.slow
def test_vscode_shows_fixes_completes_renames_and_formats(editor: Editor, tmp_path: Path) -> None:
    editor.wait_for(".squiggly-error")
    editor.go_to(7, 13)
    editor.hover("unknown name `Linaer`")
    editor.fix("Change to `Linear`")
    editor.go_to(9, 20)
    editor.hover("layer Linear(in_features, out_features")

    editor.go_to(8, 12)
    editor.command("Insert Line Below")
    editor.wait_for_text(".statusbar", "Ln 9, Col 5")
    editor.type("|> norm: LayerN")
    editor.complete("LayerNorm")
    editor.wait_for_text(".view-lines", "import std { Linear, gelu, LayerNorm }")
    editor.type("(inner)")
    editor.wait_for(".squiggly-error")
    editor.go_to(13, 50)
    editor.fix("Expect 616")

    editor.go_to(14, 1)
    editor.command("Insert Snippet")
    editor.wait_for_focus(".quick-input-widget input")
    editor.type("model")
    editor.wait_for_text(".quick-input-list .monaco-list-row.focused", "A model and its expected total")
    editor.press("Enter")
    editor.wait_for_text(".view-lines", 'model "name" = Block() { expect params == 0 }')
    for text in ("large", "Mlp", "hidden = 16, inner = 64", "2_256"):
        editor.type(text)
        editor.wait_for_text(".view-lines", text)
        editor.press("Tab")

    editor.go_to(5, 8)
    editor.rename("FeedForward")
    editor.wait_for_text(".view-lines", 'model "large" = FeedForward(')
    editor.command("Format Document")
    editor.wait_for_text(".view-lines", "|> down: Linear(")
    editor.wait_for_text(".codelens-decoration", "616 parameters")
    editor.wait_for_focus(".monaco-editor *")
    editor.press("S", CONTROL)
    _wait_for_contents(tmp_path / "folder" / "tiny.arch", WANTED)
