"""Chains: in one expression where they are short, else a line a step."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from archspec.ops import OPERATORS
from archspec.pytorch.applying import Applying
from archspec.pytorch.code import apply, name, names_in, py
from archspec.pytorch.layout import WIDTH, written
from archspec.pytorch.places import Pattern, pattern_of
from archspec.pytorch.plan import Branch, Owning, Plan, Repeat, plan_of
from archspec.pytorch.plan import names_in as words_in
from archspec.pytorch.values import FREE, REAL, STATIC, Several, Val
from archspec.syntax import tree

MOST_NESTED = 3
"""Steps of a chain that may stand in one expression; longer chains are a line each."""


class Chains(Applying):
    """Translates chains and the loops in them."""

    def chain(self, expr: tree.Chain, target: str | None, reuse: bool = False) -> Val | Several:
        """A chain: in one expression if it is short, else a line a step, into `target` or a new variable.

        With `reuse` the variable the stream begins in may be bound again, as nothing comes after.
        """
        steps = [step for step in expr.steps if not self._is_skipped(step)]
        plain = all(s.loop is None and (s.condition is None or self.truth(s.condition) is not None) for s in steps)
        is_part = target is None and not reuse
        with self.streaming_in(None):
            if plain and (is_part or len(steps) <= MOST_NESTED):
                before = list(self.body), dict(self.local), dict(self.bound)
                value = self._nested(expr.head, steps)
                fits = isinstance(value, Several) or len(written(value.code)) + len(target or "return") + 11 <= WIDTH
                if fits or is_part:
                    return value
                self.body, self.local, self.bound = before
            return self._lines(expr.head, steps, target, reuse)

    def _is_skipped(self, step: tree.Step) -> bool:
        """Whether a step does nothing in any use."""
        if step.loop is not None and not self.was_seen(step):
            return True
        return step.condition is not None and self.truth(step.condition) is False and step.otherwise is None

    def _nested(self, head: tree.Expr, steps: Sequence[tree.Step]) -> Val | Several:
        value = self.expr(head)
        for i, step in enumerate(steps):
            value = self._stepped(step, self._chosen(step), self._once(self.single(value, steps[i - 1]), step))
        return value

    def _once(self, stream: Val, step: tree.Step) -> Val:
        """A stream that is computed once, though a step takes it more than once."""
        if list(words_in(self._chosen(step))).count("_") < 2 or isinstance(stream.code, ast.Name | ast.Attribute):
            return stream
        variable = self.fresh("stream", "part")
        self.bind(variable, stream.code)
        return stream._replace(code=name(variable), name=variable, made=self.clock)

    def _chosen(self, step: tree.Step) -> tree.Expr:
        if step.condition is not None and self.truth(step.condition) is False and step.otherwise is not None:
            return step.otherwise
        return step.value

    def _stepped(self, step: tree.Step, value: tree.Expr, stream: Val) -> Val | Several:
        self.env["_"] = stream
        self.steps[id(value)] = step
        if step.operator:
            return self.operate(OPERATORS[step.operator], [stream, self.one(value)], {}, step)
        return self.step(value, stream)

    def _lines(self, head: tree.Expr, steps: Sequence[tree.Step], target: str | None, reuse: bool) -> Val | Several:
        last: Val | Several = self.one(head)
        later = {w for s in steps for e in (s.value, s.condition, s.otherwise) if e is not None for w in words_in(e)}
        variable = self._stream_variable(head, last, later, target, reuse)
        for i, step in enumerate(steps):
            value = self.single(last, steps[i - 1])
            if step.loop is not None:
                last = self._looped(step, step.loop, value, variable)
            elif step.condition is not None and self.truth(step.condition) is None:
                last = self._optional(step, value, variable)
            else:
                if not isinstance(value.code, ast.Name | ast.Attribute):
                    value = self._into(variable, value)
                last = self._stepped(step, self._chosen(step), value)
                if isinstance(last, Several):
                    continue
                last = self._into(variable, last)
        return last

    def _stream_variable(self, head: tree.Expr, value: Val, later: set[str], target: str | None, reuse: bool) -> str:
        if target is not None and target not in later:
            return self.variable(target)
        if reuse and isinstance(head, tree.Name) and isinstance(value.code, ast.Name) and value.kind == REAL:
            owner = next((w for w, v in self.local.items() if v == value.code.id), None)
            if owner is not None and owner not in later:
                return value.code.id
        return self.fresh("x", "h", "y", "out", "stream")

    def _into(self, variable: str, value: Val) -> Val:
        """Binds the variable of a chain to a value."""
        self.bind(variable, value.code)
        return value._replace(code=name(variable), name=None, made=self.clock)

    def _optional(self, step: tree.Step, stream: Val, variable: str) -> Val:
        """A step under a condition that is not the same everywhere."""
        assert step.condition is not None
        test = self.static(step.condition)
        if not isinstance(stream.code, ast.Name | ast.Attribute):
            stream = self._into(variable, stream)
        one, other = step.value, step.otherwise
        first, then = self.aside(lambda: self.single(self._stepped(step, one, stream), step))
        second, otherwise = self.aside(
            lambda: self.single(self._stepped(step, other, stream), step) if other is not None else stream
        )
        then, otherwise = self.alike(then, otherwise, step)
        if other is None:
            self._into(variable, otherwise)
        for body, value in ((first, then), (second, otherwise)):
            if other is not None or body is first:
                self.body, kept = body, self.body
                self.bind(variable, value.code)
                self.body = kept
        self.body.append(ast.If(test, first, second))
        both = then.shapes | otherwise.shapes
        return Val(
            name(variable), then.kind, then.rank, "option", (test, then, otherwise), made=self.clock, shapes=both
        )

    # Loops

    def _looped(self, step: tree.Step, loop: tree.Loop, stream: Val, variable: str) -> Val:
        self._into(variable, stream)
        self.forget()
        outer = self.env.get(loop.variable)
        index = self.variable(loop.variable)
        self.env[loop.variable] = Val(name(index), STATIC, 0)
        element = self._element(step, loop)
        value = stream._replace(code=name(variable), op="", args=(), name=None, made=self.clock)

        def round() -> Val:
            if step.condition is not None and self.truth(step.condition) is None:
                return self._optional(step, value, variable)
            once = self._once(value, step)
            result = self.single(self._stepped(step, self._chosen(step), once), step)
            return self._into(variable, self.streaming(result) if value.kind == REAL else result)

        inner, last = self.aside(round)
        if (value.kind, last.kind) == (FREE, REAL):
            self.bind(variable, self.streaming(value).code)
            value = value._replace(kind=REAL)
            inner, last = self.aside(round)
        if last.kind != value.kind:
            self.refuse("the stream changes its type from round to round", step)
        del self.env[loop.variable]
        if outer is not None:
            self.env[loop.variable] = outer
        target, rounds = self.rounds(loop, element, index in names_in(inner))
        self.body.append(ast.For(target, rounds, inner, []))
        return value._replace(rank=last.rank if last.rank == value.rank else None, made=self.clock)

    def _element(self, step: tree.Step, loop: tree.Loop) -> tuple[str, ast.expr] | None:
        """The variable for the layer of a round, where a loop applies what is in a list one after the other; and the
        list.
        """
        own = self._chosen(step)
        varies = step.condition is not None and self.truth(step.condition) is None
        if not isinstance(own, tree.Own) or self._start(loop) != 0 or varies:
            return None
        parts = self.parts(own.address)
        pattern = pattern_of(parts[:-1])
        last = parts[-1]
        is_index = isinstance(last, ast.Name) and last.id == self.variable(loop.variable)
        if not is_index or pattern not in self.places.lists or self.places.is_open(pattern):
            return None
        if any(names_in([p]) for p in parts[:-1] if isinstance(p, ast.expr)) or not self._fills(pattern):
            return None
        container = self.places.place(parts).container
        if container is None:
            return None
        word = next((p for p in reversed(parts[:-1]) if isinstance(p, str) and p.isidentifier()), "layer")
        element = self.fresh(_singular(word), "layer", "part")
        self.elements[id(own)] = name(element)
        return element, container

    def _fills(self, container: Pattern) -> bool:
        """Whether a container holds only what one statement owns."""
        return [p[: len(container)] for p in self._patterns(plan_of(self.definition))].count(container) == 1

    def _patterns(self, plan: Plan) -> Iterator[Pattern]:
        """The addresses that a plan owns something at, numbers left out."""
        for entry in plan:
            match entry:
                case Owning():
                    yield pattern_of([s.text or "0" for s in entry.node.address.segments])
                case Repeat():
                    yield from self._patterns(entry.body)
                case Branch():
                    yield from self._patterns((*entry.body, *entry.otherwise))
                case _:
                    pass

    def _start(self, loop: tree.Loop) -> int | None:
        first = self.static(loop.first)
        return first.value if isinstance(first, ast.Constant) and isinstance(first.value, int) else None

    def rounds(
        self, loop: tree.Loop, element: tuple[str, ast.expr] | None = None, counted: bool = True
    ) -> tuple[ast.expr, ast.expr]:
        """The variable of a `for`, and what it goes through."""
        index = name(self.variable(loop.variable))
        if element is not None:
            word, container = element
            if not counted:
                return name(word), container
            return ast.Tuple([index, name(word)], ast.Load()), py("enumerate(x)", x=container)
        bounds = [self.static(loop.last)]
        if self._start(loop) != 0:
            bounds.insert(0, self.static(loop.first))
        return index, apply(name("range"), bounds)

    def forget(self) -> None:
        """Values are no longer known by what they were made of: in a loop it may be another round's."""
        self.env = {w: v._replace(op="", args=()) if isinstance(v, Val) else v for w, v in self.env.items()}


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 2 else word
