"""What a definition owns, as the statements of `__init__`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from archspec.ir import Module
from archspec.lower.plan import Bound, Branch, Owning, Plan, Repeat, Requiring, Tying, plan_of
from archspec.lower.trace import Use
from archspec.lower.units import Definition
from archspec.pytorch.code import apply, bind, literal, method, name, names_in, py, text
from archspec.pytorch.forward import Forward
from archspec.pytorch.places import Part, Place, address, pattern_of
from archspec.pytorch.values import BOOL, FREE, INT, STATIC, Val
from archspec.syntax import tree

if TYPE_CHECKING:
    from archspec.pytorch.book import Book

_EMPTY = {"real": "", "int": ", dtype=torch.int64", "bool": ", dtype=torch.bool"}


class Making(Forward):
    """Translates ownership. Constant tables are tensors made of numbers alone, so `Forward` has what they take."""

    def __init__(self, book: Book, definition: Definition, uses: Sequence[Use]) -> None:
        super().__init__(book, definition, uses, book.places(definition))
        for word, parameter in book.parameters(definition).items():
            known = self.env[word]
            assert isinstance(known, Val)
            self.env[word] = known._replace(code=name(parameter))
        self.made: set[str] = set()
        self.ties: list[tree.Tie] = []  # made when everything is owned

    def run(self) -> None:
        self._plan(plan_of(self.definition))
        for node in self.ties:
            self._tie(node)

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
                case Owning():
                    self._owning(entry)
                case Bound():
                    self._bound(entry)
                case Repeat():
                    if entry.owns:
                        self._repeat(entry)
                case Branch():
                    self._branch(entry)
                case Requiring():
                    self.require(self.static(entry.node.condition), entry.node.message)
                case Tying():
                    self.ties.append(entry.node)
                case _:
                    pass

    def _bound(self, entry: Bound) -> None:
        if len(entry.targets) == 1 and self.is_static(entry.value):
            self._assign(entry.targets[0], self.number(entry.value))

    def _branch(self, entry: Branch) -> None:
        chosen = self.truth(entry.condition)
        if chosen is not None:
            self._plan(entry.body if chosen else entry.otherwise)
            return
        self._containers((*entry.body, *entry.otherwise))
        if not self.is_static(entry.condition):
            return  # about what is given, which owns nothing
        test = self.static(entry.condition)
        outer, self.body = self.body, []
        before = set(self.made)
        self._plan(entry.body)
        then, self.body = self.body, []
        self.made = set(before)
        self._plan(entry.otherwise)
        otherwise, self.body = self.body, outer
        self.made = before
        if then or otherwise:
            self.body.append(ast.If(test, then, otherwise) if then else ast.If(_negated(test), otherwise, []))

    def _repeat(self, entry: Repeat) -> None:
        self._containers(entry.body, entry.loop.variable)
        with_index = self._open_loop(entry.loop)
        outer, self.body = self.body, []
        before = set(self.made)
        self._plan(entry.body)
        self.made = before
        inner, self.body = self.body, outer
        self._close_loop(entry.loop, with_index, inner)

    def _open_loop(self, loop: tree.Loop) -> tuple[ast.expr, ast.expr]:
        bounds = self._rounds(loop, None, True)
        index = self.variable(loop.variable)
        self.env[loop.variable] = Val(name(index), STATIC, 0)
        return bounds

    def _close_loop(self, loop: tree.Loop, bounds: tuple[ast.expr, ast.expr], inner: list[ast.stmt]) -> None:
        self.env.pop(loop.variable, None)
        if inner:
            self.body.append(ast.For(*bounds, inner, []))

    def require(self, condition: ast.expr, message: str | None) -> None:
        """A check of the hyperparameters; the book drops it where it is about some that are not kept."""
        told = literal(message or f"{text(condition)} must hold")
        self.body.append(ast.If(_negated(condition), [ast.Raise(py("ValueError(told)", told=told))], []))

    # Owning

    def _owning(self, entry: Owning) -> None:
        tests: list[ast.expr] = []
        for condition, wanted in entry.guards:
            known = self.truth(condition)
            if known is not None and known is not wanted:
                return
            if known is None:
                if not self.is_static(condition):
                    return
                test = self.static(condition) if entry.loop is None else None
                if test is not None:
                    tests.append(test if wanted else _negated(test))
        if entry.loop is None:
            self._containers((entry,))
            outer, self.body = self.body, []
            self._own_once(entry)
            inner, self.body = self.body, outer
            self._under(tests, inner)
        else:
            self._own_rounds(entry, entry.loop)

    def _under(self, tests: list[ast.expr], body: list[ast.stmt]) -> None:
        if not tests:
            self.body += body
            return
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        self.body.append(ast.If(test, body, []))

    def _own_rounds(self, entry: Owning, loop: tree.Loop) -> None:
        self._containers((entry,), loop.variable, inside=False)
        bounds = self._open_loop(loop)
        outer, self.body = self.body, []
        before = set(self.made)
        tests = [self.static(c) if w else _negated(self.static(c)) for c, w in entry.guards if self.truth(c) is None]
        self._containers((entry,))
        self._own_once(entry)
        inner, self.body = self.body, outer
        self.made = before
        if tests:
            outer, self.body = self.body, []
            self._under(tests, inner)
            inner, self.body = self.body, outer
        listed = self._as_list(inner, bounds)
        self._close_loop(loop, bounds, [] if listed else inner)

    def _as_list(self, inner: list[ast.stmt], bounds: tuple[ast.expr, ast.expr]) -> bool:
        """Makes `x = nn.ModuleList()` and a loop that only appends to x one expression."""
        match inner, self.body[-1:]:
            case (
                [ast.Expr(ast.Call(ast.Attribute(container, "append"), [made], []))],
                [ast.Assign([target], ast.Call(ast.Attribute(_, "ModuleList"), [], []))],
            ) if text(container) == text(target):
                index = bounds[0] if names_in([bounds[0]]) & names_in([made]) else name("_")
                rounds = ast.GeneratorExp(made, [ast.comprehension(index, bounds[1], [], 0)])
                self.body[-1] = bind(target, py("nn.ModuleList(rounds)", rounds=rounds))
                return True
            case _:
                return False

    def _own_once(self, entry: Owning) -> None:
        node = entry.node
        place = self.places.place(self.parts(node.address))
        frozen = "frozen" in node.modifiers
        if isinstance(node, tree.Param):
            self.tensor_at(place, node, frozen)
            return
        self._put(place, self._made(node, frozen))

    def _made(self, node: tree.Own, frozen: bool) -> ast.expr:
        target = self.places.owned[pattern_of(self.parts(node.address))]
        assert isinstance(target, Module)
        callee = self.book.trace.definitions[target]
        written = self.book.written(callee)
        hyper = node.lists[0] if node.lists else None
        positional, keywords = self.hyperparameters(callee, hyper, written.kept)
        made = apply(self.static(node.callee), positional, keywords)
        return py("x.requires_grad_(False)", x=made) if frozen else made

    def _put(self, place: Place, code: ast.expr) -> None:
        if place.container is None or place.key is None:
            self.book.helpers.add("own")
            self.body.append(ast.Expr(apply(name("own"), [name("self"), address(place.parts), code])))
        elif pattern_of(place.parts[:-1]) in self.places.lists:
            self.body.append(ast.Expr(apply(method(place.container, "append"), [code])))
        else:
            self.body.append(bind(place.code, code))

    def _containers(self, plan: Plan, variable: str | None = None, inside: bool = True) -> None:
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
        if any(self.truth(c) is not None and self.truth(c) is not w for c, w in entry.guards):
            return
        if entry.loop is not None and entry.loop.variable not in self.env:
            variables = variables | {entry.loop.variable}
        parts: list[Part] = []
        for segment in entry.node.address.segments[:-1]:
            if segment.number is not None:
                words = {n.text for n in _names(segment.number)}
                if words & variables or not words <= set(self.env):
                    return
                parts += self.parts(tree.Address(0, 0, (segment,)))
            else:
                parts.append(segment.text)
            pattern = pattern_of(parts)
            if self.places.is_open(pattern) or pattern in self.places.open:
                return
            self._container(self.places.place(parts), pattern)

    def _container(self, place: Place, pattern: tuple[str, ...]) -> None:
        key = text(place.code)
        if key in self.made:
            return
        self.made.add(key)
        self._put(place, py("nn.ModuleList()") if pattern in self.places.lists else py("nn.Module()"))

    # Tensors

    def tensor_at(self, place: Place, node: tree.Param, frozen: bool) -> None:
        shape = self.static(node.shape)
        if node.value is not None:
            code = self._table(node, node.value, shape)
        elif node.kind == "buffer" or node.type:
            code = py(f"torch.zeros(shape{_EMPTY[node.type or 'real']})", shape=shape)
        else:
            code = py("torch.empty(shape)", shape=shape)
        if node.kind == "buffer":
            self._put_buffer(place, code)
            return
        trained = not frozen and not node.type
        self._put(place, py("nn.Parameter(x)" if trained else "nn.Parameter(x, requires_grad=False)", x=code))
        if node.value is None and not node.type:
            self.initialise(place.code, node, len(node.shape.items))

    def _put_buffer(self, place: Place, code: ast.expr) -> None:
        plain = isinstance(place.code, ast.Attribute) and place.container is not None
        if plain and isinstance(place.key, str):
            call = apply(method(place.container, "register_buffer"), [literal(place.key), code])  # pyright: ignore[reportArgumentType]
            self.body.append(ast.Expr(call))
        else:
            self._put(place, code)

    def _table(self, node: tree.Param, value: tree.Expr, shape: ast.expr) -> ast.expr:
        """A constant table; reals are computed in float64 and rounded once."""
        found = self.one(value)
        if not found.is_tensor:
            return py(f"torch.full(shape, value{_EMPTY[node.type or 'real']})", shape=shape, value=found.code)
        if found.kind in (INT, BOOL):
            return found.code
        return py("x.to(torch.get_default_dtype())", x=found.code) if found.kind == FREE else found.code

    def initialise(self, code: ast.expr, node: tree.Param, rank: int) -> None:
        """How a parameter starts out: as written, else as the weights and biases of PyTorch's linear layers do."""
        initial = node.initial
        if initial is None:
            matrix = "nn.init.kaiming_uniform_(x, a=math.sqrt(5))"
            vector = "nn.init.uniform_(x, -1 / math.sqrt(x.numel()), 1 / math.sqrt(x.numel()))"
            self.body.append(ast.Expr(py(matrix if rank > 1 else vector, x=code)))
            return
        arguments = [self.static(a) for a in initial.arguments]
        self.body.append(ast.Expr(_initial(initial.name, code, arguments)))

    # Ties

    def _tie(self, node: tree.Tie) -> None:
        if node.condition is not None and self.truth(node.condition) is False:
            return
        bounds = self._open_loop(node.loop) if node.loop is not None else None
        test = (
            self.static(node.condition) if node.condition is not None and self.truth(node.condition) is None else None
        )
        outer, self.body = self.body, []
        alias, target = self.reach(node.alias)
        counted, _ = self.reach(node.counted)
        if isinstance(target, Module):
            self.book.helpers.add("tie")
            self.body.append(ast.Expr(apply(name("tie"), [alias, counted])))
        elif isinstance(alias, ast.Call):
            self.book.helpers.add("own")
            self.body.append(ast.Expr(apply(name("own"), [_owner(alias), alias.args[0], counted])))
        else:
            self.body.append(bind(alias, counted))
        inner, self.body = self.body, outer
        if test is not None:
            inner = list[ast.stmt]([ast.If(test, inner, [])])
        if bounds is not None and node.loop is not None:
            self._close_loop(node.loop, bounds, inner)
        else:
            self.body += inner


