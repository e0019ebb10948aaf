"""Differences between the operations of two models: the inputs of layers, and the computations of layers.

The values that the models compute decide whether anything differs (`value_numbers.py`), and where they do, their normal
forms (`normal_forms.py`). Differences are then described block by block: the operands of its layers and blocks, as
expressions of preceding ones, and its outputs. If this yields no description of a difference, one change states that
the operations differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from archspec.analysis.diff.listings import (
    Listing,
    agreeing,
    label_of,
    listing_of,
    operation_text,
    renumbered,
    repeated_patterns,
)
from archspec.analysis.diff.normal_forms import Form, Forms
from archspec.analysis.diff.value_numbers import Atom, Number, Values
from archspec.core.addresses import join
from archspec.core.addresses.repeats import NamePattern, collapse_names
from archspec.core.diagnostics import make_error
from archspec.ir.module import Body, LocatedTensor, Type, gc_paused, iter_tensors
from archspec.ir.normal.deep_stack import run_with_deep_stack

# Descriptions of differences between computations: at one address, and collapsed over numbers.


class OperationChange(NamedTuple):
    """A change of the computation at `address`, that of a layer or block ("" for the model).

    `kind` is "reads" (its inputs differ), "moved" (the readers of its outputs differ too), "computes" (the computation
    of a layer differs), "returns" (the output `what` of a block differs), "times" (the number of applications),
    "added", "removed", "input" or "output" (of the model), "table" (the values of a constant tensor), or "differs" (no
    description was found).
    """

    kind: str
    address: str
    what: str
    before: str
    after: str


class OperationChanges(NamedTuple):
    """One change at all addresses of `fold`; the other fields are those of OperationChange."""

    kind: str
    fold: NamePattern
    what: str
    before: str
    after: str


def folded(changes: Sequence[OperationChange]) -> list[OperationChanges]:
    """Combine changes that differ only in the numbers in their addresses."""
    described = ((c.address, (c.kind, c.what, c.before, c.after)) for c in changes)
    return [OperationChanges(kind, names, *words) for names, (kind, *words) in collapse_names(described)]


MAX_COMPARED_OPERATIONS = 2_000_000
"""The limit on the operations of both models, with all definitions expanded."""


class Side(NamedTuple):
    """A model: its bodies with all optional inputs and with none; `home` is the address in it that the whole other
    model is compared with ("" unless there is a prefix).
    """

    body: Body
    bare: Body
    home: str


class ModelDifferences(NamedTuple):
    """The differences between two models.

    `unified` is whether operations that are written differently are equal by normal form, up to rounding. `stopped` is
    whether some could not be compared so.
    """

    changes: list[OperationChanges]
    unified: bool
    stopped: bool


def compare(a: Side, b: Side) -> ModelDifferences:
    """Return the differences. There are none only if both models compute the same from equal inputs and equal tensors,
    with all optional inputs and with none. Raises ArchError for models with more than MAX_COMPARED_OPERATIONS
    operations.
    """
    size = a.body.size + b.body.size
    if size > MAX_COMPARED_OPERATIONS:
        message = f"too many operations in these models ({size:,}): the limit is {MAX_COMPARED_OPERATIONS:,}"
        raise make_error("budget", message, help="compare the models with fewer layers")
    comparison = _Comparison()

    def changes() -> list[OperationChange]:
        found = comparison.models(a, b)
        if (a.bare, b.bare) != (a.body, b.body):
            reported = {change[:2] for change in found}
            bare = comparison.models(a._replace(body=a.bare), b._replace(body=b.bare))
            found += [
                change._replace(what=", ".join(filter(None, (change.what, "without optional inputs"))))
                for change in bare
                if change[:2] not in reported
            ]
        return found

    with gc_paused():
        found = run_with_deep_stack(changes)
    return ModelDifferences(folded(found), comparison.forms.unified, comparison.forms.stopped)


class _Comparison:
    def __init__(self) -> None:
        self.values = Values()
        self.forms = Forms(self.values)
        self._pairs: dict[tuple[Body, Body], list[OperationChange]] = {}

    # Models

    def models(self, a: Side, b: Side) -> list[OperationChange]:
        """Return the differences between two models."""
        ours, theirs = a.body, b.body
        prefix_a, prefix_b = _prefix(b.home), _prefix(a.home)
        found = _interface("input", ours.inputs, theirs.inputs)
        found += _interface("output", _results(ours), _results(theirs))
        found += self._tables(ours, theirs, prefix_a, prefix_b)
        if self._computed(ours, prefix_a) == self._computed(theirs, prefix_b):
            return found
        if self.forms.equal_models(ours, theirs, (prefix_a, prefix_b)):
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
        return found or [_UNDESCRIBED]

    def _computed(self, body: Body, prefix: str) -> list[Number]:
        """Return the outputs of a model, as values of its inputs by name."""
        inputs = [self.values.number(Atom("input", name)) for name, _ in body.inputs]
        return self.values.outputs(body, inputs, prefix)

    def _tables(self, ours: Body, theirs: Body, prefix_a: str, prefix_b: str) -> list[OperationChange]:
        """Compare the constants and element types of common tensors."""
        assert ours.module is not None and theirs.module is not None
        after = dict(iter_tensors(theirs.module, prefix_b))
        found: list[OperationChange] = []
        for name, leaf in iter_tensors(ours.module, prefix_a):
            if name in after:
                other = after[name]
                table, new_table = self.values.table(leaf), self.values.table(other)
                if leaf.weight.type.dtype != other.weight.type.dtype or (
                    table != new_table and not self.forms.equal_tables(leaf, other)
                ):
                    old, new = _holds(leaf), _holds(other)
                    if old == new:
                        old, new = self._inside([table], [new_table])
                    found.append(OperationChange("table", name, "", old, new))
        return found

    def _around(self, kind: str, body: Body, home: str) -> list[OperationChange]:
        """Describe what a model contains around the component that is compared with the other model."""
        listing = listing_of(self.values, body, repeated_patterns(body, ""), "")
        steps = [(address, steps[0].words) for address, steps in listing.steps.items() if address != home]
        found = [_one_sided(kind, address, "", words) for address, words in steps]
        returned = [_one_sided(kind, "", name, words) for name, (_, words) in listing.outputs.items()]
        return found + [change._replace(kind="returns") for change in returned]

    # Blocks and layers

    def _pair(self, ours: Body, theirs: Body) -> list[OperationChange]:
        """Return the differences between two definitions; addresses are relative to them."""
        found = self._pairs.get((ours, theirs))
        if found is None:
            found = []
            if not self.forms.equal(ours, theirs):
                if ours.kind == "block" and theirs.kind == "block":
                    found = self._blocks(ours, theirs)
                else:
                    before, after = self._inside(self.values.whole(ours), self.values.whole(theirs))
                    found = [OperationChange("computes", "", "", before, after)]
                found = found or [_UNDESCRIBED]
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
        patterns = repeated_patterns(ours, prefix_a) | repeated_patterns(theirs, prefix_b)
        a, b = self._listings((ours, theirs), patterns, (prefix_a, prefix_b), by_name=by_name)
        found: list[OperationChange] = []
        for label, steps in a.steps.items():
            if label in b.steps:
                found += self._applications(label, a, b)
            else:
                found.append(_one_sided("removed", label, _times(len(steps)), steps[0].words))
        returned = self._returned(a, b)
        if {label: len(steps) for label, steps in a.steps.items()} == {k: len(v) for k, v in b.steps.items()}:
            single = self._listings((ours, theirs), frozenset(), (prefix_a, prefix_b), single=True, by_name=by_name)
            found += self._rounds({change.address for change in (*found, *returned)}, patterns, *single)
        for key, body in a.calls.items():
            if key in b.calls:
                found += [_within(change, key[0]) for change in self._pair(body, b.calls[key])]
        found += [*self._others("removed", a, b, patterns), *self._others("added", b, a, patterns)]
        for label, steps in b.steps.items():
            if label not in a.steps:
                found.append(_one_sided("added", label, _times(len(steps)), steps[0].words))
        return found + returned

    def _applications(self, label: str, a: Listing, b: Listing) -> list[OperationChange]:
        """Compare the operands of a layer or block, and its number of applications."""
        ours, theirs = a.steps[label], b.steps[label]
        found: list[OperationChange] = []
        before, after = ({step.given: step.words for step in steps} for steps in (ours, theirs))
        if before.keys() != after.keys():
            kind, what, old, new = "reads", "", _joined(before.values()), _joined(after.values())
            if old == new:
                what = f"in {old}"
                old, new = self._inside([n for key in before for n in key], [n for key in after for n in key])
            elif a.readers.get(label) != b.readers.get(label):
                kind, old, new = "moved", _between(old, label, a), _between(new, label, b)
            found.append(OperationChange(kind, label, what, old, new))
        if len(ours) != len(theirs):
            times, others = (Counter(step.address for step in steps) for steps in (ours, theirs))
            if times.keys() != others.keys():  # otherwise some of the same addresses are applied more often
                times, others = Counter({label: len(ours)}), Counter({label: len(theirs)})
            found += [
                _count_change(address, times[address], others[address]) for address in times - others | others - times
            ]
        return found

    def _rounds(self, reported: set[str], patterns: frozenset[str], a: Listing, b: Listing) -> list[OperationChange]:
        """Compare the applications of single repetitions, unless a change of the component has been `reported`."""
        found: list[OperationChange] = []
        for address in dict.fromkeys((*a.steps, *b.steps)):
            steps, others = a.steps.get(address, []), b.steps.get(address, [])
            if label_of(address, patterns) in reported or [s.given for s in steps] == [s.given for s in others]:
                continue
            before, after = (_joined(step.words for step in side) for side in (steps, others))
            if len(steps) != len(others):
                found.append(_count_change(address, len(steps), len(others)))
            elif before == after:
                before, after = "", "different applications of the same modules"
            if steps and others and before != after:
                found.append(OperationChange("reads", address, "", before, after))
        for name, (number, old) in a.outputs.items():
            other, new = b.outputs.get(name, (number, old))
            if number != other and old != new and "" not in reported:
                found.append(OperationChange("returns", "", name, old, new))
        return found

    def _others(self, kind: str, here: Listing, there: Listing, patterns: frozenset[str]) -> Iterator[OperationChange]:
        """Yield additional repetitions in one model whose computation differs from those with the same label."""
        known: dict[str, set[tuple[Number, ...]]] = {}
        for key, body in here.calls.items():
            if key in there.calls:
                known.setdefault(label_of(key[0], patterns), set()).add(self.values.whole(body))
        for key, body in here.calls.items():
            whole, label = self.values.whole(body), label_of(key[0], patterns)
            if key not in there.calls and label in known and whole not in known[label]:
                yield _one_sided(kind, key[0], "different from the others", _counted(self._operations(whole)))

    def _returned(self, a: Listing, b: Listing) -> list[OperationChange]:
        found: list[OperationChange] = []
        for name in dict.fromkeys((*a.outputs, *b.outputs)):
            (number, old), (other, new) = a.outputs.get(name, (None, "")), b.outputs.get(name, (None, ""))
            if number != other or (name in a.outputs) != (name in b.outputs):
                what = name
                if old == new:
                    what = f"{name}: in {old}" if name else f"in {old}"
                    old, new = self._inside([number], [other])
                found.append(OperationChange("returns", "", what, old, new))
        return found

    # Descriptions

    def _inside(self, ours: Sequence[Number], theirs: Sequence[Number]) -> tuple[str, str]:
        """Return the operations that occur in only one of two computations, or that only their operands differ."""
        before, after = self._operations(ours), self._operations(theirs)
        if before == after:
            return "", "the same operations on different operands"
        return _counted(before - after), _counted(after - before)

    def _operations(self, numbers: Sequence[Number]) -> Counter[str]:
        return Counter(operation_text(operation, self.values) for operation in self.values.operations(numbers))

    def _listings(
        self,
        bodies: tuple[Body, Body],
        patterns: frozenset[str],
        prefixes: tuple[str, str],
        *,
        single: bool = False,
        by_name: bool,
    ) -> tuple[Listing, Listing]:
        """List two blocks. Values with equal normal forms have one number."""
        a, b = [
            listing_of(self.values, body, patterns, prefix, single=single, by_name=by_name)
            for body, prefix in zip(bodies, prefixes, strict=True)
        ]
        forms = [
            self.forms.applied(body, prefix, lambda at: label_of(at, patterns), single=single, by_name=by_name)
            for body, prefix in zip(bodies, prefixes, strict=True)
        ]
        numbers: dict[Form, Number] = {}
        after = renumbered(a, forms[0], numbers), renumbered(b, forms[1], numbers)
        if single and agreeing(*after) > agreeing(a, b):
            self.forms.unified = True
        return after


_UNDESCRIBED = OperationChange("differs", "", "", "", "")
"""A difference without a description."""


def _interface(
    kind: str, ours: Sequence[tuple[str, Type]], theirs: Sequence[tuple[str, Type]]
) -> list[OperationChange]:
    """Compare the inputs or outputs of two models, by name."""
    before, after = ({name: _type_text(type) for name, type in side} for side in (ours, theirs))
    pairs = [(name, before.get(name, ""), after.get(name, "")) for name in dict.fromkeys((*before, *after))]
    found = [OperationChange(kind, "", name, old, new) for name, old, new in pairs if old != new]
    if not found and [*before] != [*after]:
        found.append(OperationChange(kind, "", "order", ", ".join(before), ", ".join(after)))
    return found


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


def _holds(leaf: LocatedTensor) -> str:
    table = "a constant table" if leaf.weight.value is not None else "not a constant"
    return table if leaf.weight.type.dtype == "real" else f"{table} of {leaf.weight.type.dtype}"


def _prefix(home: str) -> str:
    return f"{home}." if home else ""


def _one_sided(kind: str, address: str, what: str, text: str) -> OperationChange:
    return OperationChange(kind, address, what, *(("", text) if kind == "added" else (text, "")))


def _count_change(address: str, before: int, after: int) -> OperationChange:
    return OperationChange("times", address, "", _times(before), _times(after))


def _between(words: str, label: str, listing: Listing) -> str:
    """Describe the position of a layer or block: what it follows, and what reads it."""
    readers = listing.readers.get(label, {})
    return f"after {words}, before {', '.join(reader or 'the result' for reader in readers)}"


def _times(number: int) -> str:
    return f"{number:,} times" if number > 1 else "once" if number else "never"


def _joined(words: Iterable[str]) -> str:
    return "; then ".join(dict.fromkeys(words))


def _counted(operations: Counter[str]) -> str:
    return ", ".join(text if number == 1 else f"{number} x {text}" for text, number in sorted(operations.items()))
