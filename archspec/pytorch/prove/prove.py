"""Proofs of PyTorch files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from archspec.core.diagnostics import make_error
from archspec.core.optional import import_torch
from archspec.ir.module import iter_tensors
from archspec.pipeline.model import Model, get_compilation
from archspec.pytorch.prove.api import Equivalence, equivalent
from archspec.pytorch.prove.report import verdict
from archspec.pytorch.run.factories import load_module

if TYPE_CHECKING:
    from torch import nn


def compare_file(model: Model, text: str) -> Equivalence:
    """Compare a model with the module from `FILE.py[:factory]`, which is run. Raises ArchError if that fails."""
    return equivalent(model, load_module(text))


def prove_source(model: Model, text: str) -> Equivalence:
    """Prove that a generated file computes what its model does.

    Raises ArchError: `missing-package` without PyTorch, `unproven` if the two are not proven equal.
    """
    torch = import_torch()
    namespace: dict[str, object] = {"__name__": f"archspec.built.{model.name}"}
    exec(compile(text, f"<{model.name} in PyTorch>", "exec"), namespace)
    module = get_compilation(model).compiled.module
    computed = any(leaf.weight.kind == "const" for _, leaf in iter_tensors(module))
    with torch.device("cpu" if computed else "meta"):  # only computed tables need their values
        found = equivalent(model, cast("Callable[[], nn.Module]", namespace["build"])())
    if not found:
        raise make_error(
            "unproven", f"the PyTorch file of {model.name} is not proven to be equal to it: {verdict(found)}"
        )
    return found
