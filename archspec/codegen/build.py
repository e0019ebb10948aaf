"""Generation of PyTorch source files, and the comparison of their tensors with the spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any, Protocol

from archspec.codegen.file import file_text
from archspec.codegen.specialization import translate
from archspec.codegen.stand_in import recording
from archspec.core.diagnostics import internal_error, make_error
from archspec.ir.module import LocatedTensor, canonical_name, find_member
from archspec.pipeline.model import Model, get_compilation


class TensorOwner(Protocol):
    """What a module of PyTorch and one of the stand-in have in common."""

    def state_dict(self, *, keep_vars: bool) -> Mapping[str, Any]:
        """Return all stored tensors by name."""
        ...

    def named_parameters(self, *, remove_duplicate: bool) -> Iterable[tuple[str, Any]]:
        """Return the parameters with their names."""
        ...


def torch_source(model: Model) -> str:
    """Generate a Python file that depends only on torch; its function `build()` returns the module.

    The tensors that it makes were compared with those of the spec, for which torch need not be installed.

    Raises ArchError: `untranslatable`, with the place in the spec, where something has no form in PyTorch or cannot be
    compared; `internal` where a tensor differs.
    """
    compilation = get_compilation(model)
    compilation.require_computation()
    values, total = compilation.values, model.params.total
    root, text = translate(
        compilation, lambda trace: (trace.root, file_text(trace, model.name, model.doc, values, total))
    )
    try:
        module = recording.record(text)
    except Exception as problem:  # of any class, as it comes from running the file
        message = f"the PyTorch file cannot be compared with the spec: {problem.__class__.__name__}: {problem}"
        raise make_error("untranslatable", message, root.unit.span(root.node.name)) from problem
    check_tensors(module, recording.torch, model)
    return text


def check_tensors(module: TensorOwner, torch: ModuleType | SimpleNamespace, model: Model) -> None:
    """Raise ArchError (`internal`) unless the tensors of a module are those of the model. `torch` is its library."""
    difference = _difference(module, torch, model)
    if difference is not None:
        raise internal_error(f"the PyTorch module of {model.name} differs from the spec: {difference}")


def _difference(module: TensorOwner, torch: ModuleType | SimpleNamespace, model: Model) -> str | None:
    """Describe the first tensor whose name, shape, kind, element type, training or tie differs from the model's."""
    owner = get_compilation(model).body.module
    assert owner is not None
    stored = module.state_dict(keep_vars=True)
    parameters = dict(module.named_parameters(remove_duplicate=False))
    trainable = {tensor.name: tensor.trainable for tensor in model.tensors}
    shapes = {t.name: t.shape for t in (*model.tensors, *model.buffers)}
    dtypes = {"real": torch.get_default_dtype(), "int": torch.int64, "bool": torch.bool}
    names = {id(stored.get(canonical_name(owner, name))): canonical_name(owner, name) for name in shapes}
    for name in [*shapes, *stored]:
        if name not in stored or name not in shapes:
            return f"`{name}` is {'surplus' if name in stored else 'missing'}"
        tensor, leaf = stored[name], find_member(owner, name)
        assert isinstance(leaf, LocatedTensor)
        if tuple(tensor.shape) != shapes[name]:
            return f"`{name}` has shape {list(tensor.shape)}, expected {list(shapes[name])}"
        if (name in parameters) != (name in trainable):
            return f"`{name}` is a {'parameter' if name in parameters else 'buffer'}"
        if tensor.dtype != dtypes[leaf.weight.type.dtype]:
            return f"`{name}` is of type {tensor.dtype}, expected {leaf.weight.type.dtype}"
        if name in trainable and tensor.requires_grad != trainable[name]:
            return f"`{name}` is {'trainable' if tensor.requires_grad else 'frozen'}"
        if names.get(id(tensor)) != canonical_name(owner, name):
            return f"`{name}` is not tied as specified"
    return None
