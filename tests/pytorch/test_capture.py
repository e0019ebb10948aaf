"""What an exported program has a normal form for, in programs that are written by hand."""

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphs import Program
from torch.fx.experimental.symbolic_shapes import sym_or

from archspec import Type
from archspec.core.algebra import dim_max, dim_min, symbol
from archspec.ir.normal.arrays import Array, Arrays
from archspec.pytorch.calls.registry import CALLS
from archspec.pytorch.export.capture import Capture, MultiplesOnlyError, SingleLengthError
from archspec.pytorch.passes.formulas import size_of
from archspec.pytorch.passes.programs import excludes_ones, generalize_to_size_one
from archspec.pytorch.values.arguments import UntranslatableError
from archspec.pytorch.values.values import Value

ATEN = torch.ops.aten
A, B = symbol("a"), symbol("b")


def captured(program: Program, *shape: Any) -> Capture:
    """A program whose input `x` has this shape."""

    def tensor(name: str, value: Any, type: Type) -> Array:
        raise AssertionError(name)

    return Capture(Arrays(), program, {"x": Type(shape)}, tensor)  # type: ignore[arg-type]


def test_sizes_have_the_names_of_inputs() -> None:
    program = Program()
    value = program.symbolic(5, 7)
    program.input("x", value)
    capture, (a, b) = captured(program, A, B), value.shape
    largest = torch.sym_max(torch.sym_max(a, b), 20)
    least = torch.sym_min(torch.sym_min(b, 3), a)
    assert capture.size(largest) == dim_max(dim_max(A, B), 20)
    assert capture.size(least) == dim_min(dim_min(A, B), 3)
    assert [capture.size(size) for size in (a * b - 2 * a + 1, a**2, a // 3, b % 4)] == [
        A * B - 2 * A + 1,
        A * A,
        A // 3,
        B % 4,
    ]
    with pytest.raises(UntranslatableError, match=r"^it has a size with `BitwiseFn_bitwise_and`$"):
        capture.size(a & 6)
    with pytest.raises(UntranslatableError, match="computes a root or fraction of the size"):
        capture.size(torch.sym_float(a))
    with pytest.raises(UntranslatableError, match=r"^it has a size that is not one of an input's$"):
        capture.size(program.symbolic(11).shape[0])


def test_inputs_have_any_size() -> None:
    program = Program()
    whole = program.symbolic(5, 7)
    for value, reason in (
        (torch.empty(5, 7), r"^a loop or branch in it depends on the size `a`$"),
        (whole[1:], r"^it can only be exported where `a` is s\d+ - 1$"),
    ):
        one = Program()
        one.input("x", value)
        with pytest.raises(UntranslatableError, match=reason):
            captured(one, A, B)
    doubled = Program()
    doubled.input("x", torch.cat([whole, whole]))
    with pytest.raises(MultiplesOnlyError, match=r"^it can only be exported where `a` is a multiple of 2$") as found:
        captured(doubled, A, B)
    assert found.value.multiples == {"a": 2}
    assert captured(doubled, 2 * A, B).size(whole.shape[0]) == A


def test_ranges_of_sizes_are_those_of_dimensions() -> None:
    values = pytest.importorskip("torch.utils._sympy.value_ranges")
    program = Program()
    value = program.symbolic(5, 7)
    program.input("x", value)
    rows, columns = (size.node.expr for size in value.shape)
    ranges = {rows: values.ValueRanges(7, 101), columns: values.ValueRanges(2, 30)}
    program.range_constraints = ranges
    capture = captured(program, 2 * A, B)
    assert (capture.least, capture.most) == ({"a": 4, "b": 2}, {"a": 50, "b": 30})
    capture = captured(program, 2 * A, A)
    assert (capture.least, capture.most["a"]) == ({"a": 4}, 30)


@pytest.mark.parametrize(
    ("relation", "kind", "reason", "multiples"),
    [
        (lambda a, b: a // 4 == 1, SingleLengthError, "a//4 == 1", None),
        (lambda a, b: b // 3 == 2, SingleLengthError, "b//3 == 2", None),
        (lambda a, b: a // 4 != 2, UntranslatableError, "a//4 != 2", None),
        (lambda a, b: (2 * b) % 7 == 0, MultiplesOnlyError, "2*b%7 == 0", {"b": 7}),
        (lambda a, b: (3 * a) % 5 == b // 9, MultiplesOnlyError, "3*a%5 == b//9", {"a": 5}),
    ],
)
def test_relations_of_sizes_are_refused(relation: Any, kind: Any, reason: str, multiples: Any) -> None:
    program = Program()
    value = program.symbolic(5, 7)
    program.input("x", value)
    assert bool(relation(*value.shape))
    with pytest.raises(UntranslatableError) as found:
        captured(program, A, B)
    assert str(found.value) == f"it can only be exported where `{reason}`"
    assert type(found.value) is kind and getattr(found.value, "multiples", None) == multiples


def test_one_of_several_relations_is_refused() -> None:
    program = Program()
    value = program.symbolic(5, 7)
    program.input("x", value)
    assert sym_or(value.shape[0] // 4 == 1, value.shape[1] // 3 == 5)
    with pytest.raises(UntranslatableError, match=r"^it can only be exported where `Eq\(.+\) \| Eq\(.+\)`$"):
        captured(program, A, B)


def test_nodes_that_are_no_calls_are_refused() -> None:
    program = Program()
    x = program.input("x", torch.empty(2, 3))
    program.graph.create_node("get_attr", "inner.scale")
    program.output(x)
    with pytest.raises(UntranslatableError, match=r"^it reads `inner.scale`$"):
        captured(program, 2, 3).outputs()


def test_constants_have_values() -> None:
    program = Program()
    x = program.input("x", torch.empty(2, 3))
    scale = program.input("scale", torch.empty(3))
    program.output(x, scale)
    program.graph_signature.inputs_to_lifted_tensor_constants["scale"] = "_scale"
    program.constants["_scale"] = torch.tensor([1.0, 2.0, 3.0])
    assert [value.shape for value in captured(program, 2, 3).outputs()] == [(2, 3), (3,)]
    program.constants["_scale"] = torch.empty(3, device="meta")
    with pytest.raises(UntranslatableError, match=r"^it has a constant without a value$"):
        captured(program, 2, 3).outputs()


@pytest.mark.parametrize("problem", [TypeError, ValueError, IndexError])
def test_results_of_handlers_are_checked(monkeypatch: pytest.MonkeyPatch, problem: type[Exception]) -> None:
    program = Program()
    program.output(program.call(ATEN.relu.default, program.input("x", torch.empty(2, 3))))

    def refuse(*args: object) -> Value:
        raise problem

    def found() -> str:
        with pytest.raises(UntranslatableError) as refusal:
            captured(program, 2, 3).outputs()
        return str(refusal.value)

    monkeypatch.setitem(CALLS, "relu", refuse)
    assert found() == "the operation `aten.relu` has no normal form with these arguments, in relu_default"
    monkeypatch.setitem(CALLS, "relu", lambda b, types, x: b.op("full", shape=(2, 4), value=1.0))
    assert found() == "`aten.relu` gives real [2, 3], its normal form real [2, 4], in relu_default"


def test_sizes_over_steps_are_rounded_up() -> None:
    sympy = pytest.importorskip("sympy")
    functions = pytest.importorskip("torch.utils._sympy.functions")
    symbols = {"s0": A, "s1": B}
    s0, s1 = (sympy.Symbol(name, integer=True, positive=True) for name in symbols)

    def rounded(distance: Any, step: Any) -> Any:
        return size_of(functions.CeilToInt(functions.FloatTrueDiv(distance, step)), symbols)

    def of_float(size: Any) -> Any:
        return functions.ToFloat(size)

    assert rounded(of_float(s0 + s1), sympy.Float(3.0)) == -(-(A + B) // 3)
    assert rounded(of_float(s0), sympy.Float(-3.0)) == -(A // 3)
    refusal = "^it computes a root or fraction of the size of an input, as in `1 / x.shape"
    for distance, step in ((of_float(s0), sympy.Float(2.5)), (of_float(s0), of_float(s1)), (s0, sympy.Float(3.0))):
        with pytest.raises(UntranslatableError, match=refusal):
            rounded(distance, step)
    with pytest.raises(UntranslatableError, match=refusal):
        size_of(functions.CeilToInt(of_float(s0) ** 2.0), symbols)
    assert size_of(sympy.Integer(1) + s0**3 * 2 * s1, symbols) == 1 + A * A * A * 2 * B
    with pytest.raises(UntranslatableError, match=r"^it has a size with `Pow`$"):
        size_of(s0**-1, symbols)
    assert size_of(functions.PythonMod(s0 - 9, s1), symbols) == (A - 9) % B


@pytest.mark.parametrize(
    ("guard", "ranges", "excludes"),
    [
        (lambda ne, a, b: ne(a - 1, 1), (2, 2), True),
        (lambda ne, a, b: ne(a + b - 3, 1), (2, 2), True),
        (lambda ne, a, b: ne(a + b - 2, 1), (2, 2), False),
        (lambda ne, a, b: ne(a + b - 2, 1), (1, 0), False),
        (lambda ne, a, b: ne(a - 2, 1), (4, 2), False),
        (lambda ne, a, b: ne(a, 1), (0, 2), False),
        (lambda ne, a, b: ne(a - 1, 2), (2, 2), False),
        (lambda ne, a, b: ~ne(a - 1, 1), (2, 2), False),
        (lambda ne, a, b: ne(a - 1, 1) & ne(b - 1, 1), (2, 2), False),
    ],
)
def test_relations_that_exclude_sizes_of_1(guard: Any, ranges: tuple[int, int], excludes: bool) -> None:
    sympy, values = pytest.importorskip("sympy"), pytest.importorskip("torch.utils._sympy.value_ranges")
    numbers = pytest.importorskip("torch.utils._sympy.numbers")
    names = [sympy.Symbol(name, integer=True) for name in ("s0", "s1")]
    found = guard(sympy.Ne, *names)

    def program(last: Any) -> Any:
        limits = [values.ValueRanges(low, high) for low, high in zip(ranges, (numbers.int_oo, last), strict=True)]
        return SimpleNamespace(range_constraints=dict(zip(names, limits, strict=True)))

    other = sympy.Ne(names[1], 7)
    assert excludes_ones(program(numbers.int_oo), [other, found]) is excludes
    assert not excludes_ones(program(99), [found]) and not excludes_ones(program(numbers.int_oo), [other])


def test_programs_that_include_sizes_of_1() -> None:
    def program(target: Any, size: Any, *rest: Any) -> Program:
        program = Program()
        value = program.symbolic(5, 7) if size is None else torch.empty(5, size)
        program.output(program.call(target, program.input("x", value), *rest))
        return program

    def included(made: Program) -> bool:
        found: Any = generalize_to_size_one(lambda: made)  # type: ignore[arg-type, return-value]
        assert found in (None, made)
        return found is made

    squeeze = ATEN.squeeze
    assert included(program(ATEN.unsqueeze.default, None, 1)) and included(program(ATEN.relu.default, None))
    assert not included(program(squeeze.dim, None, 1)) and not included(program(squeeze.default, None))
    assert included(program(squeeze.dim, 1, 1)) and included(program(squeeze.default, 1))
    assert included(program(squeeze.dims, 1, [0, 1])) and not included(program(squeeze.dims, None, [0, 1]))
    for target, rest, is_included in (
        (squeeze.dim, [1], True),
        (squeeze.dim, [0], False),
        (squeeze.default, [], False),
    ):
        column = Program()
        x = column.input("x", column.symbolic(5, 7)[:, :1])
        column.output(column.call(target, x, *rest))
        assert included(column) == is_included

    def failing() -> Any:
        raise ZeroDivisionError

    assert generalize_to_size_one(failing) is None
