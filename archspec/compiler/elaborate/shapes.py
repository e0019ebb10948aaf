"""Checks of actual shapes against declared shapes, which bind dimensions and `...`."""

from __future__ import annotations

from archspec.compiler.evaluate.body_builder import BodyBuilder
from archspec.compiler.evaluate.interpreter import Interpreter
from archspec.compiler.evaluate.program import Frame
from archspec.compiler.evaluate.values import DYNAMIC, POISON, StaticError, Value, describe, show
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.definition import resolve_definition
from archspec.compiler.resolve.nodes import TypedEntry
from archspec.compiler.resolve.unit import Definition
from archspec.compiler.resolve.walk import multiple_of
from archspec.core.algebra import Dim, Polynomial
from archspec.core.diagnostics import Note, Span
from archspec.core.record import Record
from archspec.ir.module import Type
from archspec.language.syntax import tree
from archspec.language.syntax.tree import Located


class OutputExpression(Record):
    """An output of a definition: its expression, and its slot in the body of `builder`."""

    at: Located
    builder: BodyBuilder
    slot: int


class DimensionBindings:
    """The dimensions bound by one application of a definition."""

    def __init__(self, interpreter: Interpreter, definition: Definition) -> None:
        self.interpreter = interpreter
        self.definition = definition
        self.leading: tuple[Dim, ...] | None = None
        self._accepts_any = False  # whether the input that bound `...` accepts any shape
        self._bound: dict[str, tuple[str, TypedEntry]] = {}

    def match(self, entry: TypedEntry, actual: Type, output: OutputExpression | None = None) -> bool:
        """Check `actual` against the declaration `entry`, and bind its unbound dimensions; False after a report.

        A mismatch is reported at the expression of `output`, or at the argument of an input.
        """
        if actual.dtype != entry.dtype:
            verb = "expects" if output is None else "is declared with"
            common = ", the type of the inputs declared `any`" if entry.at.type == "any" else ""
            message = f"{self._describe_entry(entry)} {verb} {entry.dtype} elements{common}, found {actual.dtype}"
            self._report("wrong-kind", message, entry, output, help=self._conversion_help(entry, actual, output))
            return False
        if entry.shape is None:
            return True
        items = entry.shape.items
        split = next((i for i, item in enumerate(items) if isinstance(item, nodes.LeadingDimensions)), None)
        fixed = len(items) - (split is not None)
        sizes = actual.shape
        if len(sizes) < fixed or (split is None and len(sizes) != fixed):
            self._report_mismatch(entry, actual, output, ())
            return False
        if split is None:
            matches = [self._match_size(entry, k, i, actual, output) for k, i in enumerate(items)]
            return all(matches)
        after = len(items) - split - 1
        leading = sizes[split : len(sizes) - after]
        accepts_any = fixed == 0 and self._accepts_any_shape()
        if self.leading is None or (self._accepts_any and not accepts_any):
            self.leading, self._accepts_any = leading, accepts_any
            self._bound["..."] = (format_shape(leading), entry)
        elif self.leading != leading and not accepts_any:
            self._report_mismatch(entry, actual, output, (self._first_binding_note("..."),))
            return False
        pairs = [*enumerate(items[:split]), *enumerate(items[split + 1 :], len(sizes) - after)]
        matches = [self._match_size(entry, k, i, actual, output) for k, i in pairs]
        return all(matches)

    def _accepts_any_shape(self) -> bool:
        """Whether inputs declared as `[...]` accept any shape: no output has the same axes."""
        outputs = resolve_definition(self.definition, self.interpreter.program.report).outputs
        items = [item for output in outputs if output.shape is not None for item in output.shape.items]
        return not any(isinstance(item, nodes.LeadingDimensions) for item in items)

    def _match_size(
        self, entry: TypedEntry, axis: int, item: nodes.Expr, actual: Type, output: OutputExpression | None
    ) -> bool:
        interpreter = self.interpreter
        size = actual.shape[axis]
        if isinstance(item, nodes.Dimension) and item.key not in interpreter.env and _is_input(entry):
            interpreter.env[item.key] = size
            self._bound[item.name] = (str(size), entry)
            return True
        multiple = self._unbound_multiple(entry, item)
        if multiple is not None and not self._bind_quotient(entry, axis, *multiple, actual):
            return False
        expected = interpreter.value(item)
        if expected is POISON or expected is DYNAMIC:
            return False
        if not isinstance(expected, int | Polynomial) or isinstance(expected, bool):
            message = f"expected an integer size, found {describe(expected)}"
            interpreter.fault(
                "wrong-kind",
                message,
                item.at,
                help="use `//` for integer division" if isinstance(expected, float) else None,
            )
            return False
        if expected == size:
            interpreter.program.numbers.on_size_matched(expected, size)
            return True
        notes: tuple[Note, ...] = ()
        if isinstance(item, nodes.Dimension) and item.name in self._bound:
            notes = (self._first_binding_note(item.name),)
        elif not isinstance(item, nodes.Literal):
            is_root = interpreter.unit.source is interpreter.program.root
            subject = f"`{self._text(item)}`" if is_root else f"`{self._text(item)}` of `{self.definition.name}`"
            notes = (Note(f"{subject} is {expected} here", interpreter.unit.span(item.at)),)
        self._report_mismatch(entry, actual, output, notes, axis)
        return False

    def _unbound_multiple(self, entry: TypedEntry, item: nodes.Expr) -> tuple[nodes.Expr, nodes.Dimension] | None:
        """Return the factor and the dimension of a size such as `80 * seq`, if this occurrence binds the dimension."""
        multiple = multiple_of(item) if _is_input(entry) else None
        return multiple if multiple is not None and multiple[1].key not in self.interpreter.env else None

    def _bind_quotient(
        self, entry: TypedEntry, axis: int, factor_node: nodes.Expr, dimension: nodes.Dimension, actual: Type
    ) -> bool:
        """Bind a dimension to the size of an axis divided by a factor; False after reporting an indivisible size."""
        interpreter = self.interpreter
        numbers, span = interpreter.program.numbers, interpreter.unit.span(factor_node.at)
        factor, size = interpreter.value(factor_node), actual.shape[axis]
        if factor is POISON or factor is DYNAMIC:
            return False
        if (
            not isinstance(factor, int | Polynomial)
            or isinstance(factor, bool)
            or (isinstance(factor, int) and factor < 1)
        ):
            message = f"expected a positive integer as the factor of a size, found {describe(factor)}"
            interpreter.fault("wrong-kind", message, factor_node.at)
            return False
        try:
            is_divisible = numbers.divides(factor, size, span)
            quotient = numbers.combine("//", size, factor, span) if is_divisible else None
        except StaticError:
            is_divisible, quotient = False, None
        if not is_divisible:
            is_literal = isinstance(factor_node, nodes.Literal)
            divisor = str(factor) if is_literal else f"`{self._text(factor_node)}`, which is {factor} here"
            note = f"{size} is not {'' if isinstance(size, int) else 'known to be '}a multiple of {divisor}"
            self._report_mismatch(entry, actual, None, (Note(note, span),))
            return False
        interpreter.env[dimension.key] = quotient
        self._bound[dimension.name] = (str(quotient), entry)
        return True

    def _report_mismatch(
        self,
        entry: TypedEntry,
        actual: Type,
        output: OutputExpression | None,
        notes: tuple[Note, ...],
        axis: int | None = None,
    ) -> None:
        assert entry.shape is not None
        verb = "expects" if output is None else "is declared with"
        declared = self._format_declared(entry, entry.shape, actual)
        message = f"{self._describe_entry(entry)} {verb} {declared}, found {format_shape(actual.shape)}"
        self._report("dimension", message, entry, output, notes, axis=axis)

    def _report(
        self,
        code: str,
        message: str,
        entry: TypedEntry,
        output: OutputExpression | None,
        notes: tuple[Note, ...] = (),
        *,
        help: str | None = None,
        axis: int | None = None,
    ) -> None:
        unit = self.interpreter.unit
        span = self._argument_span(entry)
        if output is not None:
            span = (output.builder.size_origin(output.slot, axis) if axis is not None else None) or unit.span(output.at)
        declared = unit.span(entry.at)
        if not notes and declared != span:
            notes = (Note("declared here", declared),)
        self.interpreter.program.error(code, message, span, notes=notes, help=help)

    def _conversion_help(self, entry: TypedEntry, actual: Type, output: OutputExpression | None) -> str:
        """Return the help for a mismatch of element types."""
        span = self._argument_span(entry) if output is None else self.interpreter.unit.span(output.at)
        is_piped = output is None and span == self._use.span
        if is_piped and entry.dtype != "bool":
            return f"convert it before this step: `|> {entry.dtype}`"
        text = span.source.text[span.start : span.end].rpartition(" = ")[2]
        name = text if not is_piped and len(text) <= 30 and not {":", "|", "\n"} & set(text) else "x"
        if output is not None:
            declared = f"declare the output as {actual.dtype}: `-> {actual.dtype} [...]`"
            return declared if entry.dtype == "bool" else f"{declared}, or convert it: `{entry.dtype}({name})`"
        if entry.dtype == "int":
            return f"convert it: `int({name})`, or declare its source as int: `ids int [...]`"
        if entry.dtype == "real":
            return f"convert it: `real({name})`"
        if entry.name == "mask" and len(actual.shape) == 2:
            return f"convert it to an attention mask: `key_mask({name})`, with `import std {{ key_mask }}`"
        return f"compare it with a number: `{name} != 0{'.0' if actual.dtype == 'real' else ''}`"

    def _first_binding_note(self, name: str) -> Note:
        """Return a note that locates the first binding of a dimension."""
        size, entry = self._bound[name]
        subject = f"`{name}`" if name == "..." else f"`{name}` of `{self.definition.name}`"
        return Note(f"{subject} was bound to {size} by input `{entry.name}`", self._argument_span(entry))

    def _argument_span(self, entry: TypedEntry) -> Span:
        """Return the location of the argument of an input, or of its declaration in the outermost definition."""
        return self._use.argument(entry.name)

    @property
    def _use(self) -> Frame:
        """Return the use of the definition."""
        return self.interpreter.program.frames[-1]

    def _describe_entry(self, entry: TypedEntry) -> str:
        kind = "input" if _is_input(entry) else "output"
        return f"{kind}{f' `{entry.name}`' if entry.name else ''} of `{self.definition.name}`"

    def _format_declared(self, entry: TypedEntry, shape: nodes.ListLiteral, actual: Type) -> str:
        """Format a declared shape with its known sizes, or its number of axes if it has names from a different file."""
        interpreter = self.interpreter
        words: list[str] = []
        has_leading = any(isinstance(item, nodes.LeadingDimensions) for item in shape.items)
        has_equal_rank = len(actual.shape) == len(shape.items)
        for axis, item in enumerate(shape.items):
            value: Value = None
            is_multiple = self._unbound_multiple(entry, item) is not None
            if is_multiple or (isinstance(item, nodes.Dimension) and item.key not in interpreter.env):
                if has_equal_rank and not has_leading:
                    words.append(self._text(item) if is_multiple else str(actual.shape[axis]))
                    continue
                if self._use.unit is not interpreter.unit:
                    number = len(shape.items) - has_leading
                    return f"{'at least ' if has_leading else ''}{number} {'axis' if number == 1 else 'axes'}"
            if isinstance(item, nodes.LeadingDimensions):
                words.append("..." if self.leading is None else ", ".join(map(str, self.leading)))
                continue
            if isinstance(item, nodes.Local | nodes.Dimension):
                value = interpreter.env.get(item.name if isinstance(item, nodes.Local) else item.key)
            elif not isinstance(item, nodes.Literal) and not is_multiple:
                value = interpreter.value(item)
            words.append(self._text(item) if value is None or value is POISON or value is DYNAMIC else show(value))
        return f"shape [{', '.join(w for w in words if w)}]"

    def _text(self, item: nodes.Expr) -> str:
        return self.interpreter.unit.source.text[item.at.start : item.at.end]


def _is_input(entry: TypedEntry) -> bool:
    return isinstance(entry.at, tree.SignatureEntry)


def format_shape(shape: tuple[Dim, ...]) -> str:
    """Format a shape in the syntax of the language."""
    return f"[{', '.join(map(str, shape))}]"
