"""Two recorded iterations of a loop over a length become one of any number, or are refused."""

import operator
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphs import targets_of, traced

from archspec.pytorch.passes.in_place import functionalize
from archspec.pytorch.passes.iterations import _selected, trace_loops
from archspec.pytorch.passes.rolling import roll_loops
from archspec.pytorch.values.arguments import UntranslatableError

ATEN = torch.ops.aten


class Module(torch.nn.Module):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def program_of(function: Callable[[Any], Any]) -> Any:
    """The program in which the loops of a function of rows, which are 2 by 4, run twice."""
    module = Module(function)
    with trace_loops(module):
        return traced(module, torch.zeros(2, 5, 4), symbolic=True)


def joining(x: Any) -> Any:
    state = torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        state = torch.cat([x.select(1, t)[:, 2:], state[:, :2]], dim=1)
    return state


def stacking(x: Any) -> Any:
    found = []
    for t in range(x.shape[1]):
        found.append(torch.stack([x.select(1, t), x.select(1, t - 1)]).sum(0))
    return torch.stack(found, 1)


def leaving(x: Any) -> Any:
    state = x[:, 0]
    for t in range(x.shape[1]):
        state = state * x.select(1, t)
        if SEEN:
            break
        SEEN.append(state)
    return state


def nested(x: Any) -> Any:
    state = x[:, 0, 0]
    for t in range(x.shape[1]):
        for k in range(x.shape[2]):
            state = state + x.select(1, t).select(1, k)
    return state


def growing(x: Any) -> Any:
    state = x[:, 0, :1]
    for t in range(x.shape[1]):
        state = torch.cat([state, x.select(1, t)[:, :1]], dim=1)
    return state


def alternating(x: Any) -> Any:
    state = x[:, 0]
    for t in range(x.shape[1]):
        state = x.select(1, t) * (state.sin() if SEEN else state.cos())
        SEEN.append(state)
    return state


def naming(x: Any) -> Any:
    state = x[:, 0]
    for t in range(x.shape[1]):
        rows = x.select(1, t)
        state = state + (rows.sum(1, keepdim=True) if SEEN else rows.sum(1, keepdim=True, dtype=torch.float32))
        SEEN.append(state)
    return state


def shortening(x: Any) -> Any:
    state = x[:, 0]
    for t in range(x.shape[1]):
        state = x.select(1, t) * (state.sin() if SEEN else state.sin().cos())
        SEEN.append(state)
    return state


def keeping(x: Any) -> Any:
    """What the first iteration computes is used after the loop."""
    state = x[:, 0]
    for t in range(x.shape[1]):
        state = x.select(1, t) * state
        SEEN.append(state)
    return state + SEEN[0]


def scaling(x: Any) -> Any:
    state = x[:, 0]
    for t in range(x.shape[1]):
        state = state * x.select(1, t) + 2.0 ** len(SEEN)
        SEEN.append(state)
    return state


def recalling(x: Any) -> Any:
    """The second iteration uses what the first one computes, where that uses its own value."""
    state = x[:, 0]
    for t in range(x.shape[1]):
        rows = x.select(1, t).sin()
        state = state + (SEEN[0] if SEEN else rows)
        SEEN.append(rows)
    return state


def choosing(x: Any) -> Any:
    """Each iteration uses something else that is computed before the loop."""
    state, first, second = x[:, 0], x[:, 1].sin(), x[:, 2].cos()
    for t in range(x.shape[1]):
        state = x.select(1, t) + state * (second if SEEN else first)
        SEEN.append(state)
    return state


SEEN: list[Any] = []


def source_of(node: Any) -> Any:
    """What a node is a slice of."""
    return source_of(node.args[0]) if "slice" in str(node.target) else node


