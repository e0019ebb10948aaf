"""Values of PyTorch modules: what `torch.export` records of a call, as operations on inputs and tensors."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import gcd, lcm
from typing import TYPE_CHECKING, cast

from archspec.core.algebra import (
    Dim,
    Expression,
    Polynomial,
    atoms,
    expression,
    index,
    is_at_least,
    product,
    split_multiple,
    substitute,
    symbols,
)
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.bodies import apply
from archspec.ir.normal.nodes import index_of
from archspec.ir.normal.origins import LocationIndex, ModuleLocation
from archspec.pytorch.calls.complex import ComplexValue, has_complex
from archspec.pytorch.calls.registry import call
from archspec.pytorch.export.formulas import size_of
from archspec.pytorch.numeric.constants import Constants
from archspec.pytorch.passes.folding import fold_constants, read_stored_tensors
from archspec.pytorch.passes.iterations import loop_mark
from archspec.pytorch.passes.matches import rewrite_condition_indices
from archspec.pytorch.passes.programs import (
    SymPyExpression,
    dtype_of,
    formula_of,
    guards_of,
    input_names,
    is_node,
    nodes_of,
    numbers_of,
    ranges_of,
)
from archspec.pytorch.passes.selection import rewrite_row_selection, rewrite_scatter
from archspec.pytorch.values.arguments import UntranslatableError, as_list, is_list, operation_name
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Value

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram
    from torch.fx import Node


MIN_EXPORTED_SIZE = 2
"""The smallest size for which exported programs are valid: `torch.export` specializes 0 and 1."""


CONVERSIONS = ("to", "_to_copy", "type_as", "float")
"""Operations that convert to another type."""


class MultiplesOnlyError(UntranslatableError):
    """The exported program is valid only for multiples of some numbers; `multiples` maps dimensions to them."""

    def __init__(self, message: str, multiples: Mapping[str, int]) -> None:
        super().__init__(message)
        self.multiples = multiples


class SingleLengthError(UntranslatableError):
    """The exported program is valid only for one length, such as 1; longer inputs may allow other lengths."""


class Capture:
    """The values of an exported program."""

    def __init__(
        self,
        arrays: Arrays,
        program: ExportedProgram,
        inputs: Mapping[str, Type],
        tensor: Callable[[str, torch.Tensor | None, Type], Array] | None = None,
        places: LocationIndex | None = None,
        constants: Constants | None = None,
    ) -> None:
        self.arrays = arrays
        self.builder: Builder = Builder(arrays)
        self.program = program
        self.tensor = tensor
        self.places = places
        self._constants = constants
        self._values: dict[Node, object] = {}
        self._symbols: dict[str, Expression] = {}
        self._inputs = inputs
        self._names = input_names(program)
        self._asserted = _asserted(program)
        self.least: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.excluded: set[tuple[str, int]] = set()
        """Single sizes of dimensions that the program is not for, as the module has a branch for them."""
        self.has_loops = any(loop_mark(node) == "looped" for node in nodes_of(program.graph))
        read_stored_tensors(program)
        rewrite_condition_indices(program)
        rewrite_scatter(program)
        masks = rewrite_row_selection(program)
        for node in nodes_of(program.graph):
            if node.op == "placeholder" and self._names.get(node.name) in inputs:
                self._bind(node)
            if loop_mark(node) == "begun" and node.args[2] == 0:
                self._symbols[str(formula_of(node.meta["val"]))] = index("@0")
        for name, mask in masks.items():
            self._symbols[name] = product([self.size(size) for size in mask.meta["val"].shape])
        for guard in guards_of(self.program):
            self._check_guard(guard)

    @cached_property
    def folded(self) -> dict[Node, torch.Tensor]:
        """The reals that are computed from constants alone, by node."""
        return fold_constants(self.program)

    def outputs(self) -> list[Value]:
        """Return the outputs of the module that are tensors. Raises Untranslatable for complex ones."""
        signature = self.program.graph_signature
        if any(spec.kind.name != "USER_OUTPUT" for spec in signature.output_specs):
            raise UntranslatableError("it changes its inputs or buffers")
        tensors = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        constants = signature.inputs_to_lifted_tensor_constants
        *nodes, output = nodes_of(self.program.graph)
        for node in nodes:
            if node.op == "placeholder":
                self._values[node] = self._placeholder(node, tensors, constants)
            elif node.op == "call_function":
                try:
                    self._values[node] = found = self._call(node)
                    self._note(node, found)
                except UntranslatableError as problem:
                    raise UntranslatableError(f"{problem}, in {_place(node)}") from problem
                except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as problem:
                    reason = f"`{operation_name(node)}` has no form as it is used here"
                    raise UntranslatableError(f"{reason}, in {_place(node)}") from problem
            else:
                raise UntranslatableError(f"it reads `{node.target}`")
        outputs: list[object] = as_list(output.args[0])
        values = [self._value(item) for item in outputs]
        if any(map(has_complex, values)):
            raise UntranslatableError("it has complex outputs")
        return [value for value in values if isinstance(value, Value)]

    def _bind(self, node: Node) -> None:
        """Name the symbols in the sizes of an input as in its type."""
        for size, actual in zip(self._inputs[self._names[node.name]].shape, node.meta["val"].shape, strict=True):
            if not isinstance(size, Polynomial):
                continue
            formula = formula_of(actual)
            if formula is None or formula.is_Integer:
                raise UntranslatableError(f"a loop or branch in it depends on the size `{size}`")
            factor, symbol = formula.as_coeff_Mul()
            if not symbol.is_Symbol:
                raise UntranslatableError(f"it can only be exported where `{size}` is {formula}")
            times = int(factor)
            if size % times != 0:
                reason = f"it can only be exported where `{size}` is a multiple of {times}"
                raise MultiplesOnlyError(reason, divisors(size, times))
            self._symbols.setdefault(str(symbol), size // times)
            self._check_range(symbol, size // times)

    def _check_range(self, symbol: SymPyExpression, size: Dim) -> None:
        """Note the least and the largest value of the dimension in a size that the program is for."""
        allowed = ranges_of(self.program).get(symbol)
        multiple = split_multiple(size)
        if allowed is None or multiple is None:
            return
        factor, name = multiple
        self.least[name] = max(self.least.get(name, MIN_EXPORTED_SIZE), -(-int(allowed.lower) // factor))
        if str(allowed.upper) != "int_oo":
            self.most[name] = int(allowed.upper) // factor

    def _check_guard(self, guard: SymPyExpression) -> None:
        """Refuse a program that is only for sizes with a relation, as the module has a branch that depends on it."""
        if not self._always_holds(guard):
            excluded = self._excluded(guard)
            if excluded:
                self.excluded |= excluded
                return
            if not guard.is_Relational:
                raise UntranslatableError(f"it can only be exported where `{guard}`")
            sizes = [size_of(side, self._symbols) for side in guard.args]
            reason = f"it can only be exported where `{f' {guard.rel_op} '.join(map(str, sizes))}`"
            multiples = _multiples(sizes)
            if not multiples and guard.rel_op == "==" and any(isinstance(size, int) for size in sizes):
                raise SingleLengthError(reason)
            raise MultiplesOnlyError(reason, multiples) if multiples else UntranslatableError(reason)

    def _excluded(self, guard: SymPyExpression) -> set[tuple[str, int]]:
        """Return the dimension and the few sizes for which alone a relation does not hold; none of other relations."""
        if not guard.is_Relational or guard.rel_op != "!=":
            return set()
        divided, rest = guard.args
        if type(divided).__name__ in ("Mod", "PythonMod") and divided.args[0].is_Integer and rest == 0:
            number, by = int(divided.args[0]), size_of(divided.args[1], self._symbols)
            multiple = split_multiple(by)  # that a number is no multiple of
            if multiple is None or number < 1:
                return set()
            factor, name = multiple
            return {(name, size) for size in range(1, number + 1) if number % (factor * size) == 0}
        left, right = [size_of(side, self._symbols) for side in guard.args]
        difference = left - right
        names = symbols(difference)
        try:
            rest = substitute(difference, dict.fromkeys(names, 0))
        except ZeroDivisionError:  # of a quotient or remainder by a size
            return set()
        multiple = split_multiple(difference - rest)
        if multiple is None or not isinstance(rest, int):
            return set()
        factor, name = multiple
        return {(name, -rest // factor)} if rest % factor == 0 else set()

    def _always_holds(self, guard: SymPyExpression) -> bool:
        """Whether a relation of sizes holds for all sizes in the ranges that the program is for."""
        if guard.is_Boolean:
            found = [self._always_holds(part) for part in guard.args]
            kind = type(guard).__name__
            return all(found) if kind == "And" else any(found) if kind == "Or" else kind == "BooleanTrue"
        left, right = [size_of(side, self._symbols) for side in guard.args]
        names = {name for side in (left, right) for name in symbols(side)}
        ranges = {name: index_of(name, max(1, self.least.get(name, 1)), self.most.get(name)) for name in names}
        above = substitute(left - right, ranges)
        match guard.rel_op:
            case "==":
                return above == 0
            case "!=":
                return is_at_least(above, 1) or is_at_least(-above, 1)
            case ">=" | ">":
                return is_at_least(above, guard.rel_op == ">")
            case _:
                return is_at_least(-above, guard.rel_op == "<")

    def _placeholder(
        self, node: Node, tensors: Mapping[str, str], constants: Mapping[str, str]
    ) -> Value | ComplexValue | None:
        value = node.meta.get("val")
        if value is None:
            return None
        type = self._type(
            value, is_kept=all(_name(user) in CONVERSIONS for user in node.users if user not in self._asserted)
        )
        stored = cast("Mapping[str, torch.Tensor]", self.program.constants)
        if node.name in tensors:
            name = tensors[node.name]
            found = stored.get(name)
            _check_values(name, found)
            if type.dtype == "complex" and found is not None:
                return self._complex_constant(found)
            return self._stored(name, found, type)
        if node.name in constants:
            constant = stored[constants[node.name]]
            _check_values(constants[node.name], constant)
            return self._complex_constant(constant) if constant.is_complex() else self._constant(constant, type)
        return self._input(self._names[node.name], type)

    def _input(self, name: str, type: Type) -> Value:
        return self._valued(self.arrays.stored("input", name, type.shape, type.dtype))

    def _stored(self, name: str, value: torch.Tensor | None, type: Type) -> Value:
        assert self.tensor is not None
        return self._valued(self.tensor(name, value, type))

    def _constant(self, value: torch.Tensor, type: Type) -> Value:
        if value.device.type == "meta":
            raise UntranslatableError("it has a constant without a value")
        found = self._constants.find(value, type) if self._constants is not None else None
        if found is not None:
            return self._valued(found)
        if not type.shape:
            return self.builder.op("full", shape=(), value=value.item())
        return self._valued(apply(self.arrays, "table", [], {"values": numbers_of(value)}, [type])[0])

    def _complex_constant(self, value: torch.Tensor) -> ComplexValue:
        type = Type(tuple(value.shape), "real")
        return ComplexValue(self._constant(value.real, type), self._constant(value.imag, type))

    def _valued(self, array: Array) -> Value:
        """Return a value of which nothing is known but its normal form."""
        return self.builder.made("", [], array, kind="form")

    def _call(self, node: Node) -> object:
        target = node.target
        value = node.meta.get("val")
        if node in self._asserted:
            return None
        if target is operator.getitem:
            return cast("list[object]", self._value(node.args[0]))[cast("int", node.args[1])]
        name = _name(node)
        if value is None:
            return None
        if not _is_tensor(value) and not is_list(value):
            return self.size(value)
        types = [self._type(cast("torch.Tensor", item)) for item in as_list(value)]
        if self._constants is not None and node in self.folded:
            found = self._constants.find(self.folded[node], types[0])
            if found is not None:
                return self._valued(found)
        args = [self._value(item) for item in node.args]
        keywords = {key: self._value(item) for key, item in node.kwargs.items()}
        return call(self.builder, name, types, args, keywords)

    def _note(self, node: Node, found: object) -> None:
        if self.places is None:
            return
        place = _place(node)
        arrays = [value.array for value in as_list(found) if isinstance(value, Value)]
        self.places.note(arrays, place.address, place.source)

    def _value(self, item: object) -> object:
        if is_list(item):
            return [self._value(part) for part in item]
        if is_node(item):
            return self._values[item]
        return item

    def _type(self, value: torch.Tensor, is_kept: bool = False) -> Type:
        """Return the type of a tensor; that of small integers only if these are kept as they are."""
        import torch

        kind = "complex" if value.dtype.is_complex else dtype_of(value)
        if kind == "int" and value.dtype not in (torch.int64, torch.int32) and not is_kept:
            raise UntranslatableError(f"it computes integers of the type {value.dtype}, which wrap around")
        return Type(tuple([self.size(size) for size in value.shape]), kind)

    def size(self, value: int | torch.SymInt) -> Dim:
        """Return a size of the exported program in the names of the inputs' types."""
        return value if isinstance(value, int) else size_of(cast("SymPyExpression", formula_of(value)), self._symbols)


