"""The division of a body into chains of steps, statements, and short arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from archspec.pytorch.lift.definitions.blocks import Body
from archspec.pytorch.lift.definitions.runs import LayerRun
from archspec.pytorch.lift.notation.notation import LISTED, OPERATORS, PIPED_OPERATORS
from archspec.pytorch.values.values import Argument, LoopValue, Value

MAX_INLINE_STEPS = 2
"""Longer values that are not layers are named."""


class Chains:
    """The values of a body that are written, with their `uses`. `called` has the names of those that have one, which
    end a chain; it grows while the body is written. `runs` are runs of layers, by their last value.
    """

    def __init__(self, body: Body, runs: Mapping[Value, LayerRun], called: Mapping[Value, str]) -> None:
        self.body = body
        self.runs = runs
        self.called = called
        self.slices = {value for run in runs.values() for value in run.slices}
        """Arguments of layers in runs that are written with the index of the loop."""
        skipped = {value for run in runs.values() for value in (*run.values[:-1], *run.repeated)}
        self.values = [value for value in body.values() if value.op != "tensor" and value not in skipped]
        self.uses = Counter([operand for value in self.values for operand in self.operands(value)])
        self.uses.update(body.outputs)

    def is_statement(self, value: Value) -> bool:
        """Whether a value has a statement of its own."""
        if value.op == "part" or value in self.slices:
            return False
        if value in self.body.outputs and self.uses[value] == 1:
            return len(self.body.outputs) > 1 and not self.is_simple(value)
        if self.parts(value):
            return True
        if self.uses[value] > 1:
            return not (value.op == "arange" and not value.args)
        if value.op == "key_mask":
            return True
        (user,) = [other for other in self.values if value in self.operands(other)]
        if user in self.slices or isinstance(user, LoopValue):
            return value.op != "tensor"
        is_given = self.alternates(user) and value is not self.args(user)[0]
        if is_given or (user.op == "attention" and self.depth(value) > 1):
            return not (value.op == "arange" and not value.args)
        return not (self.stream(user) is value or self.is_simple(value))

    def operands(self, value: Value) -> list[Value]:
        """Return what a value is computed from, without tensors; for a run of layers, what comes from outside of it."""
        if self.alternates(value):
            run = self.runs[value]
            given = dict.fromkeys([operand for item in run.values for operand in item.operands])
            return [operand for operand in given if operand not in (*run.values, *run.repeated)]
        first = self.runs[value].values[0] if value in self.runs else value
        return [operand for operand in first.operands if operand.op != "tensor"]

    def args(self, value: Value) -> list[Argument]:
        """Return the arguments of a value; for a run of layers, those of the first."""
        return self.runs[value].values[0].args if value in self.runs else value.args

    def flat(self, value: Value) -> list[Argument]:
        """Return the arguments of a value, with a list at the beginning one by one."""
        args = self.args(value)
        return [*args[0], *args[1:]] if args and isinstance(args[0], Sequence) else args

    def alternates(self, value: Value) -> bool:
        """Whether a value is a run of layers of several kinds."""
        return value in self.runs and bool(self.runs[value].kinds)

    def parts(self, value: Value) -> list[Value]:
        """Return the results of a value that has several."""
        return [other for other in self.values if other.op == "part" and other.args == [value]]

    def stream(self, value: Value) -> Value | None:
        """Return the argument that is piped into a step; None if the value begins a chain."""
        args = self.args(value)
        tensors = [arg for arg in args if isinstance(arg, Value) and arg.op != "tensor"]
        if not tensors or value.op in LISTED or isinstance(value, LoopValue):
            return None
        if value.is_module:
            return tensors[0]
        symbol = OPERATORS.get(value.op)
        if symbol is None:
            whole = [arg for arg in args if isinstance(arg, Value)]
            if len(whole) == 1:
                return tensors[0] if value.op != "where" else None
            return next((arg for arg in tensors if self.is_chain(arg) and arg.dtype == "real"), None)
        if symbol not in PIPED_OPERATORS or len(args) < 2:
            return None
        candidates = [
            arg for arg in (args if symbol in ("+", "*") else args[:1]) if isinstance(arg, Value) and arg.op != "tensor"
        ]
        chains = [arg for arg in candidates if self.is_chain(arg)]
        if not chains or (len(candidates) > 1 and candidates[0] is candidates[1]):
            return None
        if symbol == "*":
            return max(chains, key=lambda arg: (self._weight(arg), chains.index(arg)))
        return max(chains, key=lambda arg: (self._weight(arg), -chains.index(arg)))

    def last_layer(self, value: Value) -> Value | None:
        """Return the last layer in the chain of a value."""
        last: Value | None = value
        while last is not None and not last.is_module:
            last = None if last in self.called else self.stream(last)
        return last

    def is_chain(self, value: Value) -> bool:
        """Whether a value is written as part of the chain of its only use."""
        return self.uses[value] == 1 and value not in self.called and value.op != "part" and self.has_layer(value)

    def has_layer(self, value: Value) -> bool:
        """Whether there is a layer in what is written with a value."""
        if value.is_module or value.op in LISTED:
            return True
        return value.op != "part" and any(
            self.uses[operand] == 1 and operand not in self.called and self.has_layer(operand)
            for operand in self.operands(value)
        )

    def _weight(self, value: Value) -> int:
        """Return the number of layers in the chain of a value."""
        own = value.is_module or value.op in LISTED
        inner = [operand for operand in self.operands(value) if self.is_chain(operand)]
        return own + max([self._weight(operand) for operand in inner], default=0)

    def depth(self, value: Value) -> int:
        """Return how many operations deep the expression of a value is."""
        inner = [
            operand
            for operand in self.operands(value)
            if self.uses[operand] == 1 and operand not in self.called and operand.op != "part"
        ]
        return 1 + max([self.depth(operand) for operand in inner], default=0)

    def is_simple(self, value: Value) -> bool:
        """Whether a value is short enough to be written as an argument."""
        return (
            not value.is_module
            and value.op != "attention"
            and not self.has_layer(value)
            and self.depth(value) <= MAX_INLINE_STEPS
        )
