"""Static expressions as code: what is known when a module is made, and sizes."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from archspec.codegen.expressions.number_functions import call, compose, operation, range_of
from archspec.codegen.python.trees import apply, bind, literal, name, names_in, negated, partial, py, sequence
from archspec.codegen.scope.attribute_paths import Part, address, join_parts
from archspec.codegen.scope.scope import Input, Scope, SourceNode, counts_as
from archspec.codegen.scope.values import STATIC, CodeValue
from archspec.compiler.elaborate.trace import AppliedNode, prebound_hyperparameters
from archspec.compiler.evaluate.values import Partial, Value
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.unit import Definition, is_numeric
from archspec.compiler.resolve.walk import multiple_of
from archspec.ir.ops import Op


class StaticCode:
    """Translates static expressions of a scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._settles = True

    def verbatim(self, expr: nodes.Expr) -> ast.expr:
        """The code of an expression, in which conditions that the model settles are written if about arguments."""
        self._settles = False
        made = self.code(expr)
        self._settles = True
        return made

    def code(self, expr: nodes.Expr) -> ast.expr:
        made = self._code(expr)
        if isinstance(made, ast.Constant) or names_in([made]):
            return made
        values = list(self.scope.trace.static_values(expr).values())
        return literal(values[0]) if len(values) == 1 and isinstance(values[0], int) else made

    def _code(self, expr: nodes.Expr) -> ast.expr:
        match expr:
            case nodes.Local():
                return self._local(expr)
            case nodes.Dimension():
                return name(self.scope.statements.variable(expr.key))
            case nodes.Global():
                return self._callable(expr.target, expr)
            case nodes.PipedValue():
                return self.scope.env["_"].code
            case nodes.ListLiteral():
                return sequence([self._size(item) for item in expr.items])
            case nodes.Binary():
                return self._binary(expr)
            case nodes.Conditional() if (chosen := self.settled(expr.condition)) is not None:
                value = expr.value if chosen else expr.otherwise
                return self.code(value) if value is not None else literal(None)
            case nodes.AddressReference() if self.scope.absent(expr):
                return literal(None)
            case nodes.Partial():
                return self._partial(expr, expr.arguments)
            case nodes.Apply() if any(isinstance(value, Partial) for value in self.statics(expr)):
                return self._partial(expr, expr.arguments.inputs or ())
            case nodes.Apply():
                return self._apply(expr)
            case _:
                return self._composed(expr)

    def _composed(self, expr: nodes.Expr) -> ast.expr:
        made = compose(expr, self.code)
        return made if made is not None else self.scope.refuse("this has no form in PyTorch", expr)

    def settled(self, condition: nodes.Expr) -> bool | None:
        """The truth of a condition that the model settles; verbatim, only of one that is not about arguments."""
        chosen = self.scope.truth(condition)
        if chosen is None or self._settles:
            return chosen
        return chosen if isinstance(self.code(condition), ast.Constant) else None

    def _local(self, expr: nodes.Local) -> ast.expr:
        scope, word = self.scope, expr.name
        known = scope.env[word]
        if isinstance(known, CodeValue) and known.is_none and not scope.absent(expr):
            return name(scope.statements.variable(word))  # or `none` in some uses or iterations only
        if isinstance(known, CodeValue) and known.is_tensor and set(scope.seen(expr).statics) - {None}:
            scope.refuse("this is a tensor in one case and a number in another", expr)
        return self.named(word, expr)

    def named(self, word: str, node: SourceNode) -> ast.expr:
        """What a name of the definition stands for."""
        for value in self.scope.settled(word):
            return self._callable(value, node)
        return self.scope.env[word].code

    def _callable(self, value: Value, node: SourceNode) -> ast.expr:
        """A value as code, which may be a definition or operation that is passed on."""
        code = self.scope.context.code_of(value)
        if code is None:
            what = f"the operation `{value.name}`" if isinstance(value, Op) else "this list"
            self.scope.refuse(f"{what} cannot be passed as a value in PyTorch", node)
        return code

    def _binary(self, expr: nodes.Binary) -> ast.expr:
        operator = expr.operator
        if operator in ("and", "or"):
            for side, other in ((expr.left, expr.right), (expr.right, expr.left)):
                known = self.settled(side)
                if known is not None:
                    return self.code(other) if known == (operator == "and") else literal(known)
        for side in (expr.left, expr.right):
            if isinstance(side, nodes.AddressReference):
                return self._declared(side.address, expr)
        has_none = any(self.scope.absent(side) for side in (expr.left, expr.right))
        if not has_none and any(isinstance(v, Partial) for s in (expr.left, expr.right) for v in self.statics(s)):
            return self._partials_compared(expr)
        return self._composed(expr)

    def _declared(self, where: nodes.Address, expr: nodes.Binary) -> ast.expr:
        """Whether something is declared at an address: the code of a comparison of it with `none`."""
        truth = self.scope.truth(expr)
        if truth is not None:
            return literal(truth)
        test = apply(name("has_part"), [name("self"), address(self.parts(where))])
        return negated(test) if expr.operator == "==" else test

    def statics(self, expr: nodes.Expr) -> list[Value]:
        """The values of a static expression in all uses."""
        return list(self.scope.trace.static_values(expr).values())

    def _partials_compared(self, expr: nodes.Binary) -> ast.expr:
        """Whether definitions with hyperparameters bound are equal, which Python cannot decide."""
        truth = self.scope.truth(expr)
        if truth is None:
            self.scope.refuse("definitions with bound hyperparameters cannot be compared in PyTorch", expr)
        return literal(truth)

    def _apply(self, expr: nodes.Apply) -> ast.expr:
        callees = self.scope.trace.static_values(expr.callee).values()
        functions = [callee for callee in callees if is_numeric(callee)]
        if functions:
            return self._call(functions, expr)
        op = next((callee for callee in callees if isinstance(callee, Op)), None)
        if op is None or not op.python:
            self.scope.refuse("this has no form in PyTorch as a number", expr)
        return operation(op, expr, self.code)

    def _call(self, functions: Sequence[Definition], expr: nodes.Apply) -> ast.expr:
        """A call of a function of numbers: its value, where its arguments are settled."""
        scope = self.scope
        if len(functions) > 1:
            scope.refuse("what is called here is another function in other uses", expr)
        (function,) = functions
        bound = scope.trace.bound_arguments(expr, function)
        forwarded = scope.definition.hyperparameters if expr.arguments.forward is not None else {}
        given: dict[str, ast.expr] = {}
        passed: list[nodes.Global] = []
        for word in function.hyperparameters:
            argument = bound.hyperparameters.get(word)
            if argument is None and word in forwarded:
                given[word] = self.named(word, expr)
            elif argument is not None and isinstance(argument.value, nodes.Global):
                passed.append(argument.value)
            elif argument is not None:
                given[word] = self.code(argument.value)
        values = list(scope.trace.static_values(expr).values())
        settled = scope.context.code_of(values[0]) if len(values) == 1 and not names_in(given.values()) else None
        if settled is not None:
            return settled
        for value in passed:
            if isinstance(value.target, Op):
                scope.refuse(f"the operation `{value.name}` cannot be passed as a value in PyTorch", value)
        given |= {
            word: self.code(argument.value) for word, argument in bound.hyperparameters.items() if word not in given
        }
        return call(scope.context, function, given)

    def _partial(self, expr: nodes.Partial | nodes.Apply, given: Sequence[nodes.Argument]) -> ast.expr:
        """A definition with hyperparameters bound."""
        partials = [value for value in self.statics(expr) if isinstance(value, Partial)]
        context = self.scope.context
        definitions = set(map(context.specialize, partials))
        definition = definitions.pop() if len(definitions) == 1 else None
        if definition is None or any(not argument.name for argument in given):
            self.scope.refuse("this definition is not the same in every use", expr)
        emitted, parameters = context.emitted(definition), context.parameters(definition)
        keywords = {parameters[a.name]: self.code(a.value) for a in given if a.name in emitted.kept}
        callee = name(emitted.name) if isinstance(expr.callee, nodes.Global) else self.code(expr.callee)
        return partial(callee, keywords)

    # Shapes

    def _size(self, item: nodes.Expr) -> ast.expr:
        """An item of a list; `...` are the leading dimensions, from the shape of an input."""
        if not isinstance(item, nodes.LeadingDimensions):
            return self.code(item)
        for input in self.scope.given_tensors():
            if input.has_leading:
                return ast.Starred(input.part(input.end), ast.Load())
        self.scope.refuse("no input that is always given binds `...` here", item)

    # Uses

    def callee(self, node: AppliedNode, callees: Sequence[Definition]) -> ast.expr:
        """The code of what is applied or declared, where a definition may have copies."""
        context = self.scope.context
        if not any(map(self.scope.trace.is_copy, callees)):
            return self.code(node.callee)
        if len(callees) == 1 and not any(isinstance(value, Partial) for value in self.statics(node.callee)):
            return name(context.emitted(callees[0]).name)
        families = [set(copies.values()) for copies in self.scope.trace.copies.values()]
        is_choice = len(callees) > 1 and any(family.issuperset(callees) for family in families)
        given = self.scope.trace.bound_arguments(node, callees[0]).hyperparameters if is_choice else {}
        for word, argument in given.items():
            values = [context.values(callee, word)[0] for callee in callees]
            if not all(isinstance(value, Definition | Op | str | bool | None) for value in values):
                continue  # not a key, or equal to another one in Python
            keys = {ast.dump(code): code for code in [self._callable(value, node) for value in values]}
            if len(keys) == len(callees):
                names = [name(context.emitted(callee).name) for callee in callees]
                return ast.Subscript(ast.Dict([*keys.values()], [*names]), self.code(argument.value), ast.Load())
        return self.code(node.callee)

    def is_settled(self, expr: nodes.Expr) -> bool:
        """Whether an expression is the one value of a hyperparameter that is no argument."""
        return isinstance(expr, nodes.Local) and bool(self.scope.settled(expr.name))

    def number(self, expr: nodes.Expr) -> CodeValue:
        """A static expression as a value."""
        statics = [expr.value] if isinstance(expr, nodes.Literal) else list(self.scope.seen(expr).statics.values())
        return CodeValue(self.code(expr), STATIC, 0, counts=counts_as(statics))

    def parts(self, where: nodes.Address) -> list[Part]:
        """The parts of an address; an index that is an expression stays one."""
        return [segment if isinstance(segment, str) else self.part(segment) for segment in where.segments]

    def part(self, index: nodes.Expr | nodes.WordWithIndex) -> Part:
        """An index, or a word with indices, as part of an address."""
        if isinstance(index, nodes.WordWithIndex):
            return join_parts([part if isinstance(part, str) else self.part(part) for part in index.parts])
        code = self.code(index)
        return str(code.value) if isinstance(code, ast.Constant) else code

    def hyperparameters(self, callee: Definition, node: AppliedNode) -> tuple[list[ast.expr], dict[str, ast.expr]]:
        """What a use passes for the hyperparameters that a definition takes: by position, and by name."""
        if not self._is_called_alike(callee, node):
            self.scope.refuse("other hyperparameters are bound in what is applied here in other uses", node)
        return self.passed(callee, node, self.scope.trace.bound_arguments(node, callee))

    def passed(
        self, callee: Definition, node: AppliedNode, bound: nodes.BoundArguments
    ) -> tuple[list[ast.expr], dict[str, ast.expr]]:
        """The same for one of the uses."""
        scope, emitted = self.scope, self.scope.context.emitted(callee)
        known = prebound_hyperparameters(bound)  # which the callee passes itself
        inherited = scope.definition.hyperparameters if node.arguments.forward is not None else {}
        parameters = scope.context.parameters(callee)
        keywords: dict[str, ast.expr] = {}
        positional: list[ast.expr] = []
        variants = scope.trace.argument_variants(node, callee)
        bound_in_some = frozenset[str]().union(*map(prebound_hyperparameters, variants))
        by_position = callee.kind != "fn"
        for word in emitted.kept:
            by_position = by_position and word not in bound_in_some
            if word in known:
                continue
            item = bound.hyperparameters.get(word)
            if item is not None:
                code = self.code(item.value)
            elif word in inherited and word in scope.env:
                code = self.named(word, node)
            else:
                by_position = False
                continue
            by_position = by_position and word not in emitted.keyword_only and (item is None or not item.name)
            if by_position:
                positional.append(code)
            else:
                keywords[parameters[word]] = code
        return positional, keywords

    def _is_called_alike(self, callee: Definition, node: AppliedNode) -> bool:
        """Whether the same arguments are right for all hyperparameters that are bound in what is applied here."""
        inherited = self.scope.definition.hyperparameters if node.arguments.forward is not None else {}
        kept = self.scope.context.emitted(callee).kept
        passed: set[frozenset[tuple[str, int]]] = set()
        for bound in self.scope.trace.argument_variants(node, callee):
            known, given = prebound_hyperparameters(bound), bound.hyperparameters
            written = [(word, id(argument)) for word, argument in given.items() if word not in known]
            forwarded = [(word, 0) for word in kept if word in inherited and word not in given]
            passed.add(frozenset((*written, *forwarded)))
        return len(passed) == 1

    # Loops

    def start(self, loop: nodes.Loop) -> int | None:
        """Where a loop starts, if that is the same everywhere."""
        first = self.code(loop.first)
        return first.value if isinstance(first, ast.Constant) and isinstance(first.value, int) else None

    def iterations(self, loop: nodes.Loop) -> tuple[ast.expr, ast.expr]:
        """The variable of a `for`, and what it iterates over."""
        iterated = range_of(self.code(loop.first), self.code(loop.last))
        return name(self.scope.statements.variable(loop.variable)), iterated


