"""The plan of a picture: a description of a model as plain data, from which every renderer draws.

A plan is computed once per model (`archspec.drawing.api.plan_of`). It contains everything that does not depend on
which blocks are open: the texts and the sizes of closed boxes, parameters and work, and for the contents of each block
the decisions of the layout. `Plan.to_data` returns it as JSON data. A key whose value is absent (None, an empty list or
dictionary, False, or the default given below) is omitted.

Plan
    model, doc          name and documentation of the model
    total, trainable, frozen    parameter counts
    hyperparameters     values by name
    labels              the labels of hyperparameters by name
    dimensions          the names of the symbolic dimensions of the inputs, in order
    roles               [{role, params}] of all tensors, as `count --by role`; `role` is absent for tensors without one
    opened              ids of the blocks and periods that are open at first
    nodes               all nodes; the `id` of a node is its position in this list. Node 0 is the root
    ties                [[a, b], ...] pairs of nodes that use the same tensor: it is counted at `a`
    sources             {file: text}, the files that `source` refers to; only in a page

Node
    id, parent          `parent` is absent for the root only
    kind                root; input and output of the model; block, layer, fn, loop: an application of a definition;
                        op: an operation; param, buffer: a tensor that an operation reads; period: one period of a
                        repeated sequence of applications; group: no box, only nodes that are arranged together
    form                how it is drawn when closed: "box", "pill" (functions and operations), "circle" (sums and
                        products of tensors, `title` is "+" or the multiplication sign), "terminal" (inputs and
                        outputs). A group is always open and is drawn without a frame
    title               the first line: the address relative to the enclosing block, the operation, the name
    lines               [[text, width], ...] of a closed box, the title first (bold if the form is box or terminal)
    heading             [[text, width], ...] of the frame when open: title, type, distinguishing hyperparameters
    badge               [text, width]: how often it is applied, if it is several times
    size                [width, height] of the closed box
    name                the full name, which is unique, also among applications of the same address (`layer@2`)
    address             the address in the checkpoint, `*` for the index of a repeated layer (`layer.1,4,...,19` for
                        some of them)
    addresses           the addresses of all copies (in Python only, not in the data)
    modules             the addresses of the layers in it, relative to its own (in Python only, for blocks)
    type                name of the definition or operation
    label               its label in the spec, shown in place of `type`, or of `title` for an input or output
    source              file:line of the application
    role                the role of its tensors: of all, or for a block of at least 90 % of its parameters
    tensors             [{name, shape, params, tied_to?, frozen?, copies}] of a layer: names relative to the layer (with
                        `*` for the index of several tensors, whose number is `copies` (1)),
                        `params` of one of them; 0 if it is counted at another node, and `tied_to` the name that is
                        counted there. They are those of the first of several copies
    params              its parameters, in all copies. The sum over the children of a node is that of the node, so
                        all closed nodes on display and the closed children of open ones sum to `total`
    frozen              how many of `params` are frozen
    copies              number of copies of its tensors in the model (1): each has params / copies
    times               number of applications in the enclosing node (1)
    rounds              number of times that its contents run in one application (1): the iterations of a loop
    same                `times` > 1 with the same weights
    again               the id of the node whose weights this application uses again
    macs, elementwise, bytes    polynomials for one application: multiply-accumulates (a FLOP count is twice that),
                        elementwise operations, and bytes of results (4 per real, 8 per integer, 1 per boolean), with
                        everything inside. It adds to the model this, multiplied by `times` of the node and by `times`
                        and `rounds` of all nodes around it
    hyperparameters     values by name, for definitions with tensors and for operations
    labels              the labels of hyperparameters by name
    constants           inputs that are numbers, by argument
    differs             text that distinguishes it from similar nodes nearby ("local", "not first"), or says what is
                        in it ("8 of 256 experts")
    shape, dtype        of its first output that is used: sizes are numbers or texts
    inputs              [{argument, side, shape, dtype}] the values that enter, each once. `side` is where: "top",
                        "left" (another stream) or "right" (values without parameters behind them)
    main                the position in `inputs` of the value on the axis, if there is one
    outputs             number of outputs that are used (1); all leave at the bottom
    beside              ids of one or two nodes that stand to the right and to the left of this operation, in its row,
                        and move with it: tensors, or an operation without inputs. They are in the `children` of the
                        same contents, but not in its `rows`
    contents            what is inside, if it can be opened

Contents
    children            ids in program order
    rows                [[entry, ...], ...] from top to bottom, each from left to right. An entry is the id of a child,
                        or {value: v} where the value v of `values` passes through the row on a straight column
    columns             ids of children in columns to the right of the rows, innermost first: computations without
                        parameters, whose results enter the rows from the right
    out                 position of the output that leaves on the axis (0)
    values              [{from, output, uses}]: `from` is the child that computes it and `output` which of its outputs;
                        without `from` it is input number `output` of this node
    uses (of a value)   [{to, port, way}]: `to` is a child and `port` the position in its `inputs`; without `to`, output
                        number `port` of this node. `way` is "down" (from row to row), "skip" (a bracket on the left:
                        there is a longer way beside it), "left" or "right" (enters the child from that side),
                        "beside" (from a tensor beside its operation), "column" (into a node of `columns`, from above)

Polynomials
    A number, or a list of terms [coefficient, [[factor, exponent], ...]]. A factor is the name of a dimension, or
    [operation, polynomial, ...] with the operation "//" (floor), "%", "min" or "max", or "+" for a single polynomial
    in brackets. Integers from 2 ** 53 on are strings of digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, cast

from archspec.core.record import Record
from archspec.drawing.plan.amounts import amount_data
from archspec.ir.work import Quantity

Side: TypeAlias = Literal["top", "left", "right"]
Route: TypeAlias = Literal["down", "skip", "left", "right", "beside", "column"]
Entry: TypeAlias = "int | PassThrough"
Line: TypeAlias = tuple[str, float]


class PassThrough(Record):
    """An entry of a row: the value of this index passes through it."""

    value: int


class Port(Record):
    """A value that enters a node."""

    argument: str
    side: Side
    shape: tuple[str | int, ...]
    dtype: str


class Use(Record):
    """A use of a value by an input `port` of the child `to`, or by an output of the node itself if `to` is None."""

    to: int | None
    port: int
    way: Route


class Value:
    """A value inside a node, from output number `output` of a child, or its own input of that number."""

    __slots__ = ("output", "source", "uses")

    def __init__(self, source: int | None, output: int) -> None:
        self.source = source
        self.output = output
        self.uses: list[Use] = []


class Contents:
    """The inside of a node: children, values, and their arrangement in rows and columns."""

    __slots__ = ("children", "columns", "out", "rows", "values")

    def __init__(self) -> None:
        self.children: list[int] = []
        self.values: list[Value] = []
        self.rows: list[list[Entry]] = []
        self.columns: list[int] = []
        self.out = 0


class PlanTensor(Record):
    """A tensor of a layer, by its name in the layer. `params` is 0 if it is tied."""

    name: str
    shape: tuple[int, ...]
    params: int
    tied_to: str | None
    frozen: bool
    copies: int = 1


class Node:
    """A node of the plan; the docstring of this module describes the attributes."""

    address: str | None = None
    addresses: list[str] | None = None
    again: int | None = None
    badge: Line | None = None
    beside: list[int] | None = None
    constants: dict[str, object] | None = None
    contents: Contents | None = None
    copies: int = 1
    differs: str = ""
    dtype: str | None = None
    elementwise: Quantity = 0
    bytes: Quantity = 0
    frozen: int = 0
    heading: list[Line] | None = None
    hyperparameters: dict[str, object] | None = None
    label: str = ""
    labels: dict[str, str] | None = None
    lines: list[Line] | None = None
    macs: Quantity = 0
    main: int | None = None
    modules: frozenset[str] = frozenset[str]()
    name: str = ""
    outputs: int = 1
    params: int = 0
    role: str | None = None
    rounds: Quantity = 1
    same: bool = False
    shape: tuple[str | int, ...] | None = None
    size: tuple[float, float] = (0, 0)
    source: str = ""
    tensors: list[PlanTensor] | None = None
    times: int = 1

    def __init__(self, id: int, parent: int | None, kind: str, type: str) -> None:
        self.id = id
        self.parent = parent
        self.kind = kind
        self.type = type
        self.form = ""
        self.title = ""
        self.inputs: list[Port] = []


class RoleShare(Record):
    """The parameters of all tensors with a role."""

    role: str | None
    params: int


class Plan:
    """The plan of a picture; the docstring of this module describes the attributes."""

    def __init__(self, model: str, doc: str, total: int, trainable: int) -> None:
        self.model = model
        self.doc = doc
        self.total = total
        self.trainable = trainable
        self.frozen = total - trainable
        self.hyperparameters: Mapping[str, object] = {}
        self.labels: dict[str, str] = {}
        self.dimensions: list[str] = []
        self.roles: list[RoleShare] = []
        self.opened: list[int] = []
        self.nodes: list[Node] = []
        self.ties: list[tuple[int, int]] = []

    def children(self, node: Node) -> list[Node]:
        """Return the children of a node, in program order."""
        return [self.nodes[id] for id in node.contents.children] if node.contents is not None else []

    def to_data(self) -> dict[str, object]:
        """Return the plan as data for JSON."""
        return _object({name: getattr(self, name) for name in _names(self)})


_QUANTITIES = {"macs", "elementwise", "bytes", "rounds"}
_DEFAULTS: dict[str, object] = {"times": 1, "rounds": 1, "copies": 1, "outputs": 1, "out": 0}
_KEPT = {"id", "parent", "main", "again", "from", "to", "total", "params", "output", "port", "value", "size"}
"""Keys that are written even if the value is 0."""
_OMITTED = {"addresses", "modules"}
"""What only Python needs."""


def _data(value: object, key: str = "") -> object:
    if key in _QUANTITIES:
        return amount_data(value)  # pyright: ignore[reportArgumentType]
    match value:
        case bool() | str() | None:
            return value
        case int():
            return amount_data(value)
        case float():
            return value if abs(value) < float("inf") else str(value)
        case Node() | Contents():
            return _object({name: getattr(value, name) for name in _names(value)})
        case Value():
            found: dict[str, object] = {"from": value.source, "output": value.output, "uses": value.uses}
            return _object(found)
        case PassThrough() | Port() | Use() | PlanTensor() | RoleShare():
            return _object(value._asdict())
        case dict():
            return {str(name): _data(item) for name, item in cast("dict[object, object]", value).items()}
        case list() | tuple():
            return [_data(item) for item in cast("list[object]", value)]
        case _:
            return str(value)


def _names(value: Plan | Node | Contents) -> list[str]:
    return (
        list(value.__slots__) if isinstance(value, Contents) else [name for name in vars(value) if name not in _OMITTED]
    )


def _object(fields: dict[str, object]) -> dict[str, object]:
    return {
        name: _data(item, name)
        for name, item in fields.items()
        if (name in _KEPT and item is not None)
        or (item not in (None, "", 0, False, (), [], {}) and item != _DEFAULTS.get(name))
    }
