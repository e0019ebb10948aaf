"""Lifting: the counterparts of single operations of PyTorch, as they are written, have the values of these."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from builders import builder, given, text

torch = pytest.importorskip("torch")

from archspec.core.algebra import symbol
from archspec.ir.module import Type
from archspec.pytorch.calls.complex import ComplexValue, Pairs, call_complex, has_complex
from archspec.pytorch.calls.registry import CALLS
from archspec.pytorch.calls.rows import convert
from archspec.pytorch.numeric.evaluate import Evaluation
from archspec.pytorch.values.arguments import UntranslatableError, as_list
from archspec.pytorch.values.values import Value

ATEN = torch.ops.aten
GENERATOR = torch.Generator().manual_seed(0)
LONG = 29
"""The length of an axis that may have any size, and of axes that depend on it."""

SEQ = symbol("seq")
SIZES = {
    LONG // 2: SEQ // 2,
    LONG: SEQ,
    LONG + 2: SEQ + 2,
    LONG - 2: SEQ - 2,
    LONG - 1: SEQ - 1,
    LONG + 1: SEQ + 1,
    2 * LONG: 2 * SEQ,
}


def r(*shape: int) -> Any:
    return torch.randn(shape, generator=GENERATOR)


def n(*numbers: Any) -> Any:
    return torch.tensor(numbers)


class Direct:
    """Calls of handlers with tensors, which are inputs."""

    def __init__(self) -> None:
        self.b = builder()
        self.stored: dict[tuple[str, str], Any] = {}

    def call(self, operation: Any, *args: Any, **named: Any) -> tuple[list[Any], list[Any]]:
        """Return the results of PyTorch, and those of the counterpart; arguments may be calls."""
        pairs = [self.argument(arg) for arg in args]
        expected = as_list(operation(*[tensor for tensor, _ in pairs], **named))
        types = [Type(tuple(map(sized, x.shape)), dtype_of(x)) for x in expected]
        name, values = operation._schema.name.rpartition("::")[2], [value for _, value in pairs]
        row = CALLS.get(name)
        if has_complex(values) or types[0].dtype == "complex":
            return expected, as_list(call_complex(name, row, self.b, types, *values, **named))
        if row is None:
            raise UntranslatableError("no row")
        results = row(self.b, types, *values, **named)
        made = [convert(self.b, results, types[0].dtype)] if isinstance(results, Value) else [*results]
        return expected, made

    def argument(self, item: Any) -> tuple[Any, Any]:
        if isinstance(item, tuple) and isinstance(item[0], torch._ops.OpOverload):
            *args, named = item if isinstance(item[-1], dict) else (*item, {})
            tensors, values = self.call(*args, **named)
            return tensors[0], values[0]
        if isinstance(item, list):
            pairs = [self.argument(part) for part in item]
            return [tensor for tensor, _ in pairs], [value for _, value in pairs]
        if isinstance(item, torch.Tensor):
            return item, self.given(item)
        return item, sized(item)

    def given(self, item: Any) -> Any:
        if item.is_complex():
            return ComplexValue(self.given(item.real), self.given(item.imag))
        name = "xyzuvwabcdefgh"[len(self.stored)]
        self.stored["input", name] = item
        return given(self.b, name, tuple(map(sized, item.shape)), dtype_of(item))

    def value(self, found: Any) -> Any:
        if isinstance(found, ComplexValue):
            return torch.complex(self.value(found.real), self.value(found.imaginary))
        return Evaluation(self.b.arrays, self.stored, {"seq": LONG}).array(self.b.written(found).array)

    def text(self, found: Any) -> str:
        if isinstance(found, ComplexValue):
            return f"{self.text(found.real)} + {self.text(found.imaginary)} i"
        return text(self.b.written(found)) if isinstance(found, Value) else str(found)


def sized(size: Any) -> Any:
    return SIZES.get(size, size) if isinstance(size, int) and not isinstance(size, bool) else size


def dtype_of(x: Any) -> str:
    return {torch.bool: "bool", torch.int64: "int", torch.complex64: "complex"}.get(x.dtype, "real")


def shown(item: Any) -> str:
    """Return how an argument is shown in the golden file."""
    if isinstance(item, tuple) and isinstance(item[0], torch._ops.OpOverload):
        return called(item)
    if isinstance(item, list):
        return f"[{', '.join(map(shown, item))}]"
    if not isinstance(item, torch.Tensor):
        return str(item)
    kind = dtype_of(item)
    return ("" if kind == "real" else f"{kind} ") + f"[{', '.join([str(sized(size)) for size in item.shape])}]"


def called(case: Sequence[Any]) -> str:
    args = [", ".join([f"{key}={item}" for key, item in arg.items()]) if isinstance(arg, dict) else shown(arg)
            for arg in case[1:]]  # fmt: skip
    return f"{case[0]._schema.name.rpartition('::')[2]}({', '.join(args)})"


def line(case: Sequence[Any]) -> str:
    """Return a call and its counterpart, or the reason for which it is refused, after a comparison of the values."""
    *args, named = case if isinstance(case[-1], dict) else (*case, {})
    direct = Direct()
    try:
        expected, found = direct.call(*args, **named)
    except UntranslatableError as problem:
        return f"{called(case)} ! {problem}"
    except (TypeError, ValueError, IndexError, AttributeError) as problem:
        return f"{called(case)} ! {type(problem).__name__}"
    for value, tensor in zip(found, expected, strict=True):
        if value is not None and not isinstance(value, Pairs) and getattr(value, "imaginary", 1) is not None:
            torch.testing.assert_close(direct.value(value).to(tensor.dtype), tensor, atol=2e-5, rtol=1e-5)
    return f"{called(case)} = {'; '.join(map(direct.text, found))}"


BELOW = n([0, -2, 1], [-1, 2, -3])
FLAGS = n([True, False, False], [True, True, True])
TURNED = FLAGS.flip(1)
SMALL = n([0.5, 0.0, -0.25], [0.0, 0.0, 0.0])
HALVES = n(-2.5, -0.5, 0.0, 0.5, 1.5)
NOT = ATEN.logical_not.default
BOTH_WAYS = [r(*shape) * 0.5 for shape in [(12, 2), (12, 3), (12,), (12,)] * 2]
DEEP = [r(*shape) * 0.5 for shape in ((12, 2), (12, 3), (12, 3), (12, 3))]

CASES: dict[str, list[tuple[Any, ...]]] = {
    "elementwise": [
        *[(of.Tensor, FLAGS, TURNED) for of in (ATEN.add, ATEN.mul, ATEN.eq)],
        *[(of.default, FLAGS, TURNED) for of in (ATEN.maximum, ATEN.minimum, ATEN.logical_xor)],
        *[(of.Tensor, FLAGS, BELOW) for of in (ATEN.add, ATEN.mul, ATEN.lt, ATEN.bitwise_and)],
        *[(of.Scalar, FLAGS, True) for of in (ATEN.add, ATEN.eq)],
        (ATEN.mul.Tensor, FLAGS, SMALL),
        (ATEN.add.Tensor, BELOW, SMALL, {"alpha": 3}),
        (ATEN.add.Tensor, FLAGS, BELOW, {"alpha": 2}),
        (ATEN.add.Scalar, SMALL, 2, 3),
        (ATEN.sub.Tensor, BELOW, BELOW.flip(0), {"alpha": -2}),
        (ATEN.rsub.Scalar, SMALL, 2.0, 3.0),
        (ATEN.rsub.Tensor, BELOW, SMALL),
        (ATEN.remainder.Tensor, BELOW, n(2, -2, 3)),
        (ATEN.pow.Scalar, 2.0, HALVES),
        (ATEN.sqrt.default, FLAGS),
        *[(of.default, BELOW) for of in (ATEN.neg, ATEN.abs, ATEN.floor, ATEN.ceil, ATEN.sign, ATEN.relu)],
        *[(of.default, HALVES) for of in (ATEN.ceil, ATEN.sign)],
        (ATEN.gt.Scalar, BELOW, 0),
        (ATEN.logical_and.default, BELOW, SMALL),
        (ATEN.logical_or.default, FLAGS, SMALL),
        (NOT, BELOW),
        *[
            (ATEN.div.Tensor_mode, x, n(2.0, -2.0, 3.0), {"rounding_mode": mode})
            for x in (BELOW, SMALL)
            for mode in (None, "floor", "trunc")
        ],
        (ATEN.div.Tensor, BELOW, n(2, -2, 3)),
        (ATEN.rsqrt.default, HALVES.abs() + 1),
        (ATEN.reciprocal.default, HALVES + 1.25),
        (ATEN.gelu.default, HALVES),
        (ATEN.gelu.default, HALVES, {"approximate": "tanh"}),
        (ATEN.where.self, FLAGS, BELOW, SMALL),
        (ATEN.where.ScalarOther, (NOT, FLAGS), BELOW, 2.5),
        (ATEN.where.self, (ATEN.t.default, (NOT, FLAGS)), BELOW.mT, SMALL.mT),
        (ATEN.masked_fill.Scalar, BELOW, FLAGS, 7),
        (ATEN.masked_fill.Scalar, SMALL, (NOT, FLAGS), 7),
        (ATEN.clamp.default, HALVES, None, 0.25),
        (ATEN.clamp.default, BELOW, -1),
        (ATEN.clamp.default, BELOW, -1, 1.5),
        (ATEN.clamp.Tensor, HALVES, -HALVES.abs() + 1, HALVES.abs()),
        (ATEN.clamp_max.default, HALVES, 0.25),
        (ATEN._to_copy.default, SMALL, {"dtype": torch.bool}),
        (ATEN._to_copy.default, BELOW, {"dtype": torch.bool}),
        (ATEN._to_copy.default, FLAGS, {"dtype": torch.float32}),
        (ATEN._to_copy.default, (ATEN._to_copy.default, FLAGS, {"dtype": torch.int64}), {"dtype": torch.bool}),
        (ATEN._to_copy.default, (ATEN.where.self, FLAGS, n(2.0), n(0.0)), {"dtype": torch.bool}),
        (ATEN._to_copy.default, (ATEN.mul.Scalar, FLAGS, 0), {"dtype": torch.bool}),
        (ATEN.type_as.default, BELOW, HALVES),
        (ATEN.dropout.default, HALVES, 0.5, False),
    ],
    "functions": [
        *[(of.default, HALVES * 3) for of in (ATEN.relu6, ATEN.selu, ATEN.hardswish, ATEN.hardsigmoid, ATEN.silu)],
        (ATEN.elu.default, HALVES, 0.5, 2.0, 3.0),
        (ATEN.hardtanh.default, HALVES * 3, -0.5, 2.5),
        (ATEN.leaky_relu.default, HALVES),
        (ATEN.celu.default, HALVES, 2.0),
        (ATEN.softplus.default, HALVES * 3),
        (ATEN.softplus.default, HALVES * 3, 0.5, 1.0),
        (ATEN.logit.default, HALVES.sigmoid()),
        (ATEN.log1p.default, BELOW + 4),
        (ATEN.isinf.default, HALVES),
        *[(ATEN.trunc.default, x) for x in (HALVES, BELOW)],
        (ATEN.glu.default, r(4, 6)),
        (ATEN.glu.default, r(4, 6), 0),
        (ATEN.prelu.default, r(2, 3, 4), r(3)),
        (ATEN.prelu.default, r(2, 1, 4), r(1)),
        (ATEN.prelu.default, r(2, 3), r(1)[0]),
        (ATEN.threshold.default, BELOW, 1, 5),
        (ATEN.lerp.Tensor, HALVES, r(5), r(5)),
        (ATEN.lerp.Scalar, HALVES, r(5), 0.25),
        *[
            (of.default, SMALL, r(2, 3), r(2, 3), *more)
            for of in (ATEN.addcmul, ATEN.addcdiv)
            for more in ((), ({"value": -2.0},))
        ],
        (ATEN.fmod.Tensor, HALVES, n(1.0, -2.0, 0.5, 0.75, -1.0)),
        (ATEN.fmod.Tensor, BELOW, n(2, -2, 3)),
        (ATEN.bitwise_xor.Tensor, FLAGS, BELOW),
        (ATEN.fill.Scalar, HALVES, 3),
        (ATEN.fill.Tensor, BELOW, n(2.5)[0]),
        (ATEN.copy.default, HALVES, n(2)),
    ],
    "reductions": [
        *[
            (ATEN.sum.dim_IntList, r(2, 3, 4), axes, *keep)
            for axes, keep in (([0], ()), ([-1], (True,)), ([0, -1], ()), ([], ()), ([2, 1], (True,)))
        ],
        *[
            (ATEN.mean.dim, r(2, 3, 4), axes, *keep)
            for axes, keep in (([0], ()), ([-1], (True,)), ([], ()), ([2, 1], ()))
        ],
        (ATEN.mean.default, r(2, 3)),
        (ATEN.sum.default, FLAGS),
        (ATEN.sum.dim_IntList, FLAGS, [1], True),
        (ATEN.sum.dim_IntList, BELOW, [0], {"dtype": torch.float32}),
        (ATEN.sum.dim_IntList, SMALL, [0], {"dtype": torch.int64}),
        (ATEN.sum.dim_IntList, r(2, LONG), [1]),
        (ATEN.mean.dim, r(2, LONG, 3), [1, 2]),
        (ATEN.amax.default, r(3, 4), [], True),
        (ATEN.amin.default, r(3, 4), [0, 1]),
        (ATEN.cumsum.default, FLAGS, 1),
        (ATEN.cumsum.default, r(2, 3), 0),
        (ATEN.argmax.default, BELOW, -1),
        (ATEN.argmax.default, BELOW, 0, True),
        (ATEN.argmin.default, BELOW, 0, True),
        *[
            (of.dim, x, axis, keep)
            for of in (ATEN.any, ATEN.all)
            for x, axis, keep in ((SMALL, 0, False), (BELOW, -1, True), (FLAGS, 1, False))
        ],
        *[(of.default, x) for of in (ATEN.any, ATEN.all) for x in (SMALL, FLAGS)],
        *[(of.dim, r(3, 4), axis, keep) for of in (ATEN.max, ATEN.min) for axis, keep in ((0, False), (-2, True))],
        *[(of.default, BELOW) for of in (ATEN.max, ATEN.min)],
        *[(of.other, BELOW, BELOW.flip(0)) for of in (ATEN.max, ATEN.min)],
        (ATEN.topk.default, r(5, 3), 2, 0),
        (ATEN.topk.default, r(5, 3), 1, 1),
        (ATEN.topk.default, r(5, 3), 2, -1, False),
        (ATEN.sort.default, r(3, 4)),
        (ATEN.sort.default, r(3, 4), 0, True),
        (ATEN.sort.stable, r(3, 4), {"stable": True, "dim": 0}),
        (ATEN.argsort.default, r(3, 4), 0, True),
        (ATEN.argsort.stable, r(3, 4), {"stable": True}),
        (ATEN.var.default, r(3, 4)),
        (ATEN.var.default, r(3, 4), False),
        (ATEN.var.dim, r(3, 4), [0]),
        (ATEN.std.dim, r(3, 4), [1], False, True),
        (ATEN.var.correction, r(3, 4), [0], {"correction": 2}),
        (ATEN.var.correction, r(3, 4), [0], {"correction": 0.5}),
        (ATEN.var.correction, r(3, LONG), [1], {"correction": 2.0}),
        (ATEN.var_mean.correction, r(3, 4), [1], {"correction": 0, "keepdim": True}),
        (ATEN.std_mean.correction, r(3, 4), None, {"correction": None}),
        (ATEN.linalg_vector_norm.default, r(3, 4)),
        (ATEN.linalg_vector_norm.default, r(3, 4), 3, [0], True),
        (ATEN.linalg_vector_norm.default, r(3, 4), 1, [1]),
        (ATEN.linalg_vector_norm.default, r(3, 4), float("inf"), [1], True),
        (ATEN.linalg_vector_norm.default, r(3, 4), -float("inf"), [1]),
        (ATEN.linalg_vector_norm.default, r(3, 4), 0, [1]),
        (ATEN.norm.ScalarOpt_dim, r(3, 4), None, [0]),
        (ATEN.logsumexp.default, r(3, 4), [0, 1], True),
        (ATEN.logsumexp.default, r(3, 4), [0]),
        (ATEN._log_softmax.default, r(3, 4), 0, False),
        (ATEN._softmax.default, r(3, 4), 0, False),
        (ATEN._softmax.default, r(3, 4), -1, False),
        (ATEN.prod.dim_int, r(2, 3), 0, True),
        (ATEN.prod.dim_int, r(2, 3), -1),
        (ATEN.prod.default, r(3)),
        (ATEN.cosine_similarity.default, r(3, 4), r(3, 4), 0),
        (ATEN.cosine_similarity.default, r(3, 4), r(3, 4)),
        (ATEN.cosine_similarity.default, r(3, 4) * 1e-3, r(3, 4), -1, 0.5),
        *[(ATEN.isin.Tensor_Tensor, BELOW, n(1, -3), *more) for more in ((), ({"invert": True},))],
        *[(ATEN.bucketize.Tensor, HALVES, n(-0.5, 0.5), *more) for more in ((), ({"right": True},))],
        *[(ATEN.searchsorted.Tensor, n(-0.5, 0.5), HALVES, *more) for more in ((), ({"right": True},))],
    ],
    "arranged": [
        (ATEN.t.default, r(3)),
        (ATEN.t.default, r(3, 2)),
        (ATEN.transpose.int, r(2, 3, 4), 0, -1),
        (ATEN.permute.default, r(2, 3, 4), [-1, 0, 1]),
        (ATEN.squeeze.dims, r(2, 1, 3, 1), [1]),
        (ATEN.expand.default, r(2, 1), [4, -1, 3]),
        (ATEN.slice.Tensor, r(5, 7), 1, -9, 4),
        (ATEN.slice.Tensor, r(5, 7), -1, -3),
        (ATEN.slice.Tensor, r(5, 7), 0, 1, 99, 2),
        (ATEN.slice.Tensor, r(5, 7), 0, None, 4, 3),
        (ATEN.slice.Tensor, r(5)),
        (ATEN.slice.Tensor, r(2, 5, 7), 1, 2, 4),
        (ATEN.slice.Tensor, r(2, 5, 7), 2, 1),
        (ATEN.slice.Tensor, r(2, LONG, 7), 1, 1),
        (ATEN.slice.Tensor, r(2, LONG, 7), 1, 0, -2),
        (ATEN.slice.Tensor, r(2, LONG + 2), 1, 0, LONG),
        (ATEN.slice.Tensor, r(2, LONG), 1, 1, 2**63 - 1, 2),
        (ATEN.slice.Tensor, r(2, LONG), 1, 1, 4, 2),
        (ATEN.narrow.default, r(5, 7), 1, 2, 3),
        (ATEN.select.int, r(2, 3), -1, -2),
        (ATEN.select.int, r(2, 3, 4), 1, 0),
        (ATEN.select.int, r(2, 3, 4), 1, 1),
        (ATEN.select.int, r(2, 3, 4), 0, 0),
        (ATEN.select.int, r(2, 3, 4), 2, 0),
        (ATEN.select.int, r(2, 3, 4, 5), 1, 0),
        (ATEN.select.int, n([[1, 2], [3, 4]]), 1, 0),
        (ATEN.cat.default, [r(0), r(2, 3), r(2, 1)], -1),
        (ATEN.cat.default, [r(0), r(2, 3)]),
        (ATEN.cat.default, [r(2, 3, 4), r(2, 1, 4)], 1),
        (ATEN.cat.default, [r(2, LONG), r(2, 2)], 1),
        (ATEN.stack.default, [r(2, 3), r(2, 3)], -1),
        (ATEN.stack.default, [BELOW, BELOW + 1]),
        (ATEN.split.Tensor, r(5, 3), 2),
        (ATEN.split.Tensor, r(5, 3), 5),
        (ATEN.split_with_sizes.default, r(3, 5), [1, 4], -1),
        (ATEN.split_with_sizes.default, r(2, 3, 5), [1, 4], 2),
        (ATEN.unbind.int, r(3, 4)),
        (ATEN.unbind.int, r(3, 4), -1),
        (ATEN.repeat.default, r(2, 3), [4, 1, 2]),
        (ATEN.tile.default, r(2, 3), [2]),
        (ATEN.repeat_interleave.self_int, r(2, 3), 3, -1),
        (ATEN.repeat_interleave.self_int, r(2, 3), 3, 0),
        (ATEN.flip.default, r(2, 3, 4), [0, -1]),
        (ATEN.roll.default, r(3, 4), [1, -2], [1, 0]),
        (ATEN.roll.default, r(3, 4), [1], [-1]),
        (ATEN.index_select.default, r(4, 5), -1, n(3, 0, 3)),
        (ATEN.gather.default, r(4, 5), -1, n(*[[3, 0]] * 4)),
        (ATEN.embedding.default, r(4, 5), n([3], [0])),
        (ATEN.embedding.default, r(4, 5), (ATEN.unsqueeze.default, (ATEN.arange.default, 3), 0)),
        (ATEN.unfold.default, r(2, 9, 3), -2, 4, 2),
        (ATEN.unfold.default, r(9), 0, 2, 1),
        (ATEN.im2col.default, r(2, 3, 6, 7), [2, 3], [2, 1], [1, 0], [1, 2]),
        (ATEN.im2col.default, r(1, 2, 7, 6), [3, 2], [1, 3], [0, 2], [2, 1]),
        (ATEN.pixel_shuffle.default, r(12, 2, 3), 2),
        (ATEN.pixel_shuffle.default, r(2, 9, 2, 3), 3),
        (ATEN.pixel_unshuffle.default, r(3, 4, 6), 2),
        (ATEN.movedim.int, r(2, 3, 4), 0, -1),
        (ATEN.movedim.intlist, r(2, 3, 4), [-1, 0], [0, 1]),
        (ATEN.diagonal.default, r(4, 3)),
        (ATEN.diagonal.default, r(2, 4, 5), 1, -1, 1),
        (ATEN.diagonal.default, r(2, 4, 5), -2, 1, 2),
        (ATEN.diff.default, r(3, 5)),
        (ATEN.diff.default, r(3, 5), 1, 0, r(1, 5), r(2, 5)),
        (ATEN.diff.default, r(3, 5), 1, -1, None, r(3, 2)),
        (ATEN.meshgrid.default, [r(2), r(3), r(4)]),
        (ATEN.meshgrid.indexing, [r(2), r(3), r(4)], {"indexing": "xy"}),
        (ATEN.meshgrid.indexing, [r(2)], {"indexing": "ij"}),
    ],
    "indices": [
        (ATEN.index.Tensor, r(4, 3), [n(2, 0)]),
        (ATEN.index.Tensor, r(4, 3), [(ATEN.sub.Scalar, n(2, 0), 1)]),
        (ATEN.index.Tensor, r(4, 3), [n([2], [1])]),
        (ATEN.index.Tensor, r(4, 3), [(ATEN.arange.default, 3)]),
        (ATEN.index.Tensor, r(4, 3), [(ATEN.arange.start, 1, 3)]),
        (ATEN.index.Tensor, r(4, 3), [None, (ATEN.full.default, [1], 2)]),
        (ATEN.index.Tensor, r(4, 3), [None, (ATEN.full.default, [1], 0)]),
        (ATEN.index.Tensor, r(4, 3), [(ATEN.full.default, [1], -1)]),
        (ATEN.index.Tensor, r(2, 4, 3), [None, (ATEN.full.default, [1], -1)]),
        (ATEN.index.Tensor, r(4, 5, 3), [None, n([1, 4])]),
        (ATEN.index.Tensor, r(4, 5, 3), [None, None, n(2)]),
        (ATEN.index.Tensor, r(4, 5, 3), [n(3, 0), None, n([2], [1])]),
        (ATEN.index.Tensor, r(4, 5, 3), [n(3, 0), n([2], [1])]),
        (ATEN.index.Tensor, r(2, 5, 3), [(ATEN.arange.default, 2), n(4, 1)]),
        (ATEN.index.Tensor, r(2, 5, 3, 4), [(ATEN.arange.default, 2), n(4, 1)]),
        (ATEN.index.Tensor, r(2, 5, 3), [(ATEN.unsqueeze.default, (ATEN.arange.default, 2), 1), n([4, 1], [0, 2])]),
        (ATEN.index.Tensor, r(2, 5), [(ATEN.unsqueeze.default, (ATEN.arange.default, 2), 1), n([4, 1], [0, 2])]),
        (ATEN.index.Tensor, r(2, 5), [(ATEN.arange.default, 2), n(4, 1)]),
        (ATEN.index.Tensor, r(2, 3), [(ATEN.unsqueeze.default, (ATEN.arange.default, 2), 1), (ATEN.arange.default, 3)]),
        (ATEN.index.Tensor, r(2, 3), [(ATEN.arange.default, 2), (ATEN.unsqueeze.default, (ATEN.arange.default, 3), 1)]),
        (ATEN.index.Tensor, BELOW, [n(1, 0)]),
        (ATEN.index.Tensor, BELOW, [None, n(1, 0)]),
        (ATEN.index.Tensor, BELOW, [n(1, 0), n(1, 2)]),
        (ATEN.index.Tensor, r(3, 4), [n(True, False, True)]),
    ],
    "replaced": [
        *[
            (of.default, x, *by)
            for of in (ATEN.triu, ATEN.tril)
            for x, by in ((BELOW, (1,)), (FLAGS, ()), (r(2, 4, 5), (-1,)))
        ],
        (ATEN.constant_pad_nd.default, r(3, 4), [1, 2, 0, 3], 0.5),
        (ATEN.constant_pad_nd.default, BELOW, [-1, 2], 2.0),
        (ATEN.constant_pad_nd.default, BELOW, [1, -2, -1, 0]),
        (ATEN.constant_pad_nd.default, FLAGS, [0, 1], 1),
        (ATEN.constant_pad_nd.default, FLAGS, [1, 0]),
        (ATEN.constant_pad_nd.default, r(3, 4), [0, 0, 0, 1]),
        (ATEN.pad.default, r(2, 3, 4), [2, 1], "circular"),
        (ATEN.pad.default, r(2, 3, 4), [0, 1], "constant", 2.0),
        (ATEN.reflection_pad1d.default, r(2, 5), [1, 3]),
        (ATEN.reflection_pad2d.default, r(2, 4, 5), [0, 2, 3, 1]),
        (ATEN.replication_pad2d.default, r(2, 4, 5), [0, 2, 3, 1]),
        (ATEN.replication_pad1d.default, r(2, 5), [0, 0]),
        (ATEN.replication_pad1d.default, r(2, LONG), [0, 2]),
        (ATEN.replication_pad1d.default, r(2, LONG - 2), [2, LONG]),
        (ATEN.replication_pad1d.default, r(2, 2), [LONG - 2, 0]),
        (ATEN.replication_pad1d.default, r(2, 2), [0, LONG - 2]),
        (ATEN.slice_scatter.default, r(3, 6), r(3, 2), -1, -4, -2),
        (ATEN.slice_scatter.default, r(3, 6), r(1, 6), 0, 2),
        (ATEN.slice_scatter.default, r(3, 6), r(3, 6), 1),
        (ATEN.slice_scatter.default, r(3, 6), r(3, 6).long(), 1),
        (ATEN.slice_scatter.default, r(3, LONG), r(3, LONG - 1), 1, 1),
        (ATEN.slice_scatter.default, r(4, 6), r(2, 6), 0, 1, 4, 2),
        (ATEN.slice_scatter.default, r(3, 6), r(3, 2), 1, 0, 6, 3),
        (ATEN.slice_scatter.default, r(3, 6), r(3, 2), 1, 2, 6, 3),
        (ATEN.slice_scatter.default, r(3, 7), r(3, 3), 1, 1, 7, 2),
        (ATEN.slice_scatter.default, r(3, 6), r(3, 1), 1, 4, 6, 3),
        (ATEN.slice_scatter.default, (ATEN.cat.default, [r(3, 2), r(3, 4)], 1), r(3, 4), 1, 2),
        (ATEN.slice_scatter.default, (ATEN.cat.default, [r(3, 2), r(3, 4), r(3, 1)], -1), r(3, 4), 1, 2, 6),
        (ATEN.slice_scatter.default, (ATEN.cat.default, [r(3, 2), r(3, 4)], 1), r(3, 3), 1, 2, 5),
        (ATEN.slice_scatter.default, (ATEN.cat.default, [r(2, 3), r(2, 3)], 0), r(4, 2), 1, 1),
        (ATEN.select_scatter.default, r(3, 4), r(4), 0, 2),
        (ATEN.select_scatter.default, r(3, 4), r(3), -1, -1),
        (ATEN.index_copy.default, r(5, 3), 0, (ATEN.arange.start, 1, 3), r(2, 3)),
        (ATEN.scatter.value, BELOW, 1, n([2, 2], [0, 1]), 9),
        (ATEN.scatter.value, SMALL, 0, n([1, 1, 1]), 2),
        (ATEN.scatter.value, r(2, 3, 4), 1, n([[2, 2, 0, 1]], [[0, 1, 1, 2]]), 1.5),
        (ATEN.scatter.value, FLAGS, 1, n([2], [0]), True),
        (ATEN.scatter.src, SMALL, 1, n([2], [0]), (ATEN.full.default, [2, 1], 3.0)),
        (ATEN.index_put.default, r(4, 3), [n(True, False, True, False)], r(3)),
        (ATEN.index_put.default, r(4, 3), [n(True, False, True, False)], n(2.0)[0]),
        (ATEN.index_put.default, r(4, 3), [n(3, 0), n(0, 1)], n(5.0)[0]),
        (
            ATEN.index_put.default,
            r(2, 3),
            [(ATEN.arange.default, 2), (ATEN.sub.Scalar, n(1, 0), 1)],
            (ATEN.full.default, [], 5.0),
        ),
        (ATEN.index_put.default, r(2, 3), [(ATEN.arange.default, 2), (ATEN.sub.Scalar, n(1, 0), 1)], n(5.0)[0]),
        (ATEN.index_put.default, r(4, 3), [(ATEN.arange.start, 1, 3)], r(2, 3)),
        (ATEN.index_put.default, r(4, 3), [(ATEN.arange.start, 1, 3)], r(3)),
        (ATEN.masked_scatter.default, r(4, 3), n([True], [False], [True], [True]), r(5, 3)),
        (ATEN.masked_scatter.default, r(2, 4, 3), n([True], [False], [True], [True]), r(7, 3)),
    ],
    "made": [
        (ATEN.arange.default, 5),
        (ATEN.arange.default, LONG),
        (ATEN.arange.start, 2, 6),
        (ATEN.arange.start_step, 7, 1, -2),
        (ATEN.arange.start_step, 0, 6, 2, {"dtype": torch.float32}),
        (ATEN.arange.start_step, 0.5, 3.0, 0.25),
        (ATEN.arange.start_step, 0.5, 3.0, 0.2),
        (ATEN.arange.start_step, 0, 3.0, 1.0),
        (ATEN.arange.start_step, 6, -6, -1.0, {"dtype": torch.long}),
        (ATEN.full.default, [2, 3], 2.5),
        (ATEN.full.default, [2], True),
        (ATEN.full.default, [2, 3], 2.0, {"dtype": torch.int64}),
        (ATEN.full_like.default, BELOW, 3.0),
        (ATEN.new_full.default, BELOW, [4], 2),
        (ATEN.new_ones.default, SMALL, [2, 2]),
        (ATEN.zeros_like.default, FLAGS),
        (ATEN.scalar_tensor.default, 2.5),
        (ATEN.linspace.default, -1.0, 2.0, 4),
        (ATEN.linspace.default, 0.0, 2.0, 3),
        (ATEN.linspace.default, -1.0, 2.0, 1),
        (ATEN.eye.default, 3),
        (ATEN.eye.m, 2, 3),
        (ATEN.one_hot.default, n(2, 0), 4),
    ],
    "products": [
        (ATEN.linear.default, r(2, 3), r(3)),
        (ATEN.linear.default, r(2, 3), r(4, 3), r(4)),
        (ATEN.linear.default, r(5, 2, 3), r(4, 3)),
        (ATEN.matmul.default, r(3), r(3)),
        (ATEN.matmul.default, r(2, 3), r(3)),
        (ATEN.matmul.default, r(3), r(3, 2)),
        (ATEN.matmul.default, r(2, 1), r(1, 4)),
        (ATEN.matmul.default, r(5, 1, 2, 3), r(4, 3, 6)),
        (ATEN.addmm.default, r(4), r(2, 3), r(3, 4)),
        (ATEN.addmm.default, r(4), r(2, 3), r(3, 4), {"beta": 2}),
        (ATEN.addmm.default, r(4), (ATEN.view.default, r(2, 5, 3), [10, 3]), r(3, 4)),
        *[
            (ATEN.baddbmm.default, r(2, 3, 5), r(2, 3, 4), r(2, 4, 5), *more)
            for more in ((), ({"beta": 2},), ({"beta": 0.5, "alpha": 3.0},))
        ],
        (ATEN.bilinear.default, r(2, 3), r(2, 4), r(5, 3, 4), r(5)),
        (ATEN.bilinear.default, r(2, 3), r(2, 4), r(5, 3, 4), None),
        (ATEN.outer.default, r(3), r(4)),
        (ATEN.dot.default, r(3), r(3)),
        (ATEN.einsum.default, "bi,bj", [r(2, 3), r(2, 4)]),
        (ATEN.einsum.default, "...ij,jk->...ki", [r(5, 2, 3), r(3, 4)]),
        (ATEN.einsum.default, "ij->ji", [r(2, 3)]),
        (ATEN.einsum.default, "ij->", [r(2, 3)]),
        (ATEN.einsum.default, "ijk->j", [r(2, 3, 4)]),
        (ATEN.einsum.default, "ii->i", [r(3, 3)]),
        (ATEN.einsum.default, "ijik->jki", [r(3, 2, 3, 4)]),
        (ATEN.einsum.default, "ij,kj,lm->ikl", [r(2, 3), r(4, 3), r(5, 6)]),
        (ATEN.einsum.default, "ij,kj->jik", [r(2, 3), r(4, 3)]),
        (ATEN.einsum.default, "ij,jk,kl->il", [r(2, 3), r(3, 4), r(4, 5)]),
        (ATEN.einsum.default, "ijl,jk->ilk", [r(2, 3, 5), r(3, 4)]),
        (ATEN.einsum.default, "bijl,bjk->bilk", [r(2, 3, 4, 5), r(2, 4, 6)]),
        (ATEN.einsum.default, "bhqd,bhkd->bhqk", [r(2, 3, 4, 5), r(2, 3, 6, 5)]),
        (ATEN.einsum.default, "ijk,jk->i", [r(2, 3, 4), r(3, 4)]),
        (ATEN.einsum.default, "ij,j->i", [r(2, 3), r(3)]),
        (ATEN.einsum.default, "ij,k->kij", [r(2, 3), r(4)]),
        *[
            (ATEN.linalg_solve_triangular.default, r(2, 3, 3), r(2, 3, 4), {"upper": upper, "unitriangular": True})
            for upper in (False, True)
        ],
        (ATEN.scaled_dot_product_attention.default, r(2, 3, 8), r(2, 5, 8), r(2, 5, 6), r(3, 5)),
        (ATEN.scaled_dot_product_attention.default, r(3, 8), r(5, 8), r(5, 6)),
        (ATEN.scaled_dot_product_attention.default, r(2, 4, 3, 8), r(2, 2, 5, 8), r(2, 2, 5, 6), {"enable_gqa": True}),
        (
            ATEN.scaled_dot_product_attention.default,
            r(2, 3, 8),
            r(2, 5, 8),
            r(2, 5, 6),
            None,
            0.0,
            True,
            {"scale": 0.5},
        ),
        (
            ATEN.scaled_dot_product_attention.default,
            r(1, 4, 3, 8),
            r(2, 4, 5, 8),
            r(1, 4, 5, 6),
            n([True] * 4 + [False]),
        ),
        (ATEN.scaled_dot_product_attention.default, r(7, 2, 4, 3, 8), r(7, 2, 4, 5, 8), r(7, 2, 4, 5, 6)),
        (
            ATEN.scaled_dot_product_attention.default,
            r(7, 2, 4, 3, 8),
            r(1, 2, 4, 5, 8),
            r(7, 2, 4, 5, 6),
            r(4, 1, 5),
            {"scale": 8**-0.5},
        ),
    ],
    "windows": [
        (ATEN.conv1d.default, r(3, 9), r(4, 3, 3), r(4), [2], [1], [2]),
        (ATEN.conv1d.default, r(2, 3, 9), r(4, 3, 3)),
        (ATEN.conv1d.padding, r(2, 3, 8), r(6, 3, 3), r(6), [2], "valid", [2]),
        (ATEN.conv1d.padding, r(2, 3, 8), r(6, 3, 3), None, [1], "same", [2]),
        (ATEN.conv2d.default, r(2, 4, 6, 7), r(6, 2, 2, 3), None, [1, 2], [0, 1], [2, 1], 2),
        (ATEN.conv2d.padding, r(2, 4, 6, 7), r(6, 4, 3, 5), None, [1, 1], "same", [2, 1]),
        (ATEN.conv_transpose1d.default, r(3, 8), r(3, 4, 4), r(4), [2], [1]),
        (ATEN.conv_transpose2d.input, r(2, 4, 3, 5), r(4, 3, 2, 3), r(6), [2, 1], [1, 0], [0, 0], 2, [1, 2]),
        (ATEN.conv_transpose2d.input, r(2, 4, 3, 5), r(4, 3, 2, 3), r(6), [2, 1], [1, 0], [1, 0], 2, [1, 2]),
        (ATEN.max_pool1d.default, r(2, 3, 9), [3], [2], [1]),
        (ATEN.max_pool2d.default, r(2, 3, 7, 8), [2, 3], [], [1, 0]),
        (ATEN.max_pool2d.default, r(2, 3, 7, 8), [2, 3], [], [1, 0], [1, 1], True),
        (ATEN.max_pool1d.default, r(2, 3, LONG), [2], [1]),
        (ATEN.max_pool2d.default, r(2, 3, 6, 4), [2]),
        (ATEN.adaptive_max_pool1d.default, r(2, 3, LONG), [1]),
        (ATEN.avg_pool1d.default, r(2, 3, 9), [3]),
        (ATEN.avg_pool1d.default, r(2, 3, 9), [3], [2], [1]),
        (ATEN.avg_pool1d.default, r(2, 3, 9), [3], [2], [1], False, False),
        (ATEN.avg_pool2d.default, r(2, 3, 7, 8), [2, 3], [2, 2], [1, 0], True),
        (ATEN.avg_pool2d.default, r(2, 3, 7, 8), [2, 3], [2, 2], [1, 1], True, False),
        (ATEN.avg_pool2d.default, r(2, 3, 6, 8), [2], [2], [0], False, False),
        (ATEN.adaptive_avg_pool1d.default, r(2, 3, 7), [3]),
        (ATEN.adaptive_avg_pool1d.default, r(2, 3, LONG), [1]),
        (ATEN.adaptive_avg_pool2d.default, r(2, 3, 4, 4), [1, 4]),
        (ATEN.adaptive_max_pool1d.default, r(2, 3, 7), [3]),
        (ATEN.adaptive_max_pool2d.default, r(2, 3, 4, 4), [1, 4]),
        (ATEN.upsample_nearest1d.vec, r(2, 3, 5), None, [2.0]),
        (ATEN.upsample_nearest1d.vec, r(2, 3, 5), None, [1.5]),
        (ATEN.upsample_nearest1d.vec, r(2, 3, 5), [5], None),
        (ATEN.upsample_nearest1d.vec, r(2, 3, LONG), None, [2.0]),
        (ATEN.upsample_nearest2d.vec, r(2, 3, 5, 4), [7, 4], None),
        (ATEN._upsample_nearest_exact1d.vec, r(2, 3, 5), None, [1.5]),
        (ATEN.upsample_linear1d.vec, r(2, 3, 4), [6], False, None),
        (ATEN.upsample_linear1d.vec, r(2, 3, 4), [6], True, None),
        (ATEN.upsample_linear1d.vec, r(2, 3, 5), [1], True, None),
        (ATEN.upsample_linear1d.default, r(2, 3, 4), [LONG], False),
        (ATEN.upsample_linear1d.default, r(2, 3, LONG), [LONG], False),
        (ATEN.upsample_bilinear2d.default, r(2, 3, 2, 2), [LONG, 2], False),
        (ATEN.upsample_bicubic2d.vec, r(1, 2, 4, 5), None, False, [1.5, 0.5]),
        *[
            (ATEN.grid_sampler_2d.default, r(1, 2, 4, 5), r(1, 3, 4, 2) * 0.5, 0, 0, aligned)
            for aligned in (True, False)
        ],
        (ATEN.grid_sampler_2d.default, r(1, 2, 4, 5), r(1, 3, 4, 2) * 0.5, 1, 0, False),
    ],
    "recurrent": [
        (ATEN.lstm.input, r(2, 4, 2), [r(2, 2, 3), r(2, 2, 3)], BOTH_WAYS, True, 1, 0.0, False, True, True),
        (ATEN.lstm.input, r(4, 3, 2), [r(2, 3, 3), r(2, 3, 3)], DEEP, False, 2, 0.0, False, False, False),
        (ATEN.gru.input, r(2, 4, 2), r(1, 2, 3), [r(9, 2), r(9, 3)], False, 1, 0.0, False, False, True),
        *[
            (of.input, r(2, 4, 2), (ATEN.full.default, [1, 2, 3], 0.0), params, True, 1, 0.0, False, False, True)
            for of, params in (
                (ATEN.gru, [r(9, 2), r(9, 3), r(9), r(9)]),
                (ATEN.rnn_relu, [r(3, 2), r(3, 3), r(3), r(3)]),
                (ATEN.rnn_tanh, [r(3, 2), r(3, 3), r(3), r(3)]),
            )
        ],
    ],
    "norms": [
        *[(ATEN.layer_norm.default, r(2, 3, 4), [4], *more) for more in ((), (r(4),), (r(4), r(4), 0.1))],
        (ATEN.layer_norm.default, r(2, 3, 4), [3, 4]),
        (ATEN.layer_norm.default, r(2, 3, 4), [3, 4], r(3, 4), r(3, 4), 0.1),
        *[(ATEN.group_norm.default, r(2, 6, 4), 3, *more) for more in ((), (r(6),), (r(6), r(6), 0.1))],
        (ATEN.rms_norm.default, r(2, 3, 4), [4], None, 0.1),
        (ATEN.rms_norm.default, r(2, 3, 4), [3, 4], r(3, 4), 0.1),
        (ATEN.batch_norm.default, r(4, 3, 2), r(3), r(3), r(3), r(3).abs(), False, 0.5, 0.25, False),
        (ATEN.batch_norm.default, r(4, 3), None, None, r(3), r(3).abs(), False, 0.5, 0.25, False),
        (ATEN.batch_norm.default, r(1, 3, 4), r(3), r(3), None, None, True, 0.5, 0.25, False),
        (ATEN.instance_norm.default, r(2, 3, 4), r(3), r(3), r(3), r(3).abs(), False, 0.1, 0.25, False),
        (ATEN.instance_norm.default, r(2, 3, 4), r(3), None, None, None, True, 0.1, 0.25, False),
        (ATEN._native_batch_norm_legit_no_training.default, r(4, 3, 2), r(3), r(3), r(3), r(3).abs(), 0.5, 0.25),
        (ATEN._weight_norm_interface.default, r(3, 4), r(1, 4), 1),
        (ATEN._weight_norm.default, r(3, 4), r(3, 1), 0),
    ],
    "complex": [
        (ATEN.view_as_complex.default, r(3, 2)),
        (ATEN.view_as_real.default, torch.complex(r(3), r(3))),
        (ATEN.polar.default, r(3).abs(), r(3)),
        (ATEN.complex.default, r(3), r(3)),
        (ATEN.real.default, torch.complex(r(3), r(3))),
        (ATEN.imag.default, torch.complex(r(3), r(3))),
        (ATEN._conj.default, torch.complex(r(3), r(3))),
        (ATEN.abs.default, torch.complex(r(3), r(3))),
        (ATEN.resolve_conj.default, torch.complex(r(3), r(3))),
        (ATEN.mul.Tensor, torch.complex(r(3), r(3)), torch.complex(r(2, 3), r(2, 3))),
        (ATEN.mul.Tensor, torch.complex(r(3), r(3)), r(2, 3)),
        (ATEN.mul.Tensor, r(2, 3), torch.complex(r(3), r(3))),
        (ATEN.add.Tensor, torch.complex(r(3), r(3)), torch.complex(r(3), r(3))),
        (ATEN.add.Tensor, torch.complex(r(3), r(3)), r(3)),
        (ATEN.cat.default, [torch.complex(r(3), r(3)), torch.complex(r(2), r(2))]),
        (ATEN.split.Tensor, torch.complex(r(3), r(3)), 2),
        (ATEN.unsqueeze.default, torch.complex(r(3), r(3)), 0),
        (ATEN._to_copy.default, r(3), {"dtype": torch.complex64}),
        (ATEN.exp.default, torch.complex(r(3), r(3))),
        (ATEN.fft_fft.default, r(3, 4)),
        (ATEN.fft_fft.default, r(3, 4), None, 0),
        (ATEN.fft_fft.default, r(3, 4), 3),
        (ATEN.fft_fft.default, r(3, 4), None, -1, "ortho"),
        (ATEN.fft_fft2.default, r(2, 3, 4)),
        (ATEN.fft_fftn.default, r(3, 4)),
        (ATEN.real.default, (ATEN.fft_fft.default, r(3, 4))),
        (ATEN.abs.default, (ATEN.fft_fft.default, r(3, 4))),
        *[
            (ATEN.select.int, (ATEN.view_as_real.default, (ATEN.fft_fft.default, r(3, 4))), axis, index)
            for axis, index in ((2, 0), (-1, 0), (-1, 1), (0, 0))
        ],
        (ATEN.slice.Tensor, (ATEN.view_as_real.default, (ATEN.fft_fft.default, r(3, 4))), 2, 0, 1),
    ],
}


@pytest.mark.parametrize("group", CASES)
def test_counterparts_have_the_values_of_pytorch(group: str, golden: Callable[[str, str], None]) -> None:
    golden(f"counterparts/{group}.txt", "".join([f"{line(case)}\n" for case in CASES[group]]))
