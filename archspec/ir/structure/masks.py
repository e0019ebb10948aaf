"""Masks of attention: the keys that are hidden from a query because of their positions, derived from the computation.

Integers and booleans that depend on sizes alone (positions, and masks computed from them) have a normal form
(`archspec.ir.normal`): the element of a mask at a query and a key as a formula in their positions. A mask is causal if
it is false for every later key, and has a window if it is false for every key that is further back. A mask may also
consist of numbers that are added to scores: -inf for each hidden key.
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


# Operations that keep hidden keys hidden: scores of -inf before a softmax, weights of 0 after it.

_ANY_NUMBER = (2.0, -3.0)
"""Representatives of the numbers of a tensor, whose signs are unknown."""


def keeps_hidden(call: Call, body: Body, followed: Sequence[bool], *, softmaxed: bool = False) -> bool:
    """Whether keys that a mask has hidden are hidden in the result too, at the same positions of the last axis.

    `followed` are the operands that are scores, or weights if `softmaxed`.
    """
    op, hidden = OPS[call.type], 0.0 if softmaxed else -inf
    if op.group == "Shape":
        return followed[0] and _keeps_key_axes(call, body)
    if op.trains:
        return followed[0]
    values = [
        (hidden,) if is_followed else _representative_values(operand, body)
        for (_, operand), is_followed in zip(call.inputs, followed, strict=True)
    ]
    if op.attention == "mask":
        return all(value == hidden for side in values[1:] for value in side)
    return all(_evaluate(op, numbers) == hidden for numbers in product(*values))


def _representative_values(operand: Operand, body: Body) -> tuple[float, ...]:
    """Return numbers that represent an operand; the lowest finite number hides keys as -inf does."""
    if isinstance(operand, Constant):
        return (operand.value,) if isinstance(operand.value, int | float) else _ANY_NUMBER
    is_lowest = any(OPS[call.type].alone and call.first == operand for call in body.calls if call.type in OPS)
    return (-inf,) if is_lowest else _ANY_NUMBER


def _evaluate(op: Op, values: Sequence[float]) -> object:
    """Apply an elementwise operation to numbers; return None if the result is undefined."""
    try:
        return op.scalar(*values) if op.scalar is not None else None
    except (ArithmeticError, ValueError, TypeError):
        return None


def _keeps_key_axes(call: Call, body: Body) -> bool:
    """Whether an operation keeps the last two axes (queries and keys), or only adds or drops keys at the end."""
    operand, result = call.inputs[0][1], call.outputs[0]
    assert isinstance(operand, int) and result is not None
    shape = body.types[operand].shape
    settings = OPS[call.type].settings(call.attributes)
    rank = max(len(shape), len(result.shape))
    moved = _moved_axes(settings)
    if moved is None:  # the operation specifies a new shape
        return shape[-2:] == result.shape[-2:]
    if "order" in settings:
        return [axis % rank for axis in moved[-2:]] == [rank - 2, rank - 1]
    axes = {axis % rank for axis in moved}
    is_joined = OPS[call.type].rearranges and len(call.inputs) > 1 and len(shape) == len(result.shape)
    is_cut = settings.get("start", 1) in (0, None) and settings["step"] == 1
    is_end = is_joined or is_cut
    return axes.isdisjoint({rank - 2, rank - 1}) or (is_end and axes == {rank - 1})


def _moved_axes(settings: dict[str, object]) -> list[int] | None:
    """Return the axes in the settings of a shape operation; None if it has no such setting."""
    named = [settings[name] for name in ("order", "a", "b", "axis") if name in settings]
    items = [item for value in named for item in (value if is_list(value) else [value])]
    return [item for item in items if isinstance(item, int)] if named else None


class VisibleKeys(Record):
    """The keys that a query sees: no later keys if `causal`, and earlier keys up to `window` positions away.

    `exact` is whether positions hide no other earlier keys. If not `is_known`, keys are not along the key axis of
    masks, so masks determine nothing.
    """

    causal: bool = False
    window: int | None = None
    exact: bool = True
    is_known: bool = True


ALL_KEYS, UNKNOWN_KEYS = VisibleKeys(), VisibleKeys(exact=False, is_known=False)

Positions: TypeAlias = "Array | VisibleKeys | None"
"""The known content of a value: for integers and booleans, an array that depends on sizes alone; for a mask, the keys
that it leaves visible; for real numbers, the keys for which they are not -inf."""


def intersect_keys(a: VisibleKeys, b: VisibleKeys) -> VisibleKeys:
    """Return the keys that two masks together leave visible."""
    if not a.is_known or not b.is_known:
        return UNKNOWN_KEYS
    windows = [keys.window for keys in (a, b) if keys.window is not None]
    return VisibleKeys(a.causal or b.causal, min(windows, default=None), a.exact and b.exact)


def unite_keys(a: VisibleKeys, b: VisibleKeys) -> VisibleKeys:
    """Return the keys that at least one of two masks leaves visible, as far as known."""
    windows = [keys.window for keys in (a, b) if keys.window is not None]
    longest = max(windows) if len(windows) == 2 else None
    return VisibleKeys(a.causal and b.causal, longest, a.exact and b.exact, a.is_known and b.is_known)


class Masks:
    """Finder of the positions and masks in bodies; each body is analysed once per known content of its inputs."""

    def __init__(self) -> None:
        self._arrays = Arrays()
        self._budget = VisitLimit()
        self.slots: Callable[[Body, tuple[Positions, ...]], ForwardResult[Positions]] = cache(self._find_slots)
        self.keys_of_mask: Callable[[Positions], VisibleKeys] = cache(self._keys_of_mask)

    def _find_slots(self, body: Body, inputs: tuple[Positions, ...]) -> ForwardResult[Positions]:
        carried = body.loop.carried if body.loop is not None else 0

        def visit_op(call: Call, operands: list[Positions]) -> list[Positions]:
            return self._find_results(call, operands, body)

        def visit_call(call: Call, operands: list[Positions]) -> list[Positions]:
            assert call.body is not None
            return self.slots(call.body, tuple(arguments(call, operands))).outputs

        start = [None if i < carried else entry for i, entry in enumerate(inputs)]
        result = propagate_forward(body, start, visit_op, visit_call, None, self._constant, budget=self._budget)
        return result if body.loop is None else result._replace(outputs=[None] * len(result.outputs))

    def _constant(self, value: object) -> Positions:
        if isinstance(value, float):
            return None
        return self._arrays.array((), forms.constant(self._arrays.elements, value))

    def _find_results(self, call: Call, operands: list[Positions], body: Body) -> list[Positions]:
        op, types = OPS[call.type], [type for type in call.outputs if type is not None]
        moved = op.torch is not None and op.torch.memory in ("whole", "view")
        if moved and len(types) == len(operands) == 1 and isinstance(operands[0], VisibleKeys):
            return [operands[0] if _keeps_positions(call, body) else None]
        if any(type.dtype == "real" for type in types):
            visible = self.visible_keys(call, operands, body)
            return [None if visible == ALL_KEYS else visible] * len(call.outputs)
        arrays = [entry for entry in operands if isinstance(entry, Array)]
        if len(arrays) == len(operands):
            try:
                return [*apply(self._arrays, call.type, arrays, dict(op.settings(call.attributes)), types)]
            except ArithmeticError:  # the expression is too large, or divides by 0
                return [UNKNOWN_KEYS] * len(call.outputs)
        if op.normal == "elementwise.both":
            first, second = map(self.keys_of_mask, operands)
            return [intersect_keys(first, second)]
        return [None] * len(call.outputs)

    def visible_keys(self, call: Call, operands: Sequence[Positions], body: Body) -> VisibleKeys:
        """Return the keys that an operation on numbers leaves visible: all others become -inf."""
        op = OPS[call.type]
        if op.attention == "mask" and len(call.inputs) == 3 and call.inputs[2][1] == Constant(-inf):
            return self.keys_of_mask(operands[0])
        if op.group != "Elementwise":
            return ALL_KEYS
        hiding = [
            entry
            for i, ((_, operand), entry) in enumerate(zip(call.inputs, operands, strict=True))
            if isinstance(operand, int) and body.types[operand].dtype == "real" and isinstance(entry, VisibleKeys)
            if keeps_hidden(call, body, [i == j for j in range(len(operands))])
        ]
        return reduce(intersect_keys, hiding, ALL_KEYS)

    def _keys_of_mask(self, mask: Positions) -> VisibleKeys:
        """Return the keys that a mask leaves visible; its last two axes are queries and keys."""
        if not isinstance(mask, Array):
            return mask or ALL_KEYS
        try:
            return self._keys_of_array(mask)
        except ArithmeticError:
            return UNKNOWN_KEYS

    def _keys_of_array(self, mask: Array) -> VisibleKeys:
        elements = self._arrays.elements
        axes = self._arrays.own(mask.shape)[-2:]
        if len(axes) < 2 or mask.shape[-1] != mask.shape[-2]:
            return ALL_KEYS
        query, key = axes
        name = index_name(query)
        if not name:
            return ALL_KEYS
        distance = elements.axes.index("t", mask.shape[-1])  # represents any number of positions

        def element_at(query: Expression) -> Element:
            return self._arrays.replace(mask.element, {name: query})

        causal = element_at(key - 1 - distance) == elements.false
        windows = sorted({w for n in self._iter_compared_numbers(mask.element) for w in (n - 1, n) if w >= 0})
        window = next((w for w in windows if element_at(key + w + 1 + distance) == elements.false), None)
        back = distance if window is None else elements.axes.index("t", window + 1)
        return VisibleKeys(causal, window, element_at(key + back) == elements.true)

    def _iter_compared_numbers(self, element: Element) -> Iterator[int]:
        """Yield the absolute values of the constants in the comparisons of a mask."""
        node = self._arrays.elements.nodes[element]
        for argument in node.arguments:
            if node.kind in ("ge0", "eq0"):
                terms = terms_of(cast("Expression", argument))
                yield from (abs(int(number)) for monomial, number in [*terms, ((), 0)] if not monomial)
            elif node.kind in ("and", "or", "not"):
                yield from self._iter_compared_numbers(cast("Element", argument))


def _keeps_positions(call: Call, body: Body) -> bool:
    """Whether the result of a view has the queries and keys of a mask in its last two axes."""
    operand, result = call.inputs[0][1], call.outputs[0]
    assert isinstance(operand, int) and result is not None
    return body.types[operand].shape[-2:] == result.shape[-2:]
