"""What a definition computes, as the statements of a function: `forward`, or a plain function."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from archspec.elaborate.trace import Use
from archspec.pytorch.chains import Chains
from archspec.pytorch.code import bind, literal, method, name, py
from archspec.pytorch.places import Places
from archspec.pytorch.plan import assigned
from archspec.pytorch.values import FREE, NONE, REAL, STATIC, Several, Val
from archspec.resolve.files import Definition
from archspec.syntax import tree

if TYPE_CHECKING:
    from archspec.pytorch.book import Book


class Forward(Chains):
    """Translates the body of a definition. `kinds` are those of its outputs so far."""

    def __init__(self, book: Book, definition: Definition, uses: Sequence[Use], places: Places) -> None:
        super().__init__(book, definition, uses, places)
        self.kinds: dict[int, str] = {}
        self.elements = {}
        self.rebound = _rebound(definition)
        self.loops = 0

    def execute(self, statements: Sequence[tree.Statement]) -> bool:
        """Translates statements; whether the last of them returns, whatever holds."""
        for statement in statements:
            match statement:
                case tree.Bind():
                    self._bind(statement)
                case tree.Return():
                    self._return(statement)
                    return True
                case tree.If():
                    if self._if(statement):
                        return True
                case tree.For():
                    self._for(statement)
                case _:
                    pass
        return False

    def _bind(self, statement: tree.Bind) -> None:
        words = [t.text for t in statement.targets]
        if len(words) == 1:
            chain = statement.value if isinstance(statement.value, tree.Chain) else None
            is_chain = chain is not None and not self.is_static(chain) and words[0] != "_"
            value = self.chain(chain, words[0]) if chain is not None and is_chain else self.expr(statement.value)
            self._assign(words[0], self.single(value, statement.value))
            return
        value = self.expr(statement.value)
        if not isinstance(value, Several) or len(value.kinds) != len(words):
            self.refuse("this has another number of outputs in other uses", statement.value)
        targets: list[ast.expr] = []
        for word, kind, rank in zip(words, value.kinds, value.ranks, strict=True):
            variable = "_" if word == "_" else self.variable(word)
            if kind is not None:
                targets.append(name(variable))
            if word != "_":
                self.note(variable)
                known = Val(name(variable), kind or STATIC, rank, name=variable, made=self.clock)
                self.env[word] = known if kind is not None else NONE
        self.body.append(bind(_targets(targets), value.code))
        for word in words:
            if word in self.rebound and self.env.get(word) is NONE:
                self.bind(self.variable(word), literal(None))

    def _assign(self, word: str, value: Val) -> None:
        if word == "_":
            return
        again = {self.variable(w) for w in self.rebound}
        if value.name is not None and value.is_tensor and word not in self.rebound and value.name not in again:
            self.env[word] = value  # another name for the same
            return
        variable = self.variable(word)
        if word in self.env:  # carried through a loop: what was made of the old value is not to be made again
            self.forget()
        self.bind(variable, value.code)
        if value.is_none:
            self.env[word] = value
            return
        origin = (value.code,) if value.kind == STATIC and not value.args else value.args
        self.env[word] = value._replace(code=name(variable), name=variable, args=origin, made=self.clock)

    # Branches

    def _if(self, statement: tree.If) -> bool:
        """Translates an `if`; whether it returns, whatever holds."""
        chosen = self.truth(statement.condition)
        if chosen is not None:
            returns = self.execute(statement.body if chosen else statement.otherwise)
            for word in assigned((statement,)):
                self.env.setdefault(word, NONE)
            return returns
        if not self.is_static(statement.condition):
            return False  # never come to
        test = self.static(statement.condition)
        before = dict(self.env)
        then, (first, ends) = self.aside(lambda: self._side(statement.body))
        self.env = dict(before)
        otherwise, (second, ends_too) = self.aside(lambda: self._side(statement.otherwise))
        self.env = before
        for word in dict.fromkeys(assigned((statement,))):
            if _is_none(first.get(word, NONE)) and _is_none(second.get(word, NONE)):
                self.env[word] = NONE
                continue
            if ends or ends_too:
                left = (first if ends_too else second).get(word)
                if left is not None:
                    self.env[word] = left
                continue
            self.env[word] = self._joined(word, (first, then), (second, otherwise), statement)
        if then or otherwise:
            self.body.append(ast.If(test, then or [ast.Pass()], otherwise))
        return ends and ends_too

    def _side(self, statements: Sequence[tree.Statement]) -> tuple[dict[str, Val | Several], bool]:
        returns = self.execute(statements)
        return self.env, returns

    def _joined(
        self,
        word: str,
        one: tuple[dict[str, Val | Several], list[ast.stmt]],
        other: tuple[dict[str, Val | Several], list[ast.stmt]],
        node: tree.If,
    ) -> Val:
        """A name after two branches; the one that does not bind it leaves it absent."""
        variable = self.variable(word)
        known: list[Val] = []
        for values, body in (one, other):
            known.append(self.single(values.get(word, NONE), node))
            if known[-1].is_none:
                body.append(bind(variable, literal(None)))
        if {v.kind for v in known} == {REAL, FREE}:
            for value, (_, body) in zip(known, (one, other), strict=True):
                if value.kind == FREE:
                    body.append(bind(variable, self.streaming(value._replace(code=name(variable))).code))
            known = [v._replace(kind=REAL) for v in known]
        best = next((v for v in known if v.is_tensor), known[0] if not known[0].is_none else known[1])
        if best.is_tensor and any(v.is_number for v in known):
            self.refuse("this is a tensor in one case and a number in another", node)
        self.note(variable)
        joined = Val(name(variable), best.kind, best.rank, name=variable, counts=best.counts, made=self.clock)
        return joined._replace(optional=any(v.is_none or v.optional for v in known))

    # Loops

    def _for(self, statement: tree.For) -> None:
        if not any(map(self.was_seen, _expressions(statement.body))):
            return
        loop = statement.loop
        carried = [w for w in dict.fromkeys(assigned(statement.body)) if w in self.env and w != "_"]
        index = self.variable(loop.variable)

        def round() -> None:
            self.forget()
            self.env[loop.variable] = Val(name(index), STATIC, 0, name=index)
            self.loops += 1
            self.execute(statement.body)
            self.loops -= 1

        before = {w: self._carried(w, self.env[w], loop) for w in carried}
        outside = dict(self.env)
        while True:
            self.env = outside | before
            inner, _ = self.aside(round)
            changed = {w: self._met(w, before[w], self.env[w], loop) for w in carried}
            changed = {w: v for w, v in changed.items() if (v.kind, v.rank) != (before[w].kind, before[w].rank)}
            if not changed:
                break
            for word, value in changed.items():
                if (before[word].kind, value.kind) == (FREE, REAL):
                    self.bind(self.variable(word), self.streaming(before[word]).code)
            before |= changed
        for word in carried:
            value = self.env[word]
            if isinstance(value, Val) and (before[word].kind, value.kind) == (REAL, FREE):
                inner.append(bind(self.variable(word), self.streaming(value).code))
        target, rounds = self.rounds(loop)
        self.body.append(ast.For(target, rounds, inner, []))
        self.env = outside | before
        self.forget()

    def _carried(self, word: str, value: Val | Several, loop: tree.Loop) -> Val:
        """A value that later iterations of a loop may replace, by the name of its variable."""
        variable = self.variable(word)
        known = self.single(value, loop)
        optional = known.optional or known.is_none
        return known._replace(code=name(variable), name=variable, op="", args=(), made=self.clock, optional=optional)

    def _met(self, word: str, first: Val, last: Val | Several, loop: tree.Loop) -> Val:
        """A carried value whose kind and rank hold before a loop and after each iteration."""
        value = self.single(last, loop)
        if not value.is_tensor:
            return first
        if not first.is_tensor:
            return self._carried(word, value, loop)._replace(optional=True)
        rank = first.rank if first.rank == value.rank else None
        if first.kind == value.kind:
            return first._replace(rank=rank)
        if {first.kind, value.kind} == {REAL, FREE}:
            return first._replace(kind=REAL, rank=rank)
        self.refuse(f"`{word}` changes its type from round to round", loop)

    # What comes out

    def _return(self, statement: tree.Return) -> None:
        if self.loops:
            self.refuse("a `return` in a loop has no form in PyTorch", statement)
        values: list[Val | None] = []
        alone = len(statement.values) == 1
        for expr in statement.values:
            if isinstance(expr, tree.Chain) and alone and not self.is_static(expr):
                value = self.chain(expr, None, reuse=True)
            else:
                value = self.expr(expr)
            if isinstance(value, Several):
                if not alone:
                    self.refuse("several outputs are used as one", expr)
                self.book.give_all(self, value)
                return
            values.append(None if value.is_none else self.result(value))
        self.book.give(self, values)

    def result(self, value: Val) -> Val:
        """An output in the type of the stream; where there is none, or in a function, it stays free."""
        return value if self.is_function or not self.has_stream() else self.streaming(value)

    # Shapes

    def static(self, expr: tree.Expr) -> ast.expr:
        if isinstance(expr, tree.Listing) and any(isinstance(i, tree.Ellipsis_) for i in expr.items):
            return ast.Tuple([self._listing_item(i) for i in expr.items], ast.Load())
        return super().static(expr)

    def _listing_item(self, item: tree.Expr) -> ast.expr:
        if not isinstance(item, tree.Ellipsis_):
            return self.static(item)
        for entry, value in self.given_entries():
            items = entry.shape.items if entry.shape is not None else ()
            place = next((i for i, e in enumerate(items) if isinstance(e, tree.Ellipsis_)), None)
            if place is not None:
                after = len(items) - place - 1
                part = ast.Slice(literal(place) if place else None, literal(-after) if after else None)
                return ast.Starred(ast.Subscript(method(value.code, "shape"), part, ast.Load()), ast.Load())
        self.refuse("no input that is always given binds `...` here", item)

    def prelude(self, used: set[str]) -> list[ast.stmt]:
        """The sizes that the body uses, from the shapes of the inputs."""
        found: list[ast.stmt] = []
        bound: set[str] = set()
        always = self.given_entries()
        pairs = [p for p in zip(self.definition.node.inputs, self.inputs, strict=True) if p[1].is_tensor]
        sometimes = [p for p in pairs if not any(p[0] is e for e, _ in always)]
        for entry, value in [*always, *sometimes]:
            items = entry.shape.items if entry.shape is not None else ()
            split = next((i for i, e in enumerate(items) if isinstance(e, tree.Ellipsis_)), len(items))
            wanted: dict[int, str] = {}
            for i, item in enumerate(items):
                if isinstance(item, tree.Name) and self.is_dimension(item.text):
                    variable = self.variable(item.text)
                    if variable in used and variable not in bound:
                        bound.add(variable)
                        wanted[i if i <= split else i - len(items)] = variable
            if not wanted:
                continue
            shape = method(value.code, "shape")
            made = _unpacked(wanted, shape, len(items) if split == len(items) else None)
            is_given = any(entry is e for e, _ in always)
            found += made if is_given else [ast.If(py("x is not None", x=value.code), made, [])]
        return found

    def is_dimension(self, word: str) -> bool:
        """Whether a word of a shape in the head is a dimension that inputs bind."""
        inputs = [entry.name for entry in self.definition.node.inputs]
        return word in self.unit.dims and word not in self.definition.hyperparameters and word not in inputs


def _unpacked(wanted: dict[int, str], shape: ast.expr, rank: int | None) -> list[ast.stmt]:
    if rank is not None and len(wanted) > 1:
        targets: list[ast.expr] = [name(wanted.get(i, "_")) for i in range(rank)]
        return [bind(ast.Tuple(targets, ast.Load()), shape)]
    return [bind(v, ast.Subscript(shape, literal(i), ast.Load())) for i, v in wanted.items()]


def _targets(names: list[ast.expr]) -> ast.expr:
    """What several outputs are bound to; one that is alone is no tuple."""
    return names[0] if len(names) == 1 else ast.Tuple(names, ast.Load())


def _rebound(definition: Definition) -> set[str]:
    """The names that are bound more than once: in several rounds of a loop, or in two branches, or over an input."""
    body = definition.node.body
    words = [*assigned(body), *[e.name for e in definition.node.inputs]]
    inside = {w for s in body if isinstance(s, tree.For | tree.If) for w in assigned((s,))}
    return inside | {w for w in words if words.count(w) > 1}


def _is_none(value: Val | Several) -> bool:
    return isinstance(value, Val) and value.is_none


def _expressions(statements: Sequence[tree.Statement]) -> list[tree.Expr]:
    """Expressions of which each round of a loop comes to some."""
    found: list[tree.Expr] = []
    for statement in statements:
        match statement:
            case tree.Bind():
                found.append(statement.value)
            case tree.Return():
                found += statement.values
            case tree.If() | tree.Require():
                found.append(statement.condition)
            case tree.For():
                found += [statement.loop.first]
            case tree.Declare():
                found.append(statement.value)
            case _:
                pass
    return found
