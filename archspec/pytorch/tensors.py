"""Operations on tensors, with the element types that PyTorch needs for what the language says."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from archspec.elaborate.trace import Use
from archspec.ir import Constant, Module, Type, Weight
from archspec.ops import OPS, Op, OpError
from archspec.pytorch.attention import as_attention
from archspec.pytorch.code import literal, method, name, py
from archspec.pytorch.operations import Applied, emit
from archspec.pytorch.places import Places
from archspec.pytorch.scope import Scope
from archspec.pytorch.values import BOOL, FREE, INT, KIND, NONE, REAL, STATIC, Several, Val, kind_of
from archspec.resolve.files import Definition
from archspec.syntax import tree

if TYPE_CHECKING:
    from archspec.pytorch.book import Book


class Tensors(Scope):
    """Translates operations. `needs` are "dtype" and "device" where a definition has to be told what its tensors are
    made of, as nothing it is given or owns says so.
    """

    def __init__(self, book: Book, definition: Definition, uses: Sequence[Use], places: Places) -> None:
        super().__init__(book, definition, uses)
        self.places = places
        self.is_function = definition.kind == "fn"
        self.fuses = True  # whether attention becomes one call
        self.needs: set[str] = set()
        self.steps: dict[int, tree.Step] = {}  # those of what they apply
        self.local.update(book.parameters(definition))
        for word, parameter in book.parameters(definition).items():
            code = name(parameter) if self.is_function else method(name("self"), book.attribute(definition, word))
            self.env[word] = Val(code, STATIC, 0, counts=self.counts_as(book.values(definition, word)))
        self.inputs = [self._input(i, entry) for i, entry in enumerate(definition.node.inputs)]

    def _input(self, index: int, entry: tree.Parameter) -> Val:
        """An input: absent in every use, a number in every use, or a tensor."""
        given = [use.given[index] for use in self.uses]
        types = [g for g in given if isinstance(g, Type)]
        value = NONE
        if types or any(isinstance(g, Constant) for g in given):
            variable = self.variable(entry.name)
            ranks = {len(t.shape) for t in types}
            rank = ranks.pop() if len(ranks) == 1 else None
            kind = KIND[entry.type] if types else STATIC
            value = Val(name(variable), kind, rank, name=variable, counts=KIND[entry.type])
        self.env[entry.name] = value
        return value

    # What new tensors are made of

    def device(self) -> ast.expr | None:
        """The device of what goes in; None for PyTorch's choice."""
        return self._attribute("device", self.given_always())

    def stream_type(self) -> ast.expr:
        """The type of the reals that weights and inputs are."""
        found = self._attribute("dtype", [v for v in self.given_always() if v.kind == REAL])
        return found if found is not None else py("torch.get_default_dtype()")

    def has_stream(self) -> bool:
        """Whether inputs or weights tell the type of the reals."""
        return any(v.kind == REAL for v in self.given_always()) or self._any_weight() is not None

    def free_type(self) -> ast.expr:
        """The type in which reals are computed that no stream has a part in yet."""
        stream = self.stream_type()
        if isinstance(stream, ast.Name):
            return stream  # whoever gives it has seen to that
        return py("torch.promote_types(stream, torch.float32)", stream=stream)

    def given_always(self) -> list[Val]:
        return [value for _, value in self.given_entries()]

    def given_entries(self) -> list[tuple[tree.Parameter, Val]]:
        """The inputs that are always given."""
        pairs = zip(self.definition.node.inputs, self.inputs, strict=True)
        return [
            (entry, value)
            for i, (entry, value) in enumerate(pairs)
            if value.is_tensor and all(isinstance(use.given[i], Type) for use in self.uses)
        ]

    def _attribute(self, attribute: str, inputs: Sequence[Val]) -> ast.expr | None:
        if inputs:
            return method(inputs[0].code, attribute)
        weight = self._any_weight()
        if weight is not None:
            return method(weight, attribute)
        if self.definition is self.book.trace.root:
            return None
        self.needs.add(attribute)
        return name(attribute)

    def _any_weight(self) -> ast.expr | None:
        return None if self.is_function else self._weight_in(self.places, name("self"))

    def _weight_in(self, places: Places, root: ast.expr) -> ast.expr | None:
        """The first stored tensor of reals that is always there."""
        for words in places.always:
            targets, code = places.found(words), places.place(words, root).code
            if any(isinstance(t, Weight) and t.type.dtype == "real" for t in targets):
                return code
            definitions = {self.book.trace.definitions[t] for t in targets if isinstance(t, Module)}
            inner = self._weight_in(self.book.places(definitions.pop()), code) if len(definitions) == 1 else None
            if inner is not None:
                return inner
        return None

    # Operations

    def operate(self, word: str, values: Sequence[Val | None], settings: Mapping[str, ast.expr], node: Any) -> Any:
        """An operation applied: a Val, or Several for one of several results."""
        op = OPS[word]
        has_typed_value = any(a.name == op.dtype() for a in op.attributes)
        kind = self._filled(node) if has_typed_value else kind_of(op, values)
        values = self._promoted(op, values, kind)
        if op.casts and op.dtype() == "real":
            return self._as_reals(values[0], node)
        if op.attention == "product" and self.fuses:
            found = as_attention(self, values)
            if found is not None:
                return found
        for i, value in enumerate(values):
            if value is not None and value.op == "causal" and not self._is_square(node):
                values[i] = value._replace(op="")  # stretched, it is another mask
        whole = {a.name: literal(a.default) for a in op.attributes if a.name not in settings} | {**settings}
        applied = Applied(
            op,
            tuple(v.code if v is not None else None for v in values),
            tuple(v is not None and not v.is_tensor for v in values),
            whole,
            tuple(v.rank if v is not None else None for v in values),
            tuple(v is not None and v.optional for v in values),
            kind,
            self.free_type,
            self.device,
        )
        try:
            code = emit(applied)
        except OpError as problem:
            self.refuse(str(problem), node)
        if op.has_several:
            return self._several(op, code, kind, node)
        rank = self.rank(node) if not isinstance(node, tree.Chain) else None
        shapes = frozenset(type.shape for type in self.types(node))
        return Val(code, kind, rank, word, tuple(values), tuple(whole.items()), made=self.clock, shapes=shapes)

    def _several(self, op: Op, code: ast.expr, kind: str, node: Any) -> Several:
        """The results of an operation that has several."""
        counts = {len(call.outputs) for call in self._calls(node)}
        if len(counts) != 1:
            self.refuse("this is split into another number of parts in other uses", node)
        kinds: list[str] = []
        ranks: list[int | None] = []
        for i in range(counts.pop()):
            dtype = op.dtype(i)
            kinds.append(KIND[dtype] if dtype in ("int", "bool") else kind)
            found = {len(call.outputs[i].shape) for call in self._calls(node)}
            ranks.append(found.pop() if len(found) == 1 else None)
        return Several(code, tuple(kinds), tuple(ranks))

    def _as_reals(self, value: Val | None, node: Any) -> Val:
        """Integers are free; 0 and 1 are exact in every type, and take that of the stream."""
        assert value is not None
        if value.kind in (REAL, FREE):
            return value
        kind = REAL if value.kind == BOOL and self.has_stream() else FREE
        dtype = self.stream_type() if kind == REAL else self.free_type()
        return Val(_cast(value, dtype, kind).code, kind, self.rank(node), made=self.clock)

    def rank(self, node: Any) -> int | None:
        ranks = {len(t.shape) for t in self.types(node)}
        return ranks.pop() if len(ranks) == 1 else None

    def types(self, node: Any) -> Sequence[Type]:
        """The types that an expression, or what is applied in a step, came to."""
        return list(self.seen(self.steps.get(id(node), node)).types)

    def _is_square(self, node: Any) -> bool:
        """Whether what comes out has two last axes of one size."""
        shapes = [t.shape[-2:] for t in self.types(node)]
        return bool(shapes) and all(len(shape) == 2 and shape[0] == shape[1] for shape in shapes)

    def _filled(self, node: Any) -> str:
        """The kind of a tensor that holds one value."""
        kinds = {KIND[c.outputs[0].dtype] for c in self._calls(node) if c.outputs[0] is not None}
        if len(kinds) != 1:
            self.refuse("this is filled with another kind of value in other uses", node)
        return FREE if kinds == {REAL} else kinds.pop()

    def _calls(self, node: Any) -> list[Any]:
        """The applications that an expression came to."""
        span = self.unit.span(node)
        bodies = [use.body for use in self.uses] + self.book.tables(self.definition)
        return [call for body in bodies for call in body.calls if call.span == span]

    def _promoted(self, op: Op, values: Sequence[Val | None], kind: str) -> list[Val | None]:
        """Operands with the types that PyTorch needs for what the language computes with any reals."""
        places = [i for i, v in enumerate(values) if v is not None and v.is_tensor and op.decides(i)]
        alike = op.torch is not None and not op.torch.promotes
        tensors = {i: v for i in places if (v := values[i]) is not None}
        changed = list(values)
        if kind == REAL:
            stream = next(v for v in tensors.values() if v.kind == REAL)
            for i, value in tensors.items():
                if value.kind == FREE or (value.kind == INT and alike):
                    changed[i] = self.as_stream(value, stream)
        elif kind == FREE and (alike or not any(v.kind == FREE for v in tensors.values())):
            for i, value in tensors.items():
                if value.kind == INT:
                    changed[i] = _cast(value, self.free_type(), FREE)
                    if not alike:
                        break  # what meets it is promoted
        return changed

    def as_stream(self, value: Val, stream: Val) -> Val:
        """A tensor in the type of the stream."""
        simple = stream.name is not None or stream.op == "weight"
        dtype = method(stream.code, "dtype") if simple else self.stream_type()
        return _cast(value, dtype, REAL)

    def streaming(self, value: Val) -> Val:
        """A value in the type of the stream, if it is reals."""
        return _cast(value, self.stream_type(), REAL) if value.kind == FREE else value


def _cast(value: Val, dtype: ast.expr, kind: str) -> Val:
    """A tensor in another type."""
    template = "x.to(dtype) if x is not None else None" if value.optional else "x.to(dtype)"
    return value._replace(code=py(template, x=value.code, dtype=dtype), kind=kind)
