"""Sums over the tensors of a model with open hyperparameters, as polynomials."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from archspec.analysis.formula.assumptions import Solver
from archspec.analysis.formula.restarts import Assumption, Segment
from archspec.core.addresses import address_pattern, prefixes, relative
from archspec.core.algebra import Expression, index, ratio, substitute, sum_over_index, symbols
from archspec.core.diagnostics import internal_error
from archspec.ir.module import Module, ModuleTensor, enclosing_member

MAX_EXPANDED_TENSORS = 10_000
"""Maximum number of tensors of a block that is expanded into terms."""


class FormulaTerm(NamedTuple):
    """A term of a formula: a layer, a tensor or a repeated block.

    `address` has `*` for symbolic indices; `type` is the name of the definition, "" for a tensor. `total` and `frozen`
    are parameter counts over all `rounds` iterations: `each` per iteration or, if `variable` is not empty, the sum of
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


class ParameterCounts(NamedTuple):
    """The parameter count, and the number of frozen parameters."""

    total: Expression
    frozen: Expression

    def add(self, counts: ParameterCounts | FormulaTerm, times: int = 1) -> ParameterCounts:
        return ParameterCounts(self.total + counts.total * times, self.frozen + counts.frozen * times)

    def freeze(self, frozen: bool = True) -> ParameterCounts:
        return self._replace(frozen=self.total) if frozen else self


NO_PARAMETERS = ParameterCounts(0, 0)


class Totals:
    """Sums of parameters over the modules of one compilation."""

    def __init__(self, solver: Solver, root: Module) -> None:
        self.solver = solver
        self.root = root
        self._module_totals: dict[Module, ParameterCounts] = {}
        self._aliases: dict[str, list[str]] = {}  # by every prefix of their addresses
        for alias in root.aliases:
            for prefix in prefixes(alias):
                self._aliases.setdefault(prefix, []).append(alias)

    def outcome(self) -> Outcome:
        terms = tuple(_merge_terms(self._build_terms(self.root, "", False)))
        numbers = self.model_total()
        sum_of_terms = NO_PARAMETERS
        for term in terms:
            sum_of_terms = sum_of_terms.add(term)
        if sum_of_terms != numbers:
            raise internal_error("the terms of a formula do not add up to its total")
        return Outcome(*numbers, terms, tuple(self.solver.assumptions.values()))

    def model_total(self) -> ParameterCounts:
        """Sum the tensors of the model."""
        numbers = self._module_total(self.root)
        for alias in self.root.aliases:
            numbers = numbers.add(self.tensor_total(self.root, alias), -1)
        return numbers

    def _module_total(self, module: Module) -> ParameterCounts:
        """Sum the tensors of a module; a tensor counts once per name."""
        numbers = self._module_totals.get(module)
        if numbers is None:
            numbers = NO_PARAMETERS
            for address in module.members:
                numbers = numbers.add(self._sum_over_loops(module, address, self._member_counts(module, address)))
            self._module_totals[module] = numbers
        return numbers

    def _member_counts(self, module: Module, address: str) -> ParameterCounts:
        """Sum the tensors at an address of a module, in one iteration."""
        member = module.members[address]
        target = member.target
        if isinstance(target, Module):
            numbers = self._module_total(target)
        elif target.kind == "param":
            size = _size(target)
            numbers = ParameterCounts(size, size if target.frozen else 0)
        else:
            numbers = NO_PARAMETERS
        return numbers.freeze(member.frozen)

    def _sum_over_loops(self, module: Module, address: str, numbers: ParameterCounts) -> ParameterCounts:
        """Sum `numbers` over the iterations of the loops around a member of a module."""
        return ParameterCounts(*[self._sum_part(module, address, part) for part in numbers])

    def _sum_part(self, module: Module, address: str, summand: Expression) -> Expression:
        for segment in reversed(self._enclosing_segments(module, address)):
            total = sum_over_index(summand, segment.symbol, segment.number)
            if total is None:
                self.solver.refuse_sum(summand, segment, module.members[address].span)
            summand = total
        return summand

    def _enclosing_segments(self, module: Module, address: str) -> tuple[Segment, ...]:
        return self.solver.enclosing_loops.get(module, {}).get(address, ())

    def tensor_total(self, module: Module, name: str) -> ParameterCounts:
        """Sum a tensor of a module over all iterations."""
        address = enclosing_member(module, name)
        assert address is not None
        member = module.members[address]
        if isinstance(member.target, ModuleTensor):
            numbers = self._member_counts(module, address)
        else:
            numbers = self.tensor_total(member.target, relative(name, address)).freeze(member.frozen)
        return self._sum_over_loops(module, address, numbers)

    def _build_terms(self, module: Module, prefix: str, frozen: bool) -> list[tuple[Hashable, FormulaTerm]]:
        """Return the terms of a module, each with a key: equal keys are merged, None is not."""
        terms: list[tuple[Hashable, FormulaTerm]] = []
        for address, member in module.members.items():
            segments = self._enclosing_segments(module, address)
            target = member.target
            is_block = (
                isinstance(target, Module) and target.kind == "block" and self.root.tensors <= MAX_EXPANDED_TENSORS
            )
            if isinstance(target, Module) and is_block and not segments and address_pattern(address) == address:
                terms += self._build_terms(target, f"{prefix}{address}.", frozen or member.frozen)
                continue
            numbers = self._member_counts(module, address)
            tied = self._aliases.get(prefix + address, [])
            for alias in tied:
                inner = alias[len(prefix) + len(address) + 1 :]
                one = self.tensor_total(target, inner) if isinstance(target, Module) else numbers
                numbers = numbers.add(one.freeze(member.frozen), -1)
            numbers = numbers.freeze(frozen)
            if numbers.total or not tied:
                key = None if segments else (target, address_pattern(address), tuple(tied))
                terms.append((key, self._build_term(module, address, prefix, numbers)))
        return [(key, term) for key, term in terms if term.total]

    def _build_term(self, module: Module, address: str, prefix: str, numbers: ParameterCounts) -> FormulaTerm:
        segments = self._enclosing_segments(module, address)
        target = module.members[address].target
        type = target.type if isinstance(target, Module) else ""
        total = self._sum_over_loops(module, address, numbers)
        label = self.solver.translate(prefix + address)
        if not any(segment.symbol in symbols(numbers.total) for segment in segments):
            rounds = self._sum_part(module, address, 1)
            return FormulaTerm(label, type, rounds, numbers.total, total.total, total.frozen)
        if len(segments) != 1:
            return FormulaTerm(label, type, 1, total.total, total.total, total.frozen)
        (segment,) = segments
        variable, first, stride = segment.variable, segment.first, segment.stride
        while variable in self.solver.state.hyperparameters:
            variable += "_"
        each = substitute(numbers.total, {segment.symbol: ratio(index(variable) - first, stride) + 1})
        return FormulaTerm(label, type, segment.number, each, total.total, total.frozen, variable, first, stride)


def _merge_terms(terms: list[tuple[Hashable, FormulaTerm]]) -> list[FormulaTerm]:
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
