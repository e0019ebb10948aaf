"""The likely meaning of an unknown name, as a suggested fix."""

from __future__ import annotations

from typing import Literal, TypeAlias

from archspec.compiler.resolve.files import suggest_name
from archspec.compiler.resolve.scope import Scope
from archspec.compiler.resolve.unit import Pattern, pattern_text
from archspec.core.diagnostics import closest_match
from archspec.ir.ops import OPS
from archspec.language.syntax import tree

NameContext: TypeAlias = Literal["called", "owned", "listed", ""]
"""How an expression uses a name: as the callee of an application or of a declaration, in a list, or otherwise."""

MIN_SIMILARITY = 0.7
"""How similar a name must be to one of another file to be taken for it."""

_NOT_A_SHAPE = "give the new shape: `reshape([...])(x)`"
_FOREIGN_NAMES = {
    "None": "write `none`",
    "True": "write `true`",
    "False": "write `false`",
    **dict.fromkeys(("null", "nil"), "write `none`"),
    "self": "write `.address` for what is declared at `address`",
    "view": "write `reshape([...])(x)`",
    **dict.fromkeys(("unsqueeze", "squeeze", "flatten"), _NOT_A_SHAPE),
    **dict.fromkeys(("cat", "concatenate", "hstack"), "write `concat(axis)(a, b)`"),
    "chunk": "write `split([size, size])(x)`",
    **dict.fromkeys(("mm", "bmm", "dot"), "write `matmul(a, b)`"),
    "einsum": "use `matmul`, with `transpose` and `reshape`",
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
"""Names of Python and PyTorch."""


def suggest_meaning(scope: Scope, node: tree.Name, use: NameContext) -> str | None:
    """Return help for an unknown name, whose likely meaning then counts as used."""
    name = node.text
    if name in scope.past:
        return "assign it before the loop: names first assigned in a loop end with it"
    if scope.in_header:
        return _size(scope, name)
    standard = scope.unit.standard_names()
    owned: dict[str, Pattern] = {}
    if use != "owned":
        others = [d for d in scope.declared if d.pattern and not d.node.start <= node.start < d.node.end]
        owned = {pattern_text(declared.pattern): declared.pattern for declared in others}
    if name in standard and name not in owned:
        return suggest_name(scope.unit, name, name)
    address = name if name in owned else next((text for text in owned if text.endswith(f".{name}")), None)
    if address is not None:
        return _declared(scope, owned, address)
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
    if near is None and (address := closest_match(name, list(owned), MIN_SIMILARITY)) is not None:
        return _declared(scope, owned, address, "did you mean `.{}`?")
    near = near or closest_match(name, candidates, MIN_SIMILARITY)
    if near is None:
        return f"define it, or declare it as a dimension: `dim {name}`" if use == "listed" else None
    scope.used.add(near)
    scope.file_names.add(near)
    return suggest_name(scope.unit, near, name) if near not in scope.locals else f"did you mean `{near}`?"


def _size(scope: Scope, name: str) -> str:
    """Return help for an unknown name in a shape of the header: a file's definitions are never meant there."""
    sizes = [name for name, local in scope.locals.items() if local.what == "hyperparameter"]
    near = closest_match(name, [*sizes, *scope.unit.dims])
    if near is None:
        return f"to use it as a dimension, declare it: `dim {name}`"
    scope.used.add(near)
    scope.file_names.add(near)
    return f"did you mean `{near}`?"


def _declared(
    scope: Scope, owned: dict[str, Pattern], address: str, text: str = "write `.{}` for what is declared there"
) -> str:
    """Return help that refers to what is declared at an address."""
    scope.referred.append(owned[address])
    return text.format(address)
