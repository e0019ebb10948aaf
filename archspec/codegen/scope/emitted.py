"""Generated Python for one definition."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from archspec.compiler.resolve.unit import Definition


class FunctionInput(NamedTuple):
    """An input as a parameter of a function; `kind` is that of its value. `by_name`: it is keyword-only."""

    name: str
    kind: str
    optional: bool = False
    by_name: bool = False


class Output(NamedTuple):
    """An output: its name ("" for none), and its kind, None where it is absent. `optional`: in some uses it is."""

    name: str
    kind: str | None
    rank: int | None
    optional: bool = False


class EmittedDefinition(NamedTuple):
    """A definition in Python.

    `kept` are the hyperparameters it takes, some `keyword_only`, `inputs` its inputs (None for one that is never
    given), `needs` what a function must be given besides. `record` names the tuple its outputs come in, if they have
    names. `base` is the class it derives from; `init` and `forward` are the statements of those methods, `forward` None
    where the base has it; a function has `forward` alone. `is_unused`: it is only passed as a value, and never applied.
    A function of numbers has its `head` in lines.
    """

    name: str
    definition: Definition
    kept: tuple[str, ...] = ()
    keyword_only: frozenset[str] = frozenset()
    inputs: tuple[FunctionInput | None, ...] = ()
    outputs: tuple[Output, ...] = ()
    record: str | None = None
    needs: frozenset[str] = frozenset()
    is_causal: bool = False
    base: str = ""
    init: Sequence[ast.stmt] = ()
    forward: Sequence[ast.stmt] | None = None
    is_unused: bool = False
    head: Sequence[str] = ()
