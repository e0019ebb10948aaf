"""Items of lists that are declared, such as the layer of an index: one call for each kind of item."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from archspec.codegen.expressions.static_code import StaticCode
from archspec.codegen.python.trees import apply, literal, py, sequence
from archspec.compiler.elaborate.trace import prebound_hyperparameters
from archspec.compiler.evaluate.partials import split_partial
from archspec.compiler.evaluate.values import Value, is_list, value_key
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.unit import Definition


class ItemCall(NamedTuple):
    """The call of an item; `test` holds for the indices of such items, and is None where no other is left."""

    test: ast.expr | None
    call: ast.expr


def item_calls(static: StaticCode, node: nodes.ModuleDeclaration) -> list[ItemCall]:
    """The calls for the items of a list. None where one expression is right for all of them."""
    chosen = node.callee
    lists = static.statics(chosen.value) if isinstance(chosen, nodes.Subscript) else []
    if not isinstance(chosen, nodes.Subscript) or len(lists) != 1 or not is_list(lists[0]):
        return []
    items, applied = lists[0], static.scope.trace.static_values(chosen)
    keys = [value_key(item) for item in items]
    constructors = {key: _call(static, node, keys.index(key), items) for key in dict.fromkeys(keys) if key in applied}
    index, period = _index(static, chosen, keys)
    is_alike = len({ast.dump(apply(py("item"), *arguments)) for _, arguments in constructors.values()}) == 1
    if len(constructors) < 2 or (is_alike and (period is None or not static.is_settled(chosen.value))):
        return []
    calls = {key: apply(code, *arguments) for key, (code, arguments) in constructors.items()}
    places: dict[str, list[int]] = {}
    for place, key in enumerate(keys[:period]):
        if key in calls:
            places.setdefault(ast.dump(calls[key]), []).append(place)
    items_called: list[ItemCall] = []
    for where in sorted(places.values(), key=len):
        test = py("i == place", i=index, place=literal(where[0]))
        if len(where) > 1:
            test = py("i in places", i=index, places=sequence([literal(place) for place in where]))
        items_called.append(ItemCall(test, calls[keys[where[0]]]))
    if period is not None and all(key in calls for key in keys):
        items_called[-1] = items_called[-1]._replace(test=None)
    return items_called


def _index(static: StaticCode, chosen: nodes.Subscript, keys: list[Hashable]) -> tuple[ast.expr, int | None]:
    """The code of an index, modulo the period of a list that repeats; None if it does not repeat."""
    match chosen.position:
        case nodes.Binary(operator="%", left=left, right=right) if static.statics(right) == [len(keys)]:
            period = next(n for n in range(1, len(keys) + 1) if keys[n:] + keys[:n] == keys)
            return py("i % period", i=static.code(left), period=literal(period)), period
        case position:
            return static.code(position), None


def _call(
    static: StaticCode, node: nodes.ModuleDeclaration, place: int, items: Sequence[Value]
) -> tuple[ast.expr, tuple[list[ast.expr], dict[str, ast.expr]]]:
    """The item at a place of a list, and the arguments that it is called with."""
    scope, chosen = static.scope, node.callee
    definition, partial = split_partial(items[place])
    assert isinstance(definition, Definition) and isinstance(chosen, nodes.Subscript)
    callee = scope.context.specialize(partial or definition)
    if callee is None:
        scope.refuse("what is declared here is made in another way in other uses", node)
    words = frozenset([word for word, _ in partial.values] if partial is not None else ())
    variants = scope.trace.argument_variants(node, callee)
    bound = next(bound for bound in variants if prebound_hyperparameters(bound) == words)
    item = scope.context.code_of(items[place])
    if item is None or not static.is_settled(chosen.value):
        item = ast.Subscript(static.code(chosen.value), literal(place), ast.Load())
    return item, static.passed(callee, node, bound)
