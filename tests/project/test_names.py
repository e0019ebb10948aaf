"""Names and wording that the guide retires: how often they are in each package, which may only become fewer.

`tests/data/names.json` has the counts. With `--update-golden`, they are lowered; they are never raised.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from modules import PACKAGE, nodes_of
from paths import DATA

BASELINE = DATA / "names.json"

VARIABLES = {*["found", "given", "known", "rest", "kept", "whole", "made", "taken", "around", "held", "seen_one"]}
LIMITS = re.compile(r"_?(MOST|LEAST|LARGEST|SMALLEST|LONGEST|SHORTEST|DEEPEST|WIDEST|FEWEST)(_|$)")
PREPOSITIONS = re.compile(r"_?(of|with|without|by|in|at|over|among|around|beside)(_|$)")
WORDING = re.compile(
    r"^(What|Whatever|The one|The ones|Those|That|As|So|Where) |\b(so many|as many as|that of|those of|of which few|"
    r"which few commands|such a one|at last|the mend|no such one)\b"
)
ALLOWED = {"with_name", "with_sizes"}


def variables(node: ast.AST) -> Iterator[str]:
    """Variables, parameters and fields that say nothing."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in VARIABLES:
            yield name
        case _:
            pass


def limits(node: ast.AST) -> Iterator[str]:
    """Constants of limits that do not begin with MAX_ or MIN_."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) if LIMITS.match(name):
            yield name
        case _:
            pass


def definitions(node: ast.AST) -> Iterator[str]:
    """Functions named by a preposition, and exceptions that are not named as errors."""
    match node:
        case ast.FunctionDef(name=name) if PREPOSITIONS.match(name) and name not in ALLOWED:
            yield name
        case ast.ClassDef(name=name, bases=[ast.Name(id=base)]) if base.endswith(("Error", "Exception")):
            if not name.endswith("Error") and base != "Exception":
                yield name
        case _:
            pass


def wording(node: ast.AST) -> Iterator[str]:
    """First lines of docstrings that describe a noun in place of naming it."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        first = (ast.get_docstring(node) or "").partition("\n")[0]
        if WORDING.search(first):
            yield first


CHECKS: dict[str, Callable[[ast.AST], Iterator[str]]] = {
    check.__name__: check for check in (variables, limits, definitions, wording)
}


def count(check: str) -> dict[str, int]:
    """How often a check finds something in each package."""
    counts: Counter[str] = Counter()
    for path in sorted(PACKAGE.rglob("*.py")):
        package = path.relative_to(PACKAGE).parts[0]
        counts[package] += sum(1 for node in nodes_of(path) for _ in CHECKS[check](node))
    return {package: number for package, number in counts.items() if number}


def places(check: str, package: str) -> list[str]:
    return [
        f"{path.relative_to(Path(PACKAGE).parent)}:{getattr(node, 'lineno', 1)}: {name}"
        for path in sorted((PACKAGE / package).rglob("*.py"))
        for node in nodes_of(path)
        for name in CHECKS[check](node)
    ]


@pytest.mark.parametrize("check", CHECKS)
def test_retired_names_become_fewer(check: str, request: pytest.FixtureRequest) -> None:
    baseline = json.loads(BASELINE.read_text())
    counts, limit = count(check), baseline[check]
    more = {package: number for package, number in counts.items() if number > limit.get(package, 0)}
    assert not more, "\n".join(place for package in more for place in places(check, package))
    if counts != limit and request.config.getoption("update_golden"):
        BASELINE.write_text(json.dumps({**baseline, check: counts}, indent=1) + "\n")
    else:
        assert counts == limit, "fewer than before: lower the counts with --update-golden"
