"""`archspec cost --past`: the work and memory traffic of a decoding step, and the memory of its cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from archspec.analysis.cost.cached_values import CachedValues, find_cached_values
from archspec.analysis.cost.dtypes import byte_count
from archspec.analysis.cost.latent import absorbed_macs
from archspec.analysis.cost.step_values import (
    NEW_POSITION,
    Application,
    AttentionRead,
    NoDecodingStepError,
    Parameter,
    Shape,
    StepNode,
    describe_address,
)
from archspec.analysis.cost.steps import DecodingStep
from archspec.core.addresses import is_index, join, parent, prefixes, relative, segments
from archspec.core.algebra import MAX_SIZE, Expression, product, substitute, symbols
from archspec.core.diagnostics import ArchError, make_error
from archspec.core.record import Record
from archspec.ir.active import ActiveParts, Part, Share, get_active_parts
from archspec.ir.index_ranges import check_sizes, dimensions
from archspec.ir.module import Body, LocatedTensor, Module, Type, canonical_name, find_member
from archspec.ir.ops import OPS
from archspec.ir.structure.attention import AttentionTracer
from archspec.ir.table import count_active_parameters
from archspec.ir.work import operation_work


class CachePart(Record):
    """The cache of equal layers: `values` numbers for each of `positions` cached positions in each of `layers` layers.

    `kind` is "attention", "window", "other sequence", "convolution" or "state".
    """

    kind: str
    layers: int
    positions: int
    values: int
    bytes: int


class CacheRule(Record):
    """The growth of a part of the cache, of equal layers: the numbers stored for each cached position.

    `values` is the number of each sequence, and `shared` that of all sequences together. The part has all positions if
    `window` is None, at most `window` of them otherwise, and exactly `window` if it is `fixed`.
    """

    kind: str
    layers: int
    window: int | None
    fixed: bool
    values: int
    shared: int

    def positions(self, context: int) -> int:
        """Return the number of cached positions of a context."""
        if self.window is None:
            return context
        return self.window if self.fixed else min(self.window, context)

    def bytes(self, batch: int, context: int, dtype: str) -> int:
        """Return the bytes for `batch` sequences of `context` positions each."""
        return byte_count(self.layers * self.positions(context) * (self.values * batch + self.shared), dtype)


class Decoding(Record):
    """A decoding step: one position along a `dimension` of each of `batch` sequences, after `past` positions.

    `flops` counts 2 per multiply-accumulate. `weights` is the number of bytes of the parameters that the step reads, or
    an upper bound if sequences can choose different experts. `cache` describes the values stored for earlier positions,
    of the type `cache_dtype`; the step reads them, too.

    If keys or values are computed from cached latent vectors, `flops` is the smaller figure of each attention:
    `expanded_flops` computes them again at all positions, and `absorbed_flops` applies their matrices to queries and
    results; it is None if they are not linear functions of the latent vectors. For other models, both are None.

    `least_weights` is the number of bytes of the parameters if all sequences choose the same experts.
    """

    dimension: str
    batch: int
    past: int
    flops: int
    weights: int
    weights_are_bound: bool
    cache_dtype: str
    cache: tuple[CachePart, ...]
    expanded_flops: int | None = None
    absorbed_flops: int | None = None
    least_weights: int = 0

    @property
    def cache_bytes(self) -> int:
        """The bytes of the full cache."""
        return sum(part.bytes for part in self.cache)

    @property
    def bytes_per_flop(self) -> float | None:
        """The bytes read per floating-point operation; None if the step has no matrix products."""
        return (self.weights + self.cache_bytes) / self.flops if self.flops else None


class Prefill(Record):
    """A pass over the first positions of sequences: the bytes of the cache that it leaves.

    `head_flops` are those of the products after the last block for one position of each sequence.
    """

    cache_bytes: int
    head_flops: int
    positions: int


def compute_decoding(
    body: Body,
    values: Mapping[str, int],
    past: int,
    dtype: str,
    cache_dtype: str,
    tracer: AttentionTracer | None = None,
) -> Decoding:
    """Compute a decoding step of a model after `past` positions; `values` are sizes of its remaining dimensions.

    Raises ArchError if the model has no decoding step, needs the size of another dimension, or cannot run with
    `past` + 1 positions.
    """
    steps, cached = _find_decoding_step(body, tracer or AttentionTracer())
    if steps.dimension in values:
        message = f"cannot set the size of dimension `{steps.dimension}`: a decoding step advances along it"
        raise make_error(
            "usage", message, help="remove its size; `--past N` is the number of positions before the step"
        )
    check_sizes(body, {**values, steps.dimension: past + 1})
    return _StepFigures(body, steps, cached, {"batch": 1, **values}, past).decoding(dtype, cache_dtype)


def find_cache_rules(
    body: Body, values: Mapping[str, int], tracer: AttentionTracer | None = None
) -> tuple[str, tuple[CacheRule, ...]]:
    """Return the dimension along which a model decodes, and how each part of its cache grows.

    `values` are sizes of the dimensions apart from this one and `batch`. Raises ArchError as `compute_decoding` does,
    except that positions are not checked.
    """
    steps, cached = _find_decoding_step(body, tracer or AttentionTracer())
    many = MAX_SIZE // 4  # more positions than any window
    one, two = (
        _StepFigures(body, steps, cached, {**values, "batch": batch}, many).cache_parts("int8") for batch in (1, 2)
    )
    rules = [
        CacheRule(
            part.kind,
            part.layers,
            part.positions if part.kind != "attention" else None,
            part.kind != "window",
            double.values - part.values,
            2 * part.values - double.values,
        )
        for part, double in zip(one, two, strict=True)
    ]
    return steps.dimension, tuple(rules)


def compute_prefill(body: Body, values: Mapping[str, int], dtype: str, tracer: AttentionTracer) -> Prefill | None:
    """Compute what decoding keeps of a pass with sizes of all dimensions, in a cache of type `dtype`.

    Return None for a model without a decoding step.
    """
    try:
        steps, cached = _find_decoding_step(body, tracer)
        positions = values[steps.dimension]
        figures = _StepFigures(body, steps, cached, {"batch": 1, **values}, positions)
        return Prefill(figures.cache_bytes(dtype), 2 * figures.head_macs(), positions)
    except ArchError:
        return None


def _find_decoding_step(body: Body, tracer: AttentionTracer) -> tuple[DecodingStep, list[CachedValues]]:
    """Find the decoding step of a model: along the dimension at whose positions it reads earlier values."""
    reasons: list[str] = []
    for name in dimensions(body.inputs):
        try:
            steps = DecodingStep(body, name, tracer)
        except NoDecodingStepError as error:
            reasons.append(str(error))
            continue
        if steps.states or any(read.visible is not None for read in steps.reads.values()):
            cached = find_cached_values(steps)
            if cached is None:
                steps = DecodingStep(body, name, tracer, merge=False)
                cached = find_cached_values(steps)
                assert cached is not None
            return steps, cached
    reason = reasons[-1] if reasons else "nothing in it depends on earlier positions"
    raise make_error(
        "usage", f"the model has no decoding step: {reason}", help="use --past with a causal language model"
    )


class _StepFigures:
    """Computation of the figures of one step."""

    def __init__(
        self, body: Body, steps: DecodingStep, cached: list[CachedValues], values: Mapping[str, int], past: int
    ) -> None:
        self.body = body
        self.steps = steps
        self.values = values
        self.past = past
        self.cached = cached
        self.keys = {number: self._positions_read(read, 1) for number, read in steps.reads.items()}

    def decoding(self, dtype: str, cache_dtype: str) -> Decoding:
        """Return the figures."""
        macs = {node: self._macs(node) * node.application.times for node in self.steps.nodes}
        total = expanded = absorbed = sum(macs.values())
        has_latent, can_absorb = False, True
        for cached in self.cached:
            expanded_macs = sum([macs[node] for node in cached.recomputed])
            if expanded_macs:
                has_latent = True
                expanded_macs += sum([macs[node] for node in self.steps.nodes if node.attention in cached.attentions])
                short = self._absorbed_macs(cached)
                can_absorb = can_absorb and short is not None
                if short is not None:
                    absorbed += short - expanded_macs
                    total += min(short - expanded_macs, 0)
        batch = self.values["batch"]
        weights, are_bound = self._weights_read(batch)
        least = self._weights_read(1)[0] if are_bound else weights
        cache = tuple(self.cache_parts(cache_dtype))
        read = byte_count(weights, dtype)
        return Decoding(
            self.steps.dimension,
            batch,
            self.past,
            2 * total,
            read,
            are_bound,
            cache_dtype,
            cache,
            2 * expanded if has_latent else None,
            2 * absorbed if has_latent and can_absorb else None,
            byte_count(least, dtype),
        )

    def _absorbed_macs(self, cached: CachedValues) -> int | None:
        """Return the multiply-accumulates of attentions that do not expand the cached values; None if they must."""
        result = 0
        for node in self.steps.nodes:
            if node.attention in cached.attentions:
                macs = absorbed_macs(node, self.keys[node.attention], cached.recomputed, self._count_elements)
                if macs is None:
                    return None
                result += macs * cached.application.times
        return result

    def _count_elements(self, shape: Shape) -> int:
        return self._to_number(product(shape))

    def _to_number(self, size: Expression, extra: Mapping[str, int] | None = None) -> int:
        """Evaluate a size. Raises ArchError if it depends on a dimension without a size."""
        number = substitute(size, {**self.values, NEW_POSITION: 1, **(extra or {})})
        if not isinstance(number, int):
            names = ", ".join(f"`{name}`" for name in sorted(symbols(number)))
            raise make_error(
                "usage", f"a decoding step needs sizes of the dimensions {names}", help="use `--dim NAME=N`"
            )
        return number

    def _positions_read(self, read: AttentionRead, new: int) -> int:
        """Return the number of positions that an attention reads, including `new` new ones; 1 for another sequence."""
        visible = read.visible
        if visible is None:
            return 1
        return self.past + new if visible.window is None else min(self.past, visible.window) + new

    # Work ---------------------------------------------------------------------------------------------------------

    def _macs(self, node: StepNode) -> int:
        op = OPS[node.call.type]
        if op.macs is None or not any(operand is not None and operand.in_step for operand in node.operands):
            return 0
        sizes = {self.steps.keys(number): count for number, count in self.keys.items()}
        recomputing = [cached for cached in self.cached if node in cached.recomputed]
        if recomputing:
            sizes[NEW_POSITION] = max(self.keys[number] for cached in recomputing for number in cached.attentions)
        inputs = [
            None if operand is None or shape is None else Type(self._to_shape(shape, sizes), operand.dtype)
            for operand, shape in zip(node.operands, node.shapes, strict=True)
        ]
        (result,) = node.results
        shape = self._to_shape(result.shape, sizes)
        if node.is_convolution:
            shape = (*shape[:2], 1)
        work = operation_work(op, inputs, Type(shape, result.dtype), node.call.attributes)
        return self._to_number(work.macs)

    def _to_shape(self, shape: tuple[Expression, ...], sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple([self._to_number(size, sizes) for size in shape])

    def head_macs(self) -> int:
        """Return the multiply-accumulates for one position of products after the blocks, which nothing cached needs."""
        feeding: set[StepNode] = set()
        result = 0
        for node in reversed(self.steps.nodes):
            if (
                node.attention >= 0
                or node.is_convolution
                or any(value.has_other_uses for value in node.results)
                or any(user in feeding for value in node.results for user, _ in value.users)
            ):
                feeding.add(node)
            elif not any(map(is_index, segments(node.application.address))):
                result += self._macs(node) * node.application.times
        return result

    # Memory -------------------------------------------------------------------------------------------------------

    def _weights_read(self, batch: int) -> tuple[int, bool]:
        """Return the number of parameters that a step of sequences reads that choose different experts.

        The second result is whether it is a bound, due to these choices.
        """
        assert self.body.module is not None
        read = 0
        are_bound = False
        chosen: Counter[tuple[int, int]] = Counter()
        for name, (times, part) in self._tensors_read(self.body.module).items():
            leaf = find_member(self.body.module, name)
            if not isinstance(leaf, LocatedTensor) or leaf.weight.kind != "param":
                continue
            size = leaf.weight.size * times
            if part == "unknown":
                raise make_error("usage", f"the part of `{name}` that a decoding step reads is unknown")
            if part == "rows":
                read += times * min(leaf.weight.size, batch * (leaf.weight.size // leaf.weight.shape[0]))
            elif isinstance(part, Share):
                number = min(part.total, batch * part.number)
                are_bound = are_bound or part.number < number
                chosen[number, part.total] += size
            else:
                read += size
        experts = count_active_parameters(sum(chosen.values()), chosen)
        assert experts is not None
        return read + experts, are_bound

    def _tensors_read(self, module: Module) -> dict[str, tuple[int, Part]]:
        """Return the tensors that the step reads by name: the number of equal ones, and the part that a token reads."""
        reads = self._parameters_read()
        parts = get_active_parts(self.body)
        addresses = {application: application.names("") for application in {outer.repeated for outer, _ in reads}}
        if not self._are_separate(module, parts, reads, addresses):
            names = [canonical_name(module, full) for application, name in reads for full in application.names(name)]
            return {name: (1, parts.part(name)) for name in names}
        result: dict[str, tuple[int, Part]] = {}
        for application, name in reads:
            repeated, full_name = addresses[application.repeated], join(application.address, name)
            if len(repeated) > 1:
                part = parts.below(repeated[0]).get(relative(full_name, repeated[0]))
                result[full_name] = len(repeated), part
            else:
                full_name = canonical_name(module, full_name)
                result[full_name] = 1, parts.part(full_name)
        return result

    def _are_separate(
        self,
        module: Module,
        parts: ActiveParts,
        reads: Collection[Parameter],
        addresses: Mapping[Application, Sequence[str]],
    ) -> bool:
        """Whether equal applications read equal parts of their own tensors alone, which nothing else reads."""
        repeated = {address for equal in addresses.values() if len(equal) > 1 for address in equal}
        names = [join(outer.address, name) for outer, name in reads if len(addresses[outer.repeated]) == 1]
        names += [*module.aliases, *module.aliases.values(), *map(parent, repeated)]
        return (
            len(repeated) == sum([len(equal) for equal in addresses.values() if len(equal) > 1])
            and not any(prefix in repeated for name in names for prefix in prefixes(name))
            and all(parts.below(equal[0]) == parts.below(other) for equal in addresses.values() for other in equal[1:])
        )

    def _parameters_read(self) -> Collection[Parameter]:
        """Return the parameters that operations of the step read, directly or in tables of parameters."""
        serving: set[StepNode] = set()
        for node in reversed(self.steps.nodes):
            in_step = any(operand is not None and operand.in_step for operand in node.operands)
            if in_step or any(
                user in serving for result in node.results if result.is_static for user, _ in result.users
            ):
                serving.add(node)
        operands = [value for node in self.steps.nodes if node in serving for value in node.operands if value]
        return dict.fromkeys([value.parameter for value in operands if value.parameter])

    def cache_bytes(self, dtype: str) -> int:
        """Return the bytes of the cache."""
        return sum(part.bytes for part in self.cache_parts(dtype))

    def cache_parts(self, dtype: str) -> list[CachePart]:
        """Return the parts of the cache, with equal parts of several layers combined."""
        layer_counts: Counter[tuple[str, int, int]] = Counter()

        for cached in self.cached:
            read = max(cached.attentions.values(), key=lambda read: self._positions_read(read, 0))
            visible = read.visible
            kind = "other sequence" if visible is None else "attention" if visible.window is None else "window"
            positions = self._positions_read(read, 0)
            if visible is not None and any(
                NEW_POSITION not in symbols(product(value.shape)) for value in cached.values
            ):
                where = describe_address(read.application.address)
                raise make_error("usage", f"the model has no decoding step: {where} caches tables of positions")
            values = sum(self._count_elements(value.shape) for value in cached.values)
            layer_counts[kind, positions, values] += cached.application.times
        for state in self.steps.states:
            values = self._to_number(product(state.shape))
            layer_counts[state.kind, state.positions, values] += state.application.times
        return [
            CachePart(kind, layers, positions, values, byte_count(layers * positions * values, dtype))
            for (kind, positions, values), layers in layer_counts.items()
        ]