def _owner(reached: ast.Call) -> ast.expr:
    """The module of `module.get_parameter("...")`."""
    assert isinstance(reached.func, ast.Attribute)
    return reached.func.value


def _initial(word: str, code: ast.expr, arguments: Sequence[ast.expr]) -> ast.expr:
    match word, [text(a) for a in arguments]:
        case "constant", ["0.0"]:
            return py("nn.init.zeros_(x)", x=code)
        case "constant", ["1.0"]:
            return py("nn.init.ones_(x)", x=code)
        case "constant", _:
            return py("nn.init.constant_(x, value)", x=code, value=arguments[0])
        case "normal", _:
            return py("nn.init.normal_(x, std=s)", x=code, s=arguments[0])
        case "truncated_normal", _:
            return py("nn.init.trunc_normal_(x, std=s, a=-2 * s, b=2 * s)", x=code, s=arguments[0])
        case "uniform", _:
            return py("nn.init.uniform_(x, a, b)", x=code, a=arguments[0], b=arguments[1])
        case _:
            return py("nn.init.xavier_uniform_(x)", x=code)


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


def _negated(test: ast.expr) -> ast.expr:
    match test:
        case ast.Compare(left, [operator], [right]) if type(operator) in _OPPOSITE:
            return ast.Compare(left, [_OPPOSITE[type(operator)]()], [right])
        case ast.UnaryOp(ast.Not(), inner):
            return inner
        case _:
            return py("not x", x=test)


def _names(expr: tree.Expr) -> list[tree.Name]:
    from archspec.lower.plan import parts

    found = [expr] if isinstance(expr, tree.Name) else []
    return found + [n for part in parts(expr) for n in _names(part)]
