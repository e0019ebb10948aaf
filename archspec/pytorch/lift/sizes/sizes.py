"""Sizes as hyperparameters: what stands in the gaps of templates, and which hyperparameters each definition has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product, zip_longest
from typing import NamedTuple

from archspec.ir.ops import OPS
from archspec.pytorch.lift.notation.conditions import Progression, Size, Varying, conditions, progressions
from archspec.pytorch.lift.notation.names import Names, definition_names
from archspec.pytorch.lift.notation.templates import Definition, Template, drop_numbers, numbers_of
from archspec.pytorch.lift.sizes.evidence import Evidence
from archspec.pytorch.lift.sizes.expressions import Expressions, FieldExpression, Pair
from archspec.pytorch.lift.statements.program import LiftedProgram
from archspec.pytorch.values.arguments import UntranslatableError
from archspec.pytorch.values.numbers import ABSENT, literal

NAMES_OF_GAPS = {"in_features": "inputs", "out_features": "outputs", "count": "rows", "size": "size", "number": "value"}
"""Names for hyperparameters that no field gives a name."""


TABLE_SETTING = "values"
"""The setting of a table that lists its numbers, which are those of fields by accident if they stay the same."""


IRREGULAR = "its layers differ in a way that is no simple function of their number"
"""The reason for which loops without a short form are refused."""


class SizeDependenceError(UntranslatableError):
    """The program differs between sizes, or a size is not determined by any field."""


class ActualSizeError(UntranslatableError):
    """The spec lifted from a small module does not compile at the actual sizes."""


@dataclass
class DefinitionParameters:
    """The hyperparameters of a definition, and the texts of its gaps and uses."""

    name: str
    fields: list[str] = field(default_factory=list[str])
    own: dict[str, tuple[Size, ...]] = field(default_factory=dict[str, "tuple[Size, ...]"])
    """The hyperparameters that differ between instances, with their values."""
    gaps: list[str] = field(default_factory=list[str])
    uses: list[str] = field(default_factory=list[str])
    numbers: dict[str, str] = field(default_factory=dict[str, str])
    """The texts of the numbers in addresses, by their places."""


def _together(values: Sequence[Size], start: int) -> Size:
    return values[0] if len(set(values)) == 1 else Varying(tuple(values), start)


class Sizes:
    """The hyperparameters of a program, given the same module with other sizes as evidence."""

    def __init__(
        self,
        program: LiftedProgram,
        other: LiftedProgram | None,
        numbers: Mapping[str, object],
        others: Mapping[str, object] | None,
        attributes: Callable[[str], Mapping[str, object]],
        parts: Sequence[str] = (),
        narrow: Mapping[str, Collection[int]] | None = None,
        of_sizes: Collection[str] = (),
        evidence: Evidence | None = None,
    ) -> None:
        self.program = program
        self._attributes = attributes
        self.other = other
        if other is not None and (unlike := first_difference(program, other)) is not None:
            raise _unlike(unlike)
        fields: dict[str, Pair] = {}
        for name, value in numbers.items():
            second = others.get(name) if others is not None else None
            is_free = name not in OPS  # a hyperparameter hides the operation of its name
            if is_free and _is_number(value) and (self.other is None or _is_number(second)):
                fields[name] = (value, second if self.other is not None else None)  # pyright: ignore
        self.expressions = Expressions(fields, parts, narrow, of_sizes, evidence)
        self._parts = _only_parts(fields, parts)
        self.order = list(numbers)
        self.created: list[str] = []
        kinds = [definition.template.kind for definition in program.definitions]
        paths = [definition.paths[0] for definition in program.definitions]
        self.heads = [DefinitionParameters(name) for name in definition_names(kinds, paths, program.imports)]
        self._seconds: list[dict[str, tuple[Size, ...]]] = [{} for _ in self.heads]
        for number in range(len(program.definitions)):
            self._settle(number)

    def _settle(self, number: int) -> None:
        """Decide the hyperparameters of a definition, and the texts of its gaps and uses."""
        definition, head = self.program.definitions[number], self.heads[number]
        other = self.other.definitions[number] if self.other is not None else None
        taken = Names([*self.expressions.fields, *_values(definition), *OPS, *self.program.imports])
        inherited = [name for use in definition.template.uses for name in self.heads[use].fields]
        fields: dict[str, None] = dict.fromkeys(inherited)
        part = self._part(definition, other)

        def text(hint: str, column: Sequence[Size], second: Sequence[Size] | None) -> str:
            pair = tuple(column), None if second is None else tuple(second)
            return self._text(number, taken, fields, hint, *pair, part)

        for gap, hint in enumerate(definition.template.hints):
            second = None if other is None else [row[gap] for row in other.rows]
            head.gaps.append(text(hint, [row[gap] for row in definition.rows], second))
        for use, used in enumerate(definition.template.uses):
            inner = self.heads[used]
            given: list[tuple[str, str]] = []
            for name, column in inner.own.items():
                second = None if other is None else _passed(other, use, self._seconds[used][name])
                found = text(name, _passed(definition, use, column), second)
                given.append((name, found))
            has_same = bool(inner.fields) or any(name == found for name, found in given)
            named = [f"{name} = {found}" for name, found in given if name != found]
            listed = ["..", *named] if has_same else _arguments(given)
            head.uses.append(f"{inner.name}({', '.join(listed)})" if listed else inner.name)
        numbers = numbers_of(definition.template)
        others = numbers if other is None else numbers_of(other.template)
        for (place, first), (_, second) in zip(numbers, others, strict=True):
            is_same = first == second
            head.numbers[place] = (
                str(first) if is_same else self._one(number, taken, fields, "layers", first, second, part)
            )
        head.fields = sorted(fields, key=lambda name: self.order.index(name) if name in self.order else len(self.order))

    def _part(self, definition: Definition, other: Definition | None) -> str:
        """Return the part of the configuration that a definition is for: the only one that has some of its sizes."""
        if other is None:
            return ""
        pairs = {pair for rows in zip(definition.rows, other.rows, strict=False) for pair in zip(*rows, strict=True)}
        found = {self._parts[pair] for pair in pairs if pair in self._parts}
        return found.pop() if len(found) == 1 else ""

    def _text(
        self,
        number: int,
        taken: Names,
        fields: dict[str, None],
        hint: str,
        column: tuple[Size, ...],
        other: tuple[Size, ...] | None,
        part: str,
    ) -> str:
        """Return what to write for a number that has a value in each instance."""
        head = self.heads[number]
        if len(set(column)) > 1 or (other is not None and len(set(other)) > 1):
            for name, values in head.own.items():
                if _are_same(values, column) and (other is None or self._seconds[number][name] == other):
                    return name
            definition = self.program.definitions[number]
            wanted = NAMES_OF_GAPS.get(hint, hint)
            of_layers = _of_layers(definition, column) if hint == "size" else []
            numbered = [f"{wanted}{turn}" for turn in range(2, 10)]
            name = taken.take([*self._attribute(definition, column), *of_layers, wanted, *numbered])
            head.own[name] = column
            self._seconds[number][name] = other or column
            return name
        if isinstance(column[0], Varying):
            second = other[0] if other is not None else None
            progression = _progression(column[0], second)
            if progression is not None:
                pairs = zip(*progression, strict=True)
                start, step = [self._one(number, taken, fields, hint, *pair, part) for pair in [*pairs][:2]]
                return progression[0].text(*[text if text.isalnum() else f"({text})" for text in (start, step)])
            if all(type(value) is int for value in column[0].values) and len(column[0].values) == 2:
                raise UntranslatableError(IRREGULAR)  # it may be a progression of one kind or another
            sides = self._sides(column[0], second)
            texts = [self._one(number, taken, fields, hint, *pair, part) for pair in sides.values]
            return _chosen(sides.condition, *texts)
        return self._one(number, taken, fields, hint, column[0], None if other is None else other[0], part)

    def _one(
        self,
        number: int,
        taken: Names,
        fields: dict[str, None],
        hint: str,
        first: Size,
        second: Size | None,
        part: str,
    ) -> str:
        """Return what to write for a number that all instances have, and of which the other module may have another."""
        if isinstance(first, bool):
            return literal(first)
        if isinstance(first, Varying) or isinstance(second, Varying):
            raise UntranslatableError(IRREGULAR)
        if isinstance(first, str) or isinstance(second, str):
            if first != (second or first):
                raise _unlike(self.program.definitions[number])
            return str(first)
        pair = first, second
        if hint == TABLE_SETTING and pair[1] in (None, pair[0]):
            return literal(pair[0])
        found = self.expressions.find(pair, hint, part, fields)
        if found is None and pair[1] is not None and pair[0] != pair[1]:
            found = self._created(pair, hint, taken)
        if found is None:
            return literal(first)
        fields |= dict.fromkeys(found.fields)
        return found.text

    def _attribute(self, definition: Definition, column: Sequence[Size]) -> list[str]:
        """Return the attributes that have the values of a column in all instances of a definition."""
        first = self._attributes(definition.paths[0])
        return [
            name
            for name, value in first.items()
            if type(value) is type(column[0])
            and all(self._attributes(path).get(name) == own for path, own in zip(definition.paths, column, strict=True))
        ]

    def _sides(self, values: Varying, others: object) -> _Sides:
        """Return on what condition a number that differs between the iterations of a loop has which of two values."""
        both = [values, *([others] if isinstance(others, Varying) else [])]
        found = [
            _Sides(condition, tuple([_pair(*[item.where(holds, side) for item in both]) for side in (True, False)]))
            for condition, holds in conditions(values)
            if len(values.kinds) == 2 and all(item.follows(holds) for item in both)
        ]
        if not found:
            raise UntranslatableError(IRREGULAR)
        return next((sides for sides in found if sides.values[0][0] not in (False, ABSENT)), found[0])

    def _created(self, pair: Pair, hint: str, taken: Names) -> FieldExpression:
        """Return a new hyperparameter, which definitions around this one have as well."""
        values = [name for definition in self.program.definitions for name in _values(definition)]
        own = [name for head in self.heads for name in head.own]
        free = Names([*self.expressions.fields, *values, *own, *OPS, *self.program.imports])
        name = taken.take([free.take([NAMES_OF_GAPS.get(hint, hint), f"{hint}_size"])])
        self.expressions.add(name, pair)
        self.order.append(name)
        self.created.append(name)
        return FieldExpression(name, (name,))

    def defaults(self, actual: Mapping[str, object] | None) -> dict[str, object]:
        """Return the values of the hyperparameters of the model."""
        found: dict[str, object] = {}
        for name in self.heads[-1].fields:
            if actual is not None and name in actual:
                found[name] = actual[name]
            elif actual is not None:
                value = self.expressions.fields[name][0]
                raise SizeDependenceError(
                    f"no argument or field decides a size, {value} in the module it was lifted from"
                )
            else:
                found[name] = self.expressions.fields[name][0]
        return found

    def still(self) -> dict[str, int]:
        """Return the fields among the hyperparameters of the model that are integers, the same in both modules."""
        pairs = {name: self.expressions.fields[name] for name in self.heads[-1].fields}
        return {name: a for name, (a, b) in pairs.items() if isinstance(a, int) and a == b and not isinstance(a, bool)}

    def seconds(self) -> dict[str, float | None]:
        """Return the values of the hyperparameters in the module with other sizes."""
        return {name: self.expressions.fields[name][1] for name in self.heads[-1].fields}


def _progression(values: Varying, others: Size | None) -> tuple[Progression, Progression] | None:
    """Return the progressions of a number in two modules, of which only the second shows what two values are."""
    second = others if isinstance(others, Varying) else values
    for one, other in product(progressions(values), progressions(second)):
        is_alike = one.is_geometric == other.is_geometric and (not one.is_geometric or one.step == other.step)
        if is_alike and max(len(values.values), len(second.values)) > 2:
            return one, other
    return None


class _Sides(NamedTuple):
    """A condition, and the values where it holds and where it does not: in one module and in another one."""

    condition: str
    values: tuple[tuple[Size, Size | None], ...]


def _pair(first: set[Size], second: Collection[Size] = ()) -> tuple[Size, Size | None]:
    (one,) = first
    return one, next(iter(second), None)


def _chosen(condition: str, yes: str, no: str) -> str:
    """Return the text of a value on a condition, and of another one, or none, where it does not hold."""
    if (yes, no) == (literal(True), literal(False)):
        return condition
    return f"{yes} if {condition}" if no == ABSENT else f"{yes} if {condition} else {no}"


def _are_same(first: Sequence[Size], second: Sequence[Size]) -> bool:
    """Whether columns are equal, also in the types of numbers: positions plus 27 are no integers if it is 27.0."""
    return [*map(type, first)] == [*map(type, second)] and [*first] == [*second]


def _of_layers(definition: Definition, column: Sequence[Size]) -> list[str]:
    """Return what the layers of a definition call a size: `channels` if it is that of inputs and of outputs."""
    template = definition.template
    hints = {hint for gap, hint in enumerate(template.hints) if [row[gap] for row in definition.rows] == [*column]}
    names = ["channels"] if hints.issuperset(("in_channels", "out_channels")) else []
    for name in ("out_channels", "in_channels", "in_features", "out_features"):
        names += [NAMES_OF_GAPS.get(name, name)] if name in hints else []
    return names


def _passed(definition: Definition, use: int, column: Sequence[Size]) -> list[Size]:
    """Return what each instance of a definition passes to what it uses, of the values of all instances of that."""
    start = definition.template.starts[use]
    return [_together([column[row] for row in rows[use]], start) for rows in definition.inside]


def _arguments(given: Sequence[tuple[str, str]]) -> list[str]:
    """Return hyperparameters by position, up to the first literal or condition that only its name explains."""
    explained = [turn for turn, (_, text) in enumerate(given) if text in ("none", "false", "true") or " if " in text]
    first = min(explained, default=len(given))
    return [*[text for _, text in given[:first]], *[f"{name} = {text}" for name, text in given[first:]]]


def _values(definition: Definition) -> list[str]:
    """Return the names of the inputs and values of a definition."""
    template = definition.template
    return [*[name for name, _, _ in template.inputs], *[name for item in template.statements for name in item.names]]


def _only_parts(fields: Mapping[str, Pair], parts: Sequence[str]) -> dict[object, str]:
    """Return the part of the configuration that has two values, for those that no other part has, and that differ."""
    found: dict[Pair, set[str]] = {}
    for name, pair in fields.items():
        inside = [part for part in parts if name.startswith(part)]
        found.setdefault(pair, set()).add(max(inside, key=len, default=""))
    return {pair: min(names) for pair, names in found.items() if len(names) == 1 and pair[0] != pair[1]}


def first_difference(program: LiftedProgram, other: LiftedProgram) -> Definition | None:
    """Return the first definition that is different in the other program, in more than sizes."""
    pairs = zip_longest(program.definitions, other.definitions)
    return next((a or b for a, b in pairs if a is None or b is None or not _are_alike(a.template, b.template)), None)


def _are_alike(first: Template, second: Template) -> bool:
    return first == second or drop_numbers(first) == drop_numbers(second)


def _unlike(definition: Definition) -> SizeDependenceError:
    return SizeDependenceError(
        f"`{definition.template.kind}` does something else at other sizes than at the first ones"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
