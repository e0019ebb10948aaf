"""Exported programs: what their nodes are, and the sizes in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, cast

from archspec.pytorch.values.arguments import as_list

if TYPE_CHECKING:
    from torch import SymInt, Tensor
    from torch.export import ExportedProgram
    from torch.fx import Graph, Node
    from torch.fx.node import Argument


IDENTITY_OPERATIONS = ("to", "type_as", "_to_copy", "clone", "alias", "detach", "dropout", "contiguous")
"""Operations that return their first argument, perhaps in another type."""

VIEWS = ("view", "_unsafe_view", "reshape", "flatten", "unflatten")
"""Operations that return their first argument in another shape."""


class SymPyExpression(Protocol):
    """An expression of SymPy, as PyTorch has for sizes that are not known, and for relations of these."""

    is_Float: bool
    is_Integer: bool
    is_Symbol: bool
    is_Relational: bool
    is_Boolean: bool
    rel_op: str
    """The sign of a relation."""

    @property
    def args(self) -> tuple[SymPyExpression, ...]: ...

    @property
    def lhs(self) -> SymPyExpression: ...

    @property
    def rhs(self) -> SymPyExpression: ...

    @property
    def free_symbols(self) -> set[SymPyExpression]: ...

    def __float__(self) -> float: ...

    def as_coeff_Mul(self) -> tuple[SymPyExpression, SymPyExpression]: ...  # as SymPy spells it

    def xreplace(self, rule: Mapping[SymPyExpression, SymPyExpression]) -> SymPyExpression: ...

    def __int__(self) -> int: ...

    def __eq__(self, other: object) -> bool: ...

    def __hash__(self) -> int: ...

    def __lt__(self, other: object) -> bool: ...

    def __gt__(self, other: object) -> bool: ...


class Range(Protocol):
    """The values of a symbol that a program is for."""

    lower: SymPyExpression
    upper: SymPyExpression


class _Program(Protocol):
    """The parts of `ExportedProgram` that have no types of their own."""

    range_constraints: Mapping[SymPyExpression, Range]

    def run_decompositions(self, table: Mapping[object, object]) -> ExportedProgram: ...


class _Listing(Protocol):
    def tolist(self) -> object: ...


class _Alias(Protocol):
    is_write: bool


class Parameter(Protocol):
    """A parameter of an operation."""

    name: str
    alias_info: _Alias | None


class Schema(Protocol):
    """The signature of an operation."""

    name: str
    overload_name: str
    arguments: Sequence[Parameter]
    is_mutable: bool


def nodes_of(graph: Graph) -> list[Node]:
    """Return the nodes of a graph in order."""
    return list(graph.nodes)


def ranges_of(program: ExportedProgram) -> Mapping[SymPyExpression, Range]:
    """Return the values of symbols that a program is for."""
    return cast("_Program", program).range_constraints


def decompose_program(
    program: ExportedProgram, composite: Mapping[object, Callable[..., object]] = MappingProxyType({})
) -> ExportedProgram:
    """Return a program of fewer operations, none of which changes a value in place; without those that are composite,
    by functions that compute the same with others.
    """
    return cast("_Program", program).run_decompositions({**composite})


def input_names(program: ExportedProgram) -> dict[str, str]:
    """Return the names of inputs by the names of placeholders, which PyTorch writes in lower case."""
    placeholders = cast("Sequence[str]", program.graph_signature.user_inputs)
    _, names = program.example_inputs or ((), placeholders)
    return dict(zip(placeholders, names, strict=True))


def guards_of(program: ExportedProgram) -> list[SymPyExpression]:
    """Return the relations of sizes that a program relies on, in the symbols that are left in it."""
    values = [node.meta.get("val") for node in nodes_of(program.graph) if node.op == "placeholder"]
    environments = [getattr(getattr(value, "fake_mode", None), "shape_env", None) for value in values]
    environment = next((found for found in environments if found is not None), None)
    if environment is None:
        return []
    guards: list[SymPyExpression] = [guard.expr for guard in environment.guards]
    return [_replaced(guard, environment.replacements) for guard in guards]


def _replaced(value: SymPyExpression, replacements: Mapping[SymPyExpression, SymPyExpression]) -> SymPyExpression:
    """Return an expression without the symbols that turned out to be others."""
    while (found := value.xreplace(replacements)) != value:
        value = found
    return value


def schema_of(node: Node) -> Schema | None:
    """Return the signature of the operation of a node; None for other nodes."""
    return cast("Schema | None", getattr(node.target, "_schema", None))


def is_node(argument: object) -> TypeGuard[Node]:
    """Whether an argument is the result of another node."""
    return argument.__class__.__name__ == "Node"


def node_in(argument: object) -> Node:
    """Return the node that an argument is, or that is alone in a list."""
    (found,) = [item for item in as_list(argument) if is_node(item)]
    return found


def tensor_of(node: Node) -> Tensor:
    """Return the tensor that stands for the one that a node computes, with its type and sizes."""
    return node.meta["val"]


def add_node(
    graph: Graph,
    target: Callable[..., object],
    *args: Argument,
    like: Node | None = None,
    found: Tensor | None = None,
    keywords: Mapping[str, Argument] | None = None,
) -> Node:
    """Return a new node, which computes `found`; it is from the place in the source of the one that it is `like`."""
    named = {**(keywords or {})}
    new = graph.call_function(target, args, named)
    given = [tensor_of(item) if is_node(item) else item for item in args]
    like = like or next(item for item in args if is_node(item))
    new.meta = {**like.meta, "val": target(*given, **named) if found is None else found}
    return new


def dtype_of(tensor: Tensor) -> str:
    """Return the element type of a tensor: "real", "int" or "bool"."""
    import torch

    return "bool" if tensor.dtype == torch.bool else "real" if tensor.dtype.is_floating_point else "int"


def numbers_of(tensor: Tensor) -> object:
    """Return the elements of a tensor in lists."""
    return cast("_Listing", tensor).tolist()


def values_of(node: Node) -> list[object]:
    """Return what stands for the results of a node, one by one; None for one without a result."""
    return as_list(node.meta.get("val"))


def tensors_of(node: Node) -> list[Tensor]:
    """Return the tensors that stand for the results of a node."""
    import torch

    return [value for value in values_of(node) if isinstance(value, torch.Tensor)]


def storage_of(node: Node) -> int | None:
    """Return which storage a node has; None for one of no tensor, or of several storages, or inside a map."""
    import torch

    try:
        found = {
            value.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]
            if isinstance(value, torch.Tensor)
            else None
            for value in values_of(node)
        }
    except NotImplementedError:  # tensors that `torch.vmap` maps over have none
        return None
    return found.pop() if len(found) == 1 else None


def size_of(size: int | SymInt) -> int | SymPyExpression:
    """Return a size as a number or formula."""
    formula = formula_of(size)
    return cast("int", size) if formula is None else formula


def formula_of(size: object) -> SymPyExpression | None:
    """Return the formula of a size that is not known; None for anything else."""
    return cast("SymPyExpression | None", getattr(getattr(size, "node", None), "expr", None))


# Sizes that are computed from those of inputs and may be 1, such as numbers of frames.
#
# For each of these, `torch.export` makes a program for all other values, as one step may depend on it: a size of 1 is
# repeated where the other operand has more, and squeezed. The values of other steps are the same for all sizes.


def excludes_ones(program: ExportedProgram, guards: Iterable[SymPyExpression]) -> bool:
    """Whether a program with these relations may not be for sizes of 1 that are computed from others.

    A program with a largest size is not among these: another one would have that size in a relation.
    """
    if any(str(allowed.upper) != "int_oo" for allowed in ranges_of(program).values()):
        return False
    sympy: Any = import_module("torch.utils._sympy.value_ranges")
    ranges = {
        symbol: sympy.ValueRanges(max(2, allowed.lower), max(2, allowed.upper))
        for symbol, allowed in ranges_of(program).items()
    }
    return any(
        guard.is_Relational
        and guard.rel_op == "!="
        and guard.rhs == 1
        and not guard.lhs.is_Symbol
        and bool(sympy.bound_sympy(guard.lhs, ranges).lower <= 1)
        for guard in guards
    )


def allow_size_one() -> AbstractContextManager[None]:
    """Prevent PyTorch from adding guards that exclude sizes of 1, in programs and their decompositions to."""
    import torch.fx.experimental._config as settings

    return settings.patch(backed_size_oblivious=True)  # pyright: ignore


def generalize_to_size_one(export: Callable[[], ExportedProgram]) -> ExportedProgram | None:
    """Return a program that is also for such sizes; None if there is none.

    Sizes that are combined have to be equal then, which the program has as a relation.
    """
    try:
        with allow_size_one():
            program = export()
    except Exception:  # of any class, as it comes from the module
        return None
    return None if any(_may_squeeze(node) for node in nodes_of(program.graph)) else program


def _may_squeeze(node: Node) -> bool:
    """Whether a step drops an axis if its size is 1, which is not known."""
    if "squeeze" not in str(node.target) or "unsqueeze" in str(node.target):
        return False
    sizes = tensor_of(node_in(node.args[0])).shape
    axes: Sequence[object] = as_list(node.args[1]) if len(node.args) > 1 else range(len(sizes))
    return not all(isinstance(axis, int) and isinstance(size_of(sizes[axis]), int) for axis in axes)
