"""What numbers operations refuse, their intervals, and their forms in PyTorch for other operands."""

import ast
from typing import Any

import numpy as np
import pytest

from archspec import Type
from archspec.codegen.python.trees import py
from archspec.codegen.scope.operations import AppliedOperation, emit
from archspec.core.algebra import symbol
from archspec.ir.normal.arrays import Arrays
from archspec.ir.normal.forms import elementwise, weights
from archspec.ir.ops import OPS, OpError

SEQ = symbol("seq")


def t(*shape: Any, dtype: str = "real") -> Type:
    return Type(shape, dtype)


def test_integers_in_tables_have_bounds() -> None:
    interval = OPS["table"].interval
    assert interval is not None

    def bounds(values: Any) -> Any:
        return interval([], t(4, dtype="int"), {"values": values})

    assert bounds(((3, -1), (4, 1))) == (-1, 4) and bounds((7,)) == (7, 7)
    assert bounds((1.5, 2)) is None and bounds((True, 2)) is None


@pytest.mark.parametrize(
    ("name", "given", "settings", "expected"),
    [
        ("pad", [(2, 5)], {"before": 0, "after": 0, "value": 9}, (2, 5)),
        ("pad", [(2, 5)], {"before": 1, "after": 0, "value": 9}, (2, 9)),
        ("pad", [(2, 5)], {"before": 0, "after": 1, "value": 0}, (0, 5)),
        ("pad", [(2, 5)], {"before": 1, "after": 1, "value": 3}, (2, 5)),
        ("pad", [(2, 5)], {"before": 1, "after": 1, "value": True}, None),
        ("pad", [(2, 5)], {"before": 1, "after": 1, "value": 1.0}, None),
        ("cumsum", [(2, 5)], {"axis": -1}, (2, 20)),
        ("cumsum", [(-2, 5)], {"axis": 0}, (-6, 15)),
        ("cumsum", [(-3, -2)], {"axis": 0}, (-9, -2)),
        ("add", [(2, 5), (-1, 1)], {}, (1, 6)),
        ("sub", [(2, 5), (-1, 1)], {}, (1, 6)),
        ("sub", [(2, 5), (2, 7)], {}, (-5, 3)),
        ("mul", [(-2, 5), (-3, 4)], {}, (-15, 20)),
        ("min", [(2, 5), (3, 4)], {}, (2, 4)),
        ("max", [(2, 5), (3, 7)], {}, (3, 7)),
        ("roll", [(2, 5)], {"shift": 1, "axis": 0}, (2, 5)),
        ("full", [], {"shape": (3, 4), "value": 7}, (7, 7)),
        ("full", [], {"shape": (3, 4), "value": 7.5}, None),
        ("full", [], {"shape": (3, 4), "value": True}, None),
    ],
)
def test_bounds_of_integers(name: str, given: Any, settings: Any, expected: Any) -> None:
    interval = OPS[name].interval
    assert interval is not None
    assert interval(given, t(3, 4, dtype="int"), settings) == expected


def test_numbers_that_are_too_large() -> None:
    scalar = OPS["exp"].scalar
    assert scalar is not None and scalar(0.0) == 1.0 and scalar(float("inf")) == float("inf")
    for number in (800.0, 710):
        with pytest.raises((FloatingPointError, OverflowError)):
            scalar(number)
    product = OPS["mul"].scalar
    assert product is not None
    with pytest.raises(FloatingPointError):
        product(1e308, 10.0)
    with pytest.raises(TypeError, match="expects a compile-time constant, found the dimension seq"):
        scalar(SEQ)


def code(
    name: str,
    *,
    ranks: Any = (2, 1, 1),
    optional: Any = (False,) * 3,
    number: bool = False,
    words: Any = "abc",
    **settings: Any,
) -> str:
    """The form of an operation on a, b and c, of which those without a rank are not given."""
    op = OPS[name]
    tensors = [py(word) if rank != 0 else None for word, rank in zip(words, ranks, strict=False)]
    made = AppliedOperation(
        op,
        tuple(tensors),
        (number, False, False),
        {word: py(str(value)) for word, value in settings.items()},
        tuple(ranks),
        tuple(optional),
        "real",
        lambda: py("torch.float32"),
        lambda: py("x.device"),
        lambda: py("self.training"),
    )
    return ast.unparse(emit(made))


