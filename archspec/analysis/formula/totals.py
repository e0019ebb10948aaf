"""Sums over the tensors of a model with open hyperparameters, as polynomials."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from archspec.analysis.formula.assumptions import Solver
from archspec.analysis.formula.restarts import Assumption, Segment
from archspec.core.addresses import address_pattern, prefixes, relative
from archspec.core.algebra import Expression, index, ratio, substitute, sum_over_index, symbols
from archspec.core.diagnostics import make_error
from archspec.ir.module import Module, ModuleTensor, enclosing_member

MAX_OPENED = 10_000
"""The limit on the tensors of a block that is expanded into terms."""


class FormulaTerm(NamedTuple):
    """A term of a formula: a layer, a tensor or a repeated block.

    `address` has `*` for symbolic indices; `type` is the name of the definition, "" for a tensor. `total` and `frozen`
    are the parameters in all `rounds` iterations: `each` per iteration or, if `variable` is not empty, the sum of
    `each` over `variable` = `first`, `first` + `stride`, ...
    """

    address: str
    type: str
    rounds: Expression
    each: Expression
    total: Expression
    frozen: Expression
    variable: str = ""
    first: Expression = 0
    stride: int = 1

    def substitute(self, values: dict[str, Expression]) -> FormulaTerm:
        parts = ("rounds", "each", "total", "frozen", "first")
        return self._replace(**{part: substitute(getattr(self, part), values) for part in parts})


class Outcome(NamedTuple):
    """The result of a derivation: parameter counts, the terms of the total, its assumptions, and other measures."""

    total: Expression
    frozen: Expression
    terms: tuple[FormulaTerm, ...]
    assumptions: tuple[Assumption, ...]
    measures: dict[str, Expression] = {}  # noqa: RUF012

    def substitute(self, values: dict[str, Expression]) -> Outcome:
        return Outcome(
            substitute(self.total, values),
            substitute(self.frozen, values),
            tuple([term.substitute(values) for term in self.terms]),
            tuple([assumption.substitute(values) for assumption in self.assumptions]),
            {name: substitute(measure, values) for name, measure in self.measures.items()},
        )


class Numbers(NamedTuple):
    """The parameter count, and the number of frozen parameters."""

    total: Expression
    frozen: Expression

    def plus(self, other: Numbers | FormulaTerm, times: int = 1) -> Numbers:
        return Numbers(self.total + other.total * times, self.frozen + other.frozen * times)

    def all_frozen(self, frozen: bool = True) -> Numbers:
        return self._replace(frozen=self.total) if frozen else self


NOTHING = Numbers(0, 0)


class Totals:
    """Sums over the modules of one compilation."""

    def __init__(self, solver: Solver, root: Module) -> None:
        self.solver = solver
        self.root = root
        self._known: dict[Module, Numbers] = {}
        self._tied: dict[str, list[str]] = {}  # the other names of tensors, by every address around them
        for alias in root.aliases:
            for around in prefixes(alias):
                self._tied.setdefault(around, []).append(alias)

    def outcome(self) -> Outcome:
        terms = tuple(_merged(self._terms(self.root, "", False)))
        numbers = self.whole()
        made_of = NOTHING
        for term in terms:
            made_of = made_of.plus(term)
        if made_of != numbers:
            message = "the terms of a formula do not add up to its total"
            raise make_error("internal", f"{message}; this is a bug in archspec; please report it")
        return Outcome(*numbers, terms, tuple(self.solver.assumptions.values()))

    def whole(self) -> Numbers:
        """Sum the tensors of the model."""
        numbers = self._owned(self.root)
        for alias in self.root.aliases:
            numbers = numbers.plus(self.at(self.root, alias), -1)
        return numbers

    def _owned(self, module: Module) -> Numbers:
        """Sum the tensors of a module, counting every name."""
        known = self._known.get(module)
        if known is None:
            known = NOTHING
            for address in module.members:
                known = known.plus(self._over_iterations(module, address, self._member(module, address)))
            self._known[module] = known
        return known

    def _member(self, module: Module, address: str) -> Numbers:
        """Sum the tensors at an address of a module, in one iteration."""
        member = module.members[address]
        target = member.target
        if isinstance(target, Module):
            numbers = self._owned(target)
        elif target.kind == "param":
            size = _size(target)
            numbers = Numbers(size, size if target.frozen else 0)
        else:
            numbers = NOTHING
        return numbers.all_frozen(member.frozen)

    def _over_iterations(self, module: Module, address: str, numbers: Numbers) -> Numbers:
        """Sum `numbers` over the iterations of the loops around a member of a module."""
        return Numbers(*[self._summed(module, address, part) for part in numbers])

    def _summed(self, module: Module, address: str, each: Expression) -> Expression:
        for segment in reversed(self._around(module, address)):
            over = sum_over_index(each, segment.symbol, segment.number)
            if over is None:
                self.solver.refuse_sum(each, segment, module.members[address].span)
            each = over
        return each

    def _around(self, module: Module, address: str) -> tuple[Segment, ...]:
        return self.solver.around.get(module, {}).get(address, ())

    def at(self, module: Module, name: str) -> Numbers:
        """Sum a tensor of a module over all iterations."""
        address = enclosing_member(module, name)
        assert address is not None
        member = module.members[address]
        if isinstance(member.target, ModuleTensor):
            numbers = self._member(module, address)
        else:
            numbers = self.at(member.target, relative(name, address)).all_frozen(member.frozen)
        return self._over_iterations(module, address, numbers)

    def _terms(self, module: Module, prefix: str, frozen: bool) -> list[tuple[Hashable, FormulaTerm]]:
        """Yield the terms of a module, each with a key that is equal for terms to be merged, None if it is not."""
        terms: list[tuple[Hashable, FormulaTerm]] = []
        for address, member in module.members.items():
            around = self._around(module, address)
            target = member.target
            is_block = isinstance(target, Module) and target.kind == "block" and self.root.tensors <= MAX_OPENED
            if isinstance(target, Module) and is_block and not around and address_pattern(address) == address:
                terms += self._terms(target, f"{prefix}{address}.", frozen or member.frozen)
                continue
            numbers = self._member(module, address)
            tied = self._tied.get(prefix + address, [])
            for alias in tied:
                inner = alias[len(prefix) + len(address) + 1 :]
                one = self.at(target, inner) if isinstance(target, Module) else numbers
                numbers = numbers.plus(one.all_frozen(member.frozen), -1)
            numbers = numbers.all_frozen(frozen)
            if numbers.total or not tied:
                key = None if around else (target, address_pattern(address), tuple(tied))
                terms.append((key, self._term(module, address, prefix, numbers)))
        return [(key, term) for key, term in terms if term.total]

    def _term(self, module: Module, address: str, prefix: str, numbers: Numbers) -> FormulaTerm:
        around = self._around(module, address)
        target = module.members[address].target
        type = target.type if isinstance(target, Module) else ""
        over = self._over_iterations(module, address, numbers)
        shown = self.solver.translate(prefix + address)
        if not any(segment.symbol in symbols(numbers.total) for segment in around):
            rounds = self._summed(module, address, 1)
            return FormulaTerm(shown, type, rounds, numbers.total, over.total, over.frozen)
        if len(around) != 1:
            return FormulaTerm(shown, type, 1, over.total, over.total, over.frozen)
        (segment,) = around
        variable, first, stride = segment.variable, segment.first, segment.stride
        while variable in self.solver.state.hyperparameters:
            variable += "_"
        each = substitute(numbers.total, {segment.symbol: ratio(index(variable) - first, stride) + 1})
        return FormulaTerm(shown, type, segment.number, each, over.total, over.frozen, variable, first, stride)


def _merged(terms: list[tuple[Hashable, FormulaTerm]]) -> list[FormulaTerm]:
    """Combine the terms that differ only in a number in their addresses."""
    merged: list[FormulaTerm] = []
    last: Hashable = None
    for key, term in terms:
        if key is not None and key == last:
            before = merged.pop()
            term = before._replace(
                address=address_pattern(term.address),
                rounds=before.rounds + 1,
                total=before.total + term.total,
                frozen=before.frozen + term.frozen,
            )
        merged.append(term)
        last = key
    return merged


def _size(weight: ModuleTensor) -> Expression:
    size: Expression = 1
    for dim in weight.type.shape:
        size = size * dim
    return size
