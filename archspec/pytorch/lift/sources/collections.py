"""Models of collections that are installed: `timm:NAME` and `torchvision:NAME`, without their weights."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from archspec.core.diagnostics import make_error
from archspec.pytorch.lift.subject import Subject

if TYPE_CHECKING:
    from torch import nn

COLLECTIONS = ("timm", "torchvision")


def subject_of_collection(text: str) -> Subject:
    """Return a model of `timm:NAME` or `torchvision:NAME`. Raises ArchError if there is none."""
    import torch

    collection, _, name = text.partition(":")
    package = _imported(collection)
    known = package.list_models() if collection == "timm" else package.models.list_models()
    if name not in known:
        raise make_error("unknown-model", f"{collection} has no model `{name}`")
    module: nn.Module
    if collection == "timm":
        module = package.create_model(name, pretrained=False)
        channels, height, width = getattr(module, "pretrained_cfg", {}).get("input_size", (3, 224, 224))
    else:
        module = package.models.get_model(name, weights=None)
        channels, height, width = (3, 299, 299) if name == "inception_v3" else (3, 224, 224)
    module.eval()
    argument = next(iter(_arguments(module)))
    images = [{argument: torch.randn(batch, channels, height, width)} for batch in (2, 3)]
    return Subject(module, images[0], images[1], name=name)


def _imported(collection: str) -> ModuleType:
    try:
        package = import_module(collection)
        if collection == "torchvision":
            import_module("torchvision.models")
    except ImportError:
        help = f"run `pip install {collection}`"
        raise make_error("missing-package", f"{collection} is required but not installed", help=help) from None
    except RuntimeError as problem:  # torchvision for another version of PyTorch
        message = f"{collection} cannot be imported: {problem}"
        raise make_error("missing-package", message, help="install versions that belong together") from problem
    return package


def _arguments(module: nn.Module) -> list[str]:
    from inspect import signature

    return [*signature(module.forward).parameters]
