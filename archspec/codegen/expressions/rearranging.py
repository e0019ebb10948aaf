"""`rearrange` and `repeat` as methods of tensors, which need no sizes but those that are given."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from archspec.codegen.python.trees import apply, literal, method, sequence
from archspec.compiler.resolve import nodes
from archspec.ir.ops.rearrange import ELLIPSIS, Groups, pattern_steps


def rearranged(node: nodes.Rearrange, code: ast.expr, sizes: Mapping[str, ast.expr], rank: int | None) -> ast.expr:
    """A pattern applied to a tensor of `rank` axes, None if it varies. Raises ValueError if that matters."""
    others = [ELLIPSIS]
    if rank is not None:
        others = [f"{ELLIPSIS}{i}" for i in range(rank - len(node.pattern.left) + 1)]
    left, right = node.pattern.groups(others)
    plan = pattern_steps(left, right)
    axes = _Axes(code, left, sizes)
    moved = [i for i, axis in enumerate(plan.order) if i != axis]
    if moved:
        axes.regroup(plan.split)
        axes.permute(plan.order, moved)
    if plan.expanded != plan.merged:
        axes.regroup(plan.merged)
        axes.expand(plan.expanded)
    axes.regroup(plan.joined)
    return axes.code


class _Axes:
    """A tensor whose axes are `groups`; the code changes with them."""

    def __init__(self, code: ast.expr, groups: Groups, sizes: Mapping[str, ast.expr]) -> None:
        self.code = code
        self.groups = list(groups)
        self.sizes = sizes

    def regroup(self, wanted: Groups) -> None:
        """Reshape to axes of the same names in the same order."""
        missing = _units(wanted)
        for i, place in reversed(list(zip(_unit_axes(self.groups), _units(self.groups), strict=True))):
            if place in missing:
                missing.remove(place)
            else:
                self._call("squeeze", self._axis(i))
                del self.groups[i]
        for i in reversed(range(len(self.groups))):
            if len(self.groups[i]) > 1 and self.groups[i] not in wanted:
                self._divide(i, _parts(self.groups[i], wanted))
        for group in wanted:
            if len(group) > 1 and group not in self.groups:
                self._join(group)
        for i, group in enumerate(wanted):
            if i == len(self.groups) or self.groups[i] != group:
                self.groups.insert(i, group)
                self._call("unsqueeze", self._axis(i))

    def _divide(self, i: int, parts: Sequence[tuple[str, ...]]) -> None:
        self._call("unflatten", self._axis(i), sequence([self._size(part) for part in parts]))
        self.groups[i : i + 1] = parts

    def _join(self, group: tuple[str, ...]) -> None:
        start = next(i for i, part in enumerate(self.groups) if part[:1] == group[:1])
        end = next(i for i, part in enumerate(self.groups) if part[-1:] == group[-1:])
        self._call("flatten", self._axis(start), self._axis(end))
        self.groups[start : end + 1] = [group]

    def permute(self, order: Sequence[int], moved: Sequence[int]) -> None:
        if len(moved) == 2 and (ELLIPSIS,) not in [self.groups[i] for i in moved]:
            self._call("transpose", *map(self._axis, moved))
        else:
            self._known()
            self._call("permute", *map(literal, order))
        self.groups = [self.groups[i] for i in order]

    def expand(self, wanted: Groups) -> None:
        self._known()
        new = len(wanted) - len(self.groups)
        kept = [False] * new + [group == old for group, old in zip(wanted[new:], self.groups, strict=True)]
        sizes = [literal(-1) if keep else self._size(group) for group, keep in zip(wanted, kept, strict=True)]
        self._call("expand", *sizes)
        self.groups = list(wanted)

    def _size(self, group: tuple[str, ...]) -> ast.expr:
        """The size of an axis; -1 if PyTorch has to infer it."""
        if not all(name in self.sizes for name in group):
            return literal(-1)
        code = self.sizes[group[0]]
        for name in group[1:]:
            code = ast.BinOp(code, ast.Mult(), self.sizes[name])
        return code

    def _axis(self, i: int) -> ast.expr:
        """The number of an axis, from the end if it is behind axes whose number varies."""
        varies = (ELLIPSIS,) in self.groups
        return literal(i - len(self.groups) if varies and i > self.groups.index((ELLIPSIS,)) else i)

    def _known(self) -> None:
        if (ELLIPSIS,) in self.groups:
            raise ValueError("the number of axes that `...` stands for is not the same in every use")

    def _call(self, name: str, *arguments: ast.expr) -> None:
        self.code = apply(method(self.code, name), arguments)


def _unit_axes(groups: Sequence[tuple[str, ...]]) -> list[int]:
    return [i for i, group in enumerate(groups) if not group]


def _units(groups: Sequence[tuple[str, ...]]) -> list[int]:
    """The number of names before each axis of size 1."""
    return [sum(map(len, groups[:i])) for i in _unit_axes(groups)]


def _parts(group: tuple[str, ...], wanted: Groups) -> list[tuple[str, ...]]:
    """Divide an axis where the wanted axes begin or end."""
    bounds = {axis[0] for axis in wanted if axis}
    parts: list[tuple[str, ...]] = []
    for name in group:
        if parts and name not in bounds:
            parts[-1] += (name,)
        else:
            parts.append((name,))
    return parts
