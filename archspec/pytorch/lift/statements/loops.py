"""Loops over a length or over layers as statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from archspec.core.algebra import symbol
from archspec.pytorch.lift.definitions.blocks import Body
from archspec.pytorch.lift.notation.names import Names
from archspec.pytorch.lift.notation.templates import Gaps, Statement
from archspec.pytorch.lift.statements.chains import Chains
from archspec.pytorch.values.values import LAYER, LENGTH, LoopValue, Value, live_values


class BodyWriterProtocol(Protocol):
    """What writes a body."""

    body: Body
    called: dict[Value, str]
    chains: Chains
    gaps: Gaps
    names: Names
    statements: list[Statement]

    def bind(self, value: Value) -> None:
        """Write the statement that assigns a value."""

    def chain(self, value: Value) -> tuple[str, list[str]]:
        """Return what a value begins with, and the steps that follow."""
        ...

    def argument(self, value: Value) -> str:
        """Return a value as an expression."""
        ...

    def wanted(self, value: Value) -> list[str]:
        """Return names for a value, the best first."""
        ...

    def declaration(self, value: Value) -> str:
        """Return the declaration of a layer, which is applied by its address from then on."""
        ...

    def roles(self, owns: bool) -> list[str]:
        """Return the statements that give roles to layers, or to everything that the definition `owns`."""
        ...

    def inside(self, body: Body, names: Sequence[str]) -> BodyWriterProtocol:
        """Return the writer of an iteration of a loop."""
        ...


def write_loop(writer: BodyWriterProtocol, loop: LoopValue) -> None:
    """Write the statements of a loop, and of what it starts with."""
    count = len(loop.carried)
    states = [_started(writer, loop, turn) for turn in range(count)]
    header = _header(writer, loop)
    if loop.collected:  # such a loop declares nothing
        layers = [value for value in loop.inner if value.is_module]
        writer.statements += [Statement(text=f"{writer.declaration(value)} for {header}") for value in layers]
    writer.statements.append(Statement(text=f"for {header} {{"))
    given = [writer.called.get(value, "") for value in loop.operands[count:]]
    body = Body(writer.body.frame, [*loop.carried, *loop.given], [*loop.afters, *loop.collected])
    inner = writer.inside(body, [*states, *given])
    inner.statements += [Statement(text=text) for text in inner.roles(False)]
    _write_iteration(inner, loop, states)
    for name, result in zip(states, loop.results, strict=False):
        writer.called[result] = name
    for result, value, axis in zip(loop.results[count:], loop.collected, loop.axes, strict=True):
        writer.called[result] = writer.names.take(writer.wanted(result))
        steps = (f"collect(axis = {axis})",)
        inner.statements.append(Statement((writer.called[result],), inner.argument(value), steps))
    _carry_over(inner, loop, states)
    writer.statements.append(Statement(text="}"))


def _header(writer: BodyWriterProtocol, loop: LoopValue) -> str:
    """Return the index of a loop and its bounds."""
    count = loop.size("count")
    if isinstance(count, int):
        writer.gaps.renamed = {**writer.gaps.renamed, LAYER: symbol("i")}
        return f"i in {writer.gaps.span(loop.start, count)}"
    index = str(writer.gaps.renamed.get(LENGTH) or writer.names.take(["t", "step"]))
    writer.gaps.renamed = {**writer.gaps.renamed, LENGTH: symbol(index)}
    return f"{index} in 0..{writer.gaps.number(count, 'count')}"


def _started(writer: BodyWriterProtocol, loop: LoopValue, turn: int) -> str:
    """Return the name of a carried value, after the statement of what it is to begin with."""
    start = loop.operands[turn]
    if start in writer.called and writer.chains.uses[start] == 1 and start not in writer.body.inputs:
        return writer.called[start]
    name = writer.names.take([*loop.results[turn].names, *start.names, "hidden"])
    writer.statements.append(Statement((name,), writer.argument(start)))
    return name


def _write_iteration(inner: BodyWriterProtocol, loop: LoopValue, states: Sequence[str]) -> None:
    """Write what an iteration computes. A carried value is replaced at once if nothing after that needs it."""
    replaced = {
        after: name
        for carried, after, name in zip(loop.carried, loop.afters, states, strict=True)
        if after in loop.inner and after.op != "part" and _is_last(loop, carried, after)
    }
    for value in inner.chains.values:
        if value in replaced:
            source, steps = inner.chain(value)
            inner.statements.append(Statement((replaced[value],), source, tuple(steps)))
            inner.called[value] = replaced[value]
        elif inner.chains.is_statement(value):
            inner.bind(value)
    for value in (*loop.afters, *loop.collected):
        if value in loop.inner and value not in inner.called:
            inner.bind(value)


def _is_last(loop: LoopValue, carried: Value, after: Value) -> bool:
    """Whether all that a carried value is used for comes before the one that replaces it."""
    before = {*live_values([after])}
    users = [value for value in loop.inner if carried in value.operands]
    return all(user in before for user in users) and carried not in (*loop.afters, *loop.collected)


def _carry_over(inner: BodyWriterProtocol, loop: LoopValue, states: Sequence[str]) -> None:
    """Assign what is carried into the next iteration."""
    for name, after in zip(states, loop.afters, strict=True):
        source = inner.argument(after)
        if source != name:
            inner.statements.append(Statement((name,), source))
