"""A module as definitions: bodies written as templates, equal ones joined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import NamedTuple

from archspec.core.addresses import is_below, is_inside, parent, relative
from archspec.core.algebra import Polynomial, split_multiple, symbols
from archspec.pytorch.lift.definitions.blocks import Body, masks_of, split_into_bodies, use_local_tensor_names
from archspec.pytorch.lift.definitions.layer_loops import rewrite_layer_loops
from archspec.pytorch.lift.definitions.lengths import dimensions_of, free_length, total_length
from archspec.pytorch.lift.definitions.runs import find_layer_runs, without_numbers
from archspec.pytorch.lift.notation.names import Names
from archspec.pytorch.lift.notation.templates import Definition, Template, joined
from archspec.pytorch.lift.recording import Recording
from archspec.pytorch.lift.signatures import Argument, Signatures
from archspec.pytorch.lift.statements.value_names import role_names
from archspec.pytorch.lift.statements.writing import BodyWriter, BorrowedLayer, WritingContext
from archspec.pytorch.lift.values.stored import StoredTensors
from archspec.pytorch.values.arguments import UntranslatableError
from archspec.pytorch.values.values import LAYER, LENGTH, Value


class SizeChange(NamedTuple):
    """Differences of a resized module that must be normalized so that both modules yield the same definitions."""

    several: Collection[str] = ()
    """Classes of which only one of them has several modules."""
    fixed: Collection[str] = ()
    """Classes whose definitions are for any number of tokens in only one of them."""


NO_SIZE_CHANGE = SizeChange()


@dataclass
class LiftedProgram:
    """The definitions of a module, those that are used before those that use them; the last is the module itself."""

    definitions: list[Definition] = field(default_factory=list[Definition])
    imports: set[str] = field(default_factory=set[str])
    optional: list[str] = field(default_factory=list[str])
    dims: dict[str, None] = field(default_factory=dict[str, None])
    has_loops: bool = False
    """Whether there are loops over layers."""
    has_progressions: bool = False
    """Whether numbers progress in them from layer to layer."""
    free: set[str] = field(default_factory=set[str])
    """The classes whose definitions are for any number of tokens, though the module is for one."""

    def deep_row(self, definition: int, row: int) -> tuple[object, ...]:
        """Return the numbers of an instance and of everything in it, other than conditions."""
        found = self.definitions[definition]
        inner = [
            tuple([self.deep_row(used, other) for other in rows])
            for used, rows in zip(found.template.uses, found.inside[row], strict=True)
        ]
        numbers = tuple([number for number in found.rows[row] if not isinstance(number, bool)])
        return (numbers, *inner)


def build_program(
    recording: Recording,
    outputs: Sequence[Value],
    signatures: Signatures,
    sizes: Mapping[str, int],
    taken: Sequence[str],
    optional: Mapping[str, bool],
    loops: bool,
    other: SizeChange,
) -> LiftedProgram:
    """Return the definitions of a module. `taken` are names that values cannot have, `optional` the inputs that may be
    left out if they are only masks of attention, or if ones in their place are the same. With `loops`, layers in turn
    with other operations become loops.
    """
    stored = recording.stored
    bodies = split_into_bodies(recording.root, outputs, stored, other.several)
    _check_sizes(bodies[None], recording.inputs.values())
    paths = dict.fromkeys([body.path for body in bodies.values()])
    lent = _lent(bodies.values())
    masks = masks_of([*bodies.values()], optional)
    ones = _ones(bodies[None].inputs, masks, optional)
    program = LiftedProgram()
    found: dict[Value, tuple[int, int]] = {}
    use_local_tensor_names([*bodies.values()], stored)
    owned = _owned(bodies.values(), stored)
    ties = _ties(stored.ties, paths)
    values = [value for body in bodies.values() for value in body.values()]
    steps = [step for value in values for step in value.steps]
    taken = [*taken, *{value.op for value in steps if value.kind in ("std", "layer")}]
    for call, body in bodies.items():
        names = _input_names(body, recording, signatures, sizes, taken, {*masks, *ones})
        _order(body, call, names)
        key = partial(_key, program, found, partial(stored.frozen, path=body.path))
        runs = find_layer_runs(body.values(), body.outputs, key, body.path, loops)
        looped = (
            rewrite_layer_loops(body, key, [value for run in runs.values() for value in run.values]) if loops else {}
        )
        program.has_loops |= bool(looped)
        program.has_progressions |= any(
            not run.kinds and len({key(value) for value in run.values}) > 1
            for run in (*runs.values(), *looped.values())
        )
        facts = WritingContext(
            body,
            runs,
            looped,
            [names[value] for value in body.inputs],
            signatures.outputs if call is None else [""] * len(body.outputs),
            taken,
            owned[body],
            ties.get(body.path, []),
            lent.get(body, []),
            masks,
            ones if call is None else (),
            [path for path in paths if is_below(path, body.path)],
            partial(stored.frozen, path=body.path),
        )
        writer, template = _written(facts, found.__getitem__, key, body.frame.kind in other.fixed)
        program.free |= {template.kind} if writer.length is not None else set()
        row = _added(program, template, writer, body)
        program.dims |= dict.fromkeys(_own_dimensions(writer))
        program.imports |= writer.imports
        if call is not None:
            found[call] = row
    program.optional = [value.address for value in (*masks, *ones) if value.op == "input"]
    types = [type for body in bodies.values() for type in (*body.inputs, *body.outputs)]
    program.dims |= dict.fromkeys(sorted({name for value in types for size in value.shape for name in symbols(size)}))
    return program


def _ones(inputs: Sequence[Value], masks: Collection[Value], optional: Mapping[str, bool]) -> list[Value]:
    """Return the inputs that ones may stand for, in sizes that required inputs have; other than `masks`."""
    ones = [value for value in inputs if optional.get(value.address) and value not in masks]
    required = dimensions_of([value for value in inputs if value not in ones and value not in masks])
    names = {name for size in required for name in symbols(size)}
    return [value for value in ones if {name for size in value.shape for name in symbols(size)} <= names]


def _written(
    facts: WritingContext,
    definition: Callable[[Value], tuple[int, int]],
    key: Callable[[Value], object],
    is_fixed: bool,
) -> tuple[BodyWriter, Template]:
    """Return the writer and the definition of a body, for any number of tokens if nothing depends on it, unless it
    `is_fixed`.
    """
    writer = BodyWriter(facts, definition, key)
    template = writer.template()
    body = facts.body
    length = free_length(body.inputs, body.outputs, writer.gaps) if body.path and not is_fixed else None
    if length is not None:
        writer = BodyWriter(facts, definition, key, length)
        template = writer.template()
    return writer, template


def _own_dimensions(writer: BodyWriter) -> list[str]:
    """Return the dimensions that a definition has in the place of those of the module."""
    gaps = writer.gaps
    sizes = [*gaps.joint.values(), *[size for name, size in gaps.renamed.items() if name not in (LAYER, LENGTH)]]
    return [*[name for size in sizes for name in symbols(size)], *(["seq"] if writer.length is not None else [])]


def _check_sizes(body: Body, inputs: Iterable[Value]) -> None:
    """Refuse a module that uses nothing of an input but its sizes: all inputs of a spec have to be used."""
    needed = {name for size in body.sizes() for name in symbols(size)}
    missing = needed - {name for size in dimensions_of(body.inputs) for name in symbols(size)}
    for value in inputs:
        names = sorted(missing & {name for size in value.shape for name in symbols(size)})
        if names:
            raise UntranslatableError(
                f"it uses the size `{names[0]}` of its input `{value.address}`, and not the input itself"
            )


def _ties(ties: Iterable[tuple[str, str]], paths: Collection[str]) -> dict[str, list[tuple[str, str]]]:
    """Return pairs of a tied tensor and the counted one by the address of the innermost definition around both."""
    found: dict[str, list[tuple[str, str]]] = {}
    for alias, counted in ties:
        around = max((path for path in paths if is_inside(alias, path) and is_inside(counted, path)), key=len)
        found.setdefault(around, []).append((relative(alias, around), relative(counted, around)))
    return found


def _lent(bodies: Iterable[Body]) -> dict[Body, list[BorrowedLayer]]:
    """Return the layers that blocks declare, or others of their kind, but only blocks around them apply."""
    listed = list(bodies)
    lenders: dict[str, list[tuple[str, Value]]] = {}
    for body in listed:
        for value in body.values():
            inner = [
                other
                for other in listed
                if value.kind == "layer" and is_below(other.path, body.path) and is_below(value.address, other.path)
            ]
            if inner:
                lender = max(inner, key=lambda other: len(other.path))
                lenders.setdefault(lender.frame.kind, []).append((lender.path, value))
    found: dict[Body, list[BorrowedLayer]] = {}
    for body in listed:
        own = {value.address for value in body.values()}
        lent: dict[str, BorrowedLayer] = {}
        for path, value in lenders.get(body.frame.kind, []):
            address = relative(value.address, path)
            is_like = path == body.path or (without_numbers(path) == without_numbers(body.path) and address not in lent)
            if is_like and f"{body.path}.{address}" not in own:
                lent[address] = BorrowedLayer(value, path, path == body.path)
        if lent:
            found[body] = [*lent.values()]
    return found


def _key(
    program: LiftedProgram, found: Mapping[Value, tuple[int, int]], frozen: Callable[[str], str], value: Value
) -> Hashable:
    if value.kind == "block":
        definition, row = found[value]
        return definition, frozen(value.address), program.deep_row(definition, row)
    return value.op, repr(value.settings), frozen(value.address) if value.kind == "layer" else ""


def _added(program: LiftedProgram, template: Template, writer: BodyWriter, body: Body) -> tuple[int, int]:
    of_both = ((number, joined(item.template, template)) for number, item in enumerate(program.definitions))
    number, whole = next((found for found in of_both if found[1]), (len(program.definitions), template))
    if number == len(program.definitions):
        program.definitions.append(Definition(template))
    definition = program.definitions[number]
    definition.template = whole or template
    definition.rows.append(tuple(writer.gaps.values))
    definition.inside.append(tuple(writer.gaps.inside))
    definition.paths.append(body.path)
    return number, len(definition.rows) - 1


def _input_names(
    body: Body,
    recording: Recording,
    signatures: Signatures,
    sizes: Mapping[str, int],
    taken: Sequence[str],
    masks: Collection[Value],
) -> dict[Value, str]:
    """Return names for the inputs of a body, in order: those of `forward`, where shapes identify them."""
    if body.frame is recording.root:
        order = list(recording.inputs)
        ordered = sorted(body.inputs, key=lambda value: (value in masks, order.index(value.address)))
        return {value: value.address for value in ordered}
    arguments = signatures.arguments.get(body.path, [])
    used = [operand for value in body.values() for operand in value.operands]
    inputs = sorted(body.inputs, key=used.index)
    matched = _matched(inputs, arguments, sizes)
    names = Names(taken)
    found: dict[Value, str] = {}
    has_names = total_length(dimensions_of(inputs)) is not None
    compound = {
        value
        for value in inputs
        if not has_names and any(split_multiple(size) is None for size in dimensions_of([value]))
    }
    for value in sorted(inputs, key=lambda v: (v in masks, v in compound, matched.get(v, len(arguments)))):
        own = [arguments[matched[value]].name] if value in matched else ["mask"] if value.dtype == "bool" else []
        found[value] = names.take([*own, *value.names, *_names_of_input(value), "x"])
    return found


def _names_of_input(value: Value) -> list[str]:
    """Return names for an input of a block: the name of the input of the model that it is, or words for its maker."""
    if value.op == "input":
        return [value.address]
    if value.op in NAMES_OF_INPUTS:
        return [NAMES_OF_INPUTS[value.op]]
    return role_names(value) if value.kind in ("ops", "std") and value.op != "part" else []


def _matched(inputs: Sequence[Value], arguments: Sequence[Argument], sizes: Mapping[str, int]) -> dict[Value, int]:
    """Return which argument of `forward` an input is: one with its name, or else the first with its shape and type, or
    with these and its first axes flattened.
    """
    free = list(range(len(arguments)))
    found: dict[Value, int] = {}

    def match(value: Value, is_alike: Callable[[Argument], bool]) -> None:
        turn = next((turn for turn in free if is_alike(arguments[turn])), None)
        if turn is not None and value not in found:
            free.remove(turn)
            found[value] = turn

    def shape_of(value: Value) -> tuple[int, ...]:
        return tuple([size.at(sizes) if isinstance(size, Polynomial) else size for size in value.shape])

    def match_type(value: Value, name: str = "", flattened: int = 1) -> None:
        shape = shape_of(value)
        shape = (prod(shape[:flattened]), *shape[flattened:]) if shape else shape
        match(value, lambda argument: argument[1:] == (shape, value.dtype) and (not name or argument.name == name))

    for value in [value for value in inputs if value.op == "input"]:
        match_type(value, value.address)
    for value in inputs:
        match_type(value)
    for value in [value for value in inputs if len(value.shape) > 2 and value.dtype != "bool"]:
        match_type(value, flattened=2)

    def match_mask(value: Value, any_shape: bool) -> None:
        shape = shape_of(value)
        match(value, lambda argument: "mask" in argument.name and (any_shape or _is_broadcast(shape, argument.shape)))

    masks = [value for value in inputs if value.dtype == "bool"]
    for any_shape in (False, True):
        for value in masks:
            match_mask(value, any_shape)
    return found


def _is_broadcast(shape: Sequence[int], to: Sequence[int]) -> bool:
    return len(shape) == len(to) and all(size in (1, other) for size, other in zip(shape, to, strict=True))


NAMES_OF_INPUTS = {"where": "bias", "rearrange": "bias"}
"""Names for inputs of blocks that neither `forward` nor the source names, by the operation that they come from."""


def _order(body: Body, call: Value | None, names: Iterable[Value]) -> None:
    """Put the inputs of a body, and the arguments of its call, in order."""
    before = list(body.inputs)
    body.inputs = list(names)
    if call is not None:
        call.args = [call.args[before.index(value)] for value in body.inputs]


def _owned(bodies: Iterable[Body], stored: StoredTensors) -> dict[Body, list[tuple[str, str, tuple[int, ...]]]]:
    """Return the tensors that each body declares itself, with what is written before their shapes."""
    all_bodies = list(bodies)
    found: dict[Body, list[tuple[str, str, tuple[int, ...]]]] = {body: [] for body in all_bodies}
    layers = {value.address for body in all_bodies for value in body.values() if value.kind == "layer"}
    of_layers = {name for name in stored.names if parent(name) in layers}
    declared = {*of_layers}
    for body in all_bodies:
        for value in body.values():
            if value.op == "tensor":
                name = stored.name_under(value.address, body.path)
                if name is None:
                    raise UntranslatableError(f"`{body.path}` uses the tensor `{value.address}`, which is not its own")
                value.address = name
                declared.add(name)
                for holder in _holders(all_bodies, body, name) if name not in of_layers else ():
                    item = relative(name, holder.path), stored.modifiers(name, holder.path), stored.names[name].shape
                    found[holder] += [item] if item not in found[holder] else []
    for name in stored.names:
        if name not in declared:
            owner = max((body.path for body in all_bodies if is_inside(name, body.path)), key=len)
            unused = "" if declared & {*stored.names_of(name)} else "unused "
            for body in all_bodies:
                if body.path == owner:
                    found[body].append(
                        (relative(name, body.path), unused + stored.modifiers(name, owner), stored.names[name].shape)
                    )
    return found


def _holders(bodies: Sequence[Body], user: Body, name: str) -> list[Body]:
    """Return the bodies that declare a tensor: those of the innermost block of it inside the one that uses it."""
    inner = [body for body in bodies if is_below(body.path, user.path) and is_inside(name, body.path)]
    path = max([body.path for body in inner], key=len, default=None)
    return [user] if path is None else [body for body in inner if body.path == path]
