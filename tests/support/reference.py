"""A reference interpreter: runs a compiled body in float64, as plainly as numpy can say it.

It is written from the records of the operations alone, shares nothing with any backend, and checks every value it makes
against the type the compiler inferred.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from archspec import Model, Polynomial, Type
from archspec.core.algebra import split_multiple, substitute
from archspec.ir.module import Body, Call, Constant, LocatedTensor, Loop, Module, Operand, canonical_name, find_member
from archspec.pipeline.model import get_compilation

Array = np.ndarray
DTYPES = {"real": np.float64, "int": np.int64, "bool": np.bool_}


class Result(NamedTuple):
    """What a body computes: its outputs under the names that `Model.outputs` gives them, and the outputs of every
    application of a layer or block inside, under the name of its node in the graph: its address, the k-th again
    `address@k`.
    """

    outputs: dict[str, Array]
    trace: dict[str, tuple[Array, ...]]


def evaluate(body: Body, inputs: Mapping[str, Array], weights: Mapping[str, Array]) -> Result:
    """Runs the body of a model. `inputs` are by name; `weights` by address, each under the name that is counted.

    A stored tensor that is not among the weights is computed from the constant table the spec gives for it.
    Raises AssertionError where a value is not of the type the compiler inferred, or is not to be had.
    """
    assert set(inputs) == {name for name, _ in body.inputs}
    run = _Run(body.module, weights)
    values = [run.input(np.asarray(inputs[name]), type) for name, type in body.inputs]
    results = run.body(body, "", values)
    present = [(name, value) for (name, _), value in zip(body.outputs, results, strict=True) if value is not None]
    alone = "output" if len(present) == 1 else ""
    return Result({name or alone or str(i): value for i, (name, value) in enumerate(present)}, run.trace)


def evaluate_model(model: Model, inputs: Mapping[str, Array], weights: Mapping[str, Array]) -> Result:
    """Run a model, as `evaluate` runs its body."""
    return evaluate(get_compilation(model).body, inputs, weights)


class _Run:
    """One run: what the symbols stand for, found from the inputs, and what has been computed."""

    def __init__(self, module: Module | None, weights: Mapping[str, Array]) -> None:
        self.module = module
        self.weights = weights
        self.sizes: dict[str, int] = {}
        self.applications: dict[str, int] = {}
        self.trace: dict[str, tuple[Array, ...]] = {}

    def input(self, value: Array, type: Type) -> Array:
        for size, actual in zip(type.shape, value.shape, strict=True):
            multiple = split_multiple(size)
            if multiple is not None:
                factor, name = multiple
                self.sizes.setdefault(name, actual // factor)
        return self.typed(value.astype(DTYPES[type.dtype]), type, "an input")

    def body(self, body: Body, prefix: str, inputs: list[Array]) -> list[Array | None]:
        """The outputs of a body whose tensors' addresses begin with `prefix`."""
        slots: list[Any] = [None] * len(body.types)
        slots[: len(inputs)] = inputs
        for name, slot in body.weights:
            slots[slot] = self.weight(prefix + name, body.types[slot])
        for call in body.calls:
            operands = [self.operand(operand, slots) for _, operand in call.inputs]
            outputs = self.call(call, prefix, operands)
            present = [type for type in call.outputs if type is not None]
            for i, (value, type) in enumerate(zip(outputs, present, strict=True)):
                slots[call.first + i] = self.typed(np.asarray(value), type, str(call.span))
        return [self.operand(operand, slots) for _, operand in body.outputs]

    def call(self, call: Call, prefix: str, operands: list[Array | None]) -> list[Array]:
        if call.body is None:
            attributes = {name: self.number(value) for name, value in call.attributes.items()}
            value = OPS[call.type](*operands, **attributes)
            return value if isinstance(value, list) else [value]
        tensors = [v for v, (_, operand) in zip(operands, call.inputs, strict=True) if isinstance(operand, int)]
        if call.body.loop is not None:
            return self.loop(call.body, call.body.loop, prefix, tensors)
        if not call.address:
            return [v for v in self.body(call.body, prefix, tensors) if v is not None]
        address = prefix + call.address
        again = self.applications[address] = self.applications.get(address, 0) + 1
        outputs = [v for v in self.body(call.body, f"{address}.", tensors) if v is not None]
        self.trace[address if again == 1 else f"{address}@{again}"] = tuple(outputs)
        return outputs

    def loop(self, body: Body, loop: Loop, prefix: str, inputs: list[Array]) -> list[Array]:
        """The outputs of a loop: what the last iteration carries, and what all of them collect."""
        outer = dict(self.sizes)
        first, count = self.number(loop.first), self.number(loop.iterations)
        assert count >= (1 if loop.axes else 0), f"a loop over {loop.variable} has {count} iterations"
        rounds: list[list[Array]] = []
        for at in range(first, first + count):
            self.sizes[loop.variable] = at
            results = [v for v in self.body(body, prefix, inputs) if v is not None]
            assert [v.shape for v in results[: loop.carried]] == [v.shape for v in inputs[: loop.carried]]
            inputs = [*results[: loop.carried], *inputs[loop.carried :]]
            rounds.append(results[loop.carried :])
            self.sizes = dict(outer)
        return [*inputs[: loop.carried], *map(np.stack, zip(*rounds, strict=True), loop.axes)]

    def operand(self, operand: Operand, slots: list[Any]) -> Array | None:
        if isinstance(operand, Constant):
            return np.asarray(self.number(operand.value))
        return None if operand is None else slots[operand]

    def number(self, value: Any) -> Any:
        """A static value with the sizes of this run in the place of symbols."""
        if isinstance(value, tuple):
            return tuple(self.number(v) for v in value)
        return substitute(value, self.sizes) if isinstance(value, Polynomial) else value

    def weight(self, address: str, type: Type) -> Array:
        assert self.module is not None
        name = canonical_name(self.module, address)
        if name in self.weights:
            return self.typed(self.weights[name].astype(DTYPES[type.dtype]), type, name)
        leaf = find_member(self.module, name)
        assert isinstance(leaf, LocatedTensor) and leaf.weight.value is not None, f"there is no value for {name}"
        return self.typed(np.asarray(self.body(leaf.weight.value, "", [])[0]), type, name)

    def typed(self, value: Array, type: Type, where: str) -> Array:
        shape = self.number(type.shape)
        assert value.shape == shape, f"{where}: the shape {list(value.shape)} was inferred to be {list(type.shape)}"
        assert value.dtype == DTYPES[type.dtype], f"{where}: {value.dtype} was inferred to be {type.dtype}"
        return value


