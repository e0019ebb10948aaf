"""The operations' shape rules against numpy, what they refuse, and the table in docs/operations.md.

`pytest tests/ir/test_ops.py --update-golden` writes the table anew from the records.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operation_table import HEADER, numbers, real, rendered, shapes
from paths import ROOT

from archspec import Type
from archspec.core.algebra import MAX_SIZE, Dim, dim_max, dim_min, symbol
from archspec.ir.ops import OPERATORS, OPS, REQUIRED, OpError

DOCUMENT = ROOT / "docs" / "operations.md"

batch, seq, width = symbol("batch"), symbol("seq"), symbol("width")


def integer(*shape: Dim) -> Type:
    return Type(shape, "int")


def apply(name: str, *inputs: Type | None, **attributes: Any) -> tuple[Type, ...]:
    return OPS[name].rule(inputs, attributes)


def refused(name: str, *inputs: Type | None, **attributes: Any) -> OpError:
    with pytest.raises(OpError) as caught:
        OPS[name].rule(inputs, attributes)
    return caught.value


# Against numpy --------------------------------------------------------------------------------------------------------

KINDS: dict[str, Any] = {"real": np.float64, "int": np.int64, "bool": np.bool_}
NAMES = {"f": "real", "i": "int", "b": "bool"}

axes = st.integers(-5, 5)
tensors = st.builds(Type, shapes, st.sampled_from(sorted(KINDS)))


def agrees(name: str, inputs: list[Type], attributes: dict[str, Any], compute: Callable[[Any], Any]) -> None:
    """The rule and numpy come to the same types (and none is empty), or both refuse. `compute` is given the arrays."""
    try:
        result = compute([np.ones([int(str(n)) for n in type.shape], KINDS[type.dtype]) for type in inputs])
    except (ValueError, IndexError):
        refused(name, *inputs, **attributes)
        return
    arrays = result if result.__class__ in (list, tuple) else [result]
    types = tuple(Type(np.shape(array), NAMES[np.asarray(array).dtype.kind]) for array in arrays)
    if any(0 in type.shape for type in types):
        refused(name, *inputs, **attributes)
    else:
        assert OPS[name].rule(inputs, attributes) == types


BINARY = ("add", "sub", "mul", "div", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne", "min", "max")
UNARY = ("neg", "abs", "exp", "log", "sqrt", "sin", "cos", "tanh", "float32")
THEIRS = {"div": "divide", "neg": "negative", "min": "minimum", "max": "maximum", "float32": "float64"}


@settings(deadline=None)
@given(numbers, numbers, shapes)
def test_elementwise(a: Type, b: Type, mask: tuple[int, ...]) -> None:
    for name in (*BINARY, *UNARY):
        compute = getattr(np if hasattr(np, THEIRS.get(name, name)) else operator, THEIRS.get(name, name))
        agrees(name, [a, b] if name in BINARY else [a], {}, lambda v, compute=compute: compute(*v))
    agrees("where", [Type(mask, "bool"), a, b], {}, lambda v: v[1] + v[2] + v[0] * 0)
    for name in ("and", "or", "eq"):
        agrees(name, [Type(a.shape, "bool"), Type(mask, "bool")], {}, lambda v: np.logical_and(*v))


@settings(deadline=None)
@given(numbers, axes, st.booleans(), st.lists(axes, min_size=1, max_size=3).map(tuple))
def test_reductions(x: Type, axis: int, keep: bool, several: tuple[int, ...]) -> None:
    if not x.shape:  # numpy lets a single element have an axis
        refused("sum", x, axis=axis)
        return
    for where in (axis, several):
        hyper: dict[str, Any] = {"axis": where, "keep": keep}
        agrees("sum", [x], hyper, lambda v, where=where: np.sum(v[0], axis=where, keepdims=keep))
        agrees("amax", [x], hyper, lambda v, where=where: np.max(v[0], axis=where, keepdims=keep))
        agrees("fft", [x], {"axis": where}, lambda v, where=where: v[0] / 1 + np.sum(v[0], axis=where, keepdims=True))
    agrees("argmax", [x], {"axis": axis, "keep": keep}, lambda v: np.argmax(v[0], axis=axis, keepdims=keep))
    agrees("cumsum", [x], {"axis": axis}, lambda v: np.cumsum(v[0], axis=axis))
    agrees("softmax", [x], {"axis": axis}, lambda v: np.cumsum(v[0], axis=axis) / 1)


@settings(deadline=None)
@given(numbers, numbers)
def test_matmul(a: Type, b: Type) -> None:
    if min(len(a.shape), len(b.shape)) < 2:
        refused("matmul", a, b)
    else:
        agrees("matmul", [a, b], {}, lambda v: np.matmul(*v))


@settings(deadline=None)
@given(tensors, shapes, axes, axes, st.permutations(range(-2, 2)))
def test_moving_axes(x: Type, shape: tuple[int, ...], a: int, b: int, order: list[int]) -> None:
    agrees("reshape", [x], {"shape": shape}, lambda v: np.reshape(v[0], shape))
    agrees("expand", [x], {"shape": shape}, lambda v: np.broadcast_to(v[0], shape))
    agrees("transpose", [x], {"a": a, "b": b}, lambda v: np.swapaxes(v[0], a, b))
    agrees("permute", [x], {"order": tuple(order)}, lambda v: np.transpose(v[0], order))
    if x.shape:
        agrees("pick", [x], {"axis": a, "index": b}, lambda v: np.take(v[0], b, axis=a))


@settings(deadline=None)
@given(tensors, axes, st.lists(st.integers(1, 3), min_size=1, max_size=3), st.data())
def test_cutting_and_joining(x: Type, axis: int, sizes: list[int], data: st.DataObject) -> None:
    if not -len(x.shape) <= axis < len(x.shape):
        refused("split", x, sizes=tuple(sizes), axis=axis)
        return
    place = axis % len(x.shape)
    whole = Type((*x.shape[:place], sum(sizes), *x.shape[place + 1 :]), x.dtype)
    cuts = [sum(sizes[:i]) for i in range(1, len(sizes))]
    agrees("split", [whole], {"sizes": tuple(sizes), "axis": axis}, lambda v: np.split(v[0], cuts, axis=axis))
    parts = list(apply("split", whole, sizes=tuple(sizes), axis=axis))
    agrees("concat", parts, {"axis": axis}, lambda v: np.concatenate(v, axis=axis))
    agrees("stack", [x] * len(sizes), {"axis": axis}, lambda v: np.stack(v, axis=axis))
    refused("split", whole, sizes=(*sizes, 1), axis=axis)

    length = sum(sizes)
    start, stop = data.draw(st.integers(-length, length)), data.draw(st.none() | st.integers(-length, length))
    step = data.draw(st.integers(1, 4))
    indices = range(length)[start:stop:step]
    hyper: dict[str, Any] = {"axis": axis, "start": start, "stop": stop, "step": step}
    agrees("slice", [whole], hyper, lambda v: np.take(v[0], indices, axis=axis))

    index = Type((*x.shape[:place], length, *x.shape[place + 1 :]), "int")
    agrees("gather", [x, index], {"axis": axis}, lambda v: np.take_along_axis(v[0], v[1] * 0, axis))
    assert apply("topk", index, k=sizes[0], axis=axis)[1].shape[place] == sizes[0]


@settings(deadline=None)
@given(shapes, st.integers(1, 6), shapes, st.integers(1, 5))
def test_weights(leading: tuple[int, ...], inner: int, experts: tuple[int, ...], out: int) -> None:
    x, ids = Type((*leading, inner)), Type(experts, "int")
    agrees("linear", [x, real(out, inner), real(out)], {}, lambda v: v[0] @ v[1].T + v[2])
    agrees("embedding", [ids, real(9, inner)], {}, lambda v: v[1][v[0]])
    agrees(
        "expert_linear",
        [x, ids, real(3, out, inner), real(3, out)],
        {},
        lambda v: np.matmul(v[2][v[1]], v[0][..., None])[..., 0] + v[3][v[1]],
    )
    assert apply("layer_norm", x, real(inner), eps=1e-5) == (x,)


@settings(deadline=None)
@given(*[st.integers(1, 12)] * 2, *[st.integers(1, 4)] * 4, st.integers(0, 4), st.booleans())
def test_conv(n: int, kernel: int, a: int, b: int, stride: int, dilation: int, padding: int, transposed: bool) -> None:
    """Output sizes by counting: where the kernel fits, or where a transposed one reaches."""
    span = (kernel - 1) * dilation + 1
    if transposed:
        count = (n - 1) * stride + span - 2 * padding
        weight = real(a * 2, b, kernel, 1)
    else:
        count = len(range(0, n + 2 * padding - span + 1, stride))
        weight = real(b * 2, a, kernel, 1)
    hyper: dict[str, Any] = {"stride": (stride, 1), "padding": (padding, 0), "dilation": (dilation, 1)}
    hyper |= {"groups": 2, "transposed": transposed}
    if count < 1:
        refused("conv", real(3, a * 2, n, 5), weight, real(b * 2), **hyper)
    else:
        assert apply("conv", real(3, a * 2, n, 5), weight, real(b * 2), **hyper) == (real(3, b * 2, count, 5),)


@settings(deadline=None)
@given(tensors, axes, st.integers(-1, 3), st.integers(-1, 3), st.lists(st.integers(-9, 9), max_size=3).map(tuple))
def test_padding_and_rolling(x: Type, axis: int, before: int, after: int, shifts: tuple[int, ...]) -> None:
    if -len(x.shape) <= axis < len(x.shape):
        around = [(0, 0)] * len(x.shape)
        around[axis] = (before, after)
        value: Any = {"real": 0.5, "int": 3, "bool": True}[x.dtype]
        hyper: dict[str, Any] = {"axis": axis, "before": before, "after": after, "value": value}
        agrees("pad", [x], hyper, lambda v: np.pad(v[0], around))
    else:
        refused("pad", x, axis=axis)
    if x.shape:  # numpy flattens what has no axes
        agrees("roll", [x], {"shift": before, "axis": axis}, lambda v: np.roll(v[0], before, axis))
    several = tuple(range(len(shifts)))
    if shifts and len(shifts) <= len(x.shape):
        assert apply("roll", x, shift=shifts, axis=several) == (x,)
    else:
        refused("roll", x, shift=shifts, axis=several)


@settings(deadline=None)
@given(shapes, st.integers(-1, 5))
def test_one_hot(shape: tuple[int, ...], count: int) -> None:
    ids = Type(shape, "int")
    if count < 1:
        refused("one_hot", ids, count=count)
    else:
        agrees("one_hot", [ids], {"count": count}, lambda v: v[0][..., None] * np.ones(count, np.int64))


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.data())
def test_pools(spatial: list[int], data: st.DataObject) -> None:
    """Output sizes by counting the places at which a window fits; and those of torch, where it is installed."""
    kernel, stride = (tuple(data.draw(st.integers(1, 4)) for _ in spatial) for _ in range(2))
    padding = tuple(data.draw(st.integers(0, 2)) for _ in spatial)
    counts = [len(range(0, n + 2 * p - k + 1, s)) for n, k, s, p in zip(spatial, kernel, stride, padding, strict=True)]
    x = real(2, 3, *spatial)
    for name in ("max_pool", "mean_pool"):
        hyper: dict[str, Any] = {"kernel": kernel, "stride": stride, "padding": padding}
        if 0 in counts or any(2 * p > k for k, p in zip(kernel, padding, strict=True)):
            refused(name, x, **hyper)
        else:
            assert apply(name, x, **hyper) == (real(2, 3, *counts),)
            assert apply(name, integer(2, 3, *spatial), **hyper) == (real(2, 3, *counts),)


# Refusals -------------------------------------------------------------------------------------------------------------


hostile: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from([MAX_SIZE, MAX_SIZE + 1, -(10**400), 10**300])
    | st.floats()
    | st.text(max_size=50)
    | st.sampled_from(
        [seq, batch * seq, seq - 1, -seq, 8 - seq, 7 // (seq - 1), seq**16 * MAX_SIZE, OPS["add"], REQUIRED]
    )
    | st.sampled_from(cast(list[Any], [object(), Type, b"x", [1], {}, 1j])),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=6,
)
sizes = st.integers(1, 4) | st.sampled_from(
    [seq, batch, 2 * seq, MAX_SIZE, dim_min(seq, 8), seq // 2, seq**16 * MAX_SIZE]
)
operands = st.none() | st.builds(Type, st.lists(sizes, max_size=4).map(tuple), st.sampled_from(["real", "int", "bool"]))


@settings(deadline=None)
@given(st.sampled_from(sorted(OPS)), st.lists(operands, max_size=4), st.data())
def test_nothing_but_op_error(name: str, inputs: list[Type | None], data: st.DataObject) -> None:
    op = OPS[name]
    attributes = {a.name: data.draw(hostile) for a in op.attributes if data.draw(st.integers(0, 9))}
    try:
        types = op.rule(inputs, attributes)
    except OpError as error:
        assert error.message.startswith("`")
        return
    for type in types:
        assert type.dtype in KINDS
        assert all(not isinstance(size, int) or 1 <= size <= MAX_SIZE for size in type.shape)


# Plain numbers --------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.sampled_from(sorted(name for name, op in OPS.items() if op.scalar is not None)),
    st.lists(
        st.integers(-MAX_SIZE, MAX_SIZE) | st.integers(-9, 9) | st.floats() | st.just(seq), min_size=2, max_size=2
    ),
)
def test_scalars_are_bounded(name: str, values: list[Any]) -> None:
    op = OPS[name]
    assert op.scalar is not None
    try:
        result = op.scalar(*values[: len(op.inputs)])
    except (ArithmeticError, ValueError, TypeError):
        return
    assert not isinstance(result, int) or -MAX_SIZE <= result <= MAX_SIZE


def test_static_values_do_not_grow_without_limit() -> None:
    def applied(name: str, *values: Any) -> Any:
        scalar = OPS[name].scalar
        assert scalar is not None
        return scalar(*values)

    for name, other in (("mul", MAX_SIZE), ("mul", seq + 1), ("mul", batch), ("max", None), ("floordiv", None)):
        value: Any = seq
        with pytest.raises(OverflowError):
            for i in range(1000):
                named = symbol(f"s{i}") + 1 if other is None else other
                value = applied(name, applied("add", value, i), named)


def test_scalars() -> None:
    def number(name: str, *values: Any) -> Any:
        scalar = OPS[name].scalar
        assert scalar is not None
        return scalar(*values)

    assert (number("min", 3, 2), number("max", seq, 1), number("max", seq, batch)) == (2, seq, dim_max(seq, batch))
    assert (number("floor", -2.5), number("int", -2.5), number("abs", -2)) == (-3, -2, 2)
    assert (number("sqrt", 16), number("sigmoid", -1000.0), number("pow", 5, 27)) == (4.0, 0.0, 5**27)
    assert [number("pow", base, 10**18) for base in (1, -1, 0)] == [1, 1, 0]
    assert (number("pow", seq, 0), number("pow", seq, 8)) == (1, seq**8)
    for exponent in (-1, 9):
        with pytest.raises(TypeError, match="to an integer power from 0 to 8"):
            number("pow", seq, exponent)
    for wrong in ((2, 63), (3, 10**18), (10**18, 10**18), (10.0, 1e9)):
        with pytest.raises(OverflowError):
            number("pow", *wrong)
    with pytest.raises(TypeError, match="found the dimension seq"):
        number("exp", seq)


# The table ------------------------------------------------------------------------------------------------------------


def test_records() -> None:
    assert all(name == op.name for name, op in OPS.items())
    assert OPERATORS["neg"] == "neg" and OPERATORS["-"] == "sub" and len(OPERATORS) == 17
    weighted = {"matmul", "forward_substitution", "linear", "expert_linear", "conv", "embedding"}
    assert {name for name, op in OPS.items() if op.mixes} == weighted | {"fft", "max_pool", "mean_pool"}


def test_document_shows_the_records() -> None:
    text = DOCUMENT.read_text()
    assert text[text.index(HEADER) :] == rendered(), "run `pytest tests/ir/test_ops.py --update-golden`"


@pytest.fixture(scope="module", autouse=True)
def updated_table(request: pytest.FixtureRequest) -> None:
    """Write them anew with --update-golden."""
    if not request.config.getoption("update_golden"):
        return
    DOCUMENT.write_text(DOCUMENT.read_text().partition(HEADER)[0] + rendered())
