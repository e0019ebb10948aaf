"""Blocks as lists of what they apply: their layers and blocks, with operands as values and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple, cast

from archspec.analysis.diff.normal_forms import AppliedBody, Form
from archspec.analysis.diff.value_numbers import Atom, Number, Operation, Values
from archspec.core.addresses import address_pattern
from archspec.core.reports.text import literal
from archspec.ir.fold import arguments, passed_through_slot, present_outputs
from archspec.ir.module import Body, Call, Constant, Operand
from archspec.ir.ops import OPS, REQUIRED

# Expressions as text: `attention.output.dense + x`, `gelu(intermediate.dense)`.

MAX_DEPTH = 4
"""The limit on nested operations; deeper ones are `...`."""
MAX_OPERANDS = 5
"""The limit on the operands of one operation."""


class Wording:
    """Text of the operands of a body: layers and blocks by `label`, inputs by name."""

    def __init__(self, body: Body, label: Callable[[str], str]) -> None:
        self._body = body
        self._label = label
        self._tensors = {slot: name for name, slot in body.weights}
        self._made: dict[int, tuple[Call, int]] = {}
        self._passed: dict[int, int] = {}  # where a slot holds what another does
        for call in body.calls:
            slot = passed_through_slot(call)
            if slot is not None:
                self._passed[call.first] = self._passed.get(slot, slot)
            else:
                self._made |= {slot: (call, i) for i, slot in present_outputs(call)}

    def given(self, call: Call) -> str:
        """Format the operands of an application."""
        return ", ".join(self.operand(operand) for _, operand in call.inputs if operand is not None)

    def operand(self, operand: Operand, depth: int = 0) -> str:
        """Format an operand, expanded down to layers, blocks, inputs and tensors."""
        if operand is None:
            return "none"
        if isinstance(operand, Constant):
            return literal(operand.value)
        operand = self._passed.get(operand, operand)
        if operand in self._tensors:
            return f".{self._tensors[operand]}"
        if operand not in self._made:
            return self._body.inputs[operand][0]
        call, output = self._made[operand]
        end = ""
        if sum(type is not None for type in call.outputs) > 1:
            name = call.body.outputs[output][0] if call.body is not None else ""
            end = f".{name or output}"
        if call.address:
            return self._label(call.address) + end
        if depth == MAX_DEPTH:
            return "..."
        given = [o for _, o in call.inputs if o is not None]
        inner = [self.operand(o, depth + 1) for o in given[:MAX_OPERANDS]] + ["..."] * (len(given) > MAX_OPERANDS)
        if call.kind == "op":
            return _applied(call.type, settings(call.type, call.attributes), inner, depth) + end
        return f"{call.type}({', '.join(inner)}){end}"

    def sources(self, operands: Iterable[tuple[str, Operand]], depth: int = 0) -> Iterator[str]:
        """Yield the layers and blocks that operands come from, through at most DEEPEST operations."""
        for _, given in operands:
            operand = self._passed.get(given, given) if isinstance(given, int) else None
            if operand in self._made:
                call, _ = self._made[operand]
                if call.address:
                    yield self._label(call.address)
                elif depth < MAX_DEPTH:
                    yield from self.sources(call.inputs[:MAX_OPERANDS], depth + 1)


def operation_text(operation: Operation, values: Values) -> str:
    """Format an operation alone: its name, its attributes, and its constant operands; of a loop, its iterations."""
    if operation.type == "for":
        bounds = dict(operation.attributes)
        return f"for {bounds['first']}..{bounds['last']}"
    known = [values.known[number] for number in operation.operands if number is not None]
    constants = [plain(value.what) for value in known if isinstance(value, Atom) and value.origin == "constant"]
    symbol = OPS[operation.type].symbol
    if symbol and constants and len(known) == 2:
        return f"{symbol} {literal(constants[0])}"
    attributes = settings(operation.type, {name: plain(value) for name, value in operation.attributes})
    places = zip(OPS[operation.type].inputs, operation.operands, strict=False)
    absent = [f"no {place.name}" for place, number in places if number is None]
    attributes = ", ".join([attributes, *absent] if attributes else absent)
    name = f"{operation.type}({attributes})" if attributes else operation.type
    return f"{name}({', '.join(map(literal, constants))})" if constants else name


def settings(type: str, attributes: Mapping[str, object]) -> str:
    """Format the attributes of an operation that differ from the defaults."""
    defaults = {a.name: a.default for a in OPS[type].attributes}
    shown = {name: value for name, value in attributes.items() if value != defaults[name] or defaults[name] is REQUIRED}
    if len(shown) == 1 and next(iter(shown)) == OPS[type].attributes[0].name:
        return literal(next(iter(shown.values())))
    return ", ".join(f"{name} = {literal(value)}" for name, value in shown.items())


def plain(value: Hashable) -> object:
    """Invert `value_numbers.exact`."""
    if isinstance(value, tuple):
        kind, *rest = cast("tuple[Hashable, ...]", value)
        if kind == "list":
            return tuple(map(plain, rest))
        return rest[0] == "True" if kind == "bool" else float(str(rest[0]))
    return value


def _applied(type: str, attributes: str, operands: list[str], depth: int) -> str:
    """Format an operation on operands, with its operator if it has one."""
    symbol = OPS[type].symbol
    if symbol and len(operands) == 2:
        text = f"{operands[0]} {symbol} {operands[1]}"
        return f"({text})" if depth else text
    if symbol and len(operands) == 1:
        return f"{symbol} {operands[0]}"
    given = f"({', '.join(operands)})" if operands or not attributes else ""
    return f"{type}({attributes}){given}" if attributes else f"{type}{given}"


class Step(NamedTuple):
    """One application of a layer or block: its operands, as values and as text."""

    address: str
    given: tuple[Number, ...]
    words: str


class Listing(NamedTuple):
    """A block: its applications by label, the body of each k-th application of an address, the outputs by name, and the
    labels that read each label.
    """

    steps: dict[str, list[Step]]
    calls: dict[tuple[str, int], Body]
    outputs: dict[str, tuple[Number, str]]
    readers: dict[str, dict[str, None]]


def listing_of(
    values: Values, body: Body, patterns: frozenset[str], prefix: str, *, single: bool = False, by_name: bool = False
) -> Listing:
    """List the layers and blocks of a block with their operands; functions are expanded in values, not in text.

    Applications with one label have the same outputs, unless each is to be distinguished (`single`).
    """
    steps: dict[str, list[Step]] = {}
    calls: dict[tuple[str, int], Body] = {}
    times: Counter[str] = Counter()
    readers: dict[str, dict[str, None]] = {}
    wording = Wording(body, lambda address: label_of(prefix + address, patterns))

    def applied(call: Call, given: list[Number]) -> list[Number]:
        assert call.body is not None
        if not call.address or passed_through_slot(call) is not None:
            return values.outputs(call.body, arguments(call, given), prefix)
        address = prefix + call.address
        label = label_of(address, patterns)
        steps.setdefault(label, []).append(Step(address, tuple(given), wording.given(call)))
        calls[address, times[address]] = call.body
        times[address] += 1
        for source in wording.sources(call.inputs):
            readers.setdefault(source, {})[label] = None
        turn = times[address] if single else 0
        return [values.number(Atom("output", (label, turn, i))) for i in range(len(call.outputs))]

    inputs = [values.number(Atom("input", name if by_name else i)) for i, (name, _) in enumerate(body.inputs)]
    results = values.fold(body, inputs, prefix, applied).outputs
    outputs: dict[str, tuple[Number, str]] = {}
    for i, ((name, operand), result) in enumerate(zip(body.outputs, results, strict=True)):
        outputs[name or (str(i) if len(body.outputs) > 1 else "")] = result, wording.operand(operand)
    for source in wording.sources(body.outputs):
        readers.setdefault(source, {})[""] = None
    return Listing(steps, calls, outputs, readers)


def renumbered(listing: Listing, forms: AppliedBody | None, numbers: dict[Form, Number]) -> Listing:
    """Return a listing whose values have the first number that their normal form had."""
    if forms is None:
        return listing
    steps = {
        label: [
            step._replace(given=tuple(map(numbers.setdefault, application.given, step.given)))
            for step, application in zip(own, forms.steps[label], strict=True)
        ]
        for label, own in listing.steps.items()
    }
    outputs = {
        name: (numbers.setdefault(form, number), words)
        for (name, (number, words)), form in zip(listing.outputs.items(), forms.outputs, strict=True)
    }
    return listing._replace(steps=steps, outputs=outputs)


def agreeing(a: Listing, b: Listing) -> int:
    """Count the inputs of layers and blocks, and the outputs, that are equal in two listings."""
    steps = [pair for at in a.steps.keys() & b.steps.keys() for pair in zip(a.steps[at], b.steps[at], strict=False)]
    given = [one == other for ours, theirs in steps for one, other in zip(ours.given, theirs.given, strict=False)]
    returned = [a.outputs[name][0] == b.outputs[name][0] for name in a.outputs.keys() & b.outputs.keys()]
    return sum(given) + sum(returned)


def label_of(address: str, patterns: frozenset[str]) -> str:
    pattern = address_pattern(address)
    return pattern if pattern in patterns else address


def repeated_patterns(body: Body, prefix: str) -> frozenset[str]:
    """Return the address patterns that match more than one layer or block of a body."""
    addresses = {prefix + call.address for call in body.calls if call.address}
    found = Counter(address_pattern(address) for address in addresses)
    return frozenset(pattern for pattern, number in found.items() if number > 1)
