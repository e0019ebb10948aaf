"""Reading of the parts of a model from its operations, each body once per context.

`bodies.py` reads a body. Here its results become those of a model: heads at the outputs, an attention with the map
after it, and experts with the networks beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from archspec.core.addresses import is_inside, parent
from archspec.core.algebra import Dim
from archspec.ir.fold import VisitLimit
from archspec.ir.module import Body
from archspec.ir.structure.attention import AttentionTracer, BodyContext
from archspec.ir.structure.axes import axes_of_type
from archspec.ir.structure.bodies import OUTER, BodyReader, Reading
from archspec.ir.structure.parts import (
    AttentionFacts,
    ConvolutionFacts,
    EmbeddingFacts,
    ExpertsFacts,
    FeedForwardFacts,
    HeadFacts,
    Part,
)
from archspec.ir.structure.values import Value


def read_parts(body: Body) -> tuple[Part, ...]:
    """Return the parts of a model in the order of its operations.

    Raises ArchError if this takes too many steps.
    """
    reader = _Reader()
    inputs = tuple(
        [Value(f"{OUTER}{i}", axes_of_type(type), frozenset([name])) for i, (name, type) in enumerate(body.inputs)]
    )
    reading = reader.read(body, BodyContext(), inputs)
    parts = _join_shared_experts(_distinct(reading.parts))
    return (*parts, *_heads(reading.outputs, parts))


def _heads(outputs: Iterable[Value], parts: Sequence[Part]) -> list[Part]:
    """Return the last maps before the outputs of a model that has other parts, and of which they are none."""
    others = [part for part in parts if not isinstance(part.facts, EmbeddingFacts | ConvolutionFacts)]
    read = {name for part in others for name in part.tensors}
    heads: list[Part] = []
    for output in outputs:
        projection = output.projection
        is_activated = output.hidden is not None and (output.hidden.is_gated or output.hidden.activation is not None)
        if projection is not None and projection.tensors and not is_activated and not projection.part:
            layer = parent(projection.tensors[-1])
            tensors = tuple([name for name in projection.tensors if parent(name) == layer])
            if parts and read.isdisjoint(tensors):
                heads.append(Part(layer, tensors, HeadFacts(projection.input_width, projection.width)))
    return list(dict.fromkeys(heads))


def _distinct(parts: Iterable[Part]) -> list[Part]:
    """Return the parts once each; an attention that a map follows replaces itself without the map."""
    distinct = list(dict.fromkeys(parts))
    attentions = [part for part in distinct if isinstance(part.facts, AttentionFacts)]
    mapped = {(part.facts, part.tensors[:-number]) for part in attentions for number in (1, 2)}
    return [part for part in distinct if (part.facts, part.tensors) not in mapped]


def _join_shared_experts(parts: Sequence[Part]) -> list[Part]:
    """Join feed-forward networks beside experts, in the module that has both, to the experts."""
    joined: set[Part] = set()
    result: list[Part] = []
    for part in parts:
        if isinstance(part.facts, ExpertsFacts):
            outer = part.address
            beside = [
                other
                for other in parts
                if isinstance(other.facts, FeedForwardFacts) and other.facts.width == part.facts.width
                if is_inside(other.address, outer)
            ]
            joined.update(beside)
            shared: Dim = 0
            tensors = part.tensors
            for other in beside:
                assert isinstance(other.facts, FeedForwardFacts)
                shared = shared + other.facts.inner
                tensors += other.tensors
            part = part._replace(tensors=tensors, facts=part.facts._replace(shared=shared))
        result.append(part)
    return [part for part in result if part not in joined]


class _Reader:
    """Reader of bodies, each once per context."""

    def __init__(self) -> None:
        self._tracer = AttentionTracer()
        self._budget = VisitLimit()
        self.read: Callable[[Body, BodyContext, tuple[Value, ...]], Reading] = cache(self._read)

    def _read(self, body: Body, context: BodyContext, inputs: tuple[Value, ...]) -> Reading:
        return BodyReader(self.read, body, self._tracer.trace(body, context), self._budget).read(inputs)
