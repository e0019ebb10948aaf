"""Special-case passes: programs before and after each, as text, which compute the same; others stay or are refused."""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")

from graphs import Module, run, targets_of, text_of
from loops import LOOPS, in_loops
from passes import (
    CHANGES,
    CONDITIONS,
    DISTINCT,
    INPUTS,
    SCATTERS,
    SELECTIONS,
    SYSTEMS,
    Function,
    composite,
    exported,
    fixed,
    inputs_of,
    mask_of_items,
)

import archspec
from archspec.pytorch.passes.folding import fold_constants
from archspec.pytorch.passes.in_place import functionalize
from archspec.pytorch.passes.iterations import _selected
from archspec.pytorch.passes.matches import rewrite_condition_indices
from archspec.pytorch.passes.rolling import roll_loops
from archspec.pytorch.passes.selection import rewrite_row_selection, rewrite_scatter
from archspec.pytorch.passes.substitution import rewrite_triangular_solves
from archspec.pytorch.values.arguments import UntranslatableError


class Pass(NamedTuple):
    """Cases of a pass: how functions become programs, and what it does to one."""

    trace: Callable[[Function], Any]
    rewrite: Callable[[Any], object]
    cases: dict[str, Function]
    runs: bool = True


PASSES = {
    "scatter": Pass(fixed, rewrite_scatter, SCATTERS),
    "conditions": Pass(composite, rewrite_condition_indices, CONDITIONS),
    "selection": Pass(composite, rewrite_row_selection, SELECTIONS),
    "systems": Pass(fixed, rewrite_triangular_solves, SYSTEMS),
    "in-place": Pass(exported, functionalize, CHANGES),
    "loops": Pass(in_loops, lambda program: functionalize(program) and roll_loops(program), LOOPS, runs=False),
}


def page_of(kind: Pass, name: str) -> list[str]:
    """What a pass does to a program: both as text if it is another one, which computes the same."""
    function = kind.cases[name]
    program = kind.trace(function)
    before = text_of(program)
    try:
        kind.rewrite(program)
    except UntranslatableError as problem:
        return [f"# {name}: refused: {problem}"]
    after = text_of(program)
    if after == before:
        return [f"# {name}: unchanged"]
    if kind.runs:
        constants = [*getattr(program, "constants", {}).values()]
        expected = function(*[x.clone() for x in inputs_of(function)])
        expected = expected if isinstance(expected, tuple) else (expected,)
        found = run(program, *constants, *[x.clone() for x in inputs_of(function)])
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, msg=name)
    is_first = name == next(iter(kind.cases))
    return [f"# {name}", *([*before, "becomes"] if is_first else []), *after, ""]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PASSES)
def test_programs_before_and_after(name: str, golden: Callable[[str, str], None]) -> None:
    kind = PASSES[name]
    golden(f"passes/{name}.txt", "\n".join([line for case in kind.cases for line in page_of(kind, case)]))


@pytest.mark.parametrize(("indices", "axes"), DISTINCT.items())
def test_indices_that_are_known_to_be_different(indices: Function, axes: list[int]) -> None:
    def is_sum(axis: int) -> bool:
        program = fixed(lambda x: torch.zeros_like(at := indices(x), dtype=x.dtype).scatter(axis, at, 1.0 * at))
        rewrite_scatter(program)
        return "aten.scatter.src" not in targets_of(program)

    assert [axis for axis in range(indices(INPUTS["x"]).dim()) if is_sum(axis)] == axes


def test_reals_that_are_computed_of_constants_alone_are_known() -> None:
    scale = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    drawn = torch.ops.aten.bernoulli.default

    def function(x: Any) -> Any:
        twice = scale * 2.0
        more = twice + scale.exp()
        return x * twice, x * more, x * torch.zeros_like(x), x * scale.long(), x * drawn(scale / 8.0)

    program = exported(function)
    expected = {
        "c_lifted_tensor_0": scale,
        "mul": scale * 2.0,
        "add": scale * 2.0 + scale.exp(),
        "zeros_like": torch.zeros(4, 6),
        "div": scale / 8,
    }
    found = {node.name: value for node, value in fold_constants(program).items()}
    assert found.keys() == expected.keys() and all(value.equal(expected[name]) for name, value in found.items())


def test_parts_that_are_changed_at_an_index() -> None:
    x = torch.arange(120).reshape(2, 3, 4, 5)
    for index in ([..., 1], [..., 2, slice(None)], [1, ..., 3], [slice(None), 1, ..., 0, 2], [..., 0, 1, 2], [0, 2]):
        assert _selected(x, index).equal(x[tuple(index)])


def test_a_module_with_a_map_is_lifted() -> None:
    """By the operations that PyTorch makes of it."""
    found = archspec.lift(Module(mask_of_items).eval(), {"x": torch.randn(3, 7)})
    assert "visible   = mask and reshape([batch, 1, 7])(x > 0)" in found


def drawn_view(draw: random.Random, x: Any) -> Any:
    axis = draw.randrange(x.dim())
    size = x.shape[axis]
    first = draw.randrange(size)
    match draw.randrange(8):
        case 0:
            return torch.ops.aten.slice.Tensor(x, axis, first, draw.randrange(first + 1, size + 1))
        case 1:
            return torch.ops.aten.slice.Tensor(x, axis, first, size, 2)
        case 2 if x.dim() > 1:
            return x.select(axis, draw.choice([first, -1]))
        case 3:
            return x.transpose(axis, draw.randrange(x.dim()))
        case 4:
            return x.unsqueeze(draw.choice([axis, -1]))
        case 5:
            return x.split(1, axis)[first]
        case 6:
            return x.reshape(-1, x.shape[-1])
        case _:
            return x.detach()


def drawn_change(draw: random.Random, x: Any, other: Any) -> Any:
    changes: list[Callable[[], Any]] = [
        lambda: x.add_(1.5),
        lambda: x.mul_(-2.0),
        lambda: x.fill_(3.0),
        lambda: x.masked_fill_(x > 1, 0.25),
        lambda: x.copy_(other.sum().expand(x.shape)),
        lambda: x.sub_(other.clone() if other.shape == x.shape else other.mean()),
    ]
    return draw.choice(changes)()


def drawn_function(seed: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        draw = random.Random(seed)
        values = [x * 2, torch.zeros(4, 6, dtype=x.dtype)]
        for _ in range(draw.randrange(4, 14)):
            value = draw.choice(values)
            turn = draw.random()
            if turn < 0.4 and value.dim() < 4:
                values.append(drawn_view(draw, value))
            elif turn < 0.8:
                changed = drawn_change(draw, value, draw.choice(values))
                values += [changed] if draw.random() < 0.5 else []
            else:
                values.append(value + 1)
        return tuple([value + 0 for value in values])

    return function


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 60, 15))
def test_drawn_programs_compute_the_same(start: int) -> None:
    same = 0
    for seed in range(start, start + 15):
        function = drawn_function(seed)
        x = torch.randn(4, 6, dtype=torch.float64)
        with torch.no_grad():
            program = torch.export.export(Module(function), (x,), strict=False)
        if functionalize(program):
            same += 1
            names = program.graph_signature.inputs_to_lifted_tensor_constants.values()
            constants = [program.constants[name] for name in names]
            found = torch.fx.Interpreter(program.graph_module).run(*constants, x.clone())
            for a, b in zip(found, function(x.clone()), strict=True):
                torch.testing.assert_close(a, b, rtol=0, atol=0)
    assert same > 5
