"""A model as a PyTorch module, and as the text of the file that makes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archspec.ir import canonical
from archspec.model import Model, ModelLike, internals
from archspec.pipeline import model_of
from archspec.pytorch.file import file_text
from archspec.source import fail

if TYPE_CHECKING:
    from torch import nn


def torch_source(model: Model) -> str:
    """The text of a Python file that needs only torch; its `build()` makes the module.

    Raises ArchError (`untranslatable`), with the place in the spec, where something has no form in PyTorch.
    """
    compilation = internals(model)
    return file_text(compilation.trace(), model.name, model.doc, compilation.values, model.params.total)


def to_torch(model: ModelLike, /, **overrides: Any) -> nn.Module:
    """A new `torch.nn.Module` of a model, with its weights initialized as the spec declares.

    `model` is a Model, or what `archspec.load` takes, with its `overrides`. The names in the module's `state_dict()`
    are those of the model's `tensors` and `buffers`, its inputs are the model's `inputs`, and its outputs are a named
    tuple if the spec names them.

    Raises ArchError: `missing-package` without PyTorch, `untranslatable` for an operation that has no form in it, and
    everything that `archspec.load` does.
    """
    torch_or_fail()
    compiled = model_of(model, overrides)
    text = torch_source(compiled)
    namespace: dict[str, Any] = {"__name__": f"archspec.built.{compiled.name}"}
    exec(compile(text, f"<{compiled.name} in PyTorch>", "exec"), namespace)
    module: nn.Module = namespace["build"]()
    _check(module, compiled)
    return module


def torch_or_fail() -> Any:
    """PyTorch. Raises ArchError (`missing-package`) where it is not installed."""
    try:
        import torch
    except ImportError:
        help = "pip install 'archspec-dsl[torch]'"
        raise fail("missing-package", "this needs PyTorch, which is not installed", help=help) from None
    return torch


def _check(module: nn.Module, model: Model) -> None:
    """Refuses a module whose tensors are not the model's."""
    owner = internals(model).body.module
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
        message = f"the PyTorch module of {model.name} has other tensors than the spec; please report this"
        raise fail("internal", message)
