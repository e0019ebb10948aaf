"""For tests of the syntax: text to tree, and a notation that shows how a node was understood."""

import json
from collections.abc import Iterator
from typing import Any

from archspec import Source
from archspec.core.diagnostics import Report
from archspec.core.record import Node
from archspec.language.syntax import tree
from archspec.language.syntax.parse import parse


def tree_of(text: str) -> tree.File:
    report = Report()
    file = parse(Source("test.arch", text), report)
    report.check()
    return file


def item(text: str) -> Any:
    (found,) = tree_of(text).items
    return found


def body(*lines: str) -> tuple[Any, ...]:
    return item("block B(x [n]) -> [n] {\n" + "\n".join(lines) + "\n}").body


def show(node: Any) -> str:
    """A node in a notation that shows how it was understood, with nothing left to precedence."""
    match node:
        case None:
            return ""
        case tree.Literal(value=value):
            return json.dumps(value)
        case tree.Name(text=text):
            return text
        case tree.LeadingDimensions():
            return "..."
        case tree.ListLiteral(items=items):
            return f"[{', '.join(map(show, items))}]"
        case tree.Unary(operator=operator, operand=operand):
            return f"({operator} {show(operand)})"
        case tree.Binary(operator=operator, left=left, right=right):
            return f"({show(left)} {operator} {show(right)})"
        case tree.Conditional(value=value, condition=condition, otherwise=otherwise):
            return f"({show(value)} if {show(condition)}{' else ' * bool(otherwise)}{show(otherwise)})"
        case tree.Subscript(value=value, position=position):
            return f"{show(value)}<{show(position)}>"
        case tree.Segment(text=text, number=number):
            return text if number is None else f"<{show(number)}>"
        case tree.Address(segments=segments):
            return "/".join(map(show, segments))
        case tree.AddressReference(address=address):
            return f"@{show(address)}"
        case tree.Argument(name=name, value=value):
            return show(value) if not name else name if value is None else f"{name}={show(value)}"
        case tree.Arguments(items=items):
            return f"({', '.join(map(show, items))})"
        case tree.Call(callee=callee, lists=lists):
            return show(callee) + "".join(map(show, lists))
        case tree.ModuleDeclaration(address=address, modifiers=modifiers, callee=callee, lists=lists):
            return f"{{{' '.join((show(address) + ':', *modifiers, show(callee)))}{''.join(map(show, lists))}}}"
        case tree.Loop(variable=variable, first=first, last=last):
            return f" for {variable} in {show(first)}..{show(last)}"
        case tree.Step(operator=operator, value=value, condition=condition, otherwise=otherwise, loop=loop):
            suffix = f" if {show(condition)}" if condition else ""
            suffix += f" else {show(otherwise)}" if otherwise else ""
            return f" |> {operator}{show(value)}{suffix}{show(loop)}"
        case tree.Chain(head=head, steps=steps):
            return f"({show(head)}{''.join(map(show, steps))})"
        case _:
            raise TypeError(node)


def expression(text: str) -> str:
    (statement,) = body(f"v = {text}")
    return show(statement.value)


def walk(node: Any, parent: Any = None) -> Iterator[tuple[Any, Any]]:
    """Every node in `node`, with its parent."""
    if isinstance(node, Node):
        yield node, parent
        for child in node:
            yield from walk(child, node)
    elif isinstance(node, tuple):
        for child in node:
            yield from walk(child, parent)
