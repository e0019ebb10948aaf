"""The source of a spec from definitions and their hyperparameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from textwrap import wrap
from typing import NamedTuple, cast

from archspec.core.algebra import Dim
from archspec.pipeline.model import Model, get_compilation
from archspec.pytorch.lift.notation.templates import Statement, Template, fill_gaps, fill_numbers
from archspec.pytorch.lift.sizes.sizes import DefinitionParameters, Sizes
from archspec.pytorch.lift.statements.program import LiftedProgram
from archspec.pytorch.lift.values.stored import MAX_LISTED
from archspec.pytorch.values.numbers import literal

WIDTH = 118

TABLE = "table"
"""The operation that lists numbers."""

MAX_STEPS_PER_LINE = 3
"""Assigned values of so many steps, at most one of them a layer, are in one line if they fit."""

OPENED = re.compile(r"^(?:block|layer) [^{}]*\{\n", re.MULTILINE)
"""A definition up to its first statement."""


def source(
    program: LiftedProgram, sizes: Sizes, title: str, name: str, defaults: Mapping[str, object], params: int | None
) -> str:
    """Return a spec with one model."""
    parts = [f"# {title}", ""]
    if program.imports:
        parts += [*_imports(sorted(program.imports)), ""]
    if program.dims:
        parts += [f"dim {', '.join(sorted(program.dims, key=_rank))}", ""]
    bases = _bases(program, sizes)
    for number, (definition, head) in enumerate(zip(program.definitions, sizes.heads, strict=True)):
        parts += [*_definition(definition.template, head, defaults if number in bases else None, bases.get(number)), ""]
    expects = "" if params is None else f" {{ expect params == {params:_} }}"
    return "\n".join([*parts, f'model "{name}" = {sizes.heads[-1].name}(){expects}', ""])


def _rank(dim: str) -> tuple[bool, str]:
    return dim != "batch", dim


def _imports(names: Sequence[str]) -> Iterator[str]:
    layers = [name for name in names if name[0].isupper()]
    functions = [name for name in names if not name[0].isupper()]
    whole = f"import std {{ {', '.join([*layers, *functions])} }}"
    if len(whole) <= WIDTH:
        yield whole
        return
    for part in (layers, functions):
        yield f"import std {{ {', '.join(part)} }}"


def data_notes(model: Model) -> list[str]:
    """Return a note on the tables that a spec lists, if they have many numbers."""
    bodies, shapes = [get_compilation(model).body], list[tuple[Dim, ...]]()
    for body in bodies:
        own = [output.shape for call in body.calls if call.type == TABLE for output in call.outputs if output]
        shapes += [shape for shape in own if prod(cast("tuple[int, ...]", shape)) > MAX_LISTED]
        bodies += [call.body for call in body.calls if call.body is not None and call.body not in bodies]
    listed = ", ".join([f"[{', '.join(map(str, shape))}]" for shape in dict.fromkeys(shapes)])
    return [f"Written as data: tables of the shape {listed} (no formula is known)."] if shapes else []


def add_comments(spec: str, notes: Sequence[str]) -> str:
    """Return a spec with notes in comments below its first line."""
    lines = [line for note in notes for line in wrap(note, WIDTH, initial_indent="# ", subsequent_indent="#   ")]
    title, newline, rest = spec.partition("\n")
    return title + newline + "".join([f"{line}\n" for line in lines]) + rest


def add_requirements(spec: str, requirements: Sequence[str]) -> str:
    """Return a spec with requirements at the beginning of the definition of its model."""
    *_, main = OPENED.finditer(spec)
    lines = "".join([f"  require {text}\n" for text in requirements])
    return f"{spec[: main.end()]}{lines}{spec[main.end() :]}"


class _Base(NamedTuple):
    """A definition whose hyperparameters and inputs another one takes over, which only adds layers to it."""

    number: int
    head: DefinitionParameters
    inputs: tuple[str, ...]

    def forwarded(self, text: str) -> str:
        """Return a text in which the definition is given all inputs of the other one."""
        given = ", ".join([item.partition(" ")[0] for item in self.inputs])
        return re.sub(rf"\b{self.head.name}\(\.\.\)\({given}\)", f"{self.head.name}(..)(..)", text)


def _bases(program: LiftedProgram, sizes: Sizes) -> dict[int, _Base | None]:
    """Return what the definition of the module takes over, what this one does, and so on, by number."""
    found: dict[int, _Base | None] = {}
    number: int | None = len(program.definitions) - 1
    while number is not None:
        found[number] = base = _base(program, sizes, number)
        number = base.number if base is not None else None
    return found


def _base(program: LiftedProgram, sizes: Sizes, number: int) -> _Base | None:
    """Return the only definition that another one uses, if it is used there alone, once, and has the same inputs."""
    template, head = program.definitions[number].template, sizes.heads[number]
    if len(template.uses) != 1:
        return None
    (used,) = template.uses
    inner, inner_head = program.definitions[used], sizes.heads[used]
    base = _Base(used, inner_head, _inputs(inner.template, inner_head))
    if len(inner.rows) > 1 or base.inputs != _inputs(template, head):
        return None
    return base if any(f"{inner_head.name}(..)(..)" in line for line in _body(template, head, base)) else None


def _inputs(template: Template, head: DefinitionParameters) -> tuple[str, ...]:
    """Return the inputs of a definition with their types."""
    inputs = [(name, dtype, fill_gaps(shape, head.gaps, head.uses)) for name, dtype, shape in template.inputs]
    return tuple([f"{name}{'' if dtype == 'real' else ' ' + dtype} {shape}" for name, dtype, shape in inputs])


def _definition(
    template: Template, head: DefinitionParameters, defaults: Mapping[str, object] | None, base: _Base | None
) -> Iterator[str]:
    kind = "layer" if template.is_layer else "block"
    taken = base.head.fields if base is not None else ()
    fields = [name for name in head.fields if name not in taken]
    hyper = [f"{name} = {literal(defaults[name])}" if defaults is not None else name for name in fields]
    hyper += list(head.own)
    inputs = _inputs(template, head)
    if base is not None:
        hyper, inputs = [f"..{base.head.name}", *hyper], (f"..{base.head.name}",)
    outputs = [
        f"{name + ' ' if name else ''}{'' if dtype == 'real' else dtype + ' '}{fill_gaps(shape, head.gaps, head.uses)}"
        for name, dtype, shape in template.outputs
    ]
    arrow = f"-> ({', '.join(outputs)})" if len(outputs) > 1 or template.outputs[0][0] else f"-> {outputs[0]}"
    yield from _head(f"{kind} {head.name}", hyper, inputs, arrow)
    for line in _body(template, head, base):
        yield from _broken(line)
    yield "}"


def _body(template: Template, head: DefinitionParameters, base: _Base | None) -> Iterator[str]:
    def text(item: str) -> str:
        return fill_gaps(fill_numbers(item, head.numbers), head.gaps, head.uses)

    def forwarded(item: str) -> str:
        return base.forwarded(item) if base is not None else item

    for statement in template.statements:
        yield from _statement(statement, text, forwarded)


def _head(name: str, hyper: Sequence[str], inputs: Sequence[str], arrow: str) -> Iterator[str]:
    listed = f"({', '.join(hyper)})" if hyper else ""
    given = f"({', '.join(inputs)})"
    whole = f"{name}{listed}{given} {arrow} {{"
    if len(whole) <= WIDTH:
        yield whole
        return
    indent = " " * len(name)
    if hyper:
        yield from _wrapped(name, hyper)
    lines = list(_wrapped(indent if hyper else name, inputs))
    if len(lines[-1]) + len(arrow) + 3 <= WIDTH:
        lines[-1] += f" {arrow} {{"
    else:
        lines += _broken(f"{indent}{arrow} {{")
    yield from lines


def _wrapped(before: str, items: Sequence[str]) -> Iterator[str]:
    """Yield a list in parentheses, in as many lines as it needs."""
    line = f"{before}("
    for turn, item in enumerate(items):
        piece = item + (", " if turn < len(items) - 1 else ")")
        if len(line) + len(piece.rstrip()) > WIDTH:
            yield line.rstrip()
            line = " " * (len(before) + 1)
        line += piece
    yield line if items else f"{line})"


def _statement(statement: Statement, text: Callable[[str], str], forwarded: Callable[[str], str]) -> Iterator[str]:
    if statement.text:
        yield f"  {forwarded(text(statement.text))}"
        return
    target = f"{', '.join(statement.names)} = " if statement.names else "return "
    first, *steps = _parts(target, text(statement.source), [text(step) for step in statement.steps], forwarded)
    yield f"  {target}{first}"
    addresses = [step.partition(": ")[0] for step in steps if _is_owned(step)]
    width = max((len(address) for address in addresses), default=0) + 2
    for step in steps:
        if _is_owned(step):
            address, _, rest = step.partition(": ")
            step = f"{address + ':':<{width}}{rest}"
        yield f"    |> {step}"


def _parts(target: str, source: str, steps: Sequence[str], forwarded: Callable[[str], str]) -> list[str]:
    """Return what begins a statement, and the steps that have lines of their own: none if it is short."""
    called = _called(source, steps[0]) if steps else None
    is_called = called is not None and (len(steps) == 1 or source.isidentifier())
    parts = [forwarded(part) for part in ([called, *steps[1:]] if called and is_called else [source, *steps])]
    whole = " |> ".join(parts)
    layers = [_is_owned(step) for step in steps]
    most = 2 if target.startswith("return ") or sum(layers) > 1 else MAX_STEPS_PER_LINE
    if len(parts) <= most and " for i in " not in whole and len(target) + len(whole) <= WIDTH - 10:
        return [whole]
    begins = parts[0] != called or (layers[0] and sum(layers) == 1)  # with its only layer
    return parts if len(steps) < 2 or begins else [source, *steps]


def _broken(line: str) -> Iterator[str]:
    """Yield a line in as many as it needs, broken between arguments."""
    while len(line) > WIDTH:
        places = [at for at in [*_operators(line), *_commas(line)] if at[0] < WIDTH]
        if not places:
            break
        depth = min(depth for _, depth, _ in places)
        end, _, indent = [place for place in places if place[1] == depth][-1]
        if indent >= end:
            break
        yield line[: end + 1].rstrip()
        line = " " * indent + line[end + 1 :].lstrip()
    yield line


def _operators(line: str) -> Iterator[tuple[int, int, int]]:
    """Yield the places before operators in brackets, like those of commas."""
    marked = re.sub(r" (?=(?:[-+*/]|//|[<>]=?) )", ",", line)
    yield from _commas(marked)


def _commas(line: str) -> Iterator[tuple[int, int, int]]:
    """Yield the place of each comma in brackets, the number of brackets around it, and where the innermost begins."""
    opened: list[int] = []
    for place, character in enumerate(line):
        if character in "([":
            opened.append(place + 1)
        elif character in ")]" and opened:
            opened.pop()
        elif character == "," and opened:
            yield place, len(opened), opened[-1]


def _is_owned(step: str) -> bool:
    address, separator, _ = step.partition(": ")
    return bool(separator) and all(character.isalnum() or character in '._[]"' for character in address)


def _called(first: str, step: str) -> str | None:
    """Return a first step as a call of its argument; None if it cannot be written so."""
    if step[0] in "+-*/":
        simple = first.isidentifier() or first.endswith(")")
        return f"{first} {step}" if simple and " for i in " not in step else None
    if " for i in " in step:
        return None
    if "(_, " in step:
        return step.replace("(_, ", f"({first}, ", 1)
    if "_" in re.split("[(), ]", step):
        return None
    return f"{step}({first})" if step.endswith(")") or not _is_owned(step) else f"{step}()({first})"
