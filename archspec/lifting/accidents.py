"""Fields whose value is that of a size by accident.

A size that is the same in both small modules is given the name of a field that has its value in both configurations.
Whether it follows that field is found out with a module in which only the field is another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from archspec.algebra import scaled, substitute
from archspec.equivalence.api import other_tensors
from archspec.equivalence.numeric import flat
from archspec.lifting.calling import called
from archspec.lifting.subject import Subject
from archspec.pipeline.compile import loads
from archspec.source import ArchError

if TYPE_CHECKING:
    from archspec.ir import Type


def accidental(text: str, fields: Mapping[str, int], subject: Subject) -> set[str]:
    """Return those of the fields that sizes of a spec do not follow.

    With another value of such a field, the spec does not compile, or has other tensors or shapes of outputs than the
    module. A field of which no other value makes a module that can be called is not returned.
    """
    if subject.changed is None:
        return set()
    try:
        names = loads(text).hyperparameters
    except ArchError:  # reported by the check of the spec
        return set()
    found: set[str] = set()
    for name, value in fields.items():
        others = (subject.changed(name, other) for other in (2 * value, value + 1))
        changed = next((other for other in others if other is not None), None)
        if changed is not None and not _is_same(text, names, changed):
            found.add(name)
    return found


def _is_same(text: str, names: Iterable[str], changed: Subject) -> bool:
    """Whether a spec with the numbers of a module has its tensors, takes its inputs, and has outputs of its shapes."""
    numbers: dict[str, Any] = {name: changed.numbers[name] for name in names if name in changed.numbers}
    try:
        model = loads(text, **numbers)
    except ArchError:
        return False
    given = [(type, changed.inputs[name].shape) for name, type in model.inputs.items() if name in changed.inputs]
    sizes = {name: size for type, shape in given for name, size in _dimensions(type, shape)}
    expected = [[substitute(size, sizes) for size in type.shape] for type, _ in given]
    if other_tensors(model, changed.module) or expected != [[*shape] for _, shape in given]:
        return False
    shapes = {tuple(tensor.shape) for tensor in flat(called(changed.module, changed.inputs))}
    return shapes.issuperset(
        [tuple([substitute(size, sizes) for size in type.shape]) for type in model.outputs.values()]
    )


def _dimensions(type: Type, shape: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield the sizes of dimensions that the shape of an input decides: of `seq` in `seq` and `80 * seq`."""
    for size, actual in zip(type.shape, shape, strict=True):
        found = scaled(size)
        if found is not None:
            yield found[1], actual // found[0]
