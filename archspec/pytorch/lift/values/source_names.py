"""Names of values: what the source assigns the result of an operation to."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from archspec.pytorch.export.capture import is_library_file

if TYPE_CHECKING:
    from torch.fx import Node

    from archspec.pytorch.values.values import ModuleCall, Value


_ELEMENT = re.compile(r".*(\.|__)[0-9]+(@[0-9]+)?(?=\.|$)")
"""The innermost element of a list, at the beginning of the path of a module."""


WRAPPERS = ("wrapper", "wrapped", "inner", "func", "<lambda>")
"""Names of functions around others, whose variables say nothing, and of those that no line is in alone."""


class SourceName(str):
    """A variable, and the call of a module that assigns it."""

    call: ModuleCall

    def __new__(cls, name: str, call: ModuleCall) -> SourceName:
        self = super().__new__(cls, name)
        self.call = call
        return self


def names_inside(value: Value, call: ModuleCall) -> list[str]:
    """Return the names that a value has inside of a call, without names that code outside gives the result."""
    return [name for name in value.names if not isinstance(name, SourceName) or call.contains(name.call)]


class Naming:
    """The names of values: those of the statements that they are the result of."""

    def __init__(self) -> None:
        self._last: dict[object, list[tuple[Value, SourceName]]] = {}

    def note(self, node: Node, values: Sequence[Value], calls: Sequence[ModuleCall]) -> None:
        """Note the statements that the results of an operation occur in: their last values are what they name. The
        operation is in these calls of modules.
        """
        frames: list[tuple[str, str, str]] = re.findall(
            r'File "([^"]+)", line ([0-9]+), in (\S+)', node.meta.get("stack_trace") or ""
        )
        levels = accumulate([name == "forward" for _, _, name in frames])
        places = [
            (path, line, calls[min(max(level, 1), len(calls)) - 1])
            for (path, line, name), level in zip(frames, levels, strict=True)
            if not is_library_file(path) and name not in WRAPPERS
        ]
        stack: list[str] = [*(node.meta.get("nn_module_stack") or {})]
        elements = dict.fromkeys([found[0] for key in stack if (found := _ELEMENT.match(key))])  # repetitions differ
        for depth in range(len(places), 0, -1):
            path, line, call = places[depth - 1]
            names = _statements(path).get(int(line), [])
            if len(names) == len(values):
                key = (*[place[:2] for place in places[:depth]], *elements)
                self._last[key] = [(value, SourceName(name, call)) for value, name in zip(values, names, strict=True)]

    def give(self) -> None:
        """Give the values their names, that of the innermost statement first."""
        for key in sorted(self._last, key=lambda key: -len(key)):  # pyright: ignore
            for value, name in self._last[key]:
                if name.strip("_") and name not in value.names:
                    value.names.append(name)


@cache
def _statements(path: str) -> dict[int, list[str]]:
    """Return the names that are assigned to in each line of a file."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return {}
    found: dict[int, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            names = _names(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found[line] = [] if line in found else names  # it is unknown which of two in one line
    return found


def _names(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Tuple) and all(isinstance(item, ast.Name) for item in target.elts):
        return [item.id for item in target.elts if isinstance(item, ast.Name)]
    return []
