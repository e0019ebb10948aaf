"""A headless Chromium for tests, driven by the DevTools protocol over a pipe: nothing but the browser is needed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")


def executable() -> str | None:
    """The path of an installed browser; the variable BROWSER_FOR_TESTS names one that is not on the PATH."""
    return os.environ.get("BROWSER_FOR_TESTS") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A running browser; `page` opens pages in it."""

    def __init__(self, path: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="archspec-browser-")
        reads, gives = os.pipe(), os.pipe()

        def wire() -> None:  # the browser reads commands from descriptor 3 and answers on 4
            commands, answers = os.dup(reads[0]), os.dup(gives[1])
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self._process = subprocess.Popen(
            [
                path,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--force-color-profile=srgb",
                "--remote-debugging-pipe",
                f"--user-data-dir={self._profile}",
                "about:blank",
            ],
            preexec_fn=wire,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads[0])
        os.close(gives[1])
        self._commands, self._answers = os.fdopen(reads[1], "wb", 0), os.fdopen(gives[0], "rb")
        self._buffer, self._number = b"", 0
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its result; events that arrive meanwhile are kept in `events`."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self._commands.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._answers.fileno(), 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has ended")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def page(self, url: str, width: int = 1360, height: int = 860, *, dark: bool = False, touch: bool = False) -> Page:
        """Open a page of a size, and wait until it has loaded."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        page.resize(width, height)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        page.send("Emulation.setEmulatedMedia", features=scheme)
        if touch:
            page.send("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.send(f"{domain}.enable")
        page.open(url)
        return page

    def close(self) -> None:
        self._commands.close()
        self._process.terminate()
        self._process.wait(10)
        self._answers.close()
        shutil.rmtree(self._profile, ignore_errors=True)


class Page:
    """A page in a browser."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **parameters)

    def open(self, url: str) -> None:
        self.send("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def resize(self, width: int, height: int) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def run(self, code: str) -> Any:
        """The value of an expression in the page, which may be a promise."""
        result = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "error in the page"))
        return result["result"].get("value")

    def wait(self, condition: str, seconds: float = 60) -> None:
        """Wait until an expression is true, so many seconds at most."""
        again = f"const t = () => {condition} ? f(true) : n++ < 50 ? setTimeout(t, 20) : f(false)"
        code = f"new Promise((f) => {{ let n = 0; {again}; t(); }})"
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if self.run(code):
                    return
            except RuntimeError as error:  # the page was replaced meanwhile
                if "context" not in str(error) and "navigated" not in str(error):
                    raise
                time.sleep(0.02)
        raise TimeoutError(condition)

    def key(self, key: str, modifiers: int = 0) -> None:
        """Press and release one key, named as in `KeyboardEvent.key`."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        code = codes.get(key, ord(key.upper()[0]))
        shared: dict[str, Any] = {"key": key, "modifiers": modifiers, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
        self.send("Input.dispatchKeyEvent", type="keyUp", **shared)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def mouse(self, type: str, x: float, y: float, **more: Any) -> None:
        self.send("Input.dispatchMouseEvent", type=type, x=x, y=y, **more)

    def click(self, x: float, y: float, times: int = 1) -> None:
        for count in range(1, times + 1):
            self.mouse("mousePressed", x, y, button="left", clickCount=count)
            self.mouse("mouseReleased", x, y, button="left", clickCount=count)

    def touch(self, type: str, *points: tuple[float, float]) -> None:
        self.send("Input.dispatchTouchEvent", type=type, touchPoints=[{"x": x, "y": y} for x, y in points])

    def screenshot(self, path: str | Path) -> None:
        data = self.send("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def events(self, method: str) -> list[dict[str, Any]]:
        """The parameters of the events of one kind that this page has sent."""
        return [
            event["params"]
            for event in self._browser.events
            if event.get("method") == method and event.get("sessionId") == self._session
        ]

    def close(self) -> None:
        self._browser.send("Target.closeTarget", targetId=self._target)
