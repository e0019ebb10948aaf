"""The parameters that a model uses for one token: all, or only a share of tensors that are divided among experts.

A tensor is divided if the computation reads it only at indices that a choice (of the `k` largest scores) returns. The
choice for one token has `k` different indices: `k` of the `n` parts along the first axis are read. Before it is read,
the tensor may be rearranged or become part of a larger tensor (a stack of experts), if each of its elements occurs
once. Names are not considered.

Values are propagated twice through every body: forward from inputs and parameters to find choices, and backward from
the outputs to find the part of each parameter that is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from functools import cache, cached_property, reduce
from itertools import groupby
from typing import Literal, TypeAlias

from archspec.core.addresses import is_inside, last_segment, parent, prefixes, relative
from archspec.core.algebra import Dim, Expression, product, substitute, symbols
from archspec.core.diagnostics import ArchError
from archspec.core.record import Record
from archspec.ir.fold import ForwardResult, VisitLimit, arguments, propagate_backward, propagate_forward
from archspec.ir.module import Body, BodyCache, Call, Operand, canonical_name
from archspec.ir.ops import OPS, Op
from archspec.ir.table import ActiveParameters, Table, Tensor, Tensors, count_active_parameters

Fact: TypeAlias = Literal["stored", "computed", "unclear"]
"""The dependence of a value: on parameters alone, on inputs too, or on chosen indices."""


class ChosenIndices(Record):
    """A value with `number` different indices for each token."""

    number: int


Content: TypeAlias = "Fact | ChosenIndices"


ReadPart: TypeAlias = Literal["whole", "rows", "unknown"]
"""The part of a value that is read for one token: all elements; a row of a table for each id; or unknown."""


class Share(Record):
    """One token reads `number` of the `total` equal parts of a value."""

    number: int
    total: int


Part: TypeAlias = "ReadPart | Share | None"
"""The part of a value that is read; None if the value is not read."""


def share_of(number: int, part: Part, tokens: int = 1) -> int:
    """Return the least number of elements, of `number`, that `tokens` with different choices read.

    Rows of a table, and unknown parts, count as nothing.
    """
    if isinstance(part, Share):
        return number * min(part.number * tokens, part.total) // part.total
    return number if part == "whole" else 0


class _Reads(Record):
    """The parts that a body reads: of its inputs, of tensors by relative name, and of modules that it applies.

    `calls` has a call under its address and under each enclosing address, with the remainder of its address.
    """

    inputs: list[Part]
    tensors: dict[str, Part]
    calls: dict[str, list[tuple[str, _Reads]]]


def active_parameters(body: Body, table: Table) -> ActiveParameters | None:
    """Return the parameters that a model uses for one token; None if it uses all, or if they are unknown."""
    try:
        active_parts = get_active_parts(body)
    except ArchError:  # too many applications to visit
        return None
    tensors = table.tensors
    counted = tensors.column([tensor.params for tensor in tensors.distinct])
    read = active_parts.of_all(tensors)
    params = Counter[Part]()
    for (part, number), times in Counter(zip(read, counted, strict=True)).items():
        params[part] += number * times
    if "unknown" in params:
        return None
    shares = {part: count for part, count in params.items() if isinstance(part, Share) and part.number < part.total}
    total = count_active_parameters(
        table.params.total, {(part.number, part.total): count for part, count in shares.items()}
    )
    if not shares or total is None:
        return None
    indices = {**dict.fromkeys(params, -1), **{part: i for i, part in enumerate(shares)}}
    choices = tuple([(part.number, part.total) for part in shares])
    runs = tuple([(choice, len([*run])) for choice, run in groupby([indices[part] for part in read])])
    return ActiveParameters(total, total - params["rows"], choices, runs)


class ActiveParts:
    """The part of each tensor that a model reads for one token."""

    def __init__(self, body: Body) -> None:
        """Raises ArchError if there are too many applications to visit."""
        assert body.module is not None
        inputs: list[Content] = ["computed"] * len(body.inputs)
        outputs: list[Part] = ["whole"] * len(body.outputs)
        self._module = body.module
        self._reads = _Reader().read(body, tuple(inputs), tuple(outputs))
        self.below: Callable[[str], dict[str, Part]] = cache(self._find_below)
        self._parts_of_reads: dict[int, dict[str, Part]] = {}
        self._parts_of_readers: dict[Hashable, dict[str, Part]] = {}

    @cached_property
    def by_name(self) -> Mapping[str, Part]:
        """The part of each tensor, by the name under which it is counted."""
        parts = dict(self._parts_read(self._reads))
        for alias in self._module.aliases.keys() & parts.keys():
            name, part = canonical_name(self._module, alias), parts.pop(alias)
            parts[name] = _join_parts(parts[name], part) if name in parts else part
        return parts

    def part(self, name: str) -> Part:
        """Return the part of a tensor, by the name under which it is counted."""
        if self._module.aliases:
            return self.by_name.get(name)
        return self.below(parent(name)).get(last_segment(name))

    def of_all(self, tensors: Tensors) -> list[Part]:
        """Return the part of each tensor; None for tensors that are not counted.

        The parts of a repeated module are copied if the same parts of the original module are read.
        """
        repeats = tensors.repeats
        if not self._module.aliases and all(self.below(r.address) == self.below(r.of) for r in repeats):
            repeated = {repeat.of for repeat in repeats}
            return tensors.column([self._part_of_tensor(tensor, repeated) for tensor in tensors.distinct])
        counted = tensors.column([tensor.params for tensor in tensors.distinct])
        names = zip(tensors.names(), counted, strict=True)
        return [self.by_name.get(name) if params else None for name, params in names]

    def _part_of_tensor(self, tensor: Tensor, repeated: Container[str]) -> Part:
        """Return the part of a tensor, found in the outermost repeated module that contains it, or in its layer."""
        address = next((prefix for prefix, _ in _splits(tensor.name) if prefix in repeated), tensor.layer)
        return self.below(address).get(relative(tensor.name, address))

    def _parts_read(self, reads: _Reads) -> dict[str, Part]:
        """Return the parts that a body reads, by relative tensor name."""
        cached = self._parts_of_reads.get(id(reads))
        if cached is None:
            nested = [(address, call) for address, calls in reads.calls.items() for suffix, call in calls if not suffix]
            cached = self._parts_of_reads[id(reads)] = self._join_readers([*reads.tensors.items(), *nested])
        return cached

    def _find_below(self, address: str) -> dict[str, Part]:
        """Return the parts of a module's tensors that are read, by relative tensor name."""
        readers = _find_readers(self._reads, address)
        key = tuple([(suffix, id(reader) if isinstance(reader, _Reads) else reader) for suffix, reader in readers])
        cached = self._parts_of_readers.get(key)
        if cached is None:
            cached = self._parts_of_readers[key] = self._join_readers(readers)
        return cached

    def _join_readers(self, readers: Sequence[tuple[str, Part | _Reads]]) -> dict[str, Part]:
        """Join the parts that readers at addresses read, by tensor name."""
        result: dict[str, Part] = {}
        for address, reader in readers:
            parts: dict[str, Part] = {}
            if isinstance(reader, _Reads):
                prefix = f"{address}." if address else ""
                parts = {prefix + name: part for name, part in self._parts_read(reader).items()}
            else:
                parts[address] = reader
            if not result.keys().isdisjoint(parts):
                parts |= {name: _join_parts(result[name], part) for name, part in parts.items() if name in result}
            result |= parts
        return result


