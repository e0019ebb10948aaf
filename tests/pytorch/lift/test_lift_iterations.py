"""Lifting: layers in turn with other operations become loops, without PyTorch."""

from collections.abc import Callable, Hashable, Sequence

import pytest
from calls import Net, shown

from archspec.pytorch.lift.definitions.blocks import Body
from archspec.pytorch.lift.definitions.layer_loops import rewrite_layer_loops
from archspec.pytorch.values.values import Value


def key(value: Value) -> Hashable:
    """What is equal for layers that compute the same."""
    return (value.op, *map(str, value.settings.items()))


def layer(net: Net, path: str, *args: Value, kind: str = "layer", op: str = "Linear", width: int = 0) -> Value:
    """What a layer, or a block, makes of values."""
    array, settings = net.layer(net.root, path, args[0]).array, {"width": width} if width else {}
    return Value(op, args, settings, array=array, dtype="real", frame=net.root, kind=kind, address=path)


def block(net: Net, path: str, *args: Value) -> Value:
    return layer(net, path, *args, kind="block", op="Block")


def add(net: Net, *args: Value) -> Value:
    return net.op(net.root, "add", *args)


def do(net: Net, op: str, x: Value) -> Value:
    return net.op(net.root, op, x)


def residual(
    net: Net, x: Value, places: Sequence[int], make: Callable[..., Value] = layer, path: str = "layers"
) -> Value:
    """A residual around each layer."""
    for place in places:
        x = add(net, x, make(net, f"{path}.{place}", x))
    return x


def two_of_each(net: Net, count: int) -> list[Value]:
    """A norm and a layer in each iteration."""
    x = net.x
    for place in range(count):
        x = add(net, x, layer(net, f"layers.{place}.first", do(net, "tanh", layer(net, f"layers.{place}.norm", x))))
    return [x]


def shifted(net: Net, by: int = 1) -> list[Value]:
    """Layers, and the norms that follow the next one of them."""
    x = net.x
    for place in range(3):
        x = layer(net, f"norms.{place + by}", add(net, x, layer(net, f"layers.{place}", x)))
    return [x]


def two_streams(net: Net, swapped: int = -1) -> list[Value]:
    """Two values that each iteration makes anew, which are swapped once."""
    x, y = net.x, do(net, "sin", net.x)
    for place in range(4):
        y = add(net, y, layer(net, f"layers.{place}", x))
        x = do(net, "tanh", y)
        x, y = (y, x) if place == swapped else (x, y)
    return [net.op(net.root, "mul", x, y)]


def of_layers_and_sums(net: Net) -> list[Value]:
    """Layers one after the other, and the sum of functions of their results."""
    x, y = net.x, do(net, "sin", net.x)
    for place in range(4):
        x = layer(net, f"layers.{place}", x)
        y = add(net, y, do(net, "tanh", x))
    return [net.op(net.root, "mul", y, x)]


def first_otherwise(net: Net) -> list[Value]:
    """Layers whose results are multiplied by themselves, the first by another value."""
    x, y = net.x, do(net, "sin", net.x)
    for place in range(5):
        made = layer(net, f"layers.{place}", x)
        x = add(net, x, net.op(net.root, "mul", made, made if place else y))
    return [x]


def with_a_number_for_one(net: Net) -> list[Value]:
    """Layers whose results are multiplied by a value, one of them by a number."""
    x, y = net.x, do(net, "sin", net.x)
    for place in range(5):
        x = add(net, x, net.op(net.root, "mul", layer(net, f"layers.{place}", x), 3.0 if place == 3 else y))
    return [x]


def norms_around(net: Net) -> list[Value]:
    """Layers with a norm before each of them, and one after the last."""
    x = layer(net, "norms.0", net.x, op="Norm")
    for place in range(3):
        x = layer(net, f"norms.{place + 1}", add(net, x, layer(net, f"layers.{place}", x)), op="Norm")
    return [x]


