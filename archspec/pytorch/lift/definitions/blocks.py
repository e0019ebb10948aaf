"""Blocks: which calls of modules become definitions, and what goes into and comes out of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from archspec.core.addresses import is_index, is_inside, last_segment, parent, prefixes
from archspec.core.algebra import Dim, Polynomial, split_multiple, symbols
from archspec.pytorch.lift.definitions.lengths import dimensions_of, joint_sizes, total_length
from archspec.pytorch.lift.values.source_names import names_inside
from archspec.pytorch.lift.values.stored import StoredTensors
from archspec.pytorch.values.values import Argument, ModuleCall, Value, find_users, has_index, live_values

MAX_INLINED = 6
"""Modules with at most so many operations are written where they are used."""

UNCOUNTED_OPERATIONS = ("tensor", "input", "part")
"""Operations of values that are not counted as steps."""


class Body:
    """What a call of a module computes: inputs, outputs, and the values between them."""

    def __init__(self, frame: ModuleCall, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        self.frame = frame
        self.inputs = list(inputs)
        self.outputs = list(outputs)

    @property
    def path(self) -> str:
        """The address of the module."""
        return self.frame.path

    def values(self) -> list[Value]:
        """Return the values that are computed, each after its arguments."""
        return live_values(self.outputs, self.inputs)

    def sizes(self) -> set[Dim]:
        """Return the sizes of inputs and values that are no numbers."""
        return {size for value in (*self.inputs, *self.values()) for size in _sizes(value)}


def split_into_bodies(
    root: ModuleCall, outputs: Sequence[Value], stored: StoredTensors, several: Collection[str]
) -> dict[Value | None, Body]:
    """Divide the values of a module into bodies: one for each call that is kept, by the value it is in its parent.

    The body of the whole module has the key None. Of the classes `several`, the module has more at other sizes.
    """
    outputs = list(outputs)
    values = _deduplicate(live_values(outputs), outputs)
    _hoist(values, outputs)
    kept = _sized(_calls_to_define(root, values, stored.own, several), values)
    owner = {value: next(frame for frame in reversed(value.frame.stack) if frame in kept) for value in values}
    found: dict[Value | None, Body] = {}
    results = list(outputs)
    active = list(values)
    inner = [frame for value in values for frame in value.frame.stack if frame in kept and frame is not root]
    for frame in _deepest_first(inner):
        members = [value for value in active if owner[value] is frame]
        parent = next(other for other in reversed(frame.stack[:-1]) if other in kept)
        call, body, replaced = _collapsed(frame, parent, members, active, results, stored)
        for other in found.values():
            other.inputs = [replaced.get(value, value) for value in other.inputs]
        found[call] = body
        for value in values:
            if owner[value] is not frame:
                replace_operands(value, replaced)
        results = [replaced.get(value, value) for value in results]
        made = [*dict.fromkeys([call, *replaced.values()])]
        owner |= dict.fromkeys(made, parent)
        inside = set(members)
        active = [value for value in active if value not in inside] + made
        values += made
    inputs = [value for value in values if value.op == "input"]
    found[None] = Body(root, inputs, results)
    return found


def masks_of(bodies: Sequence[Body], optional: Collection[str]) -> set[Value]:
    """Return the inputs among those that may be left out, and the masks made of them, if attention alone uses them."""
    values = list(dict.fromkeys([value for body in bodies for value in body.values()]))
    inputs = {value for body in bodies for value in body.inputs if value.op == "input" and value.address in optional}
    found: set[Value] = set()
    for given in inputs:
        masks = {given} | {value for value in values if value.op == "key_mask" and value.args == [given]}
        users = [(value, mask) for value in values for mask in value.operands if mask in masks]
        if all(_tolerates(value, mask) for value, mask in users):
            found |= masks
    return found


def _tolerates(value: Value, mask: Value) -> bool:
    """Whether a value can be computed without a mask."""
    if value.op == "attention":
        return mask not in value.args[:3]
    return value.kind == "block" or (value.op == "key_mask" and mask.op == "input")


def _collapsed(
    frame: ModuleCall,
    parent: ModuleCall,
    members: Sequence[Value],
    values: Sequence[Value],
    results: Sequence[Value],
    stored: StoredTensors,
) -> tuple[Value, Body, dict[Value, Value]]:
    """Return the value that a call is in its parent, its body, and what the values that leave it become."""
    inside = set(members)

    def is_own(value: Value) -> bool:
        return value in inside or (value.op == "tensor" and stored.name_under(value.address, frame.path) is not None)

    inputs = dict.fromkeys([operand for value in members for operand in value.operands if not is_own(operand)])
    used = {operand for value in values if value not in inside for operand in value.operands} | set(results)
    outputs = [value for value in members if value in used and value.op != "tensor"]
    body = Body(frame, [*inputs], outputs)
    first = outputs[-1]
    call = Value(
        frame.kind, [*inputs], array=first.array, dtype=first.dtype, frame=parent, kind="block", address=frame.path
    )
    if len(outputs) == 1:
        call.names = _divide_names(first, frame)
        return call, body, {first: call}
    replaced: dict[Value, Value] = {}
    for turn, value in enumerate(outputs):
        part = Value("part", [call], {"index": turn}, array=value.array, dtype=value.dtype, frame=parent, kind="part")
        part.names = _divide_names(value, frame)
        replaced[value] = part
    return call, body, replaced


def _divide_names(value: Value, frame: ModuleCall) -> list[str]:
    """Return the names of a result of a call, those outside of it first, and leave those inside of it to the value."""
    inside = names_inside(value, frame)
    names = [*[name for name in value.names if name not in inside], *inside]
    value.names = inside
    return names


def replace_operands(value: Value, replaced: Mapping[Value, Value]) -> None:
    """Replace arguments of a value."""

    def other(arg: Argument) -> Argument:
        if isinstance(arg, Sequence):
            return [item and replaced.get(item, item) for item in arg]
        return replaced.get(arg, arg) if isinstance(arg, Value) else arg

    value.args = [other(arg) for arg in value.args]


# Which calls are kept -------------------------------------------------------------------------------------------------


def _calls_to_define(
    root: ModuleCall, values: Sequence[Value], owners: Mapping[str, Sequence[str]], several: Collection[str]
) -> set[ModuleCall]:
    """Return the calls that become definitions: repeated elements of lists, large ones, layers with own tensors, and
    those of the same class that have as many steps.
    """
    frames = list(dict.fromkeys([frame for value in values for frame in value.frame.stack]))
    calls = Counter([frame.path for frame in frames])
    listed = Counter([(_list_of(frame.path), frame.kind) for frame in frames if _list_of(frame.path)])
    lists = {path for (path, _), count in listed.items() if count > 1}
    kinds = Counter([frame.kind for frame in frames])
    uneven = _calls_with_unequal_sizes(values)
    kept = {root}
    steps: Counter[ModuleCall] = Counter()
    counted: set[object] = set()
    still = _data_independent_values(values, find_users(values))
    for value in values:
        if value.op not in UNCOUNTED_OPERATIONS or (
            value.op == "part" and value in still
        ):  # several tables are several steps
            steps[value.frame] += len(value.steps)
    for frame in _deepest_first([frame for frame in frames if frame is not root]):
        is_element = listed[_list_of(frame.path), frame.kind] > 1 or calls[frame.path] > 1
        is_repeated = kinds[frame.kind] > 1 or frame.kind in several
        is_layer = bool(owners.get(frame.path)) and is_repeated and steps[frame] > 1
        is_list = frame.path in lists  # no address begins with the index of a loop
        is_large = (is_element and steps[frame] > 1) or is_layer or steps[frame] > MAX_INLINED
        if is_large and not is_list and frame.path not in uneven:
            kept.add(frame)
            element = frame.parent, _list_of(frame.path) or frame.path
            if frame.parent is not None and element not in counted:
                steps[frame.parent] += 1  # a list of equal modules is one step
            counted.add(element)
        elif frame.parent is not None and (calls[frame.path] == 1 or (frame.parent, frame.path) not in counted):
            steps[frame.parent] += steps[frame]
            counted.add((frame.parent, frame.path))
    alike = {(frame.kind, steps[frame]) for frame in kept if frame is not root}
    single = [frame for frame in frames if frame.path not in lists and frame.path not in uneven]
    kept |= {frame for frame in single if (frame.kind, steps[frame]) in alike}
    kept -= _with_foreign_modules(values, frames, owners)
    paths = {other.path for other in kept}
    return {frame for frame in kept if not _is_borrowed(frame, paths)}


def _deepest_first(frames: Iterable[ModuleCall]) -> list[ModuleCall]:
    return sorted(dict.fromkeys(frames), key=lambda frame: -len(frame.stack))


def _with_foreign_modules(
    values: Iterable[Value], frames: Iterable[ModuleCall], owners: Mapping[str, Sequence[str]]
) -> set[ModuleCall]:
    """Return the calls that call modules with tensors that are not inside of their own, but given to them."""
    with_tensors = {prefix for path, names in owners.items() if names for prefix in prefixes(path)}
    called = [(value.address, value.frame.stack[1:]) for value in values if value.kind == "layer"]
    called += [(frame.path, frame.stack[1:-1]) for frame in frames if frame.path in with_tensors]
    return {outer for path, stack in called for outer in stack if not is_inside(path, outer.path)}


def _is_borrowed(frame: ModuleCall, paths: Collection[str]) -> bool:
    """Whether a module is a part of another one that becomes a definition, but is called outside of it."""
    calls = {other.path for other in frame.stack}
    return any(path not in calls and is_inside(frame.path, path) for path in paths)


def _calls_with_unequal_sizes(values: Sequence[Value]) -> set[str]:
    """Return the addresses of modules that are called with inputs of different sizes, other than dimensions."""
    sizes: dict[str, dict[ModuleCall, list[Dim | None]]] = {}
    for value in values:
        if value.op not in UNCOUNTED_OPERATIONS:
            own = sizes.setdefault(value.frame.path, {}).setdefault(value.frame, [])
            own += [size if isinstance(size, int) else None for size in value.shape]
    return {path for path, calls in sizes.items() if len({tuple(own) for own in calls.values()}) > 1}


def _sized(kept: set[ModuleCall], values: Sequence[Value]) -> set[ModuleCall]:
    """Return the calls all of whose dimensions are sizes of their inputs; others are written where they are used."""

    def is_sized(frame: ModuleCall) -> bool:
        inside = {value for value in values if frame.contains(value.frame)}
        inputs = {operand for value in inside for operand in value.operands if operand not in inside}
        given = dimensions_of(inputs)
        named = {found[1] for size in given if (found := split_multiple(size)) is not None}
        total = total_length(given)
        named |= {total[0]} if total is not None else set()
        sizes = {size for value in inside for size in _sizes(value)}
        unnamed = {size for size in sizes - given if not symbols(size) <= named}
        return not unnamed or unnamed <= joint_sizes(given, sizes).keys()

    return {frame for frame in kept if frame.parent is None or is_sized(frame)}


def _sizes(value: Value) -> Iterator[Dim]:
    for item in [item for step in value.steps for item in (*step.shape, *step.settings.values())]:
        for size in item if isinstance(item, Sequence) else (item,):
            if isinstance(size, Polynomial) and not has_index(size):
                yield size


def _list_of(path: str) -> str:
    """Return the address of the list that a module is an element of; empty if it is in none."""
    return parent(path) if is_index(last_segment(path)) else ""


# Values that do not depend on the data --------------------------------------------------------------------------------


def _hoist(values: Sequence[Value], outputs: Sequence[Value]) -> None:
    """Move what does not depend on the data to the innermost call around those that use it.

    What is computed outside of a layer stays there if there are others of its kind in a list: these are given it, too.
    """
    users = find_users(values)
    still = _data_independent_values(values, users)
    repeated = _elements([frame for value in values for frame in value.frame.stack])
    for value in reversed(values):
        is_number = not value.shape and _is_cheap(value)
        if value not in still or value.op in UNCOUNTED_OPERATIONS or is_number:
            continue
        parts = [user for user in users[value] if user.op == "part"]
        if any(item in outputs for item in (value, *parts)):
            continue
        used = [user.frame for item in parts or [value] for user in users[item]]
        around = _innermost_common_call([*([value.frame] if value.kind == "layer" else []), *used])
        entered = next((frame for frame in around.stack if frame in repeated and not frame.contains(value.frame)), None)
        around = entered.parent if entered is not None and entered.parent is not None else around
        if _may_move(value, around):
            for item in (value, *parts):
                item.frame = around


def _elements(frames: Iterable[ModuleCall]) -> set[ModuleCall]:
    """Return the calls of those modules in lists that are not the only ones of their class there."""
    listed: dict[tuple[str, str], dict[str, list[ModuleCall]]] = {}
    for frame in dict.fromkeys(frames):
        if _list_of(frame.path):
            listed.setdefault((_list_of(frame.path), frame.kind), {}).setdefault(frame.path, []).append(frame)
    return {frame for paths in listed.values() if len(paths) > 1 for found in paths.values() for frame in found}


def use_local_tensor_names(bodies: Sequence[Body], stored: StoredTensors) -> None:
    """Name each tensor as in the body that uses it: a tied one is another value where it has another name."""
    names: dict[Value, str | None] = {}
    for body in bodies:
        replaced: dict[Value, Value] = {}
        for value in [value for value in body.values() if value.op == "tensor"]:
            name = stored.name_under(value.address, body.path)
            if names.setdefault(value, name) != name:
                frame, address = value.frame, value.address
                other = Value(
                    "tensor", array=value.array, dtype=value.dtype, frame=frame, kind="tensor", address=address
                )
                other.names = value.names
                replaced[value] = other
        for value in body.values() if replaced else ():
            replace_operands(value, replaced)
        body.outputs = [replaced.get(value, value) for value in body.outputs]


def _may_move(value: Value, frame: ModuleCall) -> bool:
    """Whether a value can be computed in a call: it cannot be in one inside of its own that lacks its tensors."""
    tensors = [operand for operand in value.operands if operand.op == "tensor"]
    return not value.frame.contains(frame) or all(is_inside(tensor.address, frame.path) for tensor in tensors)


def _deduplicate(values: Sequence[Value], outputs: list[Value]) -> list[Value]:
    """Return values without those that are computed anew from the same masks and tensors."""
    users = find_users(values)
    first: dict[object, Value] = {}
    replaced: dict[Value, Value] = {}
    still = _data_independent_values(values, users)
    for value in values:
        if value.op in ("tensor", "input") or value not in still or _is_cheap(value):
            continue
        same = first.setdefault((value.op, value.array, value.dtype), value)
        if same is not value:
            replaced[value] = same
    for value in values:
        replace_operands(value, replaced)
    outputs[:] = [replaced.get(value, value) for value in outputs]
    return live_values(outputs)


def _is_cheap(value: Value) -> bool:
    """Whether a value is made of positions in a few steps, or is one number."""
    is_number = not value.shape and value.kind == "ops"
    return value.op in ("arange", "full") or (
        (is_number or value.op == "reshape") and all(map(_is_cheap, value.operands))
    )


def _data_independent_values(values: Sequence[Value], users: Mapping[Value, Sequence[Value]]) -> set[Value]:
    """Return the values that depend only on positions, tensors and padding masks."""
    found: set[Value] = set()
    for value in values:
        masks = value.op == "input" and all(user.dtype == "bool" for user in users[value])
        if masks or (value.op != "input" and all(operand in found for operand in value.operands)):
            found.add(value)
    return found


def _innermost_common_call(frames: Iterable[ModuleCall]) -> ModuleCall:
    """Return the innermost call that contains all others."""
    stacks = [frame.stack for frame in frames]
    shared = [items[0] for items in zip(*stacks, strict=False) if all(item is items[0] for item in items)]
    return shared[-1]
