"""`archspec.fit`: whether a model fits the memory of a device."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import ModuleType

from archspec.analysis.cost.decoding import compute_decoding, find_cache_rules
from archspec.analysis.cost.dimension_sizes import is_integer
from archspec.analysis.cost.dtypes import FLOATS, byte_count, check_dtype, check_part
from archspec.analysis.cost.memory import compute_memory
from archspec.analysis.cost.time import StepTime, check_rates, decoding_time
from archspec.analysis.fit.activations import largest_operation
from archspec.analysis.fit.fit import MAX_CONTEXT, CacheSizes, Fit, MemoryLine, largest_number
from archspec.analysis.parallel.rank import Rank, divide_model
from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import ArchError, make_error
from archspec.core.record import Record
from archspec.formats.devices import Device, load_device
from archspec.ir.index_ranges import check_sizes, dimensions, validate_sizes
from archspec.ir.module import Body
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike, get_compilation

DEFAULT_DTYPE = "bfloat16"
DEFAULT_FRACTION = 0.9
DEFAULT_CHUNK = 8192
"""The positions of a prefill whose activations are stated, if none are requested."""


@check_arguments
def fit(
    model: ModelLike,
    /,
    device: str | os.PathLike[str] | Device,
    *,
    count: int | None = None,
    tensor: int = 1,
    batch: int = 1,
    context: int | None = None,
    dtype: str | None = None,
    cache_dtype: str | None = None,
    fraction: float = DEFAULT_FRACTION,
    chunk: int | None = None,
    dims: Mapping[str, int] | None = None,
    lora: Sequence[os.PathLike[str] | str] = (),
) -> Fit:
    """Compute whether a model fits the memory of a device for inference, the longest context and the largest batch.

    `model` is a Model or an argument of `archspec.load`. `device` is the name of a bundled device, the path of a JSON
    file that describes one, or a Device. The model is divided among `tensor` of `count` devices (default: all). `batch`
    sequences of `context` positions are cached (default: the longest context that fits). `dtype` is the type of the
    weights (default: as stored if the configuration is quantized, else bfloat16), `cache_dtype` that of the cache
    (default: the type of the weights, or bfloat16 if it is no float). `fraction` is the usable part of the memory.
    With `chunk`, the total includes the activations of a prefill of so many positions. `dims` are sizes of further
    dimensions, and `lora` adapters that are loaded beside the weights. `docs/fit.md` defines all numbers.

    Raises ArchError for an unknown device or type, a plan that does not divide the model (`bad-plan`), a model without
    a cache, a context beyond its positions (`bad-size`), and the errors of `archspec.load` and `archspec.adapter`.
    """
    resolved = load_device(device)
    _check_numbers({"count": count, "tensor": tensor, "batch": batch, "context": context, "chunk": chunk})
    _check_types(fraction, dtype, cache_dtype)
    count = tensor if count is None else count
    if count % tensor:
        help = "use a number of devices that is a multiple of `tensor`"
        raise make_error("bad-plan", f"{count} devices cannot be divided into groups of {tensor}", help=help)
    setup = _Setup.build(as_model(model), tensor, dtype, dims or {})
    cache = setup.cache_sizes(cache_dtype or setup.compute_dtype, context)
    counted = [*setup.weight_lines(), *setup.adapter_lines(lora)]
    activation = setup.activation_line(cache, min(DEFAULT_CHUNK, context or DEFAULT_CHUNK) if chunk is None else chunk)
    if chunk is not None:
        counted += [activation, *_window_lines(cache, chunk)]
    available = int(resolved.memory * fraction) - sum([line.bytes for line in counted])
    longest = cache.longest_context(available, batch)
    cached_context = context if context is not None else longest
    positions = MAX_CONTEXT if cached_context is None else cached_context
    return Fit(
        setup.model.name,
        dict(setup.model.overrides),
        resolved,
        count,
        tensor,
        setup.rank.divided,
        setup.weights_dtype,
        cache,
        batch,
        cached_context,
        fraction,
        (*counted, setup.cache_line(cache, batch, positions)),
        () if chunk is not None else (activation,),
        longest,
        cache.largest_batch(available, positions) if positions else 0,
        setup.notes(),
        setup.step_time(cache, batch, cached_context, resolved),
    )


def _check_numbers(numbers: Mapping[str, int | None]) -> None:
    for name, number in numbers.items():
        if number is not None and (not is_integer(number, 1) or number >= MAX_CONTEXT):
            raise make_error("usage", f"expected an integer from 1 as `{name}`, found {number!r:.40}")


def _check_types(fraction: object, *dtypes: object) -> None:
    check_part("fraction", fraction)
    for name in dtypes:
        if name is not None:
            check_dtype(name)


class _Setup(Record):
    """A model, its first rank, the types in which weights are stored and results computed, and sizes of dimensions."""

    model: Model
    rank: Rank
    weights_dtype: str
    compute_dtype: str
    sizes: dict[str, int]

    @classmethod
    def build(cls, model: Model, tensor: int, dtype: str | None, dims: Mapping[str, int]) -> _Setup:
        """Divide a model, and check the sizes."""
        compilation = get_compilation(model)
        weights = dtype or ("stored" if compilation.unit.quantization is not None else DEFAULT_DTYPE)
        sizes = validate_sizes(model.name, dimensions(compilation.body.inputs), dims)
        compute = weights if weights in FLOATS else DEFAULT_DTYPE
        return cls(model, divide_model(model, tensor), weights, compute, sizes)

    @property
    def body(self) -> Body:
        """The computation of a device."""
        return get_compilation(self.rank.model).body

    def cache_sizes(self, dtype: str, context: int | None) -> CacheSizes:
        """Return how the cache grows. Raises ArchError for a model without one, or a context beyond its positions."""
        try:
            dimension, rules = find_cache_rules(self.body, self.sizes)
        except ArchError as error:
            raise ArchError([problem._replace(help=_NO_CACHE_HELP) for problem in error.diagnostics]) from None
        for name in ("batch", dimension):
            if name in self.sizes:
                help = "use `batch` and `context`, or --batch and --context"
                raise make_error("usage", f"cannot set the size of dimension `{name}`: sequences are cached", help=help)
        compilation = get_compilation(self.model)
        bodies = [compilation.body, compilation.body_without_optional_inputs()]  # a mask can give other positions
        if context is not None:
            for body in bodies:
                check_sizes(body, {**self.sizes, dimension: context})
        limits = [limit for body in bodies if (limit := _last_position(body, self.sizes, dimension)) is not None]
        return CacheSizes(dimension, dtype, rules, min(limits, default=None))

    def weight_lines(self) -> list[MemoryLine]:
        """Return the memory of the weights and buffers."""
        compilation = get_compilation(self.rank.model)
        module = compilation.compiled.module
        divided = "" if self.rank.ranks == 1 else f"{self.rank.replicated:,} parameters are whole on each device"
        if self.weights_dtype == "stored":
            lines = [_extras().stored_line(get_compilation(self.rank.model), divided)]
        else:
            memory = compute_memory(module, self.weights_dtype)
            is_float = self.weights_dtype in FLOATS
            note = "without scales, and with norms of the same type"
            notes = [text for text in ("" if is_float else note, divided) if text]
            kind = "exact" if is_float else "at least"
            lines = [MemoryLine(f"weights, {self.weights_dtype}", memory.weights, kind, "; ".join(notes))]
        buffers = compute_memory(module, self.compute_dtype).buffers
        return lines + ([MemoryLine("buffers", buffers, "exact")] if buffers else [])

    def adapter_lines(self, sources: Sequence[str | os.PathLike[str]]) -> list[MemoryLine]:
        """Return the memory of adapters beside the weights of their base model."""
        if not sources:
            return []
        return _extras().adapter_lines(sources, self.model, self.compute_dtype, self.rank.ranks > 1)

    def activation_line(self, cache: CacheSizes, chunk: int) -> MemoryLine:
        """Return the memory of the largest operation of a prefill of `chunk` positions of one sequence."""
        chunk = chunk if cache.positions is None else min(chunk, cache.positions)
        sizes = {"batch": 1, **self.sizes, cache.dimension: chunk}
        elements = largest_operation(self.body, cache.dimension, sizes)
        name = f"activations, {chunk:,} positions"
        return MemoryLine(name, byte_count(elements, self.compute_dtype), "at least", "one operation")

    def cache_line(self, cache: CacheSizes, batch: int, positions: int) -> MemoryLine:
        """Return the memory of the cache."""
        context = "any context" if positions == MAX_CONTEXT else f"{positions:,} positions"
        name = f"cache, {cache.dtype}, {batch:,} x {context}"
        note = ""
        if self.rank.ranks > 1:
            model_rules = find_cache_rules(get_compilation(self.model).body, self.sizes)[1]
            values = [sum(rule.values * rule.layers for rule in rules) for rules in (model_rules, cache.rules)]
            note = "the same on each device" if values[0] == values[1] else ""
        return MemoryLine(name, cache.bytes(batch, positions), "exact", note)

    def step_time(self, cache: CacheSizes, batch: int, context: int | None, device: Device) -> StepTime | None:
        """Return the least time of a decoding step after a context, or after one position if the cache does not grow.

        Return None if nothing fits, or if the device has no rate that bounds it. Products with weights as stored have
        no time: kernels may compute them in several types.
        """
        quantization = get_compilation(self.model).unit.quantization if self.weights_dtype == "stored" else None
        peak = device.peak.get(self.weights_dtype)
        if context == 0 or (peak is None and device.bandwidth is None):
            return None
        past = 1 if context is None else context
        if cache.positions is not None:
            past = min(past, cache.positions - 1)
        dtype = self.compute_dtype if quantization else self.weights_dtype
        decoding = compute_decoding(self.body, {**self.sizes, "batch": batch}, past, dtype, cache.dtype)
        table = get_compilation(self.rank.model).table
        stored = None if quantization is None else _extras().stored_bytes(table, quantization)
        return decoding_time(decoding, dtype, stored, check_rates(device, 1.0, 1.0))._replace(peak=peak)

    def notes(self) -> tuple[str, ...]:
        """Return remarks on how a configuration was read, such as without a head."""
        compilation = get_compilation(self.model)
        return compilation.table.notes if compilation.unit.default_architecture is not None else ()


def _extras() -> ModuleType:
    from archspec.analysis.fit import extras  # imported late: few models are quantized or have adapters

    return extras


_NO_CACHE_HELP = "use a model that decodes, such as a causal language model"


def _window_lines(cache: CacheSizes, chunk: int) -> list[MemoryLine]:
    """Return the memory that engines add to windows during a chunk: `chunk` positions more than the next step reads."""
    values = sum([rule.layers * rule.values for rule in cache.rules if rule.kind == "window"])
    name = f"windows, {chunk:,} more positions"
    return [MemoryLine(name, byte_count(values * chunk, cache.dtype), "assumed", "chunked prefill")] if values else []


def _last_position(body: Body, sizes: Mapping[str, int], dimension: str) -> int | None:
    """Return the longest sequence that a model can run with; None if its length is not limited."""

    def is_valid(length: int) -> bool:
        try:
            check_sizes(body, {**sizes, dimension: length})
        except ArchError:
            return False
        return True

    if is_valid(2**40):
        return None
    check_sizes(body, {**sizes, dimension: 1})
    limit = 1
    while is_valid(2 * limit):
        limit *= 2
    return largest_number(limit, 2 * limit, is_valid)
