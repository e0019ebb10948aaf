"""Modules that are divided into definitions: which of their calls compute what."""

from collections.abc import Callable, Sequence

from builders import given
from calls import BATCH, SEQ, Net

from archspec.core.algebra import Dim, index, symbol
from archspec.pytorch.values.values import LENGTH, ModuleCall, Value


def block(
    net: Net, path: str, x: Value, count: int = 2, kind: str = "Block", inside: ModuleCall | None = None
) -> Value:
    """What a call makes of a value in some steps."""
    return net.steps(net.call(path, kind, inside), x, count)


def with_weight(net: Net, path: str, x: Value, count: int = 1, kind: str = "Scale") -> Value:
    """What a call makes of a value and a tensor of its own, in some steps."""
    frame = net.call(path, kind)
    return net.steps(frame, net.op(frame, "mul", x, net.tensor(frame, "weight", 8)), count - 1)


def listed(net: Net, count: int, steps: int = 2, kinds: Sequence[str] = ("Block",)) -> list[Value]:
    """Modules in a list, one after the other."""
    x = net.x
    for turn in range(count):
        x = block(net, f"layers.{turn}", x, steps, kinds[turn % len(kinds)])
    return [x]


def in_a_list_that_is_called(net: Net, count: int, own: int) -> list[Value]:
    """Modules in a list, which is a module that is called, and has steps of its own."""
    outer, x = net.call("layers", "Sequential"), net.x
    for turn in range(count):
        x = block(net, f"layers.{turn}", x, 3, inside=outer)
    return [net.steps(outer, x, own)]


def of_other_widths(net: Net) -> list[Value]:
    """A module that is called with inputs of two widths."""
    narrow = given(net.b, "narrow", (BATCH, SEQ, 4))
    return [block(net, "block", net.x, 8), block(net, "block", narrow, 8)]


def of_other_lengths(net: Net) -> list[Value]:
    """A module that is called with inputs of two dimensions."""
    other = given(net.b, "other", (BATCH, symbol("target"), 8))
    return [block(net, "block", net.x, 8), block(net, "block", other, 8)]


def inside_of_another(net: Net, own: int, inner: int, times: int = 1) -> list[Value]:
    """A module that calls another one, which is small."""
    outer, x = net.call("outer"), net.x
    for _ in range(times):
        x = block(net, "outer.inner", x, inner, "Inner", outer)
    return [net.steps(outer, x, own)]


def around_a_list(net: Net, own: int, count: int) -> list[Value]:
    """A module that calls a list of others."""
    outer, x = net.call("outer"), net.x
    for turn in range(count):
        x = block(net, f"outer.layers.{turn}", x, 2, "Inner", outer)
    return [net.steps(outer, x, own)]


def with_a_foreign_layer(net: Net, path: str) -> list[Value]:
    """Two large calls, one of which applies a layer that it is given."""
    first, second = net.call("first", "First"), net.call("second", "Second")
    x = net.steps(first, net.layer(first, path, net.x), 8)
    return [net.steps(second, net.layer(second, "second.own", x), 8)]


def with_a_borrowed_part(net: Net) -> list[Value]:
    """A large call, and a call of a part of it, outside of it."""
    outer = net.call("outer", "Outer")
    part = net.call("outer.part", "Part", outer)
    x = net.steps(outer, net.steps(part, net.x, 7), 8)
    return [block(net, "outer.part", x, 7, "Part")]


def with_several_results(net: Net) -> list[Value]:
    """A call with two results, both of which are used."""
    frame = net.call("block")
    first = net.steps(frame, net.x, 6)
    second = net.op(frame, "sin", net.op(frame, "add", first, 1.0))
    return [net.op(net.root, "add", net.op(net.root, "cos", first), second)]


def with_parts(net: Net, of_data: bool) -> list[Value]:
    """A call that splits a value, of data or of positions, in several parts."""
    frame = net.call("block")
    x = net.x if of_data else net.op(frame, "exp", net.tensor(frame, "table", 8))
    net.b.frame = frame
    parts = net.b.ops("split", x, axis=-1, sizes=(2, 2, 4))
    found = net.op(frame, "concat", [parts[2], parts[1], parts[0]], axis=-1)
    return [net.steps(frame, net.op(frame, "add", net.x, found), 2)]


