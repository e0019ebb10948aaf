"""Functions with loops over a length, of which two iterations are recorded; some are no loops of the language."""

from typing import Any

import torch
from graphs import Module, traced
from passes import ATEN, INPUTS, Function

from archspec.pytorch.passes.iterations import trace_loops

SEEN: list[Any] = []
"""What the iterations of a loop have computed."""


class Looping(Module):
    """A module from this file, whose loops are recorded."""


def in_loops(function: Function) -> Any:
    """The program in which loops over a length run twice."""
    SEEN.clear()
    module = Looping(function)
    with trace_loops(module):
        return traced(module, INPUTS["tokens"], symbolic=True)


def looped(step: Function, start: Function = lambda tokens: tokens[:, 0], axis: int = 1) -> Function:
    """The loop in which a step makes a state of the tokens at an index, and of the state."""

    def function(tokens: Any) -> Any:
        state = start(tokens)
        for t in range(tokens.shape[axis]):
            state = step(tokens.select(axis, t), state)
            SEEN.append(state)
        return state

    return function


def stacked(tokens: Any) -> Any:
    found = []
    for t in range(tokens.shape[1]):
        found.append(torch.stack([tokens.select(1, t), tokens.select(1, t - 1)]).sum(0))
    return torch.stack(found, 1)


def left(tokens: Any) -> Any:
    state = tokens[:, 0]
    for t in range(tokens.shape[1]):
        state = state * tokens.select(1, t)
        if SEEN:
            break
        SEEN.append(state)
    return state


def recalling(tokens: Any) -> Any:
    """The second iteration uses what the first one computes, where that uses its own value."""
    state = tokens[:, 0]
    for t in range(tokens.shape[1]):
        rows = tokens.select(1, t).sin()
        state = state + (SEEN[0] if SEEN else rows)
        SEEN.append(rows)
    return state


def choosing(tokens: Any) -> Any:
    """Each iteration uses something else that is computed before the loop."""
    first, second = tokens[:, 1].sin(), tokens[:, 2].cos()
    return looped(lambda rows, state: rows + state * (second if SEEN else first))(tokens)


def filled(rows: Function = torch.zeros_like, step: Any = None, more: Any = None) -> Function:
    """The loop that puts what each iteration computes in the place of zeros."""

    def function(tokens: Any) -> Any:
        state, outputs = tokens[:, 0], rows(tokens)
        for t in range(tokens.shape[1]):
            outputs[:, t] = step(outputs, tokens, t) if step else tokens.select(1, t).tanh()
            state = state + (more(outputs) if more else 1.0)
        return outputs, state

    return function


def total(rows: Any, **named: Any) -> Any:
    return rows.sum(1, keepdim=True, **named)


LOOPS: dict[str, Function] = {
    "a list has what is carried": looped(lambda rows, state: torch.cat([rows[:, 2:], state[:, :2]], dim=1)),
    "a list of each iteration": stacked,
    "zeros are filled": filled(),
    "ones are filled": filled(lambda tokens: torch.ones(2, tokens.shape[1], 4)),
    "more is filled": filled(lambda tokens: torch.zeros(2, tokens.shape[1] + 1, 4)),
    "a size is filled": filled(lambda tokens: torch.zeros(2, 9, 4)),
    "what is filled is read": filled(step=lambda outputs, tokens, t: tokens.select(1, t) + outputs.select(1, t)),
    "what is filled is copied": filled(
        step=lambda outputs, tokens, t: ATEN.copy(tokens.select(1, t), outputs.select(1, t))
    ),
    "what is filled is summed": filled(more=lambda outputs: outputs.sum(1)),
    "a break": left,
    "nested": looped(lambda rows, state: looped(torch.add, lambda _: state)(rows), lambda x: x[:, 0, 0]),
    "a state that grows": looped(lambda rows, state: torch.cat([state, rows[:, :1]], dim=1), lambda x: x[:, 0, :1]),
    "another function": looped(lambda rows, state: rows * (state.sin() if SEEN else state.cos())),
    "another argument": looped(lambda rows, state: state + (total(rows) if SEEN else total(rows, dtype=torch.float32))),
    "fewer steps": looped(lambda rows, state: rows * (state.sin() if SEEN else state.sin().cos())),
    "the first state after the loop": lambda tokens: looped(torch.mul)(tokens) + SEEN[0],
    "another number": looped(lambda rows, state: state * rows + 2.0 ** len(SEEN)),
    "the first value": recalling,
    "another value": choosing,
}
