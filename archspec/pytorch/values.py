"""What an expression of a spec is in Python: its code, and enough of its origin to recognise attention."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

STATIC, INT, BOOL, REAL, FREE = "static", "int", "bool", "real", "free"
"""Kinds of values: known when the module is made (or a size), and tensors of integers, booleans and reals.

A *free* tensor of reals is made of integers and numbers alone, such as a table of sines. It is computed in float32 or
wider, and takes the type of the stream (whose weights may be in half precision) where it meets it.
"""


class Val(NamedTuple):
    """`op` is the operation it is the result of ("" if that does not matter), `args` what that was given.

    `name` is the variable that holds it, if one does that is not bound again. `rank` counts axes, where known and the
    same in every use. `real` tells numbers of a static value apart.
    """

    code: ast.expr
    kind: str
    rank: int | None = None
    op: str = ""
    args: tuple[Any, ...] = ()
    settings: tuple[tuple[str, ast.expr], ...] = ()
    name: str | None = None
    real: bool = False

    @property
    def is_tensor(self) -> bool:
        return self.kind != STATIC


class Several(NamedTuple):
    """The outputs of something that has several, under `code`; None for one that is absent."""

    code: ast.expr
    kinds: tuple[str | None, ...]
    ranks: tuple[int | None, ...]