_PARTS: BodyCache[None, ActiveParts] = BodyCache()


def get_active_parts(body: Body) -> ActiveParts:
    """Return the parts that a model reads, which analyses share. Raises ArchError as `ActiveParts` does."""
    entries = _PARTS.entries(body)
    if None not in entries:
        entries[None] = ActiveParts(body)
    return entries[None]


def _find_readers(reads: _Reads, address: str) -> list[tuple[str, Part | _Reads]]:
    """Return the parts and bodies that read tensors of a module, each with its address in the module."""
    if not address:
        return [("", reads)]
    readers: list[tuple[str, Part | _Reads]] = [
        (relative(name, address), part) for name, part in reads.tensors.items() if is_inside(name, address)
    ]
    readers += reads.calls.get(address, ())
    for prefix, suffix in _splits(address):
        for nested_address, nested in reads.calls.get(prefix, ()):
            if not nested_address:
                readers += _find_readers(nested, suffix)
    return readers


def _splits(address: str) -> list[tuple[str, str]]:
    """Return all splits of an address into an enclosing address and a non-empty remainder."""
    return [("", address), *((prefix, address[len(prefix) + 1 :]) for prefix in prefixes(parent(address)))]


class _Reader:
    """Propagates values through bodies, once per contents of the inputs and parts of the results."""

    def __init__(self) -> None:
        self._budget = VisitLimit()
        self._contents: Callable[[Body, tuple[Content, ...]], ForwardResult[Content]] = cache(self._find_contents)
        self.read: Callable[[Body, tuple[Content, ...], tuple[Part, ...]], _Reads] = cache(self._read)

    def _find_contents(self, body: Body, inputs: tuple[Content, ...]) -> ForwardResult[Content]:
        def visit_call(call: Call, operands: list[Content]) -> list[Content]:
            return self._contents(*self._applied_body(call, operands)).outputs

        def weight(name: str) -> Content:
            return "stored"

        result = propagate_forward(
            body, inputs, _content_visitor(body), visit_call, "stored", lambda _: "stored", weight, self._budget
        )
        return result._replace(outputs=["unclear"] * len(result.outputs)) if body.loop is not None else result

    def _applied_body(self, call: Call, operands: Sequence[Content]) -> tuple[Body, tuple[Content, ...]]:
        """Return the body that a call applies, with the contents of its inputs; a loop changes carried values."""
        assert call.body is not None
        loop = call.body.loop
        inputs = arguments(call, operands)
        return call.body, tuple(["unclear" if loop and i < loop.carried else c for i, c in enumerate(inputs)])

    def _read(self, body: Body, inputs: tuple[Content, ...], outputs: tuple[Part, ...]) -> _Reads:
        contents = self._contents(body, inputs).slots
        calls: dict[str, list[tuple[str, _Reads]]] = {}

        def content(operand: Operand) -> Content:
            return contents[operand] if isinstance(operand, int) else "stored"

        def visit_op(call: Call, results: list[Part]) -> list[Part]:
            if not any(results):
                return [None] * len(call.inputs)
            return _operand_parts(call, [content(operand) for _, operand in call.inputs], results, contents, body)

        def visit_call(call: Call, results: list[Part]) -> list[Part]:
            assert call.body is not None
            applied, input_contents = self._applied_body(call, [content(operand) for _, operand in call.inputs])
            reads = self.read(applied, input_contents, tuple(results))
            calls.setdefault(call.address, []).append(("", reads))
            for prefix, suffix in _splits(call.address)[1:]:
                calls.setdefault(prefix, []).append((suffix, reads))
            parts = dict(zip([name for name, _ in applied.inputs], reads.inputs, strict=True))
            repeats = applied.loop is not None
            operand_parts: list[Part] = [parts.get(name) for name, _ in call.inputs]
            return ["unknown" if repeats and isinstance(part, Share) else part for part in operand_parts]

        slots = propagate_backward(body, outputs, visit_op, visit_call, None, _join_parts, self._budget)
        return _Reads(slots[: len(body.inputs)], {name: slots[slot] for name, slot in body.weights}, calls)


