"""Proofs of PyTorch files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from archspec.equivalence.api import Equivalence, equivalent
from archspec.equivalence.factories import module_from
from archspec.equivalence.report import verdict
from archspec.ir import leaves
from archspec.libraries import torch_or_fail
from archspec.model import Model, internals
from archspec.source import fail

if TYPE_CHECKING:
    from torch import nn


def compare_file(model: Model, text: str) -> Equivalence:
    """Compare a model with the module from `FILE.py[:factory]`, which is run. Raises ArchError if that fails."""
    return equivalent(model, module_from(text))


def prove_source(model: Model, text: str) -> Equivalence:
    """Prove that a generated file computes what its model does.

    Raises ArchError: `missing-package` without PyTorch, `unproven` if the two are not proven equal.
    """
    torch = torch_or_fail()
    namespace: dict[str, object] = {"__name__": f"archspec.built.{model.name}"}
    exec(compile(text, f"<{model.name} in PyTorch>", "exec"), namespace)
    module = internals(model).compiled.module
    computed = any(leaf.weight.kind == "const" for _, leaf in leaves(module))
    with torch.device("cpu" if computed else "meta"):  # only computed tables need their values
        found = equivalent(model, cast("Callable[[], nn.Module]", namespace["build"])())
    if not found:
        raise fail("unproven", f"the PyTorch file of {model.name} is not proven to be equal to it: {verdict(found)}")
    return found
