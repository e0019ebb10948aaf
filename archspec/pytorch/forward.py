"""What a definition computes, as the statements of a function: `forward`, or a plain function."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from archspec.dims import Symbolic
from archspec.ir import Constant, Module, Type, Weight
from archspec.lower.plan import assigned
from archspec.lower.plan import names_in as words_in
from archspec.lower.trace import Use
from archspec.lower.units import Definition
from archspec.ops import OPERATORS, OPS, Op
from archspec.pytorch.attention import as_attention
from archspec.pytorch.code import apply, bind, literal, method, name, names_in, py, text
from archspec.pytorch.layout import WIDTH
from archspec.pytorch.operations import Cannot, Operands, emit, placed
from archspec.pytorch.places import Places, pattern_of
from archspec.pytorch.scope import Scope, match
from archspec.pytorch.values import BOOL, FREE, INT, REAL, STATIC, Several, Val
from archspec.syntax import tree

if TYPE_CHECKING:
    from archspec.pytorch.book import Book

MOST_NESTED = 3
"""Steps of a chain that may stand in one expression; longer chains are a line each."""

_KIND = {"real": REAL, "int": INT, "bool": BOOL}
_BOOLEAN = frozenset({"not", "eq", "ne", "lt", "le", "gt", "ge", "and", "or"})
_INTEGER = frozenset({"floor", "int", "arange"})
_REAL = frozenset(
    {"exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "erf", "real", "div", "softmax", "layer_norm"}
)
_INDICES = {"where": (0,), "embedding": (0,), "gather": (1,), "expert_linear": (1,)}
"""Inputs that choose, and have no part in the type of the result."""
_ALIKE = frozenset({"matmul", "linear", "expert_linear", "conv"})
"""Operations whose tensors must be of one type in PyTorch."""


class Forward(Scope):
    """Translates the body of a definition."""

    def __init__(self, book: Book, definition: Definition, uses: Sequence[Use], places: Places) -> None:
        super().__init__(book, definition, uses)
        self.places = places
        self.is_function = definition.kind == "fn"
        self.needs: set[str] = set()  # "dtype", "device": to be given to a function without tensors to tell
        self.kinds: dict[int, str] = {}  # of the outputs
        self.rebound = _rebound(definition.node.body)
        self.elements: dict[
            int, tuple[ast.Name, ast.expr]
        ] = {}  # what a round of a loop calls its layer, and their list
        self.local.update(book.parameters(definition))
        for word, parameter in book.parameters(definition).items():
            code = name(parameter) if self.is_function else method(name("self"), book.attribute(definition, word))
            self.env[word] = Val(code, STATIC, 0, real=self._is_real(word))
        self.inputs = [self._input(i, entry) for i, entry in enumerate(definition.node.inputs)]

    def _is_real(self, word: str) -> bool:
        return any(isinstance(use.values[word], float) for use in self.uses)

    def _input(self, index: int, entry: tree.Parameter) -> Val:
        """An input: absent in every use, a number in every use, or a tensor."""
        given = [use.given[index] for use in self.uses]
        types = [g for g in given if isinstance(g, Type)]
        if not types and not any(isinstance(g, Constant) for g in given):
            value = Val(literal(None), STATIC)
        else:
            variable = self.variable(entry.name)
            ranks = {len(t.shape) for t in types}
            rank = ranks.pop() if len(ranks) == 1 else None
            kind = _KIND[entry.type or "real"] if types else STATIC
            value = Val(name(variable), kind, rank, name=variable, real=not entry.type)
        self.env[entry.name] = value
        return value

    # Where new tensors are made

    def device(self) -> ast.expr | None:
        """The device of what goes in; None for PyTorch's choice."""
        for value, entry in zip(self.inputs, self.definition.node.inputs, strict=True):
            if value.is_tensor and entry.default is None:
                return method(value.code, "device")
        return self._from_weight("device")

    def stream_type(self) -> ast.expr:
        """The type of the reals that weights and inputs are."""
        for value, entry in zip(self.inputs, self.definition.node.inputs, strict=True):
            if value.kind == REAL and entry.default is None:
                return method(value.code, "dtype")
        return self._from_weight("dtype")

    def free_type(self) -> ast.expr:
        """The type in which reals are computed that no stream has a part in yet."""
        stream = self.stream_type()
        if isinstance(stream, ast.Name):
            return stream
        return py("torch.promote_types(stream, torch.float32)", stream=stream)

    def _from_weight(self, attribute: str) -> ast.expr:
        if not self.is_function:
            reached = self._any_weight(self.places, name("self"))
            if reached is not None:
                return method(reached, attribute)
        self.needs.add(attribute)
        return name(attribute)

    def _any_weight(self, places: Places, root: ast.expr) -> ast.expr | None:
        """The first parameter of reals that is always there."""
        for pattern, target in places.owned.items():
            if "#" in pattern:
                continue
            if isinstance(target, Weight):
                if target.kind == "param" and target.type.dtype == "real":
                    return places.place(pattern, root).code
                continue
            inner = self._any_weight(
                self.book.places(self.book.trace.definitions[target]), places.place(pattern, root).code
            )
            if inner is not None:
                return inner
        return None

    # Expressions

    def one(self, expr: tree.Expr) -> Val:
        """The value of an expression that has one."""
        value = self.expr(expr)
        if isinstance(value, Several):
            self.refuse("several outputs are used as one", expr)
        return value

    def expr(self, expr: tree.Expr) -> Val | Several:
        if self.absent(expr):
            return Val(literal(None), STATIC)
        if self.is_static(expr):
            known = self.env.get(expr.text) if isinstance(expr, tree.Name) else None
            return known if isinstance(known, Val) and known.name is not None else self.number(expr)
        match expr:
            case tree.Name():
                return self.env[expr.text]
            case tree.Unary():
                return self.operate("neg" if expr.operator == "-" else "not", [self.one(expr.operand)], {}, expr)
            case tree.Binary():
                values = [self.one(expr.left), self.one(expr.right)]
                return self.operate(OPERATORS[expr.operator], values, {}, expr)
            case tree.Conditional():
                return self._conditional(expr)
            case tree.Reference():
                return self._tensor(expr)
            case tree.Call():
                return self._call(expr)
            case tree.Own():
                return self._own(expr, None)
            case tree.Chain():
                return self.chain(expr, None)
            case _:
                self.refuse("this has no form in PyTorch", expr)

    def rank(self, node: Any) -> int | None:
        ranks = {len(t.shape) for t in self.seen(node).types}
        return ranks.pop() if len(ranks) == 1 else None

    def _conditional(self, expr: tree.Conditional) -> Val | Several:
        chosen = self.truth(expr.condition)
        if chosen is not None:
            value = expr.value if chosen else expr.otherwise
            return self.expr(value) if value is not None else Val(literal(None), STATIC)
        test = self.static(expr.condition)
        (then, first), (otherwise, second) = self._aside(expr.value), self._aside(expr.otherwise)
        kind = first.kind if first.is_tensor else second.kind
        rank = first.rank if first.is_tensor else second.rank
        if not then and not otherwise:
            return Val(_choice(test, first.code, second.code), kind, rank)
        target = self.fresh("chosen", "part")
        self.body.append(ast.If(test, [*then, bind(target, first.code)], [*otherwise, bind(target, second.code)]))
        return Val(name(target), kind, rank)

    def _aside(self, expr: tree.Expr | None) -> tuple[list[ast.stmt], Val]:
        """The value of an expression, and the statements it takes."""
        if expr is None:
            return [], Val(literal(None), STATIC)
        outer, self.body = self.body, []
        value = self.one(expr)
        inner, self.body = self.body, outer
        return inner, value

    def reach(self, address: tree.Address) -> tuple[ast.expr, Module | Weight]:
        """The code of something owned, however deep, and what it is."""
        parts = self.parts(address)
        places, code = self.places, None
        while True:
            for end in range(1, len(parts) + 1):
                target = places.owned.get(pattern_of(parts[:end]))
                if target is not None:
                    place = places.place(parts[:end], code)
                    code, parts = place.code, parts[end:]
                    break
            else:
                self.refuse("this address is not owned in every use", address)
            if not parts:
                return code, target
            assert isinstance(target, Module)
            places = self.book.places(self.book.trace.definitions[target])

    def _tensor(self, expr: tree.Reference) -> Val:
        code, target = self.reach(expr.address)
        assert isinstance(target, Weight)
        return Val(code, _KIND[target.type.dtype], len(target.shape), op="weight")

    # Operations

    def operate(self, op: str, values: Sequence[Val | None], settings: dict[str, ast.expr], node: Any) -> Any:
        """An operation; Several for one of several results."""
        kind = _result_kind(op, values)
        values = self._promoted(op, values, kind)
        if op == "matmul":
            found = as_attention(self, values)
            if found is not None:
                return found
        whole = {a.name: _default(a.default) for a in OPS[op].attributes if a.name not in settings} | settings
        operands = Operands(
            tuple(v.code if v is not None else None for v in values),
            tuple(v is not None and not v.is_tensor for v in values),
            whole,
            tuple(v.rank if v is not None else None for v in values),
            self.free_type,
            self.device,
        )
        try:
            code = emit(op, operands)
        except Cannot as problem:
            self.refuse(str(problem), node)
        if op == "split":
            count = len(_items(whole["sizes"]) or self._split_sizes(node))
            return Several(code, (kind,) * count, (values[0].rank if values[0] else None,) * count)
        if op == "topk":
            rank = values[0].rank if values[0] else None
            return Several(code, (kind, INT), (rank, rank))
        if op == "real" and kind == FREE and values[0] is not None and values[0].kind == BOOL:
            stream = self.stream_type()  # 0 and 1 are exact in every type
            return Val(py("x.to(dtype)", x=values[0].code, dtype=stream), REAL, values[0].rank)
        rank = self.rank(node) if not isinstance(node, tree.Chain) else None
        return Val(code, kind, rank, op, tuple(values), tuple(whole.items()))

    def _split_sizes(self, node: Any) -> Sequence[Any]:
        counts = {len(c.outputs) for use in self.uses for c in use.body.calls if c.span == self.unit.span(node)}
        if len(counts) != 1:
            self.refuse("this is split into another number of parts in other uses", node)
        return range(counts.pop())

    def _promoted(self, op: str, values: Sequence[Val | None], kind: str) -> list[Val | None]:
        """Operands with the types that PyTorch needs for what the language computes with any reals."""
        tensors = [v for v in values if v is not None and v.is_tensor]
        streams = [v for v in tensors if v.kind == REAL]
        if kind == REAL and streams and op not in ("where", "real"):
            wide = {FREE, INT} if op in _ALIKE else {FREE}
            return [self._as(v, streams[0]) if v is not None and v.kind in wide else v for v in values]
        if kind == REAL and streams and op == "where":
            return [self._as(v, streams[0]) if v is not None and v.kind == FREE else v for v in values]
        if kind == FREE and op not in ("real", "full") and not any(v.kind == FREE for v in tensors):
            return self._freed(op, values)
        return list(values)

    def _freed(self, op: str, values: Sequence[Val | None]) -> list[Val | None]:
        """Integers as reals, so that the result is one: the first of them, or all where types must agree."""
        changed: list[Val | None] = []
        done = False
        for value in values:
            if value is not None and value.kind == INT and not done:
                done = op not in _ALIKE
                value = value._replace(code=py("x.to(dtype)", x=value.code, dtype=self.free_type()), kind=FREE)
            changed.append(value)
        return changed

    def _as(self, value: Val, stream: Val) -> Val:
        """A tensor in the type of the stream."""
        simple = stream.name is not None or stream.op == "weight"
        dtype = method(stream.code, "dtype") if simple else self.stream_type()
        return value._replace(code=py("x.to(dtype)", x=value.code, dtype=dtype), kind=REAL)

    # Applying

    def _call(self, expr: tree.Call) -> Val | Several:
        if isinstance(expr.callee, tree.Reference):
            return self._apply_owned(expr.callee, expr.lists[0] if expr.lists else None, expr, None)
        callee = self.callee(expr.callee)
        if len(expr.lists) == 2:
            return self._apply(callee, expr.callee, expr.lists[0], expr.lists[1], expr, None)
        takes = bool(callee.inputs if isinstance(callee, Op) else callee.node.inputs)
        hyper, inputs = (None, expr.lists[0]) if takes else (expr.lists[0], None)
        return self._apply(callee, expr.callee, hyper, inputs, expr, None)

    def step(self, expr: tree.Expr, stream: Val) -> Val | Several:
        """What stands behind `|>`, applied to the stream."""
        if isinstance(expr, tree.Own):
            return self._own(expr, stream)
        if isinstance(expr, tree.Reference):
            return self._apply_owned(expr, None, expr, stream)
        if not isinstance(expr, tree.Call):
            return self._apply(self.callee(expr), expr, None, None, expr, stream)
        if isinstance(expr.callee, tree.Reference):
            return self._apply_owned(expr.callee, expr.lists[0] if expr.lists else None, expr, stream)
        callee = self.callee(expr.callee)
        first, *second = expr.lists
        if second:
            return self._apply(callee, expr.callee, first, second[0], expr, stream)
        if any(a.value is not None and "_" in words_in(a.value) for a in first.items):
            return self._apply(callee, expr.callee, None, first, expr, stream)
        return self._apply(callee, expr.callee, first, None, expr, stream)

    def callee(self, expr: tree.Expr) -> Definition | Op:
        """What is applied; one of those, if it is not the same everywhere."""
        found = [v for v in self.seen(expr).statics.values() if isinstance(v, Definition | Op)]
        if not found:
            self.refuse("what is applied here is not known", expr)
        return found[0]

    def _apply(
        self,
        callee: Definition | Op,
        named: tree.Expr,
        hyper: tree.Arguments | None,
        inputs: tree.Arguments | None,
        node: Any,
        stream: Val | None,
    ) -> Val | Several:
        several = len(self.seen(named).statics) > 1
        if isinstance(callee, Op) and not several:
            given = match([a.name for a in callee.attributes], hyper)
            settings = {word: self.static(item.value) for word, item in given.items() if item.value is not None}
            variadic = any(i.variadic for i in callee.inputs)
            values = self._inputs([i.name for i in callee.inputs], inputs, stream, variadic)
            if all(v is not None and not v.is_tensor for v in values) and values and callee.scalar is not None:
                return self.number(node)
            return self.operate(callee.name, values, settings, node)
        if several:
            values = self._inputs(["x"], inputs, stream)
            kind = values[0].kind if values[0] is not None else REAL
            code = apply(self.static(named), [v.code for v in values if v is not None])
            return Val(code, REAL if kind == REAL else FREE, self.rank(node))
        assert isinstance(callee, Definition)
        written = self.book.written(callee)
        values = self._inputs([e.name for e in callee.node.inputs], inputs, stream)
        _, keywords = self.hyperparameters(callee, hyper, written.kept)
        if "dtype" in written.needs:
            keywords["dtype"] = self.free_type()
        device = self.device() if "device" in written.needs else None
        if device is not None:
            keywords["device"] = device
        return self._result(callee, name(written.name), values, keywords, node)

    def _apply_owned(
        self, reference: tree.Reference, inputs: tree.Arguments | None, node: Any, stream: Val | None
    ) -> Val | Several:
        code, target = self.reach(reference.address)
        assert isinstance(target, Module)
        callee = self.book.trace.definitions[target]
        values = self._inputs([e.name for e in callee.node.inputs], inputs, stream)
        return self._result(callee, code, values, {}, node)

    def _own(self, expr: tree.Own, stream: Val | None) -> Val | Several:
        code, target = self.reach(expr.address)
        if id(expr) in self.elements:
            code = self.elements[id(expr)][0]
        assert isinstance(target, Module)
        callee = self.book.trace.definitions[target]
        inputs = expr.lists[1] if len(expr.lists) > 1 else None
        values = self._inputs([e.name for e in callee.node.inputs], inputs, stream)
        return self._result(callee, code, values, {}, expr)

    def _inputs(
        self, names: Sequence[str], arguments: tree.Arguments | None, stream: Val | None, variadic: bool = False
    ) -> list[Val | None]:
        """The inputs of a use in declared order, None where absent."""
        if arguments is None:
            return [stream, *[None] * (len(names) - 1)] if stream is not None else [None] * len(names)
        outer = self.env.get("_")
        if stream is not None:
            self.env["_"] = stream
        if variadic:
            values: list[Val | None] = [self.one(a.value) for a in arguments.items if a.value is not None]
        else:
            given = match(names, arguments)
            values = []
            for word in names:
                item = given.get(word)
                value = self.one(item.value) if item is not None and item.value is not None else None
                values.append(None if value is not None and _is_none(value) else value)
        if outer is not None:
            self.env["_"] = outer
        return values

    def _result(
        self, callee: Definition, code: ast.expr, values: Sequence[Val | None], keywords: dict[str, ast.expr], node: Any
    ) -> Val | Several:
        """A definition applied to its inputs."""
        written = self.book.written(callee)
        positional: list[ast.expr] = []
        named: dict[str, ast.expr] = {}
        gap = False
        for value, entry, slot in zip(values, callee.node.inputs, written.inputs, strict=True):
            if slot is None:
                continue
            if value is None:
                gap = gap or slot.optional
                if not slot.optional:
                    positional.append(literal(None))
                continue
            argument = self._given(value, slot.kind, entry)
            if gap:
                named[slot.name] = argument
            else:
                positional.append(argument)
        call = apply(code, positional, {**named, **keywords})
        outputs = written.outputs
        if len(outputs) == 1:
            if written.record:
                call = method(call, outputs[0].name)
            kind = outputs[0].kind
            op = "causal" if written.is_causal else ""
            return Val(call, kind or STATIC, self.rank(node), op)
        present = [o for o in outputs if o.kind is not None]
        if written.record and len(present) == 1:
            call = method(call, present[0].name)
        return Several(call, tuple(o.kind for o in outputs), tuple(o.rank for o in outputs))

    def _given(self, value: Val, kind: str, entry: tree.Parameter) -> ast.expr:
        """An argument in the type that an input is declared to have."""
        if kind == STATIC or value.kind == kind:
            return value.code
        if not value.is_tensor:
            dtype = {"int": py("torch.int64"), "bool": py("torch.bool")}.get(entry.type) or self.stream_type()
            return placed("torch.full((), value, dtype=dtype)", self.device(), value=value.code, dtype=dtype)
        if value.kind == FREE and kind == REAL:
            return py("x.to(dtype)", x=value.code, dtype=self.stream_type())
        return value.code

    # Chains

    def chain(self, expr: tree.Chain, target: str | None, reuse: bool = False) -> Val | Several:
        """A chain: in one expression if it is short, else a line a step, into `target` or a new variable.

        With `reuse` the variable the stream begins in may be bound again, as nothing comes after.
        """
        steps = [s for s in expr.steps if not (s.condition is not None and self._is_skipped(s))]
        plain = all(s.loop is None and (s.condition is None or self.truth(s.condition) is not None) for s in steps)
        outer = self.env.get("_")
        if plain and ((target is None and not reuse) or len(steps) <= MOST_NESTED):
            before = list(self.body)
            value = self._nested(expr.head, steps)
            fits = isinstance(value, Several) or len(text(value.code)) + len(target or "return") + 11 <= WIDTH
            if fits or (target is None and not reuse):
                self._restore(outer)
                return value
            self.body = before
        value = self._lines(expr.head, steps, target, reuse)
        self._restore(outer)
        return value

    def _restore(self, outer: Val | Several | None) -> None:
        if outer is None:
            self.env.pop("_", None)
        else:
            self.env["_"] = outer

    def _is_skipped(self, step: tree.Step) -> bool:
        assert step.condition is not None
        return self.truth(step.condition) is False and step.otherwise is None

    def _nested(self, head: tree.Expr, steps: Sequence[tree.Step]) -> Val | Several:
        value = self.expr(head)
        for step in steps:
            assert isinstance(value, Val)
            value = self._stepped(step, self._chosen(step), value)
        return value

    def _chosen(self, step: tree.Step) -> tree.Expr:
        if step.condition is not None and self.truth(step.condition) is False and step.otherwise is not None:
            return step.otherwise
        return step.value

    def _stepped(self, step: tree.Step, value: tree.Expr, stream: Val) -> Val | Several:
        self.env["_"] = stream
        if step.operator:
            return self.operate(OPERATORS[step.operator], [stream, self.one(value)], {}, step)
        return self.step(value, stream)

    def _lines(self, head: tree.Expr, steps: Sequence[tree.Step], target: str | None, reuse: bool) -> Val | Several:
        value = self.one(head)
        later = {w for s in steps for e in (s.value, s.condition, s.otherwise) if e is not None for w in words_in(e)}
        variable = self._stream_variable(head, value, later, target, reuse)
        last: Val | Several = value
        for step in steps:
            assert isinstance(last, Val)
            value = last
            if step.loop is not None:
                last = self._looped(step, step.loop, value, variable)
            elif step.condition is not None and self.truth(step.condition) is None:
                last = self._optional(step, value, variable)
            else:
                last = self._stepped(step, self._chosen(step), value)
                if isinstance(last, Several):
                    return last
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
        """Assigns a value to the variable of a chain."""
        if not (isinstance(value.code, ast.Name) and value.code.id == variable):
            self.body.append(bind(variable, value.code))
        return value._replace(code=name(variable), name=None)

    def _optional(self, step: tree.Step, stream: Val, variable: str) -> Val:
        """A step under a condition that is not the same everywhere."""
        assert step.condition is not None
        test = self.static(step.condition)
        outer, self.body = self.body, []
        then = self._one_of(self._stepped(step, step.value, stream), step)
        first, self.body = [*self.body, bind(variable, then.code)], []
        otherwise = stream
        if step.otherwise is not None:
            otherwise = self._one_of(self._stepped(step, step.otherwise, stream), step)
            self.body.append(bind(variable, otherwise.code))
        second, self.body = self.body, outer
        if step.otherwise is None:
            self._into(variable, stream)
        self.body.append(ast.If(test, first, second))
        return Val(name(variable), then.kind, then.rank, "option", (test, then, otherwise))

    def _one_of(self, value: Val | Several, node: Any) -> Val:
        if isinstance(value, Several):
            self.refuse("several outputs are used as one", node)
        return value

    def _looped(self, step: tree.Step, loop: tree.Loop, stream: Val, variable: str) -> Val:
        self._into(variable, stream)
        index = self.variable(loop.variable)
        self.env[loop.variable] = Val(name(index), STATIC, 0)
        element = self._element(step, loop)
        value = stream._replace(code=name(variable), op="", args=(), name=None)
        outer, self.body = self.body, []
        if step.condition is not None and self.truth(step.condition) is None:
            self._optional(step, value, variable)
        else:
            self._into(variable, self._one_of(self._stepped(step, self._chosen(step), value), step))
        inner, self.body = self.body, outer
        self.env.pop(loop.variable, None)
        target, rounds = self._rounds(loop, element, index in names_in(inner))
        self.body.append(ast.For(target, rounds, inner, []))
        return value

    def _element(self, step: tree.Step, loop: tree.Loop) -> str | None:
        """The variable for the layer of a round, where a loop applies what is in a list one after the other."""
        own = step.value
        if not isinstance(own, tree.Own) or self._start(loop) != 0:
            return None
        parts = self.parts(own.address)
        pattern = pattern_of(parts[:-1])
        last = parts[-1]
        is_index = isinstance(last, ast.Name) and last.id == self.variable(loop.variable)
        if not is_index or pattern not in self.places.lists or self.places.is_open(pattern):
            return None
        word = next((p for p in reversed(parts[:-1]) if isinstance(p, str) and p.isidentifier()), "layer")
        element = self.fresh(word.removesuffix("s") or word, "layer", "part")
        self.elements[id(own)] = (name(element), self.places.place(parts).container or name(element))
        return element

    def _start(self, loop: tree.Loop) -> int | None:
        first = self.static(loop.first)
        return first.value if isinstance(first, ast.Constant) and isinstance(first.value, int) else None

    def _rounds(self, loop: tree.Loop, element: str | None, counted: bool) -> tuple[ast.expr, ast.expr]:
        """The variable of a `for`, and what it goes through."""
        index = name(self.variable(loop.variable))
        if element is not None:
            container = next(c for e, c in self.elements.values() if e.id == element)
            if not counted:
                return name(element), container
            return ast.Tuple([index, name(element)], ast.Load()), py("enumerate(x)", x=container)
        bounds = [self.static(loop.last)]
        if self._start(loop) != 0:
            bounds.insert(0, self.static(loop.first))
        return index, apply(name("range"), bounds)

    # Statements

    def execute(self, statements: Sequence[tree.Statement]) -> None:
        for statement in statements:
            match statement:
                case tree.Bind():
                    self._bind(statement)
                case tree.Return():
                    self._return(statement)
                    return
                case tree.If():
                    self._if(statement)
                case tree.For():
                    self._for(statement)
                case _:
                    pass

    def _bind(self, statement: tree.Bind) -> None:
        words = [t.text for t in statement.targets]
        if len(words) == 1:
            word = words[0]
            if isinstance(statement.value, tree.Chain) and not self.is_static(statement.value):
                value = self.chain(statement.value, word)
            else:
                value = self.expr(statement.value)
            if isinstance(value, Several):
                self.refuse("several outputs are used as one", statement.value)
            self._assign(word, value)
            return
        value = self.expr(statement.value)
        if not isinstance(value, Several):
            self.refuse("this has one output in PyTorch", statement.value)
        targets: list[ast.expr] = []
        bound: list[tuple[str, Val]] = []
        for word, kind, rank in zip(words, value.kinds, value.ranks, strict=True):
            if kind is None:
                if word != "_":
                    bound.append((word, Val(literal(None), STATIC)))
                continue
            variable = "_" if word == "_" else self.variable(word)
            targets.append(name(variable))
            if word != "_":
                bound.append((word, Val(name(variable), kind, rank, name=variable)))
        self.body.append(bind(_targets(targets), value.code))
        self.env.update(bound)

    def _assign(self, word: str, value: Val) -> None:
        if word == "_":
            return
        if _is_none(value):
            if word in self.local and isinstance(self.env.get(word), Val) and self.env[word].code is not value.code:
                self.body.append(bind(self.variable(word), value.code))
            else:
                self.env[word] = value
                self.body.append(bind(self.variable(word), value.code))
            return
        if value.name is not None and value.is_tensor and word not in self.rebound:
            self.env[word] = value  # another name for the same
            return
        variable = self.variable(word)
        if word in self.env:  # carried through a loop: what was made of the old value is not to be made again
            self.env = {w: v._replace(op="", args=()) if isinstance(v, Val) else v for w, v in self.env.items()}
        if not (isinstance(value.code, ast.Name) and value.code.id == variable):
            self.body.append(bind(variable, value.code))
        origin = (value.code,) if value.kind == STATIC and not value.args else value.args
        self.env[word] = value._replace(code=name(variable), name=variable, args=origin)

    def _if(self, statement: tree.If) -> None:
        chosen = self.truth(statement.condition)
        if chosen is not None:
            self.execute(statement.body if chosen else statement.otherwise)
            return
        test = self.static(statement.condition)
        before = dict(self.env)
        sides: list[tuple[list[ast.stmt], dict[str, Val | Several]]] = []
        for side in (statement.body, statement.otherwise):
            outer, self.body = self.body, []
            self.env = dict(before)
            self.execute(side)
            sides.append((self.body, self.env))
            self.body = outer
        (then, first), (otherwise, second) = sides
        self.env = before
        for word in {**first, **second}:
            if first.get(word) is before.get(word) and second.get(word) is before.get(word):
                continue
            self.env[word] = self._joined(word, first, second, then, otherwise)
        self.body.append(ast.If(test, then, otherwise))

    def _joined(
        self,
        word: str,
        first: dict[str, Val | Several],
        second: dict[str, Val | Several],
        then: list[ast.stmt],
        otherwise: list[ast.stmt],
    ) -> Val:
        """A name after two branches; the one that does not bind it leaves it absent."""
        variable = self.variable(word)
        for values, body in ((first, then), (second, otherwise)):
            if word not in values:
                body.append(bind(variable, literal(None)))
        known = [v for v in (first.get(word), second.get(word)) if isinstance(v, Val)]
        best = next((v for v in known if v.is_tensor), known[0])
        return Val(name(variable), best.kind, best.rank, name=variable, real=best.real)

    def _for(self, statement: tree.For) -> None:
        loop = statement.loop
        index = self.variable(loop.variable)
        outer_env = dict(self.env)
        self.env = {w: v._replace(op="", args=()) if isinstance(v, Val) else v for w, v in self.env.items()}
        self.env[loop.variable] = Val(name(index), STATIC, 0)
        target, rounds = self._rounds(loop, None, True)
        outer, self.body = self.body, []
        self.execute(statement.body)
        inner, self.body = self.body, outer
        self.body.append(ast.For(target, rounds, inner, []))
        self.env = {
            word: (value if not isinstance(value, Val) else self.env.get(word, value))
            for word, value in outer_env.items()
        }

    def _return(self, statement: tree.Return) -> None:
        values: list[Val | None] = []
        for expr in statement.values:
            alone = len(statement.values) == 1
            if isinstance(expr, tree.Chain) and alone and not self.is_static(expr):
                value = self.chain(expr, None, reuse=True)
            else:
                value = self.expr(expr)
            if isinstance(value, Several):
                if not alone:
                    self.refuse("several outputs are used as one", expr)
                self._give_all(value)
                return
            values.append(None if _is_none(value) else self._streaming(value))
        self.book.give(self, values)

    def _give_all(self, several: Several) -> None:
        names = [self.fresh(f"part_{i + 1}") for i, kind in enumerate(several.kinds) if kind is not None]
        self.body.append(bind(_targets([name(n) for n in names]), several.code))
        remaining = iter(names)
        self.book.give(
            self,
            [
                Val(name(next(remaining)), kind, rank) if kind is not None else None
                for kind, rank in zip(several.kinds, several.ranks, strict=True)
            ],
        )

    def _streaming(self, value: Val) -> Val:
        """An output in the type of the stream; a function's stays free."""
        if self.is_function or value.kind != FREE:
            return value
        return value._replace(code=py("x.to(dtype)", x=value.code, dtype=self.stream_type()), kind=REAL)

    # Shapes

    def _listing_item(self, item: tree.Expr) -> ast.expr:
        if not isinstance(item, tree.Ellipsis_):
            return self.static(item)
        for entry, value in zip(self.definition.node.inputs, self.inputs, strict=True):
            items = entry.shape.items if entry.shape is not None else ()
            place = next((i for i, e in enumerate(items) if isinstance(e, tree.Ellipsis_)), None)
            if place is not None and value.is_tensor:
                after = len(items) - place - 1
                part = ast.Slice(literal(place) if place else None, literal(-after) if after else None)
                return ast.Starred(ast.Subscript(method(value.code, "shape"), part, ast.Load()), ast.Load())
        self.refuse("no input binds `...` here", item)

    def static(self, expr: tree.Expr) -> ast.expr:
        if isinstance(expr, tree.Listing) and any(isinstance(i, tree.Ellipsis_) for i in expr.items):
            return ast.Tuple([self._listing_item(i) for i in expr.items], ast.Load())
        return super().static(expr)

    def prelude(self, used: set[str]) -> list[ast.stmt]:
        """The sizes that the body uses, from the shapes of the inputs."""
        found: list[ast.stmt] = []
        bound: set[str] = set()
        pairs = list(zip(self.definition.node.inputs, self.inputs, strict=True))
        for entry, value in sorted(pairs, key=lambda pair: pair[0].default is not None):
            if entry.shape is None or not value.is_tensor:
                continue
            items = entry.shape.items
            split = next((i for i, e in enumerate(items) if isinstance(e, tree.Ellipsis_)), len(items))
            wanted: dict[int, str] = {}
            for i, item in enumerate(items):
                if isinstance(item, tree.Name) and item.text in self.unit.dims and item.text not in self.env:
                    variable = self.variable(item.text)
                    if variable in used and variable not in bound:
                        bound.add(variable)
                        wanted[i if i <= split else i - len(items)] = variable
            if not wanted:
                continue
            shape = method(value.code, "shape")
            made = self._unpacked(wanted, shape, len(items) if split == len(items) else None)
            found += made if entry.default is None else [ast.If(py("x is not None", x=value.code), made, [])]
        return found

    def _unpacked(self, wanted: dict[int, str], shape: ast.expr, rank: int | None) -> list[ast.stmt]:
        if rank is not None and len(wanted) > 1:
            targets: list[ast.expr] = [name(wanted.get(i, "_")) for i in range(rank)]
            return [bind(ast.Tuple(targets, ast.Load()), shape)]
        return [bind(v, ast.Subscript(shape, literal(i), ast.Load())) for i, v in wanted.items()]