def test_norms_of_parts_that_may_be_absent() -> None:
    assert code("layer_norm", eps=0.5) == "F.layer_norm(a, b.shape, b, c, 0.5)"
    assert code("layer_norm", optional=(False, True, False), eps=0.5) == "F.layer_norm(a, c.shape, b, c, 0.5)"
    assert code("layer_norm", optional=(False, True, True), eps=0.5) == "F.layer_norm(a, a.shape[-1:], b, c, 0.5)"
    assert code("layer_norm", ranks=(2, 0, 1), eps=0.5) == "F.layer_norm(a, c.shape, None, c, 0.5)"
    assert code("layer_norm", ranks=(2, 0, 0), eps=0.5) == "F.layer_norm(a, a.shape[-1:], None, None, 0.5)"
    with pytest.raises(OpError, match="cannot normalize over axes that differ between uses"):
        code("layer_norm", ranks=(3, 2, 1), optional=(False, True, True), eps=0.5)
    assert (
        code("layer_norm", ranks=(3, 2, 2), optional=(False, False, True), eps=0.5)
        == "F.layer_norm(a, b.shape, b, c, 0.5)"
    )


def test_forms_of_other_operands() -> None:
    assert code("one_hot", ranks=(1,), count=5) == "a[..., None].eq(torch.arange(5, device=x.device)).long()"
    assert code("one_hot", ranks=(1,), number=True, count=5) == "torch.arange(5, device=x.device).eq(a).long()"
    for rank in (3, 4, 5):
        usual = code("max_pool", ranks=(rank,), kernel=2, stride=None, padding=0)
        assert usual == f"F.max_pool{rank - 2}d(a, 2)"
    assert code("mean_pool", ranks=(3,), kernel=2, stride=3, padding=1) == "F.avg_pool1d(a, 2, stride=3, padding=1)"
    for rank in (2, 6):
        with pytest.raises(OpError, match="PyTorch supports pooling over one, two or three axes"):
            code("max_pool", ranks=(rank,), kernel=2, stride=None, padding=0)
    assert code("eq", ranks=(1, 1)) == "a == b" and code("ne", ranks=(1, 1)) == "a != b"
    assert code("eq", ranks=(1, 1), words=("a", "True")) == "a.eq(True)"
    assert code("ne", ranks=(1, 1), words=("False", "b")) == "b.ne(False)"


def test_infinite_numbers_are_compared() -> None:
    torch = pytest.importorskip("torch")
    from archspec.pytorch.numeric.evaluate import Evaluation

    arrays = Arrays()
    e, x = arrays.elements, arrays.stored("input", "x", (3,), "real")
    stored = {("input", "x"): torch.tensor([-np.inf, 0.0, np.inf])}

    def found(form: Any, a: int, b: int) -> list[bool]:
        return Evaluation(arrays, stored, {}).array(arrays.array((3,), form(e, a, b))).tolist()

    largest, least = e.number(np.inf), e.number(-np.inf)
    assert found(elementwise.greater_or_equal, x.element, largest) == [False, False, True]
    assert found(elementwise.greater_or_equal, least, x.element) == [True, False, False]
    assert found(elementwise.less_or_equal, largest, x.element) == [False, False, True]
    assert found(elementwise.greater, largest, x.element) == [True, True, False]
    assert found(elementwise.less, least, x.element) == [False, True, True]
    assert found(elementwise.equal, largest, x.element) == [False, False, True]
    assert found(elementwise.unequal, least, x.element) == [False, True, True]


def test_experts_have_their_own_weights() -> None:
    torch = pytest.importorskip("torch")
    from archspec.pytorch.numeric.evaluate import Evaluation

    arrays = Arrays()
    generator = np.random.default_rng(0)
    values = {
        "x": generator.standard_normal((4, 3)),
        "experts": np.array([[1, 0], [2, 2], [0, 1], [1, 2]]),
        "weight": generator.standard_normal((3, 5, 3)),
        "bias": generator.standard_normal((3, 5)),
        "each": generator.standard_normal((4, 2, 3)),
    }
    given = {
        name: arrays.stored("input", name, value.shape, "int" if name == "experts" else "real")
        for name, value in values.items()
    }
    stored = {("input", name): torch.tensor(value) for name, value in values.items()}

    def found(x: str, bias: str | None) -> Any:
        array = weights.expert_linear(
            arrays, given[x], given["experts"], given["weight"], given[bias] if bias is not None else None
        )
        return Evaluation(arrays, stored, {}).array(array).numpy()

    chosen = values["experts"]
    whole = np.einsum("bkoi,bki->bko", values["weight"][chosen], values["each"])
    np.testing.assert_allclose(found("each", None), whole)
    np.testing.assert_allclose(found("each", "bias"), whole + values["bias"][chosen])
