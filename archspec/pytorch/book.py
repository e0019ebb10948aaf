"""The definitions of a model in Python: each is written once, after those it uses."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, cast

from archspec.elaborate.trace import Trace, Use
from archspec.ir import Body, Constant, Module, Type, Weight
from archspec.pytorch.attention import products_in
from archspec.pytorch.checks import about, all_checks, confined
from archspec.pytorch.code import apply, bind, literal, name, names_in, prune, py, sequence, stored
from archspec.pytorch.defaults import computed, is_computed
from archspec.pytorch.fitting import size_checks
from archspec.pytorch.forms import function_form, is_causal_mask
from archspec.pytorch.forward import Forward
from archspec.pytorch.handed import Handed, Kept, depends
from archspec.pytorch.making import Making
from archspec.pytorch.names import TAKEN_BY_FILES, TAKEN_BY_MODULES, TAKEN_BY_RECORDS, usable
from archspec.pytorch.pages import Output, Slot, Written
from archspec.pytorch.places import Places
from archspec.pytorch.steady import is_split, is_steady
from archspec.pytorch.tidy import tidied
from archspec.pytorch.values import REAL, STATIC, Several, Val
from archspec.pytorch.wrappers import wrapper
from archspec.resolve.files import Definition
from archspec.syntax import tree


class Book:
    """What has been written. `names` are the definitions' in Python.

    `forced` are hyperparameters that are kept only for checks.
    """

    def __init__(self, trace: Trace, forced: Kept = frozenset()) -> None:
        self.trace = trace
        self.forced = forced
        self.handed = Handed()
        self.pages: dict[Definition, Written] = {}
        self._places: dict[Definition, Places] = {}
        self._parameters: dict[Definition, dict[str, str]] = {}
        self._attributes: dict[Definition, dict[str, str]] = {}
        self._modules: dict[Definition, list[Module]] = {}
        for module, definition in trace.definitions.items():
            self._modules.setdefault(definition, []).append(module)
        self.names = self._named()
        self.records = self._with_records()
        self.taken = {*TAKEN_BY_FILES, *self.names.values(), *self.records.values()}
        self.varying = self._found_varying()

    def _named(self) -> dict[Definition, str]:
        """The definitions' own names; of two that share one, the root's file goes first."""
        unit = self.trace.root.unit
        values = [v for uses in self.trace.uses.values() for use in uses for v in use.values.values()]
        values += [v for seen in self.trace.seen.values() for v in seen.statics.values()]
        definitions = dict.fromkeys((*self._modules, *self.trace.uses, *_definitions(values)))
        names: dict[Definition, str] = {}
        for definition in sorted(definitions, key=lambda d: d.unit is not unit):
            word = usable(definition.name, TAKEN_BY_FILES)
            taken, count = set(names.values()), 2
            while word in taken:
                word, count = f"{definition.name}{count}", count + 1
            names[definition] = word
        return names

    def _with_records(self) -> dict[Definition, str]:
        """The names of the tuples that outputs with names come in."""
        found: dict[Definition, str] = {}
        for definition, word in self.names.items():
            found[definition] = usable(f"{word}Output", {*self.names.values(), *found.values()})
        return found

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
            steady, split = partial(is_steady, definition, self.trace), partial(is_split, definition, self.trace)
            self._places[definition] = Places(self.modules(definition), steady, split)
        return self._places[definition]

    def values(self, definition: Definition, word: str) -> list[Any]:
        """The values of a hyperparameter in all uses."""
        uses = self.trace.uses.get(definition, ())
        return [m.hyperparameters[word] for m in self.modules(definition)] or [use.values[word] for use in uses]

    def parameters(self, definition: Definition) -> dict[str, str]:
        """The Python names of the hyperparameters."""
        if definition not in self._parameters:
            taken = self.taken
            found: dict[str, str] = {}
            for word in definition.hyperparameters:
                found[word] = usable(word, taken | set(found.values()))
            self._parameters[definition] = found
        return self._parameters[definition]

    def attribute(self, definition: Definition, word: str) -> str:
        """The attribute of a module that keeps a hyperparameter."""
        if definition not in self._attributes:
            taken = {pattern[0] for pattern in self.places(definition).members} | TAKEN_BY_MODULES
            found: dict[str, str] = {}
            for hyper in definition.hyperparameters:
                found[hyper] = usable(hyper.lstrip("_") or "value", taken | set(found.values()))
            self._attributes[definition] = found
        return self._attributes[definition][word]

    # Writing

    def written(self, definition: Definition) -> Written:
        if definition not in self.pages:
            if definition not in self.trace.uses and not self.modules(definition):
                page = self._unused(definition)
            else:
                page = self._function(definition) if definition.kind == "fn" else self._module(definition)
            self.pages[definition] = page
        return self.pages[definition]

    def _unused(self, definition: Definition) -> Written:
        """What is handed on and never applied: there is nothing to tell what it would be applied to."""
        told = literal(f"the model does not apply {definition.name}")
        body: list[ast.stmt] = [ast.Raise(py("NotImplementedError(told)", told=told))]
        word = self.names[definition]
        return Written(word, definition, (), (), (), None, frozenset(), False, "nn.Module", [], body, is_unused=True)

    def _function(self, definition: Definition) -> Written:
        uses = self.trace.uses[definition]
        forward = Forward(self, definition, uses, Places([]))
        form = function_form(uses) if not definition.hyperparameters else None
        body: list[ast.stmt]
        if form is not None:
            inputs = self._inputs(forward, uses)
            body = [ast.Return(py(form, x=forward.inputs[0].code))]
            outputs, kept = (Output("", REAL, None),), self._kept(definition, set())
        else:
            forward, inputs, body, live = self._translated(forward)
            outputs, kept = self._outputs(forward, uses, None), self._kept(definition, live | names_in(body))
            body = without_repeats([*self._checked(definition, uses, kept), *_returned(body)])
        needs = frozenset(forward.needs & names_in(body))
        causal = is_causal_mask(uses)
        body = [*forward.prelude(names_in(body)), *body]
        word = self.names[definition]
        return Written(word, definition, kept, inputs, outputs, None, needs, causal, "", [], tidied(body))

    def _checked(self, definition: Definition, uses: Sequence[Use], kept: Sequence[str]) -> list[ast.stmt]:
        """The checks of a function, or those in `forward`, which are about sizes."""
        scope = Forward(self, definition, uses, self.places(definition))
        sizes = {scope.variable(d) for d in self.sizes(scope)}
        if scope.is_function:
            parameters = self.parameters(definition)
            found = self._checks(scope)
            return confined(found, sizes | {parameters[w] for w in kept}, lambda _: True)
        attributes = {self.attribute(definition, word) for word in kept}

        def wanted(test: ast.expr) -> bool:
            return bool(names_in([test]) & sizes) and set(stored([test])) <= attributes

        return confined(all_checks(scope), sizes | {"self"}, wanted)

    def _checks(self, scope: Forward) -> list[ast.stmt]:
        """All checks of a definition; takes down the hyperparameters that they are about."""
        found = all_checks(scope)
        self.handed.settled[scope.definition] = list(about(found))
        return found

    def sizes(self, forward: Forward) -> list[str]:
        """The dimensions that inputs which are always given bind."""
        shapes = [entry.shape for entry, _ in forward.given_entries() if entry.shape is not None]
        names = [item.text for shape in shapes for item in shape.items if isinstance(item, tree.Name)]
        return [word for word in dict.fromkeys(names) if forward.is_dimension(word)]

    def _module(self, definition: Definition) -> Written:
        uses = self.trace.uses.get(definition, [])
        known = wrapper(self, definition, uses) if definition.kind == "layer" else None
        if known is not None:
            return known
        making = Making(self, definition, uses)
        making.run()
        if not uses:
            return self.page(definition, making, (), (), None, frozenset(), "nn.Module", None)
        forward, inputs, body, live = self._translated(Forward(self, definition, uses, self.places(definition)))
        record = self._record(definition, uses)
        outputs = self._outputs(forward, uses, record)
        needs = frozenset(forward.needs & live)
        return self.page(definition, making, inputs, outputs, record, needs, "nn.Module", body, forward)

    def _translated(self, forward: Forward) -> tuple[Forward, tuple[Slot | None, ...], list[ast.stmt], set[str]]:
        """A body as statements, and what they read. Attention is one call in it, unless a product would be made again
        then, because scores or probabilities are needed besides.
        """
        apart = Forward(self, forward.definition, forward.uses, forward.places)
        apart.fuses = False
        tried: list[tuple[Forward, tuple[Slot | None, ...], list[ast.stmt], set[str]]] = []
        for each in (forward, apart):
            inputs = self._inputs(each, each.uses)
            each.execute(each.definition.node.body)
            body, live = prune(each.body, set())
            tried.append((each, inputs, body, live))
            if products_in(body) < 3:
                break
        return min(tried, key=lambda found: products_in(found[2]))

    def page(
        self,
        definition: Definition,
        making: Making,
        inputs: tuple[Slot | None, ...],
        outputs: tuple[Output, ...],
        record: str | None,
        needs: frozenset[str],
        base: str,
        body: list[ast.stmt] | None,
        forward: Forward | None = None,
    ) -> Written:
        """A class, with checks of what it is given."""
        parameters = self.parameters(definition)
        attributes = {self.attribute(definition, word): word for word in parameters}
        made, live = prune(making.body, set())
        in_forward = {attributes[a] for a in stored(body or ()) if a in attributes}
        kept = self._kept(definition, live | {parameters[w] for w in in_forward})
        if body is not None and forward is not None:
            body = [*self._checked(definition, making.uses, kept), *_returned(body)]
            body = [*forward.prelude(names_in(body)), *body]
            if definition is self.trace.root:
                body = [*size_checks(forward, {self.attribute(definition, w) for w in kept}), *body]
        in_forward = {attributes[a] for a in stored(body or ()) if a in attributes}
        defaults = [computed(making, w) for w in kept if is_computed(self, definition, w)]
        scope = Making(self, definition, making.uses)
        checked = confined(self._checks(scope), {parameters[w] for w in kept}, lambda _: True)
        first = [py_statement("super().__init__()")] if base == "nn.Module" else []
        first += [bind(f"self.{self.attribute(definition, w)}", name(parameters[w])) for w in kept if w in in_forward]
        whole = without_repeats([*defaults, *checked, *first, *made])
        word = self.names[definition]
        body = tidied(body) if body is not None else None
        return Written(word, definition, kept, inputs, outputs, record, needs, False, base, tidied(whole), body)

    def _kept(self, definition: Definition, used: set[str]) -> tuple[str, ...]:
        """The hyperparameters that the code reads; all of them where others must be called alike."""
        parameters = self.parameters(definition)
        if definition in self.varying and definition.kind != "fn":
            return tuple(parameters)
        forced = {word for other, word in self.forced if other is definition}
        return tuple(word for word, parameter in parameters.items() if parameter in used or word in forced)

    def to_be_kept(self) -> Kept:
        """Hyperparameters that must be kept for checks, besides those that are."""
        found = set(self.forced)
        for definition, page in self.pages.items():
            parameters = self.parameters(definition)
            found |= {(definition, word) for word in self.handed.open(definition, parameters, page.kept)}
        for caller, callee, word, code in self.handed.given:
            parameters, kept = self.parameters(caller), self.pages[caller].kept
            attributes = {self.attribute(caller, w) for w in kept}
            if depends(code, attributes, {parameters[w] for w in kept}, {*parameters.values(), *self.names.values()}):
                found.add((callee, word))
        return frozenset(found)

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
        seen = by_name = False
        for i, slot in enumerate(slots):  # a parameter without a default cannot follow one with
            if slot is not None:
                by_name = by_name or (seen and not slot.optional)
                seen = seen or slot.optional
                slots[i] = slot._replace(by_name=by_name)
        return tuple(slots)

    # Outputs

    def _present(self, uses: Sequence[Use]) -> list[bool]:
        return [any(use.body.results[i] is not None for use in uses) for i in range(len(uses[0].body.outputs))]

    def _record(self, definition: Definition, uses: Sequence[Use]) -> str | None:
        declared = definition.node.outputs
        names = [o.name for o, present in zip(declared, self._present(uses), strict=False) if present]
        if not names or not all(n.isidentifier() and not n.startswith("_") for n in names):
            return None
        return self.records[definition]

    def _outputs(self, forward: Forward, uses: Sequence[Use], record: str | None) -> tuple[Output, ...]:
        declared = forward.definition.node.outputs
        found: list[Output] = []
        for i, present in enumerate(self._present(uses)):
            types = [r for use in uses if (r := use.body.results[i]) is not None]
            ranks = {len(t.shape) for t in types}
            kind = forward.kinds.get(i, REAL) if present else None
            word = usable(declared[i].name, TAKEN_BY_RECORDS) if record and i < len(declared) else ""
            found.append(Output(word, kind, ranks.pop() if len(ranks) == 1 else None, len(types) < len(uses)))
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

    def give_all(self, forward: Forward, several: Several) -> None:
        """Appends the `return` of all outputs of something applied."""
        present = [i for i, kind in enumerate(several.kinds) if kind is not None]
        for i in present:
            forward.kinds[i] = several.kinds[i] or REAL
        own = [i for i, p in enumerate(self._present(forward.uses)) if p]
        if own != present:
            forward.refuse("these outputs are not there in every use", forward.definition.node.name)
        record = None if forward.is_function else self._record(forward.definition, forward.uses)
        code = several.code
        if record is not None:
            code = apply(name(record), [ast.Starred(code, ast.Load()) if len(present) > 1 else code])
        forward.body.append(ast.Return(code))

    def tables(self, definition: Definition) -> list[Body]:
        """What computes the constant tables of a definition."""
        found: list[Body] = []
        for module in self.modules(definition):
            weights = [m.target for m in module.members.values() if isinstance(m.target, Weight)]
            found += [weight.value for weight in weights if weight.value is not None]
        return found


def _definitions(values: Iterable[Any]) -> Iterator[Definition]:
    """The definitions among values and in lists of them."""
    for value in values:
        if isinstance(value, Definition):
            yield value
        elif isinstance(value, tuple):
            yield from _definitions(cast("tuple[Any, ...]", value))


def _returned(body: list[ast.stmt]) -> list[ast.stmt]:
    """What is bound only to be returned is returned."""
    match body[-2:]:
        case [ast.Assign([ast.Name(word)], value), ast.Return(ast.Name(other))] if word == other:
            return [*body[:-2], ast.Return(value)]
        case _:
            return body


def without_repeats(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """A body without an assignment to a variable of what it holds already."""
    held: dict[str, ast.expr] = {}
    kept: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.Assign([ast.Name(target)], value):
                if target in held and ast.dump(held[target]) == ast.dump(value):
                    continue
                changed, known = {target}, {target: value}
            case ast.Assign(targets):
                changed, known = names_in(targets), dict[str, ast.expr]()
            case _:
                inside = [n for n in ast.walk(statement) if isinstance(n, ast.Assign)]
                changed, known = names_in([t for n in inside for t in n.targets]), dict[str, ast.expr]()
        held = {t: v for t, v in {**held, **known}.items() if t in known or t not in changed}
        held = {t: v for t, v in held.items() if not changed & names_in([v])}
        kept.append(statement)
    return kept


def py_statement(code: str) -> ast.stmt:
    return ast.parse(code).body[0]
