"""The pages of the documentation, and tables in them that are made from the code."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from paths import ROOT

from archspec.ir.ops import OPS

sys.path.append(str(ROOT / "website"))
LANGUAGE = ROOT / "docs" / "language.md"
README = ROOT / "README.md"
TOPICS = (
    "README",
    "install",
    "tutorial",
    "cli",
    "pictures",
    "language",
    "format",
    "projects",
    "extending",
    "variants",
    "costs",
    "fit",
    "pytorch",
    "explain",
    "audit",
    "verify",
    "prove",
    "lift",
    "formula",
    "search",
    "import",
    "scaffold",
    "compare",
    "comparison",
    "view",
    "editors",
    "recipes",
    "transformers",
    "onnx",
    "python",
    "contributing",
)
PAGES = {"README.md": README, **{f"docs/{topic}.md": ROOT / "docs" / f"{topic}.md" for topic in TOPICS}}


def elementwise_work() -> Iterator[str]:
    """The rows of the table of elementwise work: operations with the same figure stand together."""
    alike: dict[str, list[str]] = {}
    for op in OPS.values():
        counted = "each window" if op.over == "window" else f"the {op.over}"
        figure = f"{op.work} per element of {counted}" if op.work else "none"
        more = [f"`{place.name}`" for place in op.inputs if place.optional]
        figure += f"; 1 more per element of the {op.over} for each of {', '.join(more)} that is given" if more else ""
        alike.setdefault(figure, []).append(f"`{op.name}`")
    for figure, names in alike.items():
        yield f"| {', '.join(names)} | {figure} |"
