"""Masks of attention: which keys a query does not see because of their positions, derived from the computation.

Integers and booleans that depend on sizes alone (positions, and masks made of them) have a normal form
(`archspec.ir.normal`): the element of a mask at a query and a key as a formula in their positions. A mask is causal if
it is false for every later key, and has a window if it is false for every key that is further back. A mask may also be
made of numbers that are added to scores: -inf for each hidden key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce
from itertools import product
from math import inf
from typing import TYPE_CHECKING, TypeAlias, cast

from archspec.core.algebra import Expression
from archspec.core.algebra.polynomial import terms_of
from archspec.core.record import Record
from archspec.ir.fold import ForwardResult, VisitLimit, arguments, propagate_forward
from archspec.ir.module import Body, Call, Constant, Operand
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.bodies import apply
from archspec.ir.normal.forms import elementwise as forms
from archspec.ir.normal.nodes import index_name
from archspec.ir.ops import OPS, Op
from archspec.ir.ops.check import is_list

if TYPE_CHECKING:
    from archspec.ir.normal.nodes import Element


# Operations after a mask that leave hidden keys hidden: scores of -inf before a softmax, weights of 0 after it.

_ANY = (2.0, -3.0)
"""Numbers that stand for those of a tensor, whose signs are not known."""


def keeps_hidden(call: Call, body: Body, followed: Sequence[bool], *, softmaxed: bool = False) -> bool:
    """Whether keys that a mask has hidden are hidden in the result too, at the same places of the last axis.

    `followed` are the operands that are scores, or weights if `softmaxed`.
    """
    op, hidden = OPS[call.type], 0.0 if softmaxed else -inf
    if op.group == "Shape":
        return followed[0] and _keeps_places(call, body)
    if op.trains:
        return followed[0]
    values = [
        (hidden,) if own else _values(operand, body) for (_, operand), own in zip(call.inputs, followed, strict=True)
    ]
    if op.attention == "mask":
        return all(value == hidden for side in values[1:] for value in side)
    return all(_result(op, each) == hidden for each in product(*values))


def _values(operand: Operand, body: Body) -> tuple[float, ...]:
    """Return numbers that stand for an operand; the least finite number hides keys as -inf does."""
    if isinstance(operand, Constant):
        return (operand.value,) if isinstance(operand.value, int | float) else _ANY
    is_lowest = any(OPS[call.type].alone and call.first == operand for call in body.calls if call.type in OPS)
    return (-inf,) if is_lowest else _ANY


def _result(op: Op, values: Sequence[float]) -> object:
    """Return what an elementwise operation makes of numbers; None if that is undefined."""
    try:
        return op.scalar(*values) if op.scalar is not None else None
    except (ArithmeticError, ValueError, TypeError):
        return None


def _keeps_places(call: Call, body: Body) -> bool:
    """Whether an operation keeps the last two axes, those of queries and keys, or only adds or drops last keys."""
    operand, result = call.inputs[0][1], call.outputs[0]
    assert isinstance(operand, int) and result is not None
    shape = body.types[operand].shape
    settings = OPS[call.type].settings(call.attributes)
    rank = max(len(shape), len(result.shape))
    moved = _moved_axes(settings)
    if moved is None:  # a new shape
        return shape[-2:] == result.shape[-2:]
    if "order" in settings:
        return [axis % rank for axis in moved[-2:]] == [rank - 2, rank - 1]
    axes = {axis % rank for axis in moved}
    is_joined = OPS[call.type].rearranges and len(call.inputs) > 1 and len(shape) == len(result.shape)
    is_cut = settings.get("start", 1) in (0, None) and settings["step"] == 1
    is_end = is_joined or is_cut
    return axes.isdisjoint({rank - 2, rank - 1}) or (is_end and axes == {rank - 1})


def _moved_axes(settings: dict[str, object]) -> list[int] | None:
    """Return the axes that an operation of shapes names; None if it names none."""
    named = [settings[name] for name in ("order", "a", "b", "axis") if name in settings]
    items = [item for value in named for item in (value if is_list(value) else [value])]
    return [item for item in items if isinstance(item, int)] if named else None


class VisibleKeys(Record):
    """The keys that a query sees: no later ones if `causal`, and earlier ones up to `window` positions away.

    `exact` is whether positions hide no other keys that are earlier. If not `known`, the keys are not along the axis of
    those in masks, so that masks tell nothing.
    """

    causal: bool = False
    window: int | None = None
    exact: bool = True
    known: bool = True


ALL, UNKNOWN = VisibleKeys(), VisibleKeys(exact=False, known=False)

Positions: TypeAlias = "Array | VisibleKeys | None"
"""What is known of integers or booleans: an array that depends on sizes alone; of a mask, what it lets a query see; of
numbers, the keys for which they are not -inf."""


def intersect_keys(a: VisibleKeys, b: VisibleKeys) -> VisibleKeys:
    """Return the keys that two masks together let a query see."""
    if not a.known or not b.known:
        return UNKNOWN
    windows = [seen.window for seen in (a, b) if seen.window is not None]
    return VisibleKeys(a.causal or b.causal, min(windows, default=None), a.exact and b.exact)


def unite_keys(a: VisibleKeys, b: VisibleKeys) -> VisibleKeys:
    """Return the keys that at least one of two masks lets a query see, as far as known."""
    windows = [seen.window for seen in (a, b) if seen.window is not None]
    longest = max(windows) if len(windows) == 2 else None
    return VisibleKeys(a.causal and b.causal, longest, a.exact and b.exact, a.known and b.known)


class Masks:
    """Finds the positions and masks in bodies, once for what is known of their inputs."""

    def __init__(self) -> None:
        self._arrays = Arrays()
        self._budget = VisitLimit()
        self.slots: Callable[[Body, tuple[Positions, ...]], ForwardResult[Positions]] = cache(self._slots)
        self.seen: Callable[[Positions], VisibleKeys] = cache(self._seen)

    def _slots(self, body: Body, inputs: tuple[Positions, ...]) -> ForwardResult[Positions]:
        carried = body.loop.carried if body.loop is not None else 0

        def visit_op(call: Call, given: list[Positions]) -> list[Positions]:
            return self._results(call, given, body)

        def visit_call(call: Call, given: list[Positions]) -> list[Positions]:
            assert call.body is not None
            return self.slots(call.body, tuple(arguments(call, given))).outputs

        known = [None if i < carried else entry for i, entry in enumerate(inputs)]
        found = propagate_forward(body, known, visit_op, visit_call, None, self._constant, budget=self._budget)
        return found if body.loop is None else found._replace(outputs=[None] * len(found.outputs))

    def _constant(self, value: object) -> Positions:
        if isinstance(value, float):
            return None
        return self._arrays.array((), forms.constant(self._arrays.elements, value))

    def _results(self, call: Call, given: list[Positions], body: Body) -> list[Positions]:
        op, types = OPS[call.type], [type for type in call.outputs if type is not None]
        moved = op.torch is not None and op.torch.memory in ("whole", "view")
        if moved and len(types) == len(given) == 1 and isinstance(given[0], VisibleKeys):
            return [given[0] if _keeps_positions(call, body) else None]
        if any(type.dtype == "real" for type in types):
            seen = self.shown(call, given, body)
            return [None if seen == ALL else seen] * len(call.outputs)
        arrays = [entry for entry in given if isinstance(entry, Array)]
        if len(arrays) == len(given):
            try:
                return [*apply(self._arrays, call.type, arrays, dict(op.settings(call.attributes)), types)]
            except ArithmeticError:  # too large an expression, or a division by 0
                return [UNKNOWN] * len(call.outputs)
        if op.normal == "elementwise.both":
            first, second = map(self.seen, given)
            return [intersect_keys(first, second)]
        return [None] * len(call.outputs)

    def shown(self, call: Call, given: Sequence[Positions], body: Body) -> VisibleKeys:
        """Return the keys that an operation on numbers lets a query see: all others become -inf."""
        op = OPS[call.type]
        if op.attention == "mask" and len(call.inputs) == 3 and call.inputs[2][1] == Constant(-inf):
            return self.seen(given[0])
        if op.group != "Elementwise":
            return ALL
        hiding = [
            entry
            for i, ((_, operand), entry) in enumerate(zip(call.inputs, given, strict=True))
            if isinstance(operand, int) and body.types[operand].dtype == "real" and isinstance(entry, VisibleKeys)
            if keeps_hidden(call, body, [i == j for j in range(len(given))])
        ]
        return reduce(intersect_keys, hiding, ALL)

    def _seen(self, mask: Positions) -> VisibleKeys:
        """Return the keys that a mask lets a query see; its last two axes are queries and keys."""
        if not isinstance(mask, Array):
            return mask or ALL
        try:
            return self._seen_by(mask)
        except ArithmeticError:
            return UNKNOWN

    def _seen_by(self, mask: Array) -> VisibleKeys:
        elements = self._arrays.elements
        own = self._arrays.own(mask.shape)[-2:]
        if len(own) < 2 or mask.shape[-1] != mask.shape[-2]:
            return ALL
        query, key = own
        name = index_name(query)
        if not name:
            return ALL
        distance = elements.axes.index("t", mask.shape[-1])  # any number of positions

        def at(query: Expression) -> Element:
            return self._arrays.replace(mask.element, {name: query})

        causal = at(key - 1 - distance) == elements.false
        windows = sorted({w for n in self._numbers(mask.element) for w in (n - 1, n) if w >= 0})
        window = next((w for w in windows if at(key + w + 1 + distance) == elements.false), None)
        back = distance if window is None else elements.axes.index("t", window + 1)
        return VisibleKeys(causal, window, at(key + back) == elements.true)

    def _numbers(self, element: Element) -> Iterator[int]:
        """Yield the absolute values of the numbers in the comparisons of which a mask consists."""
        node = self._arrays.elements.nodes[element]
        for argument in node.arguments:
            if node.kind in ("ge0", "eq0"):
                terms = terms_of(cast("Expression", argument))
                yield from (abs(int(number)) for monomial, number in [*terms, ((), 0)] if not monomial)
            elif node.kind in ("and", "or", "not"):
                yield from self._numbers(cast("Element", argument))


def _keeps_positions(call: Call, body: Body) -> bool:
    """Whether the result of a view has the queries and keys of a mask in its last two axes."""
    operand, result = call.inputs[0][1], call.outputs[0]
    assert isinstance(operand, int) and result is not None
    return body.types[operand].shape[-2:] == result.shape[-2:]
