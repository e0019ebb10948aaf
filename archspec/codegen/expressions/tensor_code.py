"""Operations on tensors, with the element types that PyTorch needs for what the language says."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from archspec.codegen.expressions.attention import as_attention
from archspec.codegen.expressions.tensor_types import TensorTypes, as_type, as_type_of, has_model_type, number_tensor
from archspec.codegen.python.trees import apply, literal, name, py
from archspec.codegen.scope.operations import AppliedOperation, emit
from archspec.codegen.scope.scope import Scope
from archspec.codegen.scope.values import BOOL, FREE, INT, KIND, REAL, CodeValue, MultipleOutputs, operation_kind
from archspec.compiler.elaborate.trace import EvaluatedNode
from archspec.compiler.resolve import nodes
from archspec.core.diagnostics import Span
from archspec.ir.ops import OPS, Op, OpError
from archspec.ir.ops.einsum import equation_letters


class TensorCode:
    """Translates operations. `fuses`: attention becomes one call."""

    def __init__(self, scope: Scope, types: TensorTypes, fuses: bool) -> None:
        self.scope = scope
        self.types = types
        self.fuses = fuses

    def operate(
        self, word: str, values: Sequence[CodeValue | None], settings: Mapping[str, ast.expr], node: EvaluatedNode
    ) -> CodeValue | MultipleOutputs:
        """An operation applied at `node`: a Val, or Several for one of several results."""
        op = OPS[word]
        if any(map(_stands_alone, values)):
            values = self._applied_alone(values, node)
        values = self._with_numbers_filled(op, values)
        has_typed_value = any(a.name == op.dtype() for a in op.attributes)
        kind = self._filled(node) if has_typed_value else operation_kind(op, values)
        values = self._promoted(op, values, kind)
        if op.casts and op.dtype() == "real":
            return self._as_reals(op, values[0], node)
        if op.attention == "product" and self.fuses:
            found = as_attention(self.scope, self.types, values, node)
            if found is not None:
                return found
        whole = {a.name: literal(a.default) for a in op.attributes if a.name not in settings} | {**settings}
        applied = AppliedOperation(
            op,
            tuple(v.code if v is not None else None for v in values),
            tuple(v is not None and not v.is_tensor for v in values),
            whole,
            tuple(v.rank if v is not None else None for v in values),
            tuple(v is not None and v.optional for v in values),
            kind,
            self.types.free_type,
            self.types.device,
            self.types.training,
        )
        try:
            code = emit(applied)
        except OpError as problem:
            self.scope.refuse(str(problem), node)
        if op.has_several:
            return self._several(op, code, kind, node)
        rank = self.scope.rank(node) if not isinstance(node, nodes.Chain) else None
        clock = self.scope.statements.clock
        args = tuple([value for value in values if value is not None])
        return CodeValue(code, kind, rank, word, args, tuple(whole.items()), made=clock, span=self._span(node))

    def _span(self, node: EvaluatedNode) -> Span:
        return self.scope.unit.span(node.at)

    def _applied_alone(self, values: Sequence[CodeValue | None], node: EvaluatedNode) -> list[CodeValue | None]:
        """The operands; those that stand alone are applied to a real one."""
        found = list(values)
        reals = {i: v for i, v in enumerate(found) if v is not None and v.kind in (REAL, FREE)}
        place, tensor = min(reals.items(), key=lambda item: item[1].kind == FREE)
        if not isinstance(tensor.code, ast.Name):  # it is computed once
            variable = self.scope.fresh("x", "scores", "part")
            self.scope.statements.bind(variable, tensor.code)
            tensor = found[place] = tensor._replace(code=name(variable), made=self.scope.statements.clock)
        for i, value in enumerate(found):
            if value is not None and _stands_alone(value):
                made = self.operate(value.op, [tensor], {}, node)
                assert isinstance(made, CodeValue)
                found[i] = made._replace(rank=0)
        return found

    def _with_numbers_filled(self, op: Op, values: Sequence[CodeValue | None]) -> Sequence[CodeValue | None]:
        """The operands; numbers are tensors where the function of PyTorch takes no others."""
        fills = op.torch.fills if op.torch is not None else ()
        places = [i for i in range(len(values)) if op.input(i).name in fills]
        numbers = {i: v for i in places if (v := values[i]) is not None and not v.is_tensor}
        return [number_tensor(numbers[i], self.types) if i in numbers else v for i, v in enumerate(values)]

    def _several(self, op: Op, code: ast.expr, kind: str, node: EvaluatedNode) -> MultipleOutputs:
        """The results of an operation that has several."""
        calls = self.scope.calls(node)
        counts = {len(call.outputs) for call in calls}
        if len(counts) != 1:
            self.scope.refuse("this is split into another number of parts in other uses", node)
        kinds: list[str] = []
        ranks: list[int | None] = []
        for i in range(counts.pop()):
            dtype = op.dtype(i)
            kinds.append(KIND[dtype] if dtype in ("int", "bool") else kind)
            found = {len(type.shape) for call in calls if (type := call.outputs[i]) is not None}
            ranks.append(found.pop() if len(found) == 1 else None)
        return MultipleOutputs(code, tuple(kinds), tuple(ranks))

    def _as_reals(self, op: Op, value: CodeValue | None, node: EvaluatedNode) -> CodeValue:
        """Integers and what is widened are free; 0 and 1 are exact in every type, and take the model's."""
        assert value is not None
        if value.kind == FREE or (value.kind == REAL and not op.widens):
            return value
        kind = REAL if value.kind == BOOL and has_model_type(self.scope) and not op.widens else FREE
        dtype = self.types.model_type() if kind == REAL else self.types.free_type()
        made = CodeValue(
            as_type(value, dtype, kind).code, kind, self.scope.rank(node), made=self.scope.statements.clock
        )
        return made._replace(op=op.name, args=(value,), span=self._span(node)) if op.widens else made

    def _filled(self, node: EvaluatedNode) -> str:
        """The kind of a tensor that holds one value."""
        kinds = {KIND[c.outputs[0].dtype] for c in self.scope.calls(node) if c.outputs[0] is not None}
        if len(kinds) != 1:
            self.scope.refuse("this is filled with another kind of value in other uses", node)
        return FREE if kinds == {REAL} else kinds.pop()

    def _promoted(self, op: Op, values: Sequence[CodeValue | None], kind: str) -> list[CodeValue | None]:
        """Operands with the types that PyTorch needs for what the language computes with any reals."""
        places = [i for i, v in enumerate(values) if v is not None and v.is_tensor and op.affects_result_type(i)]
        alike = op.torch is not None and not op.torch.promotes
        tensors = {i: v for i in places if (v := values[i]) is not None}
        changed = list(values)
        if kind == REAL:
            real = next(v for v in tensors.values() if v.kind == REAL)
            for i, value in tensors.items():
                if value.kind == FREE or (value.kind == INT and alike):
                    changed[i] = as_type_of(value, real, self.types)
        elif kind == FREE and (alike or not any(v.kind == FREE for v in tensors.values())):
            for i, value in tensors.items():
                if value.kind == INT:
                    changed[i] = as_type(value, self.types.free_type(), FREE)
                    if not alike:
                        break  # what meets it is promoted
        return changed

    def sum_products(self, node: nodes.Einsum, values: Sequence[CodeValue]) -> CodeValue:
        """The call of `torch.einsum` for an equation, with a letter for each name."""
        product = OPS["matmul"]
        if len(values) > 2 and len({value.kind for value in values}) > 1:
            self.scope.refuse("the tensors of this `einsum` have different element types", node)
        kind = operation_kind(product, values)
        operands = [value.code for value in self._promoted(product, values, kind) if value is not None]
        letters = equation_letters(node.equation)
        if letters is None:
            self.scope.refuse("`torch.einsum` has no letters for so many axes", node)
        code = apply(py("torch.einsum"), [literal(letters), *operands])
        return CodeValue(code, kind, self.scope.rank(node), made=self.scope.statements.clock)

    def in_model_type(self, value: CodeValue) -> CodeValue:
        """A value in the model's type, if it is reals."""
        return as_type(value, self.types.model_type(), REAL) if value.kind == FREE else value


def _stands_alone(value: CodeValue | None) -> bool:
    """Whether a value is an operation that is an operand without its input."""
    return value is not None and not value.is_tensor and value.op in OPS and OPS[value.op].alone
