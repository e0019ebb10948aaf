"""Names of values: what the source assigns the result of an operation to."""

from __future__ import annotations

import ast
import linecache
import os
import re
from functools import cache
from typing import Any


def names_of(node: Any, count: int) -> list[list[str]]:
    """Return the names that statements assign the `count` results of an operation to, the innermost function first."""
    places = re.findall(r'File "([^"]+)", line ([0-9]+)', node.meta.get("stack_trace") or "")
    found = [_assigned(path, int(line)) for path, line in reversed(places) if f"{os.sep}torch{os.sep}" not in path]
    named: list[list[str]] = [[] for _ in range(count)]
    for names in found:
        if len(names) == count or len(names) > 0 == count - 1:
            for turn in range(count):
                named[turn].append(names[turn])
    return [[name for name in names if name.strip("_")] for names in named]


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
            found |= {line: names for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return found


def _assigned(path: str, line: int) -> list[str]:
    return _statements(path).get(line, [])


def _names(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Tuple) and all(isinstance(item, ast.Name) for item in target.elts):
        return [item.id for item in target.elts if isinstance(item, ast.Name)]
    return []
