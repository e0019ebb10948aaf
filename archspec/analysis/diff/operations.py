"""Differences between the operations of two models: the inputs of layers, and the computations of layers.

Models are compared by value numbers (`value_numbers.py`) and, where these differ, by normal forms (`normal_forms.py`).
Differences are then described block by block: the operands of layers and blocks, as expressions of preceding layers,
and the outputs. If this describes no difference, one change states that the operations differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from archspec.analysis.diff.listings import (
    Listing,
    collapse_address,
    count_equal,
    find_repeated_patterns,
    format_operation,
    list_block,
    unify_numbers,
)
from archspec.analysis.diff.normal_forms import Form, NormalForms
from archspec.analysis.diff.value_numbers import Atom, Number, ValueNumbering
from archspec.core.addresses import join
from archspec.core.addresses.repeats import NamePattern, collapse_names
from archspec.core.diagnostics import make_error
from archspec.ir.module import Body, LocatedTensor, Type, gc_paused, iter_tensors
from archspec.ir.normal.deep_stack import run_with_deep_stack

# Descriptions of differences between computations: at one address, and collapsed over numbers.


class OperationChange(NamedTuple):
    """A change of the computation at `address`, the address of a layer or block ("" for the model).

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
    """One change at all addresses of `fold`, with the further fields of OperationChange."""

    kind: str
    fold: NamePattern
    what: str
    before: str
    after: str


def collapse_operation_changes(changes: Sequence[OperationChange]) -> list[OperationChanges]:
    """Combine changes that differ only in the numbers in their addresses."""
    described = ((c.address, (c.kind, c.what, c.before, c.after)) for c in changes)
    return [OperationChanges(kind, names, *words) for names, (kind, *words) in collapse_names(described)]


MAX_COMPARED_OPERATIONS = 2_000_000
"""Maximum number of operations of both models, with all definitions expanded."""


class Side(NamedTuple):
    """A model: its bodies with all optional inputs and with none. `home` is the address of the component that is
    compared with the full other model ("" unless there is a prefix).
    """

    body: Body
    bare: Body
    home: str


class ModelDifferences(NamedTuple):
    """The differences between two models.

    `unified` is whether differently written operations have equal normal forms, up to rounding. `stopped` is whether a
    limit prevented the comparison of normal forms.
    """

    changes: list[OperationChanges]
    unified: bool
    stopped: bool


def compare_operations(a: Side, b: Side) -> ModelDifferences:
    """Return the differences between two models.

    There are none only if both compute equal outputs from equal inputs and tensors, with all optional inputs and with
    none. Raises ArchError for models with more than MAX_COMPARED_OPERATIONS operations.
    """
    _check_size(a.body, b.body)
    comparison = _Comparison()

    def find_changes() -> list[OperationChange]:
        changes = comparison.compare_models(a, b)
        if (a.bare, b.bare) != (a.body, b.body):
            reported = {change[:2] for change in changes}
            changes_without_optional = comparison.compare_models(a._replace(body=a.bare), b._replace(body=b.bare))
            changes += [
                change._replace(what=", ".join(filter(None, (change.what, "without optional inputs"))))
                for change in changes_without_optional
                if change[:2] not in reported
            ]
        return changes

    with gc_paused():
        changes = run_with_deep_stack(find_changes)
    return ModelDifferences(collapse_operation_changes(changes), comparison.forms.unified, comparison.forms.stopped)


def compare_definitions(ours: Body, theirs: Body) -> list[OperationChange]:
    """Return the differences between two definitions, with addresses relative to them.

    Raises ArchError for definitions with more than MAX_COMPARED_OPERATIONS operations.
    """
    _check_size(ours, theirs)
    with gc_paused():
        return run_with_deep_stack(lambda: _Comparison().compare_definitions(ours, theirs))


def _check_size(ours: Body, theirs: Body) -> None:
    size = ours.size + theirs.size
    if size > MAX_COMPARED_OPERATIONS:
        message = f"too many operations in these models ({size:,}): the limit is {MAX_COMPARED_OPERATIONS:,}"
        raise make_error("budget", message, help="compare the models with fewer layers")


