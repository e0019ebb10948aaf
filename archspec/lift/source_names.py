"""Names of values: what the source assigns the result of an operation to."""

from __future__ import annotations

import ast
import linecache
import os
import re
from functools import cache
from typing import Any


def names_of(node: Any) -> list[str]:
    """Return the names that the statement of an operation assigns to, if it is an assignment."""
    places = re.findall(r'File "([^"]+)", line ([0-9]+)', node.meta.get("stack_trace") or "")
    places = [place for place in places if f"{os.sep}torch{os.sep}" not in place[0]]
    return _assigned(places[-1][0], int(places[-1][1])) if places else []


@cache
def _statements(path: str) -> list[ast.Assign | ast.AnnAssign | ast.AugAssign]:
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)]


@cache
def _assigned(path: str, line: int) -> list[str]:
    found = [node for node in _statements(path) if node.lineno <= line <= (node.end_lineno or node.lineno)]
    if not found:
        return []
    target = found[-1].targets[0] if isinstance(found[-1], ast.Assign) else found[-1].target
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Tuple) and all(isinstance(item, ast.Name) for item in target.elts):
        return [item.id for item in target.elts if isinstance(item, ast.Name)]
    return []
