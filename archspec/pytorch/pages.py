"""What a definition has become in Python."""

from __future__ import annotations

import ast
from typing import NamedTuple

from archspec.resolve.files import Definition


class Slot(NamedTuple):
    """An input as a parameter of a function; `kind` is that of its value. `by_name`: it stands behind a `*`."""

    name: str
    kind: str
    optional: bool
    by_name: bool = False


class Output(NamedTuple):
    """An output: its name ("" for none), and its kind, None where it is absent. `optional`: in some uses it is."""

    name: str
    kind: str | None
    rank: int | None
    optional: bool = False


class Written(NamedTuple):
    """A definition in Python.

    `kept` are the hyperparameters it takes (the others are settled), `inputs` its inputs (None for one that is never
    given), `needs` what a function is to be given besides. `record` names the tuple its outputs come in, if they have
    names. `base` is the class it derives from; `making` and `computing` are the statements of `__init__` and `forward`,
    `computing` None where those of the base do. `is_unused`: it is only handed on, and never applied.
    """

    name: str
    definition: Definition
    kept: tuple[str, ...]
    inputs: tuple[Slot | None, ...]
    outputs: tuple[Output, ...]
    record: str | None
    needs: frozenset[str]
    is_causal: bool
    base: str
    making: list[ast.stmt]
    computing: list[ast.stmt] | None
    is_unused: bool = False