class _Comparison:
    def __init__(self) -> None:
        self.values = ValueNumbering()
        self.forms = NormalForms(self.values)
        self._pairs: dict[tuple[Body, Body], list[OperationChange]] = {}

    # Models

    def compare_models(self, a: Side, b: Side) -> list[OperationChange]:
        """Return the differences between two models."""
        ours, theirs = a.body, b.body
        prefix_a, prefix_b = _as_prefix(b.home), _as_prefix(a.home)
        changes = _compare_interface("input", ours.inputs, theirs.inputs)
        changes += _compare_interface("output", _named_results(ours), _named_results(theirs))
        changes += self._compare_constants(ours, theirs, prefix_a, prefix_b)
        if self._model_outputs(ours, prefix_a) == self._model_outputs(theirs, prefix_b):
            return changes
        if self.forms.are_equal_models(ours, theirs, (prefix_a, prefix_b)):
            return changes
        block_a, block_b = _find_block(ours, a.home), _find_block(theirs, b.home)
        if block_a is None or block_b is None:  # the prefix affects names only
            changes += self._compare_blocks(ours, theirs, prefix_a, prefix_b, by_name=True)
        elif block_a is ours and block_b is theirs and ours.kind == theirs.kind == "block":
            changes += self._compare_blocks(ours, theirs, by_name=True)
        else:
            changes += [_prefix_address(change, b.home) for change in self.compare_definitions(block_a, block_b)]
            changes += self._describe_enclosing("removed", ours, a.home) if block_a is not ours else []
            changes += self._describe_enclosing("added", theirs, b.home) if block_b is not theirs else []
        return changes or [_UNDESCRIBED]

    def _model_outputs(self, body: Body, prefix: str) -> list[Number]:
        """Return the outputs of a model as values of its inputs, which are identified by name."""
        inputs = [self.values.number(Atom("input", name)) for name, _ in body.inputs]
        return self.values.number_outputs(body, inputs, prefix)

    def _compare_constants(self, ours: Body, theirs: Body, prefix_a: str, prefix_b: str) -> list[OperationChange]:
        """Compare the constants and element types of common tensors."""
        assert ours.module is not None and theirs.module is not None
        new_tensors = dict(iter_tensors(theirs.module, prefix_b))
        changes: list[OperationChange] = []
        for name, leaf in iter_tensors(ours.module, prefix_a):
            if name in new_tensors:
                new_leaf = new_tensors[name]
                table, new_table = self.values.number_constant(leaf), self.values.number_constant(new_leaf)
                if leaf.weight.type.dtype != new_leaf.weight.type.dtype or (
                    table != new_table and not self.forms.are_equal_constants(leaf, new_leaf)
                ):
                    old, new = _describe_constant(leaf), _describe_constant(new_leaf)
                    if old == new:
                        old, new = self._describe_computations([table], [new_table])
                    changes.append(OperationChange("table", name, "", old, new))
        return changes

    def _describe_enclosing(self, kind: str, body: Body, home: str) -> list[OperationChange]:
        """Describe the parts of a model outside the component that is compared with the other model."""
        listing = list_block(self.values, body, find_repeated_patterns(body, ""), "")
        steps = [(address, steps[0].text) for address, steps in listing.steps.items() if address != home]
        changes = [_one_sided_change(kind, address, "", text) for address, text in steps]
        returned = [_one_sided_change(kind, "", name, text) for name, (_, text) in listing.outputs.items()]
        return changes + [change._replace(kind="returns") for change in returned]

    # Blocks and layers

    def compare_definitions(self, ours: Body, theirs: Body) -> list[OperationChange]:
        """Return the differences between two definitions, with addresses relative to them."""
        changes = self._pairs.get((ours, theirs))
        if changes is None:
            changes = []
            if not self.forms.are_equal(ours, theirs):
                if ours.kind == "block" and theirs.kind == "block":
                    changes = self._compare_blocks(ours, theirs)
                else:
                    before, after = self._describe_computations(
                        self.values.number_body(ours), self.values.number_body(theirs)
                    )
                    changes = [OperationChange("computes", "", "", before, after)]
                changes = changes or [_UNDESCRIBED]
            self._pairs[ours, theirs] = changes
        return changes

    def _compare_blocks(
        self, ours: Body, theirs: Body, prefix_a: str = "", prefix_b: str = "", *, by_name: bool = False
    ) -> list[OperationChange]:
        """Return the differences between two blocks. Their inputs correspond by position, or `by_name` for models and
        for blocks of which one has all inputs of the other and more.
        """
        names_a, names_b = ({name for name, _ in body.inputs} for body in (ours, theirs))
        by_name = by_name or names_a < names_b or names_b < names_a
        patterns = find_repeated_patterns(ours, prefix_a) | find_repeated_patterns(theirs, prefix_b)
        a, b = self._list_blocks((ours, theirs), patterns, (prefix_a, prefix_b), by_name=by_name)
        changes: list[OperationChange] = []
        for label, steps in a.steps.items():
            if label in b.steps:
                changes += self._compare_applications(label, a, b)
            else:
                changes.append(_one_sided_change("removed", label, _format_times(len(steps)), steps[0].text))
        output_changes = self._compare_outputs(a, b)
        if {label: len(steps) for label, steps in a.steps.items()} == {k: len(v) for k, v in b.steps.items()}:
            single = self._list_blocks((ours, theirs), frozenset(), (prefix_a, prefix_b), single=True, by_name=by_name)
            changes += self._compare_iterations(
                {change.address for change in (*changes, *output_changes)}, patterns, *single
            )
        for key, body in a.calls.items():
            if key in b.calls:
                changes += [_prefix_address(change, key[0]) for change in self.compare_definitions(body, b.calls[key])]
        changes += [
            *self._iter_deviating_repetitions("removed", a, b, patterns),
            *self._iter_deviating_repetitions("added", b, a, patterns),
        ]
        for label, steps in b.steps.items():
            if label not in a.steps:
                changes.append(_one_sided_change("added", label, _format_times(len(steps)), steps[0].text))
        return changes + output_changes

    def _compare_applications(self, label: str, a: Listing, b: Listing) -> list[OperationChange]:
        """Compare the operands of a layer or block, and its number of applications."""
        ours, theirs = a.steps[label], b.steps[label]
        changes: list[OperationChange] = []
        before, after = ({step.operands: step.text for step in steps} for steps in (ours, theirs))
        if before.keys() != after.keys():
            kind, what, old, new = "reads", "", _join_texts(before.values()), _join_texts(after.values())
            if old == new:
                what = f"in {old}"
                old, new = self._describe_computations(
                    [n for key in before for n in key], [n for key in after for n in key]
                )
            elif a.readers.get(label) != b.readers.get(label):
                kind, old, new = "moved", _describe_position(old, label, a), _describe_position(new, label, b)
            changes.append(OperationChange(kind, label, what, old, new))
        if len(ours) != len(theirs):
            old_times, new_times = (Counter(step.address for step in steps) for steps in (ours, theirs))
            if old_times.keys() != new_times.keys():  # otherwise an address is applied more often
                old_times, new_times = Counter({label: len(ours)}), Counter({label: len(theirs)})
            changes += [
                _count_change(address, old_times[address], new_times[address])
                for address in old_times - new_times | new_times - old_times
            ]
        return changes

    def _compare_iterations(
        self, reported: set[str], patterns: frozenset[str], a: Listing, b: Listing
    ) -> list[OperationChange]:
        """Compare the applications of single repetitions, except for components in `reported`."""
        changes: list[OperationChange] = []
        for address in dict.fromkeys((*a.steps, *b.steps)):
            old_steps, new_steps = a.steps.get(address, []), b.steps.get(address, [])
            if collapse_address(address, patterns) in reported or [s.operands for s in old_steps] == [
                s.operands for s in new_steps
            ]:
                continue
            before, after = (_join_texts(step.text for step in side) for side in (old_steps, new_steps))
            if len(old_steps) != len(new_steps):
                changes.append(_count_change(address, len(old_steps), len(new_steps)))
            elif before == after:
                before, after = "", "different applications of the same modules"
            if old_steps and new_steps and before != after:
                changes.append(OperationChange("reads", address, "", before, after))
        for name, (old_number, old) in a.outputs.items():
            new_number, new = b.outputs.get(name, (old_number, old))
            if old_number != new_number and old != new and "" not in reported:
                changes.append(OperationChange("returns", "", name, old, new))
        return changes

    def _iter_deviating_repetitions(
        self, kind: str, listing: Listing, other_listing: Listing, patterns: frozenset[str]
    ) -> Iterator[OperationChange]:
        """Yield additional repetitions in one model whose computation differs from other repetitions of the label."""
        outputs_by_label: dict[str, set[tuple[Number, ...]]] = {}
        for key, body in listing.calls.items():
            if key in other_listing.calls:
                outputs_by_label.setdefault(collapse_address(key[0], patterns), set()).add(
                    self.values.number_body(body)
                )
        for key, body in listing.calls.items():
            outputs, label = self.values.number_body(body), collapse_address(key[0], patterns)
            if key not in other_listing.calls and label in outputs_by_label and outputs not in outputs_by_label[label]:
                yield _one_sided_change(
                    kind, key[0], "different from the others", _format_counts(self._count_operations(outputs))
                )

    def _compare_outputs(self, a: Listing, b: Listing) -> list[OperationChange]:
        changes: list[OperationChange] = []
        for name in dict.fromkeys((*a.outputs, *b.outputs)):
            (old_number, old), (new_number, new) = a.outputs.get(name, (None, "")), b.outputs.get(name, (None, ""))
            if old_number != new_number or (name in a.outputs) != (name in b.outputs):
                what = name
                if old == new:
                    what = f"{name}: in {old}" if name else f"in {old}"
                    old, new = self._describe_computations([old_number], [new_number])
                changes.append(OperationChange("returns", "", what, old, new))
        return changes

    # Descriptions

    def _describe_computations(self, ours: Sequence[Number], theirs: Sequence[Number]) -> tuple[str, str]:
        """Describe two computations by the operations that only one has, or by their operands if they have the same."""
        before, after = self._count_operations(ours), self._count_operations(theirs)
        if before == after:
            return "", "the same operations on different operands"
        return _format_counts(before - after), _format_counts(after - before)

    def _count_operations(self, numbers: Sequence[Number]) -> Counter[str]:
        return Counter(format_operation(operation, self.values) for operation in self.values.iter_operations(numbers))

    def _list_blocks(
        self,
        bodies: tuple[Body, Body],
        patterns: frozenset[str],
        prefixes: tuple[str, str],
        *,
        single: bool = False,
        by_name: bool,
    ) -> tuple[Listing, Listing]:
        """List two blocks. Values with equal normal forms receive one number."""
        a, b = [
            list_block(self.values, body, patterns, prefix, single=single, by_name=by_name)
            for body, prefix in zip(bodies, prefixes, strict=True)
        ]
        forms = [
            self.forms.list_applications(
                body, prefix, lambda address: collapse_address(address, patterns), single=single, by_name=by_name
            )
            for body, prefix in zip(bodies, prefixes, strict=True)
        ]
        numbers: dict[Form, Number] = {}
        unified = unify_numbers(a, forms[0], numbers), unify_numbers(b, forms[1], numbers)
        if single and count_equal(*unified) > count_equal(a, b):
            self.forms.unified = True
        return unified


