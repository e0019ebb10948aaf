"""Sums of products of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from archspec.core.algebra import Dim
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.axes import Indices
from archspec.ir.normal.forms import elementwise as forms
from archspec.ir.normal.nodes import Element
from archspec.pytorch.calls.values import Handler

_OTHER_LETTERS = ord("\u00c0")
"""The first of the letters for the axes behind an ellipsis."""


BILINEAR = "...i,oij,...j->...o"
"""The equation of `nn.Bilinear`."""


class Equation(NamedTuple):
    """An equation of `einsum`: the letters of the axes of each tensor and of the result, and their sizes."""

    terms: list[list[str]]
    result: list[str]
    sizes: dict[str, Dim]


def equation_of(text: str, shapes: Sequence[Sequence[Dim]]) -> Equation:
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
    return Equation(letters, result, sizes)


def _einsum(n: Arrays, types: Sequence[Type], equation: str, tensors: list[Array], **rest: object) -> Array:
    """Return the sum of products over the axes that the result does not have, of two tensors at a time."""
    terms, result, sizes = equation_of(equation, [x.shape for x in tensors])
    letters, found = terms[0], tensors[0]
    for turn in range(1, len(tensors)):
        later = {*result, *[letter for term in terms[turn + 1 :] for letter in term]}
        kept = [letter for letter in dict.fromkeys([*letters, *terms[turn]]) if letter in later]
        sides = (
            _without(n, letters, found, {*terms[turn], *later}, sizes),
            _without(n, terms[turn], tensors[turn], {*letters, *later}, sizes),
        )
        found = _summed(n, [side[0] for side in sides], [side[1] for side in sides], kept, sizes)
        letters = kept
    return found if letters == result else _summed(n, [letters], [found], result, sizes)


def _without(
    n: Arrays, letters: list[str], x: Array, needed: set[str], sizes: Mapping[str, Dim]
) -> tuple[list[str], Array]:
    """Return a tensor summed over the axes that nothing else needs, as PyTorch sums them before it multiplies."""
    kept = [letter for letter in letters if letter in needed]
    return (letters, x) if kept == letters else (kept, _summed(n, [letters], [x], kept, sizes))


def _summed(
    n: Arrays, terms: list[list[str]], tensors: list[Array], result: list[str], sizes: Mapping[str, Dim]
) -> Array:
    """Return the sum of the product of tensors over the axes that the result does not have."""
    summed = [letter for letter in dict.fromkeys([*terms[0], *terms[-1]]) if letter not in result]
    over = {letter: n.axes.index(f"s{turn}", sizes[letter]) for turn, letter in enumerate(summed)}

    def element(i: Indices) -> Element:
        at = {**over, **dict(zip(result, i, strict=True))}
        factors = [
            n.at(x, [0 if size == 1 else at[letter] for letter, size in zip(term, x.shape, strict=True)])
            for term, x in zip(terms, tensors, strict=True)
        ]
        found = factors[0] if len(factors) == 1 else forms.multiply(n.elements, *factors)
        return n.total(found, [(over[letter], sizes[letter]) for letter in summed])

    return n.make([sizes[letter] for letter in result], element)


def _outer(n: Arrays, types: Sequence[Type], a: Array, b: Array) -> Array:
    return _einsum(n, types, "i,j->ij", [a, b])


def _inner(n: Arrays, types: Sequence[Type], a: Array, b: Array) -> Array:
    return _einsum(n, types, "i,i->", [a, b])


def _bilinear(n: Arrays, types: Sequence[Type], x: Array, y: Array, weight: Array, bias: Array | None = None) -> Array:
    found = _einsum(n, types, BILINEAR, [x, weight, y])
    return found if bias is None else n.each(found.shape, forms.add, found, bias)


NAMES: dict[Handler, str] = {
    _einsum: "einsum",
    _outer: "outer ger",
    _inner: "dot vdot inner",
    _bilinear: "bilinear",
}
"""The names of the operations that each function is for."""
