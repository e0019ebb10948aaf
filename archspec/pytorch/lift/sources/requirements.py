"""Requirements that keep a factory from making another module than a spec says, or else a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from archspec.core.diagnostics import make_error
from archspec.ir.table import PlainValue
from archspec.pytorch.lift.check import check_outputs
from archspec.pytorch.lift.sizes.evidence import FormulaError
from archspec.pytorch.lift.sources.fields import is_integer
from archspec.pytorch.lift.spec_text import add_requirements
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.values.arguments import UntranslatableError

MAX_STEPS = 16
"""The next values that a factory takes are looked for among so many smaller and larger ones."""

UNKNOWN = "the factory takes another branch, and it is too large to compare outputs"


def require_branches(spec: str, names: Sequence[str], subject: Subject) -> str:
    """Return a spec that requires that the numbers with these `names`, which it follows, differ from one value, or from
    one another, where a factory makes another module. Raises ArchError if that is not all that keeps it from that.
    """
    branches, wrong, conditions = _Branches(spec, names, subject), dict[str, str](), dict[frozenset[str], str]()
    for name, value in subject.branches():
        if name not in names or name in wrong:
            continue
        problem = branches.problem((name, value))
        if not problem:
            continue
        other = branches.only_exception(name, value) if problem != UNKNOWN else None
        if other is None:
            wrong[name] = f"`{name}` = {value}: {problem}"
        else:
            conditions.setdefault(frozenset((name, other)), f"{name} != {other}")
    if wrong:
        error = FormulaError(wrong)
        raise make_error("lift", f"cannot lift `{subject.name}`: {error}") from error
    texts = [f'{text}, "the module has another form where they are equal"' for text in conditions.values()]
    return add_requirements(spec, texts) if texts else spec


class _Branches:
    """A spec of a small module of a factory, compared with modules of other numbers."""

    def __init__(self, spec: str, names: Sequence[str], subject: Subject) -> None:
        self.spec, self.names, self.subject = spec, names, subject
        self.integers = {name: small for name in names if is_integer(small := subject.numbers.get(name))}
        self._problems: dict[frozenset[tuple[str, int]], str | None] = {}

    def problem(self, *numbers: tuple[str, int]) -> str | None:
        """Return how the spec differs from a module with other numbers: not at all, or None if it cannot be called."""
        key = frozenset(numbers)
        if key not in self._problems:
            self._problems[key] = self._compare(*numbers)
        return self._problems[key]

    def _compare(self, first: tuple[str, int], *others: tuple[str, int]) -> str | None:
        changed = self.subject.changed(*first, **dict(others)) if self.subject.changed is not None else None
        if changed is None:
            return None
        overrides = {key: cast("PlainValue", changed.numbers[key]) for key in self.names}
        try:
            return "" if check_outputs(self.spec, overrides, changed) else UNKNOWN
        except UntranslatableError as problem:
            return str(problem)

    def only_exception(self, name: str, value: int) -> str | None:
        """Return the value, or the other number that has it, if a module is another one where a number has that value,
        but for neither of the next ones, nor for twice as much; None if there is none, or several.
        """
        above, below = range(value + 1, value + MAX_STEPS), range(value - 1, max(value - MAX_STEPS, 0), -1)
        next_ones = [self._first([[(name, at)] for at in values]) for values in (above, below) if values]
        if any(next_ones) or None in next_ones or self.problem((name, 2 * value)):
            return None
        equal = [other for other, small in self.integers.items() if other != name and small == value]
        exceptions = [other for other in ("", *equal) if self._is_exception(name, value, other)]
        return (exceptions[0] or str(value)) if len(exceptions) == 1 else None

    def _is_exception(self, name: str, value: int, equal: str) -> bool:
        """Whether a number with a value makes another module whatever the others are; if one is to be `equal`, only
        together with that, and also with further values of both.
        """
        for other, small in self.integers.items():
            if other == name:
                continue
            values = [at for at in (2 * small, small + 1, 3 * small) if at != value]
            alone = self._first([[(name, value), (other, at)] for at in values])
            if other != equal:
                if not alone:
                    return False
            elif alone != "" or not self._first([[(name, at), (equal, at)] for at in values]):
                return False
        return True

    def _first(self, candidates: Sequence[Sequence[tuple[str, int]]]) -> str | None:
        """Return the problem with the first numbers with which a module can be called; None if there are none."""
        problems = (self.problem(*numbers) for numbers in candidates)
        return next((problem for problem in problems if problem is not None), None)
