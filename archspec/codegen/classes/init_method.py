"""The declarations of a definition as the statements of `__init__`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from archspec.codegen.classes.containers import Containers
from archspec.codegen.classes.init_statements import (
    InitStatements,
    Requirements,
    fill_by_default,
    initializer_statement,
    may_be_view,
)
from archspec.codegen.expressions.expressions import Expressions
from archspec.codegen.expressions.list_items import ItemCall, item_calls
from archspec.codegen.expressions.tensor_types import InitTypes
from archspec.codegen.python.trees import apply, bind, literal, method, name, negated, py, text
from archspec.codegen.scope.attribute_paths import AttributePath, address
from archspec.codegen.scope.context import Context
from archspec.codegen.scope.scope import Scope
from archspec.codegen.scope.values import FREE
from archspec.compiler.elaborate.trace import DefinitionUse, prebound_hyperparameters
from archspec.compiler.evaluate.values import is_list
from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.unit import Definition
from archspec.ir.module import Module, ModuleTensor

_EMPTY = {"real": "", "int": ", dtype=torch.int64", "bool": ", dtype=torch.bool"}


class InitMethod:
    """Translates declarations, ties and requirements. Constant tables are expressions made of numbers alone."""

    def __init__(self, context: Context, definition: Definition, uses: Sequence[DefinitionUse]) -> None:
        parameters = context.parameters(definition)
        places = context.places(definition)
        self.scope = Scope(context, definition, uses, places, lambda word: name(parameters[word]))
        self.expressions = Expressions(self.scope, InitTypes())
        self.static = self.expressions.static
        self._parameters = {word: self.scope.env[word] for word in definition.hyperparameters}
        self.containers = Containers(self.scope, self.static)
        self._shared: set[str] = set()  # addresses of tensors that several statements declare, one of them at a time

    def requirements(self) -> list[ast.stmt]:
        """The checks of what is required of arguments."""
        return self._made_by(Requirements(self.scope, self.static, self.containers))

    def declarations(self) -> list[ast.stmt]:
        """What makes modules and tensors, and ties them when everything is declared."""
        body, _ = self.scope.statements.capture_statements(self._register)
        return [*body, *self._made_by(_Declarations(self)), *self._made_by(_Ties(self))]

    def names(self) -> list[ast.stmt]:
        """The names that are bound to numbers on the way."""
        return self._made_by(InitStatements(self.scope, self.static, self.containers))

    def _made_by(self, visitor: InitStatements) -> list[ast.stmt]:
        self.scope.env = dict(self._parameters)
        body, _ = self.scope.statements.capture_statements(lambda: visitor.visit(self.scope.form.body))
        return body

    def _register(self) -> None:
        """Tensors that branches leave out are None; those that only a suffix does are so where they are made."""
        places = self.scope.places
        outside = [s for s in self.scope.form.body if not isinstance(s, nodes.If | nodes.For)]
        alone = list(walk.declarations(tuple(outside)))
        found: dict[str, list[nodes.GuardedDeclaration]] = {}
        for declaration in walk.declarations(self.scope.form.body):
            what = declaration.what
            where = what.address.fixed
            if isinstance(what, nodes.TensorDeclaration) and declaration.loop is None and where is not None:
                found.setdefault(where, []).extend([declaration] if self.scope.trace.targets(what) else [])
        for where, declarations in found.items():
            if not declarations or (len(declarations) == 1 and any(declarations[0] is other for other in alone)):
                continue
            self._shared.add(where)
            if tuple(where.split(".")) not in places.always:
                first = declarations[0].what
                self.containers.around(declarations[:1], set())
                if len({d.what.kind for d in declarations if isinstance(d.what, nodes.TensorDeclaration)}) > 1:
                    message = "this is a parameter in one use, a buffer in another, and absent in a third"
                    self.scope.refuse(message, first.address)
                self._register_none(first)

    def _register_none(self, what: nodes.ModuleDeclaration | nodes.TensorDeclaration) -> None:
        """A tensor that is not there is None."""
        if not isinstance(what, nodes.TensorDeclaration):
            return
        place = self.scope.places.place(self.static.parts(what.address))
        if isinstance(place.code, ast.Attribute) and place.container is not None:
            word = "register_parameter" if what.kind == "param" else "register_buffer"
            call = apply(method(place.container, word), [literal(place.code.attr), literal(None)])
            self.scope.statements.body.append(ast.Expr(call))

    # Declarations

    def declare(self, declaration: nodes.GuardedDeclaration) -> None:
        """Declares once, where conditions hold; `declaration` is made in some use."""
        statements = self.scope.statements
        self.containers.around([declaration], set())
        body, _ = statements.capture_statements(lambda: self._declare_once(declaration.what))
        tests = [
            self.static.code(condition) if wanted else negated(self.static.code(condition))
            for condition, wanted in declaration.guards
            if self.scope.truth(condition) is None and self.scope.is_static(condition)
        ]
        if not tests:
            statements.body += body
            return
        left_out: list[ast.stmt] = []
        if declaration.what.address.fixed not in self._shared:
            left_out, _ = statements.capture_statements(lambda: self._register_none(declaration.what))
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        match statements.body[-1:]:
            case [ast.If(test=other, orelse=[]) as before] if text(other) == text(negated(test)) and not left_out:
                before.orelse = body
            case _:
                statements.body.append(ast.If(test, body, left_out))

    def _declare_once(self, what: nodes.ModuleDeclaration | nodes.TensorDeclaration) -> None:
        if "training" in what.address.segments:
            self.scope.refuse("PyTorch's modules keep the name `training` for themselves", what.address)
        place = self.scope.places.place(self.static.parts(what.address))
        if isinstance(what, nodes.TensorDeclaration):
            self.tensor(place, what)
        else:
            self._put_module(place, what)

    def _put_module(self, place: AttributePath, node: nodes.ModuleDeclaration) -> None:
        """Puts a module in its place; an item of a list is made as its index says."""
        statements = self.scope.statements
        calls = item_calls(self.static, node) or [ItemCall(None, self._module(node))]
        branches: list[ast.stmt] = [ast.Raise(py("IndexError(message)", message=literal("the list has no such index")))]
        for test, call in reversed(calls):
            module = py("x.requires_grad_(False)", x=call) if "frozen" in node.modifiers else call
            body, _ = statements.capture_statements(lambda code=module: self.containers.put(place, code))
            branches = [ast.If(test, body, branches)] if test is not None else body
        statements.body += branches

    def _module(self, node: nodes.ModuleDeclaration) -> ast.expr:
        trace = self.scope.trace
        callees = list(dict.fromkeys(trace.definitions[t] for t in trace.targets(node) if isinstance(t, Module)))
        code = self.static.callee(node, callees)
        calls = [apply(code, *self.static.hyperparameters(callee, node)) for callee in callees]
        if any(ast.dump(call) != ast.dump(calls[0]) for call in calls):
            self.scope.refuse("what is declared here is made in another way in other uses", node)
        return calls[0]

    # Tensors

    def tensor(self, place: AttributePath, node: nodes.TensorDeclaration) -> None:
        """A stored tensor, and how it is initialized."""
        shape = self.static.code(node.shape)
        if node.value is not None:
            code = self._table(node, node.value, shape)
        elif node.kind != "param" or node.dtype != "real":
            code = py(f"torch.zeros(shape{_EMPTY[node.dtype]})", shape=shape)
        else:
            code = py("torch.empty(shape)", shape=shape)
        if node.kind != "param":
            self._put_buffer(place, code, node)
            if node.initial is not None:
                self.initialize(place.code, node)
            return
        frozen = "frozen" in node.modifiers
        self.containers.put(place, py("nn.Parameter(x, requires_grad=False)" if frozen else "nn.Parameter(x)", x=code))
        if node.value is None and node.dtype == "real":
            self.initialize(place.code, node)

    def initialize(self, code: ast.expr, node: nodes.TensorDeclaration) -> None:
        """Fills a parameter as the spec says, or as PyTorch would."""
        body = self.scope.statements.body
        if node.initial is None:
            body.append(fill_by_default(code, len(node.shape.items)))
        else:
            body.append(
                initializer_statement(node.initial.name, code, [self.static.code(a) for a in node.initial.arguments])
            )

    def _put_buffer(self, place: AttributePath, code: ast.expr, node: nodes.TensorDeclaration) -> None:
        if node.kind == "const":
            if place.container is None or place.key is None:
                message = "a `const` at an address with a number has no form in PyTorch; declare it as a `buffer`"
                self.scope.refuse(message, node.address)
            parts = {"x": place.container, "key": address([place.key]), "code": code}
            call = py("x.register_buffer(key, code, persistent=False)", **parts)
            self.scope.statements.body.append(ast.Expr(call))
        elif isinstance(place.code, ast.Attribute) and place.container is not None and isinstance(place.key, str):
            call = apply(method(place.container, "register_buffer"), [literal(place.key), code])
            self.scope.statements.body.append(ast.Expr(call))
        else:
            self.containers.put(place, code)

    def _table(self, node: nodes.TensorDeclaration, value: nodes.Expr, shape: ast.expr) -> ast.expr:
        """A constant table; reals are computed in float64 and rounded once."""
        found = self.expressions.one(value)
        if not found.is_tensor:
            dtype = _EMPTY[node.dtype] or ", dtype=torch.get_default_dtype()"
            if any(map(is_list, self.scope.trace.static_values(value).values())):
                return py(f"torch.tensor(values{dtype})", values=found.code)
            return py(f"torch.full(shape, value{dtype})", shape=shape, value=found.code)
        code = found.code
        if found.kind == FREE:
            code = py("x.to(torch.get_default_dtype())", x=code)
        targets = [t for t in self.scope.trace.targets(node) if isinstance(t, ModuleTensor)]
        if any(t.value is not None and may_be_view(t.value) for t in targets):
            code = py("x.clone(memory_format=torch.contiguous_format)", x=code)
        return code

    # Ties

    def tie(self, node: nodes.Tie) -> None:
        """Ties one pair of addresses."""
        alias, targets = self.expressions.reach(node.alias)
        counted, _ = self.expressions.reach(node.counted)
        body = self.scope.statements.body
        plain = isinstance(alias, ast.Attribute) and not isinstance(targets[0], Module)
        if plain and self.scope.trace.ties[id(node)]:
            body.append(bind(alias, counted))
        else:
            body.append(ast.Expr(apply(name("tie"), [name("self"), alias, counted])))


class _Declarations(InitStatements):
    """Translates declarations."""

    def __init__(self, method: InitMethod) -> None:
        super().__init__(method.scope, method.static, method.containers)
        self.method = method

    def enter(self, statements: Sequence[nodes.Statement], variables: set[str]) -> None:
        """Make the containers that are the same for all of the statements."""
        self.containers.inside(statements, variables)

    def visit_assign(self, statement: nodes.Assign) -> None:
        self._declare(statement.declares)
        super().visit_assign(statement)

    def visit_declare(self, statement: nodes.Declare) -> None:
        self._declare(statement.declares)

    def visit_return(self, statement: nodes.Return) -> None:
        self._declare(statement.declares)

    def _declare(self, declarations: Sequence[nodes.GuardedDeclaration]) -> None:
        for declaration in declarations:
            what = declaration.what
            if not self.scope.trace.targets(what) or (isinstance(what, nodes.ModuleDeclaration) and what.merges):
                continue
            loop = declaration.loop
            if loop is None:
                self.method.declare(declaration)
                continue
            self.containers.around([declaration], {loop.variable})
            restore = self.containers.branching()
            self.repeat(loop, lambda d=declaration: self.method.declare(d), as_list=True)
            restore()


class _Ties(InitStatements):
    """Translates ties."""

    def __init__(self, method: InitMethod) -> None:
        super().__init__(method.scope, method.static, method.containers)
        self.method = method

    def visit_tie(self, statement: nodes.Tie) -> None:
        if id(statement) not in self.scope.trace.ties:
            return
        if statement.loop is not None:
            self.repeat(statement.loop, lambda: self._tie(statement))
        else:
            self._tie(statement)

    def _tie(self, statement: nodes.Tie) -> None:
        condition, statements = statement.condition, self.scope.statements
        body, _ = statements.capture_statements(lambda: self.method.tie(statement))
        if condition is not None and self.scope.truth(condition) is None:
            body = list[ast.stmt]([ast.If(self.static.code(condition), body, [])])
        statements.body += body


# A definition that merges another one, as a class derived from the other one's class.


def base_class(
    context: Context, definition: Definition, uses: Sequence[DefinitionUse]
) -> tuple[str, list[ast.stmt]] | None:
    """The base class of a definition that merges another one, and the statements of `__init__` that initialize it.

    Raises ArchError (`untranslatable`) where a class cannot be derived.
    """
    bases = context.bases(definition)
    if not bases:
        return None
    init = InitMethod(context, definition, uses)
    merging = [own for own, always in _merging(init) if always]
    modules = context.modules(definition)
    if len(bases) > 1 or len(merging) != 1 or any(len(module.merged) != 1 for module in modules):
        message = "a class can only be derived from one other, which is the same in every use"
        init.scope.refuse(message, definition.node.name)
    (base,), (own,) = bases, merging
    emitted = context.emitted(base)
    if emitted.base.startswith("nn.") and emitted.base != "nn.Module":
        init.scope.refuse(f"a class cannot be derived from `{base.name}`, which is {emitted.base} in PyTorch", own)
    bounds = context.trace.argument_variants(own, base)
    if any(not prebound_hyperparameters(bound).isdisjoint(emitted.kept) for bound in bounds):
        init.scope.refuse("the hyperparameters of a base class cannot be bound in a value", own)
    names = init.names()
    called = ast.Expr(apply(py("super().__init__"), *init.static.hyperparameters(base, own)))
    frozen = [ast.Expr(py("self.requires_grad_(False)"))] if "frozen" in own.modifiers else []
    return emitted.name, [*names, called, *frozen]


def _merging(init: InitMethod) -> Iterator[tuple[nodes.ModuleDeclaration, bool]]:
    """What definitions merge in some use, and whether it is outside loops and branches that are not always taken."""
    for site in walk.iter_declaration_sites(init.scope.form.body):
        what = site.declaration.what
        if isinstance(what, nodes.ModuleDeclaration) and what.merges and init.scope.trace.targets(what):
            yield what, not site.loops and all(init.scope.truth(condition) is not None for condition, _ in site.guards)
