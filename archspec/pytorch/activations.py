"""The memory of activations: what PyTorch keeps of a forward pass for the backward pass."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from inspect import signature
from typing import Any
from warnings import catch_warnings, simplefilter

from archspec.dims import Symbolic, substitute
from archspec.ir import Type
from archspec.model import Model
from archspec.pytorch.build import to_torch, torch_or_fail
from archspec.source import fail


def activation_bytes(model: Model, sizes: Mapping[str, int], dtype: str, attention: str) -> int:
    """Bytes that the tensors kept for training take after a forward pass of the generated module on a CPU.

    Each storage counts once, and parameters do not. `sizes` has a value for every dimension, `dtype` is that of the
    weights, `attention` "flash" or "math"; every optional input is given. The module is run with PyTorch's fake
    tensors, which have shapes and storages and no contents, so that it takes neither time nor memory.

    Raises ArchError: `missing-package` without PyTorch, `untranslatable` where the model has no form in it, `bad-size`
    where the form of attention cannot run.
    """
    torch = torch_or_fail()
    from torch._subclasses.fake_tensor import FakeTensorMode  # the public name of none
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backend = {"flash": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}[attention]
    kept: dict[int, Any] = {}

    def keep(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        kept[storage._cdata] = storage  # held, so that no other one gets its number
        return tensor

    def give(tensor: Any) -> Any:
        return tensor

    # On the meta device, where starting out weights looks at none.
    with torch.device("meta"), _default_type(torch, getattr(torch, dtype)):
        module: Any = to_torch(model)
    with FakeTensorMode():
        parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
        owned = {n: torch.empty(p.shape, dtype=p.dtype, requires_grad=p.requires_grad) for n, p in parameters.items()}
        stored = owned | {n: torch.empty(b.shape, dtype=b.dtype) for n, b in buffers.items()}
        words = signature(module.forward).parameters  # the inputs, some under names that Python allows
        inputs = {w: _empty(torch, t, sizes, dtype) for w, t in zip(words, model.inputs.values(), strict=True)}
        try:
            with sdpa_kernel(backend), torch.autograd.graph.saved_tensors_hooks(keep, give), catch_warnings():
                simplefilter("ignore")  # a kernel that cannot be used says so in a warning first
                outputs: Any = _holding(module, stored)(**inputs)
        except RuntimeError as problem:
            message = f"{model.name} cannot run with {attention} attention: {problem}"
            help = "PyTorch's fused kernel does not take a bias that is trained, for one; `--attention math` takes all"
            raise fail("bad-size", message, help=help if attention == "flash" else None) from None
        for parameter in owned.values():
            kept.pop(parameter.untyped_storage()._cdata, None)
        total = sum(storage.nbytes() for storage in kept.values())
    del outputs
    return total


@contextmanager
def _default_type(torch: Any, dtype: Any) -> Generator[None]:
    """Modules are made with weights of this type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _empty(torch: Any, type: Type, sizes: Mapping[str, int], dtype: str) -> Any:
    shape = [substitute(size, sizes) if isinstance(size, Symbolic) else size for size in type.shape]
    element = {"real": getattr(torch, dtype), "int": torch.int64, "bool": torch.bool}[type.dtype]
    return torch.empty(shape, dtype=element)


def _holding(module: Any, stored: Mapping[str, Any]) -> Any:
    """A module with other tensors in the place of its own, whatever their addresses are called."""
    by_own = {id(own): stored[name] for name, own in (*module.named_parameters(), *module.named_buffers())}
    for part in module.modules():
        for tensors in (part._parameters, part._buffers):
            for name, own in tensors.items():
                tensors[name] = by_own.get(id(own))  # none where there is none
    return module
