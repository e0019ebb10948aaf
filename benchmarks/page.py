"""Times and sizes of the page of a model, in a headless Chromium.

    python benchmarks/page.py [MODEL ...]

For each model: the time to make the page in Python and its size; in the browser the time from the start of the script
to the first picture with everything around it, and the times to open a block, to open everything and to draw it again.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from browser import Browser, executable  # noqa: E402

import archspec  # noqa: E402
from archspec.drawing.page.page import page  # noqa: E402

MODELS = (
    "bert-base-uncased",
    "modernbert-base",
    "transformer-base",
    "albert-base-v2",
    "llama-3.1-8b",
    "llama-3.1-405b",
    "t5-base",
)
LAST = "(() => { const all = performance.getEntriesByName('draw'); return all[all.length - 1].duration })()"
RUNS = 5


def main() -> None:
    path = executable()
    if path is None:
        sys.exit("no Chromium is installed")
    browser = Browser(path)
    print(f"{'':20} {'page ms':>8} {'KB':>5} {'start ms':>9} {'open ms':>8} {'all ms':>8} {'again ms':>9} {'nodes':>6}")
    for name in sys.argv[1:] or MODELS:
        model = archspec.load(name)
        start = time.perf_counter()
        text = page(model)
        made = 1000 * (time.perf_counter() - start)
        starts, opens, alls, agains, nodes = [], [], [], [], 0
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "page.html"
            file.write_text(text, encoding="utf-8")
            for _ in range(RUNS):
                shown = browser.page(file.as_uri())
                shown.wait("performance.getEntriesByName('start').length")
                starts.append(shown.run("performance.getEntriesByName('start')[0].duration"))
                for _ in range(3):  # the first node, and those below it, until one can be opened
                    shown.key("ArrowDown")
                    shown.key("Enter")
                opens.append(shown.run(LAST))
                for _ in range(9):
                    shown.key("+")
                alls.append(shown.run("Math.max(...performance.getEntriesByName('draw').map((each) => each.duration))"))
                shown.key("d")
                agains.append(shown.run(LAST))
                nodes = shown.run("document.querySelectorAll('.node').length")
                shown.close()
        times = " ".join(f"{sorted(found)[RUNS // 2]:8.1f}" for found in (starts, opens, alls, agains))
        print(f"{name:20} {made:8.0f} {len(text.encode()) / 1000:5.0f}  {times} {nodes:7}")
    browser.close()


if __name__ == "__main__":
    main()