_UNDESCRIBED = OperationChange("differs", "", "", "", "")
"""A difference without a description."""


def _compare_interface(
    kind: str, ours: Sequence[tuple[str, Type]], theirs: Sequence[tuple[str, Type]]
) -> list[OperationChange]:
    """Compare the inputs or outputs of two models, by name."""
    before, after = ({name: _type_text(type) for name, type in entries} for entries in (ours, theirs))
    pairs = [(name, before.get(name, ""), after.get(name, "")) for name in dict.fromkeys((*before, *after))]
    changes = [OperationChange(kind, "", name, old, new) for name, old, new in pairs if old != new]
    if not changes and [*before] != [*after]:
        changes.append(OperationChange(kind, "", "order", ", ".join(before), ", ".join(after)))
    return changes


def _find_block(body: Body, home: str) -> Body | None:
    """Return the block at an address of a model; None if it is not applied exactly once."""
    if not home:
        return body
    bodies = [call.body for call in body.calls if call.address == home]
    return bodies[0] if len(bodies) == 1 and bodies[0] is not None and bodies[0].kind == "block" else None


def _prefix_address(change: OperationChange, address: str) -> OperationChange:
    return change._replace(address=join(address, change.address))


def _named_results(body: Body) -> list[tuple[str, Type]]:
    present = [(name, type) for (name, _), type in zip(body.outputs, body.results, strict=True) if type is not None]
    return [(name or ("output" if len(present) == 1 else str(i)), type) for i, (name, type) in enumerate(present)]


