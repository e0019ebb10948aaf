"""Sums of products of PyTorch, as products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archspec.core.algebra import Dim, product
from archspec.ir.module import Type
from archspec.ir.ops.einsum import emit_products
from archspec.pytorch.calls.rows import Row, Types
from archspec.pytorch.calls.shape import diagonal
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Value

_OTHER_LETTERS = ord("\u00c0")
"""The first of the letters for the axes behind an ellipsis."""


_BILINEAR = "...i,oij,...j->...o"
"""The equation of `nn.Bilinear`."""


class _Equation(NamedTuple):
    """An equation of `einsum`: the letters of the axes of each tensor and of the result, and their sizes."""

    terms: list[list[str]]
    result: list[str]
    sizes: dict[str, Dim]


def _equation_of(text: str, shapes: Sequence[Sequence[Dim]]) -> _Equation:
    """Return an equation; the axes behind an ellipsis have letters of their own."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    ranks = [len(shape) - len(term.replace("...", "")) for term, shape in zip(terms, shapes, strict=True)]
    rank = max([rank for rank, term in zip(ranks, terms, strict=True) if "..." in term], default=0)
    outer = "".join([chr(_OTHER_LETTERS + axis) for axis in range(rank)])
    letters = [list(term.replace("...", outer[rank - count :])) for count, term in zip(ranks, terms, strict=True)]
    every = [letter for term in letters for letter in term]
    once = [letter for letter in sorted(set(every)) if every.count(letter) == 1 and letter not in outer]
    result = list(right.replace("...", outer)) if arrow else [*outer, *once]
    sizes: dict[str, Dim] = {}
    for term, shape in zip(letters, shapes, strict=True):
        for letter, size in zip(term, shape, strict=True):
            if sizes.get(letter, 1) == 1:
                sizes[letter] = size
    return _Equation(letters, result, sizes)


def _einsum(b: Builder, types: Types, equation: str, tensors: list[Value], **rest: object) -> Value:
    """Return the sum of products, as matrix products of two tensors at a time."""
    parsed = _equation_of(equation, [x.shape for x in tensors])
    shapes = [tuple([parsed.sizes[letter] for letter in term]) for term in parsed.terms]
    tensors = [x if x.shape == shape else b.expand(x, shape) for x, shape in zip(tensors, shapes, strict=True)]
    factors = [_without_diagonals(b, *side) for side in zip(parsed.terms, tensors, strict=True)]
    return emit_products(b, factors, parsed.result, parsed.sizes)


def _without_diagonals(b: Builder, letters: list[str], x: Value) -> tuple[list[str], Value]:
    """Return the elements of a tensor whose indices along axes with the same letter are the same."""
    while len(set(letters)) < len(letters):
        axis = next(axis for axis, letter in enumerate(letters) if letter in letters[:axis])
        kept = [at for at in range(len(letters)) if at not in (axis, letters.index(letters[axis]))]
        shape = (*[x.shape[at] for at in kept], x.shape[axis])
        x = diagonal(b, [Type(shape)], x, 0, letters.index(letters[axis]), axis)
        letters = [*[letters[at] for at in kept], letters[axis]]
    return letters, x


def _bilinear(b: Builder, types: Types, x: Value, y: Value, weight: Value, bias: Value | None = None) -> Value:
    found = _einsum(b, types, _BILINEAR, [x, weight, y])
    return found if bias is None else b.op("add", found, bias)


def _outer(b: Builder, types: Types, x: Value, y: Value) -> Value:
    return b.op("mul", b.reshape(x, (x.shape[0], 1)), y)


def _dot(b: Builder, types: Types, x: Value, y: Value) -> Value:
    return b.op("sum", b.op("mul", x, y), axis=0)


def _inner(b: Builder, types: Types, x: Value, y: Value) -> Value:
    """Return sums of products along the last axes."""
    if len(x.shape) == len(y.shape) == 1:
        return _dot(b, types, x, y)
    rows = b.reshape(y, (product(y.shape[:-1]), y.shape[-1]))
    return b.reshape(b.op("linear", x, rows), types[0].shape)


NAMES: dict[Row, str] = {
    _einsum: "einsum",
    _bilinear: "bilinear",
    _outer: "outer ger",
    _dot: "dot vdot",
    _inner: "inner",
}
"""The names of the operations that each row is for."""
