"""Writes the definitions of a model in Python: each once, after those it uses."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from archspec.codegen.classes import experts
from archspec.codegen.classes.forward_method import ForwardMethod
from archspec.codegen.classes.init_method import InitMethod, base_class
from archspec.codegen.classes.known_modules import function_form
from archspec.codegen.classes.parameters import Parameters
from archspec.codegen.classes.size_checks import size_checks
from archspec.codegen.classes.torch_layers import torch_layer
from archspec.codegen.expressions.attention import products_in
from archspec.codegen.expressions.number_functions import NumberFunction
from archspec.codegen.expressions.static_code import prelude
from archspec.codegen.python.simplification import returned, simplified, without_repeats
from archspec.codegen.python.trees import bind, literal, name, names_in, prune, py, stored
from archspec.codegen.scope.constructor_arguments import ConstructorArguments
from archspec.codegen.scope.context import Context, EmittedDefinition, FunctionInput, Output
from archspec.codegen.scope.names import RESERVED_TUPLE_NAMES, python_name
from archspec.codegen.scope.scope import untranslatable_error
from archspec.codegen.scope.values import ANY, KIND, REAL
from archspec.compiler.elaborate.trace import DefinitionUse, Trace
from archspec.compiler.resolve.unit import Definition, is_numeric
from archspec.ir.module import Constant, Type


class ModuleWriter:
    """What was written, in order: `emitted`."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.arguments = ConstructorArguments(trace)
        self.context = Context(trace, self.arguments, self.write)
        self.parameters = Parameters(self.context)
        self.emitted: dict[Definition, EmittedDefinition] = {}

    def write(self, definition: Definition) -> EmittedDefinition:
        """Writes a definition, once."""
        if definition not in self.emitted:
            if is_numeric(definition):
                emitted = self._numeric(definition)
            elif definition not in self.trace.uses and not self.context.modules(definition):
                emitted = self._unused(definition)
            else:
                emitted = self._function(definition) if definition.kind == "fn" else self._module(definition)
            self.emitted[definition] = emitted
        return self.emitted[definition]

    def _unused(self, definition: Definition) -> EmittedDefinition:
        """Write a definition that is passed as an argument and never applied; its input types are unknown."""
        message = literal(f"the model does not apply {definition.name}")
        body: list[ast.stmt] = [ast.Raise(py("NotImplementedError(message)", message=message))]
        return EmittedDefinition(
            self.context.names[definition], definition, base="nn.Module", forward=body, is_unused=True
        )

    def _numeric(self, definition: Definition) -> EmittedDefinition:
        function = NumberFunction(self.context, definition)
        words = tuple(definition.hyperparameters)
        body = function.body()
        return EmittedDefinition(self.context.names[definition], definition, words, forward=body, head=function.head())

    def _function(self, definition: Definition) -> EmittedDefinition:
        uses = self.trace.uses[definition]
        if all(entry.type != "any" for entry in definition.inputs):
            return self._function_of(definition, uses)
        by_type: dict[str, list[DefinitionUse]] = {}
        for use in uses:
            by_type.setdefault(_element_type(definition, use), []).append(use)
        emitted, *others = [self._function_of(definition, group) for group in by_type.values()]
        if any(_code(other) != _code(emitted) for other in others):
            message = "its code in PyTorch differs between the types of elements that it is applied to"
            raise untranslatable_error(message, definition, definition.node.name)
        slots = zip(definition.inputs, emitted.inputs, strict=True)
        ranks = [
            {output.rank for output in each} for each in zip(*[e.outputs for e in (emitted, *others)], strict=True)
        ]
        return emitted._replace(
            inputs=tuple([slot._replace(kind=ANY) if slot and entry.type == "any" else slot for entry, slot in slots]),
            outputs=tuple(
                [
                    output._replace(
                        kind=ANY if declared.type == "any" and output.kind is not None else output.kind,
                        rank=output.rank if len(each) == 1 else None,
                    )
                    for declared, output, each in zip(definition.node.outputs, emitted.outputs, ranks, strict=True)
                ]
            ),
        )

    def _function_of(self, definition: Definition, uses: Sequence[DefinitionUse]) -> EmittedDefinition:
        forward = self._forward(definition, uses, None)
        known = self.arguments.of(definition)
        form = function_form(uses) if not known.arguments else None
        body: list[ast.stmt]
        if form is not None:
            body = [ast.Return(py(form, x=forward.scope.inputs[0].value.code))]
            outputs: tuple[Output, ...] = (Output("", REAL, None),)
        else:
            forward, body = self._translated(definition, uses, None)
            outputs = self._outputs(forward)
            body = without_repeats(returned(body))
        computed = self.parameters.computed(definition, uses, names_in(body))
        body = [*computed, *body]
        used = names_in(body)
        sizes = prelude(forward.scope, used)
        used |= names_in(sizes)
        parameters = self.context.parameters(definition)
        kept = {word for word, parameter in parameters.items() if parameter in used and word in known.arguments}
        needs = frozenset(forward.types.needs)
        body = simplified([*sizes, *body])
        return self._emitted(definition, kept)._replace(
            inputs=self._inputs(forward), outputs=outputs, needs=needs, forward=body
        )

    def _module(self, definition: Definition) -> EmittedDefinition:
        uses = self.trace.uses.get(definition, [])
        layer = torch_layer(self.context, definition, uses) if definition.kind == "layer" else None
        if layer is not None:
            init, kept = self._init(definition, uses, layer.base, layer.init, [])
            entry = self.context.form(definition).inputs[0]
            slot = FunctionInput(python_name(entry.name, self.context.taken), KIND[entry.dtype])
            return self._emitted(definition, kept)._replace(
                inputs=(slot,), outputs=(Output("", REAL, None),), base=layer.base, init=init
            )
        made = InitMethod(self.context, definition, uses).declarations()
        base = "nn.Module"
        derived = base_class(self.context, definition, uses)
        if derived is not None:
            base, made = derived[0], [*derived[1], *made]
        if not uses:
            init, kept = self._init(definition, uses, base, made, [])
            return self._emitted(definition, kept)._replace(base=base, init=init)
        record = self._record(definition, uses)
        forward, body = self._translated(definition, uses, record)
        body = returned(body)
        needs = frozenset(forward.types.needs)
        checks = size_checks(forward) if definition is self.trace.root else []
        body = simplified([*checks, *prelude(forward.scope, names_in(body)), *body])
        init, kept = self._init(definition, uses, base, made, body)
        return self._emitted(definition, kept)._replace(
            inputs=self._inputs(forward),
            outputs=self._outputs(forward),
            record=record,
            needs=needs,
            base=base,
            init=init,
            forward=body,
        )

    def _emitted(self, definition: Definition, kept: set[str]) -> EmittedDefinition:
        """A definition that takes the hyperparameters `kept`."""
        words = tuple(word for word in definition.hyperparameters if word in kept)
        return EmittedDefinition(
            self.context.names[definition], definition, words, self.parameters.keyword_only(definition, words)
        )

    # Methods

    def _forward(
        self, definition: Definition, uses: Sequence[DefinitionUse], record: str | None, fuses: bool = True
    ) -> ForwardMethod:
        return ForwardMethod(self.context, definition, uses, _present(uses), record, fuses)

    def _translated(
        self, definition: Definition, uses: Sequence[DefinitionUse], record: str | None
    ) -> tuple[ForwardMethod, list[ast.stmt]]:
        """A body as statements. Attention is one call in it, unless a product would be made again then, because scores
        or probabilities are needed besides.
        """
        tried: list[tuple[ForwardMethod, list[ast.stmt]]] = []
        for fuses in (True, False):
            forward = self._forward(definition, uses, record, fuses)
            body, _ = prune(forward.run(), set())
            tried.append((forward, body))
            if products_in(body) < 3:
                break
        forward, body = min(tried, key=lambda found: products_in(found[1]))
        return forward, self._with_sorted_experts(forward, body)

    def _with_sorted_experts(self, forward: ForwardMethod, body: list[ast.stmt]) -> list[ast.stmt]:
        """A body in which consecutive products with the same experts sort vectors once."""
        if len(experts.products_in(body)) < 2:
            return body
        context, scope = self.context, forward.scope
        functions = {
            context.names[definition]
            for definition, uses in self.trace.uses.items()
            if definition.kind == "fn" and experts.is_elementwise(uses)
        }
        numbers = {context.attribute(scope.definition, word) for word in scope.definition.hyperparameters}
        elementwise = experts.elementwise_functions() | functions
        return experts.sort_experts_once(body, scope.fresh("by_expert"), elementwise, numbers)

    def _init(
        self,
        definition: Definition,
        uses: Sequence[DefinitionUse],
        base: str,
        made: list[ast.stmt],
        forward: list[ast.stmt],
    ) -> tuple[list[ast.stmt], set[str]]:
        """The statements of `__init__`, and the hyperparameters that the class takes."""
        context = self.context
        parameters = context.parameters(definition)
        attributes = {context.attribute(definition, word): word for word in parameters}
        in_forward = {attributes[a] for a in stored(forward) if a in attributes}
        made, live = prune(made, set())
        required, _ = prune(InitMethod(context, definition, uses).requirements(), set())
        needed = live | names_in(required) | {parameters[word] for word in in_forward}
        computed = self.parameters.computed(definition, uses, needed)
        needed |= names_in(computed)
        arguments = self.arguments.of(definition).arguments
        kept = {w for w, p in parameters.items() if p in needed and w in arguments}
        if definition in self.arguments.interchangeable:
            kept = set(parameters)
        first: list[ast.stmt] = [ast.Expr(py("super().__init__()"))] if base == "nn.Module" else []
        kept_in = [w for w in parameters if w in in_forward]
        attributes_made = [bind(f"self.{context.attribute(definition, w)}", name(parameters[w])) for w in kept_in]
        statements = [*attributes_made, *made] if first else [*made, *attributes_made]  # after super().__init__()
        return simplified(without_repeats([*computed, *required, *first, *statements])), kept

    # Inputs and outputs

    def _inputs(self, forward: ForwardMethod) -> tuple[FunctionInput | None, ...]:
        slots: list[FunctionInput | None] = []
        scope = forward.scope
        root = scope.definition is self.trace.root
        for entry, value, given in scope.inputs:
            is_given = any(isinstance(each, Type | Constant) for each in given)
            if not is_given and scope.definition not in self.arguments.interchangeable:
                slots.append(None)
                continue
            optional = entry.optional and (root or None in given)
            slots.append(FunctionInput(scope.statements.variable(entry.name), value.kind, optional))
        seen = by_name = False
        for i, slot in enumerate(slots):  # a parameter without a default cannot follow one with
            if slot is not None:
                by_name = by_name or (seen and not slot.optional)
                seen = seen or slot.optional
                slots[i] = slot._replace(by_name=by_name)
        return tuple(slots)

    def _record(self, definition: Definition, uses: Sequence[DefinitionUse]) -> str | None:
        declared = definition.node.outputs
        names = [o.name for o, present in zip(declared, _present(uses), strict=False) if present]
        if not names or not all(n.isidentifier() and not n.startswith("_") for n in names):
            return None
        return self.context.records[definition]

    def _outputs(self, forward: ForwardMethod) -> tuple[Output, ...]:
        scope = forward.scope
        declared = scope.definition.node.outputs
        found: list[Output] = []
        for i, present in enumerate(forward.present):
            types = [r for use in scope.uses if (r := use.body.results[i]) is not None]
            ranks = {len(t.shape) for t in types}
            kind = forward.kinds.get(i, REAL) if present else None
            word = python_name(declared[i].name, RESERVED_TUPLE_NAMES) if forward.record and i < len(declared) else ""
            rank = ranks.pop() if len(ranks) == 1 else None
            found.append(Output(word, kind, rank, len(types) < len(scope.uses)))
        return tuple(found)


def _element_type(definition: Definition, use: DefinitionUse) -> str:
    """Return the element type of the tensors passed to inputs declared `any`, "" if only numbers are."""
    passed = [a for entry, a in zip(definition.inputs, use.arguments, strict=True) if entry.type == "any"]
    return next((a.dtype for a in passed if isinstance(a, Type)), "")


def _code(emitted: EmittedDefinition) -> tuple[object, ...]:
    """Return a function as values that compare equal for equal code."""
    statements = [ast.dump(statement) for statement in emitted.forward or ()]
    inputs = [slot and (slot.name, slot.optional, slot.by_name) for slot in emitted.inputs]
    return emitted.kept, inputs, statements, emitted.needs


def _present(uses: Sequence[DefinitionUse]) -> list[bool]:
    """Which outputs there are in some use."""
    return [any(use.body.results[i] is not None for use in uses) for i in range(len(uses[0].body.outputs))]
