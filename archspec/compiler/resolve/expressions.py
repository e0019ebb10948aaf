"""Resolution of expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import ClassVar

from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.built_ins import BuiltIns
from archspec.compiler.resolve.callees import (
    bind_known,
    has_piped,
    is_function,
    is_misspelt,
    is_module,
    is_recursive,
    make_partial,
    report_hyphen,
)
from archspec.compiler.resolve.likely import NameContext, suggest_meaning
from archspec.compiler.resolve.nodes import Argument, Arguments, GuardedDeclaration, Invalid
from archspec.compiler.resolve.scope import Scope
from archspec.compiler.resolve.unit import Definition, address_pattern, covers, pattern_text, suggest_address
from archspec.core.diagnostics import StopCompilation
from archspec.ir.ops import OPS
from archspec.language.syntax import tree
from archspec.language.syntax.expressions import INDEX_IN_WORD

MAX_SEGMENTS = 64
MAX_ADDRESS_LENGTH = 500

_CONSTANTS = {"pi": math.pi}
"""Named numbers; any definition of the name shadows them."""


class Expressions:
    """Resolves expressions in one scope."""

    handlers: ClassVar[dict[type, Callable[..., nodes.Expr]]]

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.built_ins = BuiltIns(scope, self.resolve)

    def resolve(self, expr: tree.Expr) -> nodes.Expr:
        return self.handlers[expr.__class__](self, expr)

    def optional(self, expr: tree.Expr | None) -> nodes.Expr | None:
        return None if expr is None else self.resolve(expr)

    # Names

    def literal(self, expr: tree.Literal) -> nodes.Expr:
        return nodes.Literal(expr, expr.value)

    def name(self, expr: tree.Name, use: NameContext = "") -> nodes.Expr:
        scope, name = self.scope, expr.text
        if name in scope.collecting:
            help = "read it after the loop, or give the value of this iteration another name"
            scope.fault("unknown-name", f"`{name}` is only available after the loop that collects it", expr, help=help)
            return Invalid(expr)
        if name == "_":
            if scope.chains:
                return nodes.PipedValue(expr)
            scope.fault("unknown-name", "`_` is only allowed in a chain step", expr)
            return Invalid(expr)
        if name in scope.locals:
            scope.used.add(name)
            if scope.in_signature and scope.locals[name].what == "input":
                help = "rename the input to use the dimension" if name in scope.unit.dims else None
                scope.fault("wrong-kind", f"expected a size, found the input `{name}`", expr, help=help)
                return Invalid(expr)
            return nodes.Local(expr, name)
        unit = scope.unit
        if name in unit.dims:
            scope.file_names.add(name)
            return nodes.Dimension(expr, name, f"dim {name}")
        binding = unit.names.get(name)
        if binding is not None:
            scope.file_names.add(name)
            return nodes.Global(expr, name, binding.target) if binding.target is not None else Invalid(expr)
        if name in OPS:
            return nodes.Global(expr, name, OPS[name])
        if name in _CONSTANTS:
            return nodes.Literal(expr, _CONSTANTS[name])
        is_of_file = scope.in_signature is not None or name in unit.standard_names()
        if scope.should_report(name, per_file=is_of_file):
            scope.fault("unknown-name", f"unknown name `{name}`", expr, help=suggest_meaning(scope, expr, use))
        return Invalid(expr)

    def _callee(self, expr: tree.Expr, use: NameContext) -> nodes.Expr:
        return self.name(expr, use) if isinstance(expr, tree.Name) else self.resolve(expr)

    # Values

    def listing(self, expr: tree.ListLiteral) -> nodes.ListLiteral:
        items = [self.name(i, "listed") if isinstance(i, tree.Name) else self.resolve(i) for i in expr.items]
        return nodes.ListLiteral(expr, tuple(items))

    def leading(self, expr: tree.LeadingDimensions) -> nodes.Expr:
        return nodes.LeadingDimensions(expr)

    def unary(self, expr: tree.Unary) -> nodes.Expr:
        return nodes.Unary(expr, expr.operator, self.resolve(expr.operand))

    def binary(self, expr: tree.Binary) -> nodes.Expr:
        if report_hyphen(self.scope, expr):
            return Invalid(expr)
        presence = self._presence_in_size(expr)
        if presence is not None:
            return presence
        return nodes.Binary(expr, expr.operator, self.resolve(expr.left), self.resolve(expr.right))

    def _presence_in_size(self, expr: tree.Binary) -> nodes.Expr | None:
        """Return the test of an input for `none` in the shape of an output, the only use of inputs in shapes."""
        scope, left, right = self.scope, expr.left, expr.right
        if scope.in_signature != "output" or expr.operator not in ("==", "!="):
            return None
        if not isinstance(left, tree.Name) or not isinstance(right, tree.Literal) or right.value is not None:
            return None
        local = scope.locals.get(left.text)
        if local is None or local.what != "input":
            return None
        return nodes.Binary(expr, expr.operator, nodes.Local(left, left.text), nodes.Literal(right, None))

    def subscript(self, expr: tree.Subscript) -> nodes.Expr:
        return nodes.Subscript(expr, self.resolve(expr.value), self.resolve(expr.position))

    def conditional(self, expr: tree.Conditional) -> nodes.Expr:
        condition = self.resolve(expr.condition)
        with self.guard_declarations((condition, True)):
            value = self.resolve(expr.value)
        if expr.otherwise is None:
            return nodes.Conditional(expr, value, condition, None)
        with self.guard_declarations((condition, False)):
            return nodes.Conditional(expr, value, condition, self.resolve(expr.otherwise))

    @contextmanager
    def guard_declarations(
        self, guard: tuple[nodes.Expr, bool] | None, loop: nodes.Loop | None = None
    ) -> Generator[None]:
        """Make declarations inside depend on the guard, in each iteration of the loop."""
        scope = self.scope
        guards, outer_loop = scope.guards, scope.loop
        if guard is not None:
            scope.guards = (*guards, guard)
        scope.loop = loop or outer_loop
        yield
        scope.guards, scope.loop = guards, outer_loop

    # Addresses

    def address(self, node: tree.Address) -> nodes.Address:
        segments: list[str | nodes.Expr | nodes.WordWithIndex] = []
        words: list[str] = []
        for segment in node.segments:
            if segment.names:
                texts = INDEX_IN_WORD.split(segment.text)  # with the names at odd positions
                parts: list[str | nodes.Expr] = [*texts]
                parts[1::2] = map(self.resolve, segment.names)
                segments.append(nodes.WordWithIndex(segment, tuple(parts)))
                words.append("\0".join(texts[::2]))
            elif segment.number is None:
                segments.append(segment.text)
                words.append(segment.text)
            else:
                segments.append(self.resolve(segment.number))
                words.append("\0")
        if len(words) > MAX_SEGMENTS or sum(map(len, words)) > MAX_ADDRESS_LENGTH:
            message = f"address too long: the limit is {MAX_SEGMENTS} segments and {MAX_ADDRESS_LENGTH} characters"
            self.scope.fault("budget", message, node)
            raise StopCompilation
        text = ".".join(words)
        address = nodes.Address(node, tuple(segments), None, "", None, "")
        indices = [*address.indices()]
        if not indices:
            return nodes.Address(node, tuple(segments), text, text, None, "")
        if len(indices) > 1 or not isinstance(indices[0], nodes.Local):
            return address
        before, _, after = text.partition("\0")
        return nodes.Address(node, tuple(segments), None, before, indices[0].name, after)

    def read(self, expr: tree.AddressReference) -> nodes.Expr:
        address = self.address(expr.address)
        return nodes.AddressReference(expr, address) if self.is_declared(expr.address, expr, ".") else Invalid(expr)

    def is_declared(self, address: tree.Address, node: tree.Address | tree.AddressReference, dot: str = "") -> bool:
        """Whether an address may be declared; reports an error if not."""
        scope = self.scope
        pattern = address_pattern(address)
        scope.referred.append(pattern)
        if scope.broken or any(covers(d.pattern, pattern) for d in scope.declared):
            return True
        text = pattern_text(pattern)
        if not scope.should_report(f".{text}"):
            return False
        if scope.definition is not None and scope.definition.kind == "fn":
            scope.fault("unknown-address", "a function has no addresses; use a `layer` or `block`", node)
            return False
        near = suggest_address(text, [pattern_text(d.pattern) for d in scope.declared])
        scope.suggested += [d.pattern for d in scope.declared if near and f"`{pattern_text(d.pattern)}" in near]
        scope.fault("unknown-address", f"nothing is declared at `{dot}{text}`", node, help=near)
        return False

    # Applications

    def call(self, expr: tree.Call) -> nodes.Expr:
        return self._apply(expr, expr.callee, expr.lists, piped=False)

    def _apply(
        self, expr: tree.Expr, callee_node: tree.Expr, lists: tuple[tree.Arguments, ...], piped: bool
    ) -> nodes.Expr:
        built_in = self.built_ins.call(expr, callee_node, lists, piped)
        if built_in is not None:
            return built_in
        callee = self._callee(callee_node, "called")
        is_reference = isinstance(callee_node, tree.AddressReference)
        if is_reference and len(lists) > 1:
            message = "`.address` already has its hyperparameters; pass only inputs"
            self.scope.fault("surplus-argument", message, lists[1], help="write `.address(x)`")
            callee = Invalid(callee_node)
        first, inputs, undecided = self._assign_lists(callee, lists, is_reference, piped)
        arguments = self._arguments(expr, callee, callee_node, first, inputs, piped, undecided)
        if arguments is None or isinstance(callee, Invalid):
            return Invalid(expr)
        if isinstance(callee, nodes.Global):
            partial = None
            if isinstance(expr, tree.Call) and not piped:
                partial = make_partial(self.scope, expr, callee, arguments)
            if partial is not None:
                return partial
            if not is_function(self.scope, callee) or is_recursive(self.scope, callee):
                return Invalid(expr)
            bound = bind_known(self.scope, callee.target, arguments, expr)
            return Invalid(expr) if bound is None else nodes.Apply(expr, callee, arguments.replace(bound=bound))
        return nodes.Apply(expr, callee, arguments)

    def _assign_lists(
        self, callee: nodes.Expr, lists: tuple[tree.Arguments, ...], is_reference: bool, piped: bool
    ) -> tuple[tree.Arguments | None, tree.Arguments | None, bool]:
        """Return the lists of hyperparameters and inputs, and whether only the callee can decide which is which."""
        if is_reference:  # a second list is an error; it is resolved so that its names count as used
            return lists[0] if len(lists) > 1 else None, lists[-1] if lists else None, False
        if len(lists) != 1:
            return (lists[0], lists[1], False) if lists else (None, None, False)
        if piped:
            return (None, lists[0], False) if has_piped(lists[0]) else (lists[0], None, False)
        if isinstance(callee, nodes.Global):
            takes = callee.target.inputs
            return (None, lists[0], False) if takes else (lists[0], None, False)
        return None, lists[0], True

    def _arguments(
        self,
        node: tree.Expr,
        callee: nodes.Expr,
        callee_node: tree.Expr,
        first: tree.Arguments | None,
        inputs: tree.Arguments | None,
        piped: bool,
        undecided: bool = False,
        declares_only: bool = False,
    ) -> Arguments | None:
        """Return the arguments of an application; None after reporting an error."""
        scope = self.scope
        fits = True
        forward: tree.Argument | None = None
        values: list[Argument] = []
        for item in first.items if first is not None else ():
            if item.value is not None:
                values.append(Argument(item, item.name, self.resolve(item.value)))
            elif forward is None:
                forward = item
                self._use_forwarded(callee)
            else:
                scope.fault("repeated-argument", "`..` is specified more than once", item, first=forward)
                fits = False
        implied = piped and inputs is None
        input_arguments: tuple[Argument, ...] | None = None
        if implied:
            piped_value = nodes.PipedValue(tree.Name(callee_node.start, callee_node.end, "_"))
            input_arguments = (Argument(node, "", piped_value),)
        elif inputs is not None or not declares_only:
            input_arguments = self._inputs(callee, inputs) if inputs is not None else ()
            fits = fits and input_arguments is not None
        if piped and inputs is not None and not has_piped(inputs):
            text = scope.unit.source.text[callee_node.start : callee_node.end]
            message = f"the piped value is not passed to `{text}`"
            scope.fault("stream", message, inputs, help="mark its position with `_`")
            fits = False
        return Arguments(tuple(values), input_arguments, forward, implied, undecided, None) if fits else None

    def _inputs(self, callee: nodes.Expr, inputs: tree.Arguments) -> tuple[Argument, ...] | None:
        """Return the arguments in a list of inputs; None after reporting an error."""
        result: list[Argument] = []
        forward: tree.Argument | None = None
        for item in inputs.items:
            if item.value is not None:
                result.append(Argument(item, item.name, self.resolve(item.value)))
            elif forward is None:
                forward = item
                result += self._forwarded_inputs(callee, item, inputs)
            else:
                self.scope.fault("repeated-argument", "`..` is specified more than once", item, first=forward)
                return None
        return tuple(result)

    def _forwarded_inputs(
        self, callee: nodes.Expr, forward: tree.Argument, inputs: tree.Arguments
    ) -> tuple[Argument, ...]:
        """Return the inputs of the enclosing definition that `..` passes to a callee, or to its default."""
        scope = self.scope
        target = callee.target if isinstance(callee, nodes.Global) else self._default_definition(callee)
        if not isinstance(target, Definition) or scope.definition is None:
            message = "`..` can only pass inputs to a definition that is named here or is the default"
            scope.fault("surplus-argument", message, forward, help="write the inputs")
            return ()
        positional = sum(item.value is not None and not item.name for item in inputs.items)
        explicit = {*target.takes.names[:positional], *[item.name for item in inputs.items]}
        names = [name for name in scope.definition.takes.names if name in target.takes.names and name not in explicit]
        scope.used.update(names)
        return tuple(
            [Argument(forward, name, nodes.Local(tree.Name(forward.start, forward.end, name), name)) for name in names]
        )

    def _default_definition(self, callee: nodes.Expr) -> object:
        """Return the definition that is, perhaps with bound hyperparameters, the default of a hyperparameter."""
        definition = self.scope.definition
        if not isinstance(callee, nodes.Local) or definition is None or callee.name not in definition.hyperparameters:
            return None
        hyperparameter = definition.hyperparameters[callee.name]
        default = hyperparameter.default
        default = default.callee if isinstance(default, tree.Call) else default
        binding = hyperparameter.unit.names.get(default.text) if isinstance(default, tree.Name) else None
        return binding.target if binding is not None else None

    def _use_forwarded(self, callee: nodes.Expr) -> None:
        """Mark the hyperparameters that `..` may forward to the callee as used, or record a known callee."""
        scope = self.scope
        target = callee.target if isinstance(callee, nodes.Global) else None
        if isinstance(target, Definition):
            scope.forwards.append(target)
        elif scope.definition is not None:
            scope.used.update(scope.definition.hyperparameters)

    def own(self, expr: tree.ModuleDeclaration) -> nodes.ModuleDeclaration:
        return self._declare(expr, piped=False)

    def _declare(self, expr: tree.ModuleDeclaration, piped: bool) -> nodes.ModuleDeclaration:
        scope = self.scope
        position = len(scope.declares)
        scope.declares.append(None)  # declarations inside its arguments follow it
        address = self.address(expr.address)
        callee = Invalid(expr.callee) if is_misspelt(scope, expr) else self._callee(expr.callee, "owned")
        first = expr.lists[0] if expr.lists else None
        inputs = expr.lists[1] if len(expr.lists) > 1 else None
        arguments = self._arguments(expr, callee, expr.callee, first, inputs, piped, declares_only=True)
        if arguments is not None and isinstance(callee, nodes.Global):
            bound = bind_known(scope, callee.target, arguments, expr) if is_module(scope, callee) else None
            arguments = arguments.replace(bound=bound) if bound is not None else None
        if arguments is None:
            callee, arguments = Invalid(expr.callee), Arguments((), (), None, False, False, None)
        node = nodes.ModuleDeclaration(expr, address, expr.modifiers, callee, arguments)
        scope.declares[position] = GuardedDeclaration(node, scope.guards, scope.loop, self._is_invariant(node))
        return node

    def _is_invariant(self, node: nodes.ModuleDeclaration) -> bool:
        """Whether the callee and the hyperparameters are equal in all enclosing iterations."""
        definition, forward = self.scope.definition, node.arguments.forward
        forwarded = definition.hyperparameters if forward is not None and definition is not None else ()
        return self.are_invariant(
            [node.callee, *(argument.value for argument in node.arguments.hyperparameters)], forwarded
        )

    def are_invariant(self, exprs: Iterable[nodes.Expr], names: Iterable[str] = ()) -> bool:
        """Whether expressions and the values of names are equal in all enclosing iterations."""
        changing = self.scope.changing
        if self.scope.loop is not None:
            changing |= {self.scope.loop.variable}
        return not changing or changing.isdisjoint(
            [*names, *(name for expr in exprs for name in walk.local_names(expr))]
        )

    # Chains

    def chain(self, expr: tree.Chain) -> nodes.Expr:
        head = self.resolve(expr.head)
        self.scope.chains += 1
        steps = tuple([self._step(step) for step in expr.steps])
        self.scope.chains -= 1
        return nodes.Chain(expr, head, steps)

    def _step(self, step: tree.Step) -> nodes.Step:
        loop = self.loop(step.loop) if step.loop is not None else None
        condition = self.optional(step.condition)
        resolve = self.resolve if step.operator else self._resolve_step_value
        with self.guard_declarations((condition, True) if condition is not None else None, loop):
            value = resolve(step.value)
        otherwise = None
        if step.otherwise is not None and condition is not None:
            with self.guard_declarations((condition, False), loop):
                otherwise = resolve(step.otherwise)
        if loop is not None:
            self.scope.end_loop(loop.variable)
        return nodes.Step(step, step.operator, value, condition, otherwise, loop)

    def _resolve_step_value(self, expr: tree.Expr) -> nodes.Expr:
        """Resolve the application of a step to the piped value."""
        if isinstance(expr, tree.ModuleDeclaration):
            return self._declare(expr, piped=True)
        if isinstance(expr, tree.Call):
            return self._apply(expr, expr.callee, expr.lists, piped=True)
        return self._apply(expr, expr, (), piped=True)

    def loop(self, node: tree.Loop) -> nodes.Loop:
        """Resolve a loop, whose index is in scope from here on."""
        first, last = self.resolve(node.first), self.resolve(node.last)
        self.scope.bind(node.variable, "index", self.scope.unit.span(node))
        return nodes.Loop(node, node.variable, first, last)


Expressions.handlers = {
    tree.Literal: Expressions.literal,
    tree.Name: Expressions.name,
    tree.ListLiteral: Expressions.listing,
    tree.LeadingDimensions: Expressions.leading,
    tree.Unary: Expressions.unary,
    tree.Binary: Expressions.binary,
    tree.Conditional: Expressions.conditional,
    tree.Subscript: Expressions.subscript,
    tree.AddressReference: Expressions.read,
    tree.Call: Expressions.call,
    tree.ModuleDeclaration: Expressions.own,
    tree.Chain: Expressions.chain,
}