# Operations ---------------------------------------------------------------------------------------------------------


def softmax(x: Array, axis: int) -> Array:
    power = np.exp(x - x.max(axis, keepdims=True))
    return power / power.sum(axis, keepdims=True)


def topk(x: Array, k: int, axis: int) -> list[Array]:
    indices = np.argsort(-x, axis, kind="stable").take(np.arange(k), axis)
    return [np.take_along_axis(x, indices, axis), indices]


def forward_substitution(a: Array, b: Array) -> Array:
    out = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]))
    for row in range(a.shape[-1]):
        out[..., row, :] = b[..., row, :] - (a[..., row : row + 1, :row] @ out[..., :row, :])[..., 0, :]
    return out


def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    return x @ weight.T + (0 if bias is None else bias)


def expert_linear(x: Array, experts: Array, weight: Array, bias: Array | None) -> Array:
    inside(experts, len(weight))
    out = np.einsum("...i,...oi->...o", x, weight[experts])
    return out if bias is None else out + bias[experts]


def conv(
    x: Array, weight: Array, bias: Array | None, stride: Any, padding: Any, dilation: Any, groups: int, transposed: bool
) -> Array:
    """The sum over the places of the kernel; each meets every stride-th element of x (transposed: of the result)."""
    size, kernel = np.array(x.shape[2:]), np.array(weight.shape[2:])
    stride, padding, dilation = (np.broadcast_to(v, size.shape) for v in (stride, padding, dilation))
    span = (kernel - 1) * dilation + 1
    steps = size if transposed else (size + 2 * padding - span) // stride + 1
    parts = weight.reshape(groups, len(weight) // groups, *weight.shape[1:])
    around = [(0, 0), (0, 0), *zip(padding, padding, strict=True)]
    stream = x if transposed else np.pad(x, around)
    stream = stream.reshape(len(x), groups, -1, *stream.shape[2:])
    filled = (size - 1) * stride + span if transposed else steps
    out = np.zeros((len(x), groups, parts.shape[2 if transposed else 1], *filled), np.result_type(x, weight))
    for place in np.ndindex(*kernel):
        first = place * dilation
        met = (..., *map(slice, first, first + (steps - 1) * stride + 1, stride))
        if transposed:
            out[met] += np.einsum("bgc...,gco->bgo...", stream, parts[..., *place])
        else:
            out += np.einsum("bgc...,goc->bgo...", stream[met], parts[..., *place])
    if transposed:
        out = out[..., *map(slice, padding, filled - padding)]
    out = out.reshape(len(x), -1, *out.shape[3:])
    return out if bias is None else out + bias.reshape(-1, *[1] * len(size))


def windows(x: Array, kernel: Any, stride: Any, padding: Any, filled: float) -> Array:
    """Windows over the axes after the first two, whose elements are the last axis."""
    axes = tuple(range(2, x.ndim))
    kernel = np.broadcast_to(kernel, len(axes))
    stride = np.broadcast_to(kernel if stride is None else stride, len(axes))
    padding = np.broadcast_to(padding, len(axes))
    around = [(0, 0), (0, 0), *zip(padding, padding, strict=True)]
    x = np.pad(x.astype(np.float64), around, constant_values=filled)
    found = np.lib.stride_tricks.sliding_window_view(x, tuple(kernel), axes)
    found = found[:, :, *(slice(None, None, step) for step in stride)]
    return found.reshape(*found.shape[: x.ndim], -1)


def max_pool(x: Array, kernel: Any, stride: Any, padding: Any) -> Array:
    return windows(x, kernel, stride, padding, -np.inf).max(-1)


def mean_pool(x: Array, kernel: Any, stride: Any, padding: Any) -> Array:
    return windows(x, kernel, stride, padding, 0.0).mean(-1)


def group_norm(x: Array, weight: Array | None, bias: Array | None, groups: int, eps: float) -> Array:
    parts = x.reshape(x.shape[0], groups, -1)
    centred = parts - parts.mean(-1, keepdims=True)
    out = (centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)).reshape(x.shape)
    along = (-1, *[1] * (x.ndim - 2))
    out = out if weight is None else out * weight.reshape(along)
    return out if bias is None else out + bias.reshape(along)


