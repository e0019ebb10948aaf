"""Values: what a module computes, as operations of the language on other values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, cast

from archspec.core.algebra import Dim, Polynomial, symbols
from archspec.ir.normal.arrays import Array
from archspec.ir.ops.record import Scalar

Operand: TypeAlias = "Value | Scalar"
"""What an operation is applied to: a tensor or a number."""

Argument: TypeAlias = "Operand | Sequence[Value | None] | None"
"""An argument of a value: an operand, or several tensors. None stands for an optional one that is not given."""

Setting: TypeAlias = "Scalar | str | Sequence[Setting] | None"
"""The value of a hyperparameter."""


LENGTH = "@0"
"""The index of a loop over a length."""

LAYER = "@1"
"""The index of a loop over layers."""


class ModuleCall:
    """A call of a module: its address, its class, and the call that it is part of."""

    def __init__(self, path: str, kind: str, parent: ModuleCall | None) -> None:
        self.path = path
        self.kind = kind
        self.parent = parent

    def __repr__(self) -> str:
        return f"{self.path or '(the model)'}: {self.kind}"

    @property
    def stack(self) -> list[ModuleCall]:
        """The calls around this one, the outermost first, and itself."""
        return [*(self.parent.stack if self.parent else ()), self]

    def contains(self, other: ModuleCall) -> bool:
        """Whether another call is this one, or part of it."""
        return self in other.stack


class Value:
    """A tensor: an operation, function, layer or block with its settings, applied to arguments.

    Arguments are values and numbers; None stands for an optional input that is not given. An operation with several
    results is a value whose results are values of the operation `part`. `names` are what the source calls the value,
    `kind` is the package or definition that the operation is from.
    """

    def __init__(
        self,
        op: str,
        args: Sequence[Argument] = (),
        settings: Mapping[str, Setting] | None = None,
        *,
        array: Array,
        dtype: str,
        frame: ModuleCall,
        kind: str = "ops",
        address: str = "",
    ) -> None:
        self.op = op
        self.args = list(args)
        self.settings = dict(settings or {})
        self.array = array
        self.dtype = dtype
        self.frame = frame
        self.kind = kind
        self.address = address
        self.names: list[str] = []
        self.cost: int | None = None

    @property
    def is_module(self) -> bool:
        """Whether a module makes it: a layer or block."""
        return self.kind in ("layer", "block")

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The sizes of its axes."""
        return self.array.shape

    @property
    def operands(self) -> list[Value]:
        """The arguments that are values, also those in lists."""
        return [*values_in(self.args)]

    def integer(self, name: str, usual: int | None = None) -> int:
        """Return a hyperparameter that is an integer, such as an axis; `usual` if it is not set."""
        found = self.settings.get(name, usual)
        assert isinstance(found, int)
        return found

    def size(self, name: str) -> Dim:
        """Return a hyperparameter that is an integer or depends on dimensions."""
        found = self.settings[name]
        assert isinstance(found, int | Polynomial)
        return found

    @property
    def steps(self) -> list[Value]:
        """The value, and those that each iteration of it computes, if it is a loop."""
        return [self]

    def __repr__(self) -> str:
        return f"<{self.address or self.op} {self.dtype} {list(self.shape)}>"


class LoopValue(Value):
    """A loop over a length or over layers. Its arguments are the initial `carried` values, followed by the values from
    before that are `given` to it. An iteration computes the values `inner`: what is carried into the next one, and what
    is collected along `axes`.
    """

    def __init__(
        self,
        starts: Sequence[Value],
        carried: Sequence[Value],
        afters: Sequence[Value],
        collected: Sequence[Value],
        axes: Sequence[int],
        count: Dim,
        frame: ModuleCall,
        inner: Sequence[Value],
        start: int = 0,
    ) -> None:
        self.inner = list(inner)
        self.start = start
        self.carried = list(carried)
        self.afters = list(afters)
        self.collected = list(collected)
        self.axes = list(axes)
        self.results: list[Value] = []
        used = dict.fromkeys([operand for value in self.inner for operand in value.operands])
        used |= dict.fromkeys([*afters, *collected])
        self.given = [value for value in used if value not in self.inner and value not in carried]
        first = [*afters, *collected][0]
        args = [*starts, *self.given]
        super().__init__("for", args, {"count": count}, array=first.array, dtype=first.dtype, frame=frame, kind="loop")

    @property
    def steps(self) -> list[Value]:
        """The value, and those that each iteration of it computes."""
        return [self, *self.inner]


def inside_loop(outputs: Sequence[Value], carried: Collection[Value]) -> list[Value]:
    """Return the values that each iteration of a loop computes anew, each after its arguments."""
    found: dict[Value, None] = {}
    for value in live_values(outputs):
        is_own = any(has_index(item) for item in (*value.args, *value.settings.values()))
        if value not in carried and (is_own or any(arg in found or arg in carried for arg in value.operands)):
            found[value] = None
    return [*found]


def has_index(item: object) -> bool:
    """Whether the index of a loop is in a number."""
    return isinstance(item, Polynomial) and any(name.startswith("@") for name in symbols(item))


def values_in(item: object) -> Iterator[Value]:
    """Yield the values in arguments."""
    if isinstance(item, Value):
        yield item
    elif isinstance(item, list | tuple) and not isinstance(item, Array):
        for part in cast("Sequence[object]", item):
            yield from values_in(part)


def flat_arguments(args: Sequence[Argument]) -> list[Operand | None]:
    """Return arguments, those in lists one by one."""
    return [item for arg in args for item in (arg if isinstance(arg, Sequence) else [arg])]


def number_in(value: Value) -> Scalar | None:
    """Return the number that all elements of a constant are; None for any other value."""
    found = value.settings.get("value") if value.op == "full" else None
    return found if isinstance(found, Scalar) else None


def find_users(values: Sequence[Value]) -> dict[Value, list[Value]]:
    """Return which values use each of them, of values after their arguments."""
    found: dict[Value, list[Value]] = {value: [] for value in values}
    for value in values:
        for operand in value.operands:
            found[operand].append(value)
    return found


def live_values(outputs: Sequence[Value], given: Iterable[Value] = ()) -> list[Value]:
    """Return the values that outputs depend on, each after its arguments, without those that are given."""
    inputs = {*given}
    found: dict[Value, None] = {}
    waiting = [(value, False) for value in reversed(outputs)]
    while waiting:
        value, entered = waiting.pop()
        if value in found or value in inputs:
            continue
        if entered:
            found[value] = None
        else:
            waiting.append((value, True))
            waiting += [(operand, False) for operand in reversed(value.operands)]
    return [*found]
