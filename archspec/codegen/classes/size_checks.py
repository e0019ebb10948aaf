"""Checks in a model's `forward` that its inputs have the sizes that the spec fixes, and those that they share."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from archspec.codegen.classes.forward_method import ForwardMethod
from archspec.codegen.python.trees import literal, name, names_in, py, raised_if, replaced, sequence, text
from archspec.codegen.scope.scope import Input
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.walk import multiple_of

LEADING = "..."
MAX_CHECK_LENGTH = 100


def size_checks(forward: ForwardMethod) -> list[ast.stmt]:
    """A check for each input of a model with sizes of its own or of another input, and for pairs of optional inputs."""
    inputs = [input for input in forward.scope.tensors() if input.entry.shape is not None]
    always = [input for input in inputs if not input.is_optional]
    known = _bound(forward, always)
    found: list[ast.stmt] = []
    for k, input in enumerate(inputs):
        bound = _bound(forward, [input]) | known
        sizes = _fixed_sizes(forward, input) | _dependent_sizes(forward, input, bound, set(bound))
        if sizes:
            earlier = [other for other in inputs[:k] if not other.is_optional]
            found += _checks(forward, input, sizes, earlier, [])
        for other in inputs[:k] if input.is_optional else ():
            bound = _bound(forward, [other] if other.is_optional else [])
            sizes = _dependent_sizes(forward, input, bound | known, bound.keys() - known.keys())
            if sizes:
                found += _checks(forward, input, sizes, [other], [other])
    return found


def _bound(forward: ForwardMethod, inputs: Iterable[Input]) -> dict[str, ast.expr]:
    """The variables of dimensions, and `...`, with the first size of an input that each stands for."""
    found: dict[str, ast.expr] = {}
    for input in inputs:
        for place, item in enumerate(input.items):
            multiple = multiple_of(item)
            if isinstance(item, nodes.Dimension | nodes.LeadingDimensions):
                found.setdefault(_code(forward, item).id, input.part(place))
            elif multiple is not None:
                factor = forward.static.code(multiple[0])
                size = py("size // factor", size=input.part(place), factor=factor)
                found.setdefault(_code(forward, multiple[1]).id, size)
    return found


def _code(forward: ForwardMethod, item: nodes.Dimension | nodes.LeadingDimensions) -> ast.Name:
    return name(LEADING if isinstance(item, nodes.LeadingDimensions) else forward.scope.statements.variable(item.key))


def _fixed_sizes(forward: ForwardMethod, input: Input) -> dict[int, ast.expr]:
    """The sizes that depend on no input, by place in the shape."""
    found: dict[int, ast.expr] = {}
    for place, size in input.sizes.items():
        code = forward.static.code(input.items[place])
        found[place] = code if names_in([code]) <= {"self"} else literal(size)
    return found


def _dependent_sizes(
    forward: ForwardMethod, input: Input, bound: dict[str, ast.expr], words: set[str]
) -> dict[int, ast.expr]:
    """The sizes that depend on some of `words`, which are bound elsewhere, by place in the shape."""
    found: dict[int, ast.expr] = {}
    for place, item in enumerate(input.items):
        if place in input.sizes:
            continue
        is_name = isinstance(item, nodes.Dimension | nodes.LeadingDimensions)
        code = _code(forward, item) if is_name else forward.static.code(item)
        used = names_in([code]) - {"self"}
        code = replaced(code, bound)
        if used <= bound.keys() and used & words and text(code) != text(input.part(place)):
            found[place] = code
    return found


def _checks(
    forward: ForwardMethod,
    input: Input,
    sizes: dict[int, ast.expr],
    others: Sequence[Input],
    optional: Sequence[Input],
) -> list[ast.If]:
    """One check of all sizes, or one of each if it would be too long to read."""
    whole = _check(forward, input, sizes, others, optional)
    if len(text(whole.test)) <= MAX_CHECK_LENGTH:
        return [whole]
    return [_check(forward, input, {place: size}, others, optional) for place, size in sorted(sizes.items())]


def _check(
    forward: ForwardMethod,
    input: Input,
    sizes: dict[int, ast.expr],
    others: Sequence[Input],
    optional: Sequence[Input],
) -> ast.If:
    """The check of some sizes, if the `optional` inputs are given; `others` may have the same shape."""
    items, shape, first = input.items, input.shape, min(sizes)
    alike = next((code for other in others if (code := _like(input, other, sizes)) is not None), None)
    is_one_of_another = len(sizes) == 1 and bool(names_in(sizes.values()) - {"self"})
    wanted = sequence([_spread(items[place], size) for place, size in sorted(sizes.items())])
    if alike is not None:
        test = py("part != wanted", part=shape, wanted=alike)
    elif len(sizes) == len(items):
        test = py("part != wanted", part=shape, wanted=wanted)
    elif len(sizes) == len(items) - first and input.end not in sizes and not is_one_of_another:
        part = ast.Subscript(shape, ast.Slice(literal(first - len(items) if input.end < first else first)), ast.Load())
        test = py("part != wanted", part=part, wanted=wanted)
    else:
        parts = [input.part(place) for place in sorted(sizes)]
        one = len(parts) == 1
        test = py("a != b", a=parts[0] if one else sequence(parts), b=sizes[first] if one else sequence(_sorted(sizes)))
    given = [py("x is not None", x=each.value.code) for each in (*optional, input) if each.is_optional]
    if given:
        test = ast.BoolOp(ast.And(), [*given, test])
    message = _message(forward, input, sizes, alike)
    return raised_if(test, message)


def _like(input: Input, other: Input, sizes: dict[int, ast.expr]) -> ast.expr | None:
    """The shape of another input, which is checked before, or the part of it in front, if it has all the same sizes."""
    length, longer = len(input.items), len(other.items)
    if other is input or len(sizes) < length or longer < length or (longer > length and other.has_leading):
        return None
    for place, size in sizes.items():
        if input.sizes.get(place, -1) != other.sizes.get(place) and text(size) != text(other.part(place)):
            return None
    return other.shape if longer == length else ast.Subscript(other.shape, ast.Slice(None, literal(length)), ast.Load())


def _spread(item: nodes.Expr, size: ast.expr) -> ast.expr:
    return ast.Starred(size, ast.Load()) if isinstance(item, nodes.LeadingDimensions) else size


def _sorted(sizes: dict[int, ast.expr]) -> list[ast.expr]:
    return [size for _, size in sorted(sizes.items())]


def _message(forward: ForwardMethod, input: Input, sizes: dict[int, ast.expr], alike: ast.expr | None) -> ast.expr:
    """`x has shape [...], expected [batch, 4]`, with the sizes of this module and of the other inputs."""

    def formatted(code: ast.expr) -> ast.expr:
        return ast.FormattedValue(code, -1, None)

    values = [ast.Constant(f"{input.entry.name} has shape "), formatted(py("list(x)", x=input.shape))]
    if alike is not None:
        return _joined(values, [ast.Constant("expected "), formatted(py("list(x)", x=alike))])
    found = values
    values = list[ast.expr]()
    written = "expected ["
    for place, item in enumerate(input.items):
        written += ", " if place else ""
        size = sizes.get(place)
        if isinstance(size, ast.Constant):
            written += str(size.value)
        elif size is not None and (multiple_of(item) is None or text(input.part(place)) not in text(size)):
            is_leading = isinstance(item, nodes.LeadingDimensions)
            part = py("list(x)", x=size) if is_leading else size
            values += [ast.Constant(written + "*" * is_leading), formatted(part)]
            written = ""
        elif isinstance(item, nodes.Dimension):
            written += item.name
        else:
            written += " ".join(forward.scope.unit.source.text[item.at.start : item.at.end].split())
    return _joined(found, [*values, ast.Constant(written + "]")])


def _joined(found: list[ast.expr], expected: list[ast.expr]) -> ast.expr:
    """The two halves of a message as one string, or as a sum of two if it would be too long for a line."""
    whole = ast.JoinedStr([*found, ast.Constant(", "), *expected])
    if len(text(whole)) <= MAX_CHECK_LENGTH:
        return whole
    return ast.BinOp(ast.JoinedStr([*found, ast.Constant(", ")]), ast.Add(), ast.JoinedStr(expected))
