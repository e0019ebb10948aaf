"""Layers of the standard library, recognised by the names and shapes of their tensors.

What is recognised is read off the library itself: a layer whose parameters are `name: param [sizes]`, its sizes
hyperparameters, fits tensors of these names if one value for each hyperparameter gives their shapes. Where several
layers fit, one is taken and the others are handed back, as shapes cannot tell.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import NamedTuple

from archspec import resources
from archspec.pipeline import parsed
from archspec.source import Report, Source
from archspec.syntax import tree

LIBRARY = "std"

MOST_LEADING = 2
"""Sizes that are given to a layer without their names; more would not be understood."""

Shape = tuple[int, ...]
Axis = tuple[str, int]
"""An axis of a tensor: the tensor's name in its layer, and which of its axes."""


class Slot(NamedTuple):
    """A size that a layer is given: the hyperparameter, and the axis that shows it."""

    name: str
    axis: Axis


class Form(NamedTuple):
    """A layer with all but its sizes: `slots` take these in order, `fixed` are other arguments (`bias = false`).

    The first `leading` slots are its first hyperparameters, and need no names. `role` is the definition's. `others` are
    the forms that fit as well; `open` are the integer hyperparameters that no shape shows.
    """

    name: str
    role: str
    slots: tuple[Slot, ...]
    leading: int
    fixed: tuple[str, ...]
    others: tuple[Form, ...] = ()
    open: tuple[str, ...] = ()


class _Tensor(NamedTuple):
    """A parameter of a layer: its axes are hyperparameters; it is absent where `option`, a boolean one, is false."""

    axes: tuple[str, ...]
    option: str | None


class LayerPattern(NamedTuple):
    """A layer of the library: `defaults` has each hyperparameter (None unless it is a literal), `needed` those without
    any.
    """

    name: str
    role: str
    defaults: Mapping[str, object]
    needed: frozenset[str]
    tensors: dict[str, _Tensor]

    def fit(self, shapes: Mapping[str, Shape]) -> Form | None:
        """The form whose tensors have exactly these names and shapes, None if there is none."""
        if not shapes.keys() <= self.tensors.keys():
            return None
        options = {tensor.option: name in shapes for name, tensor in self.tensors.items() if tensor.option}
        values: dict[str, int] = {}
        slots: dict[str, Slot] = {}
        for name, tensor in self.tensors.items():
            if name not in shapes:
                if tensor.option is None:
                    return None
                continue
            if len(shapes[name]) != len(tensor.axes):
                return None
            for axis, (size, parameter) in enumerate(zip(shapes[name], tensor.axes, strict=True)):
                if values.setdefault(parameter, size) != size:
                    return None
                slots.setdefault(parameter, Slot(parameter, (name, axis)))
        if not slots or not self.needed <= slots.keys():
            return None
        fixed = tuple(
            f"{name} = {str(value).lower()}" for name, value in options.items() if self.defaults[name] is not value
        )
        known = {*slots, *options}
        left = tuple(n for n, default in self.defaults.items() if type(default) is int and n not in known)
        found = tuple(slots[n] for n in self.defaults if n in slots)
        leading = sum(1 for _ in takewhile(slots.__contains__, self.defaults))
        return Form(self.name, self.role, found, min(leading, MOST_LEADING), fixed, (), left)


def library() -> list[LayerPattern]:
    """The layers of the standard library that can be recognised, in the order in which it hands them on."""
    return [pattern for definition in _definitions() if (pattern := _pattern(definition)) is not None]


def names() -> set[str]:
    """Every name that the standard library hands on."""
    return {
        entry.alias for item in _file(f"{LIBRARY}.arch").items if isinstance(item, tree.Import) for entry in item.names
    }


def recognise(patterns: list[LayerPattern], word: str, shapes: Mapping[str, Shape]) -> Form | None:
    """The layer that owns tensors of these shapes, at an address that ends in `word`; None where none is likely.

    Of several that fit, the word decides if it speaks of a role or a name, and else the one that departs least from
    its defaults, first in the library first.
    """
    fitting = [form for pattern in patterns if (form := pattern.fit(shapes)) is not None]
    if not fitting:
        return None
    ranked = sorted(fitting, key=lambda form: (-_likeness(form, word), len(form.fixed)))
    best = ranked[0]
    if len(shapes) == 1 and len(ranked) == 1 and _likeness(best, word) < 1:
        return None  # one tensor called `weight`: anything could own it
    axes = {slot.axis for slot in best.slots}
    others = [form for form in ranked[1:] if {slot.axis for slot in form.slots} <= axes]
    return best._replace(others=tuple(others))


def _likeness(form: Form, word: str) -> int:
    """1 if an address speaks of a layer's role or name; -1 if the layer has a role and the address is silent on it."""
    word = word.lower()
    stems = [stem[:5] for stem in (form.role, form.name.rstrip("0123456789d").lower()) if stem]
    if any(stem in word for stem in stems):
        return 1
    return -1 if form.role else 0


# Reading the library


def _definitions() -> Iterator[tree.Definition]:
    for item in _file(f"{LIBRARY}.arch").items:
        if isinstance(item, tree.Import) and item.path:
            found = {d.name.text: d for d in _file(item.source).items if isinstance(d, tree.Definition)}
            yield from (found[entry.name] for entry in item.names)


def _file(path: str) -> tree.File:
    with open(os.path.join(resources.specs_root(), path), encoding="utf-8") as file:
        return parsed(Source(path, file.read()), Report())


def _pattern(definition: tree.Definition) -> LayerPattern | None:
    """None for what is no layer, or owns something else than parameters that its sizes and options describe."""
    if definition.kind != "layer":
        return None
    defaults = {
        p.name: p.default.value if isinstance(p.default, tree.Literal) else None for p in definition.hyperparameters
    }
    role = ""
    tensors: dict[str, _Tensor] = {}
    for statement in definition.body:
        if isinstance(statement, tree.Role):
            role = statement.name
        elif isinstance(statement, tree.Param):
            tensor = _tensor(statement, defaults)
            if tensor is None:
                return None
            tensors[statement.address.segments[0].text] = tensor
        elif not isinstance(statement, tree.Bind | tree.Require | tree.Return):
            return None
    needed = frozenset(p.name for p in definition.hyperparameters if p.default is None)
    return LayerPattern(definition.name.text, role, defaults, needed, tensors) if tensors else None


def _tensor(node: tree.Param, defaults: Mapping[str, object]) -> _Tensor | None:
    plain = len(node.address.segments) == 1 and not node.modifiers and not node.type and node.value is None
    if not plain or node.kind != "param" or node.loop is not None:
        return None
    option = node.condition.text if isinstance(node.condition, tree.Name) else None
    if node.condition is not None and (option is None or type(defaults.get(option)) is not bool):
        return None
    axes = [_axis(item, defaults) for item in node.shape.items]
    return None if None in axes else _Tensor(tuple(axis for axis in axes if axis is not None), option)


def _axis(node: tree.Expr, defaults: Mapping[str, object]) -> str | None:
    """The hyperparameter that is the size of an axis, where others (as `groups`) have their defaults."""
    if isinstance(node, tree.Binary) and node.operator == "//" and isinstance(node.right, tree.Name):
        return _axis(node.left, defaults) if defaults.get(node.right.text) == 1 else None
    return node.text if isinstance(node, tree.Name) and node.text in defaults else None
