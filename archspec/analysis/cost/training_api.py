"""`archspec.training_flops`: the FLOPs of a training step, of a spec or of the module that is trained."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

from archspec.analysis.cost.api import check_and_compute_training, valid_sizes
from archspec.analysis.cost.dimension_sizes import merge_sizes
from archspec.analysis.cost.live_modules import describe_module
from archspec.analysis.cost.training import Training
from archspec.core.arguments import check_arguments
from archspec.ir.structure.attention import AttentionTracer
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import ModelLike


@check_arguments
def training_flops(
    model: ModelLike | object,
    /,
    batch: int | None = None,
    seq: int | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    frozen: Collection[str] = (),
    lora: Mapping[str, int] | None = None,
    checkpoint: str = "none",
) -> Training:
    """Compute the FLOPs of a training step, for the utilization (MFU) of devices.

    `model` is a Model, an argument of `archspec.load`, or a module of `transformers` or `peft`, of which the
    configuration is read, and which parameters are trained. `frozen` are the names of parameters that are not trained,
    or patterns: parts of names such as "embed_tokens" or "layers.*.mlp", where `*` is any index. `lora` are the ranks
    of adapters, by such ends of the names of linear layers; all other parameters are then frozen, unless `frozen` says
    which. `checkpoint` is "none", "blocks" (`torch.utils.checkpoint` for each block) or "blocks-reentrant".

    Raises ArchError for names that match nothing, and as `cost` does.
    """
    if hasattr(model, "named_parameters"):
        model, frozen, lora = describe_module(model, frozen, lora or {})
    compiled = as_model(cast("ModelLike", model))
    values = valid_sizes(compiled, merge_sizes(dims, batch, seq))
    return check_and_compute_training(compiled, values, AttentionTracer(), frozen, lora or {}, checkpoint)
