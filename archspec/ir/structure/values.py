"""Facts about values, for the reader of structure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from archspec.core.algebra import Dim
from archspec.core.record import Record
from archspec.ir.structure.axes import Axes, channels, size_of
from archspec.ir.structure.parts import Part

# Elementwise functions, told apart by their values.

POINTS = (-2.5, -1.1, -0.4, 0.0, 0.3, 0.9, 1.7)
"""Arguments at which functions are compared."""

Curve = tuple[float, ...]
"""The values of a function at POINTS."""


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


_ACTIVATIONS: dict[str, Callable[[float], float]] = {
    "ReLU": lambda x: max(x, 0.0),
    "ReLU²": lambda x: max(x, 0.0) ** 2,
    "LeakyReLU": lambda x: x if x > 0 else 0.01 * x,
    "ELU": lambda x: x if x > 0 else math.expm1(x),
    "GELU": _gelu,
    "QuickGELU": lambda x: x * _sigmoid(1.702 * x),
    "SiLU": lambda x: x * _sigmoid(x),
    "Mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "Softplus": lambda x: math.log1p(math.exp(x)),
    "Sigmoid": _sigmoid,
    "Tanh": math.tanh,
}
_TOLERANCES = {"GELU": 1e-3}
"""Differences that are allowed: GELU is computed by tanh as well (Hendrycks and Gimpel, 2016)."""


def is_affine(curve: Curve) -> bool:
    """Whether a function is a multiple of its argument plus a number."""
    slope = (curve[-1] - curve[0]) / (POINTS[-1] - POINTS[0])
    return all(abs(curve[0] + slope * (x - POINTS[0]) - y) <= 1e-9 for x, y in zip(POINTS, curve, strict=True))


def activation_name(curve: Curve) -> str | None:
    """Return the usual name of a function, None if it has none."""
    for name, function in _ACTIVATIONS.items():
        tolerance = _TOLERANCES.get(name, 1e-6)
        if all(abs(function(x) - y) <= tolerance for x, y in zip(POINTS, curve, strict=True)):
            return name
    return None


class Projection(Record):
    """The linear maps that a value is computed by since the last sum.

    `tensors` are their parameters, `source` is the value that the first of them takes. `input_width` and `width` are
    the sizes of the vectors that the last takes and makes, `latent` is the smallest width between two maps (None for
    one map). `part` says which part of the result the value is. `experts` are the numbers of experts that there are
    and that each token uses, if the map is a choice of experts. `is_convolution` is whether the last mixes positions.
    """

    tensors: tuple[str, ...]
    source: str
    input_width: Dim
    width: Dim
    latent: Dim | None = None
    part: tuple[str, ...] = ()
    experts: tuple[Dim, Dim] | None = None
    is_convolution: bool = False


class Hidden(Record):
    """A linear map, or the product of two, with a function after it: the first half of a feed-forward network."""

    activation: str | None
    is_gated: bool


class Scores(Record):
    """The scores of attention, before or after the softmax; see `parts.Attention`."""

    heads: Dim
    groups: Dim
    key_size: Dim
    queries: Dim
    keys: Dim
    is_cross: bool
    rotary: Dim
    latent: Dim | None
    tensors: tuple[str, ...]
    has_bias: bool = False


class Value(Record):
    """Facts about a value.

    `id` tells values apart, `axes` says which count channels, and `origins` are the inputs of the model that it depends
    on. `tensors` are the parameters of which it is a rearrangement; of a single table, `rows` is its number of rows.
    `projection` and `scores` say what it was computed by; `curve` is the function that was applied to the projection,
    None if it is not elementwise, and `hidden` what that makes of it; of a product of several, `factors` are their
    functions. `mixed` are the attentions whose result it is, before a linear map. `waves` are the functions "sin" and
    "cos" of positions that it is made of or multiplied by, and `rotary` is the number of elements that they have
    turned. `square` is the value of whose squares it is a sum, within a body.

    `is_statistic` is whether it depends on a buffer, and `is_counted` whether on positions: on their numbers, or on a
    cumulative sum.
    """

    id: str = ""
    axes: Axes = ()
    origins: frozenset[str] = frozenset()
    tensors: tuple[str, ...] = ()
    rows: Dim = 0
    projection: Projection | None = None
    curve: Curve | None = None
    hidden: Hidden | None = None
    factors: tuple[tuple[str, Curve], ...] = ()
    scores: Scores | None = None
    mixed: tuple[Part, ...] = ()
    waves: frozenset[str] = frozenset()
    rotary: Dim = 0
    square: str = ""
    is_statistic: bool = False
    is_counted: bool = False

    def renamed(self, rename: Callable[[str], str]) -> Value:
        """Return the value with other names for values and tensors."""
        projection, scores = self.projection, self.scores
        if projection is not None:
            tensors = tuple(map(rename, projection.tensors))
            projection = projection._replace(tensors=tensors, source=rename(projection.source))
        if scores is not None:
            scores = scores._replace(tensors=tuple(map(rename, scores.tensors)))
        id = rename(self.id) if self.id else ""
        mixed = tuple([part._replace(tensors=tuple(map(rename, part.tensors))) for part in self.mixed])
        return self._replace(
            id=id,
            factors=(),
            mixed=mixed,
            tensors=tuple(map(rename, self.tensors)),
            projection=projection,
            scores=scores,
            square="",
        )

    def names(self) -> Iterator[str]:
        """Yield the names of values and tensors in it."""
        if self.id:
            yield self.id
        yield from self.tensors
        if self.projection is not None:
            yield from self.projection.tensors
            yield self.projection.source
        if self.scores is not None:
            yield from self.scores.tensors
        for part in self.mixed:
            yield from part.tensors


def all_tensors(values: Sequence[Value]) -> tuple[str, ...]:
    """Return the parameters of which values are projections or rearrangements."""
    names = [
        name
        for value in values
        for name in (*value.tensors, *(value.projection.tensors if value.projection is not None else ()))
    ]
    return tuple(dict.fromkeys(names))


def multiplied(values: Sequence[Value]) -> tuple[tuple[str, Curve], ...]:
    """Return the functions of each projection whose product the product of values is."""
    curves: dict[str, Curve] = {}
    for value in values:
        assert value.projection is not None
        own = ((f"{value.projection.tensors} {value.projection.part}", value.curve),) if value.curve is not None else ()
        for key, curve in value.factors or own:
            before = curves.get(key)
            curves[key] = curve if before is None else tuple([a * b for a, b in zip(before, curve, strict=True)])
    return tuple(curves.items())


def score(query: Value, keys: Value) -> Scores:
    """Return the scores of keys at queries."""
    first, second = query.projection, keys.projection
    is_same = first is not None and second is not None and first.source == second.source
    is_cross = not is_same and (query.origins != keys.origins or query.axes[-2:-1] != keys.axes[-1:])
    latents = [second.latent] if second is not None and second.latent is not None else []
    return Scores(
        channels(query.axes[:-1]),
        channels((*keys.axes[:-2], *keys.axes[-1:])),
        size_of(query.axes[-1]),
        size_of(query.axes[-2]),
        size_of(keys.axes[-1]),
        is_cross,
        query.rotary,
        latents[0] if latents else None,
        all_tensors([query, keys]),
    )
