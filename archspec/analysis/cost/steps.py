"""The values of a model in a decoding step: one more position of a sequence, after others that were computed before.

The body is expanded to operations, and the axes of every value are labelled. An axis at positions of the sequence has
the size `NEW`: in a step, only the newest of them is computed. Where an operation reads other positions, the axis has a
size `KEYS...`: that of all positions which the newest one reads. There are three such operations: the two products of
causal attention, a convolution that only looks back, and a loop that passes on its state. Any other operation on
several positions has no decoding step (`Undecodable`). The labels of results follow from the rules of the operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archspec.analysis.cost.attention import AttentionPart, AttentionSlots, AttentionTracer, BodyContext
from archspec.analysis.cost.masks import VisibleKeys
from archspec.core.algebra import Dim, Polynomial, product, substitute, symbol, symbols
from archspec.ir.fold import VisitLimit, arguments, present_outputs, propagate_forward
from archspec.ir.module import Body, Call, Module, Type, canonical_name
from archspec.ir.ops import OPS, Op, OpError, element_type
from archspec.ir.ops.check import check_axes, is_list

# Values and operations of a decoding step, and the earlier positions that they read (see `steps.py`).

Shape = tuple[Dim, ...]


class StepValue:
    """A value in a step: its element type and its labelled shape.

    `is_static`: it depends on no input. `in_step`: it depends on the newest position; others were computed before.
    `is_known`: it is made of integers or booleans, as masks are, so it can be had for all positions. `name` is that of
    a parameter. `product` is the number of the score product that it comes from, -1 if there is none.
    """

    __slots__ = ("dtype", "in_step", "is_known", "is_static", "name", "node", "product", "shape", "users")

    def __init__(self, shape: Shape, dtype: str, *, static: bool = False, step: bool = False, name: str = "") -> None:
        self.shape = shape
        self.dtype = dtype
        self.is_static = static
        self.in_step = step
        self.is_known = dtype != "real"
        self.name = name
        self.node: StepNode | None = None
        self.users: list[tuple[StepNode, int]] = []
        self.product = -1


class StepNode:
    """An operation in a step: its operands with the shapes as it reads them, and its results.

    `attention` is the number of the attention of which it is a product; -1 for any other operation. `is_convolution`:
    it reads earlier positions, but computes only the newest.
    """

    __slots__ = ("address", "attention", "call", "is_convolution", "operands", "results", "shapes")

    def __init__(self, call: Call, address: str, operands: list[StepValue | None], shapes: list[Shape | None]) -> None:
        self.call = call
        self.address = address
        self.operands = operands
        self.shapes = shapes
        self.results: list[StepValue] = []
        self.attention = -1
        self.is_convolution = False
        for i, operand in enumerate(operands):
            if operand is not None:
                operand.users.append((self, i))


class AttentionRead:
    """The keys and values that one attention reads at all positions.

    `seen` are the keys that a query sees; None for keys of another sequence, which are all seen.
    """

    def __init__(self, address: str, seen: VisibleKeys | None) -> None:
        self.address = address
        self.seen = seen
        self.values: list[StepValue] = []


class ConvolutionWindow:
    """The input of a convolution along the sequence, and the positions that its kernel covers; or a carried state."""

    def __init__(self, address: str, kind: str, shape: Shape, positions: int) -> None:
        self.address = address
        self.kind = kind
        self.shape = shape
        self.positions = positions


NEW_POSITION = "__new"
_KEYS = "__keys"


class NoDecodingStepError(Exception):
    """The reason why a model has no decoding step."""


class Steps:
    """The operations of a decoding step along a dimension. Raises Undecodable, and ArchError if there are too many."""

    def __init__(self, body: Body, dimension: str) -> None:
        assert body.module is not None
        self.module: Module = body.module
        self.dimension = dimension
        self.nodes: list[StepNode] = []
        self.readings: dict[int, AttentionRead] = {}
        self.windows: list[ConvolutionWindow] = []
        self._budget = VisitLimit()
        self._tracer = AttentionTracer()
        self._index = ""
        inputs = [self._input(type) for _, type in body.inputs]
        self._expand(body, inputs, BodyContext(), "")

    def keys(self, attention: int) -> str:
        """Return the name of the size of the axis of keys of an attention."""
        return f"{_KEYS}{attention}"

    def _input(self, type: Type) -> StepValue:
        shape = tuple([self._size(size, NEW_POSITION) for size in type.shape])
        return StepValue(shape, type.dtype, step=_contains_label(shape, NEW_POSITION))

    def _size(self, size: Dim, label: str) -> Dim:
        """Return a size with a label in the place of the dimension."""
        return substitute(size, {self.dimension: symbol(label)}) if isinstance(size, Polynomial) else size

    def _labelled(self, value: object, label: str) -> object:
        """Return a size, a list of sizes or another static value with a label in the place of the dimension."""
        if is_list(value):
            return tuple([self._labelled(item, label) for item in value])
        return self._size(value, label) if isinstance(value, Polynomial) else value

    # Expansion ----------------------------------------------------------------------------------------------------

    def _expand(
        self, body: Body, inputs: Sequence[StepValue | None], context: BodyContext, address: str
    ) -> list[StepValue | None]:
        traced = self._tracer.trace(body, context)

        def operation(call: Call, given: list[StepValue | None]) -> list[StepValue | None]:
            return self._operation(call, given, traced.part(call), address)

        def opened(call: Call, given: list[StepValue | None]) -> list[StepValue | None]:
            assert call.body is not None
            around = f"{address}.{call.address}".strip(".")
            if call.body.loop is not None:
                return self._loop(call, call.body, arguments(call, given), around)
            return self._expand(call.body, arguments(call, given), traced.inside(call), around)

        def weight(name: str) -> StepValue | None:
            (slot,) = [slot for own, slot in body.weights if own == name]
            type = body.types[slot]
            full = canonical_name(self.module, f"{address}.{name}".strip("."))
            return StepValue(type.shape, type.dtype, static=True, name=full)

        def constant(value: object) -> StepValue | None:
            return StepValue((), element_type(value), static=True)

        return propagate_forward(body, inputs, operation, opened, None, constant, weight, self._budget).outputs

    def _loop(self, call: Call, body: Body, given: list[StepValue | None], address: str) -> list[StepValue | None]:
        """Expand one iteration of a loop over the sequence: what it carries is kept."""
        loop = body.loop
        assert loop is not None
        if not any(value is not None and value.in_step for value in given):
            return self._results(None, call, [value for value in given if value is not None])
        if self._index or loop.first != 0 or loop.iterations != symbol(self.dimension):
            raise NoDecodingStepError(
                f"{describe_address(address)} has a loop that does not run once for each position"
            )
        carried: list[StepValue | None] = []
        for (_, type), value in zip(body.inputs[: loop.carried], given, strict=False):
            assert value is not None
            if _contains_label(value.shape, NEW_POSITION):
                raise NoDecodingStepError(
                    f"{describe_address(address)} has a loop that carries values of several positions"
                )
            carried.append(StepValue(type.shape, type.dtype, step=True))
            if type.dtype == "real":
                self.windows.append(ConvolutionWindow(address, "state", type.shape, 1))
        self._index = loop.variable
        found = self._expand(body, [*carried, *given[loop.carried :]], BodyContext(), address)
        self._index = ""
        for i, axis in enumerate(loop.axes, loop.carried):
            value = found[i]
            assert value is not None
            shape = list(value.shape)
            shape.insert(axis, symbol(NEW_POSITION))
            collected = StepValue(tuple(shape), value.dtype, step=True)
            collected.node = value.node
            found[i] = collected
        return found

    def _results(self, node: StepNode | None, call: Call, operands: Sequence[StepValue]) -> list[StepValue | None]:
        """Return the results of an operation that does not depend on the position."""
        static = all(operand.is_static for operand in operands)
        found: list[StepValue | None] = [None] * len(call.outputs)
        for i, _ in present_outputs(call):
            type = call.outputs[i]
            assert type is not None
            value = StepValue(type.shape, type.dtype, static=static)
            value.node = node
            found[i] = value
            if node is not None:
                node.results.append(value)
        return found

    def _operation(
        self, call: Call, given: list[StepValue | None], part: AttentionPart | None, address: str
    ) -> list[StepValue | None]:
        op = OPS[call.type]
        if op.trains:
            return given[:1]
        operands = [value for value in given if value is not None]
        if not any(value.in_step for value in operands):
            node = StepNode(call, address, given, [value and value.shape for value in given])
            self.nodes.append(node)
            return self._results(node, call, operands)
        number, windows = -1, len(self.windows)
        if part is not None:
            number = len(self.readings) if part.name == "score" else max([value.product for value in operands])
            shapes = self._attend(given, part, number, address)
        else:
            shapes = self._read(call, op, given, address)
        node = StepNode(call, address, given, shapes)
        node.attention, node.is_convolution = number, len(self.windows) > windows
        self.nodes.append(node)
        types = self._result_types(call, op, node)
        for type in types:
            value = StepValue(type.shape, type.dtype, step=True)
            value.is_known |= _is_elementwise(op) and all(value.is_known or value.is_static for value in operands)
            value.node = node
            value.product = max([value.product for value in operands])
            node.results.append(value)
        if part is not None:
            node.results[0].product = number if part.name == "score" else -1
        return [*node.results]

    # Reading ------------------------------------------------------------------------------------------------------

    def _read(self, call: Call, op: Op, given: list[StepValue | None], address: str) -> list[Shape | None]:
        """Return the shapes of operands as an operation reads them: keys at all positions. Raises Undecodable."""
        shapes = [value and value.shape for value in given]
        if op.group == "Elementwise" or (op.rearranges and len(given) > 1):
            return self._aligned(call, given, address)
        for value, shape in zip(given, shapes, strict=True):
            if value is not None and shape is not None and not value.in_step and _contains_label(shape, self.dimension):
                raise NoDecodingStepError(
                    f"{describe_address(address)} combines positions with a table of all of them (`{call.type}`)"
                )
        settings = op.settings(call.attributes)
        for i, (value, shape) in enumerate(zip(given, shapes, strict=True)):
            if value is not None and shape is not None and _contains_label(shape, NEW_POSITION):
                self._check_alone(call, op, i, given, settings, address)
        return shapes

    def _attend(
        self, given: list[StepValue | None], part: AttentionPart, number: int, address: str
    ) -> list[Shape | None]:
        """Read the keys or values of an attention at the positions that the newest one sees."""
        query, other = given
        assert query is not None and other is not None
        axis = -1 if part.name == "score" else -2
        if (
            not _contains_label(query.shape[-2:-1], NEW_POSITION)
            or other.is_static
            or (other.in_step and not _contains_label(other.shape, NEW_POSITION))
            or number < 0
        ):
            raise NoDecodingStepError(f"{describe_address(address)} has attention of a form that is not known")
        along = _contains_label(other.shape, NEW_POSITION)
        if along and other.shape[axis] != symbol(NEW_POSITION):
            raise NoDecodingStepError(f"{describe_address(address)} has attention whose keys are not along one axis")
        if along and not part.seen.causal:
            raise NoDecodingStepError(f"{describe_address(address)} attends to later positions")
        if along and not part.seen.exact:
            raise NoDecodingStepError(
                f"{describe_address(address)} attends to earlier positions by a mask that is not a window"
            )
        reading = self.readings.setdefault(number, AttentionRead(address, part.seen if along else None))
        reading.values.append(other)
        return [query.shape, self._with_keys(other.shape, number) if along else other.shape]

    def _with_keys(self, shape: Shape, attention: int) -> Shape:
        return tuple([substitute(size, {NEW_POSITION: symbol(self.keys(attention))}) for size in shape])

    def _aligned(self, call: Call, given: list[StepValue | None], address: str) -> list[Shape | None]:
        """Label the axes of position tables and constants by the operands with which they are combined.

        What is only combined with what is known, as masks with each other, gets its labels later.
        """
        axis = OPS[call.type].settings(call.attributes).get("axis")
        if isinstance(axis, int) and _appends_positions(call, given, axis):
            raise NoDecodingStepError(f"{describe_address(address)} combines several positions (`{call.type}`)")
        rank = max([len(value.shape) for value in given if value is not None])
        labels: list[Dim | None] = [None] * rank
        for value in given:
            if value is not None and value.in_step and not value.is_known:
                for i, size in enumerate(reversed(value.shape), 1):
                    if size != 1:
                        labels[-i] = size
        tables = any(value is not None and _contains_label(value.shape, self.dimension) for value in given)
        if not any(labels):
            if not tables:
                return [value and value.shape for value in given]
            return [value and tuple([_unlabelled(size, self.dimension) for size in value.shape]) for value in given]
        found: list[Shape | None] = []
        for value in given:
            if value is None or (value.in_step and not value.is_known):
                found.append(value and value.shape)
                continue
            shape = list(value.shape)
            for i, size in enumerate(reversed(value.shape), 1):
                label = labels[-i]
                if label is not None and (
                    _contains_label((size,), self.dimension) or _contains_label((size,), NEW_POSITION)
                ):
                    shape[-i] = label
            found.append(tuple(shape))
        joined = isinstance(axis, int) and any(
            value is not None and value.is_static and _contains_label(value.shape[axis:][:1], self.dimension)
            for value in given
        )
        if joined or any(shape is not None and _contains_label(shape, self.dimension) for shape in found):
            raise NoDecodingStepError(
                f"{describe_address(address)} combines positions with a table of all of them (`{call.type}`)"
            )
        return found

    def _check_alone(
        self,
        call: Call,
        op: Op,
        index: int,
        given: list[StepValue | None],
        settings: Mapping[str, object],
        address: str,
    ) -> None:
        """Raise Undecodable if an operation combines an operand's elements at different positions."""
        operand = given[index]
        assert operand is not None
        type = Type(operand.shape, operand.dtype)
        wrong = NoDecodingStepError(f"{describe_address(address)} combines several positions (`{call.type}`)")
        along = {i for i, size in enumerate(type.shape) if _contains_label((size,), NEW_POSITION)}
        inserts = (
            len(call.outputs) == 1 and call.outputs[0] is not None and len(call.outputs[0].shape) > len(type.shape)
        )
        if len(along) > 1 or op.over == "window" or _combines_positions(op, index, along, given):
            raise wrong
        if "stride" in settings:
            self._convolve(given, index, along, settings, address, wrong)
        elif "groups" in settings or ("eps" in settings and len(type.shape) - 1 in along):
            raise wrong
        elif "axis" in settings and not inserts:
            counts = (
                type.dtype == "int" and op.interval is not None and op.group == "Along an axis"
            )  # of given positions
            if along & check_axes(settings["axis"], type) and not counts and not self._keeps_position(settings):
                raise wrong
        elif any(op.input(index).name in entry.indexes.split() for entry in op.inputs):
            raise wrong

    def _keeps_position(self, settings: Mapping[str, object]) -> bool:
        """Whether a selection is that of the current position, or of all positions from the first."""
        if "index" in settings:
            return self._is_index(settings["index"])
        stops_at_last = settings.get("stop") == symbol(self.dimension)
        return stops_at_last and settings["start"] in (0, None) and settings["step"] == 1

    def _is_index(self, value: object) -> bool:
        """Whether a static value is the index of the loop over the sequence."""
        return str(value) == self._index

    def _convolve(
        self,
        given: list[StepValue | None],
        index: int,
        along: set[int],
        settings: Mapping[str, object],
        address: str,
        wrong: NoDecodingStepError,
    ) -> None:
        """Check that a convolution along the sequence only looks back, and keep the positions that it covers."""
        if along <= {0}:
            return
        x, weight = given[:2]
        stride, dilation, padding = (_single_item(settings[name]) for name in ("stride", "dilation", "padding"))
        if index != 0 or x is None or weight is None or len(x.shape) != 3 or x.shape[2] != symbol(NEW_POSITION):
            raise wrong
        kernel = weight.shape[2]
        if (
            (stride, dilation) != (1, 1)
            or settings["transposed"]
            or not isinstance(kernel, int)
            or padding != kernel - 1
        ):
            raise wrong
        self.windows.append(ConvolutionWindow(address, "convolution", x.shape, kernel))

    # Results ------------------------------------------------------------------------------------------------------

    def _result_types(self, call: Call, op: Op, node: StepNode) -> list[Type]:
        """Return the labelled types of the results, from the rule of the operation. Raises Undecodable."""
        wrong = NoDecodingStepError(
            f"{describe_address(node.address)} moves positions in a way that is not known (`{call.type}`)"
        )
        types = [
            None if shape is None or value is None else Type(shape, value.dtype)
            for shape, value in zip(node.shapes, node.operands, strict=True)
        ]
        shapes = [shape for shape in node.shapes if shape is not None]
        axis = call.attributes.get("axis")
        along = shapes[0][axis:][:1] if isinstance(axis, int) else [size for shape in shapes for size in shape]
        keys = [name for size in along for name in sorted(symbols(size)) if name.startswith(_KEYS)]
        labels = (
            [*keys, NEW_POSITION, self.dimension] if isinstance(axis, int) else [NEW_POSITION, *keys, self.dimension]
        )
        found: list[Type] = []
        for label in dict.fromkeys(labels):
            attributes = {name: self._labelled(value, label) for name, value in call.attributes.items()}
            if self._is_index(attributes.get("index")):
                attributes["index"] = 0
            try:
                found = [*op.rule(types, attributes)]
            except (OpError, ArithmeticError, ValueError):
                continue
            if self._is_right(call, found) and (not _is_reshape(op) or _stride(found[0].shape) == _stride(shapes[0])):
                return found
        raise wrong

    def _is_right(self, call: Call, found: list[Type]) -> bool:
        """Whether results have the compiled types, if labels are replaced by the dimension."""
        given = [type for type in call.outputs if type is not None]
        return all(
            tuple([_unlabelled(size, self.dimension) for size in labelled.shape]) == type.shape
            for labelled, type in zip(found, given, strict=True)
        )


