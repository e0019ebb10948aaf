"""Consecutive products with the matrices of the same experts: in between, vectors stay sorted by expert.

The statements of a body are rewritten. A value that is sorted is followed through elementwise operations and splits of
the last axis to the next product; where anything else reads it, its order is restored.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Sequence
from typing import cast

from archspec.codegen.python.trees import (
    apply,
    assigned,
    bind,
    method,
    name,
    names_in,
    parse_template,
    py,
    substituted,
    text,
)
from archspec.compiler.elaborate.trace import DefinitionUse
from archspec.ir.module import Body
from archspec.ir.ops import OPS

PRODUCT = "expert_linear"

_CHOSEN = frozenset({"torch.minimum", "torch.maximum", "torch.where"})
"""Elementwise functions that depend on which operands of an operation are numbers."""


def sort_experts_once(
    body: list[ast.stmt], variable: str, elementwise: Collection[str], numbers: Collection[str]
) -> list[ast.stmt]:
    """A body whose products with the same experts sort their vectors once, as `variable`, if it has several in a row.

    `elementwise` are the functions that compute each element by itself, `numbers` the attributes that are numbers.
    """
    for word in dict.fromkeys(products_in(body)):
        first = next(i for i, statement in enumerate(body) if word in products_in([statement]))
        if word.isidentifier() and not any(word in assigned(statement) for statement in body[first:]):
            made = _ExpertSorting(word, variable, elementwise, numbers)
            found = made.run(copy.deepcopy(body))
            match [*made.begun]:
                case [vectors] if made.is_shorter and vectors.isidentifier():
                    return found
                case _:
                    pass
    return body


def products_in(body: Sequence[ast.stmt]) -> list[str]:
    """The experts of each product in a body."""
    calls = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return [text(call.args[1]) for call in calls if text(call.func) == PRODUCT]


def elementwise_functions() -> frozenset[str]:
    """The functions of PyTorch that are elementwise operations."""
    forms = [op.torch.form for op in OPS.values() if op.group == "Elementwise" and op.torch is not None]
    calls = [parse_template(form) for form in forms if isinstance(form, str)]
    return _CHOSEN.union(text(call.func) for call in calls if isinstance(call, ast.Call) and _is_of_torch(call.func))


def is_elementwise(uses: Sequence[DefinitionUse]) -> bool:
    """Whether a function computes each element of its only output by itself."""
    return all(_has_shape_of_input(use.body) and _has_elementwise_calls(use.body) for use in uses)


def _has_shape_of_input(body: Body) -> bool:
    shapes = [result.shape for result in body.results if result is not None]
    return len(body.results) == 1 and shapes[0:1] in [[type.shape] for _, type in body.inputs]


def _has_elementwise_calls(body: Body) -> bool:
    if body.loop is not None:
        return False
    return all(
        _has_elementwise_calls(call.body)
        if call.body is not None
        else call.kind == "op" and OPS[call.type].group == "Elementwise"
        for call in body.calls
    )


def _is_of_torch(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id != "x"


class _ExpertSorting(ast.NodeTransformer):
    """Rewrites the products of the experts `word`; `variable` is their order."""

    def __init__(self, word: str, variable: str, elementwise: Collection[str], numbers: Collection[str]) -> None:
        self.word = word
        self.variable = name(variable)
        self.elementwise = elementwise
        self.numbers = numbers
        self.held: set[str] = set()  # variables whose values are sorted
        self.begun: set[str] = set()  # what is sorted
        self.changed: set[str] = set()  # variables that were bound since
        self.is_shorter = False  # whether a product takes sorted vectors from another one

    def run(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The body rewritten."""
        made: list[ast.stmt] = []
        for statement in body:
            is_first = not self.begun
            made += self._before(statement)
            changed = self._statement(statement)
            if is_first and self.begun:
                vectors = name(next(iter(self.begun)))
                made.append(bind(self.variable, apply(name("ByExpert"), [name(self.word), vectors])))
            made.append(changed)
            self.changed |= {*assigned(statement)} if self.begun else set()
        return made

    def _before(self, statement: ast.stmt) -> list[ast.stmt]:
        """Restore the order of what a branch or loop reads or assigns."""
        if isinstance(statement, ast.Assign | ast.Return):
            return []
        found = sorted(self.held & names_in([statement]))
        self.held -= {*found}
        return [bind(word, self._restored(name(word))) for word in found]

    def _statement(self, statement: ast.stmt) -> ast.stmt:
        match statement:
            case ast.Assign([target], value):
                code, is_sorted = self._value(value)
                words = set(assigned(statement))
                if is_sorted and not isinstance(target, ast.Name | ast.Tuple):
                    code, is_sorted = self._restored(code), False
                self.held = self.held | words if is_sorted else self.held - words
                return ast.Assign([target], code, lineno=0)
            case ast.Return(ast.expr() as value):
                return ast.Return(cast("ast.expr", self.visit(value)))
            case _:
                return statement

    def visit(self, node: ast.AST) -> ast.AST:
        """An expression in the order of the model."""
        if not isinstance(node, ast.expr):
            return self.generic_visit(node)
        code, is_sorted = self._value(node)
        return self._restored(code) if is_sorted else code

    def _restored(self, code: ast.expr) -> ast.expr:
        return apply(method(self.variable, "restored"), [code])

    def _value(self, node: ast.expr) -> tuple[ast.expr, bool]:
        """An expression, and whether its vectors are sorted."""
        match node:
            case ast.Name(word):
                return node, word in self.held
            case ast.Call(ast.Name(function), [vectors, ast.Name(experts), *weights]) if (
                function == PRODUCT and experts == self.word
            ):
                return self._product(vectors, weights), True
            case ast.Call(function, [vectors, sizes], [ast.keyword("dim", axis)]) if (
                text(function) == "torch.split" and text(axis) == "-1"
            ):
                code, is_sorted = self._value(vectors)
                return py("torch.split(x, sizes, dim=-1)", x=code, sizes=sizes), is_sorted
            case ast.Call(function, operands, keywords) if text(function) in self.elementwise:
                return self._elementwise(node, [*operands, *[keyword.value for keyword in keywords]])
            case ast.Call(ast.Attribute(value, "clamp"), [], keywords):
                return self._elementwise(node, [value, *[keyword.value for keyword in keywords]])
            case ast.BinOp(left=left, op=operator, right=right) if not isinstance(operator, ast.MatMult):
                return self._elementwise(node, [left, right])
            case ast.UnaryOp(operand=operand):
                return self._elementwise(node, [operand])
            case _:
                return cast("ast.expr", self.generic_visit(node)), False

    def _product(self, vectors: ast.expr, weights: Sequence[ast.expr]) -> ast.expr:
        code, is_sorted = self._value(vectors)
        if is_sorted:
            self.is_shorter = True
        else:
            word = text(code)
            self.begun.add(f"another {word}" if word in self.changed else word)
            code = apply(method(self.variable, "sorted"), [code])
        return apply(method(self.variable, "linear"), [code, *[cast("ast.expr", self.visit(w)) for w in weights]])

    def _elementwise(self, node: ast.expr, operands: Sequence[ast.expr]) -> tuple[ast.expr, bool]:
        """An elementwise operation, whose result is sorted if its operands are, numbers aside."""
        found = [self._value(operand) for operand in operands]
        pairs = list(zip(operands, found, strict=True))
        is_sorted = any(is_sorted for _, is_sorted in found) and all(
            is_sorted or self._is_number(operand) for operand, (_, is_sorted) in pairs
        )
        parts = {
            id(operand): self._restored(code) if needs_order and not is_sorted else code
            for operand, (code, needs_order) in pairs
        }
        return substituted(node, lambda inner: parts.get(id(inner))), is_sorted

    def _is_number(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant():
                return True
            case ast.Attribute(ast.Name("self"), attribute):
                return attribute in self.numbers
            case ast.UnaryOp(operand=operand):
                return self._is_number(operand)
            case ast.BinOp(left=left, right=right):
                return self._is_number(left) and self._is_number(right)
            case _:
                return False
