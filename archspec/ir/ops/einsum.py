"""Sums of products over named axes (`einsum`), and the operations that they represent."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from archspec.core.algebra import Dim, product
from archspec.ir.ops.rearrange import ELLIPSIS, MAX_TOKENS, PatternError

V = TypeVar("V")

_TOKEN = r"->|,|\.\.\.|[A-Za-z][A-Za-z0-9_]*|\S"


class EquationTerm(NamedTuple):
    """The names of the axes of a tensor, in the characters from `start` to `end`."""

    names: tuple[str, ...]
    start: int
    end: int


class Equation(NamedTuple):
    """An equation: the names of the axes of each tensor, and of the result."""

    terms: tuple[EquationTerm, ...]
    result: EquationTerm


class Emitter(Protocol[V]):
    """Operations for a sum of products; reshapes and permutations may have no effect."""

    def op(self, name: str, /, *args: V, **settings: Any) -> V: ...

    def permute(self, x: V, order: Sequence[int], /) -> V: ...

    def reshape(self, x: V, shape: Sequence[Dim], /) -> V: ...


# Parsing --------------------------------------------------------------------------------------------------------------


def parse_equation(text: str) -> Equation:
    """Parse `a b, b c -> a c`. Raises PatternError."""
    tokens = list(re.finditer(_TOKEN, text))
    arrows = [i for i, token in enumerate(tokens) if token[0] == "->"]
    if len(arrows) != 1:
        start, end = tokens[arrows[1]].span() if arrows else (0, len(text))
        raise PatternError("expected one `->` in the equation", start, end, 'write it as in `"b q d, b k d -> b q k"`')
    if len(tokens) > 2 * MAX_TOKENS:
        raise PatternError(f"too many words in an equation: the limit is {2 * MAX_TOKENS}", *tokens[-1].span())
    terms: list[list[re.Match[str]]] = [[]]
    for token in tokens[: arrows[0]]:
        if token[0] == ",":
            terms.append([])
        else:
            terms[-1].append(token)
    arrow = tokens[arrows[0]]
    parsed = tuple([_parse_term(term, arrow.start()) for term in terms])
    result = _parse_term(tokens[arrows[0] + 1 :], arrow.end())
    names = {name for term in parsed for name in term.names}
    for token in tokens[arrows[0] + 1 :]:
        if token[0] not in names:
            is_joined = set(token[0]) <= set("".join(names)) and any(len(name) > 1 for name in names)
            help = "separate the names of axes by spaces" if is_joined else None
            raise PatternError(f"`{token[0]}` occurs only on the right of `->`", *token.span(), help)
    if ELLIPSIS in names and ELLIPSIS not in result.names:
        raise PatternError("`...` occurs only on the left of `->`", result.start, max(result.end, result.start + 1))
    return Equation(parsed, result)


def _parse_term(tokens: Sequence[re.Match[str]], position: int) -> EquationTerm:
    names: list[str] = []
    for token in tokens:
        word = token[0]
        if not (word[0].isalpha() or word == ELLIPSIS):
            raise PatternError(f"expected a name or `...`, found `{word}`", *token.span())
        if word in names:
            raise PatternError(f"`{word}` occurs twice for one tensor", *token.span())
        names.append(word)
    span = (tokens[0].start(), tokens[-1].end()) if tokens else (position, position)
    return EquationTerm(tuple(names), *span)


def term_axes(term: EquationTerm, rank: int) -> tuple[str, ...] | None:
    """Return the names of the axes of a tensor, counted from the last in `...`; None if their number differs."""
    count = rank - len(term.names) + 1
    if ELLIPSIS not in term.names:
        return term.names if count == 1 else None
    if count < 0:
        return None
    index = term.names.index(ELLIPSIS)
    return (*term.names[:index], *[f"{ELLIPSIS}{i}" for i in range(count, 0, -1)], *term.names[index + 1 :])


def equation_letters(equation: Equation) -> str | None:
    """Return an equation in the syntax of NumPy, with the first letters of names where they differ."""
    names = dict.fromkeys(name for term in equation.terms for name in term.names if name != ELLIPSIS)
    if len(names) > len(string.ascii_letters):
        return None
    letters = {ELLIPSIS: ELLIPSIS}
    for name in names:
        letters[name] = next(letter for letter in name[0] + string.ascii_letters if letter not in letters.values())
    terms = [*equation.terms, equation.result]
    *left, right = ["".join(letters[name] for name in term.names) for term in terms]
    return f"{','.join(left)}->{right}"


# Operations -----------------------------------------------------------------------------------------------------------


def emit_products(
    emitter: Emitter[V],
    tensors: Sequence[tuple[Sequence[str], V]],
    result: Sequence[str],
    sizes: Mapping[str, Dim],
) -> V:
    """Return the sum of products of tensors with named axes, as matrix products of two tensors at a time."""
    (names, value), *others = tensors
    for turn, (other_names, other) in enumerate(others, 2):
        later = {*result, *[name for term, _ in tensors[turn:] for name in term]}
        names, value = _multiply(emitter, (names, value), (other_names, other), later, result, sizes)
    summed = [axis for axis, name in enumerate(names) if name not in result]
    if summed:
        value = emitter.op("sum", value, axis=summed[0] if len(summed) == 1 else tuple(summed))
        names = [name for name in names if name in result]
    return emitter.permute(value, [names.index(name) for name in result])


def _multiply(
    emitter: Emitter[V],
    left: tuple[Sequence[str], V],
    right: tuple[Sequence[str], V],
    later: set[str],
    result: Sequence[str],
    sizes: Mapping[str, Dim],
) -> tuple[list[str], V]:
    """Return the product of two tensors, summed over the axes that are not needed later."""
    sides: list[tuple[list[str], V]] = []
    for (names, x), (others, _) in ((left, right), (right, left)):
        alone = [axis for axis, name in enumerate(names) if name not in later and name not in others]
        if alone:
            x = emitter.op("sum", x, axis=alone[0] if len(alone) == 1 else tuple(alone))
        sides.append(([name for axis, name in enumerate(names) if axis not in alone], x))
    (first, x), (second, y) = sides
    both = [name for name in first if name in second]
    batch, inner = [name for name in both if name in later], [name for name in both if name not in later]
    rows = [name for name in first if name not in both]
    columns = [name for name in second if name not in both]
    if not inner:
        return _multiply_axes(emitter, (first, x), (second, y), result, sizes)
    leading = [sizes[name] for name in batch]

    def matrix(names: list[str], value: V, order: Sequence[list[str]]) -> V:
        flat = [name for group in order for name in group]
        permuted = emitter.permute(value, [names.index(name) for name in [*batch, *flat]])
        return emitter.reshape(permuted, (*leading, *[product([sizes[name] for name in group]) for group in order]))

    row_axes = [rows] if batch or len(rows) < 2 else [[name] for name in rows]  # one matrix is for all rows
    value = emitter.op("matmul", matrix(first, x, (*row_axes, inner)), matrix(second, y, (inner, columns)))
    names = [*batch, *rows, *columns]
    return names, emitter.reshape(value, tuple([sizes[name] for name in names]))


def _multiply_axes(
    emitter: Emitter[V],
    left: tuple[list[str], V],
    right: tuple[list[str], V],
    result: Sequence[str],
    sizes: Mapping[str, Dim],
) -> tuple[list[str], V]:
    """Return the elementwise product of two tensors with the axes of both."""
    names = [name for name in result if name in (*left[0], *right[0])]
    names += [name for name in dict.fromkeys([*left[0], *right[0]]) if name not in names]

    def align(own_names: list[str], x: V) -> V:
        permuted = emitter.permute(x, [own_names.index(name) for name in names if name in own_names])
        return emitter.reshape(permuted, tuple([sizes[name] if name in own_names else 1 for name in names]))

    return names, emitter.op("mul", align(*left), align(*right))