def _content_visitor(body: Body) -> Callable[[Call, list[Content]], list[Content]]:
    def visit(call: Call, operands: list[Content]) -> list[Content]:
        op = OPS[call.type]
        present: list[Content] = [
            content for (_, operand), content in zip(call.inputs, operands, strict=True) if operand is not None
        ]
        unclear = any(isinstance(content, ChosenIndices) or content == "unclear" for content in present)
        if op.chooses is not None:
            results: list[Content] = ["computed"] * len(call.outputs)
            results[op.chooses] = _chosen_content(call, body)
            return results
        if unclear:
            moved = op.rearranges and len(present) == len(call.outputs) == 1
            moved_content: Content = present[0] if moved else "unclear"
            return [moved_content] * len(call.outputs)
        result: Content = "stored" if all(content == "stored" for content in present) else "computed"
        return [result] * len(call.outputs)

    return visit


def _chosen_content(call: Call, body: Body) -> Content:
    """Return the content of chosen indices, which are all different if one choice returns those of one token."""
    op = OPS[call.type]
    operand = call.inputs[0][1]
    result = call.outputs[op.chooses or 0]
    if not isinstance(operand, int) or result is None:
        return "unclear"
    shape = body.types[operand].shape
    axis = op.settings(call.attributes)["axis"]
    assert isinstance(axis, int)
    other_sizes = [size for i, size in enumerate(shape) if i != axis % len(shape)]
    count = _count_for_one_token(result.shape)
    return ChosenIndices(count) if _count_for_one_token(other_sizes) == 1 and isinstance(count, int) else "unclear"


