"""Loops over a length, and recurrent layers as functions of the library: each direction of each layer is a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from archspec.core.algebra import Dim
from archspec.ir.normal.arrays import Array
from archspec.pytorch.calls.recurrent import RNNS, Direction, carried, directions, gru, looped, lstm
from archspec.pytorch.calls.values import as_list
from archspec.pytorch.lift.notation.notation import RESULTS
from archspec.pytorch.lift.operations.arrangements import flip
from archspec.pytorch.lift.operations.handlers import Handler, Types
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.values import LoopValue, Setting, Value, inside_loop


def _recurrent(name: str, cell: Callable[..., list[Array]], **settings: Setting) -> Handler:
    def call(b: Builder, types: Types, x: Value, first: Value | list[Value], params: list[Value], is_biased: bool,
             layers: int, dropout: float, train: bool, is_double: bool,
             is_batch_first: bool) -> list[Value]:  # fmt: skip
        starts = as_list(first)
        x = x if is_batch_first else b.permute(x, (1, 0, 2))
        found: list[list[Value]] = [[] for _ in starts]
        for layer in directions(params, layers, is_biased, is_double):
            outputs: list[Value] = []
            for way in layer:
                begun = [b.op("pick", start, axis=0, index=way.place) for start in starts]
                output, *last = _applied(b, name, cell, settings, x, way, begun)
                outputs.append(flip(b, types, output, [1]) if way.is_reversed else output)
                for kept, state in zip(found, last, strict=True):
                    kept.append(state)
            x = b.op("concat", *outputs, axis=-1) if is_double else outputs[0]
        states = [b.op("stack", *kept, axis=0) for kept in found]
        return [x if is_batch_first else b.permute(x, (1, 0, 2)), *states]

    return call


def _applied(
    b: Builder,
    name: str,
    cell: Callable[..., list[Array]],
    settings: Mapping[str, Setting],
    x: Value,
    way: Direction[Value],
    starts: list[Value],
) -> list[Value]:
    """Return the results of a function of the library for one direction of a layer."""
    of_tokens, of_states, *biases = way.tensors
    x = flip(b, [], x, [1]) if way.is_reversed else x
    given = b.op("linear", x, of_tokens, *biases[:1])
    arrays = cell(b.arrays, given.array, of_states.array, way.bias and way.bias.array, *[at.array for at in starts])
    args = [given, of_states, *biases[1:]]
    if any(b.arrays.elements.as_number(start.array.element) != 0 for start in starts):
        none = [] if biases else [b.op("full", shape=(of_states.shape[0],), value=0.0)]
        args += [*none, *[b.written(start) for start in starts]]
    whole = b.made(name, args, arrays[0], settings, "std")
    parts = [b.made("part", [whole], array, {"index": turn}, "part") for turn, array in enumerate(arrays)]
    for part, called in zip(parts, RESULTS[name], strict=True):
        part.names = [called]
    return parts


def _carried(b: Builder, types: Types, start: Value, place: int) -> Value:
    return b.made("carried", [], carried(b.arrays, types, start.array, place), kind="carried")


def _looped(b: Builder, types: Types, starts: list[Value], inner: list[Value], afters: list[Value],
            collected: list[Value], axes: list[int], count: Dim) -> list[Value]:  # fmt: skip
    starts, afters, collected = [[*map(b.written, values)] for values in (starts, afters, collected)]
    computed = inside_loop([*afters, *collected], inner)
    whole = LoopValue(starts, inner, afters, collected, axes, count, b.frame, computed)
    given = [[value.array for value in values] for values in (starts, afters, collected)]
    arrays = looped(b.arrays, types, given[0], [], given[1], given[2], axes, count)
    whole.results = [b.made("part", [whole], array, {"index": turn}, "part") for turn, array in enumerate(arrays)]
    return whole.results


NAMES: dict[Handler, str] = {
    _recurrent("lstm", lstm): "lstm",
    _recurrent("gru", gru): "gru",
    _carried: "carried",
    _looped: "looped",
    **{
        _recurrent("rnn", cell, **({} if name == "tanh" else {"activation": name})): f"rnn_{name}"
        for name, cell in RNNS.items()
    },
}
"""The names of the operations that each function is for."""
