"""Loops over a dimension as single operations, where `torch.export` would unroll them for one length.

The code of a generated module is changed: each loop whose number of iterations may depend on the size of an input
becomes a function of the index, and a call of `loop` with it. The changed module is run beside the generated one before
it is exported.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from types import CellType
from typing import TYPE_CHECKING, Any, TypeAlias

from archspec.pytorch.prove.numeric import flat
from archspec.pytorch.values.arguments import UntranslatableError

if TYPE_CHECKING:
    from torch import SymInt, Tensor, nn

    Iteration: TypeAlias = Callable[..., tuple[tuple[Tensor, ...], tuple[Tensor, ...]]]
    """A function of the index and the carried values. It returns the carried values, and those that are collected."""

    Collected: TypeAlias = list[Tensor] | Tensor
    """What a loop collects: the values of its iterations, one by one or stacked."""

# The code -------------------------------------------------------------------------------------------------------------

_ITERATION, _LOOP = "<iteration>", "<loop>"
_STACK, _PICK, _WINDOW, _TENSOR = "<stack>", "<pick>", "<window>", "<tensor>"
"""Names that no code has."""


def with_loops(text: str) -> ast.Module:
    """Return the code of a generated file with its loops as calls of functions, which `functions` returns."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name != "__init__":
            node.body = _block(node.body, {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)})
    return ast.fix_missing_locations(tree)


def has_loops(tree: ast.Module) -> bool:
    """Whether code that `with_loops` returns has loops that it has changed."""
    return any(isinstance(node, ast.Name) and node.id == _LOOP for node in ast.walk(tree))


def _block(body: Iterable[ast.stmt], bound: set[str]) -> list[ast.stmt]:
    """Return statements with their loops as calls; the names `bound` have values before them."""
    found: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.For(ast.Name(index), ast.Call(ast.Name("range"), bounds)) if _is_free(bounds):
                found += _called(index, bounds, _block(statement.body, bound | {index}), bound)
            case ast.For() | ast.If():
                statement.body = _block(statement.body, {*bound})
                statement.orelse = _block(statement.orelse, {*bound})
                found.append(statement)
            case _:
                found.append(_Calls().visit(statement))
        bound |= _assigned([statement])
    return found


def _is_free(bounds: Sequence[ast.expr]) -> bool:
    """Whether a range may depend on the size of an input: its bounds are neither numbers nor those of the module."""
    return any(isinstance(node, ast.Name) and node.id != "self" for bound in bounds for node in ast.walk(bound))


def _called(index: str, bounds: list[ast.expr], body: list[ast.stmt], bound: set[str]) -> list[ast.stmt]:
    """Return a loop as the definition of its iteration, and its call."""
    appends, picks = _Appends(), _Picks(index)
    body = [picks.visit(appends.visit(statement)) for statement in body]
    carried = sorted((_assigned(body) & bound) - {*appends.lists, index})
    before, after = [_tuple([_tuple(words, kind) for words in (carried, appends.lists)], kind) for kind in _CONTEXTS]
    returned: list[ast.stmt] = [ast.Return(before)]
    call = ast.Call(_name(_LOOP), [_name(_ITERATION), _tuple(bounds), *before.elts], [])
    return [ast.FunctionDef(_ITERATION, _arguments(index, *carried), body + returned, []), ast.Assign([after], call)]


class _Appends(ast.NodeTransformer):
    """Binds what an iteration appends to a list to the name of the list; `lists` are these names."""

    def __init__(self) -> None:
        self.lists: list[str] = []

    def visit_For(self, node: ast.For) -> ast.stmt:
        return node  # what a loop over a number collects is its own

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        match node.value:
            case ast.Call(ast.Attribute(ast.Name(word), "append"), [value]):
                self.lists.append(word)
                return ast.Assign([ast.Name(word, ast.Store())], value)
            case _:
                return node


