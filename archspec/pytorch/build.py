"""A model as a PyTorch module, and as the text of the file that makes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archspec.model import Model
from archspec.pytorch.file import file_text
from archspec.source import fail

if TYPE_CHECKING:
    from torch import nn


def torch_source(model: Model) -> str:
    """The text of a Python file that needs only torch; its `build()` makes the module.

    Raises ArchError (`untranslatable`), with the place in the spec, where something has no form in PyTorch.
    """
    return file_text(model.trace(), model.name, model.doc, model.values, model.params.total)


def to_torch(model: Model) -> nn.Module:
    """A new `torch.nn.Module` of the model, its weights started out as the spec says.

    The names in its `state_dict()` are those of `model.tensors` and `model.buffers`. Its inputs are `model.inputs`; the
    outputs come in a named tuple where the spec names them.

    Raises ArchError: `missing-package` without PyTorch, `untranslatable` where something has no form in it.
    """
    torch_or_fail()
    text = torch_source(model)
    namespace: dict[str, Any] = {"__name__": f"archspec.built.{model.name}"}
    exec(compile(text, f"<{model.name} in PyTorch>", "exec"), namespace)
    module: nn.Module = namespace["build"]()
    _check(module, model)
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
    expected = {t.name: (t.shape, t.trainable, t.tied_to or t.name) for t in model.tensors}
    first: dict[int, str] = {}
    found: dict[str, tuple[tuple[int, ...], bool, str]] = {}
    named = dict(module.named_parameters(remove_duplicate=False))
    for name in (t.name for t in model.tensors if t.name in named):
        tensor = named[name]
        counted = first.setdefault(id(tensor), expected[name][2] if expected[name][2] in named else name)
        found[name] = (tuple(tensor.shape), tensor.requires_grad, counted)
    buffers = {name: tuple(b.shape) for name, b in module.named_buffers()}
    if found != expected or len(named) != len(found) or buffers != {b.name: b.shape for b in model.buffers}:
        raise fail(
            "internal", f"the PyTorch module of {model.name} has other tensors than the spec; please report this"
        )
