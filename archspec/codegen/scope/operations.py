"""The primitive operations as expressions of PyTorch, from the forms in their records."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping
from typing import NamedTuple

from archspec.codegen.python.trees import parse_template, py, sequence
from archspec.codegen.scope.values import FREE
from archspec.ir.ops import Op, OpError

Code = ast.expr


class AppliedOperation(NamedTuple):
    """An operation and its operands.

    `tensors` are its inputs in order, None where absent. `numbers` tells which of them are plain numbers, `ranks` how
    many axes each has (None: that varies), `optional` which are None in some uses. `settings` are its hyperparameters,
    `kind` is that of the result, `dtype` and `device` are those of new tensors of reals, and `training` tells whether
    the module is being trained.
    """

    op: Op
    tensors: tuple[Code | None, ...]
    numbers: tuple[bool, ...]
    settings: Mapping[str, Code]
    ranks: tuple[int | None, ...]
    optional: tuple[bool, ...]
    kind: str
    dtype: Callable[[], Code]
    device: Callable[[], Code | None]
    training: Callable[[], Code]

    def literal(self, name: str) -> object:
        code = self.parts().get(name)
        return constant(code) if code is not None else object()

    def is_given(self, name: str) -> bool:
        return self.tensors[self._index(name)] is not None

    def is_optional(self, name: str) -> bool:
        return self.optional[self._index(name)]

    def is_number(self, name: str) -> bool:
        return self.numbers[self._index(name)]

    def rank(self, name: str) -> int | None:
        return self.ranks[self._index(name)]

    def parts(self) -> dict[str, Code]:
        """The code of each input and hyperparameter."""
        found = {i.name: code for i, code in zip(self.op.inputs, self.tensors, strict=False) if code is not None}
        if self.op.inputs and self.op.inputs[-1].variadic:
            given = [code for code in self.tensors[len(self.op.inputs) - 1 :] if code is not None]
            found[self.op.inputs[-1].name] = sequence(given, ast.List)
        return {**found, **self.settings}

    def new(self) -> list[ast.keyword]:
        """The keywords of a call that creates a tensor of the kind of the result."""
        dtype = self.dtype() if self.kind == FREE else None
        given = {"dtype": dtype, "device": self.device()}
        return [ast.keyword(word, code) for word, code in given.items() if code is not None]

    def _index(self, name: str) -> int:
        return [i.name for i in self.op.inputs].index(name)


def constant(code: Code) -> object:
    """The value of a literal, or an object equal to nothing."""
    try:
        return ast.literal_eval(code)
    except ValueError:
        return object()


def add_device(call: ast.Call, device: Code | None) -> Code:
    """A call that makes a tensor, on a device if one is given."""
    if device is not None:
        call.keywords.append(ast.keyword("device", device))
    return call


def emit(applied: AppliedOperation) -> Code:
    """The expression of an operation. Raises OpError."""
    torch = applied.op.torch
    if torch is None:
        raise OpError(f"`{applied.op.name}` has no form in PyTorch")
    form = torch.form if isinstance(torch.form, str) else torch.form(applied)
    return _TemplateFiller(applied).visit(copy.deepcopy(parse_template(form)))


class _TemplateFiller(ast.NodeTransformer):
    """Puts operands into a form; see `Torch`."""

    def __init__(self, applied: AppliedOperation) -> None:
        self.applied = applied
        self.parts = applied.parts()

    def visit_Name(self, node: ast.Name) -> Code:
        if node.id == "training":
            return self.applied.training()
        return self.parts.get(node.id, node)

    def visit_Call(self, node: ast.Call) -> Code:
        found = ast.Call(self.visit(node.func), [], [])
        for argument in node.args:
            found.args += self._items(argument.value) if isinstance(argument, ast.Starred) else [self.visit(argument)]
        for keyword in node.keywords:
            found.keywords += (
                self.applied.new() if keyword.arg is None else [ast.keyword(keyword.arg, self.visit(keyword.value))]
            )
        return found

    def _items(self, node: Code) -> list[Code]:
        """The items of a list that is written out; another list as one argument."""
        code = self.visit(node)
        return list(code.elts) if isinstance(code, ast.Tuple | ast.List) and code.elts else [code]


def function_of(op: Op) -> Code | None:
    """The function of PyTorch that an operation is, if there is one."""
    same = op.torch is not None and op.torch.form == f"torch.{op.name}(x)"
    return py(f"torch.{op.name}") if same else None
