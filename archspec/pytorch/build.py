"""Generation of PyTorch modules and of their source files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archspec.ir import canonical
from archspec.model import Model
from archspec.pytorch.file import file_text
from archspec.source import fail

if TYPE_CHECKING:
    from torch import nn


def torch_source(model: Model) -> str:
    """Generate a Python file that depends only on torch; its function `build()` returns the module.

    Raises ArchError (`untranslatable`) with the location in the spec of anything that PyTorch cannot express.
    """
    return file_text(model.trace(), model.name, model.doc, model.values, model.params.total)


def to_torch(model: Model) -> nn.Module:
    """Create a `torch.nn.Module` of the model, with weights initialized as specified in the spec.

    The keys of its `state_dict()` are the names of `model.tensors` and `model.buffers`. It takes `model.inputs`; if the
    spec names the outputs, it returns a named tuple.

    Raises ArchError: `missing-package` without PyTorch, `untranslatable` for anything that PyTorch cannot express.
    """
    torch_or_fail()
    text = torch_source(model)
    namespace: dict[str, Any] = {"__name__": f"archspec.built.{model.name}"}
    exec(compile(text, f"<{model.name} in PyTorch>", "exec"), namespace)
    module: nn.Module = namespace["build"]()
    _check(module, model)
    return module


def torch_or_fail() -> Any:
    """Return the module `torch`. Raises ArchError (`missing-package`) if it is not installed."""
    try:
        import torch
    except ImportError:
        help = "run `pip install 'archspec-dsl[torch]'`"
        raise fail("missing-package", "PyTorch is required but not installed", help=help) from None
    return torch


def _check(module: nn.Module, model: Model) -> None:
    """Raise ArchError (`internal`) unless the tensors of the module are those of the model."""
    owner = model.body.module
    assert owner is not None
    stored = module.state_dict(keep_vars=True)
    trained = {tensor.name: tensor.trainable for tensor in model.tensors}
    shapes = {t.name: t.shape for t in (*model.tensors, *model.buffers)}
    counted = {name: stored.get(canonical(owner, name)) for name in shapes}
    if (
        {name: tuple(tensor.shape) for name, tensor in stored.items()} != shapes
        or any(counted[name] is not tensor for name, tensor in stored.items())
        or {name: p.requires_grad for name, p in module.named_parameters(remove_duplicate=False)} != trained
        or len({id(tensor) for tensor in stored.values()}) != len({canonical(owner, name) for name in shapes})
    ):
        problem = f"the tensors of the PyTorch module of {model.name} differ from the spec"
        message = f"{problem}; this is a bug in archspec; please report it"
        raise fail("internal", message)
