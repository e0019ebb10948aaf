"""Expressions of a spec in Python: their code, and enough of their origin to recognise attention."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from archspec.core.diagnostics import Span
from archspec.ir.ops import Op

STATIC, INT, BOOL, REAL, FREE, ANY = "static", "int", "bool", "real", "free", "any"
"""Kinds of values: known when the module is made (or a size), and tensors of integers, booleans and reals; those of the
inputs and outputs of a function that takes elements of any type.

A *free* tensor of reals is made of integers and numbers alone, such as a table of sines. It is computed in float32 or
wider, and takes the model's type, that of its weights and inputs (perhaps half precision), where it meets these.
"""

KIND = {"real": REAL, "int": INT, "bool": BOOL, "": REAL, "any": ANY}
"""The kind of tensors of an element type, as the language writes it."""


class CodeValue(NamedTuple):
    """`op` is the operation it is the result of ("" if that does not matter), `args` what that was given, if present.

    `name` is the variable that holds it, if one does that is not bound again. `rank` counts axes, where known and the
    same in every use. `counts` is what a static value counts as beside tensors: REAL, INT or BOOL. `made` is when it
    was computed, by `Statements.clock`. `optional` tensors are None in some uses; an optional static value is one that
    was None before a loop, and may be anything in it. `span` is where the operation is in the spec. `test` is the
    condition of an `option`, whose `args` are the two values of which it is one. `origin` is what a static value was
    bound to.
    """

    code: ast.expr
    kind: str
    rank: int | None = None
    op: str = ""
    args: tuple[CodeValue, ...] = ()
    settings: tuple[tuple[str, ast.expr], ...] = ()
    name: str | None = None
    counts: str = INT
    made: int = 0
    optional: bool = False
    span: Span | None = None
    test: ast.expr | None = None
    origin: ast.expr | None = None

    @property
    def is_tensor(self) -> bool:
        return self.kind != STATIC

    @property
    def is_none(self) -> bool:
        return isinstance(self.code, ast.Constant) and self.code.value is None

    @property
    def is_number(self) -> bool:
        """Whether it is known when the module is made, and certainly not None."""
        return self.kind == STATIC and not self.is_none and not self.optional


ABSENT_VALUE = CodeValue(ast.Constant(None), STATIC)
"""What is absent."""


class MultipleOutputs(NamedTuple):
    """The outputs of something that has several, under `code`; None for one that is absent."""

    code: ast.expr
    kinds: tuple[str | None, ...]
    ranks: tuple[int | None, ...]


def operation_kind(op: Op, values: Sequence[CodeValue | None]) -> str:
    """The kind of an operation's (first) result."""
    dtype = op.dtype()
    if dtype in ("bool", "int"):
        return KIND[dtype]
    given = [v for i, v in enumerate(values) if v is not None and op.affects_result_type(i)]
    kinds = {v.kind for v in given if v.is_tensor} | {v.counts for v in given if not v.is_tensor}
    if any(v.kind == REAL for v in given):
        return REAL
    if kinds & {FREE, REAL} or dtype == "real":
        return FREE
    return INT if INT in kinds else BOOL
