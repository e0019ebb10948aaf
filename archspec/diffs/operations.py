"""Differences between the operations of two models: the inputs of layers, and the computations of layers.

The values that the models compute decide whether anything differs (`value_numbers.py`). Differences are then described
block by block: the operands of its layers and blocks, as expressions of preceding ones, and its outputs. If this yields
no description of a difference, one change states that the operations differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from archspec.addresses import join, pattern_of
from archspec.bodies.fold import arguments
from archspec.diffs.expression_text import Wording, operation_text
from archspec.diffs.op_changes import OperationChange, OperationChanges, folded
from archspec.diffs.value_numbers import Atom, Number, Operation, Values
from archspec.ir import Body, Call, Leaf, Type, leaves, uncollected
from archspec.source import fail

MOST_COMPARED = 2_000_000
"""The limit on the operations of both models, with all definitions expanded."""


class Side(NamedTuple):
    """A model: its bodies with all optional inputs and with none; `home` is the address in it that the whole other
    model is compared with ("" unless there is a prefix).
    """

    body: Body
    bare: Body
    home: str


def compare(a: Side, b: Side) -> list[OperationChanges]:
    """Return the differences. There are none only if both models compute the same from equal inputs and equal tensors,
    with all optional inputs and with none. Raises ArchError for models with more than MOST_COMPARED operations.
    """
    if a.body.size + b.body.size > MOST_COMPARED:
        message = f"too many operations in these models ({a.body.size + b.body.size:,}): the limit is {MOST_COMPARED:,}"
        raise fail("budget", message, help="compare the models with fewer layers")
    comparison = _Comparison()
    with uncollected():
        found = comparison.models(a, b, a.body, b.body)
        bare = [] if (a.bare, b.bare) == (a.body, b.body) else comparison.models(a, b, a.bare, b.bare)
    reported = {change[:2] for change in found}
    found += [change._replace(what=_bare(change.what)) for change in bare if change[:2] not in reported]
    return folded(found)


def _bare(what: str) -> str:
    return f"{what}, without optional inputs" if what else "without optional inputs"


_Typed: TypeAlias = tuple[str, Type]


class _Step(NamedTuple):
    """One application of a layer or block: its operands, as values and as text."""

    address: str
    given: tuple[Number, ...]
    words: str


class _Listing(NamedTuple):
    """A block: its applications by label, the body of each k-th application of an address, the outputs, and the labels
    that read each label.
    """

    steps: dict[str, list[_Step]]
    calls: dict[tuple[str, int], Body]
    outputs: list[tuple[str, Number, str]]
    readers: dict[str, dict[str, None]]


class _Comparison:
    def __init__(self) -> None:
        self.values = Values()
        self._pairs: dict[tuple[Body, Body], list[OperationChange]] = {}

    # Models

    def models(self, a: Side, b: Side, ours: Body, theirs: Body) -> list[OperationChange]:
        """The differences between two models, with all optional inputs or with none."""
        values = self.values
        found = self._interface("input", ours.inputs, theirs.inputs)
        found += self._interface("output", _results(ours), _results(theirs))
        found += self._tables(a, b, ours, theirs)
        prefix_a, prefix_b = _prefix(b.home), _prefix(a.home)
        inputs = [[values.number(Atom("input", name)) for name, _ in body.inputs] for body in (ours, theirs)]
        whole_a = values.outputs(ours, inputs[0], prefix_a)
        whole_b = values.outputs(theirs, inputs[1], prefix_b)
        if whole_a == whole_b:
            return found
        inner_a, inner_b = _at(ours, a.home), _at(theirs, b.home)
        if inner_a is None or inner_b is None:  # the prefix affects names only
            found += self._blocks(ours, theirs, prefix_a, prefix_b, by_name=True)
        elif inner_a is ours and inner_b is theirs and ours.kind == theirs.kind == "block":
            found += self._blocks(ours, theirs, by_name=True)
        else:
            found += [_within(change, b.home) for change in self._pair(inner_a, inner_b)]
            found += self._around("removed", ours, a.home) if inner_a is not ours else []
            found += self._around("added", theirs, b.home) if inner_b is not theirs else []
        return found or [OperationChange("differs", "", "", "", "")]

    def _interface(self, kind: str, ours: Sequence[_Typed], theirs: Sequence[_Typed]) -> list[OperationChange]:
        """Compare the inputs or outputs of the models, by name."""
        before, after = ({name: _type_text(type) for name, type in side} for side in (ours, theirs))
        names = [*before, *(name for name in after if name not in before)]
        pairs = [(name, before.get(name, ""), after.get(name, "")) for name in names]
        found = [OperationChange(kind, "", name, old, new) for name, old, new in pairs if old != new]
        if not found and [*before] != [*after]:
            found.append(OperationChange(kind, "", "order", ", ".join(before), ", ".join(after)))
        return found

    def _tables(self, a: Side, b: Side, ours: Body, theirs: Body) -> list[OperationChange]:
        """Compare the constants and element types of common tensors."""
        assert ours.module is not None and theirs.module is not None
        before = {_prefix(b.home) + name: leaf for name, leaf in leaves(ours.module)}
        after = {_prefix(a.home) + name: leaf for name, leaf in leaves(theirs.module)}
        found: list[OperationChange] = []
        for name, leaf in before.items():
            other = after.get(name)
            if other is None or (
                leaf.weight.type.dtype == other.weight.type.dtype
                and self.values.table(leaf) == self.values.table(other)
            ):
                continue
            old, new = _holds(leaf), _holds(other)
            if old == new:
                old, new = self._inside([self.values.table(leaf)], [self.values.table(other)])
            found.append(OperationChange("table", name, "", old, new))
        return found

    def _around(self, kind: str, body: Body, home: str) -> list[OperationChange]:
        """Describe what a model contains around the component that is compared with the other model."""
        listing = self._listing(body, _starred(body, ""), "")
        found = [
            OperationChange(kind, address, "", *_sided(kind, steps[0].words))
            for address, steps in listing.steps.items()
            if address != home
        ]
        return found + [
            OperationChange("returns", "", name, *_sided(kind, words)) for name, _, words in listing.outputs
        ]

    # Blocks and layers

    def _pair(self, ours: Body, theirs: Body) -> list[OperationChange]:
        """Return the differences between two definitions; addresses are relative to them."""
        found = self._pairs.get((ours, theirs))
        if found is None:
            found = []
            if self.values.whole(ours) != self.values.whole(theirs):
                if ours.kind == "block" and theirs.kind == "block":
                    found = self._blocks(ours, theirs)
                else:
                    before, after = self._inside(self.values.whole(ours), self.values.whole(theirs))
                    found = [OperationChange("computes", "", "", before, after)]
                found = found or [OperationChange("differs", "", "", "", "")]
            self._pairs[ours, theirs] = found
        return found

    def _blocks(
        self, ours: Body, theirs: Body, prefix_a: str = "", prefix_b: str = "", *, by_name: bool = False
    ) -> list[OperationChange]:
        """Return the differences between two blocks. Their inputs correspond by position, or `by_name` for whole models
        and for blocks of which one has all inputs of the other and more.
        """
        before, after = ({name for name, _ in body.inputs} for body in (ours, theirs))
        by_name = by_name or before < after or after < before
        patterns = _starred(ours, prefix_a) | _starred(theirs, prefix_b)
        a = self._listing(ours, patterns, prefix_a, by_name=by_name)
        b = self._listing(theirs, patterns, prefix_b, by_name=by_name)
        found: list[OperationChange] = []
        for label, steps in a.steps.items():
            if label in b.steps:
                found += self._applications(label, a, b)
            else:
                found.append(OperationChange("removed", label, _times(len(steps)), steps[0].words, ""))
        returned = self._returned(a, b)
        if {label: len(steps) for label, steps in a.steps.items()} == {k: len(v) for k, v in b.steps.items()}:
            single_a = self._listing(ours, frozenset(), prefix_a, single=True, by_name=by_name)
            single_b = self._listing(theirs, frozenset(), prefix_b, single=True, by_name=by_name)
            found += self._rounds([*found, *returned], patterns, single_a, single_b)
        for key, body in a.calls.items():
            other = b.calls.get(key)
            if other is not None:
                found += [_within(change, key[0]) for change in self._pair(body, other)]
        found += self._others(a, b, patterns)
        for label, steps in b.steps.items():
            if label not in a.steps:
                found.append(OperationChange("added", label, _times(len(steps)), "", steps[0].words))
        return found + returned

    def _applications(self, label: str, a: _Listing, b: _Listing) -> list[OperationChange]:
        """Compare the operands of a layer or block, and its number of applications."""
        ours, theirs = a.steps[label], b.steps[label]
        found: list[OperationChange] = []
        before, after = ({step.given: step.words for step in steps} for steps in (ours, theirs))
        if before.keys() != after.keys():
            old = "; then ".join(dict.fromkeys(before.values()))
            new = "; then ".join(dict.fromkeys(after.values()))
            what = ""
            if old == new:
                what = f"in {old}"
                old, new = self._inside([n for key in before for n in key], [n for key in after for n in key])
            kind = "reads"
            if a.readers.get(label) != b.readers.get(label) and not what:
                kind, old, new = "moved", _between(old, label, a), _between(new, label, b)
            found.append(OperationChange(kind, label, what, old, new))
        if len(ours) != len(theirs):
            before, after = (Counter(s.address for s in steps) for steps in (ours, theirs))
            if before.keys() == after.keys():  # the same addresses; some are applied more often
                pairs = [(address, before[address], after[address]) for address in before]
            else:
                pairs = [(label, len(ours), len(theirs))]
            found += [OperationChange("times", address, "", _times(n), _times(m)) for address, n, m in pairs if n != m]
        return found

    def _rounds(
        self, reported: list[OperationChange], patterns: frozenset[str], a: _Listing, b: _Listing
    ) -> list[OperationChange]:
        """Compare the applications of single repetitions, if no change of the repeated component has been reported."""
        labels = {change.address for change in reported}
        found: list[OperationChange] = []
        for address in dict.fromkeys((*a.steps, *b.steps)):
            steps, others = a.steps.get(address, []), b.steps.get(address, [])
            if _label(address, patterns) in labels or [s.given for s in steps] == [s.given for s in others]:
                continue
            before, after = ("; then ".join(dict.fromkeys(s.words for s in side)) for side in (steps, others))
            if len(steps) != len(others):
                found.append(OperationChange("times", address, "", _times(len(steps)), _times(len(others))))
            elif before == after:
                before, after = "", "different applications of the same modules"
            if steps and others and before != after:
                found.append(OperationChange("reads", address, "", before, after))
        for (name, number, words), (_, other, new) in zip(a.outputs, b.outputs, strict=False):
            if number != other and words != new and "" not in labels:
                found.append(OperationChange("returns", "", name, words, new))
        return found

    def _others(self, a: _Listing, b: _Listing, patterns: frozenset[str]) -> list[OperationChange]:
        """Return additional repetitions in one model whose computation differs from those with the same label."""
        found: list[OperationChange] = []
        for kind, here, there in (("removed", a, b), ("added", b, a)):
            kinds: dict[str, set[tuple[Number, ...]]] = {}
            for key, body in here.calls.items():
                if key in there.calls:
                    kinds.setdefault(_label(key[0], patterns), set()).add(self.values.whole(body))
            for key, body in here.calls.items():
                address = key[0]
                label = _label(address, patterns)
                if key not in there.calls and self.values.whole(body) not in kinds.get(
                    label, {self.values.whole(body)}
                ):
                    text = self._summary(self.values.whole(body))
                    found.append(OperationChange(kind, address, "different from the others", *_sided(kind, text)))
        return found

    def _returned(self, a: _Listing, b: _Listing) -> list[OperationChange]:
        before = {name: (number, words) for name, number, words in a.outputs}
        after = {name: (number, words) for name, number, words in b.outputs}
        found: list[OperationChange] = []
        for name in [*before, *(name for name in after if name not in before)]:
            (number, old), (other, new) = before.get(name, (None, "")), after.get(name, (None, ""))
            if number == other and (name in before) == (name in after):
                continue
            what = name
            if old == new:
                what = f"{name}: in {old}" if name else f"in {old}"
                old, new = self._inside([number], [other])
            found.append(OperationChange("returns", "", what, old, new))
        return found

    # Descriptions

    def _inside(self, ours: Sequence[Number], theirs: Sequence[Number]) -> tuple[str, str]:
        """Return the operations that occur in only one of two computations, or that only their operands differ."""
        before, after = (Counter(map(self._operation, self.values.operations(side))) for side in (ours, theirs))
        if before == after:
            return "", "the same operations on different operands"
        old, new = before - after, after - before
        return ", ".join(_counted(old)), ", ".join(_counted(new))

    def _summary(self, numbers: Sequence[Number]) -> str:
        return ", ".join(_counted(Counter(map(self._operation, self.values.operations(numbers)))))

    def _operation(self, operation: Operation) -> str:
        return operation_text(operation, self.values)

    def _listing(
        self, body: Body, patterns: frozenset[str], prefix: str, *, single: bool = False, by_name: bool = False
    ) -> _Listing:
        """List the layers and blocks of a block with their operands; functions are expanded in values, not in text.

        Applications with one label have the same outputs, unless each is to be distinguished (`single`).
        """
        values = self.values
        steps: dict[str, list[_Step]] = {}
        calls: dict[tuple[str, int], Body] = {}
        times: Counter[str] = Counter()
        readers: dict[str, dict[str, None]] = {}
        wording = Wording(body, lambda address: _label(prefix + address, patterns))

        def applied(call: Call, given: list[Number]) -> list[Number]:
            assert call.body is not None
            if not call.address:
                return values.outputs(call.body, arguments(call, given), prefix)
            address = prefix + call.address
            label = _label(address, patterns)
            steps.setdefault(label, []).append(_Step(address, tuple(given), wording.given(call)))
            calls[address, times[address]] = call.body
            times[address] += 1
            for source in wording.sources(call):
                readers.setdefault(source, {})[label] = None
            turn = times[address] if single else 0
            return [values.number(Atom("output", (label, turn, i))) for i in range(len(call.outputs))]

        inputs = [values.number(Atom("input", name if by_name else i)) for i, (name, _) in enumerate(body.inputs)]
        results = values.fold(body, inputs, prefix, applied).outputs
        outputs = [
            (name or (str(i) if len(body.outputs) > 1 else ""), result, wording.operand(operand))
            for i, ((name, operand), result) in enumerate(zip(body.outputs, results, strict=True))
        ]
        for _, operand in body.outputs:
            for source in wording.behind(operand):
                readers.setdefault(source, {})[""] = None
        return _Listing(steps, calls, outputs, readers)


def _label(address: str, patterns: frozenset[str]) -> str:
    pattern = pattern_of(address)
    return pattern if pattern in patterns else address


def _starred(body: Body, prefix: str) -> frozenset[str]:
    """Return the address patterns that match more than one layer or block of a body."""
    addresses = {prefix + call.address for call in body.calls if call.address}
    found = Counter(pattern_of(address) for address in addresses)
    return frozenset(pattern for pattern, number in found.items() if number > 1)


def _at(body: Body, home: str) -> Body | None:
    """Return the block at an address of a model if it is applied once."""
    if not home:
        return body
    found = [call.body for call in body.calls if call.address == home]
    return found[0] if len(found) == 1 and found[0] is not None and found[0].kind == "block" else None


def _within(change: OperationChange, address: str) -> OperationChange:
    return change._replace(address=join(address, change.address))


def _results(body: Body) -> list[tuple[str, Type]]:
    present = [(name, type) for (name, _), type in zip(body.outputs, body.results, strict=True) if type is not None]
    return [(name or ("output" if len(present) == 1 else str(i)), type) for i, (name, type) in enumerate(present)]


def _type_text(type: Type) -> str:
    return f"{'' if type.dtype == 'real' else type.dtype + ' '}[{', '.join(map(str, type.shape))}]"


def _holds(leaf: Leaf) -> str:
    table = "a constant table" if leaf.weight.value is not None else "not a constant"
    return table if leaf.weight.type.dtype == "real" else f"{table} of {leaf.weight.type.dtype}"


def _prefix(home: str) -> str:
    return f"{home}." if home else ""


def _sided(kind: str, text: str) -> tuple[str, str]:
    return ("", text) if kind == "added" else (text, "")


def _between(words: str, label: str, listing: _Listing) -> str:
    """Describe the position of a layer or block: what it follows, and what reads it."""
    readers = listing.readers.get(label, {})
    return f"after {words}, before {', '.join(reader or 'the result' for reader in readers)}"


def _times(number: int) -> str:
    return f"{number:,} times" if number > 1 else "once" if number else "never"


def _counted(operations: Counter[str]) -> list[str]:
    return [text if number == 1 else f"{number} x {text}" for text, number in sorted(operations.items())]
