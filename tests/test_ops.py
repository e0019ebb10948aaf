"""The operations' shape rules against numpy, what they refuse, and the table in docs/operations.md.

`python tests/test_ops.py` writes the table anew from the records.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archspec.dims import LARGEST, Dim, Symbolic, dim_min, symbol
from archspec.ir import Type
from archspec.ops import OPERATORS, OPS, REQUIRED, Op, OpError

DOCUMENT = Path(__file__).parent.parent / "docs" / "operations.md"
HEADER = "| Operation | Hyperparameters | Inputs | What it computes | Result |"

batch, seq = symbol("batch"), symbol("seq")
Array = np.ndarray[Any, Any]


def real(*shape: Dim) -> Type:
    return Type(shape)


def integers(*shape: Dim) -> Type:
    return Type(shape, "int")


def booleans(*shape: Dim) -> Type:
    return Type(shape, "bool")


def apply(name: str, *inputs: Type | None, **attributes: Any) -> Any:
    """The type of the one result, or the types of several."""
    types = OPS[name].rule(inputs, attributes)
    return types[0] if len(types) == 1 else types


def refused(name: str, *inputs: Type | None, **attributes: Any) -> OpError:
    with pytest.raises(OpError) as caught:
        OPS[name].rule(inputs, attributes)
    return caught.value


# Against numpy ---------------------------------------------------------------------------------------------------------

shapes = st.lists(st.integers(1, 4), max_size=4).map(tuple)
DTYPES = {"real": np.float64, "int": np.int64, "bool": np.bool_}


def example(type: Type) -> Array:
    return np.ones(tuple(int(str(size)) for size in type.shape), DTYPES[type.dtype])


def type_of(array: Any) -> Type:
    kinds = {"f": "real", "i": "int", "u": "int", "b": "bool"}
    return Type(tuple(np.shape(array)), kinds[np.asarray(array).dtype.kind])


tensors = st.builds(Type, shapes, st.sampled_from(["real", "int", "bool"]))
numbers = st.builds(Type, shapes, st.sampled_from(["real", "int"]))


def agrees(compute: Any, name: str, *inputs: Type, **attributes: Any) -> None:
    """The rule and numpy come to the same types, or both refuse."""
    try:
        expected = compute(*map(example, inputs))
    except (ValueError, IndexError, np.exceptions.AxisError):
        refused(name, *inputs, **attributes)
        return
    expected = expected if isinstance(expected, list | tuple) else [expected]
    if any(0 in np.shape(array) for array in expected):
        refused(name, *inputs, **attributes)
    else:
        assert OPS[name].rule(inputs, attributes) == tuple(map(type_of, expected))


ARITHMETIC: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "pow": np.power,
    "min": np.minimum,
    "max": np.maximum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@given(st.sampled_from(sorted(ARITHMETIC)), numbers, numbers)
def test_arithmetic(name: str, a: Type, b: Type) -> None:
    agrees(ARITHMETIC[name], name, a, b)


@given(st.sampled_from(["eq", "ne"]), tensors, tensors)
def test_equality(name: str, a: Type, b: Type) -> None:
    if (a.dtype == "bool") != (b.dtype == "bool"):
        assert "not both together" in refused(name, a, b).message
    else:
        agrees({"eq": np.equal, "ne": np.not_equal}[name], name, a, b)


@given(st.sampled_from(["and", "or"]), shapes, shapes)
def test_logic(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    agrees({"and": np.logical_and, "or": np.logical_or}[name], name, Type(a, "bool"), Type(b, "bool"))


@given(shapes, numbers, numbers)
def test_where(condition: tuple[int, ...], a: Type, b: Type) -> None:
    agrees(np.where, "where", Type(condition, "bool"), a, b)


UNARY: dict[str, Any] = {
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "floor": lambda x: np.floor(x).astype(np.int64),  # pyright: ignore[reportUnknownLambdaType]
    "real": np.float64,
    "int": np.int64,
}


@given(st.sampled_from(sorted(UNARY)), numbers)
def test_unary(name: str, x: Type) -> None:
    agrees(UNARY[name], name, x)


axes = st.integers(-6, 6)


@given(numbers, axes, st.booleans())
def test_reductions(x: Type, axis: int, keep: bool) -> None:
    agrees(lambda v: np.sum(v, axis=axis, keepdims=keep), "sum", x, axis=axis, keep=keep)  # pyright: ignore
    agrees(lambda v: np.max(v, axis=axis, keepdims=keep), "amax", x, axis=axis, keep=keep)  # pyright: ignore
    agrees(lambda v: np.cumsum(v, axis=axis), "cumsum", x, axis=axis)  # pyright: ignore


@given(numbers, st.lists(axes, max_size=3).map(tuple), st.booleans())
def test_reductions_over_several_axes(x: Type, axis: tuple[int, ...], keep: bool) -> None:
    if axis:
        agrees(lambda v: np.sum(v, axis=axis, keepdims=keep), "sum", x, axis=axis, keep=keep)  # pyright: ignore
    else:
        refused("sum", x, axis=axis, keep=keep)
