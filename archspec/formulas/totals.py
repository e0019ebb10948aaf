"""Sums over the tensors of a model with open hyperparameters, as polynomials."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from archspec.addresses import is_index, pattern_of, prefixes, segments
from archspec.algebra import Expression, index, ratio, substitute, summed, symbols
from archspec.formulas.assumptions import Solver
from archspec.formulas.restarts import Assumption, Segment
from archspec.ir import Module, Weight
from archspec.source import fail

MOST_OPENED = 10_000
"""The limit on the tensors of a block that is expanded into terms."""


class Term(NamedTuple):
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

    def substitute(self, values: dict[str, Expression]) -> Term:
        parts = ("rounds", "each", "total", "frozen", "first")
        return self._replace(**{part: substitute(getattr(self, part), values) for part in parts})


class Outcome(NamedTuple):
    """The result of a derivation: parameter counts, the terms of the total, and its assumptions."""

    total: Expression
    frozen: Expression
    terms: tuple[Term, ...]
    assumptions: tuple[Assumption, ...]

    def substitute(self, values: dict[str, Expression]) -> Outcome:
        return Outcome(
            substitute(self.total, values),
            substitute(self.frozen, values),
            tuple([term.substitute(values) for term in self.terms]),
            tuple([assumption.substitute(values) for assumption in self.assumptions]),
        )


class Numbers(NamedTuple):
    """The parameter count, and the number of frozen parameters."""

    total: Expression
    frozen: Expression

    def plus(self, other: Numbers, times: int = 1) -> Numbers:
        return Numbers(self.total + other.total * times, self.frozen + other.frozen * times)


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
        numbers = self._owned(self.root)
        for alias in self.root.aliases:
            numbers = numbers.plus(self._at(self.root, alias), -1)
        made_of = NOTHING
        for term in terms:
            made_of = made_of.plus(Numbers(term.total, term.frozen))
        if made_of != numbers:
            raise fail(
                "internal",
                "the terms of a formula do not add up to its total; this is a bug in archspec; please report it",
            )
        return Outcome(*numbers, terms, tuple(self.solver.assumptions.values()))

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
        return numbers._replace(frozen=numbers.total) if member.frozen else numbers

    def _over_iterations(self, module: Module, address: str, numbers: Numbers) -> Numbers:
        """Sum `numbers` over the iterations of the loops around a member of a module."""
        for segment in reversed(self._around(module, address)):
            sums = [summed(part, segment.symbol, segment.number) for part in numbers]
            if None in sums:
                self.solver.refuse_sum(numbers.total, segment, module.members[address].span)
            numbers = Numbers(*[part for part in sums if part is not None])
        return numbers

    def _around(self, module: Module, address: str) -> tuple[Segment, ...]:
        return self.solver.around.get(module, {}).get(address, ())

    def _at(self, module: Module, name: str) -> Numbers:
        """Sum a tensor of a module over all iterations."""
        address = _owner(module, name)
        target = module.members[address].target
        if isinstance(target, Weight):
            numbers = self._member(module, address)
        else:
            numbers = self._at(target, name[len(address) + 1 :])
            if module.members[address].frozen:
                numbers = numbers._replace(frozen=numbers.total)
        return self._over_iterations(module, address, numbers)

    def _terms(self, module: Module, prefix: str, frozen: bool) -> list[tuple[Any, Term]]:
        """Yield the terms of a module, each with a key that is equal for terms that differ only in their addresses."""
        terms: list[tuple[Any, Term]] = []
        for address, member in module.members.items():
            around = self._around(module, address)
            target = member.target
            is_block = isinstance(target, Module) and target.kind == "block" and self.root.tensors <= MOST_OPENED
            if isinstance(target, Module) and is_block and not around and not _is_numbered(address):
                terms += self._terms(target, f"{prefix}{address}.", frozen or member.frozen)
                continue
            numbers = self._member(module, address)
            tied = self._tied.get(prefix + address, [])
            for alias in tied:
                inner = alias[len(prefix) + len(address) + 1 :]
                one = self._at(target, inner) if isinstance(target, Module) else numbers
                numbers = numbers.plus(one._replace(frozen=one.total) if member.frozen else one, -1)
            if frozen:
                numbers = numbers._replace(frozen=numbers.total)
            if numbers.total or not tied:
                key = target, pattern_of(address), tuple(tied), around
                terms.append((key, self._term(module, address, prefix, numbers)))
        return [(key, term) for key, term in terms if term.total]

    def _term(self, module: Module, address: str, prefix: str, numbers: Numbers) -> Term:
        around = self._around(module, address)
        target = module.members[address].target
        type = target.type if isinstance(target, Module) else ""
        over = self._over_iterations(module, address, numbers)
        shown = re.sub(r"\{[^}]*\}", lambda m: self._shown(m[0]), prefix + address)
        if len(around) != 1:
            if any(segment.symbol in symbols(numbers.total) for segment in around):
                return Term(shown, type, 1, over.total, over.total, over.frozen)
            rounds = self._over_iterations(module, address, Numbers(1, 0)).total
            return Term(shown, type, rounds, numbers.total, over.total, over.frozen)
        (segment,) = around
        rounds, first = segment.number, segment.first
        if segment.symbol not in symbols(numbers.total):
            return Term(shown, type, rounds, numbers.total, over.total, over.frozen, "", first, segment.stride)
        variable = segment.variable
        while variable in self.solver.state.hyperparameters:
            variable += "_"
        position = ratio(index(variable) - first, segment.stride) + 1
        each = substitute(numbers.total, {segment.symbol: position})
        return Term(shown, type, rounds, each, over.total, over.frozen, variable, first, segment.stride)

    def _shown(self, text: str) -> str:
        if "~" in text:
            return "*"
        return f"({self.solver.translate(text[1:-1])})"


def _owner(module: Module, name: str) -> str:
    """Return the member of a module that contains a name."""
    return next(outer for outer in prefixes(name) if outer in module.members)


def _is_numbered(address: str) -> bool:
    return any(map(is_index, segments(address)))


def _merged(terms: list[tuple[Any, Term]]) -> list[Term]:
    """Combine the terms that differ only in a number in their addresses."""
    merged: list[Term] = []
    last: Any = None
    for key, term in terms:
        if merged and key == last and not term.variable and not key[3]:
            before = merged.pop()
            term = before._replace(
                address=pattern_of(term.address),
                rounds=before.rounds + 1,
                total=before.total + term.total,
                frozen=before.frozen + term.frozen,
            )
        merged.append(term)
        last = key
    return merged


def _size(weight: Weight) -> Expression:
    size: Expression = 1
    for dim in weight.type.shape:
        size = size * dim
    return size
