"""The direction in which a model reads a sequence."""

from __future__ import annotations

from archspec.analysis.cost.attention import AttentionPart, AttentionSlots, AttentionTracer, BodyContext
from archspec.analysis.cost.steps import NoDecodingStepError, Steps
from archspec.core.algebra import symbols
from archspec.ir.module import Body, Call, Type


def attention_direction(body: Body, dimension: str) -> str:
    """Return "causal" if no position along a dimension depends on later ones, "both" if attention reads later ones.

    Return "" if neither can be shown.
    """
    try:
        steps = Steps(body, dimension)
    except NoDecodingStepError:
        scores = _scores(body, dimension)
        return "both" if scores and all(part.seen.known and not part.seen.causal for part in scores) else ""
    reads_earlier = steps.windows or any(reading.seen is not None for reading in steps.readings.values())
    return "causal" if reads_earlier else ""


def _scores(body: Body, dimension: str) -> list[AttentionPart]:
    """The products that score keys along a dimension."""
    tracer = AttentionTracer()
    found: list[AttentionPart] = []

    def visit(body: Body, traced: AttentionSlots) -> None:
        for call in body.calls:
            if call.body is not None:
                visit(call.body, tracer.trace(call.body, traced.inside(call)))
            else:
                part = traced.part(call)
                if part is not None and part.name == "score" and _is_along(call, dimension):
                    found.append(part)

    visit(body, tracer.trace(body, BodyContext()))
    return found


def _is_along(call: Call, dimension: str) -> bool:
    result = call.outputs[0]
    return isinstance(result, Type) and all(dimension in symbols(size) for size in result.shape[-2:])
