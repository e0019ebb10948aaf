"""`archspec cost SPEC`."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from archspec.analysis.cost.api import cost
from archspec.analysis.cost.dimension_sizes import parse_sizes
from archspec.app.cli import write_diagnostics
from archspec.app.cli.output import print_result
from archspec.core.diagnostics import ArchError, make_error
from archspec.ir.index_ranges import dimensions
from archspec.pipeline.compile import as_model
from archspec.pipeline.overrides import parse_overrides

if TYPE_CHECKING:
    from collections.abc import Mapping

    from archspec.ir.table import PlainValue
    from archspec.pipeline.model import Model


def run(options: Namespace) -> int:
    """Write the cost of a model."""
    if options.cache_dtype is not None and options.past is None and options.device is None:
        raise make_error("usage", "--cache-dtype has no effect without --past", help="use --past N for a decoding step")
    if options.device is None and (options.utilization or options.bandwidth_utilization) is not None:
        message = "--utilization and --bandwidth-utilization have no effect without --device"
        raise make_error("usage", message, help="use --device NAME for a time")
    if options.past is not None and options.training:
        message = "--past is for a step of decoding, and --training for one of training"
        raise make_error("usage", message, help="use one of them")
    sizes = parse_sizes(options.dims)
    overrides = parse_overrides(options.settings)
    if options.image is None:
        model = as_model(options.spec, overrides)
    else:
        model = _load_for_image(options, overrides)
        sizes.setdefault("images", 1)
    result = cost(
        model,
        options.batch,
        options.seq,
        dims=sizes,
        dtype=options.dtype,
        past=options.past,
        cache_dtype=options.cache_dtype,
        attention=options.attention,
        causal_half=options.causal_half,
        depth=options.depth,
        training=options.training,
        frozen=options.freeze,
        lora=dict(options.lora),
        checkpoint=options.checkpoint,
        device=options.device,
        utilization=1.0 if options.utilization is None else options.utilization,
        bandwidth_utilization=1.0 if options.bandwidth_utilization is None else options.bandwidth_utilization,
    )
    print_result(result, options)
    write_diagnostics(model.warnings)
    return 0


def _load_for_image(options: Namespace, overrides: Mapping[str, PlainValue]) -> Model:
    """Return the model for the image of the options.

    Raises ArchError unless what its processor makes of an image follows from its hyperparameters.
    """
    if "pixels" in overrides:
        message = "--image and --set pixels=... both state the size of an image"
        raise make_error("usage", message, help="use one of them")
    try:
        return as_model(options.spec, {**overrides, "pixels": list(options.image)})
    except ArchError:
        model = as_model(options.spec, overrides)
        if "pixels" in model.hyperparameters:
            raise
    message = f"`{model.name}` has no hyperparameter `pixels`, from which the sizes of its inputs would follow"
    images = [name for name, type in model.inputs.items() if "images" in dimensions([(name, type)])]
    help = f"`--dim images=1` computes the cost with an image of the sizes of `{images[0]}`" if images else None
    raise make_error("usage", message, help=help) from None
