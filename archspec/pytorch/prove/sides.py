"""The two sides of a comparison: a compiled model, or a PyTorch module that is called like one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from archspec.core.algebra import Polynomial, symbols
from archspec.ir.module import Body, Type, canonical_name, find_member
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.bodies import NormalFormBuilder
from archspec.ir.normal.nodes import Element, children
from archspec.ir.normal.origins import LocationIndex, ModuleLocation
from archspec.pytorch.export.capture import MIN_EXPORTED_SIZE, Capture
from archspec.pytorch.export.exporting import examples, export_module
from archspec.pytorch.numeric.constants import Constants, are_same
from archspec.pytorch.numeric.evaluate import Evaluation
from archspec.pytorch.passes.intercepting import restore_attributes
from archspec.pytorch.passes.programs import dtype_of
from archspec.pytorch.values.arguments import UntranslatableError

if TYPE_CHECKING:
    from torch import Tensor, nn


# Comparison of two sides by their normal forms, which are over one table of elements.


class FirstDifference(NamedTuple):
    """The first value on each side that the other side does not compute, with its location; None if there is none.

    `output` is the name of the first output that differs.
    """

    output: str
    a: ModuleLocation | None
    b: ModuleLocation | None


def first_difference(
    arrays: Arrays, names: list[str], a: list[Array], b: list[Array], places: tuple[LocationIndex, LocationIndex]
) -> FirstDifference | None:
    """Return where the outputs of two sides differ; None if they are equal."""
    for name, ours, theirs in zip(names, a, b, strict=True):
        if ours != theirs:
            left, right = _reachable_bases(arrays, ours.element), _reachable_bases(arrays, theirs.element)
            return FirstDifference(name, _first(left, right, places[0]), _first(right, left, places[1]))
    return None


def _reachable_bases(arrays: Arrays, element: Element) -> set[Element]:
    reached, waiting = set[Element](), [element]
    while waiting:
        current = waiting.pop()
        if current not in reached:
            reached.add(current)
            waiting += children(arrays.elements.table, current)
    return reached


def _first(here: set[Element], there: set[Element], places: LocationIndex) -> ModuleLocation | None:
    """Return the place of the first base that only this side reaches, although it depends on none such."""
    return next((place for base, place in places.bases.items() if base in here and base not in there), None)


MIN_EXAMPLE_SIZE = 3
"""The smallest size of a dimension in examples."""

MAX_TRIED = 64
"""Not more small sizes are tried."""

MAX_TRIED_SIZE = 100_000
"""Larger sizes are not tried."""


def model_outputs(
    arrays: Arrays,
    body: Body,
    places: LocationIndex | None = None,
    constants: Constants | None = None,
    counted: Mapping[str, str] = MappingProxyType({}),
) -> list[Array]:
    """Return the outputs of a model that are present. The tensors in `counted` are called by those names."""
    inputs = [arrays.stored("input", name, type.shape, type.dtype) for name, type in body.inputs]
    found = NormalFormBuilder(arrays, body.module, places, constants=constants, counted=counted).outputs(body, inputs)
    return [output for output in found if output is not None]


def module_outputs(
    arrays: Arrays, module: nn.Module, body: Body, places: LocationIndex, constants: Constants
) -> list[Array]:
    """Return the outputs of a module that has the tensors and `constants` of a model, and is called with its inputs.

    Raises Untranslatable if they have no normal form.
    """
    owner = body.module
    assert owner is not None
    tables = NormalFormBuilder(arrays, owner)

    def tensor(name: str, value: Tensor | None, type: Type) -> Array:
        table = tables.table(name)
        if table is not None:
            check_table(arrays, table, value, name)
            return table
        is_stored = find_member(owner, name) is not None
        found = constants.find(value, type) if not is_stored and value is not None else None
        return found or arrays.stored("tensor", canonical_name(owner, name), type.shape, type.dtype)

    sizes = example_sizes(body)
    program = export_module(module, dict(body.inputs), sizes)
    capture = Capture(arrays, program, dict(body.inputs), tensor, places, constants)
    require_all_sizes(capture, module, dict(body.inputs), body, sizes)
    return [output.array for output in capture.outputs()]


def example_inputs(module: nn.Module, body: Body) -> list[dict[str, Tensor]]:
    """Return inputs of the types that a body has, at two sizes."""
    return [examples(module, dict(body.inputs), example_sizes(body, start)) for start in (3, 4)]


def require_all_sizes(
    capture: Capture, module: nn.Module, inputs: Mapping[str, Type], body: Body, sizes: Mapping[str, int]
) -> None:
    """Raise Untranslatable if a program, exported at `sizes`, is only for some of the sizes that the model has."""
    require_small_sizes(capture, module, body, sizes)
    for name, size in capture.excluded:
        raise UntranslatableError(f"it can only be exported where `{name} != {size}`")
    for name, most in capture.most.items():
        if most > MAX_CALLED_LENGTH or accepts(module, inputs, {**sizes, name: most + 1}):
            raise UntranslatableError(f"it can only be exported where `{name}` is at most {most}")


def require_small_sizes(
    capture: Capture,
    module: nn.Module,
    body: Body,
    sizes: Mapping[str, int],
    unused: Mapping[str, Tensor] = MappingProxyType({}),
) -> None:
    """Raise Untranslatable if a program is not for the least sizes that the model has, unless its module, which also
    has `unused` inputs, does not run for these, as where it selects more elements than there are.
    """
    inputs = dict(body.inputs)
    for name, least in capture.least.items():
        if least <= MIN_EXPORTED_SIZE or not are_possible({**sizes, name: least - 1}, body, MIN_EXPORTED_SIZE):
            continue
        runs = (accepts(module, inputs, {**sizes, name: size}, unused) for size in range(1, least))
        if least > MAX_TRIED or any(runs) or not accepts(module, inputs, {**sizes, name: least}, unused):
            raise UntranslatableError(f"it can only be exported where `{name}` is at least {least}")


def accepts(
    module: nn.Module,
    inputs: Mapping[str, Type],
    sizes: Mapping[str, int],
    unused: Mapping[str, Tensor] = MappingProxyType({}),
) -> bool:
    """Whether a module runs for inputs of these sizes, and others that it does not use. One that does not, as its table
    of positions ends, computes nothing there; one that makes a longer table gets its own back.
    """
    import torch

    try:
        with restore_attributes(module), torch.no_grad():
            module(**{**unused, **examples(module, inputs, sizes)})
    except Exception:  # of any class, as it comes from the module
        return False
    return True


def example_sizes(body: Body, start: int = MIN_EXAMPLE_SIZE) -> dict[str, int]:
    """Return different sizes for the dimensions of inputs, for which no axis of any value is special to PyTorch."""
    names = [name for _, type in body.inputs for size in type.shape for name in sorted(symbols(size))]
    sizes: dict[str, int] = {name: start + 2 * turn for turn, name in enumerate(dict.fromkeys(names))}
    while (few := _too_small(sizes, body, MIN_EXPORTED_SIZE)) and min([sizes[name] for name in few]) < MAX_TRIED_SIZE:
        sizes = {name: 2 * size if name in few else size for name, size in sizes.items()}
        while len({*sizes.values()}) < len(sizes):
            sizes = {name: 2 * size if name in few else size for name, size in sizes.items()}
    return sizes


def are_possible(sizes: Mapping[str, int], body: Body, least: int = 1) -> bool:
    """Whether all axes of all values in a body, if they depend on these sizes, have `least` elements, and all loops as
    many iterations.
    """
    return not _too_small(sizes, body, least)


def _too_small(sizes: Mapping[str, int], body: Body, least: int) -> frozenset[str]:
    """Return the dimensions on which axes with fewer than `least` elements depend, or loops with fewer iterations."""
    shapes = [type.shape for type in body.types]
    if body.loop is not None:
        shapes.append((body.loop.iterations,))
    found = {size for shape in shapes for size in shape if isinstance(size, Polynomial)}
    few = [symbols(size) for size in found if symbols(size) <= sizes.keys() and size.at(sizes) < least]
    inner = [_too_small(sizes, call.body, least) for call in body.calls if call.body is not None]
    return frozenset[str]().union(*few, *inner)


def check_table(arrays: Arrays, table: Array, value: Tensor | None, name: str) -> None:
    """Raise Untranslatable unless a constant table has the values that a module computed."""
    if value is None or value.device.type == "meta":
        raise UntranslatableError(f"the constant table `{name}` has no values")
    if dtype_of(value) != arrays.dtype(table):
        raise UntranslatableError(f"the elements of the constant table `{name}` are {dtype_of(value)} numbers")
    expected = Evaluation(arrays, {}, {}).array(table)
    if expected.shape != value.shape or not are_same(expected, value):
        raise UntranslatableError(f"the constant table `{name}` has other values")


MAX_CALLED_LENGTH = 4096
"""Maximum input length with which a module is called to test whether it accepts it."""
