"""Blocks as lists of applied layers and blocks, with operands as values and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple, cast

from archspec.analysis.diff.normal_forms import AppliedBody, Form
from archspec.analysis.diff.value_numbers import Atom, Number, Operation, ValueNumbering
from archspec.core.addresses import address_pattern
from archspec.core.reports.text import literal
from archspec.ir.fold import arguments, passed_through_slot, present_outputs
from archspec.ir.module import Body, Call, Constant, Operand
from archspec.ir.ops import OPS, REQUIRED

# Expressions as text: `attention.output.dense + x`, `gelu(intermediate.dense)`.

MAX_DEPTH = 4
"""Maximum depth of nested operations; deeper operations are shown as `...`."""
MAX_OPERANDS = 5
"""Maximum number of operands of an operation; further operands are shown as `...`."""


class OperandFormatter:
    """Formatter of the operands in a body: layers and blocks by `label`, inputs by name."""

    def __init__(self, body: Body, label: Callable[[str], str]) -> None:
        self._body = body
        self._label = label
        self._tensors = {slot: name for name, slot in body.weights}
        self._producers: dict[int, tuple[Call, int]] = {}
        self._aliases: dict[int, int] = {}  # slots that have the value of another slot
        for call in body.calls:
            slot = passed_through_slot(call)
            if slot is not None:
                self._aliases[call.first] = self._aliases.get(slot, slot)
            else:
                self._producers |= {slot: (call, i) for i, slot in present_outputs(call)}

    def operands(self, call: Call) -> str:
        """Format the operands of an application."""
        return ", ".join(self.operand(operand) for _, operand in call.inputs if operand is not None)

    def operand(self, operand: Operand, depth: int = 0) -> str:
        """Format an operand, expanded down to layers, blocks, inputs and tensors."""
        if operand is None:
            return "none"
        if isinstance(operand, Constant):
            return literal(operand.value)
        operand = self._aliases.get(operand, operand)
        if operand in self._tensors:
            return f".{self._tensors[operand]}"
        if operand not in self._producers:
            return self._body.inputs[operand][0]
        call, output = self._producers[operand]
        suffix = ""
        if sum(type is not None for type in call.outputs) > 1:
            name = call.body.outputs[output][0] if call.body is not None else ""
            suffix = f".{name or output}"
        if call.address:
            return self._label(call.address) + suffix
        if depth == MAX_DEPTH:
            return "..."
        operands = [o for _, o in call.inputs if o is not None]
        texts = [self.operand(o, depth + 1) for o in operands[:MAX_OPERANDS]] + ["..."] * (len(operands) > MAX_OPERANDS)
        if call.kind == "op":
            return _format_application(call.type, format_attributes(call.type, call.attributes), texts, depth) + suffix
        return f"{call.type}({', '.join(texts)}){suffix}"

    def iter_sources(self, operands: Iterable[tuple[str, Operand]], depth: int = 0) -> Iterator[str]:
        """Yield the layers and blocks that compute the operands, through at most MAX_DEPTH operations."""
        for _, source in operands:
            operand = self._aliases.get(source, source) if isinstance(source, int) else None
            if operand in self._producers:
                call, _ = self._producers[operand]
                if call.address:
                    yield self._label(call.address)
                elif depth < MAX_DEPTH:
                    yield from self.iter_sources(call.inputs[:MAX_OPERANDS], depth + 1)


def format_operation(operation: Operation, values: ValueNumbering) -> str:
    """Format an operation without operands that are not constant: its name and attributes, or the range of a loop."""
    if operation.type == "for":
        bounds = dict(operation.attributes)
        return f"for {bounds['first']}..{bounds['last']}"
    operands = [values.entries[number] for number in operation.operands if number is not None]
    constants = [
        to_plain(value.identity) for value in operands if isinstance(value, Atom) and value.origin == "constant"
    ]
    symbol = OPS[operation.type].symbol
    if symbol and constants and len(operands) == 2:
        return f"{symbol} {literal(constants[0])}"
    attributes = format_attributes(operation.type, {name: to_plain(value) for name, value in operation.attributes})
    slots = zip(OPS[operation.type].inputs, operation.operands, strict=False)
    missing = [f"no {slot.name}" for slot, number in slots if number is None]
    attributes = ", ".join([attributes, *missing] if attributes else missing)
    name = f"{operation.type}({attributes})" if attributes else operation.type
    return f"{name}({', '.join(map(literal, constants))})" if constants else name


def format_attributes(type: str, attributes: Mapping[str, object]) -> str:
    """Format the attributes of an operation that differ from the defaults."""
    defaults = {a.name: a.default for a in OPS[type].attributes}
    attributes_shown = {
        name: value for name, value in attributes.items() if value != defaults[name] or defaults[name] is REQUIRED
    }
    if len(attributes_shown) == 1 and next(iter(attributes_shown)) == OPS[type].attributes[0].name:
        return literal(next(iter(attributes_shown.values())))
    return ", ".join(f"{name} = {literal(value)}" for name, value in attributes_shown.items())


def to_plain(value: Hashable) -> object:
    """Invert `value_numbers.to_key`."""
    if isinstance(value, tuple):
        kind, *items = cast("tuple[Hashable, ...]", value)
        if kind == "list":
            return tuple(map(to_plain, items))
        return items[0] == "True" if kind == "bool" else float(str(items[0]))
    return value


def _format_application(type: str, attributes: str, operands: list[str], depth: int) -> str:
    """Format an operation on operands, with its operator symbol if it has one."""
    symbol = OPS[type].symbol
    if symbol and len(operands) == 2:
        text = f"{operands[0]} {symbol} {operands[1]}"
        return f"({text})" if depth else text
    if symbol and len(operands) == 1:
        return f"{symbol} {operands[0]}"
    arguments = f"({', '.join(operands)})" if operands or not attributes else ""
    return f"{type}({attributes}){arguments}" if attributes else f"{type}{arguments}"


class Step(NamedTuple):
    """One application of a layer or block: its operands, as values and as text."""

    address: str
    operands: tuple[Number, ...]
    text: str


class Listing(NamedTuple):
    """A block: its applications by label, the body of each k-th application of an address, its outputs by name, and the
    readers of each label.
    """

    steps: dict[str, list[Step]]
    calls: dict[tuple[str, int], Body]
    outputs: dict[str, tuple[Number, str]]
    readers: dict[str, dict[str, None]]


def list_block(
    values: ValueNumbering,
    body: Body,
    patterns: frozenset[str],
    prefix: str,
    *,
    single: bool = False,
    by_name: bool = False,
) -> Listing:
    """List the layers and blocks of a block with their operands. Functions are expanded in values, not in text.

    Applications with one label have equal outputs, unless `single` distinguishes them.
    """
    steps: dict[str, list[Step]] = {}
    calls: dict[tuple[str, int], Body] = {}
    counts: Counter[str] = Counter()
    readers: dict[str, dict[str, None]] = {}
    formatter = OperandFormatter(body, lambda address: collapse_address(prefix + address, patterns))

    def apply(call: Call, operands: list[Number]) -> list[Number]:
        assert call.body is not None
        if not call.address or passed_through_slot(call) is not None:
            return values.number_outputs(call.body, arguments(call, operands), prefix)
        address = prefix + call.address
        label = collapse_address(address, patterns)
        steps.setdefault(label, []).append(Step(address, tuple(operands), formatter.operands(call)))
        calls[address, counts[address]] = call.body
        counts[address] += 1
        for source in formatter.iter_sources(call.inputs):
            readers.setdefault(source, {})[label] = None
        occurrence = counts[address] if single else 0
        return [values.number(Atom("output", (label, occurrence, i))) for i in range(len(call.outputs))]

    inputs = [values.number(Atom("input", name if by_name else i)) for i, (name, _) in enumerate(body.inputs)]
    results = values.propagate(body, inputs, prefix, apply).outputs
    outputs: dict[str, tuple[Number, str]] = {}
    for i, ((name, operand), result) in enumerate(zip(body.outputs, results, strict=True)):
        outputs[name or (str(i) if len(body.outputs) > 1 else "")] = result, formatter.operand(operand)
    for source in formatter.iter_sources(body.outputs):
        readers.setdefault(source, {})[""] = None
    return Listing(steps, calls, outputs, readers)


def unify_numbers(listing: Listing, forms: AppliedBody | None, numbers: dict[Form, Number]) -> Listing:
    """Return a listing in which values with equal normal forms have one number, the first in `numbers`."""
    if forms is None:
        return listing
    steps = {
        label: [
            step._replace(operands=tuple(map(numbers.setdefault, application.operands, step.operands)))
            for step, application in zip(label_steps, forms.steps[label], strict=True)
        ]
        for label, label_steps in listing.steps.items()
    }
    outputs = {
        name: (numbers.setdefault(form, number), text)
        for (name, (number, text)), form in zip(listing.outputs.items(), forms.outputs, strict=True)
    }
    return listing._replace(steps=steps, outputs=outputs)


def count_equal(a: Listing, b: Listing) -> int:
    """Count the inputs of layers and blocks, and the outputs, that are equal in two listings."""
    steps = [
        pair for label in a.steps.keys() & b.steps.keys() for pair in zip(a.steps[label], b.steps[label], strict=False)
    ]
    equal_operands = [
        left == right for ours, theirs in steps for left, right in zip(ours.operands, theirs.operands, strict=False)
    ]
    equal_outputs = [a.outputs[name][0] == b.outputs[name][0] for name in a.outputs.keys() & b.outputs.keys()]
    return sum(equal_operands) + sum(equal_outputs)


def collapse_address(address: str, patterns: frozenset[str]) -> str:
    """Return the pattern of an address if it is one of `patterns`, else the address."""
    pattern = address_pattern(address)
    return pattern if pattern in patterns else address


def find_repeated_patterns(body: Body, prefix: str) -> frozenset[str]:
    """Return the address patterns that match more than one layer or block of a body."""
    addresses = {prefix + call.address for call in body.calls if call.address}
    counts = Counter(address_pattern(address) for address in addresses)
    return frozenset(pattern for pattern, number in counts.items() if number > 1)
