"""The two passes while hyperparameters are left open: a loop whose count is open is worked through once for all rounds.

What holds of one round, with an index that stands for any, holds of all; what a round hands to the next is proved by
induction. See `opening` for the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from archspec.dims import Dim, Symbolic, at_least
from archspec.formulas.assumptions import Opening
from archspec.formulas.restarts import Probed, Rescheduled, Rounds, Schedule, Segment, slope_of
from archspec.ir import Initial, Member, Module, Type, Weight, find
from archspec.lower.address import address_text
from archspec.lower.evaluate import Evaluator
from archspec.lower.flow import Flow
from archspec.lower.operands import report_require
from archspec.lower.own import Owner
from archspec.lower.plan import Repeat, assigned, bound_names, indices, names_in
from archspec.lower.program import Refused
from archspec.lower.values import POISON, Several, Tensor, key_of
from archspec.syntax import tree

MOST_PROBED = 2
"""How many rounds are worked through singly to see what a round changes."""

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class Opened(Evaluator):
    """What both passes do alike."""

    around: tuple[Segment, ...] = ()
    """The loops of this definition that are being worked through as one."""

    @property
    def opening(self) -> Opening:
        opening = self.program.opening
        assert opening is not None
        return opening

    def index_text(self, index: Any) -> str | None:
        return self.opening.index_text(index) if isinstance(index, Symbolic) else super().index_text(index)

    def require(self, node: tree.Require) -> None:
        if not self._required(node.condition):
            report_require(self, node)
            raise Refused

    def _required(self, expr: tree.Expr) -> bool:
        """Whether a condition holds; what is not known of it is assumed."""
        if isinstance(expr, tree.Binary) and expr.operator == "and":
            return self._required(expr.left) and self._required(expr.right)
        if isinstance(expr, tree.Binary) and expr.operator in _COMPARISONS:
            left, right = self.value(expr.left), self.value(expr.right)
            symbolic = isinstance(left, Symbolic) or isinstance(right, Symbolic)
            if symbolic and isinstance(left, int | Symbolic) and isinstance(right, int | Symbolic):
                known = self.opening.known(expr.operator, left - right)
                if known is None:
                    self.opening.assume(expr.operator, left, right, self.unit.span(expr))
                return known is not False
        return self.condition(expr) is not False

    def _plan(self, loop: tree.Loop) -> Rounds | None:
        """The rounds of a loop with an open count; None for any other."""
        first, last = self.value(loop.first), self.value(loop.last)
        if not (isinstance(first, int | Symbolic) and isinstance(last, int | Symbolic)):
            return None
        if isinstance(first, int) and isinstance(last, int):
            return None
        depth = len(self.around)
        key = (self.definition, first, last, depth)
        return self.opening.rounds(key, loop.variable, first, last, self.unit.span(loop), depth)

    def _enter(self, segment: Segment) -> None:
        self.around += (segment,)
        self.opening.active.append(segment)

    def _leave(self) -> None:
        self.around = self.around[:-1]
        self.opening.active.pop()

    def _one_by_one(self, rounds: Rounds) -> Iterator[Dim]:
        """The indices of rounds that hand nothing on."""
        yield from rounds.head
        for segment in rounds.segments:
            self._enter(segment)
            yield segment.position
            self._leave()
        yield from rounds.tail

    def _induct(
        self,
        loop: tree.Loop,
        rounds: Rounds,
        read: Callable[[], dict[str, Any]],
        write: Callable[[dict[str, Any]], None],
        run: Callable[[], None],
    ) -> None:
        """Works through rounds that hand on what `read` gives and `write` sets.

        What is handed on must be the same for every round, or grow by the same in every round, as the first ones show.
        """
        report, schedule = self.program.report, rounds.schedule
        states = [read()]
        for self.env[loop.variable] in rounds.head:
            run()
            states.append(read())
        base = states[-1]
        steps = _steps(states[-2], base) if len(states) > 1 else {}
        proved = True
        for segment in rounds.segments:
            if steps:
                write(self._moved(base, steps, segment.position - rounds.start))
            before = report.errors
            self.env[loop.variable] = segment.position
            self._enter(segment)
            run()
            self._leave()
            wanted = self._moved(base, steps, segment.position + 1 - rounds.start)
            proved = report.errors == before and _forms(read()) == _forms(wanted)
            if not proved:
                break
        if not proved:
            if base and schedule.prefix < MOST_PROBED:
                more = schedule._replace(prefix=schedule.prefix + 1)
                self.opening.reschedule(rounds.segments[0].key, more, Probed if report.failed else Rescheduled)
            if not report.failed:
                message = "a value carried by this loop is neither constant nor grows by a constant amount"
                self.opening.refuse(message, self.unit.span(loop))
        elif steps:
            write(self._moved(base, steps, rounds.stop - rounds.start))
        for self.env[loop.variable] in rounds.tail:
            run()

    def _moved(self, base: dict[str, Any], steps: dict[str, Any], times: Dim) -> dict[str, Any]:
        """A state after `times` rounds, each of which adds `steps`."""
        return {n: self._added(value, steps[n], times) if n in steps else value for n, value in base.items()}

    def _added(self, value: Any, step: Any, times: Dim) -> Any:
        if not isinstance(value, Tensor):
            return value + step * times
        shape = tuple([size + by * times for size, by in zip(value.type.shape, step, strict=True)])
        return self._tensor(Type(shape, value.type.dtype))

    def _tensor(self, type: Type) -> Tensor:
        raise AssertionError("ownership has no tensors")

    def _missing(self, module: Module, address: str) -> None:
        """Where an address is that of single rounds of a loop that is worked through as one, takes these out of it."""
        while True:
            member = next((a for a in module.members if address == a or address.startswith(a + ".")), None)
            if member is None:
                break
            target = module.members[member].target
            if isinstance(target, Weight) or address == member:
                return
            module, address = target, address[len(member) + 1 :]
        words = address.split(".")
        for own in module.members:
            parts = own.split(".")
            if len(parts) <= len(words):
                self._take_out(self.opening.around.get(module, {}).get(own, ()), parts, words)

    def _take_out(self, around: tuple[Segment, ...], parts: list[str], words: list[str]) -> None:
        """Takes the rounds before and at `words` out of the first loop in which these differ from `parts`."""
        part, word = next(((p, w) for p, w in zip(parts, words, strict=False) if p != w), ("", ""))
        for segment in around:
            if segment.text == part:
                schedule = self.opening.state.schedules.get(segment.key, Schedule())
                interval = self.opening.intervals.get(word)
                begin = interval[0] if interval is not None else int(word) + 1 if word.isdigit() else None
                singles = begin - segment.first + schedule.prefix if begin is not None else None
                if isinstance(singles, int):
                    self.opening.reschedule(segment.key, schedule._replace(prefix=singles))


class OpenOwner(Opened, Owner):
    """Works out one module. Its tensors have shapes, and no number of elements."""

    def _indices(self, loop: tree.Loop, length: int) -> Iterable[Any] | None:
        rounds = self._plan(loop)
        return super()._indices(loop, length) if rounds is None else self._one_by_one(rounds)

    def _repeat(self, entry: Repeat) -> None:
        rounds = self._plan(entry.loop)
        if rounds is None or not entry.owns:
            super()._repeat(entry)
            return
        names = set(bound_names(entry.body))
        carried = sorted(names & self.env.keys())

        def run() -> None:
            for name in names - {*carried}:
                self.env.pop(name, None)
            self._run(entry.body)

        self._induct(entry.loop, rounds, lambda: {n: self.env[n] for n in carried}, self.env.update, run)

    def _elements(self, sizes: tuple[Any, ...], node: tree.Listing) -> int | None:
        for value, item in zip(sizes, node.items, strict=True):
            if isinstance(value, Symbolic):
                if self.opening.known(">=", value - 1) is not True:
                    self.opening.assume(">=", value, 1, self.unit.span(item))
            elif value.__class__ is not int or value < 1:
                self._wrong_size(value, item)
                return None
        return 0

    def _initial(self, node: tree.Initial, axes: int) -> Initial | None:
        return None  # it decides no shape, and may be a number that is not known

    def _add(self, address: str | None, made: Module | Weight | None, node: tree.Own | tree.Param) -> None:
        self._check_index(node.address)
        super()._add(address, made, node)
        if address is not None and self.around:
            self.opening.around.setdefault(self.module, {})[address] = self.around

    def _check_index(self, node: tree.Address) -> None:
        """Every round must own at an address of its own."""
        for segment in self.around:
            if not any(self._tells_apart(index, segment) for index in indices(node)):
                message = f"cannot prove that this address differs in each iteration over `{segment.variable}`"
                self.opening.refuse(message, self.unit.span(node))

    def _tells_apart(self, index: tree.Expr, segment: Segment) -> bool:
        """Whether an index is another one in every round, and depends on nothing else that changes."""
        assert self.definition is not None
        names = set(names_in(index)) - self.definition.hyperparameters.keys()
        value = self.value(index)
        return names == {segment.variable} and _is_linear(index) and bool(slope_of(value, segment.symbol))

    def _tie(self, node: tree.Tie) -> None:
        if node.loop is None or self._plan(node.loop) is None:
            for segment in self.around:
                if not any(self._tells_apart(index, segment) for index in indices(node.alias)):
                    self.opening.refuse(
                        "this loop has an open iteration count and ties the same tensor in every iteration",
                        self.unit.span(node),
                    )
        elif not any(
            isinstance(index, tree.Name) and index.text == node.loop.variable for index in indices(node.alias)
        ):
            self.opening.refuse(
                "this loop has an open iteration count and ties the same tensor in every iteration",
                self.unit.span(node),
            )
        super()._tie(node)

    def _add_up(self) -> None:
        super()._add_up()
        for alias, counted, _ in self.ties:
            for address in (alias, counted):
                if find(self.module, address) is None:
                    self._missing(self.module, address)

    def _check_nesting(self) -> None:
        super()._check_nesting()
        several = [(a, m) for a, m in self.module.members.items() if "{" in a]
        for address, member in several:
            for other, second in self.module.members.items():
                if member.span != second.span and not self._apart(address.split("."), other.split(".")):
                    self.opening.refuse(
                        "this address may coincide with another one declared here", _later(member, second)
                    )

    def _apart(self, words: list[str], others: list[str]) -> bool:
        """Whether neither of two addresses can be or lie inside the other."""
        for word, other in zip(words, others, strict=False):
            if word == other:
                continue
            if not (_is_index(word) and _is_index(other)):
                return True
            one, two = self._interval(word), self._interval(other)
            if one and two and (at_least(two[0] - one[1], 0) or at_least(one[0] - two[1], 0)):
                return True
        return False

    def _interval(self, word: str) -> tuple[Dim, Dim] | None:
        return (int(word), int(word) + 1) if word.isdigit() else self.opening.intervals.get(word)


class OpenFlow(Opened, Flow):
    """Works out one body. A call in a loop that is worked through as one stands for those of all its rounds."""

    def _tensor(self, type: Type) -> Tensor:
        return self.slot(type)

    def _for(self, statement: tree.For) -> None:
        rounds = self._plan(statement.loop)
        if rounds is None:
            super()._for(statement)
            return
        names = set(assigned(statement.body))
        carried = sorted(names & self.env.keys())

        def run() -> None:
            for name in names - {*carried}:
                self.env.pop(name, None)
            self.execute(statement.body)

        self._induct(statement.loop, rounds, lambda: {n: self.env[n] for n in carried}, self.env.update, run)
        self.env.pop(statement.loop.variable, None)

    def _step(self, step: tree.Step, stream: Any) -> Any:
        rounds = self._plan(step.loop) if step.loop is not None else None
        if rounds is None or step.loop is None:
            return super()._step(step, stream)
        state = {"stream": stream}

        def run() -> None:
            if state["stream"] is not POISON:
                state["stream"] = self.step_once(step, state["stream"])

        self._induct(step.loop, rounds, lambda: dict(state), state.update, run)
        self.env.pop(step.loop.variable, None)
        return state["stream"]

    def resolve(self, node: tree.Reference) -> Any:
        address = address_text(self, node.address)
        if address is not None and self.module is not None and find(self.module, address) is None:
            self._missing(self.module, address)
        return super().resolve(node)


def _steps(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What a round adds to what it hands on, for sizes that it changes."""
    steps: dict[str, Any] = {}
    for name, value in after.items():
        first = before[name]
        if _form(value) == _form(first):
            continue
        if isinstance(value, Tensor) and isinstance(first, Tensor):
            if len(value.type.shape) == len(first.type.shape):
                steps[name] = tuple([b - a for a, b in zip(first.type.shape, value.type.shape, strict=True)])
        elif _is_size(value) and _is_size(first):
            steps[name] = value - first
    return steps


def _is_size(value: Any) -> bool:
    return value.__class__ is int or isinstance(value, Symbolic)


def _forms(state: dict[str, Any]) -> dict[str, Any]:
    return {name: _form(value) for name, value in state.items()}


def _form(value: Any) -> Any:
    """What is the same of two values that a round may hand on: for tensors, their types."""
    if isinstance(value, Tensor):
        return (Tensor, value.type)
    if isinstance(value, Several):
        return (Several, *[_form(v) for v in value.values])
    return key_of(value)


def _is_linear(expr: tree.Expr) -> bool:
    """Whether an expression is made of names and numbers by `+`, `-` and `*` alone."""
    match expr:
        case tree.Name() | tree.Literal():
            return True
        case tree.Binary(operator="+" | "-" | "*"):
            return _is_linear(expr.left) and _is_linear(expr.right)
        case _:
            return False


def _is_index(word: str) -> bool:
    return word.isdigit() or word.startswith("{")


def _later(one: Member, other: Member) -> Any:
    return max(one.span, other.span, key=lambda span: span.start)
