"""`archspec.plan`: the bytes of one device in training."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from archspec.analysis.cost.dimension_sizes import is_integer, merge_sizes
from archspec.analysis.cost.dtypes import ATTENTION, FLOATS, check_choice
from archspec.analysis.cost.trained import block_patterns
from archspec.analysis.plan.engines import (
    PlannedTensor,
    Setting,
    Share,
    held_in_step,
    share_of,
    share_without_padding,
)
from archspec.analysis.plan.experts import divide_experts
from archspec.analysis.plan.options import ENGINES, OPTIMIZERS, SCHEDULES
from archspec.analysis.plan.plan import Moment, Plan, PlanGroup, PlanRow, PlanStage
from archspec.analysis.plan.sources import read_source
from archspec.analysis.plan.stages import Stage, divide_blocks, tensors_of_stages
from archspec.analysis.plan.step import Step, StepOptions, parse_checkpoint
from archspec.analysis.plan.tensors import plan_tensors
from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import make_error
from archspec.core.record import Record
from archspec.formats.devices import Device, load_device

if TYPE_CHECKING:
    from archspec.analysis.plan.compiled import PlannedModel
    from archspec.ir.table import PlainValue, Table
    from archspec.pipeline.model import ModelLike


@check_arguments
def plan(
    model: ModelLike,
    device: str | os.PathLike[str] | Device,
    /,
    batch: int | None = None,
    seq: int | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    count: int | None = None,
    engine: str = "ddp",
    tensor: int = 1,
    expert: int = 1,
    pipeline: int | Sequence[int] = 1,
    microbatches: int = 1,
    schedule: str = "1f1b",
    dtype: str | None = None,
    compute_dtype: str | None = None,
    optimizer: str = "adamw",
    checkpoint: str = "none",
    attention: str = "flash",
    frozen: Collection[str] = (),
    lora: Mapping[str, int] | None = None,
    fused_loss: bool = False,
    reshard: bool = True,
    by: str | None = None,
    base: ModelLike | None = None,
    **overrides: PlainValue,
) -> Plan:
    """Compute the bytes of one device in training, by category: states, activations, the loss, and what engines hold.

    `model` is a Model, or what `archspec.load` takes with its `overrides`, or an adapter, whose base model is `base`.
    `device` is the name of a bundled device, a file that describes one, or a Device. The model is trained on `count`
    devices (default: as few as the other numbers need). Heads and feed-forward networks are divided among `tensor`
    devices, experts among `expert` devices ("ddp" and "fsdp2"), and blocks among the stages of a `pipeline`: their
    number, or the numbers of their blocks. `schedule` is "1f1b" or "gpipe", with `microbatches` of the stated sizes.
    Data is divided among the others, where `engine` is "ddp" (the model is whole), "zero1", "zero2", "zero3" or
    "fsdp2".

    `batch`, `seq` and `dims` are sizes as for `cost`, for one device; without any, only states are counted. `dtype` is
    the type of the weights (default: float32, or bfloat16 with ZeRO), and `compute_dtype` the type that FSDP2 converts
    them to (default: bfloat16). `optimizer` is a key of OPTIMIZERS. `checkpoint` is "none", "blocks", "every=K",
    "selective=matmul" or "selective=attention": numbered modules are computed again. `attention`, `frozen` and `lora`
    are as for `cost`. With `fused_loss`, logits are never whole. Without `reshard`, FSDP2 keeps whole weights until
    backward. `by="block"` lists where states are. `docs/fit.md` defines all figures.

    Raises ArchError for what an engine cannot run, an unknown device, option, pattern or dimension, and the errors of
    `archspec.load`.
    """
    device = load_device(device)
    number = pipeline if isinstance(pipeline, int) else len(pipeline)
    count = tensor * expert * number if count is None else count
    ranks = _check_numbers(engine, count, tensor, expert, number, microbatches)
    setting = _check_setting(engine, ranks, dtype, compute_dtype, optimizer, reshard)
    check_choice(attention, ATTENTION, "attention implementation")
    check_choice(by, (None, "block"), "grouping")
    parse_checkpoint(checkpoint)
    sizes = merge_sizes(dims, batch, seq)
    table, warnings, source = read_source(model, base, overrides, tensor, compiles=bool(sizes or lora) or pipeline != 1)
    is_zero = engine.startswith("zero")
    kinds: Mapping[str, str] = {} if source is None else source.kinds
    tensors = plan_tensors(table, setting.dtype, frozen, lora or {}, kinds, adapters_in_float32=not is_zero)
    stored = None if source is None else source.stored
    if stored is not None:
        _check_quantized(setting, frozen, lora, expert)
        tensors = [tensor for tensor in tensors if tensor.is_trained]  # the others are as stored
    if expert > 1:
        tensors = divide_experts(table, tensors, expert, setting.ranks // expert)
    _check_division(tensors, setting)
    stages = _find_stages(table, source, sizes, pipeline, microbatches, schedule)
    names = frozenset(tensor.name for tensor in tensors if not tensor.is_trained)
    steps, buffers = [Step(uncounted=("activations and the loss: add --batch and --seq",))] * max(len(stages), 1), 0
    if source is not None:
        uncounted = "activations, which depend on the adapters" if lora else ""
        uncounted = "activations, which depend on the choice of experts" if expert > 1 else uncounted
        options = StepOptions(setting.compute, attention, checkpoint, names, fused_loss, uncounted, tuple(stages))
        steps, buffers = source.count_steps(sizes, options), source.buffer_bytes(setting.dtype)
    others = [PlanRow("buffers of the model", buffers, "at most" if stages else "exact")] if buffers else []
    if stored is not None:
        others.append(PlanRow("quantized base model", stored.total, note=f"{stored.method}, as stored"))
        uncounted = "weights that are computed with in 16 bits, of one layer at a time"
        steps = [step._replace(uncounted=(*step.uncounted, uncounted)) for step in steps]
    divided = tensors_of_stages(table, tensors, stages) if stages else [tensors]
    devices = [
        _Device(part, step, _state_rows(part, setting, others), _moments(part, setting, step))
        for part, step in zip(divided, steps, strict=True)
    ]
    most = max(devices, key=lambda part: part.total)
    is_even = tensor == expert == 1 and not stages
    least = share_of(tensors, setting, setting.ranks - 1).total + sum(row.bytes for row in others)
    settings: dict[str, int | str | bool | None] = {
        "count": count,
        "engine": engine,
        "tensor": tensor,
        "expert": expert,
        "pipeline": len(stages) or 1,
        "microbatches": microbatches if stages else 1,
        "schedule": schedule if stages else None,
        "dtype": setting.dtype,
        "compute_dtype": setting.compute,
        "optimizer": optimizer,
        "checkpoint": checkpoint,
        "attention": attention,
        "fused_loss": fused_loss,
        "reshard": reshard,
        **sizes,
    }
    return Plan(
        table.model,
        device,
        settings,
        most.states,
        most.moments,
        least if is_even else None,
        _groups(most.tensors, setting, others),
        block_patterns(table),
        (*dict.fromkeys(text for step in steps for text in step.uncounted), _ALWAYS_UNCOUNTED),
        all(step.has_activations for step in steps),
        by or "",
        warnings,
        tuple(
            [
                PlanStage(stage.blocks[0], len(stage.blocks), stage.alive, part.total)
                for stage, part in zip(stages, devices, strict=bool(stages))
            ]
        ),
    )


_ALWAYS_UNCOUNTED = "temporaries of operations, the framework, and rounding of its allocator"


class _Device(Record):
    """The tensors of a device, its step, and their bytes."""

    tensors: Sequence[PlannedTensor]
    step: Step
    states: tuple[PlanRow, ...]
    moments: tuple[Moment, ...]

    @property
    def total(self) -> int:
        return sum(row.bytes for row in self.states) + max(moment.total for moment in self.moments)


def _find_stages(
    table: Table,
    source: PlannedModel | None,
    sizes: Mapping[str, int],
    pipeline: int | Sequence[int],
    microbatches: int,
    schedule: str,
) -> list[Stage]:
    """Return the stages of a pipeline; none for a pipeline of 1."""
    check_choice(schedule, SCHEDULES, "schedule")
    if pipeline == 1:
        return []
    weights: Mapping[str, int] = {}
    if isinstance(pipeline, int):
        assert source is not None
        weights = source.block_flops(sizes)
    return divide_blocks(table, pipeline, microbatches, schedule, weights)


def _check_setting(
    engine: str,
    ranks: int,
    dtype: str | None,
    compute_dtype: str | None,
    optimizer: str,
    reshard: bool,
) -> Setting:
    """Return the setting of an engine. Raises ArchError for what it cannot run, and for what is not known of it."""
    check_choice(engine, ENGINES, "engine")
    check_choice(optimizer, OPTIMIZERS, "optimizer")
    is_zero, is_fsdp = engine.startswith("zero"), engine == "fsdp2"
    dtype = dtype or ("bfloat16" if is_zero else "float32")
    check_choice(dtype, FLOATS, "dtype of a model that is trained")
    if is_zero and dtype not in ("float16", "bfloat16"):
        raise make_error("unsupported", f"{engine} is counted for weights of 16 bits", help="use --dtype bfloat16")
    compute = compute_dtype or ("bfloat16" if is_fsdp and dtype == "float32" else dtype)
    check_choice(compute, FLOATS, "dtype of a model that is trained")
    if compute != dtype and not is_fsdp:
        message = f"{engine} computes in the type of the weights; what autocast keeps is not counted"
        raise make_error("unsupported", message, help=f"use --engine fsdp2, or --dtype {compute}")
    if not reshard and not is_fsdp:
        raise make_error("usage", f"{engine} does not drop whole weights after the forward pass", help="use fsdp2")
    if OPTIMIZERS[optimizer].factored and engine != "ddp":
        message = f"the state of {OPTIMIZERS[optimizer].title} is not known for the parts of {engine}"
        raise make_error("unsupported", message, help="use --engine ddp, or another optimizer")
    return Setting(engine, ranks, OPTIMIZERS[optimizer], dtype, compute, reshard)


def _check_numbers(engine: str, count: int, tensor: int, expert: int, pipeline: int, microbatches: int) -> int:
    """Return the number of devices among which data is divided. Raises ArchError."""
    for number in (count, tensor, expert, pipeline, microbatches):
        if not is_integer(number, 1):
            raise make_error("usage", f"expected a number from 1, found {number!r:.40}")
    if microbatches > 1 and pipeline == 1:
        raise make_error("usage", "microbatches have no effect without a pipeline", help="use --pipeline N")
    product = tensor * expert * pipeline
    if count % product:
        factors = " x ".join([str(number) for number in (tensor, expert, pipeline) if number > 1])
        message = f"{count} devices are not a multiple of {factors}, among which the model is divided"
        raise make_error("bad-plan", message, help=f"use --count {-(-count // product) * product}")
    if expert > 1 and engine not in ("ddp", "fsdp2"):
        message = f"how {engine} divides experts is not known"
        raise make_error("unsupported", message, help="use --engine ddp or fsdp2")
    return count // (tensor * pipeline)


def _check_quantized(setting: Setting, frozen: Collection[str], lora: Mapping[str, int] | None, expert: int) -> None:
    """Raise ArchError unless adapters of quantized weights are trained on each device."""
    if not lora or frozen:
        message = "quantized weights are not trained"
        raise make_error("unsupported", message, help="train adapters with `--lora`, and freeze nothing else")
    if setting.engine != "ddp" or expert > 1:
        message = f"how {setting.engine} divides quantized weights is not known"
        raise make_error("unsupported", message, help="use --engine ddp without --expert")


def _check_division(tensors: Sequence[PlannedTensor], setting: Setting) -> None:
    """Raise ArchError for tensors that an engine refuses."""
    scalars = [tensor.name for tensor in tensors if not tensor.shape]
    if scalars and setting.engine == "fsdp2":
        message = f"`fully_shard` does not divide parameters without axes: {', '.join(scalars[:3])}"
        raise make_error("unsupported", message, help="use another engine, or make it a vector of one element")


def _state_rows(tensors: Sequence[PlannedTensor], setting: Setting, others: Sequence[PlanRow]) -> tuple[PlanRow, ...]:
    share = share_of(tensors, setting)
    dtypes = " and ".join(dict.fromkeys(tensor.dtype for tensor in tensors))
    trained_dtypes = " and ".join(dict.fromkeys(tensor.dtype for tensor in tensors if tensor.is_trained))
    part = "" if setting.engine == "ddp" or setting.ranks == 1 else f", 1/{setting.ranks}"
    whole_weights = setting.engine in ("zero1", "zero2")
    state_dtype = "float32" if setting.engine.startswith("zero") else trained_dtypes
    rows = [
        PlanRow("weights", share.weights, note=dtypes + (", whole" if whole_weights and part else part)),
        PlanRow("gradients", share.gradients, *_gradient_kind(setting, trained_dtypes + part)),
        PlanRow("master weights", share.master, note=f"float32{part}"),
        PlanRow("optimizer", share.optimizer, note=f"{setting.optimizer.title}, {state_dtype}{part}"),
        PlanRow("steps of the optimizer", share.scalars, note="float32, for each tensor"),
        *others,
    ]
    return tuple([row for row in rows if row.bytes or row.category in ("weights", "gradients", "optimizer")])


def _gradient_kind(setting: Setting, note: str) -> tuple[str, str]:
    return ("assumed", f"{note}; in the type of the weights") if setting.engine == "zero3" else ("exact", note)


def _moments(tensors: Sequence[PlannedTensor], setting: Setting, step: Step) -> tuple[Moment, ...]:
    """Return what is held at moments of a step besides states."""
    activations = {"at the loss": (*step.saved, *step.loss), "backward": (*step.saved, *step.recomputed)}
    return tuple(
        [Moment(name, (*rows, *activations.get(name, ()))) for name, rows in held_in_step(tensors, setting).items()]
    )


def _groups(tensors: Sequence[PlannedTensor], setting: Setting, others: Sequence[PlanRow]) -> tuple[PlanGroup, ...]:
    """Return the states of blocks with the same pattern, and of layers outside of blocks; they add up to all states."""
    members: dict[str, list[PlannedTensor]] = {}
    for tensor in tensors:
        members.setdefault(tensor.group, []).append(tensor)
    shares = [share_without_padding(group, setting) for group in members.values()]
    groups = [
        _group(name, len({tensor.block for tensor in group}), len(group), share)
        for (name, group), share in zip(members.items(), shares, strict=True)
    ]
    total = share_of(tensors, setting)
    remainder = Share(*[amount - sum(parts) for amount, *parts in zip(total, *shares, strict=True)])
    if remainder.total:
        groups.append(_group("(padding)", 1, 0, remainder))
    groups += [_group(f"({row.category})", 1, 0, Share(row.bytes)) for row in others]
    return tuple(groups)


def _group(name: str, times: int, tensors: int, share: Share) -> PlanGroup:
    weights, gradients, master, optimizer, scalars = share
    return PlanGroup(name, times, tensors, weights, gradients, master, optimizer + scalars)
