"""Recognition of standard library layers from the names and shapes of their tensors.

The patterns are derived from the library itself. A layer with parameters `name: param [sizes]`, whose sizes are
hyperparameters, matches tensors of these names if some hyperparameter values yield their shapes. If several layers
match, one is chosen and the others are returned as alternatives.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import takewhile
from typing import NamedTuple

from archspec.core import resources
from archspec.core.diagnostics import Report, Source
from archspec.language.syntax import tree
from archspec.pipeline.files import parse_cached

LIBRARY = "std"

MAX_LEADING = 2
"""Maximum number of positional sizes; calls with more are hard to read."""

Shape = tuple[int, ...]
Axis = tuple[str, int]
"""An axis of a tensor: the name of the tensor in its layer, and the index of the axis."""


class Slot(NamedTuple):
    """A size passed to a layer: the hyperparameter, and an axis of that size."""

    name: str
    axis: Axis


class LayerCall(NamedTuple):
    """A call of a layer without its sizes: `slots` take these in order, `fixed` are other arguments (`bias = false`).

    The first `leading` slots are passed by position. `role` is the role of the definition. `alternatives` match as
    well; `open` are the integer hyperparameters that do not affect any shape.
    """

    name: str
    role: str
    slots: tuple[Slot, ...]
    leading: int
    fixed: tuple[str, ...]
    alternatives: tuple[LayerCall, ...] = ()
    open: tuple[str, ...] = ()


class _PatternTensor(NamedTuple):
    """A parameter tensor of a layer: the hyperparameters that are its sizes, and the boolean that enables it."""

    axes: tuple[str, ...]
    option: str | None


class LayerPattern(NamedTuple):
    """A layer of the library.

    `defaults` maps each hyperparameter to its default (None unless a literal); `needed` are those without a default.
    `equal` maps those whose default is another hyperparameter to it.
    """

    name: str
    role: str
    defaults: Mapping[str, object]
    equal: Mapping[str, str]
    needed: frozenset[str]
    tensors: dict[str, _PatternTensor]

    def fit(self, shapes: Mapping[str, Shape]) -> LayerCall | None:
        """Return the call whose tensors have exactly these names and shapes, or None."""
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
        for parameter, other in self.equal.items():
            if parameter in slots and values[parameter] == values.get(other):
                del slots[parameter]
        fixed = tuple(
            f"{name} = {str(value).lower()}" for name, value in options.items() if self.defaults[name] is not value
        )
        open_names = tuple(n for n, default in self.defaults.items() if type(default) is int and n not in slots)
        ordered_slots = tuple(slots[n] for n in self.defaults if n in slots)
        leading = len(list(takewhile(slots.__contains__, self.defaults)))
        return LayerCall(self.name, self.role, ordered_slots, min(leading, MAX_LEADING), fixed, open=open_names)


def load_library() -> tuple[list[LayerPattern], set[str]]:
    """Return the patterns of the standard library, in the order of its exports, and all names that it exports."""
    patterns: list[LayerPattern] = []
    names: set[str] = set()
    for item in parse_library_file(f"{LIBRARY}.arch").items:
        if isinstance(item, tree.Import):
            names.update(entry.alias for entry in item.names)
            source = parse_library_file(item.source).items if item.path else ()
            definitions = {d.name.text: d for d in source if isinstance(d, tree.Definition)}
            layer_patterns = [_build_pattern(definitions[entry.name]) for entry in item.names if definitions]
            patterns += [pattern for pattern in layer_patterns if pattern is not None]
    return patterns, names


def recognise_layer(patterns: list[LayerPattern], word: str, shapes: Mapping[str, Shape]) -> LayerCall | None:
    """Return the most likely layer for tensors of these shapes at an address that ends in `word`, or None.

    Among several matches, a role or name in the word decides, then the smallest number of arguments other than
    defaults, then the order in the library.
    """
    fitting = [form for pattern in patterns if (form := pattern.fit(shapes)) is not None]
    if not fitting:
        return None
    ranked = sorted(fitting, key=lambda form: (-_score_match(form, word), len(form.fixed)))
    best = ranked[0]
    is_one_kind = len({form.name[:4] for form in ranked}) == 1  # such as convolutions, transposed or not
    if len(shapes) == 1 and is_one_kind and _score_match(best, word) < 1:
        return None  # a single tensor `weight` could belong to any layer
    axes = {slot.axis for slot in best.slots}
    alternatives = [form for form in ranked[1:] if {slot.axis for slot in form.slots} <= axes]
    return best._replace(alternatives=tuple(alternatives))


def _score_match(form: LayerCall, word: str) -> int:
    """Return 1 if an address contains a layer's role or name, -1 if it lacks the role of the layer, else 0."""
    stems = [stem[:5] for stem in (form.role, form.name.rstrip("0123456789d").lower()) if stem]
    if any(stem in word.lower() for stem in stems):
        return 1
    return -1 if form.role else 0


# Reading of the library


def parse_library_file(path: str) -> tree.File:
    """Return the syntax tree of a file of the library, by its path in the folder of specs."""
    with open(os.path.join(resources.specs_root(), path), encoding="utf-8") as file:
        return parse_cached(Source(path, file.read()), Report())


def _build_pattern(definition: tree.Definition) -> LayerPattern | None:
    """Return the pattern of a layer, or None if it declares more than tensors described by sizes and options."""
    if definition.kind != "layer":
        return None
    defaults = {
        p.name: p.default.value if isinstance(p.default, tree.Literal) else None for p in definition.hyperparameters
    }
    role = ""
    tensors: dict[str, _PatternTensor] = {}
    for statement in definition.body:
        if isinstance(statement, tree.Role):
            role = statement.name
        elif isinstance(statement, tree.TensorDeclaration):
            tensor = _build_tensor(statement, defaults)
            if tensor is None:
                return None
            tensors[statement.address.segments[0].text] = tensor
        elif not isinstance(statement, tree.Assign | tree.Require | tree.Return):
            return None
    needed = frozenset(p.name for p in definition.hyperparameters if p.default is None)
    equal = {p.name: p.default.text for p in definition.hyperparameters if isinstance(p.default, tree.Name)}
    return LayerPattern(definition.name.text, role, defaults, equal, needed, tensors) if tensors else None


def _build_tensor(node: tree.TensorDeclaration, defaults: Mapping[str, object]) -> _PatternTensor | None:
    plain = len(node.address.segments) == 1 and not node.modifiers and not node.type and node.value is None
    if not plain or node.kind != "param" or node.loop is not None:
        return None
    option = node.condition.text if isinstance(node.condition, tree.Name) else None
    if node.condition is not None and (option is None or type(defaults.get(option)) is not bool):
        return None
    axes = [axis for item in node.shape.items if (axis := _axis_parameter(item, defaults)) is not None]
    return _PatternTensor(tuple(axes), option) if len(axes) == len(node.shape.items) else None


def _axis_parameter(node: tree.Expr, defaults: Mapping[str, object]) -> str | None:
    """Return the hyperparameter that is the size of an axis, assuming divisors such as `groups` have the default 1."""
    if isinstance(node, tree.Binary) and node.operator == "//" and isinstance(node.right, tree.Name):
        return _axis_parameter(node.left, defaults) if defaults.get(node.right.text) == 1 else None
    return node.text if isinstance(node, tree.Name) and node.text in defaults else None
