"""Modules whose calls compute values, and the bodies of their definitions, without PyTorch."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, cast

from builders import builder, given

from archspec import Type
from archspec.core.addresses import is_inside, parent
from archspec.core.algebra import symbol
from archspec.pytorch.lift.definitions.blocks import Body, split_into_bodies
from archspec.pytorch.lift.values.stored import StoredTensors
from archspec.pytorch.values.values import Argument, LoopValue, ModuleCall, Value

BATCH, SEQ = symbol("batch"), symbol("seq")


class Net:
    """A module whose calls compute values; `ties` are the other names of tensors."""

    def __init__(self, **ties: str) -> None:
        self.b = builder()
        self.root = self.b.frame
        self.own: defaultdict[str, list[str]] = defaultdict(list)
        self.ties = {first.replace("__", "."): second for first, second in ties.items()}
        self.x = given(self.b, "x", (BATCH, SEQ, 8))

    def call(self, path: str, kind: str = "Block", inside: ModuleCall | None = None) -> ModuleCall:
        return ModuleCall(path, kind, inside or self.root)

    def op(self, frame: ModuleCall, name: str, *args: Argument, **settings: Any) -> Value:
        self.b.frame = frame
        return self.b.op(name, *args, **settings)

    def steps(self, frame: ModuleCall, x: Value, count: int) -> Value:
        """Several steps, no two of which are the same."""
        for turn in range(count):
            x = self.op(frame, "tanh" if turn % 2 else "exp", x)
        return x

    def tensor(self, frame: ModuleCall, name: str, *shape: int) -> Value:
        address = f"{frame.path}.{name}".lstrip(".")
        if address not in self.own[parent(address)]:
            self.own[parent(address)].append(address)
        return self.b.stored("tensor", address, Type(shape, "real"), frame)

    def layer(self, frame: ModuleCall, path: str, x: Value) -> Value:
        """What a linear layer makes of a value, in a call that applies it."""
        weight = self.tensor(ModuleCall(path, "Linear", frame), "weight", 8, 8)
        array = self.op(frame, "linear", x, weight).array
        return Value("Linear", [x], array=array, dtype="real", frame=frame, kind="layer", address=path)

    def names_of(self, name: str) -> list[str]:
        return [name, *[second for first, second in self.ties.items() if first == name]]

    def name_under(self, name: str, path: str) -> str | None:
        """The name of a tensor inside of a module."""
        return next((other for other in self.names_of(name) if is_inside(other, path)), None)

    def bodies(self, *outputs: Value, several: Sequence[str] = ()) -> list[Body]:
        found = split_into_bodies(self.root, outputs, cast("StoredTensors", self), several)
        return [*found.values()]


def shown(body: Body) -> str:
    """A body in a line: its inputs by their numbers, and what it computes of them."""
    names = {value: f"x{turn}" for turn, value in enumerate(body.inputs)}

    def text(value: Argument) -> str:
        if isinstance(value, Sequence):
            return f"[{', '.join(map(text, value))}]"
        if not isinstance(value, Value):
            return str(value)
        if value in names:
            return names[value]
        if isinstance(value, LoopValue):
            before = [f"{name} = {text(arg)}" for name, arg in zip("abc", value.args, strict=False) if value.carried]
            names.update(zip(value.carried, "abc", strict=False))
            after = [*map(text, value.afters), *map(text, value.collected)]
            axes = f" along {value.axes}" if value.axes else ""
            count = f"{value.start}..{value.start} + {value.settings['count']}"
            return f"for {count} ({', '.join(before[: len(value.carried)])}) {{{', '.join(after)}}}{axes}"
        place = f"{value.address}: " if value.kind in ("layer", "block") else ""
        settings = [f"{name} = {setting}" for name, setting in value.settings.items()]
        return (
            value.address
            if value.op == "tensor"
            else f"{place}{value.op}({', '.join([*map(text, value.args), *settings])})"
        )

    inputs = ", ".join([value.address or value.op for value in body.inputs])
    return f"{body.path or 'all'} ({inputs}): {', '.join(map(text, body.outputs))}; {len(body.values())} values"
