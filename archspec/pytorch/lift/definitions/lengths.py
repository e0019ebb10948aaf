"""Names for the sizes of the inputs of a definition that are made of dimensions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from archspec.core.algebra import (
    Atom,
    Dim,
    Expression,
    Polynomial,
    atoms,
    expression,
    split_multiple,
    substitute,
    symbol,
    symbols,
    terms_of,
)
from archspec.pytorch.lift.notation.names import FREE_NAMES
from archspec.pytorch.lift.notation.templates import Gaps
from archspec.pytorch.values.values import Value


def dimensions_of(values: Iterable[Value]) -> set[Polynomial]:
    """Return the sizes of values that are no numbers."""
    return {size for value in values for size in value.shape if isinstance(size, Polynomial)}


def usual_dimension_names(inputs: Sequence[Value], outputs: Sequence[Value]) -> dict[str, Expression]:
    """Return usual names for the dimensions of a definition: `batch` for the one before at least two axes of its first
    input, and `seq` if there is one other dimension.
    """
    values = [*inputs, *outputs]
    named = {name for value in values for size in value.shape for name in symbols(size)}
    found: dict[str, Expression] = {}
    first = split_multiple(inputs[0].shape[0]) if inputs and len(inputs[0].shape) > 2 else None
    if first is not None and first[0] == 1 and "batch" not in named:
        later = {name for value in values for size in value.shape[1:] for name in symbols(size)}
        found = {} if first[1] in later else {first[1]: symbol("batch")}
    others = named - {"batch", *found}
    return {**found, others.pop(): symbol("seq")} if len(others) == 1 else found


def free_length(inputs: Sequence[Value], outputs: Sequence[Value], gaps: Gaps) -> int | None:
    """Return the number of tokens of the inputs of a definition, if none of the numbers in it depends on it."""
    types = [*inputs, *outputs]
    found = {value.shape[1] for value in inputs if len(value.shape) == 3 and isinstance(value.shape[1], int)}
    sizes = [size for value in types for size in value.shape if isinstance(size, Polynomial)]
    if len(found) != 1 or {str(substitute(size, gaps.renamed)) for size in sizes} != {"batch"}:
        return None
    (length,) = found
    written = [number for number, hint in zip(gaps.values, gaps.hints, strict=True) if hint != "size"]
    widths = [size for value in types for size in value.shape[2:]]
    return length if length > 1 and length not in [*written, *widths] else None


def joint_sizes(given: Collection[Polynomial], sizes: Collection[Dim]) -> dict[Polynomial, Polynomial]:
    """Return what sizes are by a name for one of an input that is made of dimensions, if they depend on it alone."""
    joint = [size for size in given if size.symbol is None]
    others = {name for size in sizes if size not in joint for name in symbols(size)}
    names = FREE_NAMES if others <= {"batch"} or "batch" in others else ["batch"]
    free = [symbol(name) for name in names if name not in others]
    is_named = len(joint) == 1 and free and not others & symbols(joint[0])
    return {joint[0]: free[0]} if is_named else _by_a_length([*joint], {*joint, *sizes})


def _by_a_length(joint: Sequence[Polynomial], sizes: Collection[Dim]) -> dict[Polynomial, Polynomial]:
    """Return sizes by one of `joint` that is a quotient and a number, such as `(time + 1) // 4 - 1`."""
    varying = {size for size in sizes if isinstance(size, Polynomial)}
    for length in joint:
        names = symbols(length)
        quotient = next((atom for atom in atoms(length) if atom.kind == "//"), None)
        rest = _replaced(length, quotient, 0) if quotient is not None else None
        if quotient is None or not isinstance(rest, int) or _replaced(length, quotient, 1) != rest + 1:
            continue
        others = {name for size in varying for name in symbols(size)} - names
        name = next(symbol(name) for name in FREE_NAMES if name not in others)
        found = {size: _replaced(size, quotient, name - rest) for size in varying if names & symbols(size)}
        known = {size: new for size, new in found.items() if isinstance(new, Polynomial) and not names & symbols(new)}
        if len(known) == len(found):
            return known
    return {}


def _replaced(size: Polynomial, atom: Atom, value: Expression) -> Expression:
    """Return a size with another value of an atom."""
    found: Expression = 0
    for monomial, factor in terms_of(size):
        others = expression(((tuple([item for item in monomial if item[0] != atom]), factor),))
        found = found + others * value ** dict(monomial).get(atom, 0)
    return found


def total_lengths(given: Collection[Polynomial], renamed: Mapping[str, Expression]) -> dict[str, Expression]:
    """Return what a dimension is that inputs only have in a total, which has its name."""
    found = total_length(given)
    return {found[0]: renamed.get(found[0], symbol(found[0])) - found[1]} if found else {}


def total_length(given: Collection[Polynomial]) -> tuple[str, int] | None:
    """Return the dimension and the number whose sum is a size of inputs, if no other size determines the dimension."""
    named = {found[1] for size in given if (found := split_multiple(size)) is not None}
    sums = {size for size in given if split_multiple(size) is None}
    names = {name for size in sums for name in symbols(size)} - named
    if len(sums) != 1 or len(names) != 1:
        return None
    (name,), (total,) = names, sums
    rest = total - symbol(name)
    return (name, rest) if isinstance(rest, int) else None
