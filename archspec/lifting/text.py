"""The source of a spec from definitions and their hyperparameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from archspec.lifting.numbers import literal
from archspec.lifting.program import Program
from archspec.lifting.sizes import Head, Sizes
from archspec.lifting.templates import Statement, Template, filled

WIDTH = 118


def source(
    program: Program, sizes: Sizes, title: str, name: str, defaults: Mapping[str, object], params: int | None
) -> str:
    """Return a spec with one model."""
    parts = [f"# {title}", ""]
    if program.imports:
        parts += [*_imports(sorted(program.imports)), ""]
    if program.dims:
        parts += [f"dim {', '.join(sorted(program.dims, key=_rank))}", ""]
    last = len(program.definitions) - 1
    for number, (definition, head) in enumerate(zip(program.definitions, sizes.heads, strict=True)):
        parts += [*_definition(definition.template, head, defaults if number == last else None), ""]
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


def _definition(template: Template, head: Head, defaults: Mapping[str, object] | None) -> Iterator[str]:
    def text(item: str) -> str:
        return filled(item, head.gaps, head.uses)

    kind = "layer" if template.is_layer else "block"
    hyper = [f"{name} = {literal(defaults[name])}" if defaults is not None else name for name in head.fields]
    hyper += list(head.own)
    inputs = [f"{name}{'' if dtype == 'real' else ' ' + dtype} {text(shape)}" for name, dtype, shape in template.inputs]
    outputs = [
        f"{name + ' ' if name else ''}{'' if dtype == 'real' else dtype + ' '}{text(shape)}"
        for name, dtype, shape in template.outputs
    ]
    arrow = f"-> ({', '.join(outputs)})" if len(outputs) > 1 or template.outputs[0][0] else f"-> {outputs[0]}"
    yield from _head(f"{kind} {head.name}", hyper, inputs, arrow)
    for statement in template.statements:
        for line in _statement(statement, text):
            yield from _broken(line)
    yield "}"


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


def _statement(statement: Statement, text: Callable[[str], str]) -> Iterator[str]:
    if statement.text:
        yield f"  {text(statement.text)}"
        return
    target = f"{', '.join(statement.names)} = " if statement.names else "return "
    first, steps = text(statement.source), [text(step) for step in statement.steps]
    called = _called(first, steps[0]) if steps else None
    if called is not None and len(steps) == 1:
        first, steps = called, []
    elif called is not None and len(steps) == 2 and first.isidentifier():
        short = f"{called} |> {steps[1]}"
        if len(target) + len(short) + 2 <= WIDTH - 8:
            first, steps = short, []
    yield f"  {target}{first}"
    addresses = [step.partition(": ")[0] for step in steps if _is_owned(step)]
    width = max((len(address) for address in addresses), default=0) + 2
    for step in steps:
        if _is_owned(step):
            address, _, rest = step.partition(": ")
            step = f"{address + ':':<{width}}{rest}"
        yield f"    |> {step}"


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
