"""Outputs in float64, at two sizes, where normal forms do not decide."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, cast

from archspec.core.algebra import Polynomial
from archspec.ir.module import Body, canonical_name, iter_tensors
from archspec.ir.normal.arrays import Array, Arrays
from archspec.pytorch.numeric.evaluate import Evaluation, EvaluationError
from archspec.pytorch.passes.precision import keep_epsilon, real_type, with_epsilon_of
from archspec.pytorch.prove.sides import MIN_EXAMPLE_SIZE, example_sizes
from archspec.pytorch.run.calling import copy_module
from archspec.pytorch.values.arguments import as_list

if TYPE_CHECKING:
    import torch
    from torch import nn

MAX_ELEMENTS = 20_000_000
"""Larger models are not run."""

RELATIVE_TOLERANCE = 1e-9
"""Relative tolerance for equal outputs in float64."""

HIDING_MAGNITUDE = 1e30
"""Elements above this magnitude, such as hidden scores, do not affect the scale of the comparison."""

GAINS = 1.0, 2.0
"""How large random tensors are in the comparison at each of the two sizes. Where all scores are small, a softmax hardly
depends on what they are multiplied by; where they are large, it hardly depends on the smaller ones.
"""

MAX_DILATION = 4096
"""Convolutions of a larger dilation are not compared at lengths that show it."""

FLOAT32_TOLERANCE = 1e-4
"""The relative difference that a module may cause which rounds some values to float32."""

Values: TypeAlias = "dict[tuple[str, str], torch.Tensor]"
Run: TypeAlias = "Callable[[Values, Mapping[str, int]], Sequence[torch.Tensor]]"


def largest_error(
    body: Body,
    ours: Run,
    theirs: Run,
    fixed: Mapping[str, int] = MappingProxyType({}),
    most: int = MAX_ELEMENTS,
    all_numbers: bool = True,
) -> float | None:
    """Return the largest relative difference of outputs for random tensors and inputs; None for a model with more than
    `most` parameters, and where no element of an output is a number.

    `fixed` has sizes of dimensions that are not to be chosen. If not `all_numbers`, only those elements are compared
    that are numbers in both: where a mask hides everything, attention of PyTorch is 0, and a softmax is no number.
    """
    import torch

    assert body.module is not None
    if body.module.total > most:
        return None
    error, is_known = 0.0, False
    compared = [({**example_sizes(body), **fixed}, GAINS[0])] if fixed else _compared(body)
    for seed, (sizes, gain) in enumerate(compared, MIN_EXAMPLE_SIZE):
        values = _values(body, sizes, torch.Generator().manual_seed(seed), gain)
        for a, b in zip(ours(values, sizes), theirs(values, sizes), strict=True):
            if a.shape != b.shape or a.is_complex() != b.is_complex():
                return float("inf")
            if all_numbers and not torch.equal(a.isnan(), b.isnan()):
                return float("inf")
            known = ~(a.isnan() | b.isnan())
            is_known |= bool(known.any()) or not known.numel()
            is_real = a.is_floating_point() or b.is_floating_point()
            error = max(error, _difference(a.double().where(known, 0.0), b.double().where(known, 0.0), is_real))
    return error if is_known else None


def _compared(body: Body) -> Iterator[tuple[Mapping[str, int], float]]:
    """Yield the sizes at which outputs are compared, and the sizes of random tensors."""
    for start, gain in zip((MIN_EXAMPLE_SIZE, MIN_EXAMPLE_SIZE + 1), GAINS, strict=True):
        yield example_sizes(body, start), gain
    if sizes := longer_sizes(body):
        yield sizes, GAINS[0]


def longer_sizes(body: Body) -> dict[str, int]:
    """Return sizes that show all dilations of convolutions, if usual ones do not."""
    dilation = _dilation(body)
    if not MIN_EXAMPLE_SIZE <= dilation <= MAX_DILATION:
        return {}
    longer = {name: size for name, size in example_sizes(body, dilation + 1).items() if name != "batch"}
    return {**example_sizes(body), **longer} if longer else {}


def _dilation(body: Body) -> int:
    """Return the largest dilation of a convolution."""
    sizes = [size for call in body.calls for size in as_list(call.attributes.get("dilation", 1))]
    inner = [_dilation(call.body) for call in body.calls if call.body is not None]
    return max([*[size for size in sizes if isinstance(size, int)], *inner], default=1)


def _difference(a: torch.Tensor, b: torch.Tensor, is_real: bool) -> float:
    """Return the largest difference, relative to the largest element that is not huge, as hidden scores are.

    Huge and infinite elements differ relative to themselves, and integers exactly.
    """
    if not is_real:
        return float((a - b).abs().max())
    sizes = a.abs().maximum(b.abs())
    is_huge = sizes >= HIDING_MAGNITUDE
    scale = max(1.0, float(sizes.where(~is_huge, 0.0).max()))
    found = (a - b).abs() / sizes.where(is_huge, scale)
    return float(found.where(a != b, 0.0).nan_to_num(float("inf")).max())


VARIANCE = "running_var"
"""How the names of the variances of batch norms end."""


def _values(body: Body, sizes: Mapping[str, int], generator: torch.Generator, gain: float) -> Values:
    """Random values: 0 and 1 for integers, beginning with 1, so that masks hide something but not everything; none
    below 0 for variances of batch norms, with which all outputs would be no numbers.
    """
    import torch

    assert body.module is not None

    def drawn(shape: Sequence[int], dtype: str, spread: float = 1.0) -> torch.Tensor:
        if dtype == "real":
            return torch.randn(shape, generator=generator, dtype=torch.float64) * spread
        found = torch.randint(0, 2, shape, generator=generator)
        if len(shape) > 1:
            found[..., 0] = 1
        return found if dtype == "int" else found.bool()

    values: Values = {}
    for name, (weight, _) in iter_tensors(body.module):
        if weight.kind != "const":
            spread = gain * _summands(weight.shape) ** -0.5 if len(weight.shape) > 1 else 0.5
            tensor = drawn(weight.shape, weight.type.dtype, spread)
            values["tensor", canonical_name(body.module, name)] = tensor.abs() if name.endswith(VARIANCE) else tensor
    for name, type in body.inputs:
        shape = [size.at(sizes) if isinstance(size, Polynomial) else size for size in type.shape]
        values["input", name] = drawn(shape, type.dtype)
    return values


def _summands(shape: Sequence[int]) -> int:
    """Return how many products are most likely added up for each result of a tensor: those of a convolution have all
    channels of a window. Of tensors with three axes, these have more rows than the window is wide; others have a matrix
    for each of a few experts.
    """
    is_window = len(shape) > 3 or shape[0] > shape[-1]
    return math.prod(shape[1:]) if is_window else shape[-1]


def array_runner(arrays: Arrays, outputs: Sequence[Array], most: int | None = None, hidden: float = math.nan) -> Run:
    """Return what evaluates arrays, unless it computes values with more than `most` bytes. `hidden` are the shares of
    scores that are all -inf: not a number, or 0 as in attention of PyTorch.
    """

    def run(values: Values, sizes: Mapping[str, int]) -> list[torch.Tensor]:
        evaluation = Evaluation(arrays, values, sizes, most, hidden)
        return [evaluation.array(output).clone() for output in outputs]  # a module may change its inputs in place

    return run


def module_runner(
    module: nn.Module,
    body: Body,
    unused: Mapping[str, torch.Tensor] | None = None,
    order: Sequence[int] | None = None,
) -> Run:
    """Return what runs a copy of a module in float64, whose outputs are put in this `order`; `unused` are inputs of the
    module that the body does not have.
    """
    import torch

    owner = body.module
    assert owner is not None
    kernel_types = (torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer)

    def run(values: Values, sizes: Mapping[str, int]) -> list[torch.Tensor]:
        given = {**(unused or {}), **{name: values["input", name] for name, _ in body.inputs}}
        try:
            copy = copy_module(module).double().eval()
            for name, tensor in copy.state_dict(keep_vars=True).items():
                tensor.data = values["tensor", canonical_name(owner, name)]  # a module may also have it in a list
            keep_epsilon(copy, real_type(module))
            # In a mode, these parts do not call the kernels that they have for inference.
            has_kernels = any(isinstance(part, kernel_types) for part in module.modules())
            with torch.no_grad(), nullcontext() if has_kernels else with_epsilon_of(module):
                outputs = flat(copy(**given))
                return outputs if order is None else [outputs[place] for place in order]
        except Exception as problem:  # of any class, as it comes from the module
            raise EvaluationError(f"calling the module fails: {problem}") from problem

    return run


def flat(outputs: object) -> list[torch.Tensor]:
    """Return the tensors among the outputs of a module, in order."""
    import torch

    if isinstance(outputs, torch.Tensor):
        return [outputs]
    if outputs is None or isinstance(outputs, bool | int | float | str):
        return []
    if isinstance(outputs, dict):
        outputs = [*cast("dict[str, object]", outputs).values()]
    return [tensor for item in cast("Sequence[object]", outputs) for tensor in flat(item)]


def has_others(outputs: object) -> bool:
    """Whether the outputs of a module are not all tensors or None."""
    import torch

    if isinstance(outputs, dict):
        outputs = [*cast("dict[str, object]", outputs).values()]
    if isinstance(outputs, list | tuple):
        return any(has_others(item) for item in cast("Sequence[object]", outputs))
    return outputs is not None and not isinstance(outputs, torch.Tensor)


def output_names(outputs: object) -> list[str]:
    """Return a name for each tensor among the outputs; an empty one where they have none. Those of a part, such as the
    outputs of an encoder, begin with the name of the part.
    """
    if isinstance(outputs, dict):
        items = cast("dict[str, object]", outputs)
        return [
            "_".join(filter(None, [str(key), name if isinstance(value, dict) else ""]))
            for key, value in items.items()
            for name in output_names(value)
        ]
    fields = cast("tuple[str, ...]", getattr(outputs, "_fields", ()))
    if isinstance(outputs, tuple) and fields:
        return output_names(dict(zip(fields, cast("tuple[object, ...]", outputs), strict=True)))
    if isinstance(outputs, list | tuple):
        return [name for item in cast("list[object]", outputs) for name in output_names(item)]
    return [""] if hasattr(outputs, "shape") else []
