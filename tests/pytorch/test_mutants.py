"""Generated files that are changed in one place are never proven equal, unless the change has no effect."""

import ast
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import pytest

import archspec
from archspec.codegen.build import torch_source
from archspec.core.algebra import symbols
from archspec.ir.module import Body

torch = pytest.importorskip("torch")

from archspec import equivalent
from archspec.pipeline.model import get_compilation
from archspec.pytorch.numeric.evaluate import EvaluationError
from archspec.pytorch.prove.numeric import RELATIVE_TOLERANCE, largest_error, module_runner

MODELS: dict[str, dict[str, Any]] = {
    "bert-base-uncased": {"vocab": 97, "hidden": 32, "layers": 1, "heads": 4, "ffn": 48, "positions": 20},
    "gpt2": {"vocab": 97, "hidden": 32, "layers": 1, "heads": 4, "ffn": 48, "positions": 20},
    "llama-3.1-8b": {"vocab": 97, "hidden": 32, "layers": 1, "heads": 4, "ffn": 48, "groups": 2},
    "modernbert-base": {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "window": 4},
    "t5-small": {"vocab": 97, "hidden": 32, "layers": 1, "heads": 4, "ffn": 48, "size": 8},
    "bert-base-uncased-mlm": {"vocab": 97, "hidden": 32, "layers": 1, "heads": 4, "ffn": 48, "positions": 20},
}

LONG = 20
"""The most tokens that all of these models take."""


class Mutant(NamedTuple):
    """A changed file: the kind of the change, the code before and after it, and a file that fails where it is run."""

    kind: str
    old: str
    new: str
    text: str
    failing: str


OTHER_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr},
    **{ast.LtE: ast.Lt, ast.GtE: ast.Gt, ast.NotEq: ast.Eq, ast.Eq: ast.NotEq},
}
OTHER_NAMES = {
    **{"gelu": "relu", "relu": "gelu", "silu": "sigmoid", "tanh": "sigmoid", "cos": "sin", "sin": "cos"},
    **{"query": "key", "key": "value", "value": "query", "transpose": "swapdims", "rsqrt": "sqrt"},
}


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the kinds of changes of a node, and what takes its place."""
    match node:
        case ast.BinOp(left, op, right):
            yield "operands swapped", ast.BinOp(right, op, left)
            if type(op) in OTHER_OPERATORS:
                yield "another operator", ast.BinOp(left, OTHER_OPERATORS[type(op)](), right)  # pyright: ignore
            if isinstance(op, ast.Add | ast.BitAnd):
                yield "residual or mask dropped", left
                yield "residual or mask dropped", right
        case ast.Compare(left, [op], [right]) if type(op) in OTHER_OPERATORS:
            yield "another comparison", ast.Compare(left, [OTHER_OPERATORS[type(op)]()], [right])  # pyright: ignore
        case ast.Constant(bool(value)):
            yield "a flag turned", ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield "another number", ast.Constant(value + 1)
            yield "another number", ast.Constant(value * 10)
        case ast.UnaryOp(ast.USub(), operand):
            yield "a sign dropped", operand
        case ast.Call(function, arguments, keywords):
            for i in range(len(arguments) - 1):
                swapped = [*arguments[:i], arguments[i + 1], arguments[i], *arguments[i + 2 :]]
                yield "arguments swapped", ast.Call(function, swapped, keywords)
            for keyword in keywords:
                if keyword.arg in ("attn_mask", "is_causal", "scale", "bias", "eps"):
                    rest = [other for other in keywords if other is not keyword]
                    yield f"`{keyword.arg}` dropped", ast.Call(function, arguments, rest)
            yield "a sign turned", ast.UnaryOp(ast.USub(), node)
        case ast.Attribute(value, name, context) if name in OTHER_NAMES:
            yield "another name", ast.Attribute(value, OTHER_NAMES[name], context)
        case ast.Attribute(ast.Attribute(), "weight", ast.Load()):
            yield "a tie undone", ast.parse(f"nn.Parameter({ast.unparse(node)}.detach().clone())", mode="eval").body
        case _:
            pass


def mutants(text: str) -> list[Mutant]:
    """Return all copies of a file with one change in the code that makes modules, or computes with them."""
    tree = ast.parse(text)
    found: list[Mutant] = []
    for statement in [node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.Return | ast.AugAssign)]:
        for parent in _computing(statement):
            for field, value in ast.iter_fields(parent):
                children: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
                for i, child in enumerate(children):
                    if isinstance(child, ast.AST):
                        found += _replaced(tree, parent, field, i, child)
    return found


def _computing(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those inside, except for what decides initial values or types alone."""
    yield node
    for child in ast.iter_child_nodes(node):
        decides_type = isinstance(child, ast.Attribute) and child.attr == "dtype"
        if not decides_type and not (isinstance(child, ast.keyword) and child.arg == "std"):
            yield from _computing(child)


