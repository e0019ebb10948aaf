"""Sizes of tensors in further modules: which formulas two small modules only show by accident, and other ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from archspec.core.diagnostics import ArchError
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import compile_text
from archspec.pytorch.lift.sizes.candidates import FieldExpression
from archspec.pytorch.lift.sizes.formulas import Formula, find_formula
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.prove.tables import other_rows
from archspec.pytorch.values.arguments import UntranslatableError

if TYPE_CHECKING:
    from torch import nn

MIN_VALUES = 4
"""A size has so many values in the modules that show its formula."""

MAX_NAMES = 4
"""Formulas of more numbers, not all of which are known to matter, are not searched."""

MAX_PARAMETERS_CALLED = 20_000_000
"""Larger modules are not called to see whether their numbers go together."""

Pair: TypeAlias = "tuple[float, float | None]"


class FormulaError(UntranslatableError):
    """Sizes follow the numbers of these names in a way that is not known."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__(f"the spec does not hold for {next(iter(reasons.values()))}")
        self.reasons = reasons


def wrong_names(
    text: str, names: Sequence[str], subject: Subject, varied: Sequence[str] | None = None
) -> dict[str, str]:
    """Return the reasons why a spec is wrong for other values of numbers, of which the module has other tensors.

    `names` are those that the spec follows, `varied` those that have other values, by default the same. All that differ
    from those of the first module are returned if single ones are right.
    """
    wrong: dict[str, str] = {}
    for sample in subject.samples(names if varied is None else varied, False) if subject.samples is not None else ():
        if wrong.keys() & sample.changed:
            continue
        overrides = {name: cast("PlainValue", sample.numbers[name]) for name in names if name in sample.numbers}
        try:
            reason = other_rows(compile_text(text, "<text>", None, overrides), sample.module)
        except ArchError:  # it is no spec for these numbers
            continue
        if reason and sample.runs():
            values = ", ".join([f"`{name}` = {sample.numbers[name]}" for name in sample.changed])
            wrong |= dict.fromkeys(sample.changed, f"{values}: {reason}")
    return wrong


def require_formulas(text: str, names: Sequence[str], subject: Subject) -> None:
    """Raise FormulaError unless a spec has the tensors of modules with other values of the numbers that it follows."""
    wrong = wrong_names(text, names, subject)
    if wrong:
        raise FormulaError(wrong)


def evidence_of(subject: Subject, second: Subject) -> Evidence:
    """Return the sizes of tensors in modules that can be called."""
    samples = [*subject.samples([*subject.numbers], True)] if subject.samples is not None else []
    called = [sample for sample in samples if _is_small(sample.module) and sample.runs()]
    modules = [subject.module, second.module, *[sample.module for sample in called]]
    return Evidence(modules, [subject.numbers, second.numbers, *[sample.numbers for sample in called]])


def _is_small(module: nn.Module) -> bool:
    return sum([parameter.numel() for parameter in module.parameters()]) <= MAX_PARAMETERS_CALLED


class Evidence:
    """The sizes of tensors in two small modules, and in further ones of other numbers.

    Where tensors have the same size in both small modules, but not in all others, none of them shows a formula.
    """

    def __init__(self, modules: Sequence[nn.Module], numbers: Sequence[Mapping[str, object]]) -> None:
        self._numbers = numbers
        shapes = [_shapes(module) for module in modules]
        self._columns: dict[Pair, list[int | None]] = {}
        self._found: dict[Pair, FieldExpression | None] = {}
        ambiguous: set[Pair] = set()
        for name, shape in shapes[0].items():
            for axis, pair in enumerate(zip(shape, shapes[1].get(name, ()), strict=False)):
                column = [_size(item, name, axis) for item in shapes]
                others = self._columns.setdefault(pair, column)
                if any(a is not None and b is not None and a != b for a, b in zip(others, column, strict=True)):
                    ambiguous.add(pair)
                self._columns[pair] = [b if a is None else a for a, b in zip(others, column, strict=True)]
        for pair in ambiguous:
            del self._columns[pair]

    def _names(self, pair: Pair) -> list[str]:
        """Return the numbers on which a size depends, while the others keep their values in the first module."""
        names: dict[str, None] = {}
        for numbers, size in zip(self._numbers, self._columns[pair], strict=True):
            changed = [name for name, value in numbers.items() if value != self._numbers[0].get(name)]
            if len(changed) == 1 and size not in (None, pair[0]):
                names[changed[0]] = None
        return [*names]

    def find(self, pair: Pair) -> FieldExpression | None:
        """Return the shortest formula of a size that holds for all modules; None if there is none."""
        if pair not in self._columns:
            return None
        if pair not in self._found:
            self._found[pair] = self._formula(pair)
        return self._found[pair]

    def _formula(self, pair: Pair) -> FieldExpression | None:
        column = self._columns[pair]
        if len({*column} - {None}) < MIN_VALUES:
            return None
        formula = self._formula_of(self._names(pair), column)
        others = [name for name, value in self._numbers[0].items() if not isinstance(value, bool)]
        return formula or (self._formula_of(others, column) if len(others) <= MAX_NAMES else None)

    def _formula_of(self, names: Sequence[str], column: Sequence[int | None]) -> FieldExpression | None:
        turns = [turn for turn, size in enumerate(column) if size is not None]
        numbers = [self._numbers[turn] for turn in turns]
        fields = [Formula(name, tuple([cast("int", item[name]) for item in numbers]), True) for name in names]
        text = find_formula(fields, tuple([size for size in column if size is not None])) if names else None
        if text is None:
            return None
        return FieldExpression(text, tuple([name for name in names if re.search(rf"\b{name}\b", text)]))


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}


def _size(shapes: Mapping[str, tuple[int, ...]], name: str, axis: int) -> int | None:
    shape = shapes.get(name, ())
    return shape[axis] if axis < len(shape) else None