def stacked_with_other_inputs(net: Net) -> list[Value]:
    items = [block(net, f"heads.{turn}", *[net.x] * (2 if turn == 1 else 1)) for turn in range(3)]
    return [net.op(net.root, "stack", items, axis=0)]


def with_results(net: Net, used: Sequence[int]) -> list[Value]:
    """A residual around each layer, some of whose results are used later."""
    found, x = list[Value](), net.x
    for place in range(4):
        x = add(net, x, layer(net, f"layers.{place}", x))
        found.append(x)
    return [*[do(net, "tanh", found[place]) for place in used], x]


def numbered(net: Net, first: int, start: int, by: int = 1) -> list[Value]:
    """Layers between which numbers are used."""
    x = net.x
    for turn in range(3):
        x = add(net, x, net.op(net.root, "mul", layer(net, f"layers.{first + turn}", x), float(start + by * turn)))
    return [x]


def at_indices(net: Net, first: int, start: int, by: int = 1) -> list[Value]:
    """Layers that are followed by comparisons with integers."""
    x = net.x
    for turn in range(3):
        made = do(net, "int", layer(net, f"layers.{first + turn}", x))
        x = add(net, x, do(net, "int", net.op(net.root, "eq", made, start + by * turn)))
    return [x]


def scaled(net: Net, start: int = 0, same: bool = False) -> list[Value]:
    """Layers, each with a tensor of the module."""
    x, one = net.x, net.tensor(net.root, "scale", 8)
    for turn in range(3):
        scale = one if same else net.tensor(net.root, f"scales.{start + turn}", 8)
        x = add(net, x, net.op(net.root, "mul", layer(net, f"layers.{turn}", x), scale))
    return [x]


def from_a_tensor(net: Net) -> list[Value]:
    """Layers the first of which is given a tensor."""
    x = net.tensor(net.root, "table", 8)
    for turn in range(3):
        x = do(net, "tanh", layer(net, f"layers.{turn}", x))
    return [x]


def joining(net: Net) -> list[Value]:
    """A part of what each layer computes, beside a part of its input."""
    x = net.x
    for turn in range(4):
        made = net.op(net.root, "slice", layer(net, f"layers.{turn}", x), axis=-1, stop=4)
        x = net.op(net.root, "concat", [made, net.op(net.root, "slice", x, axis=-1, start=4)], axis=-1)
    return [x]


def growing(net: Net) -> list[Value]:
    """Values that are joined with more and more others."""
    x = net.x
    for turn in range(3):
        made = [layer(net, f"layers.{turn}", x)] * (turn + 1)
        x = net.op(net.root, "sum", net.op(net.root, "stack", made, axis=-1), axis=-1)
    return [x]


def alternating(net: Net) -> list[Value]:
    """A list of layers of two kinds that alternate."""
    x = net.x
    for turn in range(6):
        made = layer(net, f"layers.{turn}", x, op="Conv" if turn % 2 else "Linear")
        x = add(net, x, do(net, "tanh", made) if turn % 2 else made)
    return [x]


def biased(net: Net, count: int = 3, make: Callable[..., Value] = layer) -> list[Value]:
    """A bias for all layers that is made after the first one."""
    x, bias = net.x, net.x
    for turn in range(count):
        made = make(net, f"layers.{turn}", x)
        bias = layer(net, "bias", net.x) if turn == 0 else bias
        x = add(net, x, add(net, made, bias))
    return [x]


def unlike(net: Net, **settings: int) -> list[Value]:
    """Layers, the second last of which is another one."""
    x = net.x
    for turn in range(5):
        x = add(net, x, layer(net, f"layers.{turn}", x, **(settings if turn == 3 else {})))
    return [x]


def unlike_steps(net: Net, *steps: str) -> list[Value]:
    """Layers that are followed by these functions."""
    x = net.x
    for turn, step in enumerate(steps):
        x = add(net, x, do(net, step, layer(net, f"layers.{turn}", x)))
    return [x]


def looking_back(net: Net, far: int) -> list[Value]:
    """Layers that are given what others before them computed."""
    found = [net.x, do(net, "sin", net.x), do(net, "cos", net.x)]
    for turn in range(4):
        found.append(add(net, found[-far], layer(net, f"layers.{turn}", found[-1])))
    return [found[-1]]


