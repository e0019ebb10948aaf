"""What a definition owns, as the statements of `__init__`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from archspec.elaborate.trace import Use
from archspec.ir import Module, Weight
from archspec.pytorch.code import apply, bind, literal, method, name, negated, py, text
from archspec.pytorch.code import names_in as names_in_code
from archspec.pytorch.forward import Forward
from archspec.pytorch.places import Part, Pattern, Place, address, pattern_of
from archspec.pytorch.plan import Bound, Branch, Owning, Plan, Repeat, Tying, bound_names, names_in, plan_of
from archspec.pytorch.starting import may_be_view, start, start_by_default
from archspec.pytorch.values import FREE, STATIC, Val
from archspec.resolve.files import Definition
from archspec.syntax import tree

if TYPE_CHECKING:
    from archspec.pytorch.book import Book

_EMPTY = {"": "", "int": ", dtype=torch.int64", "bool": ", dtype=torch.bool"}


class Making(Forward):
    """Translates ownership. Constant tables are tensors made of numbers alone, so `Forward` has what they take.

    `made` are the containers that are there already.
    """

    def __init__(self, book: Book, definition: Definition, uses: Sequence[Use]) -> None:
        super().__init__(book, definition, uses, book.places(definition))
        for word, parameter in book.parameters(definition).items():
            known = self.env[word]
            assert isinstance(known, Val)
            self.env[word] = known._replace(code=name(parameter))
        self.made: set[str] = set()
        self.shared: set[str] = set()  # addresses of tensors that several statements own, one of them at a time
        self.tying = False

    def run(self) -> None:
        plan = plan_of(self.definition)
        self._register(plan)
        self._plan(plan)
        self.tying = True  # when everything is owned
        self._plan(plan)

    def _register(self, plan: Plan) -> None:
        """Tensors that branches leave out are None; those that only a suffix does are so where they are made."""
        inside = [entry for entry in plan if isinstance(entry, Owning)]
        found: dict[str, list[Owning]] = {}
        for entry in _owned(plan):
            if isinstance(entry.node, tree.Param) and entry.loop is None and entry.address is not None:
                if not self._is_owned(entry):
                    continue
                found.setdefault(entry.address, []).append(entry)
        for where, entries in found.items():
            alone = len(entries) == 1 and entries[0] in inside
            if alone:
                continue
            self.shared.add(where)
            if tuple(where.split(".")) not in self.places.always:
                self._containers((entries[0],))
                if len({entry.node.kind for entry in entries if isinstance(entry.node, tree.Param)}) > 1:
                    message = "this is a parameter in one use, a buffer in another, and absent in a third"
                    self.refuse(message, entries[0].node.address)
                self._leave_out(entries[0])

    def _leave_out(self, entry: Owning) -> None:
        """A tensor that is not there is None."""
        place = self.places.place(self.parts(entry.node.address))
        if isinstance(entry.node, tree.Param) and isinstance(place.code, ast.Attribute) and place.container is not None:
            word = "register_parameter" if entry.node.kind == "param" else "register_buffer"
            call = apply(method(place.container, word), [literal(place.code.attr), literal(None)])
            self.body.append(ast.Expr(call))

    def device(self) -> ast.expr | None:
        return None

    def stream_type(self) -> ast.expr:
        return py("torch.get_default_dtype()")

    def free_type(self) -> ast.expr:
        return py("torch.float64")

    # Statements

    def _plan(self, plan: Plan) -> None:
        for entry in plan:
            match entry:
                case Owning() if not self.tying:
                    self._owning(entry)
                case Bound():
                    self.bind_number(entry)
                case Repeat():
                    self._repeat(entry)
                case Branch():
                    self._branch(entry)
                case Tying() if self.tying:
                    self._tie(entry.node)
                case _:
                    pass

    def bind_number(self, entry: Bound) -> None:
        """A name for a number or the like; ownership is about no others."""
        if len(entry.targets) == 1 and self.is_static(entry.value):
            self._assign(entry.targets[0], self.number(entry.value))

    def _branch(self, entry: Branch) -> None:
        chosen = self.truth(entry.condition)
        if chosen is not None:
            self._plan(entry.body if chosen else entry.otherwise)
            return
        if not self.is_static(entry.condition):
            return  # about what is given, which owns nothing; or never come to
        if not self.tying:
            self._containers((*entry.body, *entry.otherwise))
        test = self.static(entry.condition)
        before, env = set(self.made), dict(self.env)
        then, first = self.aside(lambda: self._planned(entry.body))
        self.made, self.env = set(before), dict(env)
        otherwise, second = self.aside(lambda: self._planned(entry.otherwise))
        self.made, self.env = before, env
        for word in dict.fromkeys(bound_names((*entry.body, *entry.otherwise))):
            if word not in first and word not in second:
                continue
            for values, body in ((first, then), (second, otherwise)):
                if word not in values:
                    body.append(bind(self.variable(word), literal(None)))
            self.env[word] = first.get(word) or second[word]
        if then or otherwise:
            self.body.append(ast.If(test, then, otherwise) if then else ast.If(negated(test), otherwise, []))

    def _planned(self, plan: Plan) -> dict[str, Val]:
        self._plan(plan)
        return {word: value for word, value in self.env.items() if isinstance(value, Val)}

    def _repeat(self, entry: Repeat) -> None:
        if not self.tying:
            self._containers(entry.body, entry.loop.variable)
        bounds = self._open_loop(entry.loop)
        if bounds is None:
            return
        before, env = set(self.made), dict(self.env)
        inner, _ = self.aside(lambda: self._plan(entry.body))
        self.made = before
        self.env = {word: self.env[word] for word in env}
        self._close_loop(entry.loop, bounds, inner)

    def _open_loop(self, loop: tree.Loop) -> tuple[ast.expr, ast.expr] | None:
        """The index of a loop and what it counts; None where that was never worked out."""
        if not (self.is_static(loop.first) and self.is_static(loop.last)):
            return None
        bounds = self.rounds(loop)
        self.env[loop.variable] = Val(bounds[0], STATIC, 0)
        return bounds

    def _close_loop(self, loop: tree.Loop, bounds: tuple[ast.expr, ast.expr], inner: list[ast.stmt]) -> None:
        self.env.pop(loop.variable, None)
        if inner:
            self.body.append(ast.For(*bounds, inner, []))

    # Owning

    def _owning(self, entry: Owning) -> None:
        if not self._is_owned(entry):
            return
        if entry.loop is None:
            self._containers((entry,))
            inner, _ = self.aside(lambda: self._own_once(entry))
            self._under(self._tests(entry), inner, entry)
        else:
            self._own_rounds(entry, entry.loop)

    def _is_owned(self, entry: Owning) -> bool:
        """Whether there is any use in which something is owned here."""
        return bool(self.book.trace.targets(entry.node))

    def _tests(self, entry: Owning) -> list[ast.expr]:
        """The conditions under which something is owned, where it is not in every use."""
        return [
            self.static(c) if wanted else negated(self.static(c))
            for c, wanted in entry.guards
            if self.truth(c) is None and self.is_static(c)
        ]

    def _under(self, tests: list[ast.expr], body: list[ast.stmt], entry: Owning) -> None:
        """Appends what is owned under conditions; a tensor that they leave out is None."""
        if tests:
            left_out: list[ast.stmt] = []
            if entry.address not in self.shared:
                left_out, _ = self.aside(lambda: self._leave_out(entry))
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
            match self.body[-1:]:
                case [ast.If(test=other, orelse=[]) as before] if text(other) == text(negated(test)) and not left_out:
                    before.orelse = body
                    return
                case _:
                    body = [ast.If(test, body, left_out)]
        self.body += body

    def _own_rounds(self, entry: Owning, loop: tree.Loop) -> None:
        self._containers((entry,), loop.variable)
        outer = self.env.get(loop.variable)
        bounds = self._open_loop(loop)
        if bounds is None:
            return
        before = set(self.made)
        inner, _ = self.aside(lambda: self._own_round(entry))
        self.made = before
        if not self._as_list(inner, bounds):
            self.body.append(ast.For(*bounds, inner, []))
        del self.env[loop.variable]
        if outer is not None:
            self.env[loop.variable] = outer

    def _own_round(self, entry: Owning) -> None:
        self._containers((entry,))
        inner, _ = self.aside(lambda: self._own_once(entry))
        self._under(self._tests(entry), inner, entry)

    def _as_list(self, inner: list[ast.stmt], bounds: tuple[ast.expr, ast.expr]) -> bool:
        """Makes `x = nn.ModuleList()` and a loop that only appends to x one expression."""
        match inner, self.body[-1:]:
            case (
                [ast.Expr(ast.Call(ast.Attribute(container, "append"), [made], []))],
                [ast.Assign([target], ast.Call(ast.Attribute(_, "ModuleList"), [], []))],
            ) if text(container) == text(target):
                index = bounds[0] if names_in_code([bounds[0]]) & names_in_code([made]) else name("_")
                rounds = ast.GeneratorExp(made, [ast.comprehension(index, bounds[1], [], 0)])
                self.body[-1] = bind(target, py("nn.ModuleList(rounds)", rounds=rounds))
                return True
            case _:
                return False

    def _own_once(self, entry: Owning) -> None:
        node = entry.node
        if "training" in [segment.text for segment in node.address.segments]:
            self.refuse("PyTorch's modules keep the name `training` for themselves", node.address)
        place = self.places.place(self.parts(node.address))
        frozen = "frozen" in node.modifiers
        if isinstance(node, tree.Param):
            self.tensor_at(place, node, frozen)
        else:
            self._put(place, self._made(node, frozen))

    def _made(self, node: tree.Own, frozen: bool) -> ast.expr:
        callees = self.callees(self.book.trace.targets(node))
        chosen = [c for c in self.called(node.callee) if c in callees]
        hyper = node.lists[0] if node.lists else None
        code = self.static(node.callee)
        calls: list[ast.expr] = []
        for callee in chosen:
            assert isinstance(callee, Definition)
            written = self.book.written(callee)
            calls.append(apply(code, *self.hyperparameters(callee, hyper, written.kept)))
        if any(ast.dump(call) != ast.dump(calls[0]) for call in calls):
            self.refuse("what is owned here is made in another way in other uses", node)
        return py("x.requires_grad_(False)", x=calls[0]) if frozen else calls[0]

    def _put(self, place: Place, code: ast.expr) -> None:
        if place.container is None or place.key is None:
            self.body.append(ast.Expr(apply(name("own"), [name("self"), address(place.parts), code])))
        elif pattern_of(place.parts[:-1]) in self.places.lists:
            self.body.append(ast.Expr(apply(method(place.container, "append"), [code])))
        else:
            self.body.append(bind(place.code, code))

    def _containers(self, plan: Plan, variable: str | None = None) -> None:
        """Makes the containers that a plan needs and that do not depend on the index of a loop, if one is given."""
        for entry in plan:
            match entry:
                case Owning():
                    self._around(entry, {variable} if variable else set())
                case Repeat():
                    self._containers(entry.body, entry.loop.variable)
                case Branch():
                    self._containers((*entry.body, *entry.otherwise), variable)
                case _:
                    pass

    def _around(self, entry: Owning, variables: set[str]) -> None:
        if not self._is_owned(entry):
            return
        if entry.loop is not None and entry.loop.variable not in self.env:
            variables = variables | {entry.loop.variable}
        parts: list[Part] = []
        for segment in entry.node.address.segments[:-1]:
            if segment.number is not None:
                words = set(names_in(segment.number))
                if words & variables or not words <= set(self.env):
                    return
                parts += self.parts(tree.Address(0, 0, (segment,)))
            else:
                parts.append(segment.text)
            pattern = pattern_of(parts)
            if self.places.is_open(pattern) or pattern in self.places.open:
                return
            self._container(self.places.place(parts), pattern)

    def _container(self, place: Place, pattern: Pattern) -> None:
        key = text(place.code)
        if key in self.made:
            return
        self.made.add(key)
        if pattern in self.places.lists:
            self._put(place, py("nn.ModuleList()"))
        else:
            self._put(place, py("nn.ModuleDict()" if pattern in self.places.dicts else "nn.Module()"))

    # Tensors

    def tensor_at(self, place: Place, node: tree.Param, frozen: bool) -> None:
        """A stored tensor, and how it starts out."""
        shape = self.static(node.shape)
        if node.value is not None:
            code = self._table(node, node.value, shape)
        elif node.kind == "buffer" or node.type:
            code = py(f"torch.zeros(shape{_EMPTY[node.type]})", shape=shape)
        else:
            code = py("torch.empty(shape)", shape=shape)
        if node.kind == "buffer":
            self._put_buffer(place, code)
            return
        self._put(place, py("nn.Parameter(x, requires_grad=False)" if frozen else "nn.Parameter(x)", x=code))
        if node.value is None and not node.type:
            self.initialise(place.code, node)

    def initialise(self, code: ast.expr, node: tree.Param) -> None:
        """Fills a parameter as the spec says, or as PyTorch would."""
        rank = len(node.shape.items)
        if node.initial is None:
            self.body.append(start_by_default(code, rank))
            return
        self.body.append(start(node.initial.name, code, [self.static(a) for a in node.initial.arguments]))

    def _put_buffer(self, place: Place, code: ast.expr) -> None:
        if isinstance(place.code, ast.Attribute) and place.container is not None and isinstance(place.key, str):
            call = apply(method(place.container, "register_buffer"), [literal(place.key), code])
            self.body.append(ast.Expr(call))
        else:
            self._put(place, code)

    def _table(self, node: tree.Param, value: tree.Expr, shape: ast.expr) -> ast.expr:
        """A constant table; reals are computed in float64 and rounded once."""
        found = self.one(value)
        if not found.is_tensor:
            dtype = _EMPTY[node.type] or ", dtype=torch.get_default_dtype()"
            return py(f"torch.full(shape, value{dtype})", shape=shape, value=found.code)
        code = found.code
        if found.kind == FREE:
            code = py("x.to(torch.get_default_dtype())", x=code)
        targets = [t for t in self.book.trace.targets(node) if isinstance(t, Weight)]
        if any(t.value is not None and may_be_view(t.value) for t in targets):
            code = py("x.clone(memory_format=torch.contiguous_format)", x=code)
        return code

    # Ties

    def _tie(self, node: tree.Tie) -> None:
        if node.condition is not None and (self.truth(node.condition) is False or not self.is_static(node.condition)):
            return
        if id(node) not in self.book.trace.ties:
            return  # never come to
        bounds = self._open_loop(node.loop) if node.loop is not None else None
        inner, _ = self.aside(lambda: self._tie_once(node))
        if node.condition is not None and self.truth(node.condition) is None:
            inner = list[ast.stmt]([ast.If(self.static(node.condition), inner, [])])
        if bounds is not None and node.loop is not None:
            self._close_loop(node.loop, bounds, inner)
        else:
            self.body += inner

    def _tie_once(self, node: tree.Tie) -> None:
        alias, targets = self.reach(node.alias)
        counted, _ = self.reach(node.counted)
        plain = isinstance(alias, ast.Attribute) and not isinstance(targets[0], Module)
        if plain and self.book.trace.ties[id(node)]:
            self.body.append(bind(alias, counted))
            return
        self.body.append(ast.Expr(apply(name("tie"), [name("self"), alias, counted])))


def _owned(plan: Plan) -> Iterator[Owning]:
    """All that a plan owns, in branches and loops, too."""
    for entry in plan:
        match entry:
            case Owning():
                yield entry
            case Repeat():
                yield from _owned(entry.body)
            case Branch():
                yield from _owned((*entry.body, *entry.otherwise))
            case _:
                pass
