"""Templates: definitions as text with gaps for sizes, so that definitions that only differ in sizes are one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from archspec.core.algebra import Expression, Polynomial, substitute
from archspec.pytorch.lift.notation.conditions import Size, Varying
from archspec.pytorch.lift.notation.notation import quote_address
from archspec.pytorch.values.numbers import MAY_BE_ONE, literal
from archspec.pytorch.values.values import Setting

GAP = "\x00"
"""Stands on both sides of the number of a gap for a size."""

USE = "\x01"
"""Stands on both sides of the number of a use of another definition."""

PLACE = "\x06"
"""Stands on both sides of a number in an address, behind its place among those of the definition."""

SETTINGS, SETTING, SWITCH, END = "\x02", "\x03", "\x04", "\x05"
"""Stand before settings, between two of them, after the name of one that may have its usual value, and after them."""

DEFAULT_SETTINGS = ("none", "false")
"""The usual values of settings that may have one."""

NUMBER = re.compile(r"(?<![\w.])(?<!\*\*)(?<!\*\* )[0-9]+(?![\w.])")
"""A number in a formula that is neither an exponent nor part of a name."""


NUMBERED = re.compile(rf"\.{PLACE}([0-9]+) ([0-9]+){PLACE}")
"""A number in an address, with its place."""

OPTIONAL = " = none"
"""Stands after the shape of an input that may be left out."""


@dataclass(frozen=True)
class Statement:
    """Names and the chain of steps that they are assigned; `return` has no names. Other statements are a text."""

    names: tuple[str, ...] = ()
    source: str = ""
    steps: tuple[str, ...] = ()
    text: str = ""

    def changed(self, change: Callable[[str], str]) -> Statement:
        """Return the statement with each of its texts changed."""
        return Statement(self.names, change(self.source), tuple(map(change, self.steps)), change(self.text))


@dataclass(frozen=True)
class Template:
    """A definition without sizes: what is equal for all modules of which it is the definition."""

    kind: str
    inputs: tuple[tuple[str, str, str], ...]
    outputs: tuple[tuple[str, str, str], ...]
    statements: tuple[Statement, ...]
    hints: tuple[str, ...]
    uses: tuple[int, ...]
    """The number of the definition of each use."""
    starts: tuple[int, ...] = field(default=(), compare=False)
    """The first index of each use in a loop, which is in the text as well."""
    is_layer: bool = False


def joined(known: Template, template: Template) -> Template | None:
    """Return the template of which both are, if there is one: with masks that only one of them has."""
    if known.kind != template.kind or known.hints != template.hints:
        return None
    if known == template or _unmasked(known) == template:
        return known
    return template if _unmasked(template) == known else None


def _unmasked(template: Template) -> Template | None:
    """Return a template without the inputs that may be left out; None if it has none, or does not only pass them on."""
    masks = [item for item in template.inputs if item[2].endswith(OPTIONAL)]
    if not masks or any(GAP in shape for _, _, shape in masks):
        return None
    ending = re.compile(rf"(, ({'|'.join([name for name, _, _ in masks])}))+(?=\))")

    def without(text: str) -> str:
        return re.sub(r"\(_\)(?=$| for )", "", ending.sub("", text))

    statements = tuple([item.changed(without) for item in template.statements])
    inputs = tuple([item for item in template.inputs if item not in masks])
    return replace(template, inputs=inputs, statements=statements)


@dataclass
class Definition:
    """A template with the numbers for its gaps in each instance, and the instances that each use is of."""

    template: Template
    rows: list[tuple[Size, ...]] = field(default_factory=list[tuple[Size, ...]])
    inside: list[tuple[tuple[int, ...], ...]] = field(default_factory=list[tuple[tuple[int, ...], ...]])
    """For each instance and each use in it, the rows of the definition that is used."""
    paths: list[str] = field(default_factory=list[str])
    """The address of each instance."""


class Gaps:
    """The gaps of a definition that is being written."""

    def __init__(self) -> None:
        self.values: list[Size] = []
        self.hints: list[str] = []
        self.uses: list[int] = []
        self.inside: list[tuple[int, ...]] = []
        self.starts: list[int] = []
        self.numbered = 0
        """How many numbers in addresses there are."""
        self.renamed: dict[str, Expression] = {}
        self.joint: dict[Polynomial, Polynomial] = {}
        """Sizes that are one dimension here, as their parts are in no statement."""

    def condition(self, value: bool | Varying, hint: str) -> str:
        """Return the text of a condition that may differ between instances."""
        self.values.append(value)
        self.hints.append(hint)
        return f"{GAP}{len(self.values) - 1}{GAP}"

    def address(self, address: str) -> str:
        """Return an address in the notation of the language, whose numbers may follow sizes."""

        def number(match: re.Match[str]) -> str:
            self.numbered += 1
            return f"{PLACE}{self.numbered - 1} {match[0]}{PLACE}"

        return re.sub(r"(?<=\.)[0-9]+(?![^.\[])", number, quote_address(address))

    def forget(self, count: int, numbered: int) -> None:
        """Forget all numbers but the first ones, as what has them is not written."""
        del self.values[count:], self.hints[count:]
        self.numbered = numbered

    def number(self, value: Setting, hint: str = "") -> str:
        """Return the text of a number: a gap, unless it is part of the structure."""
        if isinstance(value, Sequence) and not isinstance(value, str):
            return f"[{', '.join([self.number(item, hint) for item in value])}]"
        if isinstance(value, Polynomial):
            value = self.joint.get(value, value)
            return NUMBER.sub(lambda match: self.number(int(match[0]), hint), str(substitute(value, self.renamed)))
        is_one = value == 1 and hint not in MAY_BE_ONE
        if isinstance(value, bool | str) or value is None or value == 0 or is_one:
            return f'"{value}"' if isinstance(value, str) else literal(value)
        if value < 0:
            return f"-{self.number(-value, hint)}"
        self.values.append(value)
        self.hints.append(hint)
        return f"{GAP}{len(self.values) - 1}{GAP}"

    def span(self, start: int, count: int) -> str:
        """Return the bounds of a loop over so many layers."""
        first = str(start) if start < 2 else self.number(start, "number")
        return f"{first}..{self.number(start + count, 'layers')}"

    def setting(self, name: str, value: Setting) -> str:
        """Return a setting of a function that other instances may do without: these have its usual value."""
        if isinstance(value, bool) or value is None:
            self.values.append(literal(value))
        elif isinstance(value, int | float):
            self.values.append(value)
        else:
            return f"{name} = {self.number(value, name)}"
        self.hints.append(name)
        return f"{name}{SWITCH} = {GAP}{len(self.values) - 1}{GAP}"

    def use(self, definition: int, rows: Sequence[int], start: int = 0) -> str:
        """Return the text of a use of a definition, for these instances of it, in a loop from `start` on."""
        self.starts.append(start)
        self.uses.append(definition)
        self.inside.append(tuple(rows))
        return f"{USE}{len(self.uses) - 1}{USE}"


def numbers_of(template: Template) -> list[tuple[str, int]]:
    """Return the places of the numbers in addresses, and these numbers."""
    texts = [text for item in template.statements for text in (item.source, *item.steps, item.text)]
    return [(place, int(number)) for text in texts for place, number in NUMBERED.findall(text)]


def drop_numbers(template: Template) -> Template:
    """Return a template without the numbers in addresses, which may differ between sizes."""

    def unnumbered(text: str) -> str:
        return NUMBERED.sub("", text)

    return replace(template, statements=tuple([item.changed(unnumbered) for item in template.statements]))


def fill_numbers(text: str, numbers: Mapping[str, str]) -> str:
    """Return a text with formulas for the numbers in addresses, by their places."""

    def fill(match: re.Match[str]) -> str:
        number = numbers[match[1]]
        return f".{number}" if number.isdigit() else f"[{number}]"

    return NUMBERED.sub(fill, text)


def _is_call(text: str) -> bool:
    """Whether an expression is a call of a function, and nothing else."""
    opened = re.match(r"\w+\(", text)
    depth = 0
    for place, character in enumerate(text if opened else ""):
        depth += (character == "(") - (character == ")")
        if character == ")" and not depth:
            return place == len(text) - 1
    return False


def fill_gaps(text: str, gaps: Sequence[str], uses: Sequence[str]) -> str:
    """Return a text with the gaps filled. Sums and products are put in parentheses where they are operands."""

    def settings(match: re.Match[str]) -> str:
        given = [setting for setting in match[1].split(SETTING) if setting and not is_usual(setting)]
        return f"({', '.join(given).replace(SWITCH, '')})" if given else ""

    def is_usual(setting: str) -> bool:
        _, switch, number = setting.partition(SWITCH)
        return bool(switch) and gaps[int(number.strip(f" ={GAP}"))] in DEFAULT_SETTINGS

    def gap(match: re.Match[str]) -> str:
        found = gaps[int(match[2])]
        atomic = re.fullmatch(r"[\w.]+", found) or _is_call(found) or match[1] == " if "
        return match[1] + (
            found if atomic or (match[1] in ("(", "[", ", ", "= ", "..") and match[3] in ",)]") else f"({found})"
        )

    text = re.sub(f"{SETTINGS}([^{END}]*){END}", settings, text)
    text = re.sub(rf"(\(|\[|, |= | if |\.\.|){GAP}([0-9]+){GAP}(?=(.?))", gap, text)

    def use(match: re.Match[str]) -> str:
        found = uses[int(match[1])]
        return f"{found}()" if match[2] and "(" not in found else found

    return re.sub(rf"{USE}([0-9]+){USE}(?=(\()?)", use, text)