class _Calls(ast.NodeTransformer):
    """Calls `stack` instead of `torch.stack`, and `stored_tensor` instead of methods that return parameters only."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(function, [parts, axis]) if ast.unparse(function) == "torch.stack":
                return ast.Call(_name(_STACK), [parts, axis], [])
            case ast.Call(ast.Attribute(module, "get_parameter" | "get_buffer"), [address]):
                return ast.Call(_name(_TENSOR), [module, address], [])
            case _:
                return node


class _Picks(ast.NodeTransformer):
    """Calls `pick` where `x[:, i]` or `x[..., i, :]` reads one element, at an index that depends on that of a loop, and
    `window` where `x[:, i:i + 2]` reads several.
    """

    def __init__(self, index: str) -> None:
        self.index = index

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        places = [i for i, item in enumerate(items) if not _is_full(item)]
        if len(places) != 1 or not any(isinstance(n, ast.Name) and n.id == self.index for n in ast.walk(node.slice)):
            return node
        axis = places[0] - len(items) if _is_ellipsis(items[0]) else places[0]
        match items[places[0]]:
            case ast.Slice(ast.expr() as start, ast.expr() as stop, None):
                ends = [ast.Lambda(_arguments(self.index), end) for end in (start, stop)]
                return ast.Call(_name(_WINDOW), [node.value, ast.Constant(axis), *ends, _name(self.index)], [])
            case ast.Slice():
                return node
            case position:
                return ast.Call(_name(_PICK), [node.value, ast.Constant(axis), position], [])


def _is_full(node: ast.expr) -> bool:
    """Whether an item of a subscript reads the whole of an axis, or of several."""
    return _is_ellipsis(node) or (isinstance(node, ast.Slice) and not (node.lower or node.upper or node.step))


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _assigned(body: Iterable[ast.AST]) -> set[str]:
    """Return the names that statements bind, apart from functions and what these bind."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif not isinstance(node, ast.FunctionDef):
            found |= _assigned(ast.iter_child_nodes(node))
    return found - {"_"}


_CONTEXTS: tuple[ast.expr_context, ast.expr_context] = (ast.Load(), ast.Store())


def _name(word: str, kind: ast.expr_context = _CONTEXTS[0]) -> ast.expr:
    return ast.Name(word, kind)


def _arguments(*words: str) -> ast.arguments:
    given = [ast.arg(word) for word in words]
    return ast.arguments(posonlyargs=[], args=given, kwonlyargs=[], kw_defaults=[], defaults=[])


def _tuple(items: Sequence[ast.expr | str], kind: ast.expr_context = _CONTEXTS[0]) -> ast.Tuple:
    return ast.Tuple([_name(item, kind) if isinstance(item, str) else item for item in items], kind)


# What it calls --------------------------------------------------------------------------------------------------------


def functions() -> dict[str, object]:
    """Return the functions that the code calls, by name."""
    return {_LOOP: loop, _STACK: stack, _PICK: pick, _WINDOW: window, _TENSOR: stored_tensor}


def loop(
    iteration: Iteration, bounds: tuple[int | SymInt, ...], carried: tuple[Tensor, ...], lists: tuple[list[Tensor], ...]
) -> tuple[tuple[Tensor, ...], tuple[Collected, ...]]:
    """Return the carried values after all iterations of a loop, and what each of the lists collects.

    If its bounds are numbers, that is a list, and otherwise a tensor: the loop becomes one operation.
    """
    if not all(isinstance(bound, int) for bound in bounds):
        return _scanned(iteration, bounds, carried)
    for index in range(*bounds):
        carried, items = iteration(index, *carried)
        for collected, item in zip(lists, items, strict=True):
            collected.append(item)
    return carried, lists


def stack(parts: Collected, axis: int) -> Tensor:
    """Stack what a loop has collected."""
    torch = import_module("torch")
    return torch.stack(parts, axis) if isinstance(parts, list) else parts.movedim(0, axis)


def pick(x: Any, axis: int, index: Any) -> object:
    """Return the element at an index along an axis of a tensor; the index may be a tensor."""
    import torch

    if not isinstance(x, torch.Tensor):
        return x[index if isinstance(index, str) else operator.index(index)]
    return x.index_select(axis, index).squeeze(axis) if isinstance(index, torch.Tensor) else x.select(axis, index)


def window(x: Tensor, axis: int, start: Callable[..., Any], stop: Callable[..., Any], index: int | Tensor) -> Tensor:
    """Return the elements between two positions along an axis of a tensor, as many at every index."""
    torch = import_module("torch")
    with import_module("torch.fx.experimental.proxy_tensor").disable_proxy_modes_tracing():
        size = stop(0) - start(0)  # outside the graph: it reads no tensor
    if isinstance(size, torch.SymInt):
        size = size.node.maybe_as_int()
    if not isinstance(size, int):
        raise ValueError("a slice in a loop depends on the index of another loop, or its size on an input")
    if isinstance(index, int):
        return x.narrow(axis, start(index), size)
    return x.index_select(axis, start(index) + torch.arange(size))


