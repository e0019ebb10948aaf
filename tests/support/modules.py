"""The Python files of the package, which several tests read."""

import ast
from functools import cache
from pathlib import Path

from paths import ROOT

PACKAGE = ROOT / "archspec"


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file; not to be changed."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of the syntax tree of a file."""
    return tuple(ast.walk(tree_of(path)))
