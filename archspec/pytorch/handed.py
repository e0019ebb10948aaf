"""Hyperparameters that only checks are about: which of them classes and functions take all the same.

A condition that the model settles is in the code as a check. What it is about need not be given, unless it is made of
something that is: then it could be another.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple

from archspec.pytorch.code import names_in, stored
from archspec.pytorch.names import TAKEN_BY_FILES
from archspec.pytorch.plan import names_in as words_in
from archspec.resolve.files import Definition

Kept = frozenset[tuple[Definition, str]]
"""Hyperparameters by their definitions."""


class Given(NamedTuple):
    """What a definition gives to a hyperparameter that another one does not take."""

    caller: Definition
    callee: Definition
    word: str
    code: ast.expr


class Handed:
    """`settled` are the variables that each of a definition's checks is about; `given` what is given in vain."""

    def __init__(self) -> None:
        self.settled: dict[Definition, list[set[str]]] = {}
        self.given: list[Given] = []

    def about(self, definition: Definition, parameters: dict[str, str]) -> set[str]:
        """The hyperparameters that a definition's checks are about; `parameters` are their names in Python."""
        names = {name for group in self.settled.get(definition, ()) for name in group}
        return {word for word, parameter in parameters.items() if parameter in names}

    def open(self, definition: Definition, parameters: dict[str, str], kept: Iterable[str]) -> set[str]:
        """Those that are not kept, and meet what is, sizes, or rounds of loops in a check or in their default."""
        taken = set(kept)
        found: set[str] = set()
        for names in self.settled.get(definition, ()):
            left = [word for word, parameter in parameters.items() if parameter in names and word not in taken]
            is_open = bool(names - {parameters[word] for word in left})
            for word in left:
                default = definition.hyperparameters[word].default
                if is_open or (default is not None and set(words_in(default)) & taken):
                    found.add(word)
        return found


def depends(code: ast.expr, attributes: set[str], kept: set[str], fixed: set[str]) -> bool:
    """Whether an expression is about what its definition is given, sizes, or rounds of loops.

    `attributes` and `kept` are the names of the hyperparameters it takes, `fixed` those that stand for one thing only.
    """
    names = names_in([code])
    return bool(attributes & set(stored([code])) or names & kept or names - fixed - TAKEN_BY_FILES)