def stacked(net: Net, count: int, make: Callable[..., Value] = layer, first: int = 0, axis: int = -1) -> Value:
    """What layers compute of one value, in one tensor."""
    items = [do(net, "tanh", make(net, f"heads.{first + turn}", net.x)) for turn in range(count)]
    return net.op(net.root, "stack", items, axis=axis)


def stacked_otherwise(net: Net, *steps: str) -> list[Value]:
    items = [do(net, step, layer(net, f"heads.{turn}", net.x)) for turn, step in enumerate(steps)]
    return [net.op(net.root, "stack", items, axis=0)]


def stacked_and_used(net: Net, at: int) -> list[Value]:
    """Layers in a stack, the result of one of which is used."""
    found = stacked(net, 3)
    return [found, do(net, "sin", found.operands[at])]


def stacked_with_numbers(net: Net, start: int) -> list[Value]:
    items = [
        net.op(net.root, "gt", do(net, "int", layer(net, f"heads.{turn}", net.x)), start + turn) for turn in range(3)
    ]
    return [net.op(net.root, "stack", items, axis=1)]


def in_a_stack_of_one(net: Net) -> list[Value]:
    return [add(net, stacked(net, 1), stacked(net, 1, first=1))]


def several_results(net: Net, is_swapped: bool = False, first: str = "Block") -> list[Value]:
    """Blocks with two results."""
    x, y = net.x, do(net, "sin", net.x)
    for turn in range(3):
        made = layer(net, f"layers.{turn}", x, y, kind="block", op="Block" if turn else first)
        x, y = [
            Value("part", [made], {"index": at}, array=net.x.array, dtype="real", frame=net.root, kind="part")
            for at in ((1, 0) if is_swapped and turn == 2 else (0, 1))
        ]
    return [add(net, x, y)]