# The sizes that a body uses, from the shapes of its inputs.


def prelude(scope: Scope, used: set[str]) -> list[ast.stmt]:
    """The statements that bind those of the names `used` in a body that are sizes of inputs."""
    found: list[ast.stmt] = []
    static = StaticCode(scope)
    bound: set[str] = set()
    sometimes = [input for input in scope.tensors() if not input.is_always_tensor]
    for input in (*scope.given_tensors(), *sometimes):
        wanted: dict[int, str] = {}
        multiples: list[ast.stmt] = []
        for i, item in enumerate(input.items):
            multiple = multiple_of(item)
            dimension = item if multiple is None else multiple[1]
            if not isinstance(dimension, nodes.Dimension):
                continue
            variable = scope.statements.variable(dimension.key)
            if variable not in used or variable in bound:
                continue
            bound.add(variable)
            if multiple is None:
                wanted[i] = variable
            else:
                size = py("size // factor", size=input.part(i), factor=static.code(multiple[0]))
                multiples.append(bind(variable, size))
        if not wanted and not multiples:
            continue
        made = [*_unpacked(wanted, input), *multiples]
        test = py("x is not None", x=input.value.code)
        found += made if input.is_always_tensor else [ast.If(test, made, [])]
    return found


def _unpacked(wanted: dict[int, str], input: Input) -> list[ast.stmt]:
    if not input.has_leading and len(wanted) > 1:
        targets: list[ast.expr] = [name(wanted.get(i, "_")) for i in range(len(input.items))]
        return [bind(ast.Tuple(targets, ast.Load()), input.shape)]
    return [bind(variable, input.part(i)) for i, variable in wanted.items()]
