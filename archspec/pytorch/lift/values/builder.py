"""Construction of values in their simplest form: views become patterns or vanish, masks and positions are rewritten."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias, cast

from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.bodies import apply
from archspec.ir.ops import OPS
from archspec.ir.ops.record import Scalar
from archspec.pytorch.lift.values.indices import IndexWriter
from archspec.pytorch.lift.values.rows import Rows
from archspec.pytorch.lift.values.views import Axis, Layout, pattern
from archspec.pytorch.values.arguments import UntranslatableError
from archspec.pytorch.values.builder import Builder, as_tuple
from archspec.pytorch.values.values import (
    Argument,
    ModuleCall,
    Operand,
    Setting,
    Value,
    flat_arguments,
    number_in,
    values_in,
)

VIEWS = ("reshape", "permute", "expand")


Recognizer: TypeAlias = Callable[..., Value | None]
"""Returns the result of an operation as something else; None if it is not that. Takes the builder, the result and the
arguments."""


class SpecBuilder(Builder):
    """Makes values in their simplest form, in the call of a module that is current. The results of operations are also
    what `recognizers` make of them, by the names of the operations, if their normal form is the same.
    """

    def __init__(self, arrays: Arrays, recognizers: Mapping[str, Sequence[Recognizer]] = MappingProxyType({})) -> None:
        super().__init__(arrays)
        self._recognizers = recognizers
        self._written: dict[Value, Value] = {}
        self._unwritten: dict[Value, Value] = {}
        self._layouts: dict[Value, tuple[Value, Layout]] = {}
        self._views: dict[tuple[Value, Array], Value] = {}
        self._once: dict[tuple[str, Value], Value] = {}
        self.rows = Rows(self)
        self._indexed = IndexWriter(self)

    # Making -----------------------------------------------------------------------------------------------------------

    def stored(self, op: str, name: str, type: Type, frame: ModuleCall) -> Value:
        """Return an input or a tensor."""
        array = self.arrays.stored(op, name, type.shape, type.dtype)
        return Value(op, (), array=array, dtype=type.dtype, frame=frame, kind=op, address=name)

    def form(self, name: str, array: Array, write: Callable[[], Value] | None = None, reason: str = "") -> Value:
        """Return a value with a given normal form as `write` expresses it. Raises Untranslatable if nothing does."""
        if write is None:
            raise UntranslatableError(reason or f"the operation `aten.{name}` has no counterpart with these arguments")
        found = write()
        if found.array != array:
            raise UntranslatableError(f"the operation `aten.{name}` has another result in the language")
        return found

    def op(self, name: str, *args: Argument, **settings: Setting) -> Value:
        """Return the result of an operation."""
        return self.recognize(name, self.ops(name, *args, **settings)[0], *flat_arguments(args), **settings)

    def recognize(self, name: str, made: Value, *args: object, **settings: Setting) -> Value:
        """Return the result of an operation as what it is recognized as, or as it is."""
        for recognizer in self._recognizers.get(name, ()):
            found = recognizer(self, made, *args, **settings)
            if found is not None and found.array == made.array:
                return found
        return made

    def ops(self, name: str, *args: Argument, **settings: Setting) -> list[Value]:
        """Return the results of an operation."""
        settings = {key: as_tuple(value) for key, value in settings.items()}
        of_rows = self.rows.results(name, args, settings)
        if of_rows is not None:
            return of_rows
        elementwise = OPS[name].group == "Elementwise"
        given = [self._argument(arg, elementwise) for arg in args]
        full = OPS[name].settings(settings)
        flat = flat_arguments(given)
        found = self.results(name, flat, full)
        if elementwise:
            given = self._narrowed(name, flat, found[0], full)
            node = self.arrays.elements.nodes[found[0].element]
            if node.kind in ("number", "int", "bool") and not any(values_in(given)):
                return self.ops("full", shape=found[0].shape, value=node.arguments[0])
            shorter = self.results(name, given, full)[0]
            alone = self._alone(given, found[0])
            if alone is not None:
                return [alone]
            if shorter.shape != found[0].shape:
                return [self.reshape(self.made(name, given, shorter, settings), found[0].shape)]
        whole = self.made(name, given, found[0], settings)
        if len(found) == 1:
            same = next(
                (value for value in whole.operands if value.array == found[0] and value.dtype == whole.dtype), None
            )
            return [same or whole]
        return [self.made("part", [whole], array, {"index": turn}, "part") for turn, array in enumerate(found)]

    def memoize(self, name: str, x: Value) -> Value:
        """Return a function of a value, made where the value is, and only once."""
        if (name, x) not in self._once:
            outer, self.frame = self.frame, x.frame
            self._once[name, x] = self.op(name, x)
            self.frame = outer
        return self._once[name, x]

    def activation(self, name: str, x: Value) -> Value:
        """Return an elementwise function of the library of one tensor."""
        whole = self.rows.flattened(x)
        if whole is not None:
            return self.rows.noted(self.reshape(self.activation(name, self.written(whole)), x.shape))
        return super().activation(name, x)

    def _argument(self, arg: Argument, elementwise: bool) -> Operand | list[Value | None] | None:
        if isinstance(arg, Sequence):
            return [item and self.written(item) for item in arg]
        return self.written(arg) if isinstance(arg, Value) and not elementwise else arg

    def _narrowed(
        self, name: str, args: Sequence[Operand | None], result: Array, settings: dict[str, object]
    ) -> list[Operand | None]:
        """Return the operands of an elementwise operation without views that broadcasting makes superfluous."""
        found = list(args)
        for turn in range(len(args)):
            arg = args[turn]
            while isinstance(arg, Value):
                number = self._constant(arg)
                candidates: Sequence[Operand] = self._unspread(arg) if number is None else [number]
                arg = next(
                    (other for other in candidates if self._fits(name, found, turn, other, result, settings)), None
                )
                if arg is not None:
                    found[turn] = arg
        return [self.written(arg) if isinstance(arg, Value) else arg for arg in found]

    def _constant(self, value: Value) -> Scalar | None:
        """Return the number that all elements of a value are, or the boolean, if its normal form shows that."""
        node = self.arrays.elements.nodes[value.array.element]
        return cast("bool", node.arguments[0]) if node.kind == "bool" else number_in(value)

    def _alone(self, args: Sequence[Operand | None], result: Array) -> Value | None:
        """Return the only tensor among operands, if the result is that tensor, up to broadcasting."""
        tensors = [arg for arg in args if isinstance(arg, Value)]
        if len(tensors) != 1 or len(args) < 2 or self.arrays.dtype(tensors[0].array) != self.arrays.dtype(result):
            return None
        found = self.spread(self.unwritten(tensors[0]), result.shape)
        return found if found.array == result else None

    def _fits(
        self,
        name: str,
        args: Sequence[Operand | None],
        turn: int,
        other: Operand,
        result: Array,
        settings: dict[str, object],
    ) -> bool:
        """Whether an operation has the same result with another operand."""
        found = self._results_or_none(name, [*args[:turn], other, *args[turn + 1 :]], settings)
        return other is not args[turn] and self._spreads(found, result)

    def _spreads(self, found: Array | None, result: Array) -> bool:
        """Whether an array is a result, up to leading axes of size 1."""
        if found is None or found == result:
            return found is not None
        missing = len(result.shape) - len(found.shape)
        return (1,) * missing + found.shape == result.shape and self.arrays.reshape(found, result.shape) == result

    def _results_or_none(self, name: str, args: Sequence[Operand | None], settings: dict[str, object]) -> Array | None:
        try:
            return self.results(name, args, settings)[0]
        except UntranslatableError:
            return None

    def _unspread(self, value: Value) -> list[Value]:
        """Return what broadcasts to a view, the simplest first."""
        found: list[Value] = []
        if value.op == "real":
            inner = value.operands[0]
            found += [*self._unspread(inner), inner]
        if value.dtype != "real":
            written = self._indexed.written(value)
            if written is not None and cost(written) < cost(value):
                found.append(written)
        if value.op in VIEWS:
            root, layout = self.layout(value)
            before, after = layout.settled()
            if [group for group in before if group] == [group for group in after if group and not group[0].new]:
                found.append(root)
        return found

    # Views ------------------------------------------------------------------------------------------------------------

    def layout(self, value: Value) -> tuple[Value, Layout]:
        """Return what a chain of views starts from, and how it rearranges the axes."""
        if value not in self._layouts:
            return value, Layout(value.shape)
        return self._layouts[value]

    def laid_out(self, x: Value, view: Value, root: Value) -> Value:
        """Return a value with the axes that a view gives to another one of its shape."""
        if view is root:
            return x
        (setting,) = view.settings.values()
        return getattr(self, view.op)(self.laid_out(x, view.operands[0], root), setting)

    def _viewed(self, x: Value, op: str, settings: dict[str, Setting]) -> Value:
        (setting,) = settings.values()

        def change(layout: Layout) -> bool:
            return getattr(layout, op)(setting)

        root, layout = self.layout(x)
        changed = layout.copy()
        array = apply(self.arrays, op, [x.array], settings, [])[0]
        if not change(changed):
            x = self.written(x)
            root, changed = x, Layout(x.shape)
            if not change(changed):
                return self.made(op, [x], array, settings)
        if array == root.array:
            return root
        known = self._views.get((root, array))
        if known is not None and known.frame.contains(self.frame):
            return known
        value = self.made(op, [x], array, settings)
        self._layouts[value] = root, changed
        self._views[root, array] = value
        return value

    def written(self, value: Value) -> Value:
        """Return a value as it is written: a view as one operation, indices and masks in their simplest form."""
        if value not in self._written:
            self._written[value] = self._as_written(value)
            self._unwritten[self._written[value]] = value
        return self._written[value]

    def unwritten(self, value: Value) -> Value:
        """Return the view that is written as a value, to which other views can be joined; any other value itself."""
        return self._unwritten.get(value, value)

    def _as_written(self, value: Value) -> Value:
        if value.dtype != "real":
            found = self._indexed.exactly(value)
            if found is not None and cost(found) < cost(value):
                return found
        if value not in self._layouts:
            return value
        root, layout = self.layout(value)
        outer, self.frame = self.frame, value.frame
        made = self._view(self.written(root), layout, value)
        self.frame = outer
        made.names = value.names
        return made

    def _view(self, root: Value, layout: Layout, value: Value) -> Value:
        before, after = layout.settled()
        array, shape = value.array, value.shape
        kinds = [_kinds(group) for group in (before, after)]
        leaves = [axis for group in after for axis in group]
        new = [axis for axis in leaves if axis.new]
        moved = [axis for group in before for axis in group] != [axis for axis in leaves if not axis.new]
        if kinds == [[1, 1, 2], [1, 1, 1, 1]] and [*before[0], before[2][0], *before[1], before[2][1]] == leaves:
            return self.made("split_heads", [root], array, {"count": before[2][0].size}, "std")
        if (
            kinds == [[1, 1, 2], [1, 2, 1, 1]]
            and new == [after[1][1]]
            and [*before[0], before[2][0], *before[1], before[2][1]] == [leaf for leaf in leaves if leaf is not new[0]]
        ):
            shape = (before[0][0].size, before[2][0].size, before[1][0].size, before[2][1].size)
            inner = self.written(
                self.permute(self.reshape(root, (shape[0], shape[2], shape[1], shape[3])), (0, 2, 1, 3))
            )
            return self.made("repeat_heads", [inner], array, {"times": new[0].size}, "std")
        if kinds == [[1, 1, 1, 1], [1, 1, 2]] and [*before[0], *before[2], *before[1], *before[3]] == leaves:
            return self.made("merge_heads", [root], array, {}, "std")
        if kinds == [[1, 1, 1, 1], [1, 2, 1, 1]] and new == [after[1][1]] and not moved:
            return self.made("repeat_heads", [root], array, {"times": new[0].size}, "std")
        whole = all(len(group) < 2 for group in (*before, *after))
        if new and whole and not moved:
            inner = self._reshaped(root, before, after)
            return self.made("expand", [inner], array, {"shape": shape})
        if whole and not new and not moved:
            return self.made("reshape", [root], array, {"shape": shape})
        if whole and not new and len(before) == len(after):
            order = [before.index(group) if group else axis for axis, group in enumerate(after)]
            swapped = [axis for axis, other in enumerate(order) if axis != other]
            if len(swapped) == 2 and sorted(order) == list(range(len(order))):
                last = swapped == [len(order) - 2, len(order) - 1]
                return self.made("transpose", [root], array, {} if last else {"a": swapped[0], "b": swapped[1]})
        found = pattern(before, after)
        settings = {"": found.text, **dict(found.sizes)}
        return self.made("repeat" if found.repeats else "rearrange", [root], array, settings)

    def _reshaped(self, root: Value, before: list[list[Axis]], after: list[list[Axis]]) -> Value:
        """Return a value with axes of size 1 where it is expanded, unless these are leading ones."""
        kept = [[] if group and group[0].new else group for group in after]
        shape = tuple([group[0].size if group else 1 for group in kept])
        leading = next((axis for axis, group in enumerate(kept) if group), len(kept))
        if before == kept[leading:] or shape == root.shape:
            return root
        return self.made("reshape", [root], self.arrays.reshape(root.array, shape), {"shape": shape})

    def unflattened(self, x: Value) -> Value:
        """Return a matrix whose rows are flattened from several axes with these axes."""
        _, layout = self.layout(x)
        _, after = layout.settled()
        if len(after) != 2 or len(after[0]) < 2 or not after[1]:
            return x
        return self.reshape(x, (*[axis.size for axis in after[0]], x.shape[1]))

    def shortened(self, value: Value) -> Value:
        """Return a value as it is written, without leading axes of size 1 if it depends on positions alone."""
        found = self._indexed.written(value) if value.dtype != "real" else None
        return found if found is not None and cost(found) < cost(value) else self.written(value)

    def note_source(self, value: Value) -> None:
        """Make an input or tensor known as what elements are loaded from."""
        node = self.arrays.elements.nodes[value.array.element]
        if node.kind == "load":
            self._indexed.sources[cast("int", node.arguments[0])] = value

    # Attention --------------------------------------------------------------------------------------------------------

    def mask(self, value: Value) -> tuple[Value | None, dict[str, Setting]]:
        """Return which keys are visible in attention, as a mask and settings of the function `attention`."""
        return self._indexed.mask(value)


def cost(value: Value) -> int:
    """Return the number of operations that a value is made with."""
    if value.cost is None:
        value.cost = (value.op not in ("input", "tensor", "arange")) + sum(
            [cost(operand) for operand in value.operands]
        )
    return value.cost


def _kinds(groups: Sequence[Sequence[Axis]]) -> list[int]:
    return [len(group) for group in groups]
