"""Names of values: what the source assigns the result of an operation to."""

from __future__ import annotations

import ast
import linecache
import os
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.fx import Node

    from archspec.pytorch.values.values import Value


_ELEMENT = re.compile(r".*(\.|__)[0-9]+(@[0-9]+)?(?=\.|$)")
"""The innermost element of a list, at the beginning of the path of a module."""


class Naming:
    """The names of values: those of the statements that they are the result of."""

    def __init__(self) -> None:
        self._last: dict[object, list[tuple[Value, str]]] = {}

    def note(self, node: Node, values: Sequence[Value]) -> None:
        """Note the statements that the results of an operation occur in: their last values are what they name."""
        places = re.findall(r'File "([^"]+)", line ([0-9]+)', node.meta.get("stack_trace") or "")
        places = [place for place in places if not _is_of_pytorch(place[0])]
        stack: list[str] = [*(node.meta.get("nn_module_stack") or {})]
        elements = dict.fromkeys([found[0] for key in stack if (found := _ELEMENT.match(key))])  # repetitions differ
        for depth in range(len(places), 0, -1):
            path, line = places[depth - 1]
            names = _statements(path).get(int(line), [])
            if len(names) == len(values):
                self._last[(*places[:depth], *elements)] = list(zip(values, names, strict=True))

    def give(self) -> None:
        """Give the values their names, that of the innermost statement first."""
        for key in sorted(self._last, key=lambda key: -len(key)):  # pyright: ignore
            for value, name in self._last[key]:
                if name.strip("_") and name not in value.names:
                    value.names.append(name)


def _is_of_pytorch(path: str) -> bool:
    """Whether a file is one of PyTorch, or code that it generates, such as for a function with a type of its own."""
    return f"{os.sep}torch{os.sep}" in path or path.startswith("<eval_with_key>")


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
