"""The model of one rank under tensor parallelism: the same spec with fewer heads and narrower feed-forward networks.

`specs/parallel.json` has the names of the hyperparameters to divide. All other integers keep their values, so that the
size of a head does not follow the number of heads. `check_division` then compares both models, operation by operation.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from json import loads
from math import gcd
from typing import cast

from archspec.analysis.parallel.division import check_division, divided_axes, plan_error
from archspec.compiler.elaborate.models import compile_model
from archspec.core.diagnostics import Note, Report, StopCompilation, make_error
from archspec.core.record import Record
from archspec.core.resources import specs_root
from archspec.ir.module import Module, canonical_name, gc_paused, iter_tensors
from archspec.ir.table import PlainValue
from archspec.pipeline.model import Compilation, Model, get_compilation

MAX_LISTED_DIVISOR = 1024


class Rank(Record):
    """The first of `ranks` ranks, which has the most parameters; `model` is an ordinary model.

    `divided` has each divided hyperparameter by name: its value in the entire model, and in that of the rank. The rows
    of the vocabulary are divided into equal numbers, rounded up, so that later ranks can have fewer: `parameters` has
    the number of parameters of each rank. `replicated` is the number of parameters that every rank has in full.
    """

    model: Model
    ranks: int
    divided: dict[str, tuple[PlainValue, PlainValue]]
    parameters: tuple[int, ...]
    replicated: int


def divide_model(model: Model, ranks: int) -> Rank:
    """Return the first rank of a model under tensor parallelism among `ranks` ranks.

    Heads, groups of keys and values, feed-forward networks and the vocabulary are divided; norms, routers and the
    biases of row-parallel layers are whole. Raises ArchError (`bad-plan`) if a hyperparameter cannot be divided, with
    the numbers that divide it, and for a model that has none of these hyperparameters or that would compute something
    different.
    """
    if ranks == 1:
        return Rank(model, 1, {}, (model.params.total,), model.params.total)
    original = get_compilation(model)
    divided = _divide_hyperparameters(model, ranks)
    fixed = {name: value for name, value in model.hyperparameters.items() if type(value) is int}
    parts = {name: part for name, (_, part) in divided.items()}
    compilation = _compile_rank(original, {**original.overrides, **fixed, **parts}, ranks)
    model_module, module = original.compiled.module, compilation.compiled.module
    check_division(original.body, compilation.body, ranks)
    parameters = tuple([module.total - rows for rows in _missing_parameters(model_module, module, ranks)])
    replicated = (sum(parameters) - model_module.total) // (ranks - 1)
    return Rank(Model(compilation, model.warnings), ranks, divided, parameters, replicated)


def _divide_hyperparameters(model: Model, ranks: int) -> dict[str, tuple[PlainValue, PlainValue]]:
    """Return each hyperparameter that is divided, and its value for a rank."""
    with open(os.path.join(specs_root(), "parallel.json"), encoding="utf-8") as file:
        names = cast("dict[str, list[str]]", loads(file.read()))
    values = model.hyperparameters
    divisible = {name: values[name] for name in names["divided"] if _integers(values.get(name))}
    if not divisible:
        message = f"tensor parallelism of {model.name} is unknown: it has no hyperparameter such as `heads` or `ffn`"
        raise make_error("bad-plan", message, help=f"call those to divide {', '.join(names['divided'])}")
    divisor = gcd(*[size for value in divisible.values() for size in _integers(value)])
    for name, value in divisible.items():
        if any(size % ranks for size in _integers(value)):
            numbers = [str(n) for n in range(1, min(divisor, MAX_LISTED_DIVISOR) + 1) if divisor % n == 0]
            message = f"tensor parallelism of {ranks} does not divide `{name} = {value}`"
            raise make_error(
                "bad-plan", message, help=f"use a number that divides all heads and widths: {', '.join(numbers)}"
            )
    parts = {name: (value, _map_integers(value, lambda size: size // ranks)) for name, value in divisible.items()}
    rows = {name: values[name] for name in names["vocabulary"] if _integers(values.get(name))}
    return parts | {name: (value, _map_integers(value, lambda size: -(-size // ranks))) for name, value in rows.items()}


def _integers(value: PlainValue) -> list[int]:
    """Return the integers in a hyperparameter."""
    if isinstance(value, list):
        return [size for item in value for size in _integers(item)]
    return [value] if type(value) is int else []


def _map_integers(value: PlainValue, function: Callable[[int], int]) -> PlainValue:
    """Return a hyperparameter with a function applied to its integers."""
    if isinstance(value, list):
        return [_map_integers(item, function) for item in value]
    return function(value) if type(value) is int else value


@gc_paused()
def _compile_rank(original: Compilation, overrides: dict[str, PlainValue], ranks: int) -> Compilation:
    report, compiled = Report(), None
    original.program.begin(report, original.unit.source)
    with suppress(StopCompilation):
        compiled = compile_model(original.program, original.unit, original.node, overrides)
    if compiled is None or report.failed:
        notes = tuple([Note(problem.message, problem.span) for problem in report.diagnostics[:1]])
        message = f"{original.compiled.name} does not compile when it is divided among {ranks} ranks"
        raise make_error("bad-plan", message, notes=notes)
    return Compilation(compiled, original.program, original.unit, original.node, overrides)


def _missing_parameters(model_module: Module, module: Module, ranks: int) -> list[int]:
    """Return the number of parameters that each rank has fewer than the first, whose module is `module`.

    Raises ArchError (`bad-plan`) for a tensor with several divided axes, or of which an axis does not shrink evenly.
    """
    missing = [0] * ranks
    parts = dict(iter_tensors(module))
    for name, tensor in iter_tensors(model_module):
        part = parts.get(name)
        if part is None or len(part.weight.shape) != len(tensor.weight.shape):
            raise plan_error(f"`{name}` has other axes on a rank")
        axes = divided_axes(tensor.weight.shape, part.weight.shape, ranks, f"`{name}`")
        if len(axes) > 1:
            raise plan_error(f"several axes of `{name}` would be divided")
        if tensor.weight.kind != "param" or canonical_name(model_module, name) != name:
            continue
        for axis in axes:
            size, rows = tensor.weight.shape[axis], part.weight.shape[axis]
            if rows * ranks != size:
                for index in range(ranks):
                    missing[index] += part.weight.size // rows * (rows - max(0, min(rows, size - index * rows)))
    return missing
