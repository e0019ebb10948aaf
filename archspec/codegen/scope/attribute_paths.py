"""Attributes for what a definition owns: `encoder.layer.0.output` is `self.encoder.layer[0].output`.

A part of an address that is not owned itself is a container: a list where its children are numbered from 0 without a
gap, a dictionary where they are numbered otherwise, else a plain module. A container that is none of these in every use
of the definition is *open*: what lies in it is reached by its address as text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from archspec.codegen.python.trees import apply, literal, method, name, py
from archspec.codegen.scope.names import is_hidden, is_plain
from archspec.ir.module import Member, Module, ModuleTensor

Pattern = tuple[str, ...]
"""An address with "#" in the place of every number."""

Part = str | ast.expr
"""A word of an address, or the expression of a number in it; an f-string is a word with numbers in it."""


def pattern_of(parts: Iterable[Part]) -> Pattern:
    return tuple("#" if isinstance(p, ast.expr) or p.isdigit() else p for p in parts)


def _matches(part: Part, word: str) -> bool:
    """Whether a word is a part, in which the numbers that are expressions may be any."""
    if isinstance(part, ast.JoinedStr):
        texts = [re.escape(str(v.value)) if isinstance(v, ast.Constant) else "[0-9]+" for v in part.values]
        return re.fullmatch("".join(texts), word) is not None
    return word.isdigit() if isinstance(part, ast.expr) else part == word


class AttributePath(NamedTuple):
    """An address in the code of a definition: its parts, and the expression that reaches it.

    `container` is the expression of what holds it, and `key` its last part there; both None inside an open container.
    """

    parts: tuple[Part, ...]
    code: ast.expr
    container: ast.expr | None
    key: Part | None


def own_members(module: Module) -> dict[str, Member]:
    """The members of a module, without those of a merged one, which the base class makes."""
    merged = {address for other in module.merged.values() for address in other.members}
    return {address: member for address, member in module.members.items() if address not in merged}


class AttributePaths:
    """The containers of a definition, from all the modules that are uses of it.

    `lists`, `dicts` and `open` are the containers of each kind that are no plain modules; `always` what is owned in
    every use, under addresses without numbers. Containers with names in `shared` are open: a base class or a derived
    class fills them too. Those in `open` are open as well.
    """

    def __init__(
        self,
        modules: Sequence[Module],
        is_contiguous: Callable[[Pattern], bool] = lambda _: True,
        is_split: Callable[[Pattern], bool] = lambda _: False,
        shared: Iterable[str] = (),
        open: Iterable[Pattern] = (),
    ) -> None:
        self.members: dict[Pattern, dict[Pattern, list[Module | ModuleTensor]]] = {}
        self.lists: set[Pattern] = set()
        self.dicts: set[Pattern] = set()
        self.open: set[Pattern] = set(open)
        self.plain: set[Pattern] = set()
        for module in modules:
            self._add(module)
        self.open |= {pattern_of([word]) for word in shared}
        self.open |= self.plain & (self.lists | self.dicts)
        containers = self.lists | self.dicts | self.plain | self.open
        self.open |= {p[:-1] for p in containers if p[-1:] == ("#",) and is_split(p)}
        self.dicts |= {pattern for pattern in self.lists if not is_contiguous(pattern)}
        self.dicts -= self.open
        self.lists -= self.open | self.dicts
        addresses = [{tuple(address.split(".")) for address in own_members(module)} for module in modules]
        self.always = [words for words in self.owned() if all(words in one for one in addresses)]

    def _add(self, module: Module) -> None:
        children: dict[Pattern, dict[str, bool]] = {}
        for address, member in own_members(module).items():
            words = tuple(address.split("."))
            targets = self.members.setdefault(pattern_of(words), {}).setdefault(words, [])
            if not any(target is member.target for target in targets):
                targets.append(member.target)
            for end in range(len(words)):
                inside = children.setdefault(words[:end], {})
                is_weight = end + 1 == len(words) and isinstance(member.target, ModuleTensor)
                inside[words[end]] = inside.get(words[end], False) or is_weight
        for words, inside in children.items():
            self._kind_of(words, inside).add(pattern_of(words))

    def _kind_of(self, words: Pattern, inside: dict[str, bool]) -> set[Pattern]:
        """The containers of the kind that holds what is inside (by name: whether it is a tensor)."""
        if not any(map(str.isdigit, inside)):
            return self.plain
        if not words or any(inside.values()) or not all(map(str.isdigit, inside)):
            return self.open
        return self.lists if list(inside) == [str(i) for i in range(len(inside))] else self.dicts

    def owned(self) -> list[Pattern]:
        """The addresses without numbers at which something is owned in some use."""
        return [pattern for pattern in self.members if "#" not in pattern]

    def found(self, parts: Sequence[Part], numbers: Sequence[Collection[str]] = ()) -> list[Module | ModuleTensor]:
        """What is owned at an address in the uses; parts of it that are expressions have these `numbers`, or any if
        there are none.
        """
        found: list[Module | ModuleTensor] = []
        is_word = any(isinstance(part, ast.JoinedStr) for part in parts)
        members = self.members.values() if is_word else [self.members.get(pattern_of(parts), {})]
        for words, targets in (item for group in members for item in group.items()):
            has_numbers = all(word in values for word, values in zip(words, numbers, strict=False) if values)
            if len(parts) == len(words) and has_numbers and all(map(_matches, parts, words)):
                found += [target for target in targets if not any(target is other for other in found)]
        return found

    def is_open(self, pattern: Pattern) -> bool:
        """Whether what stands there is reached by its address as text."""
        return any(pattern[:end] in self.open for end in range(len(pattern)))

    def place(self, parts: Sequence[Part], root: ast.expr | None = None) -> AttributePath:
        """Where something owned stands; `parts` is its whole address in the definition."""
        root = root if root is not None else name("self")
        pattern = pattern_of(parts)
        last = parts[-1]
        is_mixed = len(self._tables(parts)) > 1
        is_word = any(isinstance(part, ast.JoinedStr) for part in parts)
        if is_word or self.is_open(pattern) or (is_mixed and not (isinstance(last, str) and is_plain(last))):
            if is_mixed or any(isinstance(part, str) and is_hidden(part) for part in parts):
                code: ast.expr = apply(name("part_at"), [root, address(parts)])
            else:
                kind = {"_modules": "submodule", "_parameters": "parameter", "_buffers": "buffer"}[self._table(parts)]
                code = apply(method(root, f"get_{kind}"), [address(parts)])
            return AttributePath(tuple(parts), code, None, None)
        code = container = root
        for end, part in enumerate(parts):
            container = code
            if pattern[:end] in self.lists:
                code = item(container, part if isinstance(part, ast.expr) else literal(int(part)))
            elif pattern[:end] in self.dicts:
                code = item(container, py("str(i)", i=part) if isinstance(part, ast.expr) else literal(part))
            elif isinstance(part, str) and is_plain(part):
                code = method(container, part)
            else:
                code = item(method(container, self._table(parts[: end + 1])), address([part]))
        return AttributePath(tuple(parts), code, container, parts[-1])

    def _table(self, parts: Sequence[Part]) -> str:
        """Where a module keeps what stands at an address."""
        return next(iter(self._tables(parts)), "_modules")

    def _tables(self, parts: Sequence[Part]) -> dict[str, None]:
        """The same in all uses: a parameter in one may be a buffer in another."""
        kinds = [target.kind if isinstance(target, ModuleTensor) else "" for target in self.found(parts)]
        return dict.fromkeys(
            {"": "_modules", "param": "_parameters", "buffer": "_buffers", "const": "_buffers"}[kind] for kind in kinds
        )


def item(container: ast.expr, key: ast.expr) -> ast.expr:
    return ast.Subscript(container, key, ast.Load())


def address(parts: Sequence[Part]) -> ast.expr:
    """An address as a string, with the numbers that are expressions filled in."""
    dotted = [piece for part in parts for piece in (".", part)][1:]
    text = join_parts(dotted)
    return literal(text) if isinstance(text, str) else text


def join_parts(parts: Sequence[Part]) -> Part:
    """Parts as one word: text, or an f-string."""
    values: list[ast.expr] = []
    for part in parts:
        if isinstance(part, ast.JoinedStr):
            pieces = part.values
        else:
            pieces = [ast.Constant(part) if isinstance(part, str) else ast.FormattedValue(part, -1, None)]
        for piece in pieces:
            match values[-1:], piece:
                case [ast.Constant(value=str(before))], ast.Constant(value=str(after)):
                    values[-1] = ast.Constant(before + after)
                case _:
                    values.append(piece)
    if all(isinstance(value, ast.Constant) for value in values):
        return "".join(str(value.value) for value in values if isinstance(value, ast.Constant))
    return ast.JoinedStr([value for value in values if not (isinstance(value, ast.Constant) and value.value == "")])