MODULES: dict[str, Callable[[Net], Sequence[Value]]] = {
    "residuals": lambda net: [do(net, "tanh", residual(net, do(net, "sin", net.x), range(3)))],
    "residuals around two layers": lambda net: [residual(net, net.x, range(2))],
    "residuals around two blocks": lambda net: [residual(net, net.x, range(2), block)],
    "residuals around one block": lambda net: [residual(net, net.x, range(1), block)],
    "residuals from 2": lambda net: [residual(net, net.x, range(2, 6))],
    "residuals at every other": lambda net: [residual(net, net.x, range(1, 9, 2))],
    "residuals at places without a rule": lambda net: [residual(net, net.x, (0, 1, 2, 4))],
    "residuals backwards": lambda net: [residual(net, net.x, (3, 2, 1, 0))],
    "residuals, the same again": lambda net: [residual(net, residual(net, net.x, range(3)), range(3))],
    "residuals around one layer, many times": lambda net: [residual(net, net.x, [0] * 4)],
    "residuals in two lists": lambda net: [residual(net, residual(net, net.x, range(3)), range(3), path="others")],
    "residuals in numbered lists": lambda net: [residual(net, net.x, range(3), path="parts.1.layers")],
    "layers without a list": lambda net: [add(net, layer(net, "a", net.x), layer(net, "b", net.x))],
    "layers at the top": lambda net: [residual(net, net.x, range(3), lambda n, p, x: layer(n, p.split(".")[1], x))],
    "two layers in each of two": lambda net: two_of_each(net, 2),
    "two layers in each of three": lambda net: two_of_each(net, 3),
    "norms of the next": shifted,
    "norms of the same": lambda net: shifted(net, 0),
    "two streams": lambda net: two_streams(net),
    "two streams, swapped": lambda net: two_streams(net, 2),
    "two streams, swapped at first": lambda net: two_streams(net, 0),
    "two streams, one of layers": of_layers_and_sums,
    "the first otherwise": first_otherwise,
    "a number for one": with_a_number_for_one,
    "norms before and after": norms_around,
    "a bias for two blocks": lambda net: biased(net, 2, block),
    "a sum of two blocks": lambda net: [add(net, block(net, "heads.0", net.x), block(net, "heads.1", net.x))],
    "a stack of blocks with other inputs": stacked_with_other_inputs,
    "results": lambda net: with_results(net, []),
    "results, the first": lambda net: with_results(net, [0]),
    "results, the second": lambda net: with_results(net, [1]),
    "results, all": lambda net: with_results(net, [0, 1, 2, 3]),
    "numbers that are indices as reals": lambda net: numbered(net, 0, 0),
    "one number": lambda net: numbered(net, 0, 3, 0),
    "indices": lambda net: at_indices(net, 0, 0),
    "indices from 2": lambda net: at_indices(net, 2, 2),
    "not indices": lambda net: at_indices(net, 2, 0),
    "not indices, by 2": lambda net: at_indices(net, 0, 0, 2),
    "tensors": scaled,
    "tensors of the next": lambda net: scaled(net, 1),
    "the same tensor": lambda net: scaled(net, 0, True),
    "from a tensor": from_a_tensor,
    "joining": joining,
    "growing": growing,
    "alternating": alternating,
    "a bias": lambda net: biased(net),
    "another kind": lambda net: unlike(net, width=9),
    "another function": lambda net: unlike_steps(net, "tanh", "tanh", "tanh", "sin"),
    "another function at first": lambda net: unlike_steps(net, "sin", "tanh", "tanh", "tanh", "tanh"),
    "functions in turn": lambda net: unlike_steps(net, *["tanh", "sin"] * 3),
    "looking back by 1": lambda net: looking_back(net, 1),
    "looking back by 2": lambda net: looking_back(net, 2),
    "looking back by 3": lambda net: looking_back(net, 3),
    "a stack": lambda net: [stacked(net, 3)],
    "a stack from 2": lambda net: [do(net, "sin", stacked(net, 3, first=2, axis=0))],
    "a stack of two layers": lambda net: [stacked(net, 2)],
    "a stack of two blocks": lambda net: [stacked(net, 2, block)],
    "a stack of other functions": lambda net: stacked_otherwise(net, "tanh", "tanh", "sin"),
    "a stack, one of which is used": lambda net: stacked_and_used(net, 1),
    "a stack of comparisons with indices": lambda net: stacked_with_numbers(net, 0),
    "a stack of comparisons with other numbers": lambda net: stacked_with_numbers(net, 1),
    "stacks of one": in_a_stack_of_one,
    "two stacks": lambda net: [stacked(net, 3), do(net, "sin", stacked(net, 4, first=3))],
    "a stack of residuals": lambda net: [
        net.op(net.root, "stack", [residual(net, net.x, [turn]) for turn in range(3)], axis=1)
    ],
    "several results": several_results,
    "several results, swapped": lambda net: several_results(net, True),
    "several results, after another block": lambda net: several_results(net, first="Other"),
}
"""What modules compute."""


def test_layers_in_turn_with_other_operations(golden: Callable[[str, str], None]) -> None:
    lines: list[str] = []
    for name, make in MODULES.items():
        net = Net()
        body = Body(net.root, [net.x], make(net))
        runs = rewrite_layer_loops(body, key, ())
        loops = [f"    {run.address} from {run.start}: {len(run.values)}\n" for run in runs.values()]
        lines += [f"{name}\n", *loops, f"    {shown(body)}\n"]
    golden("lift/iterations.txt", "".join(lines))


@pytest.mark.parametrize("of_stack", [lambda stack: stack, lambda stack: stack.operands[0]])
def test_values_that_are_excluded_stay_as_they_are(of_stack: Callable[[Value], Value]) -> None:
    net = Net()
    whole, stack = residual(net, net.x, range(6)), stacked(net, 3)
    found = rewrite_layer_loops(Body(net.root, [net.x], [whole, stack]), key, [whole.operands[0], of_stack(stack)])
    assert [(run.address, run.start, len(run.values)) for run in found.values()] == [("layers[i]", 0, 4)]