def _check_values(name: str, value: torch.Tensor | None) -> None:
    """Raise Untranslatable for a tensor that a module has made in a call of `torch.export`: it has no values."""
    from torch._subclasses import FakeTensor

    if isinstance(value, FakeTensor):
        raise UntranslatableError(f"`forward` creates `{name}`, which later calls read; create it in the constructor")


def _multiples(sizes: Sequence[Dim]) -> dict[str, int]:
    """Return what dimensions have to be multiples of for the remainders in some sizes to be 0."""
    found: dict[str, int] = {}
    for atom in [atom for size in sizes for atom in atoms(size)]:
        inner = [expression(argument) for argument in atom.arguments]
        given = _multiples(inner)
        if atom.kind == "%" and isinstance(inner[1], int):
            given |= divisors(inner[0], inner[1])
        found |= {name: lcm(times, found.get(name, 1)) for name, times in given.items() if times > 1}
    return found


def divisors(size: Dim, times: int) -> dict[str, int]:
    """Return what the only dimension in a size has to be a multiple of for the size to be a multiple of a number."""
    multiple = split_multiple(size)
    return {multiple[1]: times // gcd(multiple[0], times)} if multiple is not None else {}


LIBRARIES = (f"{os.sep}torch{os.sep}", f"{os.sep}archspec{os.sep}pytorch{os.sep}")


def is_library_file(path: str) -> bool:
    """Whether a file is one of PyTorch or archspec, or code that PyTorch generates."""
    return any(folder in path for folder in LIBRARIES) or path.startswith("<eval_with_key>")


def _place(node: Node) -> ModuleLocation:
    """Return the module of a node, and its line in the source outside of PyTorch."""
    stack = as_list(tuple(node.meta.get("nn_module_stack", {}).values()))
    lines = re.findall(r'File "([^"]+)", line ([0-9]+)', node.meta.get("stack_trace") or "")
    own = [line for line in lines if not is_library_file(line[0])]
    lines = own or [line for line in lines if f"{os.sep}torch{os.sep}nn{os.sep}modules{os.sep}" in line[0]]
    source = f"{os.path.basename(lines[-1][0])}:{lines[-1][1]}" if lines else node.name
    return ModuleLocation(stack[-1][0] if stack else "", source)


def _asserted(program: ExportedProgram) -> set[Node]:
    """Return the nodes that are assertions, and what only these need."""
    found: set[Node] = set()
    for node in reversed(nodes_of(program.graph)):
        if node.op == "call_function":
            is_unused = not node.users and type(node.meta.get("val")).__name__ == "SymBool"
            is_given = bool(node.users) and all(user in found for user in node.users)
            if is_unused or is_given or _name(node).startswith(("_assert", "sym_constrain", "assert_")):
                found.add(node)
    return found


def _name(node: Node) -> str:
    """Return the name of the operation of a node, without its namespace."""
    return operation_name(node) or getattr(node.target, "__name__", "?")


def _is_tensor(value: object) -> bool:
    import torch

    return isinstance(value, torch.Tensor)
