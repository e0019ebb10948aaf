"""`archspec diff`: the command, the document that programs read, and the page that people read."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from archspec.cli import write_findings
from archspec.cli.commands import DOCUMENTS, write_document
from archspec.cli.several import overrides_for
from archspec.counts.document import finite
from archspec.counts.report import number, title
from archspec.reporting.tables import Column, View, csv, escape_markdown, markdown, shape, table
from archspec.source import printable

if TYPE_CHECKING:
    from argparse import Namespace

    from archspec.diffs.api import Difference
    from archspec.diffs.op_changes import FoldedChange
    from archspec.diffs.structure import Folded, Prefix, Repetition, Stored

MOST_ROWS = 1_000
"""Changes in a table for people; programs get all of them."""


def run_diff(options: Namespace) -> int:
    """`archspec diff A B`; the status is 1 where they differ."""
    from archspec.diffs.api import diff
    from archspec.pipeline import compile_spec

    overrides = overrides_for(2, options.settings)
    a, b = (compile_spec(spec, given) for spec, given in zip((options.a, options.b), overrides, strict=True))
    found = diff(a, b)
    if options.format in DOCUMENTS:
        write_document(contents(found), options.format)
    else:
        sys.stdout.write(page(found, options.format))
    write_findings([*a.warnings, *(warning for warning in b.warnings if warning not in a.warnings)])
    return int(bool(found))


# Documents ------------------------------------------------------------------------------------------------------------


def contents(found: Difference) -> dict[str, Any]:
    """The document that JSON and YAML write: all there is to know to make B's tensors of A's."""
    return {
        "format": 1,
        "models": [
            {"model": model.model, "overrides": finite(model.overrides), "params": model.params.total}
            for model in (found.before, found.after)
        ],
        "equal": not found,
        "prefix": found.prefix._asdict(),
        "tensors": [_tensor_entry(change) for change in found.folded],
        "repetitions": [repetition._asdict() for repetition in found.repetitions],
        "operations": [
            {
                "change": change.kind,
                "address": change.fold.pattern,
                "numbers": [*map(list, change.fold.numbers)],
                "addresses": list(change.fold.names),
                "what": change.what,
                "before": change.before,
                "after": change.after,
            }
            for change in found.operations
        ],
    }


def _tensor_entry(change: Folded) -> dict[str, Any]:
    return {
        "change": list(change.kinds),
        "name": change.fold.pattern,
        "numbers": [*map(list, change.fold.numbers)],
        "names": list(change.fold.names),
        "before": change.before._asdict() if change.before else None,
        "after": change.after._asdict() if change.after else None,
    }


# Pages ----------------------------------------------------------------------------------------------------------------


def page(found: Difference, format: str) -> str:
    """All that is written as a table, markdown or csv; of these csv is the rows alone, every tensor in them."""
    tensors = [_tensor_row(change) for change in found.folded]
    operations = [_operation_row(change) for change in found.operations]
    if format == "csv":
        keys = ("part", "change", "name", "numbers", "names", "what", "before", "after")
        return csv(View(tuple(Column(key, key) for key in keys), [*tensors, *operations]))
    heading, *notes = (printable(line) for line in _sentences(found))
    write = table if format == "table" else markdown
    sections: list[str] = []
    titles = _titles(found)
    for rows, what, where in ((_shown(found), "tensors", "tensor"), (operations, "operations", "at")):
        if rows:
            columns = [Column("change", what), Column("name", where, "(the model)"), Column("numbers", "*")]
            columns += [Column("names", "number")] if where == "tensor" else [Column("what", "")]
            columns += [Column("before", printable(titles[0])), Column("after", printable(titles[1]))]
            sections.append(write(View(tuple(columns), rows[:MOST_ROWS])))
            if len(rows) > MOST_ROWS:
                notes.append(f"{len(rows) - MOST_ROWS:,} more lines of {what}: --format csv or json writes them all")
    if format == "table":
        return "\n".join([f"{heading}\n", *sections, "".join(f"{note}\n" for note in notes)]).rstrip("\n") + "\n"
    items = "".join(f"- {escape_markdown(note)}\n" for note in notes)
    return "\n".join([f"## {escape_markdown(heading)}\n", *sections, items]).rstrip("\n") + "\n"


def _titles(found: Difference) -> tuple[str, str]:
    first, second = title(found.before), title(found.after)
    return (first, second) if first != second else (f"{first} (1)", f"{second} (2)")


def _sentences(found: Difference) -> list[str]:
    """The heading, and what the tables leave unsaid."""
    first, second = _titles(found)
    if not found:
        tensors = number(len(found.after.tensors) + len(found.after.buffers), "tensor")
        return [f"{first} and {second} do not differ: the same {tensors}, the same operations"]
    counts = Counter(kind for change in found.tensors for kind in change.kinds)
    said = [_counted(count, kind) for kind, count in counts.items()] or ["the same tensors"]
    said.append("operations differ" if found.operations else "the same operations")
    lines = [f"{first} -> {second}: {', '.join(said)}"]
    lines += _prefixed(found.prefix, first, second)
    for repetition in found.repetitions:
        lines.append(f"each further {repetition.address} has the {repetition.tensors} tensors of {repetition.like}")
    return lines


def _counted(count: int, kind: str) -> str:
    words = {"param": "made a parameter", "buffer": "made a buffer"}.get(kind, kind)
    return f"{number(count, 'tensor')} {words}"


def _prefixed(prefix: Prefix, first: str, second: str) -> list[str]:
    if prefix.added:
        return [
            f"`{prefix.added}` stands before every name of {first} in {second}, and is no difference in these lines"
        ]
    if prefix.removed:
        return [f"`{prefix.removed}` stands before names in {first} only, which is no difference in these lines"]
    return []


def _shown(found: Difference) -> list[dict[str, Any]]:
    """The rows of tensors, with a repetition in one row."""
    from archspec.diffs.structure import covered, folded

    repetitions = found.repetitions
    within = tuple(covered(repetitions))
    rest = [change for change in found.tensors if not within or not change.name.startswith(within)]
    return [*map(_repetition_row, repetitions), *map(_tensor_row, folded(rest))]


def _repetition_row(repetition: Repetition) -> dict[str, Any]:
    from archspec.addresses import ranges

    return {
        "change": "added" if repetition.after > repetition.before else "removed",
        "name": repetition.address,
        "numbers": ranges(repetition.numbers),
        "names": repetition.tensors * len(repetition.numbers),
        "before": f"{repetition.before:,} of them",
        "after": f"{repetition.after:,} of them",
    }


def _tensor_row(change: Folded) -> dict[str, Any]:
    return {
        "part": "tensors",
        "change": ", ".join(change.kinds),
        "name": change.fold.pattern,
        "numbers": change.fold.ranges,
        "names": len(change.fold.names),
        "what": "",
        "before": _stored(change.before),
        "after": _stored(change.after),
    }


def _stored(tensor: Stored | None) -> str:
    if tensor is None:
        return ""
    words = [shape(tensor.shape)]
    if tensor.kind == "buffer":
        words.append("buffer")
    elif not tensor.trainable:
        words.append("frozen")
    return ", ".join(words) + (f" = {tensor.tied_to}" if tensor.tied_to else "")


def _operation_row(change: FoldedChange) -> dict[str, Any]:
    unsaid = "the operations differ, in a way that there are no words for" if change.kind == "differs" else ""
    return {
        "part": "operations",
        "change": change.kind,
        "name": change.fold.pattern,
        "numbers": change.fold.ranges,
        "names": len(change.fold.names),
        "what": change.what or unsaid,
        "before": change.before,
        "after": change.after,
    }
