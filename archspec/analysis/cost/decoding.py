"""`archspec cost --past`: the work and memory traffic of a decoding step, and the memory of its cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from archspec.analysis.cost.kept import find_cached_values
from archspec.analysis.cost.memory import byte_count
from archspec.analysis.cost.steps import (
    NEW_POSITION,
    AttentionRead,
    NoDecodingStepError,
    StepNode,
    Steps,
    StepValue,
    describe_address,
)
from archspec.core.algebra import Expression, product, substitute, symbols, weighted_sum
from archspec.core.diagnostics import make_error
from archspec.ir.active import ActiveParts, Part, Share
from archspec.ir.index_ranges import check_sizes
from archspec.ir.module import Body, LocatedTensor, Type, find_member
from archspec.ir.ops import OPS
from archspec.ir.table import count_active_parameters
from archspec.ir.work import operation_work


class CachePart(NamedTuple):
    """The cache of equal layers: `values` numbers in each of so many `layers`, for `positions` kept positions.

    `kind` is "attention", "window", "other sequence", "convolution" or "state".
    """

    kind: str
    layers: int
    positions: int
    values: int
    bytes: int


class Decoding(NamedTuple):
    """A decoding step: one position along a `dimension` of each of `batch` sequences, after `past` others.

    `flops` are those of the step, 2 per multiply-accumulate. `weights` are the bytes of the parameters that it reads,
    or a bound if sequences can choose different experts. `cache` are the values kept for earlier positions, of the type
    `cache_dtype`; the step reads them, too.
    """

    dimension: str
    batch: int
    past: int
    flops: int
    weights: int
    weights_are_bound: bool
    cache_dtype: str
    cache: tuple[CachePart, ...]

    @property
    def cache_bytes(self) -> int:
        """The bytes of the whole cache."""
        return sum(part.bytes for part in self.cache)

    @property
    def bytes_per_flop(self) -> float | None:
        """The bytes read per floating-point operation; None for a step without matrix products."""
        return (self.weights + self.cache_bytes) / self.flops if self.flops else None


def compute_decoding(body: Body, values: Mapping[str, int], past: int, dtype: str, cache_dtype: str) -> Decoding:
    """Compute a decoding step of a model after `past` positions; `values` are sizes of its other dimensions.

    Raises ArchError if the model has no decoding step, needs the size of another dimension, or cannot run with so many
    positions.
    """
    steps = _steps(body)
    if steps.dimension in values:
        message = f"dimension `{steps.dimension}` is the one along which a decoding step advances"
        raise make_error(
            "usage", message, help="remove its size; `--past N` is the number of positions before the step"
        )
    check_sizes(body, {**values, steps.dimension: past + 1})
    return _Step(body, steps, {"batch": 1, **values}, past).decoding(dtype, cache_dtype)


def _dimensions(body: Body) -> list[str]:
    return list(dict.fromkeys(name for _, type in body.inputs for size in type.shape for name in sorted(symbols(size))))


def _steps(body: Body) -> Steps:
    """Find the dimension along which a model decodes: the one at whose positions it keeps something."""
    reasons: list[str] = []
    for name in _dimensions(body):
        try:
            steps = Steps(body, name)
        except NoDecodingStepError as problem:
            reasons.append(str(problem))
            continue
        if steps.windows or any(reading.seen is not None for reading in steps.readings.values()):
            return steps
    why = reasons[-1] if reasons else "nothing in it depends on earlier positions"
    raise make_error("usage", f"the model has no decoding step: {why}", help="use --past with a causal language model")


class _Step:
    """The figures of one step."""

    def __init__(self, body: Body, steps: Steps, values: Mapping[str, int], past: int) -> None:
        self.body = body
        self.steps = steps
        self.values = values
        self.past = past
        self.kept = find_cached_values(steps)
        self.keys = {number: self._positions(reading, 1) for number, reading in steps.readings.items()}

    def decoding(self, dtype: str, cache_dtype: str) -> Decoding:
        """Return the figures."""
        macs = weighted_sum((self._macs(node), 1) for node in self.steps.nodes)
        weights, are_bound = self._weights()
        cache = self._cache(cache_dtype)
        flops = 2 * self._number(macs)
        batch, read = self.values["batch"], byte_count(weights, dtype)
        return Decoding(self.steps.dimension, batch, self.past, flops, read, are_bound, cache_dtype, tuple(cache))

    def _number(self, size: Expression, extra: Mapping[str, int] | None = None) -> int:
        """Return a size as a number. Raises ArchError if it depends on a dimension without a size."""
        found = substitute(size, {**self.values, NEW_POSITION: 1, **(extra or {})})
        if not isinstance(found, int):
            names = ", ".join(f"`{name}`" for name in sorted(symbols(found)))
            raise make_error(
                "usage", f"a decoding step needs sizes of the dimensions {names}", help="use `--dim NAME=N`"
            )
        return found

    def _positions(self, reading: AttentionRead, new: int) -> int:
        """Return the positions that an attention reads, `new` of them newest ones; 1 for another sequence."""
        seen = reading.seen
        if seen is None:
            return 1
        return self.past + new if seen.window is None else min(self.past, seen.window) + new

    # Work ---------------------------------------------------------------------------------------------------------

    def _macs(self, node: StepNode) -> int:
        op = OPS[node.call.type]
        if op.macs is None or not any(operand is not None and operand.in_step for operand in node.operands):
            return 0
        sizes = {self.steps.keys(number): count for number, count in self.keys.items()}
        again = [kept for kept in self.kept if node in kept.again]
        if again:
            sizes[NEW_POSITION] = max(self.keys[number] for kept in again for number in kept.attentions)
        inputs = [
            None if operand is None or shape is None else Type(self._sized(shape, sizes), operand.dtype)
            for operand, shape in zip(node.operands, node.shapes, strict=True)
        ]
        (result,) = node.results
        shape = self._sized(result.shape, sizes)
        if node.is_convolution:
            shape = (*shape[:2], 1)
        work = operation_work(op, inputs, Type(shape, result.dtype), node.call.attributes)
        return self._number(work.macs)

    def _sized(self, shape: tuple[Expression, ...], sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple([self._number(size, sizes) for size in shape])

    # Memory -------------------------------------------------------------------------------------------------------

    def _weights(self) -> tuple[int, bool]:
        """Return the parameters that the step reads, and whether they are a bound: sequences choose experts."""
        parts = ActiveParts(self.body).by_name
        batch = self.values["batch"]
        assert self.body.module is not None
        read = 0
        are_bound = False
        chosen: Counter[tuple[int, int]] = Counter()
        for name in self._read_names():
            leaf = find_member(self.body.module, name)
            if not isinstance(leaf, LocatedTensor) or leaf.weight.kind != "param":
                continue
            part: Part = parts.get(name)
            size = leaf.weight.size
            if part == "unknown":
                raise make_error("usage", f"the part of `{name}` that a decoding step reads is unknown")
            if part == "rows":
                read += min(size, batch * (size // leaf.weight.shape[0]))
            elif isinstance(part, Share):
                number = min(part.total, batch * part.number)
                are_bound = are_bound or part.number < number
                chosen[number, part.total] += size
            else:
                read += size
        experts = count_active_parameters(sum(chosen.values()), chosen)
        assert experts is not None
        return read + experts, are_bound

    def _read_names(self) -> list[str]:
        """Return the names of the parameters that operations of the step read, directly or in tables made of them."""
        serving: set[StepNode] = set()
        for node in reversed(self.steps.nodes):
            in_step = any(operand is not None and operand.in_step for operand in node.operands)
            if in_step or any(
                user in serving for result in node.results if result.is_static for user, _ in result.users
            ):
                serving.add(node)
        names = [value.name for node in self.steps.nodes if node in serving for value in node.operands if value]
        return [name for name in dict.fromkeys(names) if name]

    def _cache(self, dtype: str) -> list[CachePart]:
        """Return the parts of the cache; equal ones of several layers are one."""
        found: dict[tuple[str, int, int], int] = {}

        def add(kind: str, positions: int, values: int) -> None:
            found[kind, positions, values] = found.get((kind, positions, values), 0) + 1

        for kept in self.kept:
            reading = max(kept.attentions.values(), key=lambda reading: self._positions(reading, 0))
            seen = reading.seen
            kind = "other sequence" if seen is None else "attention" if seen.window is None else "window"
            positions = self._positions(reading, 0)
            if seen is not None and any(NEW_POSITION not in symbols(product(value.shape)) for value in kept.values):
                where = describe_address(reading.address)
                raise make_error("usage", f"the model has no decoding step: {where} keeps tables of positions")
            values = sum(self._elements(value) for value in kept.values)
            add(kind, positions, values)
        for window in self.steps.windows:
            add(window.kind, window.positions, self._number(product(window.shape)))
        return [
            CachePart(kind, layers, positions, values, byte_count(layers * positions * values, dtype))
            for (kind, positions, values), layers in found.items()
        ]

    def _elements(self, value: StepValue) -> int:
        return self._number(product(value.shape))
