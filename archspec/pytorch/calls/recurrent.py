"""Loops over a length, and recurrent layers of PyTorch: a loop over the tokens for each direction of each layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from archspec.core.algebra import Dim, index
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.forms.elementwise import Each, add, multiply, subtract
from archspec.ir.normal.forms.shape import concat, permute, pick, split, stack
from archspec.ir.normal.forms.weights import linear
from archspec.pytorch.calls.activations import relu
from archspec.pytorch.calls.elementwise import function
from archspec.pytorch.calls.shape import flip
from archspec.pytorch.calls.values import Handler, as_list, compute_results, refuse

Tensor = TypeVar("Tensor")


# Loops over a length, of which a program has one iteration.


def carried(n: Arrays, types: Sequence[Type], start: Array, place: int) -> Array:
    """Return what an iteration takes from the one before."""
    return n.stored("carried", (0, place), types[0].shape, types[0].dtype)


def looped(n: Arrays, types: Sequence[Type], starts: list[Array], inner: list[Array], afters: list[Array],
           collected: list[Array], axes: list[int], count: Dim) -> list[Array]:  # fmt: skip
    """Return what a loop carries in the end, and what it collects; `inner` is what is carried in an iteration."""
    results = [(type.shape, type.dtype) for type in types]
    return n.loop((0, axes, 0, count), [*starts, *afters, *collected], results)


# Recurrent layers.


class Direction(NamedTuple, Generic[Tensor]):
    """One direction of one layer: its place among all of them, and its weights of tokens and states, then biases."""

    place: int
    is_reversed: bool
    tensors: Sequence[Tensor]

    @property
    def bias(self) -> Tensor | None:
        """The bias of states."""
        return self.tensors[3] if len(self.tensors) > 2 else None


def directions(
    params: Sequence[Tensor], layers: int, is_biased: bool, is_double: bool
) -> list[list[Direction[Tensor]]]:
    """Return the directions of each layer. Raises Untranslatable for states that are projected."""
    ways, count = 1 + is_double, 4 if is_biased else 2
    if len(params) != layers * ways * count:
        refuse("lstm")
    every = [Direction(at, at % ways == 1, params[at * count : (at + 1) * count]) for at in range(layers * ways)]
    return [every[at : at + ways] for at in range(0, len(every), ways)]


def lstm(n: Arrays, given: Array, weight: Array, bias: Array | None, last: Array, cell: Array) -> list[Array]:
    """Return the outputs, the last state and the last cell for what the tokens contribute to the gates."""
    c, h = _carried(n, cell, 0), _carried(n, last, 1)
    gates = _of_two(n, add, pick(n, given, 1, index("@0")), linear(n, h, weight, bias))
    enter, forget, new, leave = split(n, gates, [h.shape[1]] * 4, -1)
    kept = _of_two(n, multiply, _of_one(n, "sigmoid", forget), c)
    c = _of_two(n, add, kept, _of_two(n, multiply, _of_one(n, "sigmoid", enter), _of_one(n, "tanh", new)))
    h = _of_two(n, multiply, _of_one(n, "sigmoid", leave), _of_one(n, "tanh", c))
    output, cell, last = _looped(n, given, [cell, last], [c, h], h)
    return [output, last, cell]


def gru(n: Arrays, given: Array, weight: Array, bias: Array | None, last: Array) -> list[Array]:
    """Return the outputs and the last state for what the tokens contribute to the gates."""
    h = _carried(n, last, 0)
    reset, update, new = split(n, pick(n, given, 1, index("@0")), [h.shape[1]] * 3, -1)
    r, z, m = split(n, linear(n, h, weight, bias), [h.shape[1]] * 3, -1)
    kept = _of_one(n, "sigmoid", _of_two(n, add, update, z))
    taken = _of_one(n, "sigmoid", _of_two(n, add, reset, r))
    made = _of_one(n, "tanh", _of_two(n, add, new, _of_two(n, multiply, taken, m)))
    rest = _of_two(n, subtract, n.array(kept.shape, n.elements.number(1.0)), kept)
    h = _of_two(n, add, _of_two(n, multiply, kept, h), _of_two(n, multiply, rest, made))
    return _looped(n, given, [last], [h], h)


def rnn(activation: Handler) -> Callable[..., list[Array]]:
    """Return the function of a recurrent layer: its outputs and last state for what the tokens contribute."""

    def cell(n: Arrays, given: Array, weight: Array, bias: Array | None, last: Array) -> list[Array]:
        h = _carried(n, last, 0)
        added = _of_two(n, add, pick(n, given, 1, index("@0")), linear(n, h, weight, bias))
        h = compute_results(activation(n, [Type(h.shape)], added))[0]
        return _looped(n, given, [last], [h], h)

    return cell


def _of_one(n: Arrays, name: str, x: Array) -> Array:
    return function(name)(n, [Type(x.shape)], x)


def _of_two(n: Arrays, form: Each, a: Array, b: Array) -> Array:
    return n.each(a.shape, form, a, b)


def _carried(n: Arrays, start: Array, place: int) -> Array:
    return n.stored("carried", (0, place), start.shape, "real")


def _looped(n: Arrays, given: Array, start: list[Array], after: list[Array], output: Array) -> list[Array]:
    """Return what a loop over the tokens collects and carries."""
    batch, length, _ = given.shape
    results = [(array.shape, "real") for array in start] + [((batch, length, output.shape[1]), "real")]
    *carried, collected = n.loop((0, (1,), 0, length), [*start, *after, output], results)  # pyright: ignore
    return [collected, *carried]


def _recurrent(cell: Callable[..., list[Array]], states: int) -> Handler:
    """Return the handler of the layers of a cell, with so many states."""

    def call(n: Arrays, types: Sequence[Type], x: Array, first: Array | list[Array], params: list[Array],
             is_biased: bool, layers: int, dropout: float, train: bool, is_double: bool,
             is_batch_first: bool) -> list[Array]:  # fmt: skip
        starts = as_list(first)
        x = x if is_batch_first else permute(n, x, (1, 0, 2))
        found: list[list[Array]] = [[] for _ in range(states)]
        for layer in directions(params, layers, is_biased, is_double):
            outputs: list[Array] = []
            for way in layer:
                given = linear(n, _turned(n, x, way), way.tensors[0], way.tensors[2] if is_biased else None)
                begun = [pick(n, start, 0, way.place) for start in starts]
                output, *last = cell(n, given, way.tensors[1], way.bias, *begun)
                outputs.append(_turned(n, output, way))
                for kept, state in zip(found, last, strict=True):
                    kept.append(state)
            x = concat(n, *outputs, axis=-1) if is_double else outputs[0]
        return [x if is_batch_first else permute(n, x, (1, 0, 2)), *[stack(n, *kept, axis=0) for kept in found]]

    return call


def _turned(n: Arrays, x: Array, way: Direction[Array]) -> Array:
    return flip(n, [], x, [1]) if way.is_reversed else x


RNNS = {"tanh": rnn(function("tanh")), "relu": rnn(relu)}
"""The functions of recurrent layers, by activation."""

NAMES: dict[Handler, str] = {
    carried: "carried",
    looped: "looped",
    _recurrent(lstm, 2): "lstm",
    _recurrent(gru, 1): "gru",
    **{_recurrent(cell, 1): f"rnn_{activation}" for activation, cell in RNNS.items()},
}
"""The names of the operations that each function is for."""