def _replaced(tree: ast.Module, parent: ast.AST, field: str, i: int, child: ast.AST) -> Iterator[Mutant]:
    value = getattr(parent, field)

    def text_with(other: ast.AST) -> str:
        setattr(parent, field, [*value[:i], other, *value[i + 1 :]] if isinstance(value, list) else other)
        text = ast.unparse(ast.fix_missing_locations(tree))
        setattr(parent, field, value)
        return text

    for kind, other in changes(child):
        if ast.unparse(child) != ast.unparse(other):
            failing = text_with(ast.parse("1 / 0", mode="eval").body)
            yield Mutant(kind, ast.unparse(child), ast.unparse(other), text_with(other), failing)


def why_equal(mutant: Mutant) -> str:
    """Return why a change has no effect; empty if no reason is known."""
    operation = ast.parse(mutant.old, mode="eval").body
    match operation:
        case ast.BinOp(op=ast.Add() | ast.Mult() | ast.BitAnd()) if mutant.kind == "operands swapped":
            return "the operation is commutative"
        case ast.Call(ast.Attribute(attr="transpose")) if mutant.kind == "arguments swapped":
            return "the operation is symmetric in its axes"
        case ast.Call(ast.Name("Linear")) if mutant.kind == "arguments swapped" and "(vocab, hidden" in mutant.new:
            return "tied tensors take the place of its own"
        case ast.Attribute(attr="transpose"):
            return "another name of the same function"
        case ast.UnaryOp(ast.USub(), ast.Constant()) if mutant.kind == "a sign dropped":
            return "the same axis, counted from the other end"
        case ast.Constant() if "keep_vars=False" in mutant.text:
            return "tied tensors are the same, only without gradients"
        case ast.Constant() if "dropout" in mutant.kind:
            return "dropout acts in training only"
        case _:
            return ""


def built(text: str) -> Any:
    """The module of a changed file; None if making it fails."""
    namespace: dict[str, Any] = {"__name__": "mutant"}
    try:
        exec(compile(text, "mutant.py", "exec"), namespace)
        return namespace["build"]()
    except Exception:
        return None


def _is_run_by(body: Body, module: Any) -> bool:
    """Whether a file that fails at a place does fail."""
    if module is None:
        return True
    run = module_runner(module, body)
    try:
        largest_error(body, run, run)
    except EvaluationError:
        return True
    return False


def _differs_for_long_inputs(body: Body, module: Any, other: Any) -> bool:
    """Whether outputs differ for longer inputs than are compared, as those of buckets of distances do."""
    sizes = {name: LONG for _, type in body.inputs for size in type.shape for name in symbols(size)}
    error = largest_error(body, module_runner(module, body), module_runner(other, body), sizes)
    return error is not None and error > RELATIVE_TOLERANCE


def sample(kinds: int, seed: int) -> list[tuple[str, Mutant]]:
    """Return changed files of each model: up to so many of each kind."""
    generator = random.Random(seed)
    found: list[tuple[str, Mutant]] = []
    for name, sizes in MODELS.items():
        by_kind: dict[str, list[Mutant]] = {}
        for mutant in mutants(torch_source(archspec.load(name, **sizes))):
            by_kind.setdefault(mutant.kind, []).append(mutant)
        for group in by_kind.values():
            found += [(name, mutant) for mutant in generator.sample(group, min(kinds, len(group)))]
    return found


def outcomes(chosen: list[tuple[str, Mutant]]) -> Counter[str]:
    """Count the verdicts on changed files. Whatever is equal has equal outputs, and a reason why it may be."""
    found = Counter[str]()
    models = {name: archspec.load(name, **sizes) for name, sizes in MODELS.items()}
    modules = {name: archspec.to_torch(model).eval() for name, model in models.items()}
    for name, mutant in chosen:
        module = built(mutant.text)
        if module is None:
            found["cannot be made"] += 1
            continue
        compared = equivalent(models[name], module)
        found[compared.verdict] += 1
        if compared.verdict in ("equal", "outputs equal"):
            body = get_compilation(models[name]).body
            error = largest_error(body, module_runner(modules[name], body), module_runner(module, body))
            assert error is not None and error <= RELATIVE_TOLERANCE, (name, mutant)
            is_known = why_equal(mutant) or not _is_run_by(body, built(mutant.failing))
            assert is_known or _differs_for_long_inputs(body, modules[name], module), (name, mutant)
    return found


@pytest.mark.slow
def test_changed_files_are_caught() -> None:
    chosen = sample(1, 0)[::2]
    found = outcomes(chosen)
    assert found["different"] > len(chosen) // 3, found


@pytest.mark.slow
@pytest.mark.exhaustive
def test_200_changed_files_are_caught() -> None:
    chosen = sample(4, 1)
    found = outcomes(chosen)
    assert len(chosen) >= 200 and found["different"] > len(chosen) // 3, found
