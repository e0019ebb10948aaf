"""The definitions of a model in Python: each is written once, after those it uses."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from archspec.ir import Constant, Module, Type
from archspec.lower.trace import Trace, Use
from archspec.lower.units import Definition
from archspec.ops import Op
from archspec.pytorch.code import apply, literal, name, names_in, prune, py, sequence, stored, text
from archspec.pytorch.forms import function_form, is_causal_mask
from archspec.pytorch.forward import Forward
from archspec.pytorch.making import Making
from archspec.pytorch.names import TAKEN_BY_FILES, TAKEN_BY_MODULES, usable
from archspec.pytorch.places import Places
from archspec.pytorch.scope import untranslatable
from archspec.pytorch.values import FREE, REAL, STATIC, Val
from archspec.pytorch.wrappers import wrapper
from archspec.syntax import tree


class Slot(NamedTuple):
    """An input as a parameter of a function; `kind` is that of its value."""

    name: str
    kind: str
    optional: bool


class Output(NamedTuple):
    """An output: its name ("" for none), and its kind, None where it is absent."""

    name: str
    kind: str | None
    rank: int | None


class Written(NamedTuple):
    """A definition in Python.

    `kept` are the hyperparameters it takes (the others are settled), `inputs` its inputs (None for one that is never
    given), `needs` what a function is to be given besides. `record` names the tuple its outputs come in, if they have
    names. `base` is the class it derives from; `making` and `computing` are the statements of `__init__` and `forward`,
    `computing` None where those of the base do.
    """

    name: str
    definition: Definition
    kept: tuple[str, ...]
    inputs: tuple[Slot | None, ...]
    outputs: tuple[Output, ...]
    record: str | None
    needs: frozenset[str]
    is_causal: bool
    base: str
    making: list[ast.stmt]
    computing: list[ast.stmt] | None


class Book:
    """What has been written. `names` are the definitions' in Python, `helpers` the functions that they call."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.helpers: set[str] = set()
        self.pages: dict[Definition, Written] = {}
        self._places: dict[Definition, Places] = {}
        self._parameters: dict[Definition, dict[str, str]] = {}
        self._modules: dict[Definition, list[Module]] = {}
        for module, definition in trace.definitions.items():
            self._modules.setdefault(definition, []).append(module)
        self.names = self._named()
        self.varying = self._found_varying()

    def _named(self) -> dict[Definition, str]:
        """The definitions' own names; of two that share one, the root's file goes first."""
        unit = self.trace.root.unit
        definitions = dict.fromkeys((*self._modules, *self.trace.uses))
        names: dict[Definition, str] = {}
        for definition in sorted(definitions, key=lambda d: d.unit is not unit):
            word = usable(definition.name, TAKEN_BY_FILES)
            taken, count = set(names.values()), 2
            while word in taken:
                word, count = f"{definition.name}{count}", count + 1
            names[definition] = word
        return names

    def _found_varying(self) -> set[Definition]:
        """Definitions that stand in for each other: they must be called alike."""
        found: set[Definition] = set()
        for seen in self.trace.seen.values():
            chosen = {v for v in seen.statics.values() if isinstance(v, Definition)}
            if len(chosen) > 1:
                found |= chosen
        return found

    def modules(self, definition: Definition) -> list[Module]:
        return self._modules.get(definition, [])

    def places(self, definition: Definition) -> Places:
        if definition not in self._places:
            self._places[definition] = Places(self.modules(definition))
        return self._places[definition]

    def values(self, definition: Definition, word: str) -> list[Any]:
        """The values of a hyperparameter in all uses."""
        uses = self.trace.uses.get(definition, ())
        return [m.hyperparameters[word] for m in self.modules(definition)] or [use.values[word] for use in uses]

    def parameters(self, definition: Definition) -> dict[str, str]:
        """The Python names of the hyperparameters."""
        if definition not in self._parameters:
            taken = {*TAKEN_BY_FILES, *self.names.values()}
            found: dict[str, str] = {}
            for word in definition.hyperparameters:
                found[word] = usable(word, taken | set(found.values()))
            self._parameters[definition] = found
        return self._parameters[definition]

    def attribute(self, definition: Definition, word: str) -> str:
        """The attribute of a module that keeps a hyperparameter."""
        owned = {pattern[0] for pattern in self.places(definition).owned}
        return usable(word, owned | TAKEN_BY_MODULES)

    # Writing

    def written(self, definition: Definition) -> Written:
        if definition not in self.pages:
            page = self._function(definition) if definition.kind == "fn" else self._module(definition)
            self.pages[definition] = page
        return self.pages[definition]

    def _function(self, definition: Definition) -> Written:
        uses = self.trace.uses[definition]
        forward = Forward(self, definition, uses, Places([]))
        inputs = self._inputs(forward, uses)
        form = function_form(uses)
        if form is not None:
            code = py(form, x=forward.inputs[0].code)
            outputs = (Output("", REAL, None),)
            return Written(
                self.names[definition],
                definition,
                (),
                inputs,
                outputs,
                None,
                frozenset(),
                False,
                "",
                [],
                [ast.Return(code)],
            )
        forward.execute(definition.node.body)
        body = self._finished(forward)
        used = names_in(body)
        kept = self._kept(definition, used)
        return Written(
            self.names[definition],
            definition,
            kept,
            inputs,
            self._outputs(forward, uses, None),
            None,
            frozenset(forward.needs & used),
            is_causal_mask(uses),
            "",
            [],
            body,
        )

    def _module(self, definition: Definition) -> Written:
        uses = self.trace.uses.get(definition, [])
        known = wrapper(self, definition, uses) if definition.kind == "layer" else None
        if known is not None:
            return known
        making = Making(self, definition, uses)
        making.run()
        computing: list[ast.stmt] | None = None
        inputs: tuple[Slot | None, ...] = ()
        outputs: tuple[Output, ...] = ()
        record = None
        if uses:
            forward = Forward(self, definition, uses, self.places(definition))
            record = self._record(definition, uses)
            forward.execute(definition.node.body)
            computing = self._finished(forward)
            inputs = self._inputs(forward, uses)
            outputs = self._outputs(forward, uses, record)
        return self.page(definition, making, inputs, outputs, record, "nn.Module", computing)

    def page(
        self,
        definition: Definition,
        making: Making,
        inputs: tuple[Slot | None, ...],
        outputs: tuple[Output, ...],
        record: str | None,
        base: str,
        computing: list[ast.stmt] | None,
    ) -> Written:
        """A class, its checks confined to the hyperparameters that it takes."""
        parameters = self.parameters(definition)
        attributes = {self.attribute(definition, word): word for word in parameters}
        in_forward = [attributes[a] for a in stored(computing or ()) if a in attributes]
        checks = [s for s in making.body if _is_check(s)]
        rest, live = prune([s for s in making.body if not _is_check(s)], set())
        kept = self._kept(definition, live | {parameters[w] for w in in_forward})
        taken = {parameters[w] for w in kept}
        bound = {t.id for s in rest if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)}
        useful = [s for s in checks if isinstance(s, ast.If) and names_in([s.test]) <= taken | bound | {"len"}]
        computed = [self._computed(making, w) for w in kept if self.is_computed(definition, w)]
        first = [py_statement("super().__init__()")]
        first += [
            py_statement(f"self.{self.attribute(definition, w)} = {parameters[w]}")
            for w in kept
            if w in set(in_forward)
        ]
        if base != "nn.Module":
            first = []
        early = [s for s in useful if names_in([s.test]) <= taken | {"len"}]  # pyright: ignore
        late = [s for s in useful if s not in early]
        body = [*computed, *early, *first, *rest, *late]
        return Written(
            self.names[definition], definition, kept, inputs, outputs, record, frozenset(), False, base, body, computing
        )

    def _kept(self, definition: Definition, used: set[str]) -> tuple[str, ...]:
        """The hyperparameters that the code reads; all of them where others must be called alike."""
        parameters = self.parameters(definition)
        if definition in self.varying and definition.kind != "fn":
            return tuple(parameters)
        return tuple(word for word, parameter in parameters.items() if parameter in used)

    def _finished(self, forward: Forward) -> list[ast.stmt]:
        body, live = prune(forward.body, set())
        body = _returned(body)
        return [*forward.prelude(live | names_in(body)), *body]

    def _inputs(self, forward: Forward, uses: Sequence[Use]) -> tuple[Slot | None, ...]:
        slots: list[Slot | None] = []
        root = forward.definition is self.trace.root
        for i, (entry, value) in enumerate(zip(forward.definition.node.inputs, forward.inputs, strict=True)):
            given = [use.given[i] for use in uses]
            if not any(isinstance(g, Type | Constant) for g in given) and forward.definition not in self.varying:
                slots.append(None)
                continue
            optional = entry.default is not None and (root or None in given)
            slots.append(Slot(forward.variable(entry.name), value.kind, optional))
        for i in reversed(range(len(slots) - 1)):  # a parameter without a default cannot follow one with
            slot, later = slots[i], [s for s in slots[i + 1 :] if s is not None]
            if slot is not None and slot.optional and any(not s.optional for s in later):
                slots[i] = slot._replace(optional=False)
        return tuple(slots)

    # Outputs

    def _present(self, uses: Sequence[Use]) -> list[bool]:
        return [any(use.body.results[i] is not None for use in uses) for i in range(len(uses[0].body.outputs))]

    def _record(self, definition: Definition, uses: Sequence[Use]) -> str | None:
        declared = definition.node.outputs
        names = [o.name for o, present in zip(declared, self._present(uses), strict=False) if present]
        if not names or not all(n.isidentifier() and not n.startswith("_") for n in names):
            return None
        return f"{self.names[definition]}Output"

    def _outputs(self, forward: Forward, uses: Sequence[Use], record: str | None) -> tuple[Output, ...]:
        declared = forward.definition.node.outputs
        found: list[Output] = []
        for i, present in enumerate(self._present(uses)):
            types = [r for use in uses if (r := use.body.results[i]) is not None]
            ranks = {len(t.shape) for t in types}
            kind = forward.kinds.get(i, REAL) if present else None
            word = usable(declared[i].name, ()) if record and i < len(declared) else ""
            found.append(Output(word, kind, ranks.pop() if len(ranks) == 1 else None))
        return tuple(found)

    def give(self, forward: Forward, values: Sequence[Val | None]) -> None:
        """Appends the `return` of a definition."""
        uses = forward.uses
        codes: list[ast.expr] = []
        for i, (value, present) in enumerate(zip(values, self._present(uses), strict=True)):
            if present:
                codes.append(value.code if value is not None else literal(None))
                if value is not None and (value.is_tensor or i not in forward.kinds):
                    forward.kinds[i] = value.kind if value.kind != STATIC else REAL
        record = None if forward.is_function else self._record(forward.definition, uses)
        if record is not None:
            result: ast.expr = apply(name(record), codes)
        else:
            result = codes[0] if len(codes) == 1 else sequence(codes)
        forward.body.append(ast.Return(result))

    # Hyperparameters

    def default(self, definition: Definition, word: str) -> ast.expr | None:
        """The default of a hyperparameter, if it is a constant or a definition."""
        parameter = definition.hyperparameters[word]
        return self._constant(parameter.default, parameter.unit) if parameter.default is not None else None

    def is_computed(self, definition: Definition, word: str) -> bool:
        """Whether a hyperparameter has a default that depends on others."""
        return definition.hyperparameters[word].default is not None and self.default(definition, word) is None

    def _computed(self, making: Making, word: str) -> ast.stmt:
        """The default of a hyperparameter, put in where it is not given."""
        parameter = making.definition.hyperparameters[word]
        variable = self.parameters(making.definition)[word]
        assert parameter.default is not None
        if parameter.unit is not making.unit or any(v is None for v in self.values(making.definition, word)):
            making.refuse(f"the default of `{word}` has no form in PyTorch", making.definition.node.name)
        value = making.static(parameter.default)
        return ast.If(py("x is None", x=name(variable)), [ast.Assign([name(variable)], value, lineno=0)], [])

    def _constant(self, expr: tree.Expr, unit: Any) -> ast.expr | None:
        match expr:
            case tree.Literal():
                return literal(expr.value)
            case tree.Unary(operator="-"):
                inner = self._constant(expr.operand, unit)
                return py("-x", x=inner) if inner is not None else None
            case tree.Listing():
                items = [self._constant(item, unit) for item in expr.items]
                known = [item for item in items if item is not None]
                return sequence(known) if len(known) == len(items) else None
            case tree.Name():
                binding = unit.names.get(expr.text)
                target = binding.target if binding is not None else None
                return name(self.written(target).name) if target in self.names else None
            case _:
                return None

    def of_value(self, value: Any, definition: Definition) -> ast.expr:
        """A hyperparameter's value as code."""
        match value:
            case Definition():
                if value not in self.names:
                    raise untranslatable(
                        f"`{value.name}` is handed on and never used", definition, definition.node.name
                    )
                return name(self.written(value).name)
            case Op():
                return py(f"torch.{value.name}")
            case _ if isinstance(value, tuple):
                return sequence([self.of_value(v, definition) for v in cast("tuple[Any, ...]", value)])
            case _:
                return literal(value)


def _returned(body: list[ast.stmt]) -> list[ast.stmt]:
    """A variable that is bound once, to be returned, is left out."""
    match body[-2:]:
        case [ast.Assign([ast.Name(word)], value), ast.Return(ast.Name(other))] if word == other:
            earlier = any(isinstance(n, ast.Name) and n.id == word for s in body[:-2] for n in ast.walk(s))
            return body if earlier else [*body[:-2], ast.Return(value)]
        case _:
            return body


def _is_check(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and any(isinstance(s, ast.Raise) for s in statement.body)


def py_statement(code: str) -> ast.stmt:
    return ast.parse(code).body[0]


__all__ = ["FREE", "Book", "Output", "Slot", "Written", "text"]
