"""The files that the definitions of a model are in."""

from __future__ import annotations

from archspec.ir.module import Body


def sources_of(body: Body) -> dict[str, str]:
    """Return the texts of the files in which a body and all bodies that it applies are written, by their labels."""
    found: dict[str, str] = {}
    seen: set[Body] = set()
    waiting = [body]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        for call in current.calls:
            found[call.span.source.label] = call.span.source.text
            if call.body is not None:
                waiting.append(call.body)
    return dict(sorted(found.items()))
