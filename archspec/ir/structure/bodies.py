"""Reading of the parts in one body.

Facts about values (`values.py`) are propagated from inputs to outputs; a part is read where its last operation is.
Names of values and tensors are relative to the body: those from outside are numbered (`^0`, `^1`, ...), so that equal
layers have equal contexts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, cast

from archspec.core.addresses import join, parent
from archspec.core.algebra import Dim
from archspec.core.record import Record
from archspec.ir.fold import VisitLimit, arguments, present_outputs, propagate_forward
from archspec.ir.module import Body, Call, Constant, Module, Type, find_member, iter_tensors
from archspec.ir.ops import OPS
from archspec.ir.structure.attention import AttentionPart, AttentionSlots, BodyContext
from archspec.ir.structure.axes import axes_of_type, axis, joined_axes, moved_axes, product_axes, resized_axes, size_of
from archspec.ir.structure.masks import VisibleKeys
from archspec.ir.structure.parts import (
    AttentionFacts,
    ConvolutionFacts,
    EmbeddingFacts,
    ExpertsFacts,
    Facts,
    FeedForwardFacts,
    NormFacts,
    Part,
    StateSpaceFacts,
)
from archspec.ir.structure.values import (
    POINTS,
    Hidden,
    Projection,
    Scores,
    Value,
    activation_name,
    all_tensors,
    is_affine,
    multiplied,
    score,
)

OUTER = "^"
"""Starts a name from outside a body."""

_IDENTITY = POINTS
_NOTHING = Value()


class Reading(Record):
    """The outputs of a body, and the parts in it, with addresses relative to it."""

    outputs: tuple[Value, ...]
    parts: tuple[Part, ...]


Read: TypeAlias = Callable[[Body, BodyContext, tuple[Value, ...]], Reading]
"""A function that reads a body in a context, from the values of its inputs."""


def _common(tensors: Sequence[str]) -> str:
    """Return the address of the innermost module around tensors; "" if some are outside."""
    if not tensors:
        return ""
    first, last = parent(min(tensors)), parent(max(tensors))
    words: list[str] = []
    for a, b in zip(first.split("."), last.split("."), strict=False):
        if a != b:
            break
        words.append(a)
    return ".".join(words)


class BodyReader:
    """Reader of one body in one context."""

    def __init__(self, read: Read, body: Body, traced: AttentionSlots, budget: VisitLimit) -> None:
        self._read = read
        self._body = body
        self._traced = traced
        self._budget = budget
        self._parts: list[Part] = []
        self._streams = _find_streams(body)

    def read(self, inputs: Sequence[Value]) -> Reading:
        carried = self._body.loop.carried if self._body.loop is not None else 0
        start = [
            Value(value.id, axes_of_type(type)) if i < carried else self._filling(i, value)
            for i, (value, (_, type)) in enumerate(zip(inputs, self._body.inputs, strict=True))
        ]
        result = propagate_forward(
            self._body, start, self._visit_op, self._visit_call, _NOTHING, weight=self._weight, budget=self._budget
        )
        self._find_norm(result.outputs)
        return Reading(tuple(result.outputs), tuple(self._parts))

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
            (output,) = self._read(weight.value, BodyContext(), ()).outputs
            value = output.renamed(lambda inner: f"{name}:{inner}")
        else:
            value = Value(f".{name}", axes_of_type(weight.type), is_statistic=weight.kind != "param")
        if weight.kind != "param":
            return value
        sizes = [size for size in weight.type.shape if size != 1]
        axes = axes_of_type(weight.type)
        return value._replace(axes=axes, tensors=(name,), rows=sizes[0] if len(sizes) == 2 else 0)

    def _visit_call(self, call: Call, operands: list[Value]) -> Sequence[Value]:
        assert call.body is not None
        inputs = arguments(call, operands)
        outer = list(dict.fromkeys([name for value in inputs for name in value.names()]))
        numbers = {name: f"{OUTER}{i}" for i, name in enumerate(outer)}
        reading = self._read(
            call.body, self._traced.call_context(call), tuple([value.renamed(numbers.__getitem__) for value in inputs])
        )

        def restore(inner: str) -> str:
            if inner.startswith(OUTER):
                return outer[int(inner[1:])]
            return f"{call.first}{inner}" if inner[:1] in ("#", ".") else join(call.address, inner)

        for part in reading.parts:
            tensors = tuple(dict.fromkeys(map(restore, part.tensors)))
            if isinstance(part.facts, StateSpaceFacts) and not tensors and self._body.module is not None:
                tensors = tuple(_parameter_names(self._body.module))
            self._parts.append(part._replace(tensors=tensors, address=_common(tensors)))
        if call.kind == "loop":
            self._find_state_space(call.body)
        outputs = [value.renamed(restore)._replace(is_statistic=False) for value in reading.outputs]
        if call.body.loop is not None:
            types = [type or Type(()) for type in call.outputs]
            outputs = [
                Value(f"#{call.first + i}", axes_of_type(type), value.origins)
                for i, (type, value) in enumerate(zip(types, outputs, strict=True))
            ]
        slots = dict(present_outputs(call))
        return [self._filling(slots[i], value) if i in slots else value for i, value in enumerate(outputs)]

    def _add(self, tensors: Iterable[str], facts: Facts) -> None:
        distinct = tuple(dict.fromkeys(tensors))
        self._parts.append(Part(_common(distinct), distinct, facts))

    # Operations ---------------------------------------------------------------------------------------------------

    def _visit_op(self, call: Call, operands: list[Value]) -> Sequence[Value]:
        op = OPS[call.type]
        present = [i for i, (_, operand) in enumerate(call.inputs) if isinstance(operand, int)]
        dynamic = [operands[i] for i in present]
        base = Value(
            origins=frozenset().union(*[value.origins for value in dynamic]),
            is_statistic=any(value.is_statistic for value in dynamic),
            waves=frozenset().union(*[value.waves for value in dynamic]),
            mixed=() if call.type in ("add", "sub") else next((value.mixed for value in dynamic if value.mixed), ()),
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
        axes = moved_axes(call, [value.axes for value in values], type)
        first = values[0]
        main = next((value for value in values if value.projection is not None), first)
        projection = main.projection
        if projection is not None and call.type in ("split", "slice", "pick"):
            settings = sorted(OPS[call.type].settings(call.attributes).items())
            projection = projection._replace(part=(*projection.part, f"{call.type} {index} {settings}"))
        if projection is not None and len(values) > 1:
            others = [value.projection for value in values if value.projection is not None]
            tensors = tuple(dict.fromkeys([member for other in others for member in other.tensors]))
            latents = [other.latent for other in others if other.latent is not None]
            projection = projection._replace(tensors=tensors, latent=latents[0] if latents else None, part=())
        rotary: Dim = first.rotary
        if call.type == "concat":
            rotary = sum([value.rotary for value in values], 0)
        elif rotary and len(axes) and call.type in ("slice", "split") and type.shape[-1] != size_of(first.axes[-1]):
            rotary = 0
        return base._replace(
            axes=axes,
            tensors=tuple(dict.fromkeys([name for value in values for name in value.tensors])),
            rows=first.rows if len(values) == 1 else 0,
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
        if call.type == "add":
            self._find_added_table(dynamic, type)
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
        if call.type in ("add", "sub") and self._is_sum(projected, dynamic):
            return base
        return self._applied(call, operands, projected, base)

    @staticmethod
    def _is_sum(projected: Sequence[Value], dynamic: Sequence[Value]) -> bool:
        """Whether an addition joins two ways, such as a residual, rather than adding a bias to one."""
        tensors = {value.projection.tensors for value in projected if value.projection is not None}
        if len(tensors) > 1:
            return True
        others = [value for value in dynamic if value.projection is None]
        return any(value.axes[-1:] and value.axes[-1] and any(value.axes[:-1]) for value in others)

    def _applied(self, call: Call, operands: list[Value], projected: list[Value], base: Value) -> Value:
        """Return the result of an elementwise operation on projections of one vector."""
        first = projected[0]
        projection = first.projection
        assert projection is not None
        others = [value.projection for value in projected[1:] if value.projection is not None]
        is_same = all(other.tensors == projection.tensors for other in others)
        rotary = max([value.rotary for value in projected], key=lambda size: size != 0, default=0)
        if call.type in ("add", "sub") and len(base.waves) == 2 and len(projected) > 1 and is_same:
            return base._replace(
                projection=projection._replace(part=()), rotary=size_of(base.axes[-1]), waves=frozenset()
            )
        if others and (not is_same or any(other.part != projection.part for other in others)):
            if call.type != "mul" or any(value.waves for value in projected):
                return base._replace(projection=projection._replace(part=()), rotary=rotary)
            tensors = tuple(dict.fromkeys([*projection.tensors, *[name for other in others for name in other.tensors]]))
            factors = multiplied(projected)
            names = [activation_name(curve) for _, curve in factors]
            activation = next((name for name in names if name is not None), None)
            gated = projection._replace(tensors=tensors, part=())
            return base._replace(projection=gated, hidden=Hidden(activation, is_gated=True), factors=factors)
        curve = self._curve(call, operands)
        hidden = next((value.hidden for value in projected if value.hidden is not None), None)
        if curve is not None and not is_affine(curve):
            hidden = Hidden(activation_name(curve), is_gated=False)
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
            if not isinstance(operand, int) or value.scores is not None or not value.axes:
                continue
            if not isinstance(self._traced.positions[operand], VisibleKeys):
                return scores._replace(has_bias=True)
        return scores

    def _computed(self, call: Call, operands: list[Value], type: Type, base: Value) -> Value:
        part = self._traced.part(call)
        if part is not None:
            return self._attention(call, part, operands, type, base)
        by_name = {name: value for (name, _), value in zip(call.inputs, operands, strict=True)}
        match call.type:
            case "linear":
                return self._projected(by_name["x"], _join_bias(by_name), type, base)
            case "expert_linear":
                x, weight = by_name["x"], _join_bias(by_name)
                chosen = by_name["experts"].axes[-1:]
                experts = (size_of(weight.axes[0]), size_of(chosen[0]) if chosen else 1)
                router = by_name["experts"].projection
                routers = router.tensors if router is not None else ()
                tensors = tuple(dict.fromkeys([*routers, *weight.tensors]))
                return self._projected(x, weight._replace(tensors=tensors), type, base, experts)
            case "matmul" if not operands[1].origins and operands[1].tensors:
                return self._projected(operands[0], operands[1], type, base)
            case "conv":
                return self._convolved(call, by_name["x"], _join_bias(by_name), type, base)
            case "embedding":
                ids, table = by_name["ids"], by_name["table"]
                if table.tensors and len(table.axes) == 2:
                    index = "position" if ids.is_counted else "input" if ids.origins else "constant"
                    self._add(table.tensors, EmbeddingFacts(size_of(table.axes[0]), type.shape[-1], index))
                return base._replace(axes=(*ids.axes, axis(type.shape[-1], "channel")))
            case "layer_norm" | "group_norm":
                name = "LayerNorm" if call.type == "layer_norm" else "GroupNorm"
                size = type.shape[-1] if call.type == "layer_norm" else type.shape[1]
                tensors = [name for value in operands[1:] for name in value.tensors]
                if tensors:
                    self._add(tensors, NormFacts(name, size))
                return operands[0]._replace(rotary=0)
            case "softmax":
                return operands[0]._replace(curve=None, hidden=None)
            case "topk" | "gather":
                return base._replace(axes=axes_of_type(type), projection=operands[0].projection)
            case "matmul":
                return base._replace(axes=product_axes(operands[0].axes, operands[1].axes, type))
            case "sum":
                x = operands[0]
                has_axis = len(x.axes) == len(type.shape)
                return base._replace(
                    axes=resized_axes(x.axes, type.shape) if has_axis and x.axes else axes_of_type(type),
                    square=f"+{x.square[1:]}" if x.square.startswith("*") else "",
                    projection=None if has_axis else x.projection,
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

    def _convolved(self, call: Call, x: Value, weight: Value, type: Type, base: Value) -> Value:
        width = type.shape[1]
        input_width = size_of(x.axes[1]) if len(x.axes) > 1 else 1
        settings = OPS["conv"].settings(call.attributes)
        kernel = tuple([size_of(axis) for axis in weight.axes[2:]])
        if weight.tensors:
            stride, groups = cast("Dim | tuple[Dim, ...]", settings["stride"]), cast("Dim", settings["groups"])
            strides = stride if isinstance(stride, tuple) else (stride,) * len(kernel)
            facts = ConvolutionFacts(input_width, width, kernel, strides, groups, bool(settings["transposed"]))
            self._add(weight.tensors, facts)
        base = base._replace(axes=(*x.axes[:1], axis(width, "channel"), *map(axis, type.shape[2:])))
        is_map = not any(weight.axes[1:]) or (not any(weight.axes[2:]) and size_of(weight.axes[1]) == input_width)
        if is_map and any(size != 1 for size in type.shape[2:]):
            return self._mapped(x, weight, input_width, width, base)
        projection = Projection(weight.tensors, x.id, input_width, width, is_convolution=True)
        return base._replace(projection=projection, curve=_IDENTITY)

    def _mapped(
        self, x: Value, weight: Value, input_width: Dim, width: Dim, base: Value, experts: tuple[Dim, Dim] | None = None
    ) -> Value:
        """Return the result of a linear map, which may be the second half of a feed-forward network."""
        tensors, before = weight.tensors, x.projection
        for part in x.mixed:
            self._add([*part.tensors, *tensors], part.facts)
        mapped = Projection(tensors, x.id, input_width, width, experts=experts)
        if before is not None and tensors and x.hidden is None and not before.is_convolution:
            latent = input_width if _is_below(input_width, before.input_width) else before.latent
            mapped = mapped._replace(tensors=(*before.tensors, *tensors), source=before.source, latent=latent)
        elif before is not None and tensors and x.hidden is not None and before.input_width == width:
            name, is_gated = x.hidden
            all_experts = experts or before.experts
            if all_experts is None:
                self._add([*before.tensors, *tensors], FeedForwardFacts(width, input_width, name, is_gated))
            else:
                self._add([*before.tensors, *tensors], ExpertsFacts(*all_experts, width, input_width, name, is_gated))
        return base._replace(projection=mapped, curve=_IDENTITY, waves=frozenset(), mixed=())

    # Parts --------------------------------------------------------------------------------------------------------

    def _find_added_table(self, terms: Sequence[Value], type: Type) -> None:
        """Read a table whose rows are added to the vectors of a sequence, one to each: of positions."""
        tables = [value for value in terms if value.rows != 0 and not value.origins]
        is_sequence = any(value.origins and value.axes[-1:] and any(value.axes[1:-1]) for value in terms)
        if len(tables) == 1 and is_sequence and tables[0].axes[-1:] == axes_of_type(type)[-1:]:
            self._add(tables[0].tensors, EmbeddingFacts(tables[0].rows, type.shape[-1], "position"))

    def _attention(self, call: Call, part: AttentionPart, operands: list[Value], type: Type, base: Value) -> Value:
        left, right = operands
        base = base._replace(axes=product_axes(left.axes, right.axes, type), mixed=())
        if part.name == "score":
            return base._replace(scores=score(left, right))
        scores = left.scores or right.scores
        if scores is not None:
            tensors = (*scores.tensors, *all_tensors([right]))
            visible = part.visible
            facts = AttentionFacts(
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
            self._add(tensors, facts)
            return base._replace(mixed=(self._parts[-1],))
        return base

    def _find_norm(self, outputs: Sequence[Value]) -> None:
        """Read a norm that is computed by a layer of its own, by elementwise operations."""
        body = self._body
        if body.module is None or body.kind != "layer" or len(outputs) != 1 or not body.inputs:
            return
        width = next((m.target.shape for m in body.module.members.values() if not isinstance(m.target, Module)), ())
        types = [call.type for call in body.calls if call.body is None]
        if len(width) != 1 or any(OPS[type].macs is not None for type in types):
            return
        tensors = _parameter_names(body.module)
        if outputs[0].is_statistic and not {"sqrt", "pow"}.isdisjoint(types):
            self._add(tensors, NormFacts("BatchNorm", width[0]))
        elif outputs[0].square == "/":
            self._add(tensors, NormFacts("RMSNorm", width[0]))

    def _find_state_space(self, body: Body) -> None:
        """Read a state that a loop carries through sums and products alone."""
        loop = body.loop
        if loop is None or loop.carried != 1 or not body.outputs:
            return
        state = body.inputs[0][1].shape
        carried = {0}
        for inner in body.calls:
            is_linear = inner.type in ("add", "mul", "sub", "where", "float32")
            if is_linear and any(operand in carried for _, operand in inner.inputs):
                carried.update(slot for _, slot in present_outputs(inner))
        if body.outputs[0][1] in carried - {0} and len(state) >= 3:
            self._add([], StateSpaceFacts(state[-2], state[-1]))


def _parameter_names(module: Module) -> list[str]:
    return [name for name, located in iter_tensors(module) if located.weight.kind == "param"]


def _join_bias(operands: dict[str, Value]) -> Value:
    """Return the weight of a linear map with the parameters of its bias as well."""
    weight, bias = operands["weight"], operands.get("bias", _NOTHING)
    return weight._replace(tensors=(*weight.tensors, *bias.tensors))


def _find_streams(body: Body) -> set[int]:
    """Return the slots that are added to something, and are also used otherwise: of residual connections.

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
