"""The walks of the resolved form leave out nothing: they are compared with one over all fields of its nodes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from paths import DATA, ROOT

from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.definition import resolve_definition
from archspec.compiler.resolve.unit import Definition
from archspec.compiler.resolve.walk import Visitor
from archspec.core.diagnostics import Report
from archspec.pipeline.files import load_file
from archspec.pipeline.locate import locate

EXPRESSIONS, STATEMENTS = get_args(nodes.Expr), get_args(nodes.Statement)
SPECS = [
    Path(str(ROOT / "specs")) / "seq2seq" / "t5.arch",
    Path(str(ROOT / "specs")) / "std" / "attention.arch",
    Path(str(ROOT / "specs")) / "vision" / "swin.arch",
    DATA / "translated" / "everything.arch",
    DATA / "translated" / "loops.arch",
    DATA / "translated" / "merged.arch",
]


def bodies(path: Path) -> Iterator[tuple[nodes.Statement, ...]]:
    for binding in load_file(locate(str(path)), Report()).unit.names.values():
        if isinstance(binding.target, Definition):
            yield resolve_definition(binding.target, Report()).body


def parts(value: Any, kinds: tuple[type, ...]) -> Iterator[Any]:
    """Everything of some kinds in the fields of a node, except in statements inside it."""
    if isinstance(value, kinds):
        yield value
    if isinstance(value, nodes.Node):
        inside = ("body", "otherwise") if isinstance(value, nodes.If | nodes.For) else ()
        for name in value._fields:
            if name not in ("at", "bound", *inside):
                yield from parts(getattr(value, name), kinds)
    elif type(value) is tuple:
        for item in value:
            yield from parts(item, kinds)


def ids(found: Iterator[Any]) -> set[int]:
    return {id(each) for each in found}


class Recorder(Visitor):
    """Records what it visits."""

    def __init__(self) -> None:
        self.visited: list[nodes.Statement] = []

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not name.startswith("visit_"):
            return found

        def visit(statement: nodes.Statement) -> Any:
            assert name == f"visit_{type(statement).__name__.lower()}"
            self.visited.append(statement)
            return found(statement)

        return visit


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_walks_are_complete(path: Path) -> None:
    for body in bodies(path):
        statements = list(walk.iter_statements(body))
        for statement in statements:
            walked = (
                inner for whole in walk.statement_expressions(statement) for inner in walk.iter_expressions(whole)
            )
            assert ids(walked) == ids(parts(statement, EXPRESSIONS)), statement.at
            assert ids(walk.statement_loops(statement)) == ids(parts(statement, (nodes.Loop,))), statement.at
        declared = ids(d for s in statements for d in parts(s, (nodes.GuardedDeclaration,)))
        assert ids(walk.declarations(body)) == declared
        targets = [name for s in statements if isinstance(s, nodes.Assign) for name in s.targets]
        assert list(walk.assigned_names(body)) == targets
        recorder = Recorder()
        assert not recorder.visit(body)
        assert list(map(id, recorder.visited)) == list(map(id, statements))


def test_every_kind_of_statement_is_compared() -> None:
    found = {type(s) for path in SPECS for body in bodies(path) for s in walk.iter_statements(body)}
    assert found == set(STATEMENTS)


def test_sites_have_what_is_around_them() -> None:
    for path in SPECS:
        for body in bodies(path):
            for site in walk.iter_declaration_sites(body):
                own = site.declaration.loop is not None
                assert [around.is_own for around in site.loops] == [False] * (len(site.loops) - own) + [True] * own
                assert site.guards[len(site.guards) - len(site.declaration.guards) :] == site.declaration.guards
                assert all(0 <= around.guards <= len(site.guards) for around in site.loops)
