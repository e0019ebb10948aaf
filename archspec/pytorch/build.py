"""A model as a PyTorch module, and as the text of the file that makes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archspec.ir import Leaf, canonical, find
from archspec.model import Model
from archspec.pytorch import recording
from archspec.pytorch.file import file_text
from archspec.source import fail

if TYPE_CHECKING:
    from torch import nn


def torch_source(model: Model) -> str:
    """The text of a Python file that needs only torch; its `build()` makes the module.

    The tensors that it makes were compared with those of the spec, for which torch need not be installed.

    Raises ArchError: `untranslatable`, with the place in the spec, where something has no form in PyTorch or cannot be
    compared; `internal` where a tensor differs.
    """
    trace = model.trace()
    text = file_text(trace, model.name, model.doc, model.values, model.params.total)
    try:
        module = recording.record(text)
    except Exception as problem:  # of any class, as it comes from running the file
        message = f"the PyTorch file cannot be compared with the spec: {problem.__class__.__name__}: {problem}"
        raise fail("untranslatable", message, trace.root.unit.span(trace.root.node.name)) from problem
    _check(module, recording.torch, model)
    return text


def to_torch(model: Model) -> nn.Module:
    """A new `torch.nn.Module` of the model, its weights started out as the spec says.

    The names in its `state_dict()` are those of `model.tensors` and `model.buffers`. Its inputs are `model.inputs`; the
    outputs come in a named tuple where the spec names them.

    Raises ArchError: `missing-package` without PyTorch, `untranslatable` where something has no form in it.
    """
    torch = torch_or_fail()
    text = torch_source(model)
    namespace: dict[str, Any] = {"__name__": f"archspec.built.{model.name}"}
    exec(compile(text, f"<{model.name} in PyTorch>", "exec"), namespace)
    module: nn.Module = namespace["build"]()
    _check(module, torch, model)
    return module


def torch_or_fail() -> Any:
    """PyTorch. Raises ArchError (`missing-package`) where it is not installed."""
    try:
        import torch
    except ImportError:
        help = "pip install 'archspec-dsl[torch]'"
        raise fail("missing-package", "this needs PyTorch, which is not installed", help=help) from None
    return torch


def _check(module: Any, torch: Any, model: Model) -> None:
    """Raises ArchError (`internal`) if the tensors of a module are not the model's. `torch` is its library."""
    difference = _difference(module, torch, model)
    if difference is not None:
        help = "this is a bug in archspec; please report it, with the spec"
        raise fail("internal", f"the PyTorch module of {model.name} differs from the spec: {difference}", help=help)


def _difference(module: Any, torch: Any, model: Model) -> str | None:
    """The first tensor whose name, shape, kind, element type, training or tie is not the model's."""
    owner = model.body.module
    assert owner is not None
    stored = module.state_dict(keep_vars=True)
    parameters = dict(module.named_parameters(remove_duplicate=False))
    trainable = {tensor.name: tensor.trainable for tensor in model.tensors}
    shapes = {t.name: t.shape for t in (*model.tensors, *model.buffers)}
    dtypes = {"real": torch.get_default_dtype(), "int": torch.int64, "bool": torch.bool}
    names = {id(stored.get(canonical(owner, name))): canonical(owner, name) for name in shapes}
    for name in [*shapes, *stored]:
        if name not in stored or name not in shapes:
            return f"`{name}` is {'surplus' if name in stored else 'missing'}"
        tensor, leaf = stored[name], find(owner, name)
        assert isinstance(leaf, Leaf)
        if tuple(tensor.shape) != shapes[name]:
            return f"`{name}` has shape {list(tensor.shape)}, expected {list(shapes[name])}"
        if (name in parameters) != (name in trainable):
            return f"`{name}` is a {'parameter' if name in parameters else 'buffer'}"
        if tensor.dtype != dtypes[leaf.weight.type.dtype]:
            return f"`{name}` is of type {tensor.dtype}, expected {leaf.weight.type.dtype}"
        if name in trainable and tensor.requires_grad != trainable[name]:
            return f"`{name}` is {'trainable' if tensor.requires_grad else 'frozen'}"
        if names.get(id(tensor)) != canonical(owner, name):
            return f"`{name}` is not tied as specified"
    return None
