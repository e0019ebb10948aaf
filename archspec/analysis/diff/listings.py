"""Blocks as lists of what they apply: their layers and blocks, with operands as values and as text."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from archspec.analysis.diff.expression_text import Wording
from archspec.analysis.diff.normal_forms import AppliedBody, Form
from archspec.analysis.diff.value_numbers import Atom, Number, Values
from archspec.core.addresses import address_pattern
from archspec.ir.evaluation import passed_through_slot
from archspec.ir.fold import arguments
from archspec.ir.module import Body, Call


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
