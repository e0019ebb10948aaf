"""Definitions that compute what a function or module of PyTorch does, known by what they compute and not by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from archspec.compiler.elaborate.trace import DefinitionUse
from archspec.ir.module import Module, ModuleTensor, Type
from archspec.ir.structure.terms import Term, X, operation_term, term_of

_CUBIC = operation_term("add", X, operation_term("mul", 0.044715, operation_term("pow", X, 3.0)))
_ERF = operation_term("erf", operation_term("div", X, math.sqrt(2.0)))
_TANH = operation_term("tanh", operation_term("mul", math.sqrt(2 / math.pi), _CUBIC))

FUNCTIONS: dict[object, str] = {
    operation_term("mul", 0.5, X, operation_term("add", 1.0, _ERF)): "F.gelu(x)",
    operation_term("mul", 0.5, X, operation_term("add", 1.0, _TANH)): "F.gelu(x, approximate='tanh')",
    operation_term("max", X, 0.0): "F.relu(x)",
    operation_term("mul", X, operation_term("sigmoid", X)): "F.silu(x)",
}
"""Functions of one tensor."""


def function_form(uses: Sequence[DefinitionUse]) -> str | None:
    """The template of the PyTorch function that a function is in all its uses."""
    found = {FUNCTIONS.get(term_of(use.body)) if len(use.arguments) == 1 else None for use in uses}
    return found.pop() if len(found) == 1 else None


class LayerForm(NamedTuple):
    """A module of `torch.nn`: its name; the operation whose hyperparameters it takes over, if there is one."""

    name: str
    op: str | None


def layer_form(uses: Sequence[DefinitionUse]) -> LayerForm | None:
    """The `torch.nn` module that a layer is in all its uses."""
    found = {_form_of(use) for use in uses}
    return found.pop() if len(found) == 1 else None


def _form_of(use: DefinitionUse) -> LayerForm | None:
    module = use.module
    if module is None or len(use.arguments) != 1:
        return None
    if is_batch_norm(use):
        given = use.arguments[0]
        assert isinstance(given, Type)
        axes = max(len(given.shape) - 2, 1)
        return LayerForm(f"nn.BatchNorm{axes}d", None) if axes <= 3 else None
    if not set(module.members) <= {"weight", "bias"}:
        return None
    shapes = {name: _shape(module, name) for name in ("weight", "bias")}
    weight, bias = shapes["weight"], shapes["bias"]
    term = term_of(use.body)
    if weight is None:
        return None
    tensors = [X, Term("weight", ("weight",))]
    with_bias = (*tensors, Term("weight", ("bias",)) if bias is not None else None)
    match term:
        case Term("linear", _, parts) if parts == with_bias:
            return LayerForm("nn.Linear", None)
        case Term("embedding", _, parts) if parts == tuple(tensors) and len(weight) == 2:
            return LayerForm("nn.Embedding", None)
        case Term("layer_norm", _, parts) if parts == with_bias and len(weight) == 1:
            return LayerForm("nn.LayerNorm", "layer_norm")
        case Term("group_norm", _, parts) if parts == with_bias and bias is not None:
            return LayerForm("nn.GroupNorm", "group_norm")
        case Term("conv", settings, parts) if parts == with_bias:
            name = "nn.ConvTranspose" if ("transposed", True) in settings else "nn.Conv"
            return LayerForm(f"{name}{len(weight) - 2}d", "conv") if 3 <= len(weight) <= 5 else None
        case Term("mul") if bias is None and rms_eps(use) is not None:
            return LayerForm("nn.RMSNorm", None)
        case _:
            return None


def rms_eps(use: DefinitionUse) -> float | None:
    """The eps of x / sqrt(mean of squares + eps) * weight, in the type of x or in float32; None if a layer is not that.

    The module of PyTorch computes the norm in float32, too.
    """
    shape = _shape(use.module, "weight") if use.module is not None else None
    match term_of(use.body):
        case Term("mul", _, (Term("div", _, (x, Term("sqrt", _, (Term("add", _, (float() as eps, mean)),)))), weight)):
            pass
        case _:
            return None
    if (
        shape is None
        or len(shape) != 1
        or x not in (X, operation_term("float32", X))
        or weight != Term("weight", ("weight",))
    ):
        return None
    squares = Term("sum", (("axis", -1.0), ("keep", True)), (operation_term("mul", x, x),))
    return eps if mean == operation_term("div", squares, float(shape[0])) else None


_STATISTICS = ("running_mean", "running_var")


def is_batch_norm(use: DefinitionUse) -> bool:
    """Whether a layer normalizes with running statistics, and stores the tensors of a batch norm in PyTorch."""
    members = use.module.members if use.module is not None else {}
    stored = {name: member.target for name, member in members.items() if isinstance(member.target, ModuleTensor)}
    count = stored.pop("num_batches_tracked", None)
    if count is None or (count.kind, count.shape, count.type.dtype) != ("buffer", (), "int"):
        return False
    kinds = {"weight": "param", "bias": "param"} | dict.fromkeys(_STATISTICS, "buffer")
    is_stored = len(members) == 5 and {n: tensor.kind for n, tensor in stored.items() if tensor.value is None} == kinds
    return is_stored and len({t.shape for t in stored.values()}) == 1 and batch_norm_eps(use) is not None


def batch_norm_eps(use: DefinitionUse) -> float | None:
    """The eps of (x - mean) / sqrt(variance + eps) * weight + bias along axis 1; None if a layer is not that."""
    weight, bias, mean, variance = (Term("weight", (name,)) for name in ("weight", "bias", *_STATISTICS))
    term = term_of(use.body)
    eps = _added_number(variance, term)
    if eps is None:
        return None
    turned = (("a", 1.0), ("b", -1.0))
    centred = operation_term("sub", Term("transpose", turned, (X,)), mean)
    scaled = operation_term(
        "mul", operation_term("div", centred, operation_term("sqrt", operation_term("add", eps, variance))), weight
    )
    return eps if term == Term("transpose", turned, (operation_term("add", scaled, bias),)) else None


def _added_number(part: Term, term: object) -> float | None:
    """The number that is added to a part somewhere in a term."""
    if not isinstance(term, Term):
        return None
    numbers = [other for other in term.parts if isinstance(other, float)]
    if term.op == "add" and part in term.parts and numbers:
        return numbers[0]
    return next((found for inner in term.parts if (found := _added_number(part, inner)) is not None), None)


def _shape(module: Module, name: str) -> tuple[int, ...] | None:
    member = module.members.get(name)
    if member is None or not isinstance(member.target, ModuleTensor):
        return None
    weight = member.target
    return weight.shape if weight.kind == "param" and weight.type.dtype == "real" else None
