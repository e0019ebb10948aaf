"""Bodies as statements: chains of steps, and names for what is used more than once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from archspec.core.addresses import is_below, relative
from archspec.core.algebra import Polynomial, symbol, symbols
from archspec.ir.normal.forms.shape import LOWEST_FLOAT32
from archspec.pytorch.lift.definitions.blocks import UNCOUNTED_OPERATIONS, Body
from archspec.pytorch.lift.definitions.lengths import dimensions_of, joint_sizes, total_lengths, usual_dimension_names
from archspec.pytorch.lift.definitions.runs import LayerRun, are_alike, find_slice
from archspec.pytorch.lift.notation.conditions import branches_of
from archspec.pytorch.lift.notation.names import NONE, Names, role_statements
from archspec.pytorch.lift.notation.notation import (
    INPUTS,
    LAYER_SETTINGS,
    OPERATORS,
    PIPED_OPERATORS,
    PRECEDENCE,
    SETTINGS_OF,
    SWITCHES,
    conditional_text,
    count_of_results,
)
from archspec.pytorch.lift.notation.templates import END, OPTIONAL, SETTING, SETTINGS, Gaps, Statement, Template
from archspec.pytorch.lift.statements.chains import Chains
from archspec.pytorch.lift.statements.loops import write_loop
from archspec.pytorch.lift.statements.value_names import ValueNames, attended_names
from archspec.pytorch.values.arguments import UntranslatableError
from archspec.pytorch.values.numbers import literal
from archspec.pytorch.values.values import Argument, LoopValue, Setting, Value

# Facts about a body that its writer needs.


class BorrowedLayer(NamedTuple):
    """A layer declared in a block (or in equal blocks) but applied only outside of it."""

    value: Value
    path: str
    is_declared: bool


class WritingContext(NamedTuple):
    """Context for writing a body: runs of layers in it, by their last value; the layers of all
    iterations of its loops, by those that stand for them; names of its inputs and outputs, and those that are `taken`;
    the tensors that it declares itself, with what is written before their shapes, and those that it ties; the layers
    that it declares for blocks around it; the masks that may be left out; the inputs in whose place ones may stand; the
    addresses of blocks inside; what returns the modifier of a layer.
    """

    body: Body
    runs: Mapping[Value, LayerRun]
    looped: Mapping[Value, LayerRun]
    inputs: Sequence[str]
    outputs: Sequence[str]
    taken: Sequence[str]
    owned: Sequence[tuple[str, str, tuple[int, ...]]]
    ties: Sequence[tuple[str, str]]
    lent: Sequence[BorrowedLayer]
    masks: Collection[Value]
    ones: Collection[Value]
    inner: Collection[str]
    frozen: Callable[[str], str]


# Unused tensors of equal layers as one declaration.

Owned = tuple[str, str, tuple[int, ...]]
"""A tensor: its address, what is written before its shape, and the shape."""


class Declaration(NamedTuple):
    """A tensor of each of so many `layers`, with the index `i` in its address; or one tensor."""

    address: str
    modifiers: str
    shape: tuple[int, ...]
    layers: int | None = None


def stacked(owned: Sequence[Owned]) -> Iterator[Declaration]:
    """Yield declarations of tensors. Those that are not used are declared for several layers if these are equal."""
    unused = [item for item in owned if item[1].startswith("unused")]
    yield from [Declaration(*item) for item in owned if item not in unused]
    yield from _stacked(unused)


def _stacked(owned: Sequence[Owned], prefix: str = "") -> Iterator[Declaration]:
    """Yield declarations of tensors whose addresses begin with a prefix."""
    for name, group in groupby(owned, lambda item: item[0][len(prefix) :].partition(".")[0]):
        items = [*group]
        path = f"{prefix}{name}."
        if not items[0][0].startswith(path):
            yield from [Declaration(*item) for item in items]
            continue
        layers = _layers(items, path)
        if layers is not None:
            first, count = layers
            for rest, modifiers, shape in first:
                yield Declaration(f"{path[:-1]}[i].{rest}", modifiers, shape, count)
        else:
            yield from _stacked(items, path)


def _layers(owned: Sequence[Owned], path: str) -> tuple[list[Owned], int] | None:
    """Return the tensors of a layer, and the number of layers, if all layers under a path are equal."""
    found: dict[str, list[Owned]] = {}
    for address, modifiers, shape in owned:
        number, _, rest = address[len(path) :].partition(".")
        found.setdefault(number, []).append((rest, modifiers, shape))
    first = next(iter(found.values()))
    is_equal = all(layer == first for layer in found.values()) and all(rest for rest, _, _ in first)
    is_list = [*found] == [str(i) for i in range(len(found))] and len(found) > 1
    return (first, len(found)) if is_equal and is_list else None


MAX_RETURN_LENGTH = 88
"""Several outputs are written in one line if they have at most so many characters before numbers have names."""


class BodyWriter:
    """Writes one body. `definition` gives the number and the row of the definition of a call, `key` what is equal for
    calls that only differ in conditions.
    """

    def __init__(
        self,
        facts: WritingContext,
        definition: Callable[[Value], tuple[int, int]],
        key: Callable[[Value], object],
        length: int | None = None,
    ) -> None:
        self.body = body = facts.body
        self.facts = facts
        self.definition = definition
        self.runs = facts.runs
        self.key = key
        self.gaps = Gaps()
        self.imports: set[str] = set()
        self.called: dict[Value, str] = dict(zip(body.inputs, facts.inputs, strict=True))
        self.chains = Chains(body, self.runs, self.called)
        outputs = dict(zip(body.outputs, facts.outputs, strict=True))
        self.value_names = ValueNames(self.chains, outputs, attended_names(self.chains))
        values = body.values()
        steps = [step for value in values for step in value.steps]
        functions = {step.op for step in steps if step.kind in ("ops", "std")}
        shapes = [value.shape for value in (*body.inputs, *values)]
        dimensions = {"batch", "seq"} | {name for shape in shapes for size in shape for name in symbols(size)}
        self.names = Names([*facts.inputs, *facts.taken, *functions, *dimensions])
        self.declared: set[str] = set()
        self.statements: list[Statement] = []
        self.gaps.renamed = usual_dimension_names(body.inputs, body.outputs) if body.path else {}
        given = dimensions_of(body.inputs)
        if body.path:
            self.gaps.joint = joint_sizes(given, body.sizes())
            self.gaps.renamed |= total_lengths(given, self.gaps.renamed) if not self.gaps.joint else {}
        self.length = length
        """The number of tokens that is a dimension here, as it is in no statement."""

    def template(self) -> Template:
        """Return the definition of the body."""
        inputs = tuple(
            [self._input(name, value) for name, value in zip(self.facts.inputs, self.body.inputs, strict=True)]
        )
        outputs = tuple(
            [
                (name, value.dtype, self._shape(value))
                for name, value in zip(self.facts.outputs, self.body.outputs, strict=True)
            ]
        )
        values = [step for value in self.chains.values for step in value.steps]
        has_layers = any(value.is_module for value in values)
        roles = self.roles(bool(self.facts.owned) or has_layers)
        ties = [f"tie {self.gaps.address(alias)} = {self.gaps.address(counted)}" for alias, counted in self.facts.ties]
        self.statements = [Statement(text=text) for text in (*ties, *roles)]
        for address, modifiers, shape, several in stacked(self.facts.owned):
            text = f"{self.gaps.address(address)}: {modifiers} {self.gaps.number(shape, 'size')}"
            text += f" for i in {self.gaps.span(0, several)}" if several is not None else ""
            self.statements.append(Statement(text=text))
        for value, path, is_declared in self.facts.lent:
            condition = self.gaps.condition(is_declared, f"has_{value.address.rpartition('.')[2]}")
            address = self.gaps.address(relative(value.address, path))
            text = f"{address}: {self._layer(value)} if {condition}"
            self.statements.append(Statement(text=text))
        self._declare_shared()
        for value in self.facts.ones:
            self._complete(value)
        for value in self.chains.values:
            if self.chains.is_statement(value):
                self.bind(value)
        if len(self.body.outputs) == 1:
            self.statements.append(Statement((), *self._returned(self.body.outputs[0])))
        else:
            self.statements.append(Statement(text=f"return {', '.join(self._all_returned())}"))
        return Template(
            self.body.frame.kind,
            inputs,
            outputs,
            tuple(self.statements),
            tuple(self.gaps.hints),
            tuple(self.gaps.uses),
            tuple(self.gaps.starts),
            not has_layers and any(operand.op == "tensor" for value in values for operand in value.operands),
        )

    def roles(self, owns: bool) -> list[str]:
        """Return the statements that give roles to layers, or to everything that the definition `owns`."""
        layers = [
            self._path(value)
            for value in self.chains.values
            if value.kind == "layer"
            and value.op not in NONE
            and value not in self.runs
            and not self._is_borrowed(value)
        ]
        return role_statements(self.body.frame.kind, list(dict.fromkeys(layers)), owns, self.gaps.address)

    def _input(self, name: str, value: Value) -> tuple[str, str, str]:
        is_optional = value in self.facts.masks or value in self.facts.ones
        return name, value.dtype, self._shape(value) + (OPTIONAL if is_optional else "")

    def _complete(self, value: Value) -> None:
        """Write the statement that puts ones in the place of an input that is left out."""
        name = self.called[value]
        self.called[value] = self.names.take([f"{name}_or_ones"])
        one = "true" if value.dtype == "bool" else 1
        text = f"{self.called[value]} = {name} if {name} != none else full({self._shape(value)}, {one})"
        self.statements.append(Statement(text=text))

    # Statements -------------------------------------------------------------------------------------------------------

    def bind(self, value: Value) -> None:
        """Write the statement that assigns a value, and those of a loop."""
        if isinstance(value, LoopValue):
            write_loop(self, value)
            return
        parts = self.chains.parts(value)
        source, steps = self.chain(value)
        if parts:
            names = ["_"] * count_of_results(value, parts)
            for part in sorted(parts, key=lambda part: part.integer("index")):
                self.called[part] = names[part.integer("index")] = self.names.take(self.wanted(part))
            self.statements.append(Statement(tuple(names), source, tuple(steps)))
            return
        name = self.names.take(self.wanted(value))
        if value in self.facts.masks:
            given = self.called[value.operands[0]]
            source, steps = f"{value.op}({given}) if {given} != none", []
        self.statements.append(Statement((name,), source, tuple(steps)))
        self.called[value] = name

    def wanted(self, value: Value) -> list[str]:
        """Return names for a value, the best first."""
        return self.value_names.wanted(value)

    def _returned(self, value: Value) -> tuple[str, tuple[str, ...]]:
        if value in self.called:
            return self.called[value], ()
        source, steps = self.chain(value)
        return source, tuple(steps)

    def _all_returned(self) -> list[str]:
        """Return several outputs as expressions, or as names if they are too long for one line."""
        written = len(self.gaps.values), self.gaps.numbered
        found = [self.argument(value) for value in self.body.outputs]
        if len(", ".join(found)) <= MAX_RETURN_LENGTH:
            return found
        self.gaps.forget(*written)
        for value in self.body.outputs:
            if value not in self.called and value.op not in UNCOUNTED_OPERATIONS:
                self.bind(value)
        return [self.argument(value) for value in self.body.outputs]

    def _declare_shared(self) -> None:
        """Declare the layers that are applied several times."""
        for value in [value for value in self.chains.values if value.is_module]:
            if self._is_declared(value):
                continue
            run = self.runs.get(value)
            path = run.address if run is not None else value.address
            if (run is not None and run.is_shared) or self._lends(value):
                self._declare(value)
                text = f"{self.gaps.address(relative(path, self.body.path))}: {self._layer(value)}"
                if run is not None and not run.is_shared:
                    text += self._loop(run)
                self.statements.append(Statement(text=text))

    def _lends(self, value: Value) -> bool:
        """Whether a layer or tensor inside of a block is used here, outside of it."""
        addresses = self._addresses(value)
        used = [other.address for other in self.body.values() if other.kind == "layer" or other.op == "tensor"]
        return any(is_below(other, address) for other in used for address in addresses)

    def _is_borrowed(self, value: Value) -> bool:
        """Whether a layer is declared in a block inside of this one."""
        return value.kind == "layer" and any(is_below(value.address, path) for path in self.facts.inner)

    def inside(self, body: Body, names: Sequence[str]) -> BodyWriter:
        """Return the writer of an iteration of a loop, given the names of its inputs; none for those without one."""
        outputs = [""] * len(body.outputs)
        facts = self.facts._replace(body=body, runs={}, inputs=names, outputs=outputs, owned=(), ties=(), lent=())
        writer = BodyWriter(facts, self.definition, self.key)
        for value, name in zip(body.inputs, names, strict=True):
            if not name:
                del writer.called[value]
        writer.gaps, writer.imports, writer.names = self.gaps, self.imports, self.names
        writer.statements, writer.declared = self.statements, self.declared
        return writer

    # Expressions ------------------------------------------------------------------------------------------------------

    def chain(self, value: Value) -> tuple[str, list[str]]:
        """Return what a value begins with, and the steps that follow."""
        stream = self.chains.stream(value)
        if stream is None:
            return self.expression(value), []
        if stream in self.called or stream.op == "part":
            source, steps = self.argument(stream), []
        else:
            source, steps = self.chain(stream)
        return source, [*steps, self._step(value, stream)]

    def argument(self, value: Argument, precedence: int = 0, among_reals: bool = True) -> str:
        """Return an argument as an expression: `lowest` for the least number, if it is `among_reals`."""
        if isinstance(value, Sequence):
            raise UntranslatableError("it indexes with lists of positions in a way that matches no known mask")
        if not isinstance(value, Value):
            if isinstance(value, float) and value == LOWEST_FLOAT32 and among_reals:
                return "lowest"
            text = self.gaps.number(value, "number")
            return f"({text})" if precedence > 5 and isinstance(value, Polynomial) and not text.isidentifier() else text
        if value in self.called:
            return self.called[value]
        if value.op == "tensor":
            return f".{self.gaps.address(relative(value.address, self.body.path))}"
        return self.expression(value, precedence)

    def expression(self, value: Value, precedence: int = 0) -> str:
        """Return a value as an expression."""
        if value in self.chains.slices:
            part = find_slice(value)
            assert part is not None
            return f"pick(axis = {part.axis}, index = i)({self.argument(part.value)})"
        symbol = OPERATORS.get(value.op)
        if symbol is not None and value.kind == "ops":
            own = PRECEDENCE["neg" if value.op == "neg" else symbol]
            if len(value.args) == 1:
                text = f"{symbol} " if symbol.isalpha() else symbol
                text += self.argument(value.args[0], own)
            else:
                left = self.argument(value.args[0], own + (symbol in ("**", "==", "!=", "<", "<=", ">", ">=")))
                text = f"{left} {symbol} {self.argument(value.args[1], own + 1)}"
            return f"({text})" if own < precedence else text
        flat = self.chains.flat(value)
        reals = any(isinstance(arg, Value) and arg.dtype == "real" for arg in flat)
        names = INPUTS.get(value.op, ())
        named = names[flat.index(None) + 1 :] if names and None in flat else ()
        args = [
            (f"{names[turn]} = " if names and names[turn] in named else "") + self.argument(arg, among_reals=reals)
            for turn, arg in enumerate(flat)
            if arg is not None
        ]
        if not flat and not value.is_module:
            return self._callee(value)
        return f"{self._applied(value)}({', '.join(args)})"

    def _step(self, value: Value, stream: Value) -> str:
        args = self.chains.args(value)
        symbol = OPERATORS.get(value.op)
        if symbol in PIPED_OPERATORS and value.kind == "ops" and len(args) == 2:
            other = args[1] if args[0] is stream else args[0]
            return f"{symbol} {self.argument(other, PRECEDENCE[symbol] + 1)}"
        run = self.runs.get(value)
        if run is not None and run.kinds:
            text = self._alternatives(value, run)
        else:
            given = ["_" if arg is stream else self.argument(arg) for arg in self.chains.flat(value)]
            text = self._applied(value)
            if given != ["_"]:
                text += f"({', '.join(given)})"
        if run is not None:
            text += self._loop(run)
        return text

    def _loop(self, run: LayerRun) -> str:
        return f" for i in {self.gaps.span(run.start, len(run.values))}"

    def _alternatives(self, value: Value, run: LayerRun) -> str:
        """Return the layer of an iteration as conditionals, or its arguments if there is only one layer."""
        self._declare(value)
        address = self.gaps.address(relative(run.address, self.body.path))
        tests = [self.gaps.condition(test, "i") for test in branches_of(run.kinds, run.start)]
        sorts = [run.of_kind(kind) for kind in range(len(tests) + 1)]
        found = [[self.definition(item) for item in items] for items in sorts]
        if are_alike([self.key(items[0]) for items in sorts]) and len({len(items[0].args) for items in sorts}) == 1:
            columns = zip(*[items[0].args[1:] for items in sorts], strict=True)
            given = ["_", *[conditional_text([self.argument(arg) for arg in column], tests) for column in columns]]
            rows = [self.definition(item)[1] for item in run.values]
            used = f"{address}: {self.facts.frozen(value.address)}{self.gaps.use(found[0][0][0], rows, run.start)}"
            return used + (f"({', '.join(given)})" if given != ["_"] else "")
        texts: list[str] = []
        for items, definitions in zip(sorts, found, strict=True):
            given = ["_", *[self.argument(arg) for arg in items[0].args[1:]]]
            used = self.gaps.use(definitions[0][0], [row for _, row in definitions], run.start)
            frozen = self.facts.frozen(items[0].address)
            texts.append(f"{address}: {frozen}{used}" + (f"({', '.join(given)})" if len(given) > 1 else ""))
        return conditional_text(texts, tests)

    def _applied(self, value: Value) -> str:
        """Return what is applied: with its address for a layer or block."""
        if not value.is_module:
            return self._callee(value)
        address = self._address(value)
        if self._is_declared(value) or self._is_borrowed(value):
            return f".{address}"
        return self.declaration(value)

    def declaration(self, value: Value) -> str:
        """Return the declaration of a layer, which is applied by its address from then on."""
        self._declare(value)
        return f"{self._address(value)}: {self._layer(value)}"

    def _declare(self, value: Value) -> None:
        """Note that a layer is declared, or those of all iterations of a loop."""
        self.declared |= self._addresses(value)

    def _is_declared(self, value: Value) -> bool:
        return self._addresses(value) <= self.declared

    def _addresses(self, value: Value) -> set[str]:
        """Return the addresses of the layers that a value stands for."""
        run = self._run(value)
        return {item.address for item in run.values} if run is not None else {value.address}

    def _run(self, value: Value) -> LayerRun | None:
        return self.runs.get(value) or self.facts.looped.get(value)

    def _address(self, value: Value) -> str:
        """Return the address of a layer or block in the notation of the language."""
        return self.gaps.address(self._path(value))

    def _path(self, value: Value) -> str:
        """Return the address of a layer or block, with the index of the loop that it is in."""
        run = self._run(value)
        return relative(run.address if run is not None else value.address, self.body.path)

    def _layer(self, value: Value) -> str:
        """Return what is at the address of a layer or block."""
        return self.facts.frozen(value.address) + self._callee(value)

    def _callee(self, value: Value) -> str:
        if value.kind == "block":
            run = self._run(value)
            values = run.values if run is not None else [value]
            found = [self.definition(item) for item in values]
            return self.gaps.use(found[0][0], [row for _, row in found], run.start if run is not None else 0)
        positional = (LAYER_SETTINGS if value.kind == "layer" else SETTINGS_OF).get(value.op, ())
        if value.kind in ("std", "layer"):
            self.imports.add(value.op)
        parts: list[str] = []
        switches = SWITCHES.get(value.op, {})
        for name, setting in value.settings.items():
            if name not in switches:
                text = self._setting(value, name, setting)
                parts.append(text if name in positional or not name else f"{name} = {text}")
        if switches:
            parts += [self.gaps.setting(name, value.settings.get(name, usual)) for name, usual in switches.items()]
            return f"{value.op}{SETTINGS}{SETTING.join(parts)}{END}"
        return f"{value.op}({', '.join(parts)})" if parts else value.op

    def _setting(self, value: Value, name: str, setting: Setting) -> str:
        if name == "activation" and isinstance(setting, str):
            self.imports.add(setting)
            return setting
        if name in ("axis", "a", "b", "order", "index", "keep", "step", ""):
            if isinstance(setting, str):
                return f'"{setting}"'
            if isinstance(setting, int):
                return literal(setting)
            if isinstance(setting, Sequence):
                return str([*setting])
        return self.gaps.number(setting, "heads" if value.op == "split_heads" else name)

    def _shape(self, value: Value) -> str:
        """Return the shape of an input or output."""
        shape = [symbol("seq") if size == self.length else size for size in value.shape]
        return f"[{', '.join([self.gaps.number(size, 'size') for size in shape])}]"
