"""Loops over a length, and recurrent layers of PyTorch: functions of the standard library for each direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from archspec.core.algebra import Dim
from archspec.pytorch.calls.rows import Row, Types
from archspec.pytorch.calls.shape import flip
from archspec.pytorch.values.arguments import as_list, refuse
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import LoopValue, Setting, Value, inside_loop

# Loops over a length, of which a program has one iteration.


def _carried(b: Builder, types: Types, start: Value, place: int) -> Value:
    """Return what an iteration takes from the one before."""
    array = b.arrays.stored("carried", (0, place), types[0].shape, types[0].dtype)
    return b.made("carried", [], array, kind="carried")


def _looped(b: Builder, types: Types, starts: list[Value], inner: list[Value], afters: list[Value],
            collected: list[Value], axes: list[int], count: Dim) -> list[Value]:  # fmt: skip
    """Return what a loop carries in the end, and what it collects; `inner` is what is carried in an iteration."""
    starts, afters, collected = [[*map(b.written, values)] for values in (starts, afters, collected)]
    computed = inside_loop([*afters, *collected], inner)
    whole = LoopValue(starts, inner, afters, collected, axes, count, b.frame, computed)
    arrays = [value.array for value in (*starts, *afters, *collected)]
    results = b.arrays.loop((0, axes, 0, count), arrays, [(type.shape, type.dtype) for type in types])
    whole.results = [b.made("part", [whole], array, {"index": turn}, "part") for turn, array in enumerate(results)]
    return whole.results


# Recurrent layers.


class _Direction(NamedTuple):
    """One direction of one layer: its place among all of them, and its weights of tokens and states, then biases."""

    place: int
    is_reversed: bool
    tensors: Sequence[Value]


def _directions(params: Sequence[Value], layers: int, is_biased: bool, is_double: bool) -> list[list[_Direction]]:
    """Return the directions of each layer. Raises Untranslatable for states that are projected."""
    ways, count = 1 + is_double, 4 if is_biased else 2
    if len(params) != layers * ways * count:
        refuse("lstm")
    every = [_Direction(at, at % ways == 1, params[at * count : (at + 1) * count]) for at in range(layers * ways)]
    return [every[at : at + ways] for at in range(0, len(every), ways)]


def _recurrent(name: str, **settings: Setting) -> Row:
    def call(b: Builder, types: Types, x: Value, first: Value | list[Value], params: list[Value], is_biased: bool,
             layers: int, dropout: float, train: bool, is_double: bool,
             is_batch_first: bool) -> list[Value]:  # fmt: skip
        starts = as_list(first)
        x = x if is_batch_first else b.permute(x, (1, 0, 2))
        states: list[list[Value]] = [[] for _ in starts]
        for layer in _directions(params, layers, is_biased, is_double):
            outputs: list[Value] = []
            for way in layer:
                begun = [b.op("pick", start, axis=0, index=way.place) for start in starts]
                output, *last = _applied(b, name, settings, x, way, begun)
                outputs.append(flip(b, types, output, [1]) if way.is_reversed else output)
                for kept, state in zip(states, last, strict=True):
                    kept.append(state)
            x = b.op("concat", *outputs, axis=-1) if is_double else outputs[0]
        return [x if is_batch_first else b.permute(x, (1, 0, 2)), *[b.op("stack", *kept, axis=0) for kept in states]]

    return call


def _applied(
    b: Builder, name: str, settings: Mapping[str, Setting], x: Value, way: _Direction, starts: list[Value]
) -> list[Value]:
    """Return the results of a function of the library for one direction of a layer."""
    of_tokens, of_states, *biases = way.tensors
    x = flip(b, [], x, [1]) if way.is_reversed else x
    args = [b.op("linear", x, of_tokens, *biases[:1]), of_states, *biases[1:]]
    if any(b.arrays.elements.as_number(start.array.element) != 0 for start in starts):
        none = [] if biases else [b.op("full", shape=(of_states.shape[0],), value=0.0)]
        args += [*none, *map(b.written, starts)]
    batch, length, _ = x.shape
    units = of_states.shape[1]
    states = dict.fromkeys(("last", "cell")[: len(starts)], (batch, units))
    return b.functions(name, args, {"output": (batch, length, units), **states}, **settings)


NAMES: dict[Row, str] = {
    _carried: "carried",
    _looped: "looped",
    _recurrent("lstm"): "lstm",
    _recurrent("gru"): "gru",
    _recurrent("rnn"): "rnn_tanh",
    _recurrent("rnn", activation="relu"): "rnn_relu",
}
"""The names of the operations that each row is for."""
