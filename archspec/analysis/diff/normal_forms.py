"""Comparison of bodies by normal form, where value numbers differ: a computation may be written in several ways.

Bodies are compared block by block: they are equal if their layers and blocks are equal, at the same addresses and with
equal inputs. If they are divided or connected differently, all definitions are expanded, which takes longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from archspec.analysis.diff.value_numbers import ValueNumbering
from archspec.ir.fold import arguments, passed_through_slot
from archspec.ir.module import Body, Call, LocatedTensor, Type, iter_tensors
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.bodies import NormalFormBuilder

MAX_EXPANDED = 5_000
"""Maximum number of operations of both models with all definitions expanded."""

MAX_EXPRESSIONS = 200_000
"""Maximum number of expressions in all normal forms of a comparison."""

Form: TypeAlias = "Array | None"
"""The normal form of a value; None for `none`."""


class Application(NamedTuple):
    """An application of a layer or block."""

    call: Call
    operands: list[Form]


class AppliedBody(NamedTuple):
    """The applications in a body by label, in order, and its outputs. Outputs of applications are not expanded."""

    steps: dict[str, list[Application]]
    outputs: list[Form]


class NormalForms:
    """Normal forms of the bodies of two models, whose value numbers are `values`.

    `unified` is whether bodies with different value numbers have equal normal forms, and `stopped` whether a limit
    prevented a comparison.
    """

    def __init__(self, values: ValueNumbering) -> None:
        self.values = values
        self.unified = False
        self.stopped = False
        self._arrays = Arrays(MAX_EXPRESSIONS)
        self._equal_bodies: dict[tuple[Body, Body], bool] = {}

    def are_equal_models(self, ours: Body, theirs: Body, prefixes: tuple[str, str]) -> bool:
        """Whether two models compute equal outputs from inputs and tensors of equal names, up to rounding."""
        return self._record(self._have_equal_forms(ours, theirs, prefixes, by_name=True))

    def are_equal(self, ours: Body, theirs: Body) -> bool:
        """Whether two bodies compute equal outputs from inputs at equal positions, up to rounding."""
        result = self._equal_bodies.get((ours, theirs))
        if result is None:
            result = self.values.number_body(ours) == self.values.number_body(theirs)
            result = result or self._record(self._have_equal_forms(ours, theirs, ("", "")))
            self._equal_bodies[ours, theirs] = result
        return result

    def are_equal_constants(self, ours: LocatedTensor, theirs: LocatedTensor) -> bool:
        """Whether two constant tensors have equal contents, up to rounding."""
        a, b = ours.weight, theirs.weight
        if a.value is None or b.value is None or a.type != b.type:
            return False
        value_a, value_b = a.value, b.value
        return self._record(self._attempt(lambda: self._expand(value_a) == self._expand(value_b)))

    def list_applications(
        self, body: Body, prefix: str, label: Callable[[str], str], *, single: bool = True, by_name: bool = False
    ) -> AppliedBody | None:
        """Return the applications in a body; None if a limit is reached. `prefix` ends in a dot, or is empty.

        Applications with one label have equal outputs, unless `single` distinguishes them.
        """
        applied = AppliedBody({}, [])

        def list_applications() -> bool:
            applied.outputs.extend(self._list_applications(body, prefix, label, applied.steps, single, by_name))
            return True

        return applied if self._attempt(list_applications) else None

    def _record(self, is_equal: bool) -> bool:
        self.unified = self.unified or is_equal
        return is_equal

    def _attempt(self, compute: Callable[[], bool]) -> bool:
        """Return the result of `compute`; false if a value has no normal form."""
        try:
            return compute()
        except ArithmeticError:  # too large an expression, or a division by 0
            self.stopped = True
            return False

    def _have_equal_forms(self, ours: Body, theirs: Body, prefixes: tuple[str, str], *, by_name: bool = False) -> bool:
        input_types_a, input_types_b = _input_types(ours, by_name), _input_types(theirs, by_name)
        if (
            input_types_a != input_types_b
            or ours.results != theirs.results
            or ours.loop is not None
            or theirs.loop is not None
        ):
            return False
        pairs = self._match_applications(ours, theirs, prefixes, by_name)
        if pairs is not None:
            return all(self.are_equal(body_a, body_b) for body_a, body_b in pairs)
        if _tensor_types(ours, prefixes[0]) != _tensor_types(theirs, prefixes[1]):
            return False
        if ours.size + theirs.size > MAX_EXPANDED:
            self.stopped = True
            return False
        return self._attempt(
            lambda: self._expand(ours, prefixes[0], by_name) == self._expand(theirs, prefixes[1], by_name)
        )

    def _match_applications(
        self, ours: Body, theirs: Body, prefixes: tuple[str, str], by_name: bool
    ) -> list[tuple[Body, Body]] | None:
        """Pair the layers and blocks of two bodies; None if their inputs or the outputs of the bodies differ."""
        a = self.list_applications(ours, prefixes[0], str, by_name=by_name)
        b = self.list_applications(theirs, prefixes[1], str, by_name=by_name)
        if a is None or b is None or a.outputs != b.outputs or _application_inputs(a) != _application_inputs(b):
            return None
        return [
            (call_a.body, call_b.body)
            for address, steps in a.steps.items()
            for (call_a, _), (call_b, _) in zip(steps, b.steps[address], strict=True)
            if call_a.body is not None and call_b.body is not None
        ]

    def _expand(self, body: Body, prefix: str = "", by_name: bool = False) -> list[Form]:
        return self._create_builder(body, prefix).outputs(body, self._stored_inputs(body, by_name))

    def _create_builder(self, body: Body, prefix: str) -> NormalFormBuilder:
        return NormalFormBuilder(self._arrays, body.module, prefix=prefix, keeps_float32=True)

    def _stored_inputs(self, body: Body, by_name: bool) -> list[Form]:
        return [
            self._arrays.stored("input", key, type.shape, type.dtype)
            for key, type in _input_types(body, by_name).items()
        ]

    def _list_applications(
        self,
        body: Body,
        prefix: str,
        label: Callable[[str], str],
        steps: dict[str, list[Application]],
        single: bool,
        by_name: bool,
    ) -> list[Form]:
        builder = self._create_builder(body, prefix)
        counts: Counter[str] = Counter()

        def apply(call: Call, operands: list[Form]) -> list[Form]:
            if not call.address or passed_through_slot(call) is not None:
                return builder.opened(call, operands, "")
            address = prefix + call.address
            name = label(address)
            steps.setdefault(name, []).append(Application(call, operands))
            counts[address] += 1
            occurrence = counts[address] if single else 0
            return [
                None if type is None else self._arrays.stored("input", (name, occurrence, i), type.shape, type.dtype)
                for i, type in enumerate(call.outputs)
            ]

        return builder.fold(body, self._stored_inputs(body, by_name), "", apply)


def _input_types(body: Body, by_name: bool) -> dict[str | int, Type]:
    """Return the types of the inputs of a body, by name or position."""
    return {name if by_name else i: type for i, (name, type) in enumerate(body.inputs)}


def _application_inputs(applied: AppliedBody) -> dict[str, list[list[Form]]]:
    """Return the inputs of the layers and blocks that a body applies, by address."""
    return {
        address: [arguments(call, operands) for call, operands in steps] for address, steps in applied.steps.items()
    }


def _tensor_types(body: Body, prefix: str) -> dict[str, Type]:
    return (
        {name: leaf.weight.type for name, leaf in iter_tensors(body.module, prefix)} if body.module is not None else {}
    )
