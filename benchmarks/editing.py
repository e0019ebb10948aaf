"""How soon the language server shows what an edit changes: from the notification to the diagnostics.

Every edit changes another line of a bundled spec, as someone does who types. Both the time that passes and the time of
the processor are shown, since only the second is the same on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import measure

from archspec.core import resources

MODELS = ("bert", "modernbert", "longformer")
MOST_OPENING, MOST_EDIT = 100.0, 30.0


class Client:
    """Talks to `archspec lsp` over pipes."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "archspec", "lsp"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, id=1)
        while self.receive().get("id") != 1:
            pass
        self.send("initialized", {})

    def send(self, method: str, params: dict[str, Any], **more: int) -> None:
        """Send a notification, or a request if it has an `id`."""
        text = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """The next message of the server."""
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline().strip()) or not length:
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return json.loads(self.process.stdout.read(length))

    def timed(self, method: str, params: dict[str, Any], version: int) -> tuple[float, float]:
        """The milliseconds until the diagnostics of a version arrive, and those of the processor."""
        before, start = self._used(), time.perf_counter()
        self.send(method, params)
        while True:
            message = self.receive()
            if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["version"] == version:
                assert message["params"]["diagnostics"] == []
                return 1e3 * (time.perf_counter() - start), self._used() - before

    def _used(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/schedstat").read_text().split()
        return int(fields[0]) / 1e6


def edited(text: str, number: int) -> str:
    """The text with a comment at the end of one of its lines."""
    lines = text.split("\n")
    steps = [index for index, line in enumerate(lines) if "|>" in line]
    lines[steps[number % len(steps)]] += f"  # {number}"
    return "\n".join(lines)


def main(rounds: int) -> None:
    client = Client()
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            text = Path(resources.specs_root(), f"{model}.arch").read_text()
            uri = Path(folder, f"{model}.arch").as_uri()
            document = {"uri": uri, "languageId": "arch", "version": 0, "text": text}
            opening = client.timed("textDocument/didOpen", {"textDocument": document}, 0)
            edits: list[tuple[float, float]] = []
            for number in range(1, rounds + 1):
                time.sleep(0.05)
                change = [{"text": edited(text, number)}]
                params = {"textDocument": {"uri": uri, "version": number}, "contentChanges": change}
                edits.append(client.timed("textDocument/didChange", params, number))
            passed, used = (statistics.median(times) for times in zip(*edits, strict=True))
            kept = [measure.verdict(opening[0], MOST_OPENING), measure.verdict(passed, MOST_EDIT)]
            times = [f"{opening[0]:.0f} ms", kept[0], f"{passed:.1f} ms", kept[1], f"{used:.1f} ms"]
            rows.append([f"{model}.arch, {text.count(chr(10))} lines", *times])
    client.process.terminate()
    measure.report("language server", ("spec", "opening", "", "edit", "", "of the processor"), rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    main(parser.parse_args().rounds)
