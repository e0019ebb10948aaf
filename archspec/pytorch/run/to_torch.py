"""Modules of PyTorch made from models."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from archspec.codegen.build import check_tensors, torch_source
from archspec.core.optional import import_torch
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike

if TYPE_CHECKING:
    from torch import nn


def to_torch(model: ModelLike, /, **overrides: PlainValue) -> nn.Module:
    """Create a `torch.nn.Module` of a model, with weights initialized as specified in the spec.

    `model` is a Model, or what `archspec.load` takes, with its `overrides`. The keys of the module's `state_dict()` are
    the names of the model's `tensors` and `buffers`. It takes the model's `inputs`; if the spec names the outputs, it
    returns a named tuple.

    Raises ArchError: `missing-package` without PyTorch, `untranslatable` for anything that PyTorch cannot express, and
    as `archspec.load` does.
    """
    import_torch()
    compiled = as_model(model, overrides)
    return module_of(compiled, torch_source(compiled), {})


def module_of(model: Model, code: str | ast.Module, names: Mapping[str, object]) -> nn.Module:
    """Return the module that a generated file makes, or code made from one, which also reads `names`."""
    namespace: dict[str, object] = {"__name__": f"archspec.built.{model.name}", **names}
    exec(compile(code, f"<{model.name} in PyTorch>", "exec"), namespace)
    module = cast("Callable[[], nn.Module]", namespace["build"])()
    check_tensors(module, import_torch(), model)
    return module
