"""The home page in a headless Chromium: how soon it shows results and is live, how much it sends, how fast edits are.

    python website/build.py -o site && python benchmarks/website.py site

Each start is that of a browser that has never seen the site. The server compresses texts by gzip, as hosts do; "20
Mbit/s" is one link for all answers, and 20 ms before each. An edit is a change of the number of layers in the editor.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import measure

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from browser import Browser, Page, executable  # noqa: E402
from serving import Server  # noqa: E402

RATES = {"no limit": None, "20 Mbit/s": 20e6 / 8}
MOST_PAINT, MOST_LIVE = 300.0, {"no limit": 1000.0, "20 Mbit/s": 4500.0}
MOST_BYTES, MOST_EDIT = 9e6, 150.0
MOST_OF_PLAIN = 0.4
"""The most time from the navigation to the live compiler, as a part of that without the snapshot of Python."""

EDITS = 20
BUTTONS = ("[data-replace]", "#undo")

LIVE = "performance.getEntriesByName('live')[0]?.startTime"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
NUMBERS = "performance.getEntriesByName('numbers').map((each) => each.duration)"


def started(browser: Browser, server: Server) -> Page:
    page = browser.page(f"{server.address}/")
    page.wait(LIVE)
    return page


def edits(page: Page) -> list[float]:
    """The milliseconds from each edit to its numbers in the page."""
    for number in range(EDITS):
        page.wait(f"{NUMBERS}.length === {number + 1} && !document.querySelector('.waiting')")
        page.run(f"document.querySelector({BUTTONS[number % 2]!r}).click()")
    page.wait(f"{NUMBERS}.length === {EDITS + 1}")
    return page.run(NUMBERS)[1:]


def main(site: Path, rounds: int) -> None:
    path = executable()
    if path is None:
        sys.exit("no Chromium is installed")
    rows: list[list[str]] = []
    sent: list[int] = []
    changes: list[float] = []
    for name, rate in RATES.items():
        paints, lives, plain = [], [], []
        for _ in range(rounds):
            server, browser = Server(site, rate), Browser(path)
            page = started(browser, server)
            sent.append(server.sent)
            paints.append(page.run(PAINT))
            lives.append(page.run(LIVE))
            if rate is None:
                changes += edits(page)
                browser.close()
                browser, server.blocked = Browser(path), ".zst"
                plain.append(started(browser, server).run(LIVE))
            browser.close()
            server.close()
        if plain:
            ratio = statistics.median(live / other for live, other in zip(lives, plain, strict=True))
            rows.append(["live, to a plain start", f"{ratio:.2f} times", measure.verdict(ratio, MOST_OF_PLAIN)])
        for what, times, most in (("results", paints, MOST_PAINT), ("live", lives, MOST_LIVE[name])):
            middle = statistics.median(times)
            rows.append([f"{what}, {name}", f"{middle:.0f} ms", measure.verdict(middle, most)])
    rows.append(["bytes until live", f"{max(sent):,}", measure.verdict(max(sent), MOST_BYTES)])
    middle = statistics.median(changes)
    rows.append(["edit", f"{middle:.0f} ms", measure.verdict(middle, MOST_EDIT)])
    measure.report("home page", ("", "median", ""), rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    main(arguments.site.resolve(), arguments.rounds)
