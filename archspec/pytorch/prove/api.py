"""`archspec.equivalent`: whether two descriptions compute the same."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from archspec.core.reports.results import Result
from archspec.ir.module import Body, canonical_name
from archspec.ir.normal.arrays import Arrays
from archspec.ir.normal.deep_stack import run_with_deep_stack
from archspec.ir.normal.origins import LocationIndex
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike, get_compilation
from archspec.pytorch.export.exporting import is_without_values
from archspec.pytorch.numeric.constants import Constants
from archspec.pytorch.numeric.evaluate import EvaluationError
from archspec.pytorch.passes.intercepting import restore_attributes
from archspec.pytorch.prove.numeric import (
    FLOAT32_TOLERANCE,
    MAX_ELEMENTS,
    RELATIVE_TOLERANCE,
    Run,
    array_runner,
    flat,
    has_others,
    largest_error,
    module_runner,
    output_names,
)
from archspec.pytorch.prove.sides import (
    FirstDifference,
    example_inputs,
    first_difference,
    model_outputs,
    module_outputs,
)
from archspec.pytorch.prove.state import check_repeatable
from archspec.pytorch.prove.tables import model_table, other_tensors, table_difference
from archspec.pytorch.values.arguments import UntranslatableError

if TYPE_CHECKING:
    from torch import nn

Verdict: TypeAlias = Literal["equal", "outputs equal", "different", "not proven"]


class Equivalence(Result):
    """Whether A and B compute the same.

    The `verdict` is "equal" if their normal forms are equal, so their outputs are for all inputs, sizes and values of
    the tensors, up to rounding. Otherwise, `reason` is the obstacle, `unequal` where the computations
    differ first, and the outputs in float64 decide between "outputs equal" (at the sizes that were tried) and
    "different"; without these, the verdict is "not proven". `error` is the largest difference of the outputs. An
    Equivalence is true if the verdict is "equal".
    """

    a: str
    b: str
    verdict: Verdict
    reason: str = ""
    unequal: FirstDifference | None = None
    error: float | None = None

    def __repr__(self) -> str:
        return f"<Equivalence of {self.a!r} and {self.b!r}: {self.verdict}>"

    def __bool__(self) -> bool:
        """Whether equality is proven."""
        return self.verdict == "equal"


def equivalent(a: ModelLike | nn.Module, b: ModelLike | nn.Module, /) -> Equivalence:
    """Decide whether two models compute the same, or a model and a `torch.nn.Module`, in evaluation.

    At least one is a Model, or what `archspec.load` takes. A module is called with the inputs of the model by name, and
    has its tensors under their names. All optional inputs are given first, and then none.

    Raises ArchError for a spec with errors, and TypeError for two modules.
    """
    if _is_module(a) and _is_module(b):
        raise TypeError("expected a model or spec among the arguments, found two modules")
    if _is_module(a):
        found = equivalent(b, a)
        unequal = found.unequal and FirstDifference(found.unequal.output, found.unequal.b, found.unequal.a)
        return found.replace(a=found.b, b=found.a, unequal=unequal)
    model = as_model(cast("ModelLike", a))
    if _is_module(b):
        return run_with_deep_stack(lambda: _compare_module(model, cast("nn.Module", b)))
    other = as_model(cast("ModelLike", b))
    return run_with_deep_stack(lambda: _compare_models(model, other))


def _compare_models(a: Model, b: Model) -> Equivalence:
    found = Equivalence(a.name, b.name, "equal")
    reason = _other_signature(a, b)
    if reason:
        return found.replace(verdict="different", reason=reason)
    owners = [get_compilation(each).compiled.module for each in (a, b)]
    names = model_table(owners[0]).rows
    counted = {canonical_name(owners[1], name): canonical_name(owners[0], name) for name in names}
    for left, right in zip(_bodies(a), _bodies(b), strict=True):
        arrays = Arrays()
        places = LocationIndex(arrays), LocationIndex(arrays)
        try:
            ours = model_outputs(arrays, left, places[0])
            theirs = model_outputs(arrays, right, places[1], counted=counted)
        except ArithmeticError as problem:
            return found.replace(verdict="not proven", reason=_without_form(problem))
        unequal = first_difference(arrays, [*left.named_outputs()], ours, theirs, places)
        if unequal is not None:
            runs = array_runner(arrays, ours), array_runner(arrays, theirs)
            return _decided(found.replace(unequal=unequal), left, *runs)
    return found


def _compare_module(model: Model, module: nn.Module) -> Equivalence:
    found = Equivalence(model.name, type(module).__name__, "equal")
    reason = other_tensors(model, module)
    if reason:
        return found.replace(verdict="different", reason=reason)
    with restore_attributes(module):
        module.eval()
        for body in _bodies(model):
            found = _compare_body(found, body, module)
            if not found:
                return found
    return found


def _compare_body(found: Equivalence, body: Body, module: nn.Module) -> Equivalence:
    arrays = Arrays()
    places = LocationIndex(arrays), LocationIndex(arrays)
    constants = Constants(arrays)
    try:
        ours = model_outputs(arrays, body, places[0], constants)
    except ArithmeticError as problem:
        return found.replace(verdict="not proven", reason=_without_form(problem))
    refusal = ""
    order = [*range(len(ours))]
    try:
        called = check_repeatable(module, *example_inputs(module, body))
        order = _order(body, called)
    except UntranslatableError as problem:
        refusal = str(problem)
    except _OutputError as difference:
        return found.replace(verdict="different", reason=str(difference))
    except Exception as problem:  # of any class, as it comes from the module
        refusal = f"calling it fails: {problem}"
    try:
        theirs = module_outputs(arrays, module, body, places[1], constants)
    except (UntranslatableError, ArithmeticError) as problem:
        reason = _without_form(problem) if isinstance(problem, ArithmeticError) else str(problem)
        if refusal:
            return found.replace(verdict="not proven", reason=f"{reason}; {refusal}")
        return _decided(
            found.replace(reason=reason),
            body,
            array_runner(arrays, ours),
            module_runner(module, body),
            FLOAT32_TOLERANCE,
        )
    if refusal:
        return found.replace(verdict="not proven", reason=refusal)
    if len(ours) != len(theirs):
        return found.replace(verdict="different", reason=f"{len(theirs)} outputs instead of {len(ours)}")
    theirs = [theirs[place] for place in order]
    unequal = first_difference(arrays, [*body.named_outputs()], ours, theirs, places)
    runs = array_runner(arrays, ours), module_runner(module, body, order=order)
    if unequal is not None:
        return _decided(found.replace(unequal=unequal), body, *runs, FLOAT32_TOLERANCE)
    return _confirmed(found, body, module, *runs)


class _OutputError(Exception):
    """The outputs of a module have other names than those of a model, or are no tensors."""


def _order(body: Body, called: object) -> list[int]:
    """Return the places of a model's outputs among those of a module: the same ones, unless these are in a dict.

    Outputs without a name, in the spec or in the module, are compared by their places. Raises _OutputError.
    """
    ours = [name for name, slot in body.outputs if isinstance(slot, int)]
    theirs = output_names(called)
    count = len(flat(called))
    if has_others(called):
        raise _OutputError("the outputs of the module are not all tensors")
    if count != len(ours):
        raise _OutputError(f"{count} outputs instead of {len(ours)}")
    if len({*theirs}) < len(theirs):
        return [*range(count)]
    if type(called) is dict and sorted(ours) == sorted(theirs):
        return [theirs.index(name) for name in ours]
    for name, other in zip(ours, theirs, strict=True):
        if name and other and name != other:
            raise _OutputError(f"the outputs differ: `{other}` instead of `{name}`")
    return [*range(count)]


def _confirmed(found: Equivalence, body: Body, module: nn.Module, ours: Run, theirs: Run) -> Equivalence:
    """Return the verdict for a module whose program is equal, which may do something else when it is not exported."""
    if any(is_without_values(tensor) for tensor in module.state_dict(keep_vars=True).values()):
        return found
    try:
        error = largest_error(body, ours, theirs, all_numbers=False)
    except EvaluationError:
        return found
    if error is None or error <= FLOAT32_TOLERANCE:
        return found
    return found.replace(verdict="different", reason="it is not what `torch.export` records of it", error=error)


def _without_form(problem: ArithmeticError) -> str:
    return f"there is no normal form: {problem}"


def _decided(
    found: Equivalence, body: Body, ours: Run, theirs: Run, rounded: float = RELATIVE_TOLERANCE
) -> Equivalence:
    """Return the verdict for outputs, whose difference may be due to rounding if it is at most `rounded`."""
    reason = found.reason or "the normal forms differ"
    try:
        error = largest_error(body, ours, theirs)
    except (EvaluationError, ImportError):
        return found.replace(verdict="not proven", reason=f"{reason}; the two cannot be run in float64 to compare")
    if error is None:
        reason = f"{reason}; outputs of models with more than {MAX_ELEMENTS:,} parameters are not compared"
        return found.replace(verdict="not proven", reason=reason)
    if RELATIVE_TOLERANCE < error <= rounded:
        reason = f"{reason}; the outputs differ by {error:.1g} in float64, which may be rounding to float32"
        return found.replace(verdict="not proven", reason=reason, error=error)
    return found.replace(verdict="outputs equal" if error <= RELATIVE_TOLERANCE else "different", error=error)


def _bodies(model: Model) -> list[Body]:
    """Return what a model computes with all optional inputs, and with none."""
    compilation = get_compilation(model)
    compilation.require_computation()
    bare = compilation.body_without_optional_inputs()
    return [compilation.body, *([bare] if len(bare.inputs) < len(compilation.body.inputs) else [])]


def _other_signature(a: Model, b: Model) -> str:
    """Describe the difference between the signatures or tensors of two models; "" if there is none."""
    sides: list[tuple[str, Mapping[str, object], Mapping[str, object]]] = [
        ("inputs", a.inputs, b.inputs),
        ("optional inputs", _optional(a), _optional(b)),
        (
            "outputs",
            {name: type.shape for name, type in a.outputs.items()},
            {name: type.shape for name, type in b.outputs.items()},
        ),
    ]
    for what, ours, theirs in sides:
        name = next((name for name in [*ours, *theirs] if ours.get(name) != theirs.get(name)), None)
        if name is not None:
            return f"the {what} differ: `{name}`"
    if [*a.outputs] != [*b.outputs]:
        return f"the outputs are in another order: `{'`, `'.join(b.outputs)}`"
    return table_difference(*[model_table(get_compilation(each).compiled.module) for each in (a, b)])


def _optional(model: Model) -> dict[str, object]:
    """Return the inputs that a model need not be given."""
    required = dict(get_compilation(model).body_without_optional_inputs().inputs)
    return {name: type for name, type in model.inputs.items() if name not in required}


def _is_module(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)
