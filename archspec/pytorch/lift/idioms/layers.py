"""Layers and functions of the standard library, recognized by what they compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from archspec.ir.module import Type
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.values.values import ModuleCall, Setting, Value

if TYPE_CHECKING:
    from torch import nn

COUNTER = "num_batches_tracked"
"""What a batch norm counts in training alone."""

BATCH_NORM = "BatchNorm", {"weight", "bias", "running_mean", "running_var", COUNTER}
"""The layer that subtracts means that it keeps, and its tensors."""


def recognize_module(
    builder: SpecBuilder, frame: ModuleCall, module: nn.Module, result: Value, canonical: Callable[[str], str]
) -> Value | None:
    """Replace a module call by an equivalent layer or function of the standard library; None if it is not one."""
    names = [name for name, _ in module.state_dict(keep_vars=True).items()]
    own = {canonical(f"{frame.path}.{name}"): name for name in names}
    root, _ = builder.layout(result)
    inner, cuts = _uncut(root)
    layer = _of_operation(inner, own)
    if layer is None:
        layer = _batch_norm(builder, frame, module, root, own)
    if layer is None:
        return None
    callee, settings, args = layer
    for value in _inside(frame, args):
        value.frame = builder.frame
    made = Value(
        callee,
        args,
        settings,
        array=inner.array,
        dtype=inner.dtype,
        frame=builder.frame,
        kind="layer",
        address=frame.path,
    )
    for cut in reversed(cuts):
        made = builder.op("slice", made, **cut)
    return builder.laid_out(made, result, root)


def _uncut(value: Value) -> tuple[Value, list[dict[str, Setting]]]:
    """Return the transposed convolution that a value is cut from at one end, and the cuts; or else the value."""
    inner, cuts = value, list[dict[str, Setting]]()
    while inner.op == "slice":
        cuts.append(inner.settings)
        inner = inner.operands[0]
    return (inner, cuts) if inner.settings.get("transposed") else (value, [])


Layer: TypeAlias = tuple[str, dict[str, Setting], list[Value]]


def _of_operation(value: Value, own: Mapping[str, str]) -> Layer | None:
    """Return the layer that owns the tensors of an operation."""
    tensors = [arg for arg in value.args if isinstance(arg, Value) and arg.op == "tensor"]
    names = [own.get(tensor.address) for tensor in tensors]
    if names not in (["weight"], ["weight", "bias"]) or len(own) != len(names):
        return None
    args = [arg for arg in value.args if isinstance(arg, Value) and arg not in tensors]
    weight, biased = tensors[0].shape, len(names) == 2
    without = {} if biased else {"bias": False}
    match value.op:
        case "linear" if len(weight) == 2:
            return "Linear", {"in_features": weight[1], "out_features": weight[0], **without}, args
        case "embedding" if len(weight) == 2:
            return "Embedding", {"count": weight[0], "features": weight[1]}, args
        case "layer_norm" if len(weight) == 1:
            return "LayerNorm", {"features": weight[0], "eps": value.settings["eps"], **without}, args
        case "rms_norm" if len(weight) == 1:
            return "RMSNorm", {"features": weight[0], "eps": value.settings["eps"]}, args
        case "group_norm" if biased:
            groups, eps = value.settings["groups"], value.settings["eps"]
            return "GroupNorm", {"groups": groups, "channels": weight[0], "eps": eps}, args
        case "conv" if len(set(weight[2:])) == 1 and len(weight) in (3, 4):
            settings = {**value.settings}
            is_transposed = settings.pop("transposed", False)
            other = weight[1] * value.integer("groups", 1)
            channels = (weight[0], other) if is_transposed else (other, weight[0])
            sizes = {"in_channels": channels[0], "out_channels": channels[1], "kernel": weight[2]}
            kind = "ConvTranspose" if is_transposed else "Conv"
            return f"{kind}{len(weight) - 2}d", {**sizes, **settings, **without}, args
        case _:
            return None


def _batch_norm(
    builder: SpecBuilder, frame: ModuleCall, module: nn.Module, value: Value, own: Mapping[str, str]
) -> Layer | None:
    """Return the batch norm that a module computes step by step."""
    callee, names = BATCH_NORM
    inputs = _inputs(frame, value) if {*own.values()} == names and value.dtype == "real" else []
    if len(inputs) != 1 or inputs[0].shape != value.shape or len(value.shape) < 2:
        return None
    (x,) = inputs
    features = x.shape[1]
    keys = [(key, name) for key, name in own.items() if name != COUNTER]
    tensors = {name: builder.stored("tensor", key, Type((features,), "real"), frame).array for key, name in keys}
    for eps in sorted([item for item in vars(module).values() if isinstance(item, float)]):
        settings: dict[str, Setting] = {"features": features, "eps": eps}
        if builder.library.layer(callee, settings, tensors, x.array, value.shape) == value.array:
            return callee, settings, [x]
    return None


def _inputs(frame: ModuleCall, value: Value) -> list[Value]:
    """Return the values, other than tensors, that a call of a module computes a value from."""
    inside = _inside(frame, [value])
    used = dict.fromkeys([operand for value in inside for operand in value.operands if operand.op != "tensor"])
    return [value for value in used if value not in inside] or [value]


def _inside(frame: ModuleCall, values: Sequence[Value]) -> dict[Value, None]:
    """Return values and those that they are computed from, as far as a call of a module computes them."""
    found: dict[Value, None] = {}
    waiting = [*values]
    while waiting:
        value = waiting.pop()
        if value not in found and value.op not in ("tensor", "input") and frame.contains(value.frame):
            found[value] = None
            waiting += value.operands
    return found
