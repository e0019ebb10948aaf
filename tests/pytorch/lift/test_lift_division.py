"""Lifting: the values of a module are divided into bodies of definitions, by calls."""

from collections.abc import Callable
from typing import cast

import pytest
from builders import given
from calls import BATCH, SEQ, Net, shown
from divided import MODULES

from archspec.pytorch.lift.definitions.blocks import masks_of, use_local_tensor_names
from archspec.pytorch.lift.values.stored import StoredTensors
from archspec.pytorch.values.values import Argument, Value


def test_modules_are_divided_into_definitions(golden: Callable[[str, str], None]) -> None:
    lines: list[str] = []
    for name, make in MODULES.items():
        net = Net()
        bodies = net.bodies(*make(net), several=["Several"])
        lines += [f"{name}\n", *[f"    {shown(body)}\n" for body in bodies]]
    golden("lift/division.txt", "".join(lines))


def not_seen(net: Net) -> list[Value]:
    """The mask of attention, and where it is not."""
    (found,) = seen(net, 3)
    return [found, net.op(net.root, "not", found.operands[-1])]


def seen(net: Net, *settings: int, is_input: bool = True, block: bool = False) -> list[Value]:
    """Attention that is given an input as these of its arguments."""
    ids, other = [given(net.b, name, (BATCH, 4, SEQ, SEQ), "bool") for name in ("ids", "other")]
    whole, further = [net.b.made("key_mask", [value], value.array, {}, "std") for value in (ids, other)]
    whole = ids if is_input else whole
    args: list[Argument] = [net.x, net.x, net.x, further]
    for at in settings:
        args[at] = whole
    found = net.b.made("attention", args, net.x.array, {}, "std")
    return [net.b.made("Block", [found, whole], net.x.array, {}, "block") if block else found]


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda net: seen(net, 3), ["ids"]),
        (lambda net: seen(net, 3, is_input=False), ["ids", "key_mask"]),
        (lambda net: seen(net, 2), []),
        (lambda net: seen(net, 2, 3), []),
        (lambda net: seen(net, 0, is_input=False), []),
        (lambda net: seen(net, 3, block=True), ["ids"]),
        (lambda net: seen(net, block=True), ["ids"]),
        (not_seen, []),
    ],
)
def test_masks_that_may_be_left_out(make: Callable[[Net], list[Value]], found: list[str]) -> None:
    net = Net()
    outputs = make(net)
    bodies = net.bodies(*outputs)
    assert sorted([value.address or value.op for value in masks_of(bodies, ["ids"])]) == found
    assert masks_of(bodies, ["others"]) == set()


def test_a_tied_tensor_is_another_value_where_it_has_another_name() -> None:
    net = Net(first__weight="second.weight")
    tied, own = net.tensor(net.call("first"), "weight", 8), net.tensor(net.call("first"), "own", 8)
    x = net.x
    for frame in [net.call("first", "First"), net.call("second", "Second"), net.call("first", "First")]:
        x = net.steps(frame, net.op(frame, "mul", net.op(frame, "mul", x, tied), own), 8)
    bodies = net.bodies(net.op(net.root, "mul", x, own))
    use_local_tensor_names(bodies, cast("StoredTensors", net))
    used = [(body.path, [value for value in body.values() if value.op == "tensor"]) for body in bodies]
    assert [path for path, _ in used] == ["first", "second", "first", ""]
    (_, first), (_, (other,)), (_, again), (_, outside) = used
    assert first == again == [tied, own] and outside == [own]
    assert other is not tied and (other.address, other.array) == (tied.address, tied.array)
