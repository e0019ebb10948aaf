"""The device and the element types of new tensors."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from archspec.codegen.python.trees import apply, literal, method, name, py, sequence
from archspec.codegen.scope.attribute_paths import AttributePaths
from archspec.codegen.scope.operations import add_device
from archspec.codegen.scope.scope import Scope
from archspec.codegen.scope.values import FREE, INT, REAL, CodeValue
from archspec.ir.module import Module, ModuleTensor


class ForwardTypes:
    """Tensor types in `forward` and in functions: taken from the arguments or the module's own tensors.

    `needs` are "dtype" and "device" where a definition has to be told, as nothing it is given or owns says so, and
    "training" where a function does.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.needs: set[str] = set()

    def device(self) -> ast.expr | None:
        """The device of new tensors; None for PyTorch's choice."""
        return self._attribute("device", [input.value for input in self.scope.given_tensors()])

    def model_type(self) -> ast.expr:
        """The type of the reals that weights and inputs are: the model's."""
        found = self._attribute("dtype", self._reals())
        return found if found is not None else py("torch.get_default_dtype()")

    def free_type(self) -> ast.expr:
        """The type of real values computed only from integers and constants: float32 or wider."""
        dtype = self.model_type()
        if isinstance(dtype, ast.Name):
            return dtype  # whoever gives it has seen to that
        return py("torch.promote_types(dtype, torch.float32)", dtype=dtype)

    def training(self) -> ast.expr:
        """Whether the module is being trained."""
        if not self.scope.is_function:
            return py("self.training")
        self.needs.add("training")
        return name("training")

    def _reals(self) -> list[CodeValue]:
        return [input.value for input in self.scope.given_tensors() if input.value.kind == REAL]

    def _attribute(self, attribute: str, inputs: Sequence[CodeValue]) -> ast.expr | None:
        if inputs:
            return method(inputs[0].code, attribute)
        weight = any_weight(self.scope)
        if weight is not None:
            return method(weight, attribute)
        if self.scope.definition is self.scope.trace.root:
            return None
        self.needs.add(attribute)
        return name(attribute)


class InitTypes:
    """In `__init__`: tables are computed in float64, and parameters have the default type."""

    def device(self) -> ast.expr | None:
        return None

    def model_type(self) -> ast.expr:
        return py("torch.get_default_dtype()")

    def free_type(self) -> ast.expr:
        return py("torch.float64")

    def training(self) -> ast.expr:
        return literal(False)


TensorTypes = ForwardTypes | InitTypes


def number_tensor(number: CodeValue, types: TensorTypes) -> CodeValue:
    """A number as a tensor without axes."""
    kind = FREE if number.counts == REAL else number.counts
    dtype = types.free_type() if kind == FREE else py("torch.int64" if kind == INT else "torch.bool")
    made = apply(py("torch.full"), [sequence([]), number.code], {"dtype": dtype})
    return number._replace(
        code=add_device(made, types.device()), kind=kind, rank=0, name=None, op="", args=(), origin=None
    )


def as_type(value: CodeValue, dtype: ast.expr, kind: str) -> CodeValue:
    """A tensor in another type."""
    template = "x.to(dtype) if x is not None else None" if value.optional else "x.to(dtype)"
    return value._replace(code=py(template, x=value.code, dtype=dtype), kind=kind)


def as_type_of(value: CodeValue, other: CodeValue, types: TensorTypes) -> CodeValue:
    """A tensor in the model's type, which another one has."""
    is_simple = other.name is not None or other.op == "weight"
    dtype = method(other.code, "dtype") if is_simple else types.model_type()
    return as_type(value, dtype, REAL)


def has_model_type(scope: Scope) -> bool:
    """Whether inputs or weights tell the type of the reals."""
    return any(input.value.kind == REAL for input in scope.given_tensors()) or any_weight(scope) is not None


def any_weight(scope: Scope) -> ast.expr | None:
    """The first stored tensor of reals that is always there."""
    return None if scope.is_function else _weight_in(scope, scope.places, name("self"))


def _weight_in(scope: Scope, places: AttributePaths, root: ast.expr) -> ast.expr | None:
    for words in places.always:
        targets, code = places.found(words), places.place(words, root).code
        if any(isinstance(t, ModuleTensor) and t.type.dtype == "real" for t in targets):
            return code
        definitions = {scope.trace.definitions[t] for t in targets if isinstance(t, Module)}
        inner = _weight_in(scope, scope.context.places(definitions.pop()), code) if len(definitions) == 1 else None
        if inner is not None:
            return inner
    return None
