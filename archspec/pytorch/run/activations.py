"""The memory of activations: what PyTorch keeps of a forward pass for the backward pass."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast
from warnings import catch_warnings, simplefilter

from archspec.core.algebra import (
    Polynomial,
    multiply_unexpanded,
    split_multiple,
    substitute,
    symbol,
    symbols,
    weighted_sum,
)
from archspec.core.diagnostics import ArchError, make_error
from archspec.core.optional import import_torch
from archspec.ir.module import Type
from archspec.ir.work import Quantity
from archspec.pipeline.model import Model
from archspec.pytorch.run.to_torch import to_torch

if TYPE_CHECKING:
    import torch
    from torch import SymInt, Tensor, nn
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    Size: TypeAlias = int | SymInt
    """A size of a tensor."""


class SavedActivations(NamedTuple):
    """Bytes; a formula holds where the dimensions in it are at least so large."""

    bytes: Quantity
    least: dict[str, int]


def activation_bytes(model: Model, sizes: Mapping[str, int], dtype: str, attention: str) -> SavedActivations:
    """Bytes that the tensors kept for training take after a forward pass of the generated module on a CPU.

    Each storage counts once; parameters do not count, nor does what is computed from weights alone. `sizes` has values
    for dimensions; what depends on others is a formula. `dtype` is that of the weights, `attention` "flash" or "math";
    every optional input is given. The module is run with PyTorch's fake tensors, which have shapes and storages and no
    contents, so that it takes neither time nor memory; sizes left open are PyTorch's own symbols.

    Raises ArchError: `missing-package` without PyTorch, `untranslatable` where the model has no form in it, `bad-size`
    where the form of attention cannot run, `no-formula` where what is kept is no polynomial in the open sizes.
    """
    import_torch()
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode  # the public name of none
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    shapes = [type.shape for type in model.inputs.values()]
    left = sorted({name for shape in shapes for size in shape for name in symbols(size)} - sizes.keys())
    environment = ShapeEnv()
    mode = FakeTensorMode(shape_env=environment if left else None)
    if not left:
        return SavedActivations(int(_saved_bytes(mode, model, sizes, dtype, attention)), {})
    # An open size must be some number too. What is decided by that number is noted, as a guard.
    numbers = torch.empty([32 * (2 + i) for i in range(len(left))], device="meta")
    stand_ins = mode.from_tensor(numbers).shape
    found = _saved_bytes(mode, model, {**sizes, **dict(zip(left, stand_ins, strict=True))}, dtype, attention)
    unknowns = [_expression(size) for size in stand_ins]
    polynomial = None if isinstance(found, int) else _expression(found).as_poly(*unknowns)
    if polynomial is None or not _is_known(environment, polynomial):
        raise _no_formula(model, left)
    terms = [
        (multiply_unexpanded(map(symbol, _repeated(left, powers))), int(times)) for powers, times in polynomial.terms()
    ]
    ranges = environment.var_to_range
    return SavedActivations(
        weighted_sum(terms), {name: int(ranges[x].lower) for name, x in zip(left, unknowns, strict=True)}
    )


def _expression(size: Size) -> Any:
    """The expression of sympy that PyTorch has for a symbolic size."""
    node: Any = cast("SymInt", size).node
    return node.expr


def _is_known(environment: ShapeEnv, polynomial: Any) -> bool:
    """Whether a polynomial of bytes is one, and holds for all sizes from certain ones on."""
    whole = all(coefficient.is_Integer for coefficient in polynomial.coeffs())
    guards: list[Any] = [guard.expr for guard in environment.guards]
    bounded = all(g.is_Relational and g.rel_op in (">", ">=") and g.lhs.is_Symbol and g.rhs.is_Integer for g in guards)
    return whole and bounded and not environment.deferred_runtime_asserts


def _repeated(names: Sequence[str], powers: Sequence[int]) -> list[str]:
    return [name for name, power in zip(names, powers, strict=True) for _ in range(power)]


def _saved_bytes(mode: FakeTensorMode, model: Model, sizes: Mapping[str, Size], dtype: str, attention: str) -> Size:
    """The bytes that hooks on saved tensors see, an integer or one of PyTorch's symbolic integers."""
    import torch
    from torch.nn import Parameter
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backend = {"flash": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}[attention]
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage: Any = tensor.untyped_storage()
        kept[storage._cdata] = storage  # held, so that no other one gets its number
        return tensor

    def give(tensor: Tensor) -> Tensor:
        return tensor

    # On the meta device, where starting out weights looks at none.
    with torch.device("meta"), _default_type(getattr(torch, dtype)):
        module = to_torch(model).eval()  # without the masks of dropout
    # What is kept does not depend on how vectors are distributed over experts, and fake tensors do not say how.
    names: dict[str, object] = module.forward.__globals__
    if "group_sizes" in names:
        names["group_sizes"] = _route_to_one_expert
    with mode:
        parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
        owned = {n: Parameter(torch.empty(p.shape, dtype=p.dtype), p.requires_grad) for n, p in parameters.items()}
        stored = owned | {n: torch.empty(b.shape, dtype=b.dtype) for n, b in buffers.items()}
        words = signature(module.forward).parameters  # the inputs, some under names that Python allows
        inputs = {w: _empty(model, t, sizes, dtype) for w, t in zip(words, model.inputs.values(), strict=True)}
        weights = weight_tracer(owned.values(), stored.values())
        try:
            with weights, sdpa_kernel(backend), torch.autograd.graph.saved_tensors_hooks(keep, give), catch_warnings():
                simplefilter("ignore")  # a kernel that cannot be used says so in a warning first
                outputs = _replace_tensors(module, stored)(**inputs)
        except RuntimeError as problem:
            message = f"{model.name} cannot run with {attention} attention: {problem}"
            help = "PyTorch's fused kernel does not take a bias that is trained, for one; `--attention math` takes all"
            raise make_error("bad-size", message, help=help if attention == "flash" else None) from None
        for key in weights.excluded:
            kept.pop(key, None)
        found = sum(storage.nbytes() for storage in kept.values())
    del outputs
    return found


