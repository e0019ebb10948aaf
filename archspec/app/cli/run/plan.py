"""`archspec plan SPEC --device NAME`."""

from __future__ import annotations

from argparse import Namespace

from archspec.analysis.cost.dimension_sizes import parse_sizes
from archspec.analysis.plan.api import plan
from archspec.app.cli import write_diagnostics
from archspec.app.cli.files import save_pictures, wants_picture
from archspec.app.cli.output import print_result
from archspec.pipeline.overrides import parse_overrides


def run(options: Namespace) -> int:
    """Write the bytes of one device; return 1 if they do not fit."""
    is_drawn = wants_picture(options)
    result = plan(
        options.spec,
        options.device,
        options.batch,
        options.seq,
        dims=parse_sizes(options.dims),
        count=options.count,
        engine=options.engine,
        tensor=options.tensor,
        expert=options.expert,
        pipeline=options.pipeline,
        microbatches=options.microbatches,
        schedule=options.schedule,
        dtype=options.dtype,
        compute_dtype=options.compute_dtype,
        optimizer=options.optimizer,
        checkpoint=options.checkpoint,
        attention=options.attention,
        frozen=options.freeze,
        lora=dict(options.lora),
        fused_loss=options.fused_loss,
        reshard=options.reshard,
        by=options.by,
        base=options.base,
        **parse_overrides(options.settings),
    )
    if is_drawn:
        save_pictures(options, result, result.svg)
    print_result(result, options)
    write_diagnostics(result.warnings)
    return int(result.fits is False)