def _count_for_one_token(shape: Sequence[Dim]) -> Expression | None:
    """Return the number of elements if every symbolic dimension is 1."""
    try:
        sizes = [substitute(size, dict.fromkeys(symbols(size), 1)) for size in shape]
    except (ArithmeticError, ValueError):
        return None
    return product(sizes) if all(isinstance(size, int) and size > 0 for size in sizes) else None


def _operand_parts(
    call: Call, operands: list[Content], results: list[Part], contents: Sequence[Content], body: Body
) -> list[Part]:
    """Return the part of each operand that an operation reads, from the parts of its results that are read."""
    op = OPS[call.type]
    indexed = _index_contents(op, operands)
    result = contents[call.first]

    def part(i: int) -> Part:
        if operands[i] != "stored":
            return "whole"
        indices = indexed.get(op.input(i).name)
        if indices is not None:
            return _selected_part(indices, call.inputs[i][1], body)
        if result != "stored":
            return "whole"
        return _operand_part(op, results)

    return [part(i) for i in range(len(call.inputs))]


def _index_contents(op: Op, operands: list[Content]) -> dict[str, Content]:
    """Return the contents of the indices into each input that an operation reads at indices."""
    # along an axis, each position of the other axes has its own indices
    by_axis = any(attribute.name == "axis" for attribute in op.attributes)
    return {
        name: "unclear" if by_axis and content not in ("stored", "computed") else content
        for entry, content in zip(op.inputs, operands, strict=False)
        for name in entry.indexes.split()
    }


def _selected_part(index: Content, operand: Operand, body: Body) -> Part:
    if index == "unclear":
        return "unknown"
    if not isinstance(index, ChosenIndices):
        return "rows"
    size = body.types[operand].shape[0] if isinstance(operand, int) else None
    return Share(index.number, size) if isinstance(size, int) and index.number <= size else "unknown"


def _operand_part(op: Op, results: list[Part]) -> Part:
    """Return the part of a parameter that is read by an operation on parameters alone."""
    if op.rearranges or op.casts or op.widens or op.trains:
        if len(set(results)) == 1:
            return results[0]
        shared = any(isinstance(result, Share) for result in results)
        return "unknown" if shared else reduce(_join_parts, results)
    joined = reduce(_join_parts, results)
    return "unknown" if isinstance(joined, Share) or joined == "unknown" else "whole"


def _join_parts(a: Part, b: Part) -> Part:
    """Return the union of two parts that are read; it is unknown for two choices, which may be equal or different."""
    if a is None or b is None:
        return a or b
    if "whole" in (a, b):
        return "whole"
    return "rows" if a == b == "rows" else "unknown"
