"""Where in Python a definition keeps what it owns: `encoder.layer.0.output` is `self.encoder.layer[0].output`.

A part of an address that is not owned itself is a container: a list where its children are numbered from 0 without a
gap, else a plain module. A container that is neither in every use of the definition is *open*: what lies in it is
reached by its address as text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from archspec.ir import Module, Weight
from archspec.pytorch.code import apply, literal, method, name, py
from archspec.pytorch.names import is_plain

Pattern = tuple[str, ...]
"""An address with "#" in the place of every number."""

Part = str | ast.expr
"""A word of an address, or the expression of a number in it."""


def pattern_of(parts: Iterable[Part]) -> Pattern:
    return tuple("#" if isinstance(p, ast.expr) or p.isdigit() else p for p in parts)


class Place(NamedTuple):
    """An address in the code of a definition: its parts, and the expression that reaches it.

    `container` is the expression of what holds it, and `key` its last part there; both None inside an open container.
    """

    parts: tuple[Part, ...]
    code: ast.expr
    container: ast.expr | None
    key: Part | None


class Places:
    """The containers of a definition, from all the modules that are uses of it."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.targets: dict[Pattern, list[Module | Weight]] = {}
        self.always: set[Pattern] = set()  # owned in every use, once
        self.lists: set[Pattern] = set()
        self.open: set[Pattern] = set()
        self.containers: set[Pattern] = set()
        for module in modules:
            self._add(module)
        self.lists -= self.open
        for i, module in enumerate(modules):
            plain = {pattern_of(address.split(".")) for address in module.members if not _has_number(address)}
            self.always = self.always & plain if i else plain

    def _add(self, module: Module) -> None:
        children: dict[tuple[str, ...], dict[str, bool]] = {}
        for address, member in module.members.items():
            words = tuple(address.split("."))
            targets = self.targets.setdefault(pattern_of(words), [])
            if not any(target is member.target for target in targets):
                targets.append(member.target)
            for end in range(len(words)):
                inside = children.setdefault(words[:end], {})
                is_weight = end + 1 == len(words) and isinstance(member.target, Weight)
                inside[words[end]] = inside.get(words[end], False) or is_weight
        for words, inside in children.items():
            pattern = pattern_of(words)
            self.containers.add(pattern)
            if not any(word.isdigit() for word in inside):
                if pattern in self.lists:
                    self.open.add(pattern)
            elif list(inside) == [str(i) for i in range(len(inside))] and not any(inside.values()) and words:
                self.lists.add(pattern)
            else:
                self.open.add(pattern)

    def _target(self, pattern: Pattern) -> Module | Weight | None:
        return self.targets.get(pattern, [None])[0]

    def is_open(self, pattern: Pattern) -> bool:
        """Whether what stands there is reached by its address as text."""
        return any(pattern[:end] in self.open for end in range(len(pattern)))

    def place(self, parts: Sequence[Part], root: ast.expr | None = None) -> Place:
        """Where something owned stands; `parts` is its whole address in the definition."""
        root = root if root is not None else name("self")
        pattern = pattern_of(parts)
        if self.is_open(pattern):
            target = self._target(pattern)
            kind = (
                "submodule" if not isinstance(target, Weight) else "parameter" if target.kind == "param" else "buffer"
            )
            return Place(tuple(parts), apply(method(root, f"get_{kind}"), [address(parts)]), None, None)
        code = container = root
        for end, part in enumerate(parts):
            container = code
            target = self._target(pattern[: end + 1])
            code = step(container, part, pattern[:end] in self.lists, target)
        return Place(tuple(parts), code, container, parts[-1])


def step(container: ast.expr, part: Part, in_list: bool, target: Module | Weight | None) -> ast.expr:
    """The expression of one part inside a container."""
    if isinstance(part, ast.expr) or in_list:
        index = part if isinstance(part, ast.expr) else literal(int(part))
        return ast.Subscript(container, index, ast.Load())
    if is_plain(part):
        return method(container, part)
    table = "_modules" if not isinstance(target, Weight) else "_parameters" if target.kind == "param" else "_buffers"
    return py("table[key]", table=method(container, table), key=literal(part))


def address(parts: Sequence[Part]) -> ast.expr:
    """An address as a string, with the numbers that are expressions filled in."""
    if not any(isinstance(p, ast.expr) for p in parts):
        return literal(".".join(str(p) for p in parts))
    values: list[ast.expr] = []
    for i, part in enumerate(parts):
        dot = "." if i else ""
        if isinstance(part, ast.expr):
            values += [ast.Constant(dot)] if dot else []
            values.append(ast.FormattedValue(part, -1, None))
        else:
            values.append(ast.Constant(dot + part))
    return ast.JoinedStr(values)


def _has_number(address: str) -> bool:
    return any(word.isdigit() for word in address.split("."))