def test_lists_of_an_iteration_have_carried_values() -> None:
    program = program_of(joining)
    assert roll_loops(program)
    targets = targets_of(program)
    (joined,) = [node for node in program.graph.nodes if str(node.target) == "aten.cat.default"]
    read, state = map(source_of, joined.args[0])
    assert (str(read.target), str(state.target)) == ("aten.select.int", "archspec.carried.default")
    (loop,) = [node for node in program.graph.nodes if str(node.target) == "archspec.looped.default"]
    assert loop.args[:5] == ([state.args[0]], [state], [joined], [], [])
    assert targets.count("archspec.begun.default") == 1 and "archspec.ended.default" not in targets


def test_lists_of_an_iteration_are_computed_in_each() -> None:
    program = program_of(stacking)
    assert roll_loops(program)
    (loop,) = [node for node in program.graph.nodes if str(node.target) == "archspec.looped.default"]
    (stacked,) = [node for node in program.graph.nodes if str(node.target) == "aten.stack.default"]
    (summed,) = stacked.users
    assert loop.args[:5] == ([], [], [], [summed], [1])
    assert [str(item.args[2].target) for item in stacked.args[0]] == [str(operator.add), str(operator.sub)]


def filling(x: Any, rows: Any = None, step: Any = None, more: Any = None) -> Any:
    """Puts what each iteration computes in the place of zeros."""
    state, outputs = x[:, 0], torch.zeros_like(x) if rows is None else rows
    for t in range(x.shape[1]):
        outputs[:, t] = step(outputs, x, t) if step else x.select(1, t).tanh()
        state = state + (more(outputs) if more else 1.0)
    return outputs, state


@pytest.mark.parametrize(
    ("function", "is_filled"),
    [
        (filling, True),
        (lambda x: filling(x, torch.ones(2, x.shape[1], 4)), True),
        (lambda x: filling(x, torch.zeros(2, x.shape[1] + 1, 4)), False),
        (lambda x: filling(x, torch.zeros(2, 9, 4)), False),
        (lambda x: filling(x, step=lambda outputs, x, t: x.select(1, t) + outputs.select(1, t)), False),
        (lambda x: filling(x, step=lambda outputs, x, t: ATEN.copy(x.select(1, t), outputs.select(1, t))), False),
        (lambda x: filling(x, more=lambda outputs: outputs.sum(1)), False),
    ],
)
def test_what_fills_a_tensor_is_collected(function: Callable[[Any], Any], is_filled: bool) -> None:
    program = program_of(function)
    assert functionalize(program) and roll_loops(program)
    (loop,) = [node for node in program.graph.nodes if str(node.target) == "archspec.looped.default"]
    starts, _, _, collected, axes, _ = loop.args
    assert (len(starts), len(collected), axes) == ((1, 1, [1]) if is_filled else (2, 0, []))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (leaving, "it breaks out of a loop over a length"),
        (nested, "it has nested loops over a length"),
        (growing, "in which values change their shape or type"),
        (alternating, "a loop over a length computes something different in each iteration"),
        (shortening, "a loop over a length computes something different in each iteration"),
        (keeping, "a loop over a length computes something different in each iteration"),
        (scaling, "a loop over a length computes something different in each iteration"),
        (recalling, "a loop over a length computes something different in each iteration"),
        (choosing, "a loop over a length computes something different in each iteration"),
        (naming, "a loop over a length computes something different in each iteration"),
    ],
)
def test_other_loops_are_refused(function: Callable[[Any], Any], reason: str) -> None:
    SEEN.clear()
    program = program_of(function)
    with pytest.raises(UntranslatableError, match=f"{reason}$"):
        roll_loops(program)


def test_parts_that_are_changed_at_an_index() -> None:
    x = torch.arange(120).reshape(2, 3, 4, 5)
    for index in ([..., 1], [..., 2, slice(None)], [1, ..., 3], [slice(None), 1, ..., 0, 2], [..., 0, 1, 2], [0, 2]):
        assert _selected(x, index).equal(x[tuple(index)])