def weight_tracer(parameters: Iterable[Tensor], weights: Iterable[Tensor]) -> Any:
    """A mode whose `excluded` are the storages of parameters, and of all that is computed from weights alone."""
    from torch import Tensor
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    def storages(values: object) -> dict[int, Any]:
        tensors = [value for value in tree_leaves(values) if isinstance(value, Tensor)]
        return {storage._cdata: storage for storage in [cast("Any", tensor.untyped_storage()) for tensor in tensors]}

    known = storages([*weights])  # held, so that no other one gets its number

    class WeightTracer(TorchDispatchMode):
        excluded = storages([*parameters])

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            results = func(*args, **(kwargs or {}))
            operands = storages((args, kwargs))
            if operands and operands.keys() <= known.keys():
                new = {key: storage for key, storage in storages(results).items() if key not in known}
                self.excluded.update(new)
                known.update(new)
            return results

    return WeightTracer()


def _route_to_one_expert(experts: Tensor, count: int) -> list[int]:
    """All vectors given to one of `count` experts."""
    return [experts.numel(), *[0] * (count - 1)]


def _no_formula(model: Model, left: Sequence[str]) -> ArchError:
    message = f"no formula in {', '.join(left)} was found for the memory of activations of {model.name}"
    return make_error("no-formula", message, help=f"add {' '.join(f'--dim {name}=N' for name in left)}")


@contextmanager
def _default_type(dtype: torch.dtype) -> Generator[None]:
    """Modules are made with weights of this type."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _empty(model: Model, type: Type, sizes: Mapping[str, Size], dtype: str) -> Tensor:
    import torch

    shape: list[Size] = []
    for size in type.shape:
        known = {name: given for name in symbols(size) if isinstance(given := sizes[name], int)}
        rest = substitute(size, known) if isinstance(size, Polynomial) else size
        multiple = split_multiple(rest)
        if multiple is not None:
            shape.append(multiple[0] * sizes[multiple[1]])
        elif isinstance(rest, int):
            shape.append(rest)
        else:
            raise _no_formula(model, sorted(symbols(rest)))
    element = {"real": getattr(torch, dtype), "int": torch.int64, "bool": torch.bool}[type.dtype]
    return torch.empty(shape, dtype=element)


def _replace_tensors(module: Any, stored: Mapping[str, Tensor]) -> nn.Module:
    """A module with other tensors in the place of its own, whatever their addresses are called."""
    by_own = {id(own): stored[name] for name, own in (*module.named_parameters(), *module.named_buffers())}
    for part in module.modules():
        for tensors in (part._parameters, part._buffers):
            for name, own in tensors.items():
                tensors[name] = by_own.get(id(own))  # none where there is none
    return module