def of_an_unknown_length(net: Net, is_given: bool) -> list[Value]:
    """A call that adds what depends on a length, which it has an input of or not."""
    frame, size = net.call("block"), symbol("target")
    other = given(net.b, "other", (size,))
    places = net.op(frame, "exp", net.op(frame, "arange", stop=size))
    inner = net.op(frame, "add", places, other) if is_given else places
    total = net.op(frame, "sum", inner, axis=0)
    return [net.steps(frame, net.op(frame, "mul", net.x, total), 7), other]


def of_a_total_length(net: Net) -> list[Value]:
    """A call that is given the items of two dimensions, joined, and computes a value for each."""
    frame = net.call("block")
    joined = net.op(net.root, "concat", [net.x, net.op(net.root, "full", shape=(BATCH, 1, 8), value=2.0)], axis=1)
    places = net.op(frame, "exp", net.op(frame, "arange", stop=8))
    later = net.op(frame, "slice", net.op(frame, "mul", joined, places), axis=1, start=1)
    return [net.steps(frame, later, 7)]


def of_a_quotient_of_a_length(net: Net) -> list[Value]:
    """A call that is given every fourth item, and leaves out the first."""
    frame = net.call("block")
    few = given(net.b, "few", (BATCH, (symbol("time") + 1) // 4 - 1, 8))
    return [net.steps(frame, net.op(frame, "slice", few, axis=1, start=1), 7)]


def of_two_lengths(net: Net, is_given: bool) -> list[Value]:
    """A call that is given the items of two dimensions as one axis, and those of one of them, or not."""
    first, second = symbol("rows"), symbol("columns")
    both, alone = given(net.b, "both", (first * second, 8)), given(net.b, "alone", (first, 8))
    net.b.frame = frame = net.call("block")
    x = net.op(frame, "add", net.b.reshape(both, (first, second, 8)), 1.0)
    if is_given:
        x = net.op(frame, "add", x, net.b.reshape(alone, (first, 1, 8)))
    return [net.steps(frame, x, 7)]


def mask(net: Net, frame: ModuleCall, size: Dim = SEQ) -> Value:
    rows = net.b.reshape(net.op(frame, "arange", stop=size), (size, 1))
    return net.op(frame, "exp", net.op(frame, "sin", net.op(frame, "mul", rows, 0.5)))


def of_positions_in_each(net: Net) -> list[Value]:
    """Modules in a list, each of which computes the same of positions."""
    x = net.x
    for turn in range(2):
        frame = net.call(f"layers.{turn}")
        x = net.op(frame, "tanh", net.op(frame, "mul", x, mask(net, frame)))
    return [x]


def of_positions_around(net: Net) -> list[Value]:
    """Modules that are given the same of positions; those in a list, and one that is not."""
    whole = mask(net, net.root)
    x = net.x
    for turn in range(2):
        frame = net.call(f"layers.{turn}")
        x = net.op(frame, "tanh", net.op(frame, "mul", x, whole))
    return [x]


def of_positions_for_one(net: Net, is_result: bool = False) -> list[Value]:
    """A large module that alone uses what is computed of positions around it."""
    whole = mask(net, net.root)
    frame = net.call("block")
    x = net.steps(frame, net.op(frame, "mul", net.x, whole), 7)
    return [x, whole] if is_result else [x]


def of_positions_lent(net: Net) -> list[Value]:
    """A large module that computes what only another one uses."""
    first, second = net.call("first", "First"), net.call("second", "Second")
    x = net.steps(first, net.x, 7)
    whole = mask(net, first)
    return [net.steps(second, net.op(second, "mul", x, whole), 7)]


def of_a_tensor(net: Net, path: str) -> list[Value]:
    """A large module that alone uses what is computed of a tensor of another one around it."""
    frame = net.call("block")
    table = net.op(net.root, "exp", net.tensor(ModuleCall(path, "", net.root), "table", 8))
    return [net.steps(frame, net.op(frame, "mul", net.x, table), 7)]


def of_positions_for_two(net: Net, is_own: bool = False) -> list[Value]:
    """Two large modules that use what is computed of positions around them, or in the first of them."""
    first, second = net.call("first", "First"), net.call("second", "Second")
    whole = mask(net, first if is_own else net.root)
    x = net.steps(first, net.op(first, "mul", net.x, whole), 7)
    return [net.steps(second, net.op(second, "mul", x, whole), 7)]


def of_positions_deep_inside(net: Net) -> list[Value]:
    """What is computed of positions for a module in a module in a list."""
    whole, x = mask(net, net.root), net.x
    for turn in range(2):
        outer = net.call(f"layers.{turn}")
        frame = net.call(f"layers.{turn}.own", "Own", outer)
        x = net.steps(outer, net.steps(frame, net.op(frame, "mul", x, whole), 7), 7)
    return [x]


def of_a_layer_of_positions(net: Net, is_lent: bool) -> list[Value]:
    """A layer of a list, applied to positions in the first module there, which also the second one uses, or not."""
    frames = [net.call(f"layers.{turn}") for turn in range(2)]
    x = net.x
    for turn, frame in enumerate(frames):
        own = net.layer(frames[0 if is_lent else turn], f"layers.{0 if is_lent else turn}.own", mask_of(net, frame))
        x = net.steps(frame, net.op(frame, "mul", x, own), 3)
    return [x]


def mask_of(net: Net, frame: ModuleCall) -> Value:
    places = net.op(frame, "exp", net.op(frame, "arange", stop=8))
    return net.op(frame, "sin", net.b.expand(net.b.reshape(places, (1, 8)), (SEQ, 8)))


def of_positions_for_the_first(net: Net, count: int) -> list[Value]:
    """What is computed of positions for the first module of a list alone."""
    whole = mask(net, net.root)
    x = net.op(net.root, "cos", net.x)
    for turn in range(count):
        frame = net.call(f"layers.{turn}")
        x = net.steps(frame, x if turn else net.op(frame, "mul", x, whole), 8)
    return [x]


def of_other_widths_in_a_list(net: Net) -> list[Value]:
    """Modules of a class in a list, and one that is called with inputs of two widths, of as many steps."""
    narrow = given(net.b, "narrow", (BATCH, SEQ, 4))
    return [*listed(net, 2, 8), block(net, "block", net.x, 8), block(net, "block", narrow, 8)]


def of_an_index(net: Net) -> list[Value]:
    """A call that takes what the index of a loop says."""
    frame = net.call("block")
    return [net.steps(frame, net.op(frame, "pick", net.x, axis=1, index=index(LENGTH)), 7)]


def of_a_tensor_around(net: Net) -> list[Value]:
    """A large call that uses a tensor of the module."""
    frame = net.call("block")
    return [net.steps(frame, net.op(frame, "mul", net.x, net.tensor(net.root, "table", 8)), 7)]


def in_a_list_of_values(net: Net) -> list[Value]:
    """Results of two calls that are joined."""
    return [net.op(net.root, "concat", [block(net, "first", net.x, 7), block(net, "second", net.x, 8)], axis=-1)]


def with_a_foreign_module(net: Net, path: str) -> list[Value]:
    """A large call that calls a small module with a tensor."""
    outer = net.call("outer")
    frame = net.call(path, "Scale", outer)
    scaled = net.op(frame, "mul", net.x, net.tensor(frame, "weight", 8))
    return [net.steps(outer, scaled, 7)]


def of_twice_a_length(net: Net) -> list[Value]:
    """A call with twice as many rows as it is given."""
    frame, rows = net.call("block"), given(net.b, "rows", (SEQ, 8))
    return [net.steps(frame, net.op(frame, "concat", [rows, net.op(frame, "sin", rows)], axis=0), 7)]


def with_parts_for_two(net: Net, is_own: bool) -> list[Value]:
    """Two calls, each of which uses a part of what is split around them, or in the first."""
    first, second = net.call("first", "First"), net.call("second", "Second")
    table = net.op(first if is_own else net.root, "exp", net.tensor(net.root, "table", 16))
    parts = net.b.ops("split", table, axis=-1, sizes=(8, 8))
    x = net.steps(first, net.op(first, "mul", net.x, parts[0]), 7)
    return [net.steps(second, net.op(second, "mul", x, parts[1]), 7)]


def of_cheap_positions(net: Net) -> list[Value]:
    """Two calls that use the same places, and the same numbers."""
    x = net.x
    for path, kind in (("first", "First"), ("second", "Second")):
        frame = net.call(path, kind)
        x = net.op(frame, "add", x, net.op(frame, "arange", stop=x.shape[-1]))
        x = net.op(frame, "mul", x, net.b.reshape(net.op(frame, "arange", stop=SEQ), (SEQ, 1)))
        x = net.op(frame, "concat", [x, net.op(frame, "full", shape=(BATCH, SEQ, 1), value=2.0)], axis=-1)
        x = net.steps(frame, x, 7)
    return [x]


def of_ids_that_are_data(net: Net) -> list[Value]:
    """A mask that is computed twice of an input that is also data."""
    ids = given(net.b, "ids", (BATCH, SEQ), "int")
    alike = [net.op(net.root, "exp", net.op(net.root, "where", net.op(net.root, "ne", ids, 0), 1.0, 3.0)) for _ in "ab"]
    return [*alike, net.op(net.root, "real", ids)]


def of_positions_inside_and_around(net: Net) -> list[Value]:
    """What a call computes of positions, which it and the module use."""
    frame = net.call("block")
    whole = mask(net, frame)
    x = net.steps(frame, net.op(frame, "mul", net.x, whole), 7)
    return [net.op(net.root, "mul", x, whole)]


def of_a_tensor_outside(net: Net) -> list[Value]:
    """A tensor of a large call that is also used outside of it."""
    frame = net.call("block")
    weight = net.tensor(frame, "weight", 8)
    x = net.steps(frame, net.op(frame, "mul", net.x, weight), 7)
    return [net.op(net.root, "mul", x, weight)]


def of_the_same_masks(net: Net) -> list[Value]:
    """Two masks that are computed alike, and numbers that only look alike."""
    ids = given(net.b, "ids", (BATCH, SEQ), "int")
    first, second = [net.op(net.root, "ne", ids, 0) for _ in range(2)]
    alike = [net.op(net.root, "exp", net.op(net.root, "where", test, 1.0, 3.0)) for test in (first, second)]
    of_data = [net.op(net.root, "exp", net.x) for _ in range(2)]
    return [*alike, *of_data]


MODULES: dict[str, Callable[[Net], Sequence[Value]]] = {
    "a small module": lambda net: [block(net, "block", net.x, 6)],
    "a large module": lambda net: [block(net, "block", net.x, 7)],
    "elements of a list": lambda net: listed(net, 2),
    "elements of a list, of one step": lambda net: listed(net, 3, 1),
    "elements of a list, of other kinds": lambda net: listed(net, 2, 2, ("Block", "Other")),
    "elements of a list, of two kinds": lambda net: listed(net, 4, 2, ("Block", "Other")),
    "a list of one": lambda net: listed(net, 1),
    "a list that is called": lambda net: in_a_list_that_is_called(net, 3, 7),
    "a list of one that is called": lambda net: in_a_list_that_is_called(net, 1, 7),
    "a module that is called twice": lambda net: [block(net, "block", block(net, "block", net.x))],
    "a step that is called twice": lambda net: [block(net, "block", block(net, "block", net.x, 1), 1)],
    "two of a kind": lambda net: [block(net, "second", block(net, "first", net.x))],
    "two with a tensor": lambda net: [with_weight(net, "second", with_weight(net, "first", net.x, 2), 2)],
    "two with a tensor, of one step": lambda net: [with_weight(net, "second", with_weight(net, "first", net.x))],
    "one with a tensor": lambda net: [with_weight(net, "first", net.x, 3)],
    "one with a tensor, of six steps": lambda net: [with_weight(net, "first", net.x, 6)],
    "one with a tensor, of a kind with several sizes": lambda net: [with_weight(net, "first", net.x, 2, "Several")],
    "one with a tensor, of one step, of such a kind": lambda net: [with_weight(net, "first", net.x, 1, "Several")],
    "of other widths": of_other_widths,
    "of other lengths": of_other_lengths,
    "one small inside": lambda net: inside_of_another(net, 4, 2),
    "one larger inside": lambda net: inside_of_another(net, 4, 3),
    "one inside that is called twice": lambda net: inside_of_another(net, 6, 2, 2),
    "one step inside that is called twice": lambda net: inside_of_another(net, 5, 1, 2),
    "one step inside that is called twice, and more": lambda net: inside_of_another(net, 6, 1, 2),
    "around a list": lambda net: around_a_list(net, 5, 3),
    "around a list, and more": lambda net: around_a_list(net, 6, 3),
    "a layer of its own": lambda net: with_a_foreign_layer(net, "first.own"),
    "a layer of the module": lambda net: with_a_foreign_layer(net, "layer"),
    "a layer of another one": lambda net: with_a_foreign_layer(net, "second.own"),
    "a part that is called outside": with_a_borrowed_part,
    "several results": with_several_results,
    "large as another one": lambda net: [block(net, "second", block(net, "first", net.x, 7), 7, "Other")],
    "alike, and one shorter": lambda net: [block(net, "c", block(net, "b.1", block(net, "b.0", net.x, 4), 4), 4)],
    "parts of data": lambda net: with_parts(net, True),
    "parts of a table": lambda net: with_parts(net, False),
    "an unknown length": lambda net: of_an_unknown_length(net, False),
    "a known length": lambda net: of_an_unknown_length(net, True),
    "a total length": of_a_total_length,
    "a quotient of a length": of_a_quotient_of_a_length,
    "two lengths": lambda net: of_two_lengths(net, True),
    "two lengths, neither of which is given": lambda net: of_two_lengths(net, False),
    "positions in each": of_positions_in_each,
    "positions around": of_positions_around,
    "positions for one": of_positions_for_one,
    "positions for one and outside": lambda net: of_positions_for_one(net, True),
    "positions lent": of_positions_lent,
    "positions for two": of_positions_for_two,
    "positions of the first for two": lambda net: of_positions_for_two(net, True),
    "positions deep inside": of_positions_deep_inside,
    "a layer of positions in each": lambda net: of_a_layer_of_positions(net, False),
    "a layer of positions that is lent": lambda net: of_a_layer_of_positions(net, True),
    "positions for the first of two": lambda net: of_positions_for_the_first(net, 2),
    "positions for the only one": lambda net: of_positions_for_the_first(net, 1),
    "other widths, and a list": of_other_widths_in_a_list,
    "an index": of_an_index,
    "a tensor of the module, as it is": of_a_tensor_around,
    "results in a list": in_a_list_of_values,
    "a module of its own": lambda net: with_a_foreign_module(net, "outer.scale"),
    "a module of another one": lambda net: with_a_foreign_module(net, "scale"),
    "twice a length": of_twice_a_length,
    "parts of a table for two": lambda net: with_parts_for_two(net, False),
    "parts of the first for two": lambda net: with_parts_for_two(net, True),
    "cheap positions": of_cheap_positions,
    "ids that are data": of_ids_that_are_data,
    "positions inside and around": of_positions_inside_and_around,
    "a list of two that is called": lambda net: in_a_list_that_is_called(net, 2, 7),
    "a tensor inside and outside": of_a_tensor_outside,
    "a tensor of its own": lambda net: of_a_tensor(net, "block"),
    "a tensor of the module": lambda net: of_a_tensor(net, ""),
    "the same masks": of_the_same_masks,
}
"""What modules compute."""
