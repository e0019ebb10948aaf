"""The compiled model of a plan, for activations, the loss and the bytes of buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from archspec.analysis.adapter.adapter import load_adapter
from archspec.analysis.cost.api import compute_kept, valid_sizes
from archspec.analysis.cost.cost import compute_cost
from archspec.analysis.cost.dimension_sizes import options_for_sizes
from archspec.analysis.cost.memory import KeptForBackward, StoredBytes, compute_memory
from archspec.analysis.cost.quantized import stored_bytes
from archspec.analysis.cost.trained import block_addresses
from archspec.analysis.parallel.rank import divide_model
from archspec.analysis.plan.plan import PlanRow
from archspec.analysis.plan.step import Step, StepOptions, parse_checkpoint
from archspec.core.addresses import prefixes
from archspec.core.algebra import multiply_unexpanded, substitute
from archspec.core.diagnostics import ArchError, Diagnostic, make_error
from archspec.core.record import Record
from archspec.core.resources import specs_root
from archspec.formats.configs.family import read_layers
from archspec.ir.index_ranges import dimensions
from archspec.ir.table import Table
from archspec.pipeline.compile import as_model, compile_location
from archspec.pipeline.locate import locate
from archspec.pipeline.model import Model, get_compilation

if TYPE_CHECKING:
    from archspec.ir.table import PlainValue
    from archspec.pipeline.locate import Location
    from archspec.pipeline.model import ModelLike

LOSS_BYTES = 12
"""Bytes per logit at the peak of the cross entropy of `transformers`, for logits of 16 and of 32 bits (measured)."""

_NOT_RUN = ("missing-package", "untranslatable")
"""Codes of errors without which activations would be counted."""


class PlannedModel(Record):
    """A compiled model (None for an adapter, whose table is enough), and the kinds of its layers by type.

    `entire` is the model of which it is a rank under tensor parallelism. Logits are those of the entire model, because
    `transformers` gathers them. `stored` are the bytes of quantized weights.
    """

    model: Model | None
    kinds: Mapping[str, str]
    entire: Model | None = None
    stored: StoredBytes | None = None

    def buffer_bytes(self, dtype: str) -> int:
        """Return the bytes of the buffers."""
        module = None if self.model is None else get_compilation(self.model).body.module
        return 0 if module is None else compute_memory(module, dtype).buffers

    def count_steps(self, sizes: Mapping[str, int], options: StepOptions) -> list[Step]:
        """Count activations and the loss of each stage. Raises ArchError as `plan`."""
        number = max(len(options.stages), 1)
        if self.model is None:
            uncounted = ("activations and the loss, which depend on the adapter", "buffers of the base model")
            return [Step(uncounted=uncounted)] * number
        if not sizes:
            return [Step(uncounted=("activations and the loss: add --batch and --seq",))] * number
        values, missing = self._sizes(sizes)
        if missing:
            add = options_for_sizes(missing)
            uncounted = f"activations and the loss, which depend on {', '.join(missing)}: add {add}"
            return [Step(uncounted=(uncounted,))] * number
        kind = "exact" if self.entire is None and not options.stages else "assumed"
        steps = _count_activations(self.model, values, options, kind)
        loss, problem = _count_loss(self.entire or self.model, values, options)
        return [*steps[:-1], steps[-1]._replace(loss=loss, uncounted=(*steps[-1].uncounted, *problem))]

    def _sizes(self, sizes: Mapping[str, int]) -> tuple[dict[str, int], list[str]]:
        """Return valid sizes, and the dimensions without one; a batch without a size has one element."""
        assert self.model is not None
        names = dimensions(get_compilation(self.model).body.inputs)
        values = valid_sizes(self.model, {"batch": 1, **sizes} if "batch" in names else sizes)
        return values, [name for name in names if name not in values]

    def block_flops(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return the multiply-accumulates of each block, and of what is outside of blocks ("")."""
        help = "state the number of blocks of each stage, such as `--pipeline 8,8,8,8`, or add --seq"
        if self.model is None:
            raise make_error("unsupported", "the stages of an adapter are not balanced", help=help)
        values, missing = self._sizes(sizes)
        if missing:
            raise make_error("usage", f"balanced stages depend on {', '.join(missing)}", help=help)
        compilation = get_compilation(self.model)
        flops = dict.fromkeys(["", *block_addresses(compilation.table)], 0)
        for module in compute_cost(compilation.table, compilation.body, values, "float32").modules:
            block = next((address for address in prefixes(module.address) if address in flops), "")
            if isinstance(module.own.macs, int):
                flops[block] += module.own.macs
        return flops


