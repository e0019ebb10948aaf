"""Reading of the parts of a model from its operations, each body once per context.

Facts about values (`values.py`) are propagated from inputs to outputs; a part is read where its last operation is.
Names of values and layers are relative to the body: those from outside are numbered (`^0`, `^1`, ...), so that equal
layers have equal contexts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from archspec.core.addresses import join, parent, prefixes
from archspec.core.algebra import Dim
from archspec.core.record import Record
from archspec.ir.fold import VisitLimit, arguments, present_outputs, propagate_forward
from archspec.ir.module import Body, Call, Constant, Module, Type, find_member
from archspec.ir.ops import OPS
from archspec.ir.structure.attention import AttentionPart, AttentionSlots, AttentionTracer, BodyContext
from archspec.ir.structure.axes import axes_of_type, axis, channels, joined_axes, moved_axes, size_of
from archspec.ir.structure.masks import VisibleKeys
from archspec.ir.structure.parts import Attention, Embedding, Experts, FeedForward, Head, Norm, Part, StateSpace
from archspec.ir.structure.values import (
    POINTS,
    Curve,
    Hidden,
    Projection,
    Scores,
    Value,
    activation_name,
    all_members,
)

_OUTER = "^"
_IDENTITY = POINTS
_NOTHING = Value()


class _Reading(Record):
    """The outputs of a body, and the parts in it, with addresses relative to it."""

    outputs: tuple[Value, ...]
    parts: tuple[Part, ...]


def read_parts(body: Body) -> tuple[Part, ...]:
    """Return the parts of a model in the order of its operations.

    Raises ArchError if this takes too many steps.
    """
    reader = _Reader()
    inputs = tuple(
        [Value(f"{_OUTER}{i}", axes_of_type(type), frozenset([name])) for i, (name, type) in enumerate(body.inputs)]
    )
    reading = reader.read(body, BodyContext(), inputs)
    parts = [*reading.parts, *_heads(reading.outputs)]
    return tuple(_with_shared_experts(_distinct(parts)))


def _heads(outputs: Iterable[Value]) -> list[Part]:
    heads: list[Part] = []
    for output in outputs:
        projection = output.projection
        if projection is not None and output.hidden is None and not projection.part:
            member = projection.members[-1]
            heads.append(Part(member, (member,), Head(projection.given, projection.width)))
    return heads


def _distinct(parts: Iterable[Part]) -> list[Part]:
    return list(dict.fromkeys(parts))


def _with_shared_experts(parts: Sequence[Part]) -> Iterable[Part]:
    """Join feed-forward networks beside experts, in the module that has both, to the experts."""
    joined: set[Part] = set()
    result: list[Part] = []
    for part in parts:
        if isinstance(part.facts, Experts):
            around = part.address
            beside = [
                other
                for other in parts
                if isinstance(other.facts, FeedForward) and other.facts.width == part.facts.width
                if around in prefixes(other.address) or other.address == around
            ]
            joined.update(beside)
            shared: Dim = 0
            members = part.members
            for other in beside:
                assert isinstance(other.facts, FeedForward)
                shared = shared + other.facts.inner
                members += other.members
            part = part._replace(members=members, facts=part.facts._replace(shared=shared))
        result.append(part)
    return [part for part in result if part not in joined]


def _common(addresses: Sequence[str]) -> str:
    """Return the address of the innermost module around addresses."""
    first, *others = addresses
    around = [first, *reversed(list(prefixes(first)))]
    for address in around:
        if all(other == address or address in prefixes(other) for other in others):
            return address
    return ""


class _Reader:
    """Reader of bodies, each once per context."""

    def __init__(self) -> None:
        self._tracer = AttentionTracer()
        self._budget = VisitLimit()
        self.read: Callable[[Body, BodyContext, tuple[Value, ...]], _Reading] = cache(self._read)

    def _read(self, body: Body, context: BodyContext, inputs: tuple[Value, ...]) -> _Reading:
        return _BodyReader(self, body, self._tracer.trace(body, context), self._budget).read(inputs)


class _BodyReader:
    """Reader of one body in one context."""

    def __init__(self, reader: _Reader, body: Body, traced: AttentionSlots, budget: VisitLimit) -> None:
        self._reader = reader
        self._body = body
        self._traced = traced
        self._budget = budget
        self._parts: list[Part] = []
        self._streams = _find_streams(body)

    def read(self, inputs: Sequence[Value]) -> _Reading:
        carried = self._body.loop.carried if self._body.loop is not None else 0
        start = [
            Value(value.id, axes_of_type(type)) if i < carried else self._filling(i, value)
            for i, (value, (_, type)) in enumerate(zip(inputs, self._body.inputs, strict=True))
        ]
        result = propagate_forward(
            self._body, start, self._visit_op, self._visit_call, _NOTHING, weight=self._weight, budget=self._budget
        )
        self._find_norm(result.outputs)
        return _Reading(tuple(result.outputs), tuple(self._parts))

    # Values -------------------------------------------------------------------------------------------------------

    def _filling(self, slot: int, value: Value) -> Value:
        """Return the value that fills a slot; one that goes on beside what is computed from it starts anew."""
        return value._replace(projection=None, curve=None, hidden=None) if slot in self._streams else value

    def _weight(self, name: str) -> Value:
        """Return the value of a tensor; constants are computed by bodies of their own."""
        assert self._body.module is not None
        located = find_member(self._body.module, name)
        if located is None or isinstance(located, Module):
            return _NOTHING
        weight = located.weight
        if weight.value is not None:
            (output,) = self._reader.read(weight.value, BodyContext(), ()).outputs
            return output.renamed(lambda inner: f"{name}:{inner}")
        axes = axes_of_type(weight.type)
        is_trained = weight.kind == "param"
        return Value(f".{name}", axes, tensors=(parent(name),), is_trained=is_trained, is_statistic=not is_trained)

    def _visit_call(self, call: Call, operands: list[Value]) -> Sequence[Value]:
        assert call.body is not None
        inputs = arguments(call, operands)
        outer = list(dict.fromkeys([name for value in inputs for name in value.names()]))
        numbers = {name: f"{_OUTER}{i}" for i, name in enumerate(outer)}
        reading = self._reader.read(
            call.body, self._traced.call_context(call), tuple([value.renamed(numbers.__getitem__) for value in inputs])
        )

        def restore(inner: str) -> str:
            if inner.startswith(_OUTER):
                return outer[int(inner[1:])]
            return f"{call.first}{inner}" if inner[:1] in ("#", ".") else join(call.address, inner)

        for part in reading.parts:
            members = tuple(dict.fromkeys(map(restore, part.members)))
            self._parts.append(part._replace(members=members, address=self._address(members)))
        if call.kind == "loop":
            self._find_state_space(call, call.body)
        outputs = [value.renamed(restore)._replace(is_statistic=False) for value in reading.outputs]
        if call.body.loop is not None:
            types = [type or Type(()) for type in call.outputs]
            outputs = [
                Value(f"#{call.first + i}", axes_of_type(type), value.origins)
                for i, (type, value) in enumerate(zip(types, outputs, strict=True))
            ]
        slots = dict(present_outputs(call))
        return [self._filling(slots[i], value) if i in slots else value for i, value in enumerate(outputs)]

    @staticmethod
    def _address(members: Sequence[str]) -> str:
        return _common(members) if members and not any(m.startswith(_OUTER) for m in members) else ""

    def _add(
        self, members: Iterable[str], facts: Attention | FeedForward | Experts | StateSpace | Norm | Embedding
    ) -> None:
        distinct = tuple(dict.fromkeys(members))
        self._parts.append(Part(self._address(distinct), distinct, facts))

    # Operations ---------------------------------------------------------------------------------------------------

    def _visit_op(self, call: Call, operands: list[Value]) -> Sequence[Value]:
        op = OPS[call.type]
        present = [i for i, (_, operand) in enumerate(call.inputs) if isinstance(operand, int)]
        dynamic = [operands[i] for i in present]
        base = Value(
            origins=frozenset().union(*[value.origins for value in dynamic]),
            is_trained=any(value.is_trained for value in dynamic),
            is_statistic=any(value.is_statistic for value in dynamic),
            waves=frozenset().union(*[value.waves for value in dynamic]),
            is_counted=call.type in ("arange", "cumsum") or any(value.is_counted for value in dynamic),
        )
        results: list[Value] = []
        for i, type in enumerate(call.outputs):
            if type is None:
                results.append(_NOTHING)
                continue
            if op.group == "Shape":
                value = self._moved(call, dynamic, type, i, base)
            elif op.group == "Elementwise":
                value = self._elementwise(call, operands, dynamic, type, base)
            else:
                value = self._computed(call, operands, type, base)
            results.append(value._replace(id=f"#{call.first + i}"))
        slots = dict(present_outputs(call))
        return [self._filling(slots[i], value) if i in slots else value for i, value in enumerate(results)]

    def _moved(self, call: Call, values: list[Value], type: Type, index: int, base: Value) -> Value:
        axes = moved_axes(call, [value.axes for value in values], type, index)
        first = values[0]
        main = next((value for value in values if value.projection is not None), first)
        projection = main.projection
        if projection is not None and call.type in ("split", "slice", "pick"):
            settings = sorted(OPS[call.type].settings(call.attributes).items())
            projection = projection._replace(part=(*projection.part, f"{call.type} {index} {settings}"))
        if projection is not None and len(values) > 1:
            others = [value.projection for value in values if value.projection is not None]
            members = tuple(dict.fromkeys([member for other in others for member in other.members]))
            latents = [other.latent for other in others if other.latent is not None]
            projection = projection._replace(members=members, latent=latents[0] if latents else None, part=())
        rotary: Dim = first.rotary
        if call.type == "concat":
            rotary = sum([value.rotary for value in values], 0)
        elif rotary and len(axes) and call.type in ("slice", "split") and type.shape[-1] != size_of(first.axes[-1]):
            rotary = 0
        return base._replace(
            axes=axes,
            tensors=tuple(dict.fromkeys([name for value in values for name in value.tensors])),
            projection=projection,
            curve=main.curve,
            hidden=main.hidden,
            scores=next((value.scores for value in values if value.scores is not None), None),
            rotary=rotary,
            square=first.square,
        )

    def _elementwise(self, call: Call, operands: list[Value], dynamic: list[Value], type: Type, base: Value) -> Value:
        op = OPS[call.type]
        base = base._replace(axes=joined_axes([value.axes for value in dynamic], type))
        if not any(value.axes for value in dynamic) and all(v.curve and v.projection is None for v in dynamic):
            return base._replace(curve=self._curve(call, operands))
        if call.type in ("sin", "cos"):
            return base._replace(waves=frozenset([call.type]))
        scores = next((value.scores for value in dynamic if value.scores is not None), None)
        if scores is not None:
            axes = next(value.axes for value in dynamic if value.scores is not None)
            axes = axes if len(axes) == len(type.shape) else base.axes
            return base._replace(axes=axes, scores=self._biased(call, operands, scores))
        if (op.casts or op.trains) and len(dynamic) == 1:
            return dynamic[0]._replace(axes=base.axes)
        if call.type == "mul" and len(dynamic) == 2 and dynamic[0].id == dynamic[1].id:
            base = base._replace(square=f"*{dynamic[0].id}")
        elif len(dynamic) == 1 or (not dynamic[-1].origins and dynamic[0].square):
            base = base._replace(square=dynamic[0].square)
        if call.type in ("div", "mul") and len(dynamic) == 2:
            x, by = dynamic
            if by.square == f"+{x.id}":
                base = base._replace(square="/")
        projected = [value for value in dynamic if value.projection is not None]
        if any(value.axes[-1:] and value.axes[-1] for value in projected):  # the others scale vectors as a whole
            projected = [value for value in projected if value.axes[-1:] and value.axes[-1]]
        modulators = [v for v in dynamic if v.projection is None and v.origins and not v.waves and v.axes[-1:] != ((),)]
        if not projected:
            return base
        if call.type == "mul" and any(value.axes for value in modulators):
            return base._replace(projection=projected[0].projection)
        if call.type in ("add", "sub") and self._is_sum(projected, dynamic, type):
            return base
        return self._applied(call, operands, projected, base)

    @staticmethod
    def _is_sum(projected: Sequence[Value], dynamic: Sequence[Value], type: Type) -> bool:
        """Whether an addition joins two ways, such as a residual, rather than adding a bias to one."""
        members = {value.projection.members for value in projected if value.projection is not None}
        if len(members) > 1:
            return True
        others = [value for value in dynamic if value.projection is None]
        return any(value.axes[-1:] and value.axes[-1] and any(value.axes[:-1]) for value in others)

    def _applied(self, call: Call, operands: list[Value], projected: list[Value], base: Value) -> Value:
        """Return the result of an elementwise operation on projections of one vector."""
        first = projected[0]
        projection = first.projection
        assert projection is not None
        others = [value.projection for value in projected[1:] if value.projection is not None]
        is_same = all(other.members == projection.members for other in others)
        rotary = max([value.rotary for value in projected], key=lambda size: size != 0, default=0)
        if call.type in ("add", "sub") and len(base.waves) == 2 and len(projected) > 1 and is_same:
            return base._replace(
                projection=projection._replace(part=()), rotary=size_of(base.axes[-1]), waves=frozenset()
            )
        if others and (not is_same or any(other.part != projection.part for other in others)):
            if call.type != "mul" or any(value.waves for value in projected):
                return base._replace(projection=projection._replace(part=()), rotary=rotary)
            members = tuple(dict.fromkeys([*projection.members, *[name for other in others for name in other.members]]))
            factors = _multiplied(projected)
            names = [activation_name(curve) for _, curve in factors]
            activation = next((name for name in names if name is not None), None)
            gated = projection._replace(members=members, part=())
            return base._replace(projection=gated, hidden=Hidden(activation, is_gated=True), factors=factors)
        curve = self._curve(call, operands)
        hidden = next((value.hidden for value in projected if value.hidden is not None), None)
        if curve is not None and curve != _IDENTITY and (name := activation_name(curve)) is not None:
            hidden = Hidden(name, is_gated=False)
        return base._replace(projection=projection, curve=curve, hidden=hidden, rotary=rotary)

    @staticmethod
    def _curve(call: Call, operands: list[Value]) -> tuple[float, ...] | None:
        """Return the function of the projection that an elementwise result is."""
        scalar = OPS[call.type].scalar
        if scalar is None:
            return None
        columns: list[Sequence[float]] = []
        for (_, operand), value in zip(call.inputs, operands, strict=True):
            if isinstance(operand, Constant):
                if not isinstance(operand.value, int | float):
                    return None
                columns.append([operand.value] * len(POINTS))
            elif operand is not None:
                if value.curve is None:
                    return next((v.curve for v in operands if v.curve == _IDENTITY), None)
                columns.append(value.curve)
        try:
            return tuple([float(scalar(*arguments)) for arguments in zip(*columns, strict=True)])  # pyright: ignore
        except (ArithmeticError, ValueError, TypeError):
            return None

    def _biased(self, call: Call, operands: Sequence[Value], scores: Scores) -> Scores:
        """Return scores after an elementwise operation, which may add a bias."""
        if call.type not in ("add", "sub"):
            return scores
        for (_, operand), value in zip(call.inputs, operands, strict=True):
            is_tensor = isinstance(operand, int) and value.scores is None and value.axes != ()
            if is_tensor and not isinstance(self._traced.positions[operand], VisibleKeys):
                return scores._replace(has_bias=True)
        return scores

    def _computed(self, call: Call, operands: list[Value], type: Type, base: Value) -> Value:
        part = self._traced.part(call)
        if part is not None:
            return self._attention(call, part, operands, type, base)
        by_name = {name: value for (name, _), value in zip(call.inputs, operands, strict=True)}
        match call.type:
            case "linear":
                return self._projected(by_name["x"], by_name["weight"], type, base)
            case "expert_linear":
                x, weight = by_name["x"], by_name["weight"]
                chosen = by_name["experts"].axes[-1:]
                experts = (size_of(weight.axes[0]), size_of(chosen[0]) if chosen else 1)
                router = by_name["experts"].projection
                routers = router.members if router is not None else ()
                members = tuple(dict.fromkeys([*routers, *weight.tensors]))
                return self._projected(x, weight._replace(tensors=members), type, base, experts)
            case "matmul" if not operands[1].origins and operands[1].tensors:
                return self._projected(operands[0], operands[1], type, base)
            case "conv":
                return self._convolved(by_name["x"], by_name["weight"], type, base)
            case "embedding":
                ids, table = by_name["ids"], by_name["table"]
                if table.tensors and len(table.axes) == 2:
                    index = "position" if ids.is_counted else "input" if ids.origins else "constant"
                    self._add(table.tensors, Embedding(size_of(table.axes[0]), type.shape[-1], index))
                return base._replace(axes=(*ids.axes, axis(type.shape[-1], "channel")))
            case "layer_norm" | "group_norm":
                name = "LayerNorm" if call.type == "layer_norm" else "GroupNorm"
                size = type.shape[-1] if call.type == "layer_norm" else type.shape[1]
                members = [name for value in operands[1:] for name in value.tensors]
                if members:
                    self._add(members, Norm(name, size))
                return operands[0]._replace(is_trained=True, rotary=0)
            case "softmax":
                return operands[0]._replace(curve=None, hidden=None)
            case "topk" | "gather":
                return base._replace(axes=axes_of_type(type), projection=operands[0].projection)
            case "matmul":
                a, b = operands
                batch = joined_axes([a.axes[:-2], b.axes[:-2]], Type(type.shape[:-2]))
                return base._replace(axes=(*batch, *a.axes[-2:-1], *b.axes[-1:]))
            case "sum":
                x = operands[0]
                is_square = x.square.startswith("*")
                axes = x.axes if len(x.axes) == len(type.shape) else ()
                axes = (
                    tuple(
                        [
                            old if size_of(old) == size else axis(size)
                            for old, size in zip(axes, type.shape, strict=True)
                        ]
                    )
                    if axes
                    else axes_of_type(type)
                )
                projection = x.projection if len(x.axes) != len(type.shape) else None
                return base._replace(
                    axes=axes, square=f"+{x.square[1:]}" if is_square else "", projection=projection, curve=None
                )
            case _:
                return base._replace(axes=axes_of_type(type))

    def _projected(
        self, x: Value, weight: Value, type: Type, base: Value, experts: tuple[Dim, Dim] | None = None
    ) -> Value:
        """Return the result of a linear map of vectors along the last axis."""
        axes = (*x.axes[:-1], axis(type.shape[-1], "channel"))
        if len(axes) != len(type.shape):
            axes = axes_of_type(type)
        return self._mapped(x, weight, size_of(x.axes[-1]), type.shape[-1], base._replace(axes=axes), experts)

    def _convolved(self, x: Value, weight: Value, type: Type, base: Value) -> Value:
        width = type.shape[1]
        given = size_of(x.axes[1]) if len(x.axes) > 1 else 1
        base = base._replace(axes=(*x.axes[:1], axis(width, "channel"), *map(axis, type.shape[2:])))
        is_map = not any(weight.axes[1:]) or (not any(weight.axes[2:]) and size_of(weight.axes[1]) == given)
        if is_map and any(size != 1 for size in type.shape[2:]):
            return self._mapped(x, weight, given, width, base)
        return base._replace(projection=Projection(weight.tensors, x.id, given, width), curve=_IDENTITY)

    def _mapped(
        self, x: Value, weight: Value, given: Dim, width: Dim, base: Value, experts: tuple[Dim, Dim] | None = None
    ) -> Value:
        """Return the result of a linear map, which may be the second half of a feed-forward network."""
        members, before = weight.tensors, x.projection
        mapped = Projection(members, x.id, given, width, experts=experts)
        if before is not None and members and x.hidden is None:
            latent = given if _is_below(given, before.given) else before.latent
            mapped = mapped._replace(members=(*before.members, *members), source=before.source, latent=latent)
        elif before is not None and members and x.hidden is not None and before.given == width:
            name, is_gated = x.hidden
            all_experts = experts or before.experts
            if all_experts is None:
                self._add([*before.members, *members], FeedForward(width, given, name, is_gated))
            else:
                self._add([*before.members, *members], Experts(*all_experts, width, given, name, is_gated))
        return base._replace(projection=mapped, curve=_IDENTITY, waves=frozenset())

    # Parts --------------------------------------------------------------------------------------------------------

    def _attention(self, call: Call, part: AttentionPart, operands: list[Value], type: Type, base: Value) -> Value:
        left, right = operands
        batch = joined_axes([left.axes[:-2], right.axes[:-2]], Type(type.shape[:-2]))
        base = base._replace(axes=(*batch, *left.axes[-2:-1], *right.axes[-1:]))
        if part.name == "score":
            return base._replace(scores=_scores(left, right))
        scores = left.scores or right.scores
        if scores is not None:
            members = (*scores.members, *all_members([right]))
            visible = part.visible
            facts = Attention(
                scores.heads,
                scores.groups,
                scores.key_size,
                type.shape[-1],
                scores.queries,
                scores.keys,
                visible.causal and not scores.is_cross,
                visible.window,
                scores.is_cross,
                scores.rotary,
                scores.latent,
                scores.has_bias,
            )
            self._add(members, facts)
        return base

    def _find_norm(self, outputs: Sequence[Value]) -> None:
        """Read a norm that is computed by a layer of its own, by elementwise operations."""
        module = self._body.module
        if module is None or self._body.kind != "layer" or len(outputs) != 1 or not self._body.inputs:
            return
        width = next((m.target.shape for m in module.members.values() if not isinstance(m.target, Module)), ())
        if len(width) != 1 or any(OPS[call.type].macs is not None for call in self._body.calls if call.body is None):
            return
        has_root = any(call.type in ("sqrt", "pow") for call in self._body.calls)
        if outputs[0].is_statistic and has_root:
            self._add([""], Norm("BatchNorm", width[0]))
        elif outputs[0].square == "/":
            self._add([""], Norm("RMSNorm", width[0]))

    def _find_state_space(self, call: Call, body: Body) -> None:
        """Read a state that a loop carries through sums and products alone."""
        loop = body.loop
        if loop is None or loop.carried != 1 or not body.outputs:
            return
        state = body.inputs[0][1].shape
        carried = {0}
        for inner in body.calls:
            operands = [operand for _, operand in inner.inputs if operand in carried]
            if operands and inner.type in ("add", "mul", "sub", "where", "float32"):
                carried.update(slot for _, slot in present_outputs(inner))
        if body.outputs[0][1] in carried - {0} and len(state) >= 3:
            self._add([""], StateSpace(state[-2], state[-1]))


def _multiplied(values: Sequence[Value]) -> tuple[tuple[str, Curve], ...]:
    """Return the functions of each projection whose product the product of values is."""
    curves: dict[str, Curve] = {}
    for value in values:
        assert value.projection is not None
        own = ((f"{value.projection.members} {value.projection.part}", value.curve),) if value.curve is not None else ()
        for key, curve in value.factors or own:
            before = curves.get(key)
            curves[key] = curve if before is None else tuple([a * b for a, b in zip(before, curve, strict=True)])
    return tuple(curves.items())


def _find_streams(body: Body) -> set[int]:
    """Return the slots that are added to something, and are also used otherwise: those of residual connections.

    What is added to a function of its own elements, as in GELU, is none.
    """
    roots: dict[int, int] = {}
    weights = {slot for _, slot in body.weights}
    added: set[int] = set()
    uses: Counter[int] = Counter()
    for call in body.calls:
        slots = {operand for _, operand in call.inputs if isinstance(operand, int)}
        uses.update(slots)
        own = {roots.get(slot, slot) for slot in slots}
        if call.body is None and OPS[call.type].group == "Elementwise" and len(own) == 1:
            roots[call.first] = own.pop()
        elif call.type == "add" and call.body is None and not slots & weights:
            added |= slots
    return {slot for slot in added if uses[slot] > 1}


def _is_below(a: Dim, b: Dim) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a < b


def _scores(query: Value, keys: Value) -> Scores:
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
        all_members([query, keys]),
    )
