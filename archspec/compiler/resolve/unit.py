"""Files and their definitions, before the bodies are resolved."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeGuard

from archspec.core.diagnostics import Source, Span, closest_match
from archspec.core.record import Record, from_values
from archspec.ir.ops import Op
from archspec.language.syntax import tree
from archspec.language.syntax.tree import Located, iter_nodes

if TYPE_CHECKING:
    from archspec.ir.table import Quantization


# Patterns of addresses, in which an index matches any number.

Pattern = tuple[str | None, ...]
"""An address with None for each index, and for each word with an index in it."""


def address_pattern(address: tree.Address) -> Pattern:
    """Convert an address to a pattern."""
    words: list[str | None] = []
    for segment in address.segments:
        if segment.text:
            words.append(None if segment.names else segment.text)
        if segment.number is not None:
            words.append(None)
    return tuple(words)


def reference_suffixes(file: tree.File) -> Iterator[Pattern]:
    """Yield the suffixes of each `.address` in a file, which a nested definition may declare."""
    for node in iter_nodes(file):
        if isinstance(node, tree.AddressReference):
            pattern = without_indices(address_pattern(node.address))
            yield from (pattern[k:] for k in range(1, len(pattern)))


def without_indices(pattern: Pattern) -> Pattern:
    """Return a pattern with None in place of each number, too."""
    return tuple(None if word is None or word.isdecimal() else word for word in pattern)


def group_by_first_word(patterns: list[Pattern]) -> dict[str | None, list[Pattern]]:
    """Group distinct patterns by their first segment."""
    groups: dict[str | None, list[Pattern]] = {}
    for pattern in dict.fromkeys(patterns):
        groups.setdefault(pattern[0], []).append(pattern)
    return groups


def covers(outer: Pattern, inner: Pattern) -> bool:
    """Whether `inner` may be equal to `outer` or inside it."""
    return len(inner) >= len(outer) and all(
        a is None or b is None or a == b for a, b in zip(outer, inner, strict=False)
    )


def pattern_text(pattern: Pattern) -> str:
    """Format a pattern for messages."""
    words = ""
    for word in pattern:
        words += "[...]" if word is None else f"{'.' if words else ''}{word}"
    return words


def suggest_address(text: str, declared: list[str]) -> str | None:
    """Suggest a similar address whose first segments are in `declared`; None without a close match."""
    words = text.split(".")
    for end in range(len(words), 0, -1):
        beginnings = (
            declared if end == len(words) else [address for address in declared if address.count(".") == end - 1]
        )
        near = closest_match(".".join(words[:end]), beginnings)
        if near is not None:
            return f"did you mean `{'.'.join([near, *words[end:]])}`?"
    return None


class Inputs(Record):
    """The inputs of a callee: all names, the optional and the required names. The last input may be `variadic`."""

    names: tuple[str, ...]
    optional: frozenset[str]
    required: tuple[str, ...]
    variadic: bool

    @staticmethod
    def from_pairs(inputs: Sequence[tuple[str, bool]], variadic: bool = False) -> Inputs:
        """Create the inputs from pairs of a name and whether it is optional."""
        names = tuple([name for name, _ in inputs])
        optional = frozenset([name for name, may_be_none in inputs if may_be_none])
        return Inputs(names, optional, tuple([name for name in names if name not in optional]), variadic)

    def names_for(self, count: int) -> tuple[str, ...]:
        """Return the names of `count` inputs; variadic inputs are numbered."""
        more = range(2, count - len(self.names) + 2) if self.variadic else ()
        return (*self.names, *[f"{self.names[-1]}{k}" for k in more])


def operation_inputs(op: Op) -> Inputs:
    """Return the inputs of an operation."""
    inputs = _INPUTS.get(op.name)
    if inputs is None:
        variadic = bool(op.inputs) and op.inputs[-1].variadic
        inputs = _INPUTS[op.name] = Inputs.from_pairs([(i.name, i.optional) for i in op.inputs], variadic)
    return inputs


_INPUTS: dict[str, Inputs] = {}


class Hyperparameter(Record):
    """A hyperparameter declared by the definition `origin`, in whose scope its default is evaluated."""

    name: str
    default: tree.Expr | None
    origin: Definition
    span: Span

    @property
    def unit(self) -> Unit:
        """The file in whose scope the default is evaluated."""
        return self.origin.unit


class Definition:
    """A fn, layer or block of a unit, including the signature entries that it inherits.

    All `inputs` are located in its file; `inherited_inputs` maps inherited names to their definition and its entry.
    """

    __slots__ = (
        "expanded",
        "hyperparameters",
        "inherited_inputs",
        "inputs",
        "kind",
        "name",
        "node",
        "open",
        "resolved",
        "span",
        "takes",
        "unit",
        "unknown",
    )

    def __init__(self, node: tree.Definition, unit: Unit) -> None:
        self.node = node
        self.name = node.name.text
        self.kind = node.kind
        self.unit = unit
        self.span = unit.span(node.name)
        self.hyperparameters: dict[str, Hyperparameter] = {}
        self.inputs: tuple[tree.SignatureEntry, ...] = ()
        self.inherited_inputs: dict[str, tuple[Definition, tree.SignatureEntry]] = {}
        self.takes = Inputs.from_pairs([])
        self.expanded = False
        self.open = False  # inheritance has an error: any name may be a hyperparameter or input
        self.unknown: set[str] = set()  # reported unknown names
        self.resolved: object = None  # its resolved form, once it has been created

    def copy(self) -> Definition:
        """Return a definition with the same text, whose resolved form has nodes of its own."""
        result = copy.copy(self)
        result.resolved = None
        result.hyperparameters = {
            name: parameter._replace(origin=result) if parameter.origin is self else parameter
            for name, parameter in self.hyperparameters.items()
        }
        return result


def is_numeric(value: object) -> TypeGuard[Definition]:
    """Whether a value is a function of numbers: it has no outputs and is evaluated at compile time."""
    return isinstance(value, Definition) and value.kind == "fn" and not value.node.outputs


class Binding(Record):
    """The meaning of a name in a unit, and the location of its binding."""

    target: Definition | Op | None  # None: its import has a reported error
    span: Span
    imported: bool


class Unit:
    """One loaded file: its names, dimensions and models. `override_names` are available in overrides only."""

    __slots__ = (
        "_reference_suffixes",
        "broken",
        "default_architecture",
        "deferred",
        "dims",
        "exports",
        "folder",
        "models",
        "names",
        "notes",
        "override_names",
        "quantization",
        "root",
        "source",
        "standard_names",
        "tree",
        "unknown",
    )

    def __init__(self, source: Source, file: tree.File, folder: str | None, root: str | None) -> None:
        self.source = source
        self.tree = file
        self.folder = folder
        self.root = root
        self.names: dict[str, Binding] = {}
        self.override_names: dict[str, Definition | Op] = {}
        self.exports: dict[str, tuple[tree.Import, tree.ImportedName]] = {}
        self.dims: dict[str, Span] = {}
        self.models: dict[str, tree.Model] = {}
        self.broken = {name for part in file.broken for name in part.names}
        self.unknown: set[str] = set()  # reported unknown names
        self.standard_names: Callable[[], Iterable[str]] = tuple  # names that the standard library exports
        self.quantization: Quantization | None = None  # of the weights, from the configuration of the file
        self.deferred: tuple[str, ...] = ()  # fields of the configuration that the file does not compute
        self.notes: tuple[str, ...] = ()  # remarks on the count, from the configuration of the file
        self.default_architecture: str | None = None  # of a configuration that names none
        self._reference_suffixes: set[Pattern] | None = None

    def reaches(self, pattern: Pattern) -> bool:
        """Whether a definition of this file may refer to a nested declaration at this address."""
        if self._reference_suffixes is None:
            self._reference_suffixes = set(reference_suffixes(self.tree))
        return without_indices(pattern) in self._reference_suffixes

    def span(self, node: Located) -> Span:
        """Return the location of a node of this file's tree."""
        return from_values(Span, (self.source, node.start, node.end))
