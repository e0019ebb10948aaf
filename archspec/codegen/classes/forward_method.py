"""The computation of a definition as the statements of a function: `forward`, or a plain function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from archspec.codegen.expressions.expressions import Expressions
from archspec.codegen.expressions.number_functions import ordered, requirement
from archspec.codegen.expressions.tensor_types import ForwardTypes, has_model_type
from archspec.codegen.python.trees import apply, bind, literal, method, name, py, reading, reads, sequence
from archspec.codegen.scope.attribute_paths import AttributePaths
from archspec.codegen.scope.context import Context
from archspec.codegen.scope.operations import add_device
from archspec.codegen.scope.scope import Scope
from archspec.codegen.scope.values import ABSENT_VALUE, FREE, INT, KIND, REAL, STATIC, CodeValue, MultipleOutputs
from archspec.compiler.elaborate.trace import DefinitionUse
from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.unit import Definition
from archspec.compiler.resolve.walk import Visitor

Env = dict[str, CodeValue | MultipleOutputs]


class ForwardMethod(Visitor):
    """Translates the body of a definition. `kinds` are those of its outputs so far, `present` which of them there are
    in some use; `record` is the tuple they come in. `fuses`: attention becomes one call.
    """

    def __init__(
        self,
        context: Context,
        definition: Definition,
        uses: Sequence[DefinitionUse],
        present: Sequence[bool],
        record: str | None,
        fuses: bool = True,
    ) -> None:
        is_function = definition.kind == "fn"
        parameters = context.parameters(definition)

        def hyperparameter(word: str) -> ast.expr:
            if is_function:
                return name(parameters[word])
            return method(name("self"), context.attribute(definition, word))

        places = AttributePaths([]) if is_function else context.places(definition)
        self.scope = Scope(context, definition, uses, places, hyperparameter)
        self.types = ForwardTypes(self.scope)
        self.expressions = Expressions(self.scope, self.types, fuses)
        self.static = self.expressions.static
        self.tensors = self.expressions.tensors
        self.present = present
        self.record = record
        self.kinds: dict[int, str] = {}
        self._rebound = _rebound(self.scope)
        self._collected: dict[str, tuple[str, tuple[ast.expr, str, int | None] | None]] = {}

    def run(self) -> list[ast.stmt]:
        """The statements of the body, without the sizes from shapes that they use."""
        self.visit(self.scope.form.body)
        statements = self.scope.statements
        for input in self.scope.given_tensors():
            variable, dtype = input.value.name, method(input.value.code, "dtype")
            if variable in statements.widened and reads(statements.body, dtype):  # bound again, it has another type
                kept = self.scope.fresh("model_dtype")
                replaced = [reading(statement, dtype, name(kept)) for statement in statements.body]
                statements.body = [bind(kept, dtype), *replaced]
        return statements.body

    def visit_assign(self, statement: nodes.Assign) -> None:
        self._check_loops(statement)
        scope, statements, words = self.scope, self.scope.statements, statement.targets
        if isinstance(statement.value, nodes.Collect):
            self._collect(words[0], statement.value)
            return
        if len(words) == 1:
            chain = statement.value if isinstance(statement.value, nodes.Chain) else None
            is_chain = chain is not None and not scope.is_static(chain) and words[0] != "_"
            if chain is not None and is_chain:
                value = self.expressions.chains.chain(chain, words[0])
            else:
                value = self.expressions.expr(statement.value)
            self._assign(words[0], self.expressions.single(value, statement.value))
            return
        value = self.expressions.expr(statement.value)
        if not isinstance(value, MultipleOutputs) or len(value.kinds) != len(words):
            scope.refuse("this has another number of outputs in other uses", statement.value)
        targets: list[ast.expr] = []
        for word, kind, rank in zip(words, value.kinds, value.ranks, strict=True):
            variable = "_" if word == "_" else statements.variable(word)
            if kind is not None:
                targets.append(name(variable))
            if word != "_":
                statements.note(variable)
                known = CodeValue(name(variable), kind or STATIC, rank, name=variable, made=statements.clock)
                scope.env[word] = known if kind is not None else ABSENT_VALUE
        target = targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Load())
        statements.body.append(bind(target, value.code))
        for word in words:
            if word in self._rebound and scope.env.get(word) is ABSENT_VALUE:
                statements.bind(statements.variable(word), literal(None))

    def _assign(self, word: str, value: CodeValue) -> None:
        if word == "_":
            return
        scope, statements = self.scope, self.scope.statements
        again = {statements.variable(w) for w in self._rebound}
        if value.name is not None and value.is_tensor and word not in self._rebound and value.name not in again:
            scope.env[word] = value  # another name for the same
            return
        variable = statements.variable(word)
        if word in scope.env:  # carried through a loop: what was made of the old value is not to be made again
            scope.forget()
        statements.bind_value(variable, value)
        if value.is_none:
            scope.env[word] = value
            return
        origin = value.code if value.kind == STATIC and value.origin is None else value.origin
        code = value.code
        if not isinstance(code, ast.Constant) or value.is_tensor or word in self._rebound:
            code = name(variable)
        scope.env[word] = value._replace(
            code=code, name=variable if isinstance(code, ast.Name) else None, origin=origin, made=statements.clock
        )

    def visit_require(self, statement: nodes.Require) -> None:
        """A check of a function's arguments; sizes alone are not checked."""
        if self._is_checked(statement.condition):
            self.scope.statements.body += requirement(self.static.verbatim, self.scope.unit.source.text, statement)

    def _check_loops(self, statement: nodes.Statement) -> None:
        """The checks of the bounds of loops in a function; those in a block are made in `__init__`."""
        for loop in walk.statement_loops(statement):
            if self._is_checked(loop.first, loop.last):
                self.scope.statements.body += ordered(self.static.verbatim, self.scope.unit.source.text, loop)

    def _is_checked(self, *required: nodes.Expr) -> bool:
        """Whether a function checks something: it depends on hyperparameters, and not on tensors."""
        words = {word for expr in required for word in walk.local_names(expr)}
        decides = not words.isdisjoint(self.scope.definition.hyperparameters)
        return self.scope.is_function and decides and all(map(self.scope.is_static, required))

    # Branches

    def visit_if(self, statement: nodes.If) -> bool:
        """Translates an `if`; whether it returns, whatever holds."""
        scope, statements = self.scope, self.scope.statements
        chosen = scope.truth(statement.condition)
        if chosen is not None:
            returns = self.visit(statement.body if chosen else statement.otherwise)
            for word in statement.binds:
                scope.env.setdefault(word, ABSENT_VALUE)
            return returns
        test = self.static.code(statement.condition)
        before = dict(scope.env)
        then, (first, ends) = statements.capture_statements(lambda: self._side(statement.body))
        scope.env = dict(before)
        otherwise, (second, ends_too) = statements.capture_statements(lambda: self._side(statement.otherwise))
        scope.env = before
        for word in statement.binds:
            if _is_none(first.get(word, ABSENT_VALUE)) and _is_none(second.get(word, ABSENT_VALUE)):
                scope.env[word] = ABSENT_VALUE
                continue
            if ends or ends_too:
                scope.env[word] = (first if ends_too else second).get(word, ABSENT_VALUE)
                continue
            scope.env[word] = self._joined(word, (first, then), (second, otherwise), statement)
        if then or otherwise:
            statements.body.append(ast.If(test, then or [ast.Pass()], otherwise))
        return ends and ends_too

    def _side(self, statements: Sequence[nodes.Statement]) -> tuple[Env, bool]:
        returns = self.visit(statements)
        return self.scope.env, returns

    def _joined(
        self, word: str, one: tuple[Env, list[ast.stmt]], other: tuple[Env, list[ast.stmt]], node: nodes.If
    ) -> CodeValue:
        """Merge a name after two branches; it is absent after a branch that does not bind it."""
        statements = self.scope.statements
        variable = statements.variable(word)
        known: list[CodeValue] = []
        for values, body in (one, other):
            known.append(self.expressions.single(values.get(word, ABSENT_VALUE), node))
            if known[-1].is_none:
                body.append(bind(variable, literal(None)))
        if {v.kind for v in known} == {REAL, FREE}:
            for value, (_, body) in zip(known, (one, other), strict=True):
                if value.kind == FREE:
                    body.append(bind(variable, self.tensors.in_model_type(value._replace(code=name(variable))).code))
            known = [v._replace(kind=REAL) for v in known]
        best = next((v for v in known if v.is_tensor), known[0] if not known[0].is_none else known[1])
        if best.is_tensor and any(v.is_number for v in known):
            self.scope.refuse("this is a tensor in one case and a number in another", node)
        statements.note(variable)
        joined = CodeValue(
            name(variable), best.kind, best.rank, name=variable, counts=best.counts, made=statements.clock
        )
        return joined._replace(optional=any(v.is_none or v.optional for v in known))

    # Loops

    def _collect(self, word: str, expr: nodes.Collect) -> None:
        """Append the value of an iteration to the list that is stacked after the loop."""
        value = self.expressions.one(expr.value)
        rank = None if value.rank is None else value.rank + 1
        into, axis = self._collected[word][0], self.static.code(expr.axis)
        self.scope.statements.body.append(ast.Expr(apply(method(name(into), "append"), [value.code])))
        self._collected[word] = (into, (axis, value.kind, rank))

    def visit_for(self, statement: nodes.For) -> None:
        self._check_loops(statement)
        scope, statements, loop = self.scope, self.scope.statements, statement.loop
        if not any(scope.was_evaluated(expr) for each in statement.body for expr in walk.statement_expressions(each)):
            return
        carried = [w for w in statement.binds if w in scope.env and w != "_"]
        index = statements.variable(loop.variable)

        def iteration() -> None:
            scope.forget()
            scope.env[loop.variable] = CodeValue(name(index), STATIC, 0, name=index)
            self.visit(statement.body)

        for word in statement.collects:
            self._collected[word] = (scope.fresh(f"all_{word}", f"collected_{word}"), None)
            statements.bind(self._collected[word][0], sequence([], ast.List))
        before = {w: self._carried(w, scope.env[w], loop) for w in carried}
        outside = dict(scope.env)
        while True:
            scope.env = outside | before
            inner, _ = statements.capture_statements(iteration)
            changed = {w: self._unify_carried(w, before[w], scope.env[w], loop) for w in carried}
            changed = {w: v for w, v in changed.items() if (v.kind, v.rank) != (before[w].kind, before[w].rank)}
            if not changed:
                break
            for word, value in changed.items():
                if (before[word].kind, value.kind) == (FREE, REAL):
                    statements.bind(statements.variable(word), self.tensors.in_model_type(before[word]).code)
            before |= changed
        for word in carried:
            value = scope.env[word]
            if isinstance(value, CodeValue) and (before[word].kind, value.kind) == (REAL, FREE):
                inner.append(bind(statements.variable(word), self.tensors.in_model_type(value).code))
        target, iterated = self.static.iterations(loop)
        statements.body.append(ast.For(target, iterated, inner, []))
        scope.env = outside | before
        scope.forget()
        for word in statement.collects:
            self._stack(word)

    def _stack(self, word: str) -> None:
        """Bind what a loop has collected under a name; nothing, where no model collects it."""
        into, found = self._collected.pop(word)
        if found is None:
            self.scope.env[word] = ABSENT_VALUE
            return
        axis, kind, rank = found
        statements, variable = self.scope.statements, self.scope.statements.variable(word)
        statements.bind(variable, py("torch.stack(parts, axis)", parts=name(into), axis=axis))
        self.scope.env[word] = CodeValue(name(variable), kind, rank, name=variable, made=statements.clock)

    def _carried(self, word: str, value: CodeValue | MultipleOutputs, loop: nodes.Loop) -> CodeValue:
        """A value that later iterations of a loop may replace, in its variable."""
        statements = self.scope.statements
        variable = statements.variable(word)
        known = self.expressions.single(value, loop)
        dtypes = {t.dtype for e in _reads(self.scope.form.body, word) for t in self.scope.types(e)}
        if known.is_number and dtypes:
            known = self._number_to_tensor(word, known, dtypes, loop)
            statements.bind(variable, known.code)
            self.expressions.begun.add(word)
        else:
            statements.bind(variable, self.static.named(word, loop))
        optional = known.optional or known.is_none
        made = statements.clock
        known = known._replace(op="", args=(), origin=None)
        return known._replace(code=name(variable), name=variable, made=made, optional=optional)

    def _number_to_tensor(self, word: str, number: CodeValue, dtypes: set[str], loop: nodes.Loop) -> CodeValue:
        """A number before a loop that reads it as a tensor: a tensor without axes."""
        kind = KIND[dtypes.pop()]
        kind = FREE if kind == REAL else kind
        if dtypes or (number.counts != kind and not (kind == FREE and number.counts in (REAL, INT))):
            self.scope.refuse(f"`{word}` changes its type from one iteration to the next", loop)
        dtype = self.types.free_type() if kind == FREE else py("torch.int64" if kind == INT else "torch.bool")
        begun = number.origin if isinstance(number.origin, ast.Constant) else number.code
        made = py("torch.full((), x, dtype=dtype)", x=begun, dtype=dtype)
        assert isinstance(made, ast.Call)
        return number._replace(code=add_device(made, self.types.device()), kind=kind)

    def _unify_carried(
        self, word: str, first: CodeValue, last: CodeValue | MultipleOutputs, loop: nodes.Loop
    ) -> CodeValue:
        """A carried value whose kind and rank hold before a loop and after each iteration."""
        value = self.expressions.single(last, loop)
        if not value.is_tensor:
            return first
        if not first.is_tensor:
            return value._replace(code=first.code, name=first.name, op="", args=(), made=first.made, optional=True)
        rank = first.rank if first.rank == value.rank else None
        if first.kind == value.kind:
            return first._replace(rank=rank)
        if {first.kind, value.kind} == {REAL, FREE}:
            return first._replace(kind=REAL, rank=rank)
        self.scope.refuse(f"`{word}` changes its type from one iteration to the next", loop)

    # What comes out

    def visit_return(self, statement: nodes.Return) -> bool:
        self._check_loops(statement)
        values: list[CodeValue | None] = []
        alone = len(statement.values) == 1
        for expr in statement.values:
            if isinstance(expr, nodes.Chain) and alone and not self.scope.is_static(expr):
                value = self.expressions.chains.chain(expr, None, reuse=True)
            else:
                value = self.expressions.expr(expr)
            if isinstance(value, MultipleOutputs):
                if not alone:
                    self.scope.refuse("several outputs are used as one", expr)
                self._give_all(value)
                return True
            values.append(None if value.is_none else self._result(value))
        self._give(values)
        return True

    def _result(self, value: CodeValue) -> CodeValue:
        """An output in the model's type; where nothing tells that, or in a function, it stays free."""
        return value if self.scope.is_function or not has_model_type(self.scope) else self.tensors.in_model_type(value)

    def _give(self, values: Sequence[CodeValue | None]) -> None:
        """Appends the `return` of values."""
        codes: list[ast.expr] = []
        for i, (value, present) in enumerate(zip(values, self.present, strict=True)):
            if present:
                codes.append(value.code if value is not None else literal(None))
                if value is not None and (value.is_tensor or i not in self.kinds):
                    self.kinds[i] = value.kind if value.kind != STATIC else REAL
        if self.record is not None:
            result: ast.expr = apply(name(self.record), codes)
        else:
            result = codes[0] if len(codes) == 1 else sequence(codes) if codes else literal(None)
        self.scope.statements.body.append(ast.Return(result))

    def _give_all(self, several: MultipleOutputs) -> None:
        """Appends the `return` of all outputs of something applied."""
        present = {i: kind for i, kind in enumerate(several.kinds) if kind is not None}
        self.kinds |= present
        if [i for i, p in enumerate(self.present) if p] != [*present]:
            self.scope.refuse("these outputs are not there in every use", self.scope.definition.node.name)
        code = several.code
        if self.record is not None:
            code = apply(name(self.record), [ast.Starred(code, ast.Load()) if len(present) > 1 else code])
        self.scope.statements.body.append(ast.Return(code))


def _rebound(scope: Scope) -> set[str]:
    """The names that are bound more than once: in several iterations of a loop, in two branches, or over an input."""
    body = scope.form.body
    words = [*walk.assigned_names(body), *[e.name for e in scope.form.inputs], *scope.definition.hyperparameters]
    inside = {w for s in body if isinstance(s, nodes.For | nodes.If) for w in walk.assigned_names((s,))}
    return inside | {w for w in words if words.count(w) > 1}


def _reads(statements: tuple[nodes.Statement, ...], word: str) -> Iterator[nodes.Expr]:
    """The expressions in statements that read a name."""
    for statement in walk.iter_statements(statements):
        for whole in walk.statement_expressions(statement):
            yield from (e for e in walk.iter_expressions(whole) if isinstance(e, nodes.Local) and e.name == word)


def _is_none(value: CodeValue | MultipleOutputs) -> bool:
    return isinstance(value, CodeValue) and value.is_none
