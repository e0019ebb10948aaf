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
from archspec.pytorch.calls.values import UntranslatableError
from archspec.pytorch.numeric.constants import Constants
from archspec.pytorch.numeric.evaluate import EvaluationError
from archspec.pytorch.prove.numeric import (
    FLOAT32_TOLERANCE,
    MAX_ELEMENTS,
    RELATIVE_TOLERANCE,
    Run,
    array_runner,
    largest_error,
    module_runner,
)
from archspec.pytorch.prove.sides import (
    FirstDifference,
    first_difference,
    model_outputs,
    module_outputs,
    stored_tensors,
)

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
    for left, right in zip(_bodies(a), _bodies(b), strict=True):
        arrays = Arrays()
        places = LocationIndex(arrays), LocationIndex(arrays)
        try:
            ours, theirs = model_outputs(arrays, left, places[0]), model_outputs(arrays, right, places[1])
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
    training = module.training
    module.eval()
    try:
        for body in _bodies(model):
            found = _compare_body(found, body, module)
            if not found:
                return found
    finally:
        module.train(training)
    return found


def _compare_body(found: Equivalence, body: Body, module: nn.Module) -> Equivalence:
    arrays = Arrays()
    places = LocationIndex(arrays), LocationIndex(arrays)
    constants = Constants(arrays)
    try:
        ours = model_outputs(arrays, body, places[0], constants)
    except ArithmeticError as problem:
        return found.replace(verdict="not proven", reason=_without_form(problem))
    try:
        theirs = module_outputs(arrays, module, body, places[1], constants)
    except (UntranslatableError, ArithmeticError) as problem:
        reason = _without_form(problem) if isinstance(problem, ArithmeticError) else str(problem)
        return _decided(
            found.replace(reason=reason),
            body,
            array_runner(arrays, ours),
            module_runner(module, body),
            FLOAT32_TOLERANCE,
        )
    if len(ours) != len(theirs):
        return found.replace(verdict="different", reason=f"{len(theirs)} outputs instead of {len(ours)}")
    unequal = first_difference(arrays, [*body.named_outputs()], ours, theirs, places)
    if unequal is None:
        return found
    return _decided(
        found.replace(unequal=unequal), body, array_runner(arrays, ours), module_runner(module, body), FLOAT32_TOLERANCE
    )


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
        ("tensors", _shapes(a), _shapes(b)),
    ]
    for what, ours, theirs in sides:
        name = next((name for name in [*ours, *theirs] if ours.get(name) != theirs.get(name)), None)
        if name is not None:
            return f"the {what} differ: `{name}`"
    if [*a.outputs] != [*b.outputs]:
        return f"the outputs are in another order: `{'`, `'.join(b.outputs)}`"
    return ""


def _optional(model: Model) -> dict[str, object]:
    """Return the inputs that a model need not be given."""
    required = dict(get_compilation(model).body_without_optional_inputs().inputs)
    return {name: type for name, type in model.inputs.items() if name not in required}


def other_tensors(model: Model, module: nn.Module) -> str:
    """Describe how the tensors of a module differ from those of a model; empty if they do not."""
    ours, theirs = _shapes(model), stored_tensors(module)
    for name in [*ours, *theirs]:
        if name not in ours or name not in theirs or ours[name] != theirs[name].shape:
            return f"the tensors differ: `{name}`"
    first: dict[object, str] = {}
    owner = get_compilation(model).compiled.module
    for name, tensor in theirs.items():
        tied, own = first.setdefault(("module", tensor.storage), name), canonical_name(owner, name)
        if tied != first.setdefault(("model", own), name):
            return f"the tied tensors differ: `{name}`"
    return ""


def _shapes(model: Model) -> dict[str, tuple[int, ...]]:
    return {tensor.name: tensor.shape for tensor in (*model.tensors, *model.buffers)}


def _is_module(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)
