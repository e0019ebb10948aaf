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

    with FakeTensorMode(), _default_type(torch, getattr(torch, dtype)):
        module: Any = _on_cpu(torch, model)
        inputs = {name: _empty(torch, type, sizes, dtype) for name, type in model.inputs.items()}
        try:
            with sdpa_kernel(backend), torch.autograd.graph.saved_tensors_hooks(keep, give), catch_warnings():
                simplefilter("ignore")  # what keeps a kernel from being used is warned of first
                outputs: Any = module(**dict(zip(signature(module.forward).parameters, inputs.values(), strict=True)))
        except RuntimeError as problem:
            message = f"{model.name} cannot run with {attention} attention: {problem}"
            help = "PyTorch's fused kernel does not take a bias that is trained, for one; `--attention math` takes all"
            raise fail("bad-size", message, help=help if attention == "flash" else None) from None
        owned = {parameter.untyped_storage()._cdata for parameter in module.parameters()}
        total = sum(storage.nbytes() for number, storage in kept.items() if number not in owned)
    del outputs
    return total


def _on_cpu(torch: Any, model: Model) -> Any:
    """The module with fake weights. It is made on the meta device, where starting them out looks at none of them."""
    with torch.device("meta"):
        module: Any = to_torch(model)
    made: dict[int, Any] = {}
    for part in module.modules():
        for stored in (part._parameters, part._buffers):
            for name, tensor in stored.items():
                if tensor is not None and id(tensor) not in made:
                    grad = tensor.requires_grad
                    made[id(tensor)] = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", requires_grad=grad)
                stored[name] = made.get(id(tensor))
    return module


@contextmanager
def _default_type(torch: Any, dtype: Any) -> Generator[None]:
    """Modules are made with weights of this type. (Fake ones cannot be converted.)"""
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
