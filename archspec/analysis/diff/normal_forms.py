"""Normal forms of bodies: they decide where value numbers differ, because one computation may be written in two ways.

Bodies are compared block by block: they compute the same if their layers and blocks do, at the same addresses and from
equal inputs. If they are divided or connected differently, all definitions are expanded, which takes longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from archspec.analysis.diff.value_numbers import Values
from archspec.ir.fold import arguments, passed_through_slot
from archspec.ir.module import Body, Call, LocatedTensor, Type, iter_tensors
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.bodies import NormalFormBuilder

MAX_EXPANDED = 5_000
"""The limit on the operations of both sides with all definitions expanded."""

MAX_EXPRESSIONS = 200_000
"""The limit on the expressions of all normal forms of a comparison."""

Form: TypeAlias = "Array | None"
"""The normal form of a value; None for `none`."""


class Application(NamedTuple):
    """An application of a layer or block."""

    call: Call
    given: list[Form]


class AppliedBody(NamedTuple):
    """A body: the applications in it by label, in order, and its outputs. Outputs of applications are not expanded."""

    steps: dict[str, list[Application]]
    outputs: list[Form]


class Forms:
    """Normal forms of the bodies of two models, whose value numbers are `values`.

    `unified` is whether any that have different value numbers were found equal, and `stopped` whether some could not be
    compared, because of a limit.
    """

    def __init__(self, values: Values) -> None:
        self.values = values
        self.unified = False
        self.stopped = False
        self._arrays = Arrays(MAX_EXPRESSIONS)
        self._equal: dict[tuple[Body, Body], bool] = {}

    def equal_models(self, ours: Body, theirs: Body, prefixes: tuple[str, str]) -> bool:
        """Whether two models compute the same from inputs and tensors of the same names, up to rounding."""
        return self._noted(self._are_equal(ours, theirs, prefixes, by_name=True))

    def equal(self, ours: Body, theirs: Body) -> bool:
        """Whether two bodies compute the same from inputs at the same positions, up to rounding."""
        found = self._equal.get((ours, theirs))
        if found is None:
            found = self.values.whole(ours) == self.values.whole(theirs)
            found = found or self._noted(self._are_equal(ours, theirs, ("", "")))
            self._equal[ours, theirs] = found
        return found

    def equal_tables(self, ours: LocatedTensor, theirs: LocatedTensor) -> bool:
        """Whether two constant tensors have the same contents, up to rounding."""
        a, b = ours.weight, theirs.weight
        if a.value is None or b.value is None or a.type != b.type:
            return False
        before, after = a.value, b.value
        return self._noted(self._attempt(lambda: self._expanded(before) == self._expanded(after)))

    def applied(
        self, body: Body, prefix: str, label: Callable[[str], str], *, single: bool = True, by_name: bool = False
    ) -> AppliedBody | None:
        """Return the applications in a body, whose address `prefix` ends in a dot after; None if a limit is reached.

        Applications with one label have the same outputs, unless each is to be distinguished (`single`).
        """
        found = AppliedBody({}, [])

        def list_applications() -> bool:
            found.outputs.extend(self._listed(body, prefix, label, found.steps, single, by_name))
            return True

        return found if self._attempt(list_applications) else None

    def _noted(self, found: bool) -> bool:
        self.unified = self.unified or found
        return found

    def _attempt(self, compute: Callable[[], bool]) -> bool:
        """Return what is computed; false if it has no normal form."""
        try:
            return compute()
        except ArithmeticError:  # too large an expression, or a division by 0
            self.stopped = True
            return False

    def _are_equal(self, ours: Body, theirs: Body, prefixes: tuple[str, str], *, by_name: bool = False) -> bool:
        before, after = _inputs(ours, by_name), _inputs(theirs, by_name)
        if before != after or ours.results != theirs.results or ours.loop is not None or theirs.loop is not None:
            return False
        pairs = self._pairs(ours, theirs, prefixes, by_name)
        if pairs is not None:
            return all(self.equal(one, other) for one, other in pairs)
        if _tensors(ours, prefixes[0]) != _tensors(theirs, prefixes[1]):
            return False
        if ours.size + theirs.size > MAX_EXPANDED:
            self.stopped = True
            return False
        return self._attempt(
            lambda: self._expanded(ours, prefixes[0], by_name) == self._expanded(theirs, prefixes[1], by_name)
        )

    def _pairs(
        self, ours: Body, theirs: Body, prefixes: tuple[str, str], by_name: bool
    ) -> list[tuple[Body, Body]] | None:
        """Return the layers and blocks of two bodies if both apply them to equal values, and return equal ones."""
        a = self.applied(ours, prefixes[0], str, by_name=by_name)
        b = self.applied(theirs, prefixes[1], str, by_name=by_name)
        if a is None or b is None or a.outputs != b.outputs or _given(a) != _given(b):
            return None
        return [
            (one.body, other.body)
            for address, steps in a.steps.items()
            for (one, _), (other, _) in zip(steps, b.steps[address], strict=True)
            if one.body is not None and other.body is not None
        ]

    def _expanded(self, body: Body, prefix: str = "", by_name: bool = False) -> list[Form]:
        return self._bodies(body, prefix).outputs(body, self._stored_inputs(body, by_name))

    def _bodies(self, body: Body, prefix: str) -> NormalFormBuilder:
        return NormalFormBuilder(self._arrays, body.module, prefix=prefix, keeps_float32=True)

    def _stored_inputs(self, body: Body, by_name: bool) -> list[Form]:
        return [
            self._arrays.stored("input", key, type.shape, type.dtype) for key, type in _inputs(body, by_name).items()
        ]

    def _listed(
        self,
        body: Body,
        prefix: str,
        label: Callable[[str], str],
        steps: dict[str, list[Application]],
        single: bool,
        by_name: bool,
    ) -> list[Form]:
        bodies = self._bodies(body, prefix)
        times: Counter[str] = Counter()

        def applied(call: Call, given: list[Form]) -> list[Form]:
            if not call.address or passed_through_slot(call) is not None:
                return bodies.opened(call, given, "")
            address = prefix + call.address
            name = label(address)
            steps.setdefault(name, []).append(Application(call, given))
            times[address] += 1
            turn = times[address] if single else 0
            return [
                None if type is None else self._arrays.stored("input", (name, turn, i), type.shape, type.dtype)
                for i, type in enumerate(call.outputs)
            ]

        return bodies.fold(body, self._stored_inputs(body, by_name), "", applied)


def _inputs(body: Body, by_name: bool) -> dict[str | int, Type]:
    """Return the types of the inputs of a body, by name or position."""
    return {name if by_name else i: type for i, (name, type) in enumerate(body.inputs)}


def _given(applied: AppliedBody) -> dict[str, list[list[Form]]]:
    """Return the inputs of the layers and blocks that a body applies, by address."""
    return {address: [arguments(call, given) for call, given in steps] for address, steps in applied.steps.items()}


def _tensors(body: Body, prefix: str) -> dict[str, Type]:
    return (
        {name: leaf.weight.type for name, leaf in iter_tensors(body.module, prefix)} if body.module is not None else {}
    )
