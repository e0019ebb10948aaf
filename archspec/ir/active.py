"""The parameters that a model uses for one token: all, or of tensors that are divided among experts, those of a few.

A tensor is divided if the computation reads it only where indices point, and if these are the result of a choice (of
the `k` largest scores). A choice of one token has `k` different indices, so that `k` of the `n` parts along the first
axis are read. On its way from the parameter to that place, the tensor may be part of others (a stack of experts) and
be rearranged, as long as each of its elements occurs once. Nothing is concluded from names.

Values are followed twice through every body: forward from inputs and parameters to find choices, and backward from the
outputs to find out which part of each parameter is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from functools import cache, cached_property, reduce
from itertools import groupby
from typing import Literal, TypeAlias

from archspec.core.addresses import is_inside, parent, prefixes, relative
from archspec.core.algebra import Dim, Expression, product, substitute, symbols
from archspec.core.diagnostics import ArchError
from archspec.core.record import Record
from archspec.ir.fold import ForwardResult, VisitLimit, arguments, propagate_backward, propagate_forward
from archspec.ir.module import Body, Call, Operand, canonical_name
from archspec.ir.ops import OPS, Op
from archspec.ir.table import ActiveParameters, Table, Tensor, Tensors, count_active_parameters

Fact: TypeAlias = Literal["stored", "computed", "unclear"]
"""What a value depends on: on parameters alone, on inputs too, or on indices that were chosen."""


class ChosenIndices(Record):
    """A value with this many indices for each token, which are all different."""

    number: int


Content: TypeAlias = "Fact | ChosenIndices"


ReadPart: TypeAlias = Literal["whole", "rows", "unknown"]
"""The part of a value that is read for one token: all of it; a row of a table for each id; or it is unknown."""


class Share(Record):
    """One token reads a number of equal parts of a value, out of a total."""

    number: int
    of: int


Part: TypeAlias = "ReadPart | Share | None"
"""The part of a value that is read; None if none is."""


class _Reads(Record):
    """The parts that a body reads: of its inputs, of tensors by relative name, and what the calls in it read.

    A call is found by its address and by each address above; the rest of its address is beside what it reads.
    """

    inputs: list[Part]
    tensors: dict[str, Part]
    calls: dict[str, list[tuple[str, _Reads]]]


def active_parameters(body: Body, table: Table) -> ActiveParameters | None:
    """Return the parameters that a model uses for one token; None if these are all of them, or if it is unknown."""
    try:
        parts = ActiveParts(body)
    except ArchError:  # following values takes too many steps
        return None
    tensors = table.tensors
    counted = tensors.column([tensor.params for tensor in tensors.distinct])
    read = parts.of_all(tensors)
    params = Counter[Part]()
    for (part, number), times in Counter(zip(read, counted, strict=True)).items():
        params[part] += number * times
    if "unknown" in params:
        return None
    chosen = {part: n for part, n in params.items() if isinstance(part, Share) and part.number < part.of}
    total = count_active_parameters(table.params.total, {(part.number, part.of): n for part, n in chosen.items()})
    if not chosen or total is None:
        return None
    indices = {**dict.fromkeys(params, -1), **{part: i for i, part in enumerate(chosen)}}
    choices = tuple([(part.number, part.of) for part in chosen])
    runs = tuple([(choice, len([*run])) for choice, run in groupby([indices[part] for part in read])])
    return ActiveParameters(total, total - params["rows"], choices, runs)


class ActiveParts:
    """The part of each tensor that a model reads for one token."""

    def __init__(self, body: Body) -> None:
        """Raises ArchError if following values takes too many steps."""
        assert body.module is not None
        inputs: list[Content] = ["computed"] * len(body.inputs)
        outputs: list[Part] = ["whole"] * len(body.outputs)
        self._module = body.module
        self._reads = _Reader().read(body, tuple(inputs), tuple(outputs))
        self._below = cache(self._find_below)
        self._known: dict[int, dict[str, Part]] = {}
        self._known_below: dict[Hashable, dict[str, Part]] = {}

    @cached_property
    def by_name(self) -> Mapping[str, Part]:
        """The part of each tensor, by the name under which it is counted."""
        found = dict(self._of(self._reads))
        for alias in self._module.aliases.keys() & found.keys():
            name, part = canonical_name(self._module, alias), found.pop(alias)
            found[name] = _joined(found[name], part) if name in found else part
        return found

    def of_all(self, tensors: Tensors) -> list[Part]:
        """Return the part of each tensor; None for tensors that are not counted.

        Those of a repeated module are those of the first one, if the same is read of them.
        """
        if not self._module.aliases and all(self._below(again) == self._below(of) for again, of, *_ in tensors.repeats):
            repeated = {repeat.of for repeat in tensors.repeats}
            return tensors.column([self._one_of(tensor, repeated) for tensor in tensors.distinct])
        counted = tensors.column([tensor.params for tensor in tensors.distinct])
        names = zip(tensors.names(), counted, strict=True)
        return [self.by_name.get(name) if params else None for name, params in names]

    def _one_of(self, tensor: Tensor, repeated: Container[str]) -> Part:
        """Return the part of a tensor, found in the outermost of the modules that are repeated, if it is in one."""
        address = next((above for above, _ in _splits(tensor.name) if above in repeated), tensor.layer)
        return self._below(address).get(relative(tensor.name, address))

    def _of(self, reads: _Reads) -> dict[str, Part]:
        """Return the parts that a body reads, by the name of the tensor."""
        known = self._known.get(id(reads))
        if known is None:
            inner = [(address, call) for address, calls in reads.calls.items() for rest, call in calls if not rest]
            known = self._known[id(reads)] = self._joined([*reads.tensors.items(), *inner])
        return known

    def _find_below(self, address: str) -> dict[str, Part]:
        """Return the parts that are read of the tensors of a module, by their names in it."""
        readers = _readers(self._reads, address)
        key = tuple([(rest, id(reader) if isinstance(reader, _Reads) else reader) for rest, reader in readers])
        known = self._known_below.get(key)
        if known is None:
            known = self._known_below[key] = self._joined(readers)
        return known

    def _joined(self, readers: Sequence[tuple[str, Part | _Reads]]) -> dict[str, Part]:
        """Return the parts that are read together, each at an address."""
        found: dict[str, Part] = {}
        for address, reader in readers:
            more: dict[str, Part] = {}
            if isinstance(reader, _Reads):
                prefix = f"{address}." if address else ""
                more = {prefix + name: part for name, part in self._of(reader).items()}
            else:
                more[address] = reader
            if not found.keys().isdisjoint(more):
                more |= {name: _joined(found[name], part) for name, part in more.items() if name in found}
            found |= more
        return found


def _readers(reads: _Reads, address: str) -> list[tuple[str, Part | _Reads]]:
    """Return what reads the tensors of a module, each with the address of that in the module."""
    if not address:
        return [("", reads)]
    found: list[tuple[str, Part | _Reads]] = [
        (relative(name, address), part) for name, part in reads.tensors.items() if is_inside(name, address)
    ]
    found += reads.calls.get(address, ())
    for above, rest in _splits(address):
        for deeper, inner in reads.calls.get(above, ()):
            if not deeper:
                found += _readers(inner, rest)
    return found


def _splits(address: str) -> list[tuple[str, str]]:
    """Return an address in two parts in every way in which the second is not empty."""
    return [("", address), *((outer, relative(address, outer)) for outer in prefixes(parent(address)))]


class _Reader:
    """Follows values through bodies: each body once for the contents of its inputs and the parts of its results."""

    def __init__(self) -> None:
        self._budget = VisitLimit()
        self._contents: Callable[[Body, tuple[Content, ...]], ForwardResult[Content]] = cache(self._find_contents)
        self.read: Callable[[Body, tuple[Content, ...], tuple[Part, ...]], _Reads] = cache(self._read)

    def _find_contents(self, body: Body, inputs: tuple[Content, ...]) -> ForwardResult[Content]:
        def visit_call(call: Call, given: list[Content]) -> list[Content]:
            return self._contents(*self._inside(call, given)).outputs

        def weight(name: str) -> Content:
            return "stored"

        found = propagate_forward(
            body, inputs, _contents_of(body), visit_call, "stored", lambda _: "stored", weight, self._budget
        )
        return found._replace(outputs=["unclear"] * len(found.outputs)) if body.loop is not None else found

    def _inside(self, call: Call, given: Sequence[Content]) -> tuple[Body, tuple[Content, ...]]:
        """Return the body that a call applies, with the contents of its inputs. A loop changes what it carries."""
        assert call.body is not None
        loop = call.body.loop
        inputs = arguments(call, given)
        return call.body, tuple(["unclear" if loop and i < loop.carried else c for i, c in enumerate(inputs)])

    def _read(self, body: Body, inputs: tuple[Content, ...], outputs: tuple[Part, ...]) -> _Reads:
        contents = self._contents(body, inputs).slots
        calls: dict[str, list[tuple[str, _Reads]]] = {}

        def content(operand: Operand) -> Content:
            return contents[operand] if isinstance(operand, int) else "stored"

        def visit_op(call: Call, results: list[Part]) -> list[Part]:
            if not any(results):
                return [None] * len(call.inputs)
            return _parts_of(call, [content(operand) for _, operand in call.inputs], results, contents, body)

        def visit_call(call: Call, results: list[Part]) -> list[Part]:
            assert call.body is not None
            within, given = self._inside(call, [content(operand) for _, operand in call.inputs])
            reads = self.read(within, given, tuple(results))
            calls.setdefault(call.address, []).append(("", reads))
            for above, rest in _splits(call.address)[1:]:
                calls.setdefault(above, []).append((rest, reads))
            parts = dict(zip([name for name, _ in within.inputs], reads.inputs, strict=True))
            repeats = within.loop is not None
            found: list[Part] = [parts.get(name) for name, _ in call.inputs]
            return ["unknown" if repeats and isinstance(part, Share) else part for part in found]

        slots = propagate_backward(body, outputs, visit_op, visit_call, None, _joined, self._budget)
        return _Reads(slots[: len(body.inputs)], {name: slots[slot] for name, slot in body.weights}, calls)


def _contents_of(body: Body) -> Callable[[Call, list[Content]], list[Content]]:
    def visit(call: Call, given: list[Content]) -> list[Content]:
        op = OPS[call.type]
        operands: list[Content] = [
            content for (_, operand), content in zip(call.inputs, given, strict=True) if operand is not None
        ]
        unclear = any(isinstance(content, ChosenIndices) or content == "unclear" for content in operands)
        if op.chooses is not None:
            found: list[Content] = ["computed"] * len(call.outputs)
            found[op.chooses] = _chosen(call, body)
            return found
        if unclear:
            moved = op.rearranges and len(operands) == len(call.outputs) == 1
            kept: Content = operands[0] if moved else "unclear"
            return [kept] * len(call.outputs)
        result: Content = "stored" if all(content == "stored" for content in operands) else "computed"
        return [result] * len(call.outputs)

    return visit


def _chosen(call: Call, body: Body) -> Content:
    """Return the content of chosen indices: all are different if those of one token come from one choice."""
    op = OPS[call.type]
    operand = call.inputs[0][1]
    result = call.outputs[op.chooses or 0]
    if not isinstance(operand, int) or result is None:
        return "unclear"
    shape = body.types[operand].shape
    axis = op.settings(call.attributes)["axis"]
    assert isinstance(axis, int)
    others = [size for i, size in enumerate(shape) if i != axis % len(shape)]
    count = _for_one_token(result.shape)
    return ChosenIndices(count) if _for_one_token(others) == 1 and isinstance(count, int) else "unclear"


def _for_one_token(shape: Sequence[Dim]) -> Expression | None:
    """Return the number of elements if every symbolic dimension is 1."""
    try:
        sizes = [substitute(size, dict.fromkeys(symbols(size), 1)) for size in shape]
    except (ArithmeticError, ValueError):
        return None
    return product(sizes) if all(isinstance(size, int) and size > 0 for size in sizes) else None


def _parts_of(
    call: Call, given: list[Content], results: list[Part], contents: Sequence[Content], body: Body
) -> list[Part]:
    """Return the part of each operand of an operation that is read, from those of its results."""
    op = OPS[call.type]
    indexed = _indexed(op, given)
    result = contents[call.first]

    def part(i: int) -> Part:
        if given[i] != "stored":
            return "whole"
        index = indexed.get(op.input(i).name)
        if index is not None:
            return _selected(index, call.inputs[i][1], body)
        if result != "stored":
            return "whole"
        return _kept(op, results)

    return [part(i) for i in range(len(call.inputs))]


def _indexed(op: Op, given: list[Content]) -> dict[str, Content]:
    """Return the contents of the indices into each input that an operation reads at indices."""
    by_axis = any(attribute.name == "axis" for attribute in op.attributes)  # such indices differ between other axes
    return {
        name: "unclear" if by_axis and content not in ("stored", "computed") else content
        for entry, content in zip(op.inputs, given, strict=False)
        for name in entry.indexes.split()
    }


def _selected(index: Content, operand: Operand, body: Body) -> Part:
    if index == "unclear":
        return "unknown"
    if not isinstance(index, ChosenIndices):
        return "rows"
    size = body.types[operand].shape[0] if isinstance(operand, int) else None
    return Share(index.number, size) if isinstance(size, int) and index.number <= size else "unknown"


def _kept(op: Op, results: list[Part]) -> Part:
    """Return the part that is read of parameters from which others are computed."""
    if op.rearranges or op.casts or op.widens or op.trains:
        if len(set(results)) == 1:
            return results[0]
        shared = any(isinstance(result, Share) for result in results)
        return "unknown" if shared else reduce(_joined, results)
    whole = reduce(_joined, results)
    return "unknown" if isinstance(whole, Share) or whole == "unknown" else "whole"


def _joined(a: Part, b: Part) -> Part:
    """Return the part that is read if these are read; two choices can be different or equal."""
    if a is None or b is None:
        return a or b
    if "whole" in (a, b):
        return "whole"
    return "rows" if a == b == "rows" else "unknown"
