"""Plans and pictures of models."""

from __future__ import annotations

from archspec.algebra import symbols
from archspec.ir import uncollected
from archspec.model import Model, internals
from archspec.pictures.expand import expand
from archspec.pictures.plan import Plan, RoleShare


def plan_of(model: Model, *, fold: bool = True) -> Plan:
    """Return the plan of a model's picture; with `fold`, layers that repeat are drawn once."""
    compilation = internals(model)
    params = model.params
    plan = Plan(model.name, model.doc, params.total, params.trainable)
    plan.hyperparameters = model.hyperparameters
    shapes = [type.shape for _, type in compilation.body.inputs]
    plan.dimensions = list(dict.fromkeys(name for shape in shapes for size in shape for name in sorted(symbols(size))))
    counts: dict[str | None, int] = {}
    for tensor in model.tensors:
        counts[tensor.role] = counts.get(tensor.role, 0) + tensor.params
    plan.roles = [RoleShare(role, count) for role, count in counts.items()]
    with uncollected():
        expand(plan, compilation.body, compilation.table, fold)
    return plan
