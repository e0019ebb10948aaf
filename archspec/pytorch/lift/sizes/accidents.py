"""Fields whose value is that of a size by accident.

A size that is the same in both small modules is given the name of a field that has its value in both configurations.
A module in which only that field differs shows whether the size follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from archspec.core.algebra import split_multiple, substitute
from archspec.core.diagnostics import ArchError
from archspec.ir.normal.arrays import Arrays
from archspec.pipeline.compile import compile_text, loads
from archspec.pipeline.model import get_compilation
from archspec.pytorch.lift.check import MAX_PARAMETERS_RUN
from archspec.pytorch.lift.sizes.expressions import SMALL
from archspec.pytorch.lift.sizes.sizes import Sizes
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.numeric.evaluate import EvaluationError
from archspec.pytorch.prove.numeric import FLOAT32_TOLERANCE, array_runner, flat, largest_error, module_runner
from archspec.pytorch.prove.sides import model_outputs
from archspec.pytorch.prove.tables import other_tensors
from archspec.pytorch.run.calling import call_module

if TYPE_CHECKING:
    from torch import nn

    from archspec.ir.module import Type
    from archspec.ir.table import PlainValue
    from archspec.pipeline.model import Model


class Draft(NamedTuple):
    """The spec of a small module, and the names of its sizes."""

    text: str
    sizes: Sizes


class Fields(NamedTuple):
    """The fields that sizes may have the names of. Those that are `narrow` name sizes that are the same in both modules
    only where these are called alike, as in `groups = conv_groups`, but for some places by their turns. Those that are
    `of_sizes` name sizes that are the same in both modules, and so also name large numbers of computations.
    """

    values: Mapping[str, object]
    narrow: Mapping[str, frozenset[int]] = MappingProxyType({})
    of_sizes: frozenset[str] = frozenset()

    def without(self, names: Collection[str]) -> Fields:
        return self._replace(values={field: value for field, value in self.values.items() if field not in names})

    def narrower(self, name: str, turns: frozenset[int] = frozenset()) -> Fields:
        return self._replace(narrow={**self.narrow, name: turns})


MAX_PLACES = 6
"""Maximum number of occurrences of a field that are tested for a coincidence."""

LARGE = 256
"""Larger numbers, such as the sizes of images, are first halved: twice as large ones take long. Others are doubled, and
halved at last: where sizes have to be multiples of a number, they are those of its half as well.
"""

MAX_CHANGED_BYTES = 2**34
"""Maximum total bytes of intermediate values for which outputs of a changed module are compared."""

Drafter: TypeAlias = "Callable[[Fields], Draft]"


def drop_coincidental_fields(drafted: Drafter, subject: Subject) -> Draft:
    """Return a draft without coincidental names: no size is named after a field that does not determine it.

    All such fields are dropped at once, as most are accidents. A field is also among them where another one is the
    accident, and a third one has the name of its size; so if a size is then left without a name, they are dropped one
    by one.
    """
    fields = Fields(subject.numbers)
    first = drafted(fields)
    if subject.changed is None:
        return first
    large = [name for name, value in first.sizes.still().items() if value > SMALL]
    if large:
        fields = fields._replace(of_sizes=frozenset(large))
        first = drafted(fields)
    subject = replace(subject, changed=cache(subject.changed))
    found, left = _drop_all_coincidental(drafted, first, fields, subject)
    if len(found.sizes.created) > len(first.sizes.created):
        found, left = _drop_some_coincidental(drafted, first, fields, subject)
    return _drop_unprobed_fields(drafted, found, left, subject)


def _drop_unprobed_fields(drafted: Drafter, draft: Draft, fields: Fields, subject: Subject) -> Draft:
    """Drop the fields of which no other value is known to make a module, unless sizes are then left without a name that
    they follow.
    """
    followed, tried = {*draft.sizes.still()}, set[str]()
    while still := {name: value for name, value in draft.sizes.still().items() if name not in tried}:
        name, value = next(iter(still.items()))
        tried.add(name)
        if _changed_module(subject, name, value) is None:
            rest = fields.without({name})
            other, rest = _drop_all_coincidental(drafted, drafted(rest), rest, subject, followed)
            if len(other.sizes.created) <= len(draft.sizes.created):
                draft, fields = other, rest
    return draft


def _drop_all_coincidental(
    drafted: Drafter, draft: Draft, fields: Fields, subject: Subject, known: Collection[str] = ()
) -> tuple[Draft, Fields]:
    """Drop the fields that sizes do not follow, but for those `known` to be followed; also return the other fields."""
    followed = {*known}
    while still := {field: value for field, value in draft.sizes.still().items() if field not in followed}:
        accidents = coincidental_fields(draft.text, still, subject)
        followed |= still.keys() - accidents
        if accidents:
            for name in sorted(accidents):
                fields = _narrow_fields(drafted, draft, fields, subject, name)
            draft = drafted(fields)
    return draft, fields


def _narrow_fields(drafted: Drafter, draft: Draft, fields: Fields, subject: Subject, name: str) -> Fields:
    """Return fields without one; if other sizes are expressed with it, those of which it names fewer sizes, which are
    called alike, or which are all of these but one.
    """
    expressions = draft.sizes.expressions
    if name in expressions.joint and name not in fields.narrow:
        return fields.narrower(name)
    places = expressions.turns[name] if name in expressions.joint else 0
    for turn in range(places if 1 < places <= MAX_PLACES else 0):
        found = fields.narrower(name, frozenset([turn]))
        other = drafted(found)
        still = other.sizes.still()
        if name in still and not coincidental_fields(other.text, {name: still[name]}, subject):
            return found
    return fields.without({name})


def _drop_some_coincidental(drafted: Drafter, draft: Draft, fields: Fields, subject: Subject) -> tuple[Draft, Fields]:
    """Drop one field after another: that without which the fewest accidents and sizes without a name are left."""
    accidents = coincidental_fields(draft.text, draft.sizes.still(), subject)
    while accidents:
        options: list[tuple[int, str, Draft, set[str]]] = []
        for name in sorted(accidents):
            other = drafted(fields.without({name}))
            left = coincidental_fields(other.text, other.sizes.still(), subject)
            options.append((len(left) + len(other.sizes.created), name, other, left))
        _, name, draft, accidents = min(options)
        fields = fields.without({name})
    return draft, fields


def coincidental_fields(text: str, fields: Mapping[str, int], subject: Subject) -> set[str]:
    """Return those of the fields that sizes of a spec do not follow.

    With another value of such a field, the spec does not compile, or has other tensors or outputs than the module. A
    field of which no other value makes a module that can be called is not returned.
    """
    if subject.changed is None:
        return set()
    try:
        names = loads(text).hyperparameters
    except ArchError:  # reported by the check of the spec
        return set()
    found: set[str] = set()
    for name, value in fields.items():
        changed = _changed_module(subject, name, value)
        if changed is not None and not _is_same(text, names, changed):
            found.add(name)
    return found


def _changed_module(subject: Subject, name: str, value: int) -> Subject | None:
    """Return the module with another value of a field; None if there is none that can be called."""
    assert subject.changed is not None
    larger, half = [2 * value, value + 1], [value // 2] if value > 3 else []
    values = half + larger if value > LARGE else larger + half
    others = (subject.changed(name, other) for other in values)
    return next((other for other in others if other is not None and other.numbers.get(name) != value), None)


def _is_same(text: str, names: Iterable[str], changed: Subject) -> bool:
    """Whether a spec with the numbers of a module has its tensors, takes its inputs, and has its outputs."""
    numbers = {name: cast("PlainValue", changed.numbers[name]) for name in names if name in changed.numbers}
    try:
        model = compile_text(text, "<text>", None, numbers)
    except ArchError:
        return False
    given = [(type, changed.inputs[name].shape) for name, type in model.inputs.items() if name in changed.inputs]
    sizes = {name: size for type, shape in given for name, size in _dimensions(type, shape)}
    expected = [[substitute(size, sizes) for size in type.shape] for type, _ in given]
    if other_tensors(model, changed.module) or expected != [[*shape] for _, shape in given]:
        return False
    shapes = {tuple(tensor.shape) for tensor in flat(call_module(changed.module, changed.inputs))}
    expected_shapes = [tuple([substitute(size, sizes) for size in type.shape]) for type in model.outputs.values()]
    return shapes.issuperset(expected_shapes) and _has_same_values(model, changed.module)


def _has_same_values(model: Model, module: nn.Module) -> bool:
    """Whether the outputs of a model are those of a module, as far as they can be computed."""
    body, arrays = get_compilation(model).body, Arrays()
    try:
        ours = model_outputs(arrays, body)
        runs = array_runner(arrays, ours, MAX_CHANGED_BYTES), module_runner(module, body)
        error = largest_error(body, *runs, most=MAX_PARAMETERS_RUN, all_numbers=False)
    except (EvaluationError, ArithmeticError, IndexError, RuntimeError):
        return True
    return error is None or error <= FLOAT32_TOLERANCE


def _dimensions(type: Type, shape: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield the sizes of dimensions that the shape of an input decides: of `seq` in `seq` and `80 * seq`."""
    for size, actual in zip(type.shape, shape, strict=True):
        found = split_multiple(size)
        if found is not None:
            yield found[1], actual // found[0]
