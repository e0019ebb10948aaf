"""The results of a model as HTML: its count, the shares of roles, its layers and its costs, in the colors of roles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from archspec.analysis.cost.api import cost
from archspec.analysis.count.groups import count_by_role
from archspec.analysis.count.tree import CountRow, count_tree
from archspec.core.diagnostics import ArchError, escape_for_terminal
from archspec.core.reports import text
from archspec.core.reports.roles import ROLES
from archspec.ir.index_ranges import dimensions
from archspec.ir.module import Body
from archspec.ir.table import Tensor
from archspec.pipeline.model import Model, get_compilation

BATCH, SEQ = 1, 512
"""The sizes for which costs are shown; a model that cannot have them shows its memory alone."""

MOST_ROWS = 12
"""The most rows of a table with layers inside layers."""


def render(model: Model) -> str:
    """Return the results of a model as HTML."""
    counted = model.count()
    shares = [(group.name, group.params) for group in count_by_role(counted.table, counted.selection)]
    shares.sort(key=lambda share: -share[1])
    total = model.params.total
    heading = f'<p class="total"><b>{total:,}</b> <span>parameters</span></p>'
    return heading + _shares([share for share in shares if share[1]], total) + _layers(model) + _costs(model)


def line_roles(model: Model, label: str) -> dict[int, str]:
    """Return the role of what each line of a file applies, by the number of the line; mixed lines have none."""
    found: dict[int, set[str]] = {}
    roles = _roles_by_address(model.tensors)
    for address, start in _places(get_compilation(model).body, "", label, set()):
        line = get_compilation(model).unit.source.position(start)[0]
        found.setdefault(line, set()).update(roles.get(address, ()))
    return {line: next(iter(names)) for line, names in sorted(found.items()) if len(names) == 1}


def _roles_by_address(tensors: tuple[Tensor, ...]) -> dict[str, set[str]]:
    """Return the roles of the tensors inside each module."""
    roles: dict[str, set[str]] = {}
    for tensor in tensors:
        parts = tensor.name.split(".")
        for length in range(1, len(parts)):
            roles.setdefault(".".join(parts[:length]), set()).add(tensor.role or "")
    return roles


def _places(body: Body, prefix: str, label: str, seen: set[Body]) -> Iterator[tuple[str, int]]:
    """Yield the address of each module that a file applies, with its place; repetitions once."""
    for call in body.calls:
        address = ".".join(filter(None, (prefix, call.address)))
        if call.span.source.label != label:
            continue
        if call.address:
            yield address, call.span.start
        if call.body is not None and call.body not in seen:
            seen.add(call.body)
            yield from _places(call.body, address, label, seen)


def _shares(shares: list[tuple[str, int]], total: int) -> str:
    """Return a bar of the roles, and what its colors mean."""
    bar = "".join(f'<i class="{_role(role)}" style="flex-grow: {params}"></i>' for role, params in shares)
    words = "".join(
        f'<li><i class="{_role(role)}"></i>{_words(role)} <span>{_percent(params, total)}</span></li>'
        for role, params in shares
    )
    return f'<div class="shares" aria-hidden="true">{bar}</div><ul class="roles">{words}</ul>'


def _layers(model: Model) -> str:
    """Return a table of the layers, as deep as it stays short."""
    counted = model.count()
    rows = count_tree(counted.table, counted.selection, 1)
    for depth in (2, 3):
        deeper = count_tree(counted.table, counted.selection, depth)
        if len(deeper) > MOST_ROWS:
            break
        rows = deeper
    roles = {_pattern(address): found for address, found in _roles_by_address(model.tensors).items()}
    body = "".join(_layer(row, roles.get(_pattern(row.address), set()), model.params.total) for row in rows)
    caption = "<caption>Parameters of each layer</caption>"
    return f'<div class="layers"><table class="rows">{caption}<tbody>{body}</tbody></table></div>'


def _pattern(address: str) -> str:
    """Return an address without the numbers of repetitions."""
    return re.sub(r"\.[\d,*-]+(?=\.|$)", ".*", address)


def _layer(row: CountRow, roles: set[str], total: int) -> str:
    role = row.role or (next(iter(roles)) if len(roles) == 1 else None)
    times = f" <em>× {row.times:,}</em>" if row.times > 1 else ""
    mark = f'<i class="{_role(role)}"></i>'
    name = f'<th scope="row" style="--level: {row.level}">{mark}{_text(row.label)}{times}</th>'
    share = "tied" if row.tied and not row.total else _percent(row.total, total)
    return f"<tr>{name}<td>{_text(row.type)}</td><td>{row.total:,}</td><td>{share}</td></tr>"


def _costs(model: Model) -> str:
    """Return the FLOPs for the sizes above, and the memory of weights and of training."""
    found: list[str] = []
    computed = None
    try:
        get_compilation(model).require_computation()
        names = dimensions(get_compilation(model).body.inputs)
        sizes = {name: size for name, size in (("batch", BATCH), ("seq", SEQ)) if name in names}
        computed = cost(model, dims=sizes)
        shown = text.flops(computed.work.flops)
        if shown:
            given = ", ".join(f"{name} = {size:,}" for name, size in sizes.items())
            found.append(f"{given}: <b>{shown}</b>" if given else f"<b>{shown}</b>")
    except ArchError:
        pass
    if computed is not None:
        memory = computed.memory
        found.append(f"weights, {memory.dtype}: <b>{_size(memory.weights)}</b>")
        found += [
            f"training, Adam: <b>{_size(scheme.total)}</b> and activations"
            for scheme in memory.schemes
            if scheme.name == "Adam"
        ]
    return f'<p class="costs">{"".join(f"<span>{each}</span>" for each in found)}</p>'


def _size(count: int) -> str:
    return text.size(count) or f"{count:,} B"


def _percent(part: int, total: int) -> str:
    share = 100 * part / total if total else 0.0
    return f"{share:.1f} %" if share >= 0.05 or not part else "&lt; 0.1 %"


def _role(role: str | None) -> str:
    """Return the class of a role, which has its color."""
    return f"role role-{role}" if role in ROLES else "role"


def _words(role: str) -> str:
    return _text(role.replace("feed_forward", "feed-forward").replace("_", " ")) or "other"


def _text(value: str) -> str:
    return escape(escape_for_terminal(value))
