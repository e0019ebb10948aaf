"""Expressions over tensors, and definitions applied to them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from archspec.ir import Module, Weight
from archspec.ops import OPERATORS, Op
from archspec.pytorch.code import apply, bind, literal, method, name, py, sequence
from archspec.pytorch.operations import placed
from archspec.pytorch.plan import names_in as words_in
from archspec.pytorch.scope import match
from archspec.pytorch.tensors import Tensors
from archspec.pytorch.values import BOOL, FREE, INT, KIND, NONE, REAL, STATIC, Several, Val
from archspec.resolve.files import Definition
from archspec.syntax import tree

if TYPE_CHECKING:
    from archspec.pytorch.pages import Written

_DTYPES = {INT: "torch.int64", BOOL: "torch.bool"}


class Applying(Tensors):
    """Translates expressions."""

    elements: dict[int, ast.Name]  # what a round of a loop calls the layer that it applies

    def one(self, expr: tree.Expr) -> Val:
        """The value of an expression that has one."""
        return self.single(self.expr(expr), expr)

    def single(self, value: Val | Several, node: Any) -> Val:
        if isinstance(value, Several):
            self.refuse("several outputs are used as one", node)
        return value

    def chain(self, expr: tree.Chain, target: str | None, reuse: bool = False) -> Val | Several:
        raise NotImplementedError

    def expr(self, expr: tree.Expr) -> Val | Several:
        value = self._expr(expr)
        if isinstance(value, Val) and value.is_tensor and None in self.seen(expr).statics:
            return value._replace(optional=True)
        return value

    def _expr(self, expr: tree.Expr) -> Val | Several:
        if self.absent(expr):
            return NONE
        if self.is_static(expr):
            known = self.env.get(expr.text) if isinstance(expr, tree.Name) else None
            number = self.number(expr)
            if isinstance(known, Val) and known.name is not None and not known.is_tensor:
                return known._replace(counts=number.counts)  # of all rounds of a loop
            return number
        match expr:
            case tree.Name():
                return self._named_value(expr)
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

    def _named_value(self, expr: tree.Name) -> Val | Several:
        """What a name stands for, where it is a tensor in some use; it may have been bound to `none` before."""
        value = self.env[expr.text]
        if isinstance(value, Several) or value.is_tensor:
            return value
        dtypes = {t.dtype for t in self.seen(expr).types}
        if len(dtypes) != 1 or set(self.seen(expr).statics) - {None}:
            self.refuse("this is a tensor in one case and a number in another", expr)
        variable = self.variable(expr.text)
        return Val(name(variable), KIND[dtypes.pop()], self.rank(expr), name=variable, made=self.clock)

    def _conditional(self, expr: tree.Conditional) -> Val | Several:
        chosen = self.truth(expr.condition)
        if chosen is not None:
            value = expr.value if chosen else expr.otherwise
            return self.expr(value) if value is not None else NONE
        test = self.static(expr.condition)
        then, first = self.aside(lambda: self.one(expr.value))
        otherwise, second = self.aside(lambda: self.one(expr.otherwise) if expr.otherwise is not None else NONE)
        first, second = self.alike(first, second, expr)
        known = first if first.is_tensor else second
        if not then and not otherwise:
            code = ast.IfExp(test, first.code, second.code)
            value = Val(code, known.kind, known.rank, "option", (test, first, second), made=self.clock)
            return value._replace(shapes=first.shapes | second.shapes)
        target = self.fresh("chosen", "part")
        self.note(target)
        self.body.append(ast.If(test, [*then, bind(target, first.code)], [*otherwise, bind(target, second.code)]))
        return Val(name(target), known.kind, known.rank, made=self.clock)

    def alike(self, first: Val, second: Val, node: Any) -> tuple[Val, Val]:
        """Two values, one of which is taken, of one kind."""
        for a, b in ((first, second), (second, first)):
            if a.is_tensor and b.is_number:
                self.refuse("this is a tensor in one case and a number in another", node)
        if {first.kind, second.kind} == {REAL, FREE}:
            return self.streaming(first), self.streaming(second)
        return first, second

    # What is owned

    def reach(self, address: tree.Address) -> tuple[ast.expr, list[Module | Weight]]:
        """The code of something owned, however deep, and what it is: in other uses something else, perhaps."""
        parts = self.parts(address)
        places, code = self.places, None
        while True:
            for end in range(1, len(parts) + 1):
                targets = places.found(parts[:end])
                if targets:
                    place = places.place(parts[:end], code)
                    code, parts = place.code, parts[end:]
                    break
            else:
                self.refuse("this address is not owned in every use", address)
            if not parts:
                return code, targets
            definitions = {self.book.trace.definitions[t] for t in targets if isinstance(t, Module)}
            if len(definitions) != 1:
                self.refuse("what is owned on the way to this address is not the same in every use", address)
            places = self.book.places(definitions.pop())

    def callees(self, targets: Sequence[Module | Weight]) -> list[Definition]:
        """The definitions of modules, each once."""
        return list(dict.fromkeys(self.book.trace.definitions[t] for t in targets if isinstance(t, Module)))

    def _tensor(self, expr: tree.Reference) -> Val:
        code, targets = self.reach(expr.address)
        if None in self.seen(expr).statics and not isinstance(code, ast.Attribute):
            self.refuse("this tensor is not there in every use", expr)
        types = {t.type.dtype for t in targets if isinstance(t, Weight)}
        if len(types) != 1:
            self.refuse("this tensor is not of one type in every use", expr)
        return Val(code, KIND[types.pop()], self.rank(expr), op="weight", made=self.clock)

    def _own(self, expr: tree.Own, stream: Val | None) -> Val | Several:
        code, _ = self.reach(expr.address)
        inputs = expr.lists[1] if len(expr.lists) > 1 else None
        callees = self.callees(self.book.trace.targets(expr))
        return self._applied(self.elements.get(id(expr), code), callees, inputs, stream, expr)

    def _apply_owned(
        self, reference: tree.Reference, inputs: tree.Arguments | None, node: Any, stream: Val | None
    ) -> Val | Several:
        code, targets = self.reach(reference.address)
        return self._applied(code, self.callees(targets), inputs, stream, node)

    # Applying

    def _call(self, expr: tree.Call) -> Val | Several:
        if isinstance(expr.callee, tree.Reference):
            return self._apply_owned(expr.callee, expr.lists[0] if expr.lists else None, expr, None)
        if len(expr.lists) == 2:
            return self._apply(expr.callee, expr.lists[0], expr.lists[1], expr, None)
        callee = self.called(expr.callee)[0]
        takes = bool(callee.inputs if isinstance(callee, Op) else callee.node.inputs)
        hyper, inputs = (None, expr.lists[0]) if takes else (expr.lists[0], None)
        return self._apply(expr.callee, hyper, inputs, expr, None)

    def step(self, expr: tree.Expr, stream: Val) -> Val | Several:
        """What stands behind `|>`, applied to the stream."""
        if isinstance(expr, tree.Own):
            return self._own(expr, stream)
        if isinstance(expr, tree.Reference):
            return self._apply_owned(expr, None, expr, stream)
        if not isinstance(expr, tree.Call):
            return self._apply(expr, None, None, expr, stream)
        if isinstance(expr.callee, tree.Reference):
            return self._apply_owned(expr.callee, expr.lists[0] if expr.lists else None, expr, stream)
        first, *second = expr.lists
        if second:
            return self._apply(expr.callee, first, second[0], expr, stream)
        if any(a.value is not None and "_" in words_in(a.value) for a in first.items):
            return self._apply(expr.callee, None, first, expr, stream)
        return self._apply(expr.callee, first, None, expr, stream)

    def called(self, expr: tree.Expr) -> list[Definition | Op]:
        """What is applied, in all uses."""
        found = [v for v in self.seen(expr).statics.values() if isinstance(v, Definition | Op)]
        if not found:
            self.refuse("what is applied here is not known", expr)
        return found

    def _apply(
        self,
        named: tree.Expr,
        hyper: tree.Arguments | None,
        inputs: tree.Arguments | None,
        node: Any,
        stream: Val | None,
    ) -> Val | Several:
        callees = self.called(named)
        is_handed_on = isinstance(named, tree.Name) and named.text in self.env and self.varies(named.text)
        if len(callees) == 1 and not is_handed_on:
            callee = callees[0]
            if isinstance(callee, Op):
                return self._apply_op(callee, hyper, inputs, node, stream)
            return self._applied(name(self.book.written(callee).name), [callee], inputs, stream, node, hyper)
        code = self.static(named)
        operations = [c for c in callees if isinstance(c, Op)]
        definitions = [c for c in callees if isinstance(c, Definition)]
        if not operations:
            return self._applied(code, definitions, inputs, stream, node, hyper)
        value = self._inputs([operations[0].inputs[0].name], inputs, stream)[0]
        assert value is not None
        calls = [self._results(code, d, [value], node, hyper) for d in definitions]
        kind = REAL if value.kind == REAL else FREE
        if value.kind == INT:
            value = value._replace(code=py("x.to(dtype)", x=value.code, dtype=self.free_type()))
        called = apply(code, [value.code])
        if any(ast.dump(c.code) != ast.dump(called) or c.kinds != (kind,) for c in calls):
            self.refuse("what is applied here is called in another way in other uses", node)
        return Val(called, kind, self.rank(node), made=self.clock)

    def _apply_op(
        self, op: Op, hyper: tree.Arguments | None, inputs: tree.Arguments | None, node: Any, stream: Val | None
    ) -> Val | Several:
        given = match([a.name for a in op.attributes], hyper)
        settings = {word: self.static(item.value) for word, item in given.items() if item.value is not None}
        if any(i.variadic for i in op.inputs):
            values = self._variadic(inputs, stream)
        else:
            values = self._inputs([i.name for i in op.inputs], inputs, stream)
        if op.scalar is not None and values and all(v is not None and not v.is_tensor for v in values):
            return self.number(node)
        return self.operate(op.name, values, settings, node)

    def _variadic(self, arguments: tree.Arguments | None, stream: Val | None) -> list[Val | None]:
        if arguments is None:
            return [stream]
        with self.streaming_in(stream):
            return [self.one(a.value) for a in arguments.items if a.value is not None]

    def _inputs(self, names: Sequence[str], arguments: tree.Arguments | None, stream: Val | None) -> list[Val | None]:
        """The inputs of a use in declared order, None where absent."""
        if arguments is None:
            first = [stream] if stream is not None else []
            return [*first, *[None] * (len(names) - len(first))]
        values: list[Val | None] = []
        with self.streaming_in(stream):
            given = match(names, arguments)
            for word in names:
                item = given.get(word)
                value = self.one(item.value) if item is not None and item.value is not None else None
                values.append(None if value is not None and value.is_none else value)
        return values

    def _applied(
        self,
        code: ast.expr,
        callees: Sequence[Definition],
        inputs: tree.Arguments | None,
        stream: Val | None,
        node: Any,
        hyper: tree.Arguments | None = None,
    ) -> Val | Several:
        """One of several definitions applied, which must all be called in the same way."""
        names = [[e.name for e in callee.node.inputs] for callee in callees]
        if any(n != names[0] for n in names) and inputs is not None and any(i.name for i in inputs.items):
            self.refuse("what is applied here has other inputs in other uses", node)
        values = self._inputs(max(names, key=len), inputs, stream)
        results = [self._results(code, c, values[: len(n)], node, hyper) for c, n in zip(callees, names, strict=True)]
        first = results[0]
        for other in results[1:]:
            if ast.dump(other.code) != ast.dump(first.code) or other.kinds != first.kinds:
                self.refuse("what is applied here is called in another way in other uses", node)
            same = tuple(a if a == b else None for a, b in zip(first.ranks, other.ranks, strict=True))
            first = first._replace(ranks=same, is_causal=first.is_causal and other.is_causal)
        if len(first.kinds) > 1:
            return Several(first.code, first.kinds, first.ranks)
        kind = next(iter(first.kinds))
        if kind is None:
            return NONE
        rank = self.rank(node)
        op = "causal" if first.is_causal else ""
        return Val(first.code, kind, next(iter(first.ranks)) if rank is None else rank, op, made=self.clock)

    def _results(
        self, code: ast.expr, callee: Definition, values: Sequence[Val | None], node: Any, hyper: tree.Arguments | None
    ) -> Results:
        """A definition applied to its inputs."""
        written = self.book.written(callee)
        reals = {v.kind for v in values if v is not None and v.kind in (REAL, FREE)}
        is_free = callee.kind == "fn" and reals == {FREE}  # so is what it gives, then
        call = apply(code, *self._arguments(callee, written, values, is_free))
        if callee.kind == "fn":
            _, keywords = self.hyperparameters(callee, hyper, written.kept)
            call.keywords += [ast.keyword(word, value) for word, value in keywords.items()]
        if "dtype" in written.needs:
            call.keywords.append(ast.keyword("dtype", self.free_type()))
        if "device" in written.needs:
            placed(call, self.device())
        outputs = written.outputs
        present = [o for o in outputs if o.kind is not None]
        result = method(call, present[0].name) if written.record and len(present) == 1 else call
        kinds = tuple(FREE if is_free and o.kind == REAL else o.kind for o in outputs)
        ranks = tuple(o.rank for o in outputs)
        return Results(result, kinds, ranks, written.is_causal)

    def _arguments(
        self, callee: Definition, written: Written, values: Sequence[Val | None], is_free: bool
    ) -> tuple[list[ast.expr], dict[str, ast.expr]]:
        """The inputs of a use, by position up to the first that is left out or goes by name only.

        Reals that are free take the type of the stream, unless all are and the result shall be.
        """
        positional: list[ast.expr] = []
        named: dict[str, ast.expr] = {}
        by_name = False
        for value, entry, slot in zip(values, callee.node.inputs, written.inputs, strict=True):
            if slot is None:
                continue
            by_name = by_name or slot.by_name
            if value is None and slot.optional:
                by_name = True
                continue
            argument = literal(None)
            if value is not None:
                argument = value.code if is_free and value.kind == FREE else self._given(value, slot.kind, entry)
            if by_name:
                named[slot.name] = argument
            else:
                positional.append(argument)
        return positional, named

    def _given(self, value: Val, kind: str, entry: tree.Parameter) -> ast.expr:
        """An argument in the type that an input is declared to have."""
        if value.kind == kind == STATIC:
            if KIND[entry.type] != REAL or value.counts == REAL:
                return value.code
            if isinstance(value.code, ast.Constant) and isinstance(value.code.value, int):
                return literal(float(value.code.value))
            return py("float(x)", x=value.code)
        if not value.is_tensor:
            dtype = py(_DTYPES[kind]) if kind in _DTYPES else self.stream_type()
            return placed(apply(py("torch.full"), [sequence([]), value.code], {"dtype": dtype}), self.device())
        return self.streaming(value).code if kind == REAL else value.code


class Results(NamedTuple):
    """A definition applied: the code, and what comes out."""

    code: ast.expr
    kinds: tuple[str | None, ...]
    ranks: tuple[int | None, ...]
    is_causal: bool