def stored_tensor(module: nn.Module, address: str) -> Tensor:
    """Return the parameter or buffer at an address, or the tensor that a loop has put there."""
    owner, _, name = address.rpartition(".")
    return getattr(module.get_submodule(owner), name)


def _scanned(
    iteration: Iteration, bounds: tuple[int | SymInt, ...], carried: tuple[Tensor, ...]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return what a loop computes, with `torch.ops.higher_order.scan`.

    That operation takes all tensors that an iteration reads. No two of those that it takes or returns may share memory.
    """
    torch = import_module("torch")
    read = _Read(iteration.__closure__ or ())

    def step(*values: Tensor) -> list[Tensor]:
        start, index, rest = values[: len(carried)], values[len(carried)], values[len(carried) + 1 :]
        with read.replaced(rest):
            again, items = iteration(index, *start)
        return [value.clone() for value in (*again, *items)]

    starts, captured = [[tensor.clone() for tensor in tensors] for tensors in (carried, read.tensors)]
    captured += [torch.empty(size) for size in read.sizes]  # an iteration knows no other sizes than those of its inputs
    found = torch.ops.higher_order.scan(step, starts, [torch.arange(*bounds)], tuple(captured))
    return tuple(found[: len(carried)]), tuple(found[len(carried) :])


class _Read:
    """The tensors that a function reads from variables around it, and from modules that these are."""

    def __init__(self, cells: Sequence[CellType]) -> None:
        torch = import_module("torch")
        self._tree = import_module("torch.utils._pytree")
        self._variables = [cell for cell in cells if not isinstance(cell.cell_contents, torch.nn.Module)]
        modules = [cell.cell_contents for cell in cells if isinstance(cell.cell_contents, torch.nn.Module)]
        self._stored = [(m, {**dict(m.named_parameters()), **dict(m.named_buffers())}) for m in modules]
        leaves = self._tree.tree_leaves([cell.cell_contents for cell in self._variables])
        self.sizes: list[SymInt] = [leaf for leaf in leaves if isinstance(leaf, torch.SymInt)]
        self.tensors: list[Tensor] = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self.tensors += [tensor for _, stored in self._stored for tensor in stored.values()]

    @contextmanager
    def replaced(self, tensors: Iterable[Tensor]) -> Generator[None]:
        """Put others in the place of these tensors."""
        torch = import_module("torch")
        others = iter(tensors)

        def other(_: object) -> object:
            return next(others)

        before = [cell.cell_contents for cell in self._variables]
        with ExitStack() as modules:
            for cell, contents in zip(self._variables, before, strict=True):
                cell.cell_contents = self._tree.tree_map_only(torch.Tensor, other, contents)
            for module, stored in self._stored:
                values = {name: next(others) for name in stored}
                modules.enter_context(torch.nn.utils.stateless._reparametrize_module(module, values))
            try:
                yield
            finally:
                for cell, contents in zip(self._variables, before, strict=True):
                    cell.cell_contents = contents


# Whether that is right ------------------------------------------------------------------------------------------------


def require_same_outputs(module: nn.Module, generated: nn.Module, inputs: Mapping[str, Tensor]) -> None:
    """Run a module with changed code and the one as it was generated, with the same tensors and with random values of
    the shapes of `inputs`. Raises Untranslatable if their outputs differ.
    """
    torch = import_module("torch")
    generated.load_state_dict(module.state_dict(), assign=True)
    drawn = {
        name: torch.randn(value.shape) if value.is_floating_point() else torch.randint(2, value.shape).to(value.dtype)
        for name, value in inputs.items()
    }
    with torch.no_grad():
        try:
            found = flat(module(**drawn))
        except Exception as error:  # of any class, as it comes from the changed code
            raise UntranslatableError(f"its loops cannot be changed to single operations: {error}") from error
        if not all(torch.allclose(a, b, equal_nan=True) for a, b in zip(found, flat(generated(**drawn)), strict=True)):
            raise UntranslatableError("its loops would compute something else")
