"""Functions of the standard library, recognized by what they compute: those that `specs/std/recognized.arch` lists.

A value is one of these if it has the same normal form, for some values that it is computed from and numbers on the way.
So the definition is the only pattern, and how a module writes it does not matter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import permutations
from itertools import product as combinations
from os.path import basename
from typing import NamedTuple

from archspec.analysis.scaffold.layers import parse_library_file
from archspec.core.algebra import Dim, product
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.nodes import Element, children
from archspec.ir.ops import OPS
from archspec.language.syntax import tree
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.values.arguments import UntranslatableError
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Operand, Setting, Value, flat_arguments

MAX_STEPS = 24
"""A function is computed in at most so many steps."""

VIEWS = ("part", "rearrange", "repeat")
"""What is written otherwise than operations, and only moves elements."""

MAX_EXAMPLES = 8
"""At most so many numbers are tried as a hyperparameter."""

Features = frozenset[str]
"""Which operations other than sums, products and views are in a normal form; `root` is any power that is no integer."""


class Pattern(NamedTuple):
    """A function or operation: for each input its number of axes, None if it may have any, and the hyperparameters that
    are numbers. Only the first `required` inputs are.
    """

    name: str
    is_operation: bool
    ranks: tuple[int | None, ...]
    required: int
    numbers: tuple[str, ...]
    is_elementwise: bool


def recognize_function(b: SpecBuilder, value: Value, *args: Operand, **settings: Setting) -> Value | None:
    """Return the result of an operation as a call of a recognized function; None if no function gives it."""
    root, _ = b.layout(b.unwritten(value))
    if root.dtype != "real" or root.kind != "ops" or _is_number(b, root):
        return None
    match: Value | None = None
    for inside, leaves, features in cuts(b, root, patterns_by_features()):
        if len(inside) == 1:  # a maximum of 0 is not always meant as an activation
            continue
        for pattern in patterns_by_features().get(features, ()):
            applied = _application(b, pattern, root, inside, leaves)
            if applied is not None:
                match = applied  # of the earliest values: a norm of centered values is another norm
                break
    return None if match is None else b.laid_out(match, b.unwritten(value), root)


def cuts(
    b: SpecBuilder, root: Value, allowed: Collection[Features], sizes: Collection[Dim] = ()
) -> Iterator[tuple[list[Value], list[Value], Features]]:
    """Yield what a value is computed from: the values in between, these, and the features of the former, which are part
    of allowed ones. Only values with as many elements as one of `sizes`, if there are any, are in between.
    """
    inside: list[Value] = []
    leaves = {root: None}
    outside = set[Value]()
    features: Features = frozenset()
    while len(inside) < MAX_STEPS:
        inner = [leaf for leaf in leaves if leaf not in outside and leaf.kind in ("ops", "std", "part")]
        if not inner:
            return
        last = max(inner, key=lambda leaf: leaf.array.element)  # those of operands are mostly older
        more = features | _features_of_value(b, last)
        is_of_size = not sizes or product(last.shape) in sizes
        if not is_of_size or not b.frame.contains(last.frame) or not any(more <= each for each in allowed):
            outside.add(last)
            continue
        features = more
        del leaves[last]
        inside.append(last)
        leaves |= dict.fromkeys([value for value in last.operands if not _is_number(b, value)])
        yield inside, [*leaves], features


def _application(
    b: SpecBuilder, pattern: Pattern, root: Value, inside: Sequence[Value], leaves: Sequence[Value]
) -> Value | None:
    """Return a value as the result of a function of other ones, with numbers that occur in between."""
    count = len(leaves)
    if not pattern.required <= count <= len(pattern.ranks) or all(value.op == pattern.name for value in inside):
        return None
    if any(leaf.op == "tensor" for leaf in leaves) and any(value.frame is not b.frame for value in inside):
        return None
    for order in permutations(leaves):
        args = [_squeeze_to_rank(b, leaf, rank) for leaf, rank in zip(order, pattern.ranks, strict=False)]
        inputs = [arg for arg in args if arg is not None]
        if len(inputs) < count or inputs[0].shape != root.shape:
            continue
        for values in combinations(_numbers(inside), repeat=len(pattern.numbers)):
            settings = dict(zip(pattern.numbers, values, strict=True))
            if _result(b, pattern, settings, [arg.array for arg in inputs]) == root.array:
                return _call(b, pattern, settings, inputs, root)
    return None


def _call(
    b: SpecBuilder, pattern: Pattern, settings: Mapping[str, Setting], args: Sequence[Value], root: Value
) -> Value:
    if pattern.is_elementwise:
        return b.unwritten(b.activation(pattern.name, b.written(args[0])))
    written = [b.written(arg) for arg in args]
    return b.made(pattern.name, written, root.array, settings, "ops" if pattern.is_operation else "std")


def _result(b: Builder, pattern: Pattern, settings: Mapping[str, Setting], inputs: Sequence[Array]) -> Array | None:
    """Return what a function makes of inputs; None if it does not accept them."""
    if pattern.is_elementwise:
        single = b.library.function(pattern.name, settings, [Array((), array.element) for array in inputs], ())
        return None if single is None else Array(inputs[0].shape, single.element)
    if not pattern.is_operation:
        return b.library.function(pattern.name, settings, inputs, inputs[0].shape)
    args = [Value("input", array=array, dtype=b.arrays.dtype(array), frame=b.frame) for array in inputs]
    try:
        return b.results(pattern.name, args, OPS[pattern.name].settings(settings))[0]
    except (UntranslatableError, ArithmeticError, TypeError):
        return None


# Features -------------------------------------------------------------------------------------------------------------


@cache
def patterns_by_features() -> Mapping[Features, Sequence[Pattern]]:
    """Return the recognized functions by the features of their normal forms."""
    results: dict[Features, list[Pattern]] = {}
    for pattern in read_patterns():
        results.setdefault(_features_of_function(pattern.name), []).append(pattern)
    return results


@cache
def _features_of_function(name: str) -> Features:
    """Return the features of a recognized function, or the name of any other one."""
    pattern = next((pattern for pattern in read_patterns() if pattern.name == name), None)
    if pattern is None:
        return frozenset({name})
    b = Builder(Arrays())
    shapes = [() if pattern.is_elementwise else (4,) * (3 if rank is None else rank) for rank in pattern.ranks]
    inputs = [b.arrays.stored("input", turn, shape, "real") for turn, shape in enumerate(shapes[: pattern.required])]
    for values in combinations((0.5, 2), repeat=len(pattern.numbers)):
        results = _result(b, pattern, dict(zip(pattern.numbers, values, strict=True)), inputs)
        if results is not None:
            return _features_of(b.arrays, results.element)
    return frozenset({name})


_OF_OPERATIONS: dict[object, Features] = {}


def _features_of_value(b: SpecBuilder, value: Value) -> Features:
    """Return the features that a value has in addition to its operands."""
    view = b.unwritten(value)
    if b.layout(view)[0] is not view or value.op in VIEWS:
        return frozenset()
    if value.op not in OPS:
        return _features_of_function(value.op)
    args = flat_arguments(value.args)
    kinds = tuple([(arg.shape, arg.dtype) if isinstance(arg, Value) else arg for arg in args])
    key = value.op, kinds, str(value.settings)
    if key not in _OF_OPERATIONS:
        plain = Builder(Arrays())
        operands = [_opaque(plain, turn, arg) for turn, arg in enumerate(args)]
        try:
            results = plain.results(value.op, operands, OPS[value.op].settings(value.settings))
        except (UntranslatableError, ArithmeticError):
            return frozenset({value.op})
        _OF_OPERATIONS[key] = _features_of(plain.arrays, results[0].element)
    return _OF_OPERATIONS[key]


def _opaque(b: Builder, turn: int, arg: Operand | None) -> Operand | None:
    """Return an input with the shape of a value; a number itself."""
    if not isinstance(arg, Value):
        return arg
    return Value("input", array=b.arrays.stored("input", turn, arg.shape, arg.dtype), dtype=arg.dtype, frame=b.frame)


def activations() -> list[str]:
    """Return the recognized functions of one tensor without hyperparameters."""
    return [pattern.name for pattern in read_patterns() if pattern.is_elementwise]


@cache
def read_patterns() -> list[Pattern]:
    """Return the functions and operations that are recognized, in the order of their list."""
    results: list[Pattern] = []
    for item in parse_library_file("std/recognized.arch").items:
        assert isinstance(item, tree.Import)
        names = [entry.name for entry in item.names]
        if item.source == "ops":
            results += [_operation_pattern(name) for name in names]
        else:
            source = parse_library_file(f"std/{basename(item.source)}").items
            definitions = {each.name.text: each for each in source if isinstance(each, tree.Definition)}
            results += [_definition_pattern(definitions[name]) for name in names]
    return results


def _operation_pattern(name: str) -> Pattern:
    op = OPS[name]
    ranks = [None if "..." in item.shape else item.shape.count(",") + 1 for item in op.inputs]
    required = sum([not item.optional for item in op.inputs])
    return Pattern(name, True, tuple(ranks), required, tuple([each.name for each in op.attributes]), False)


def _definition_pattern(node: tree.Definition) -> Pattern:
    shapes = [entry.shape.items if entry.shape is not None else () for entry in node.inputs]
    is_open = [any(isinstance(item, tree.LeadingDimensions) for item in shape) for shape in shapes]
    ranks = [None if any_rank else len(shape) for any_rank, shape in zip(is_open, shapes, strict=True)]
    required = sum([entry.default is None for entry in node.inputs])
    numbers = tuple([entry.name for entry in node.hyperparameters])
    is_elementwise = not numbers and all(len(shape) == 1 for shape in shapes) and all(is_open)
    return Pattern(node.name.text, False, tuple(ranks), required, numbers, is_elementwise)


def _features_of(arrays: Arrays, element: Element) -> Features:
    table = arrays.elements.table
    results, seen, waiting = set[str](), set[Element](), [element]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        waiting += children(table, current)
        node = table.nodes[current]
        match node.kind:
            case "apply":
                results.add(str(node.arguments[0]))
            case "power":
                results.add("root")
            case "product":
                results |= {"root"} if any(not float(power).is_integer() for _, power in node.factors) else set()
            case "load" | "input" | "tensor" | "carried" | "terms" | "number" | "int" | "real" | "bool":
                pass
            case kind:
                results.add(kind)
    return frozenset(results)


def _is_number(b: SpecBuilder, value: Value) -> bool:
    return b.arrays.elements.nodes[value.array.element].kind == "number"


def _numbers(values: Sequence[Value]) -> list[float]:
    """Return the numbers that values are computed with, the first of them the real ones."""
    items: list[object] = [item for value in values for item in (*value.args, *value.settings.values())]
    sizes = [size for value in values for size in value.shape]
    reals: list[float] = [item for item in items if isinstance(item, float)]
    counts = [item for item in [*items, *sizes] if isinstance(item, int) and item > 1]
    return [*dict.fromkeys([*reals, *counts])][:MAX_EXAMPLES]


def _squeeze_to_rank(b: SpecBuilder, value: Value, rank: int | None) -> Value | None:
    """Return a value with this number of axes, without axes of size 1; None if that is impossible."""
    if rank is None or len(value.shape) == rank:
        return value
    shape = [size for size in value.shape if size != 1]
    return b.reshape(b.unwritten(value), shape) if len(shape) == rank else None