def fft(x: Array, axis: Any) -> Array:
    return np.fft.fftn(x, axes=np.atleast_1d(axis)).real


def pad(x: Array, axis: int, before: int, after: int, value: Any) -> Array:
    around = [(0, 0)] * x.ndim
    around[axis] = (before, after)
    return np.pad(x, around, constant_values=value)


def layer_norm(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    scale = weight if weight is not None else bias
    axes = tuple(range(-scale.ndim, 0)) if scale is not None else -1
    centred = x - x.mean(axes, keepdims=True)
    out = centred / np.sqrt((centred**2).mean(axes, keepdims=True) + eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def embedding(ids: Array, table: Array) -> Array:
    return table[inside(ids, len(table))]


def gather(x: Array, index: Array, axis: int) -> Array:
    return np.take_along_axis(x, inside(index, x.shape[axis]), axis)


def inside(index: Array, size: int) -> Array:
    """numpy would count negative indices from the end; the language has no such ids."""
    assert index.min() >= 0 and index.max() < size
    return index


def expand(x: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(x, shape)


def split(x: Array, sizes: tuple[int, ...], axis: int) -> list[Array]:
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def slice_(x: Array, axis: int, start: int, stop: int | None, step: int) -> Array:
    return np.moveaxis(np.moveaxis(x, axis, 0)[start:stop:step], 0, axis)


OPS: dict[str, Callable[..., Any]] = {
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "floor": lambda x: np.floor(x).astype(np.int64),
    "real": lambda x: x.astype(np.float64),
    "float32": lambda x: x.astype(np.float64),
    "int": lambda x: x.astype(np.int64),
    "not": np.logical_not,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "pow": np.power,
    "min": np.minimum,
    "max": np.maximum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "where": np.where,
    "dropout": lambda x, rate: x,
    "detach": lambda x: x,
    "lowest": lambda x: np.finfo(x.dtype).min,
    "sum": lambda x, axis, keep: x.sum(axis, keepdims=keep),
    "amax": lambda x, axis, keep: x.max(axis, keepdims=keep),
    "softmax": softmax,
    "cumsum": np.cumsum,
    "topk": topk,
    "argmax": lambda x, axis, keep: x.argmax(axis, keepdims=keep),
    "fft": fft,
    "matmul": np.matmul,
    "forward_substitution": forward_substitution,
    "linear": linear,
    "expert_linear": expert_linear,
    "conv": conv,
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "embedding": embedding,
    "gather": gather,
    "one_hot": lambda ids, count: (ids[..., None] == np.arange(count)).astype(np.int64),
    "max_pool": max_pool,
    "mean_pool": mean_pool,
    "reshape": lambda x, shape: x.reshape(shape),
    "transpose": lambda x, a, b: np.swapaxes(x, a, b),
    "permute": lambda x, order: np.transpose(x, order),
    "expand": expand,
    "concat": lambda *tensors, axis: np.concatenate(tensors, axis),
    "stack": lambda *tensors, axis: np.stack(tensors, axis),
    "split": split,
    "slice": slice_,
    "pick": lambda x, axis, index: x.take(index, axis),
    "pad": pad,
    "roll": lambda x, shift, axis: np.roll(x, shift, axis),
    "arange": lambda stop: np.arange(stop, dtype=np.int64),
    "full": lambda shape, value: np.full(shape, value),
    "table": lambda values: np.array(values),
}
"""Every operation by name, called with the operands in order and the hyperparameters by name."""


# Recorded tensors ---------------------------------------------------------------------------------------------------


def read_safetensors(path: Path) -> dict[str, Array]:
    """The tensors of a file: the length of a JSON header as 8 bytes, the header, the numbers (all little-endian)."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    formats = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "BOOL": "?"}
    tensors: dict[str, Array] = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        numbers = np.frombuffer(data[start + first : start + last], formats[entry["dtype"]])
        tensors[name] = numbers.reshape(entry["shape"])
    return tensors
