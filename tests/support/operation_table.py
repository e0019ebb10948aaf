"""The table of operations in the documentation."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from archspec import Type
from archspec.core.algebra import Dim
from archspec.ir.ops import OPS, REQUIRED, Op

HEADER = "| Operation | Hyperparameters | Inputs | Computation | Result |"


def real(*shape: Dim) -> Type:
    return Type(shape)


shapes = st.lists(st.integers(1, 4), max_size=4).map(tuple)
numbers = st.builds(Type, shapes, st.sampled_from(["real", "int"]))


def literal(value: Any) -> str:
    return {"None": "none", "True": "true", "False": "false"}.get(str(value), str(value))


def row(op: Op) -> str:
    name = f"`{op.name}`" + (f" `{op.symbol}`" if op.symbol and op.symbol != op.name else "")
    hyper = [f"`{a.name}`" if a.default is REQUIRED else f"`{a.name} = {literal(a.default)}`" for a in op.attributes]
    inputs = [
        f"`{i.name} {i.type}`" + (", optional" if i.optional else "") + (", one or more" if i.variadic else "")
        for i in op.inputs
    ]
    return f"| {name} | {'<br>'.join(hyper)} | {'<br>'.join(inputs)} | {op.doc} | {op.result} |"


def rendered() -> str:
    lines = [HEADER, "|---|---|---|---|---|"]
    group = ""
    for op in OPS.values():
        if op.group != group:
            group = op.group
            lines.append(f"| **{group}** | | | | |")
        lines.append(row(op))
    on_numbers = ", ".join(f"`{name}`" for name, op in OPS.items() if op.scalar is not None)
    mixing = ", ".join(f"`{name}`" for name, op in OPS.items() if op.mixes)
    numbers = f"On compile-time numbers, these yield a number: {on_numbers}."
    return "\n".join(
        [*lines, "", numbers, "", f"These apply weights to their input, or mix its positions: {mixing}.", ""]
    )
