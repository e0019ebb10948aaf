"""The operations of a model in a decoding step: the computation of a new position of a sequence after earlier ones.

The body is expanded to operations, and the axes of every value are labelled. An axis along the positions of the
sequence has the size `NEW_POSITION`: in a step, only the new position is computed. Where an operation reads other
positions, the axis has a size `KEYS_PREFIX...`: the number of positions that the new one reads. Three operations read
other positions: the two products of causal attention, a convolution that only looks back, and a loop that carries a
state. Any other operation on several positions has no decoding step (`NoDecodingStepError`). The labels of results
follow from the rules of the operations.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from archspec.analysis.cost.step_values import (
    KEYS_PREFIX,
    NEW_POSITION,
    Application,
    AttentionRead,
    NoDecodingStepError,
    SequenceState,
    Shape,
    StepNode,
    StepValue,
    contains_label,
    remove_label,
    step_error,
)
from archspec.core.algebra import Dim, Polynomial, product, substitute, symbol, symbols
from archspec.ir.fold import VisitLimit, arguments, present_outputs, propagate_forward
from archspec.ir.module import Body, Call, Type
from archspec.ir.ops import OPS, Op, OpError, element_type
from archspec.ir.ops.check import check_axes, is_list
from archspec.ir.structure.attention import (
    AttentionPart,
    AttentionTracer,
    BodyContext,
    find_score_products,
)


class DecodingStep:
    """The operations of a decoding step along a dimension.

    With `merge`, equal applications in a body that read other positions, such as the layers of a stack, are expanded
    once; `merged` are the results of the others. Raises NoDecodingStepError, and ArchError if there are too many
    operations.
    """

    def __init__(
        self, body: Body, dimension: str, tracer: AttentionTracer | None = None, *, merge: bool = True
    ) -> None:
        self.dimension = dimension
        self.model = Application("")
        self.merged: set[StepValue] = set()
        self._merge = merge
        self.nodes: list[StepNode] = []
        self.reads: dict[int, AttentionRead] = {}
        self.states: list[SequenceState] = []
        self._budget = VisitLimit()
        self._tracer = tracer or AttentionTracer()
        self._index = ""
        self._types: dict[object, list[Type]] = {}  # layers with equal bodies share their calls
        inputs = [self._label_input(type) for _, type in body.inputs]
        self._expand(body, inputs, BodyContext(), self.model)

    def keys(self, attention: int) -> str:
        """Return the label of the axis of keys of an attention."""
        return f"{KEYS_PREFIX}{attention}"

    def _label_input(self, type: Type) -> StepValue:
        shape = tuple([self._label_size(size, NEW_POSITION) for size in type.shape])
        return StepValue(shape, type.dtype, step=contains_label(shape, NEW_POSITION))

    def _label_size(self, size: Dim, label: str) -> Dim:
        """Replace the dimension in a size by a label."""
        return substitute(size, {self.dimension: symbol(label)}) if isinstance(size, Polynomial) else size

    def _label_static(self, value: object, label: str) -> object:
        """Replace the dimension in a size, a list of sizes or another static value by a label."""
        if is_list(value):
            return tuple([self._label_static(item, label) for item in value])
        return self._label_size(value, label) if isinstance(value, Polynomial) else value

    # Expansion ----------------------------------------------------------------------------------------------------

    def _expand(
        self, body: Body, inputs: Sequence[StepValue | None], context: BodyContext, application: Application
    ) -> list[StepValue | None]:
        traced = self._tracer.trace(body, context)
        slots = dict(body.weights)
        expanded: dict[Hashable, tuple[Application, list[StepValue | None]]] = {}

        def visit_op(call: Call, operands: list[StepValue | None]) -> list[StepValue | None]:
            return self._add_operation(call, operands, traced.part(call), application)

        def visit_call(call: Call, operands: list[StepValue | None]) -> list[StepValue | None]:
            assert call.body is not None
            applied, inputs = Application(call.address, application), arguments(call, operands)
            if call.body.loop is not None:
                return self._expand_loop(call, call.body, inputs, applied)
            call_context = traced.call_context(call)
            key = (call.body, call_context, tuple([value and value.signature() for value in inputs]))
            if key in expanded:
                return self._merge_application(call, inputs, *expanded[key])
            read_count = len(self.reads) + len(self.states)
            results = self._expand(call.body, inputs, call_context, applied)
            reads_others = len(self.reads) + len(self.states) > read_count
            if self._merge and reads_others and not any(v and (v.is_static or v.product >= 0) for v in results):
                expanded[key] = applied, results
            return results

        def visit_weight(name: str) -> StepValue | None:
            type = body.types[slots[name]]
            value = StepValue(type.shape, type.dtype, static=True)
            value.parameter = application, name
            return value

        def visit_constant(value: object) -> StepValue | None:
            return StepValue((), element_type(value), static=True)

        return propagate_forward(
            body, inputs, visit_op, visit_call, None, visit_constant, visit_weight, self._budget
        ).outputs

    def _merge_application(
        self, call: Call, inputs: Sequence[StepValue | None], equal: Application, results: Sequence[StepValue | None]
    ) -> list[StepValue | None]:
        """Merge a call with an equal application in the same body, and return its results."""
        equal.addresses.append(call.address)
        for value in inputs:
            if value is not None:
                value.has_other_uses = True
        copies = [value and StepValue(value.shape, value.dtype, step=value.in_step) for value in results]
        for copy, value in zip(copies, results, strict=True):
            if copy is not None and value is not None:
                copy.is_known = value.is_known
                self.merged.add(copy)
        return copies

    def _expand_loop(
        self, call: Call, body: Body, operands: list[StepValue | None], application: Application
    ) -> list[StepValue | None]:
        """Expand one iteration of a loop over the sequence, whose carried values are cached."""
        loop = body.loop
        assert loop is not None
        if not any(value is not None and value.in_step for value in operands):
            return self._independent_results(None, call, [value for value in operands if value is not None])
        if self._index or loop.first != 0 or loop.iterations != symbol(self.dimension):
            raise step_error(application, "has a loop that does not run once for each position")
        carried: list[StepValue | None] = []
        for (_, type), value in zip(body.inputs[: loop.carried], operands, strict=False):
            assert value is not None
            if contains_label(value.shape, NEW_POSITION):
                raise step_error(application, "has a loop that carries values of several positions")
            carried.append(StepValue(type.shape, type.dtype, step=True))
            if type.dtype == "real":
                self.states.append(SequenceState(application, "state", type.shape, 1))
        self._index = loop.variable
        outputs = self._expand(body, [*carried, *operands[loop.carried :]], BodyContext(), application)
        self._index = ""
        for i, axis in enumerate(loop.axes, loop.carried):
            value = outputs[i]
            assert value is not None
            shape = list(value.shape)
            shape.insert(axis, symbol(NEW_POSITION))
            collected = StepValue(tuple(shape), value.dtype, step=True)
            collected.node = value.node
            outputs[i] = collected
        return outputs

    def _independent_results(
        self, node: StepNode | None, call: Call, operands: Sequence[StepValue]
    ) -> list[StepValue | None]:
        """Return the results of an operation that does not depend on the new position."""
        static = all(operand.is_static for operand in operands)
        results: list[StepValue | None] = [None] * len(call.outputs)
        for i, _ in present_outputs(call):
            type = call.outputs[i]
            assert type is not None
            value = StepValue(type.shape, type.dtype, static=static)
            value.node = node
            results[i] = value
            if node is not None:
                node.results.append(value)
        return results

    def _add_operation(
        self, call: Call, operands: list[StepValue | None], part: AttentionPart | None, application: Application
    ) -> list[StepValue | None]:
        op = OPS[call.type]
        if op.trains:
            return operands[:1]
        present = [value for value in operands if value is not None]
        if not any(value.in_step for value in present):
            node = StepNode(call, application, operands, [value and value.shape for value in operands])
            self.nodes.append(node)
            return self._independent_results(node, call, present)
        number, state_count = -1, len(self.states)
        if part is not None:
            number = len(self.reads) if part.name == "score" else max([value.product for value in present])
            shapes = self._read_attention(operands, part, number, application)
        else:
            shapes = self._read_operands(call, op, operands, application)
        node = StepNode(call, application, operands, shapes)
        node.attention, node.is_convolution = number, len(self.states) > state_count
        self.nodes.append(node)
        key = (call, self._index, tuple([value and value.dtype for value in operands]), tuple(shapes))
        types = self._types.get(key)
        if types is None:
            types = self._types[key] = self._derive_result_types(call, op, node)
        for type in types:
            value = StepValue(type.shape, type.dtype, step=True)
            value.is_known |= _is_elementwise(op) and all(value.is_known or value.is_static for value in present)
            value.node = node
            value.product = max([value.product for value in present])
            node.results.append(value)
        if part is not None:
            node.results[0].product = number if part.name == "score" else -1
        return [*node.results]

    # Reading ------------------------------------------------------------------------------------------------------

    def _read_operands(
        self, call: Call, op: Op, operands: list[StepValue | None], application: Application
    ) -> list[Shape | None]:
        """Return the shapes of operands that an operation reads: keys at all positions. Raises NoDecodingStepError."""
        shapes = [value and value.shape for value in operands]
        if op.group == "Elementwise" or (op.rearranges and len(operands) > 1):
            return self._align_labels(call, operands, application)
        for value, shape in zip(operands, shapes, strict=True):
            if value is not None and shape is not None and not value.in_step and contains_label(shape, self.dimension):
                raise _table_error(call, application)
        settings = op.settings(call.attributes)
        for i, (value, shape) in enumerate(zip(operands, shapes, strict=True)):
            if value is not None and shape is not None and contains_label(shape, NEW_POSITION):
                self._check_not_mixed(call, op, i, operands, settings, application)
        return shapes

    def _read_attention(
        self, operands: list[StepValue | None], part: AttentionPart, number: int, application: Application
    ) -> list[Shape | None]:
        """Read the keys or values of an attention at the positions visible to the new one."""
        query, source = operands
        assert query is not None and source is not None
        axis = -1 if part.name == "score" else -2
        if (
            not contains_label(query.shape[-2:-1], NEW_POSITION)
            or source.is_static
            or (source.in_step and not contains_label(source.shape, NEW_POSITION))
            or number < 0
        ):
            raise step_error(application, "has an unsupported form of attention")
        is_along = contains_label(source.shape, NEW_POSITION)
        if is_along and source.shape[axis] != symbol(NEW_POSITION):
            raise step_error(application, "has attention whose keys are not along one axis")
        if is_along and not part.visible.causal:
            raise step_error(application, "attends to later positions")
        if is_along and not part.visible.exact:
            raise step_error(application, "attends to earlier positions by a mask that is not a window")
        read = self.reads.setdefault(number, AttentionRead(application, part.visible if is_along else None))
        read.values.append(source)
        return [query.shape, self._label_keys(source.shape, number) if is_along else source.shape]

    def _label_keys(self, shape: Shape, attention: int) -> Shape:
        return tuple([substitute(size, {NEW_POSITION: symbol(self.keys(attention))}) for size in shape])

    def _align_labels(
        self, call: Call, operands: list[StepValue | None], application: Application
    ) -> list[Shape | None]:
        """Label the axes of position tables and constants by the operands with which they are combined.

        Values that are only combined with known values, such as two masks, are labelled later.
        """
        axis = OPS[call.type].settings(call.attributes).get("axis")
        if isinstance(axis, int) and _appends_positions(call, operands, axis):
            raise step_error(application, f"combines several positions (`{call.type}`)")
        rank = max([len(value.shape) for value in operands if value is not None])
        labels: list[Dim | None] = [None] * rank
        for value in operands:
            if value is not None and value.in_step and not value.is_known:
                for i, size in enumerate(reversed(value.shape), 1):
                    if size != 1:
                        labels[-i] = size
        has_tables = any(value is not None and contains_label(value.shape, self.dimension) for value in operands)
        if not any(labels):
            if not has_tables:
                return [value and value.shape for value in operands]
            return [value and tuple([remove_label(size, self.dimension) for size in value.shape]) for value in operands]
        shapes: list[Shape | None] = []
        for value in operands:
            if value is None or (value.in_step and not value.is_known):
                shapes.append(value and value.shape)
                continue
            shape = list(value.shape)
            for i, size in enumerate(reversed(value.shape), 1):
                label = labels[-i]
                if label is not None and (
                    contains_label((size,), self.dimension) or contains_label((size,), NEW_POSITION)
                ):
                    shape[-i] = label
            shapes.append(tuple(shape))
        appends_to_table = isinstance(axis, int) and any(
            value is not None and value.is_static and contains_label(value.shape[axis:][:1], self.dimension)
            for value in operands
        )
        if appends_to_table or any(shape is not None and contains_label(shape, self.dimension) for shape in shapes):
            raise _table_error(call, application)
        return shapes

    def _check_not_mixed(
        self,
        call: Call,
        op: Op,
        index: int,
        operands: list[StepValue | None],
        settings: Mapping[str, object],
        application: Application,
    ) -> None:
        """Raise NoDecodingStepError if an operation combines an operand's elements at different positions."""
        operand = operands[index]
        assert operand is not None
        type = Type(operand.shape, operand.dtype)
        error = step_error(application, f"combines several positions (`{call.type}`)")
        along = {i for i, size in enumerate(type.shape) if contains_label((size,), NEW_POSITION)}
        inserts_axis = (
            len(call.outputs) == 1 and call.outputs[0] is not None and len(call.outputs[0].shape) > len(type.shape)
        )
        if len(along) > 1 or op.over == "window" or _combines_positions(op, index, along, operands):
            raise error
        if "stride" in settings:
            self._add_convolution(operands, index, along, settings, application, error)
        elif "groups" in settings or ("eps" in settings and len(type.shape) - 1 in along):
            raise error
        elif "axis" in settings and not inserts_axis:
            # Integers are known at all positions, so running sums can add them up.
            counts = type.dtype == "int" and op.interval is not None and op.group == "Along an axis"
            if (
                along & check_axes(settings["axis"], type)
                and not counts
                and not self._selects_current_position(settings)
            ):
                raise error
        elif any(op.input(index).name in entry.indexes.split() for entry in op.inputs):
            raise error

    def _selects_current_position(self, settings: Mapping[str, object]) -> bool:
        """Whether a selection is of the current position, or of all positions from the first."""
        if "index" in settings:
            return self._is_loop_index(settings["index"])
        stops_at_last = settings.get("stop") == symbol(self.dimension)
        return stops_at_last and settings["start"] in (0, None) and settings["step"] == 1

    def _is_loop_index(self, value: object) -> bool:
        """Whether a static value is the index of the loop over the sequence."""
        return str(value) == self._index

    def _add_convolution(
        self,
        operands: list[StepValue | None],
        index: int,
        along: set[int],
        settings: Mapping[str, object],
        application: Application,
        error: NoDecodingStepError,
    ) -> None:
        """Check that a convolution along the sequence only looks back, and record the positions that it covers."""
        if along <= {0}:
            return
        x, weight = operands[:2]
        stride, dilation, padding = (_single_item(settings[name]) for name in ("stride", "dilation", "padding"))
        if index != 0 or x is None or weight is None or len(x.shape) != 3 or x.shape[2] != symbol(NEW_POSITION):
            raise error
        kernel = weight.shape[2]
        if (
            (stride, dilation) != (1, 1)
            or settings["transposed"]
            or not isinstance(kernel, int)
            or padding != kernel - 1
        ):
            raise error
        self.states.append(SequenceState(application, "convolution", x.shape, kernel))

    # Results ------------------------------------------------------------------------------------------------------

    def _derive_result_types(self, call: Call, op: Op, node: StepNode) -> list[Type]:
        """Derive the labelled types of the results from the rule of the operation. Raises NoDecodingStepError."""
        error = step_error(node.application, f"moves positions in an unsupported way (`{call.type}`)")
        types = [
            None if shape is None or value is None else Type(shape, value.dtype)
            for shape, value in zip(node.shapes, node.operands, strict=True)
        ]
        shapes = [shape for shape in node.shapes if shape is not None]
        axis = call.attributes.get("axis")
        along = shapes[0][axis:][:1] if isinstance(axis, int) else [size for shape in shapes for size in shape]
        keys = [name for size in along for name in sorted(symbols(size)) if name.startswith(KEYS_PREFIX)]
        labels = (
            [*keys, NEW_POSITION, self.dimension] if isinstance(axis, int) else [NEW_POSITION, *keys, self.dimension]
        )
        results: list[Type] = []
        for label in dict.fromkeys(labels):
            attributes = {name: self._label_static(value, label) for name, value in call.attributes.items()}
            if self._is_loop_index(attributes.get("index")):
                attributes["index"] = 0
            try:
                results = [*op.rule(types, attributes)]
            except (OpError, ArithmeticError, ValueError):
                continue
            if self._have_compiled_shapes(call, results) and (
                not _is_reshape(op) or _position_stride(results[0].shape) == _position_stride(shapes[0])
            ):
                return results
        raise error

    def _have_compiled_shapes(self, call: Call, results: list[Type]) -> bool:
        """Whether results have the compiled shapes after labels are replaced by the dimension."""
        compiled_types = [type for type in call.outputs if type is not None]
        return all(
            tuple([remove_label(size, self.dimension) for size in labelled.shape]) == type.shape
            for labelled, type in zip(results, compiled_types, strict=True)
        )


