"""Which packages a change of does not invalidate the cache, and how often imports are hidden in functions.

The contracts of imports are in `pyproject.toml`; `lint-imports` checks them.
"""

import ast
import tomllib

from modules import PACKAGE, nodes_of

from archspec.pipeline.cache import EXCLUDED_PACKAGES


def test_entries_of_the_cache_depend_on_no_package_that_their_state_leaves_out() -> None:
    """Trees and tables are made by `pipeline`, and by what it imports: the packages in the lines below it."""
    settings = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = settings["contracts"][0]["layers"]
    assert {*layers[: layers.index("pipeline")]} - {"testing"} == EXCLUDED_PACKAGES


def test_few_modules_are_imported_inside_functions() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{inner.lineno}"
        for path in PACKAGE.rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef)
        for inner in ast.walk(node)
        if isinstance(inner, ast.ImportFrom) and (inner.module or "").startswith("archspec")
    ]
    assert len(set(found)) < 44, found
