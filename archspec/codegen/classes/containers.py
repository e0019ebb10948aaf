"""The containers of what a definition declares, as statements of `__init__`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from archspec.codegen.expressions.static_code import StaticCode
from archspec.codegen.python.trees import apply, bind, method, name, py, text
from archspec.codegen.scope.attribute_paths import AttributePath, Part, Pattern, address, pattern_of
from archspec.codegen.scope.scope import Scope
from archspec.compiler.resolve import nodes, walk


class Containers:
    """Makes each container once, before what it holds, and puts parts into them."""

    def __init__(self, scope: Scope, static: StaticCode) -> None:
        self.scope = scope
        self.static = static
        self._made: set[str] = set()

    def put(self, place: AttributePath, code: ast.expr) -> None:
        """Appends the statement that puts a part in its place."""
        body = self.scope.statements.body
        if place.container is None or place.key is None:
            body.append(ast.Expr(apply(name("own"), [name("self"), address(place.parts), code])))
        elif pattern_of(place.parts[:-1]) in self.scope.places.lists:
            body.append(ast.Expr(apply(method(place.container, "append"), [code])))
        else:
            body.append(bind(place.code, code))

    def around(self, declarations: Sequence[nodes.GuardedDeclaration], variables: set[str]) -> None:
        """Makes the containers around declarations that do not depend on `variables`, the indices of loops."""
        for declaration in declarations:
            if self.scope.trace.targets(declaration.what):
                loop = declaration.loop
                is_open = loop is not None and loop.variable not in self.scope.env
                self._around(declaration.what.address, variables | {loop.variable} if loop and is_open else variables)

    def inside(self, statements: Sequence[nodes.Statement], variables: set[str]) -> None:
        """The same for all that statements declare."""
        for site in walk.iter_declaration_sites(statements):
            inner = [around.loop.variable for around in site.loops if not around.is_own]
            self.around([site.declaration], {inner[-1]} if inner else variables)

    def _around(self, where: nodes.Address, variables: set[str]) -> None:
        places = self.scope.places
        parts: list[Part] = []
        for segment in where.segments[:-1]:
            if isinstance(segment, str):
                parts.append(segment)
            elif isinstance(segment, nodes.WordWithIndex):
                return  # an open container
            else:
                words = set(walk.local_names(segment))
                if words & variables or not words <= set(self.scope.env):
                    return
                parts.append(self.static.part(segment))
            pattern = pattern_of(parts)
            if places.is_open(pattern) or pattern in places.open:
                return
            self._container(places.place(parts), pattern)

    def _container(self, place: AttributePath, pattern: Pattern) -> None:
        key = text(place.code)
        if key in self._made or self.scope.context.is_inherited(self.scope.definition, pattern):
            return
        self._made.add(key)
        places = self.scope.places
        made = "nn.ModuleDict()" if pattern in places.dicts else "nn.Module()"
        made = "nn.ModuleList()" if pattern in places.lists else made
        self.put(place, py(made))

    def branching(self) -> Callable[[], None]:
        """Returns a function after which only those containers are there that are now."""
        made = set(self._made)

        def restore() -> None:
            self._made = set(made)

        return restore
