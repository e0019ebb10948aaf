"""Suggested fixes for unknown names."""

from __future__ import annotations

from typing import Literal, TypeAlias

from archspec.compiler.resolve.files import suggest_name
from archspec.compiler.resolve.scope import Scope
from archspec.compiler.resolve.unit import Pattern, pattern_text
from archspec.core.diagnostics import closest_match
from archspec.ir.ops import OPS
from archspec.language.syntax import tree

NameContext: TypeAlias = Literal["called", "owned", "listed", ""]
"""The use of a name: callee of an application or of a declaration, item of a list, or any other use."""

MIN_SIMILARITY = 0.7
"""The minimum similarity of a suggested name from outside the definition."""

_RESHAPE_HELP = "give the new shape: `reshape([...])(x)`"
_FOREIGN_NAMES = {
    "None": "write `none`",
    "True": "write `true`",
    "False": "write `false`",
    **dict.fromkeys(("null", "nil"), "write `none`"),
    "self": "write `.address` to refer to the declaration at `address`",
    "view": "write `reshape([...])(x)`",
    **dict.fromkeys(("unsqueeze", "squeeze", "flatten"), _RESHAPE_HELP),
    **dict.fromkeys(("cat", "concatenate", "hstack"), "write `concat(axis)(a, b)`"),
    "chunk": "write `split([size, size])(x)`",
    **dict.fromkeys(("mm", "bmm", "dot"), "write `matmul(a, b)`"),
    "masked_fill": "write `where(mask, value, x)`",
    "rsqrt": "write `1.0 / sqrt(x)`",
    **dict.fromkeys(("zeros", "ones", "empty"), "write `full([size, size], 0.0)`, with the value"),
    **dict.fromkeys(("tril", "triu"), "use `causal_mask`: `import std { causal_mask }`"),
    **dict.fromkeys(("float", "double"), "write `real(x)`"),
    "long": "write `int(x)`",
    "minimum": "write `min(a, b)`",
    "maximum": "write `max(a, b)`",
    "range": "write `for i in 0..n`, or `arange(n)` for a tensor",
    "swish": "use `silu`: `import std { silu }`",
    "contiguous": "remove it: tensors have no memory layout",
    "Parameter": "write `address: param [size, size]`",
    "Sequential": "write the layers as the steps of a chain: `x |> first: Layer(n) |> relu`",
    "ModuleList": "write a loop: `|> layers[i]: Layer(n) for i in 0..depth`",
}
"""Help for names of Python and PyTorch."""


def suggest_meaning(scope: Scope, node: tree.Name, use: NameContext) -> str | None:
    """Return help for an unknown name; a suggested name counts as used."""
    name = node.text
    if name in scope.past:
        return "assign it before the loop: names first assigned in a loop end with it"
    if scope.in_signature:
        return _size_help(scope, name)
    standard = scope.unit.standard_names()
    addresses: dict[str, Pattern] = {}
    if use != "owned":
        declarations = [d for d in scope.declared if d.pattern and not d.node.start <= node.start < d.node.end]
        addresses = {pattern_text(declared.pattern): declared.pattern for declared in declarations}
    if name in standard and name not in addresses:
        return suggest_name(scope.unit, name, name)
    address = name if name in addresses else next((text for text in addresses if text.endswith(f".{name}")), None)
    if address is not None:
        return _address_help(scope, addresses, address)
    if name in _FOREIGN_NAMES:
        return _FOREIGN_NAMES[name]
    candidates: list[str] = [
        *scope.unit.names,
        *([] if use in ("called", "owned") else list(scope.unit.dims)),
        *standard,
        *OPS,
    ]
    near = closest_match(name, [*scope.locals, *candidates], MIN_SIMILARITY) if use in ("called", "owned") else None
    near = near or closest_match(name, list(scope.locals))
    if near is None and (address := closest_match(name, list(addresses), MIN_SIMILARITY)) is not None:
        return _address_help(scope, addresses, address, "did you mean `.{}`?")
    near = near or closest_match(name, candidates, MIN_SIMILARITY)
    indices = [f"did you mean `{other}`?" for other, local in scope.locals.items() if local.what == "index"]
    if near is None and len(name) == len(indices) == 1:
        return indices[0]
    if near is None:
        return f"define it, or declare it as a dimension: `dim {name}`" if use == "listed" else None
    scope.used.add(near)
    scope.file_names.add(near)
    return suggest_name(scope.unit, near, name) if near not in scope.locals else f"did you mean `{near}`?"


def _size_help(scope: Scope, name: str) -> str:
    """Return help for an unknown name in a shape of the signature, where definitions are not valid."""
    sizes = [name for name, local in scope.locals.items() if local.what == "hyperparameter"]
    near = closest_match(name, [*sizes, *scope.unit.dims])
    if near is None:
        return f"to use it as a dimension, declare it: `dim {name}`"
    scope.used.add(near)
    scope.file_names.add(near)
    return f"did you mean `{near}`?"


def _address_help(
    scope: Scope, addresses: dict[str, Pattern], address: str, text: str = "write `.{}` to refer to its declaration"
) -> str:
    """Return help that suggests the address of a declaration."""
    scope.referred.append(addresses[address])
    return text.format(address)