def _type_text(type: Type) -> str:
    return f"{'' if type.dtype == 'real' else type.dtype + ' '}[{', '.join(map(str, type.shape))}]"


def _describe_constant(leaf: LocatedTensor) -> str:
    table = "a constant table" if leaf.weight.value is not None else "not a constant"
    return table if leaf.weight.type.dtype == "real" else f"{table} of {leaf.weight.type.dtype}"


def _as_prefix(home: str) -> str:
    return f"{home}." if home else ""


def _one_sided_change(kind: str, address: str, what: str, text: str) -> OperationChange:
    return OperationChange(kind, address, what, *(("", text) if kind == "added" else (text, "")))


def _count_change(address: str, before: int, after: int) -> OperationChange:
    return OperationChange("times", address, "", _format_times(before), _format_times(after))


def _describe_position(words: str, label: str, listing: Listing) -> str:
    """Describe the position of a layer or block by its operands and its readers."""
    readers = listing.readers.get(label, {})
    return f"after {words}, before {', '.join(reader or 'the result' for reader in readers)}"


def _format_times(number: int) -> str:
    return f"{number:,} times" if number > 1 else "once" if number else "never"


def _join_texts(words: Iterable[str]) -> str:
    return "; then ".join(dict.fromkeys(words))


def _format_counts(operations: Counter[str]) -> str:
    return ", ".join(text if number == 1 else f"{number} x {text}" for text, number in sorted(operations.items()))
