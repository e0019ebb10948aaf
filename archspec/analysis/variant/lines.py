"""The statement of a model with other hyperparameters, as one line of a spec."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import cast

from archspec.compiler.evaluate.values import Value
from archspec.compiler.literals import definition_names
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.core.reports.text import literal
from archspec.ir.ops import OPS
from archspec.ir.table import PlainValue
from archspec.pipeline.model import Compilation

_STRING_OR_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|#.*')


def model_line(compilation: Compilation, name: str, values: Mapping[str, PlainValue]) -> str:
    """Return the statement of a model with these hyperparameters in place of its own: `model "name" = Callee(...)`.

    The model was compiled with the values.
    """
    node = compilation.node
    arguments = _arguments(compilation)
    for changed, value in values.items():
        arguments[changed] = written(compilation.values[changed], value)
    return f'model "{name}" = {node.callee.text}({", ".join(f"{n} = {text}" for n, text in arguments.items())})'


def imports_for(unit: Unit, values: Mapping[str, PlainValue]) -> list[str]:
    """Return the names among these values that the file must import from the standard library."""
    words = dict.fromkeys(_words(values.values()))
    return [word for word in words if word not in unit.names and word not in OPS and word in unit.override_names]


def written(value: Value, plain: object) -> str:
    """Return a value as the language writes it; definitions and operations by the name in `plain`."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, tuple) and isinstance(plain, list | tuple):
        items = zip(cast("tuple[Value, ...]", value), cast("list[object]", plain), strict=True)
        return f"[{', '.join(written(item, each) for item, each in items)}]"
    return literal(plain)


def _arguments(compilation: Compilation) -> dict[str, str]:
    """Return the arguments in the statement of a model, as text on one line."""
    node, unit = compilation.node, compilation.unit
    binding = unit.names[node.callee.text]
    assert isinstance(binding.target, Definition)
    names = list(binding.target.hyperparameters)
    found: dict[str, str] = {}
    for position, item in enumerate(node.arguments.items if node.arguments is not None else ()):
        assert item.value is not None
        text = unit.source.text[item.value.start : item.value.end]
        found[item.name or names[position]] = _on_one_line(text)
    return found


def _on_one_line(text: str) -> str:
    """Return an expression without its comments and line breaks; strings of the language have none."""
    lines = [line.strip() for line in _STRING_OR_COMMENT.sub(lambda found: found[1] or "", text).split("\n")]
    return " ".join(line for line in lines if line)


def _words(values: Collection[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield from definition_names(value)
        elif isinstance(value, list | tuple):
            yield from _words(cast("list[object]", value))