def _targets(names: list[ast.expr]) -> ast.expr:
    """What several outputs are bound to; one that is alone is no tuple."""
    return names[0] if len(names) == 1 else ast.Tuple(names, ast.Load())


def _rebound(body: Sequence[tree.Statement]) -> set[str]:
    """The names that are bound more than once: in several rounds of a loop, or in two branches."""
    words = [w for s in body for w in assigned((s,))]
    inside = {w for s in body if isinstance(s, tree.For | tree.If) for w in assigned((s,))}
    return inside | {w for w in words if words.count(w) > 1}


def _is_none(value: Val) -> bool:
    return isinstance(value.code, ast.Constant) and value.code.value is None


def _choice(test: ast.expr, first: ast.expr, second: ast.expr) -> ast.expr:
    return ast.IfExp(test, first, second)


def _items(code: ast.expr) -> Sequence[ast.expr]:
    return code.elts if isinstance(code, ast.Tuple | ast.List) else ()


def _default(value: Any) -> ast.expr:
    assert not isinstance(value, Symbolic)
    return literal(value)


def _result_kind(op: str, values: Sequence[Val | None]) -> str:
    if op in _BOOLEAN:
        return BOOL
    if op in _INTEGER:
        return INT
    if op == "full":
        return FREE
    given = [v for i, v in enumerate(values) if v is not None and i not in _INDICES.get(op, ())]
    kinds = {v.kind for v in given}
    if REAL in kinds:
        return REAL
    if FREE in kinds or op in _REAL or any(v.kind == STATIC and v.real for v in given):
        return FREE
    return INT if INT in kinds or any(v.kind == STATIC for v in given) else BOOL