def describe_address(address: str) -> str:
    """Describe an address for messages."""
    return f"`{address}`" if address else "the model"


def _contains_label(shape: Sequence[Dim], name: str) -> bool:
    return any(name in symbols(size) for size in shape)


def _unlabelled(size: Dim, dimension: str) -> Dim:
    names = [name for name in symbols(size) if name == NEW_POSITION or name.startswith(_KEYS)]
    return substitute(size, {name: symbol(dimension) for name in names}) if names else size


def _is_elementwise(op: Op) -> bool:
    """Whether each element of a result is made of one element of each operand."""
    return op.group in ("Elementwise", "Shape")


def _appends_positions(call: Call, given: Sequence[StepValue | None], axis: int) -> bool:
    """Whether a concatenation appends values along the position axis."""
    first, result = given[0], call.outputs[0]
    assert first is not None and result is not None
    if len(result.shape) > len(first.shape) or first.shape[axis] == symbol(NEW_POSITION):
        return False
    return any(
        value is not None and not value.is_known and _contains_label((value.shape[axis],), NEW_POSITION)
        for value in given[1:]
    )


def _combines_positions(op: Op, index: int, along: set[int], given: Sequence[StepValue | None]) -> bool:
    """Whether a product sums over positions, along an axis of an operand, or pairs them with those of the other.

    Both factors are along the axis that it sums over. One of them shows it: the first of a `matmul`, and the weight of
    other products.
    """
    operand, first = given[index], given[0]
    assert operand is not None and first is not None
    last = len(operand.shape) - 1
    if op.attention == "product":
        return last in along and (index == 0 or _contains_label(first.shape, NEW_POSITION))
    return op.input(index).name in ("weight", "bias") and bool(along)


def _is_reshape(op: Op) -> bool:
    return op.rearranges and op.torch is not None and op.torch.memory == "whole"


def _stride(shape: Shape) -> Dim:
    """Return the distance between elements at successive positions; 0 if there is only one position."""
    axis = next((i for i, size in enumerate(shape) if any(name.startswith("__") for name in symbols(size))), None)
    return 0 if axis is None else product(shape[axis + 1 :])


def _single_item(value: object) -> object:
    """Return the item of a list of one."""
    return value[0] if is_list(value) and len(value) == 1 else value


# The direction in which a model reads a sequence.


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
