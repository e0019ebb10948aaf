"""The statement of a model with changed hyperparameters, as one line of a spec.

Separate from `variant.new`, so that a search does not import `analysis.diff`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from archspec.compiler.evaluate.values import Value
from archspec.compiler.literals import definition_names
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.core.reports.text import literal
from archspec.ir.ops import OPS
from archspec.ir.table import PlainValue
from archspec.pipeline.model import Compilation

_STRING_OR_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|#.*')


def format_model_statement(compilation: Compilation, name: str, values: Mapping[str, PlainValue]) -> str:
    """Return the statement of a model with changed hyperparameters: `model "name" = Callee(...)`.

    `compilation` is the model compiled with `values`.
    """
    node = compilation.node
    arguments = _argument_texts(compilation)
    for hyperparameter, value in values.items():
        arguments[hyperparameter] = format_value(compilation.values[hyperparameter], value)
    return f'model "{name}" = {node.callee.text}({", ".join(f"{n} = {text}" for n, text in arguments.items())})'


def find_imports(unit: Unit, values: Mapping[str, PlainValue]) -> list[str]:
    """Return the names in the values that the file must import from the standard library."""
    words = dict.fromkeys(definition_names([*values.values()]))
    return [word for word in words if word not in unit.names and word not in OPS and word in unit.override_names]


def format_value(value: Value, plain: object) -> str:
    """Format a value in the syntax of the language; definitions and operations by the name in `plain`."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, tuple) and isinstance(plain, list | tuple):
        items = zip(cast("tuple[Value, ...]", value), cast("list[object]", plain), strict=True)
        return f"[{', '.join(format_value(item, plain_item) for item, plain_item in items)}]"
    return literal(plain)


def _argument_texts(compilation: Compilation) -> dict[str, str]:
    """Return the arguments in the statement of a model, as text on one line."""
    node, unit = compilation.node, compilation.unit
    binding = unit.names[node.callee.text]
    assert isinstance(binding.target, Definition)
    names = list(binding.target.hyperparameters)
    texts: dict[str, str] = {}
    for position, item in enumerate(node.arguments.items if node.arguments is not None else ()):
        assert item.value is not None
        text = unit.source.text[item.value.start : item.value.end]
        texts[item.name or names[position]] = _join_lines(text)
    return texts


def _join_lines(text: str) -> str:
    """Remove comments and line breaks from an expression. Strings contain neither."""
    lines = [line.strip() for line in _STRING_OR_COMMENT.sub(lambda match: match[1] or "", text).split("\n")]
    return " ".join(line for line in lines if line)
