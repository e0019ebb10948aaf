"""`archspec cost SPEC`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from archspec.cli import write_findings
from archspec.source import fail

if TYPE_CHECKING:
    from argparse import Namespace


def run_cost(options: Namespace) -> int:
    """`archspec cost SPEC`."""
    from archspec.costs import report as costing
    from archspec.costs.api import cost
    from archspec.costs.tree import tree
    from archspec.overrides import parse_override
    from archspec.pipeline import compile_spec
    from archspec.reporting import documents

    sizes = dims(options.dims)
    model = compile_spec(options.spec, dict(map(parse_override, options.settings)))
    found = cost(model, options.batch, options.seq, dims=sizes, dtype=options.dtype, attention=options.attention)
    lines = tree(found, options.depth, fold=options.format in ("table", "markdown"))
    if options.format in ("json", "yaml"):
        contents = costing.contents(model, found, lines)
        sys.stdout.write(documents.json(contents) if options.format == "json" else documents.yaml(contents))
    else:
        sys.stdout.write(costing.page(model, found, lines, options.format))
    write_findings(model.warnings)
    return 0


def dims(settings: list[str]) -> dict[str, int]:
    """The sizes of `--dim NAME=N`. Raises ArchError."""
    found: dict[str, int] = {}
    for setting in settings:
        name, _, text = setting.partition("=")
        name = name.strip()
        try:
            size = int(text)
        except ValueError:
            message = f"`--dim {setting}` gives no size"
            raise fail("usage", message, help="write NAME=N with an integer, as in `--dim seq=512`") from None
        if found.setdefault(name, size) != size:
            raise fail("usage", f"the dimension `{name}` is given as {found[name]} and as {size}")
    return found