def _table_error(call: Call, application: Application) -> NoDecodingStepError:
    return step_error(application, f"combines single positions with a table of all positions (`{call.type}`)")


def _is_elementwise(op: Op) -> bool:
    """Whether each element of a result is computed from one element of each operand."""
    return op.group in ("Elementwise", "Shape")


def _appends_positions(call: Call, operands: Sequence[StepValue | None], axis: int) -> bool:
    """Whether a concatenation appends values along the position axis."""
    first, result = operands[0], call.outputs[0]
    assert first is not None and result is not None
    if len(result.shape) > len(first.shape) or first.shape[axis] == symbol(NEW_POSITION):
        return False
    return any(
        value is not None and not value.is_known and contains_label((value.shape[axis],), NEW_POSITION)
        for value in operands[1:]
    )


def _combines_positions(op: Op, index: int, along: set[int], operands: Sequence[StepValue | None]) -> bool:
    """Whether a product sums over positions along an axis of an operand, or pairs them with positions of the other.

    Both factors have the axis over which it sums, so one of them is checked: the first of a `matmul`, and the weight of
    other products.
    """
    operand, first = operands[index], operands[0]
    assert operand is not None and first is not None
    last = len(operand.shape) - 1
    if op.attention == "product":
        return last in along and (index == 0 or contains_label(first.shape, NEW_POSITION))
    return op.input(index).name in ("weight", "bias") and bool(along)


def _is_reshape(op: Op) -> bool:
    return op.rearranges and op.torch is not None and op.torch.memory == "whole"


def _position_stride(shape: Shape) -> Dim:
    """Return the distance between elements at successive positions; 0 if there is only one position."""
    axis = next((i for i, size in enumerate(shape) if any(name.startswith("__") for name in symbols(size))), None)
    return 0 if axis is None else product(shape[axis + 1 :])


def _single_item(value: object) -> object:
    """Return the item of a list of one item, or the value itself."""
    return value[0] if is_list(value) and len(value) == 1 else value


# The direction in which a model reads a sequence.


def attention_direction(body: Body, dimension: str) -> str:
    """Return "causal" if no position along a dimension depends on later ones, "both" if attention reads later ones.

    Return "" if neither can be shown.
    """
    try:
        steps = DecodingStep(body, dimension)
    except NoDecodingStepError:
        scores = find_score_products(body, dimension)
        return "both" if scores and all(part.visible.is_known and not part.visible.causal for part in scores) else ""
    reads_earlier = steps.states or any(read.visible is not None for read in steps.reads.values())
    return "causal" if reads_earlier else ""