def compile_source(
    model: ModelLike, overrides: Mapping[str, PlainValue], tensor: int
) -> tuple[Table, tuple[Diagnostic, ...], PlannedModel]:
    """Compile a model, of `tensor` ranks the first. Raises ArchError as `plan` does."""
    compiled = as_model(model, overrides)
    compilation = get_compilation(compiled)
    kinds = read_layers(specs_root(), "LORA").kinds
    quantization = compilation.unit.quantization
    stored = None if quantization is None else stored_bytes(compilation.table, quantization)
    if stored is not None and (stored.unknown or tensor > 1):
        message = stored.unknown or "how tensor parallelism divides quantized weights is not known"
        raise make_error("unsupported", message, help="plan the model without `quantization_config`")
    if tensor == 1:
        return compilation.table, compiled.warnings, PlannedModel(compiled, kinds, stored=stored)
    rank = divide_model(compiled, tensor)
    return get_compilation(rank.model).table, compiled.warnings, PlannedModel(rank.model, kinds, compiled)


def load_adapter_table(
    location: Location, base: ModelLike | None, overrides: Mapping[str, PlainValue]
) -> tuple[Table, tuple[Diagnostic, ...], PlannedModel]:
    """Return the table of a base model with an adapter. Raises ArchError as `adapter` does."""
    adapter = load_adapter(location, base, overrides)
    if _is_quantized(base, adapter.lora.base, location):
        message = f"{adapter.base} has quantized weights, which plans of `adapter_config.json` do not know"
        raise make_error("unsupported", message, help="plan the configuration of the base model with `--lora`")
    return adapter.table, (), PlannedModel(None, {})


def _is_quantized(base: ModelLike | None, name: str | None, adapter: Location) -> bool:
    """Return whether the base model of an adapter has quantized weights."""
    if isinstance(base, Model):
        return get_compilation(base).unit.quantization is not None
    if base is not None:
        place = locate(base)
    else:
        place = locate(name or "")._replace(type=adapter.type, ignore=adapter.ignore, strict=adapter.strict)
    return get_compilation(compile_location(place, {})[0]).unit.quantization is not None


def _count_activations(model: Model, values: Mapping[str, int], options: StepOptions, kind: str) -> list[Step]:
    number = max(len(options.stages), 1)
    if options.uncounted:
        return [Step(uncounted=(options.uncounted,))] * number
    every, policy = parse_checkpoint(options.checkpoint)
    blocks = block_addresses(get_compilation(model).table)[::every] if every else []
    stages = [stage.blocks for stage in options.stages]
    try:
        saved = compute_kept(model, values, options.dtype, options.attention, blocks, policy, options.frozen, stages)
    except ArchError as error:
        diagnostic = error.diagnostics[0]
        if diagnostic.code not in _NOT_RUN:
            raise
        return [Step(uncounted=(f"activations: {diagnostic.message}",))] * number
    alive = [stage.alive for stage in options.stages] or [1]
    return [_step(part, times, len(blocks), policy, options, kind) for part, times in zip(saved, alive, strict=True)]


def _step(saved: KeptForBackward, alive: int, blocks: int, policy: str, options: StepOptions, kind: str) -> Step:
    """Return the rows of a stage, with activations of `alive` microbatches."""
    note = f"{options.dtype}, {options.attention} attention"
    times = f", {alive} microbatches" if options.stages else ""
    if not blocks:
        return Step((PlanRow("kept for backward", alive * saved.outside, kind, note + times),), has_activations=True)
    rows = [
        PlanRow("inputs of checkpointed blocks", alive * saved.inputs, kind, times[2:] or f"{blocks} blocks"),
        PlanRow("kept outside of these blocks", alive * saved.outside, kind, note + times),
    ]
    if policy:
        rows.append(PlanRow(f"results of {policy} in these blocks", alive * saved.results, kind, note + times))
    again = PlanRow("one block, computed again", saved.recomputed, kind, "the largest")
    return Step(tuple(rows), (again,), has_activations=True)


def _count_loss(
    model: Model, values: Mapping[str, int], options: StepOptions
) -> tuple[tuple[PlanRow, ...], tuple[str, ...]]:
    """Return the row of the loss, and what is not counted of it."""
    logits = 0
    for name, type in model.outputs.items():
        size = substitute(multiply_unexpanded(type.shape), values)
        if name.endswith("logits") and type.dtype == "real" and isinstance(size, int):
            logits += size
    if not logits:
        return (), ("the loss: no output is called `logits`",)
    if options.fused_loss:
        return (), ("the parts of logits that a fused loss computes at a time",)
    note = f"cross entropy of transformers: {LOSS_BYTES} bytes per logit"
    alive = options.stages[-1].alive if options.stages else 1
    return (PlanRow("loss", LOSS_BYTES * logits * alive, "assumed", note),), ()
