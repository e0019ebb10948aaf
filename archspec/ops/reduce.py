"""Operations along an axis. Axes count from 0, or from the end with -1 the last."""

from __future__ import annotations

from archspec.dims import Dim
from archspec.ir import Type
from archspec.ops.check import axes_of, axis_of, certainly_below, flag, numeric, size_of
from archspec.ops.record import Attribute, Input, Op, OpError

GROUP = "Along an axis"


def _reduced(x: Type, axis: object, keep: object) -> Type:
    axes, kept = axes_of(axis, x), flag(keep, "keep")
    shape: list[Dim] = [1 if i in axes else size for i, size in enumerate(x.shape) if kept or i not in axes]
    return Type(tuple(shape), numeric(("x", x)))


def _softmax(x: Type, axis: object) -> Type:
    axis_of(axis, x)
    numeric(("x", x))
    return Type(x.shape)


def _cumsum(x: Type, axis: object) -> Type:
    axis_of(axis, x)
    return Type(x.shape, numeric(("x", x)))


def _topk(x: Type, k: object, axis: object) -> tuple[Type, Type]:
    place, count = axis_of(axis, x), size_of(k, "k")
    size = x.shape[place]
    if certainly_below(size - count, 0):
        raise OpError(f"cannot take {count} elements from {size}", "k")
    shape = (*x.shape[:place], count, *x.shape[place + 1 :])
    return Type(shape, numeric(("x", x))), Type(shape, "int")


_X = (Input("x", "number [...]"),)
_LAST = Attribute("axis", -1)
_REDUCTION = (Attribute("axis"), Attribute("keep", False))
_REDUCED = "type of x; shape of x without the axis, or with size 1 there if keep"

OPS = (
    Op(
        "sum",
        GROUP,
        "The sum along axis, an integer or a list of them.",
        _X,
        _REDUCTION,
        _REDUCED,
        _reduced,
        work=1,
        over="input",
    ),
    Op(
        "amax",
        GROUP,
        "The largest element along axis, an integer or a list of them.",
        _X,
        _REDUCTION,
        _REDUCED,
        _reduced,
        work=1,
        over="input",
    ),
    Op(
        "softmax",
        GROUP,
        "exp(x) / sum(exp(x)) along axis, computed without overflow (x less its largest element there); "
        "where all of x is -inf there, not a number.",
        _X,
        (_LAST,),
        "real, shape of x",
        _softmax,
        work=5,  # the largest, take it off, exp, the sum, divide by it
    ),
    Op(
        "cumsum",
        GROUP,
        "Each element with all before it along axis, summed.",
        _X,
        (_LAST,),
        "shape and type of x",
        _cumsum,
        work=1,
    ),
    Op(
        "topk",
        GROUP,
        "The k largest elements along axis, largest first, and their indices there; of equal ones the first is first.",
        _X,
        (Attribute("k"), _LAST),
        "values: type of x; indices: int; each the shape of x with size k at axis",
        _topk,
        work=1,
        over="input",
    ),
)
