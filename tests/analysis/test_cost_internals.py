"""Steps of the code that the tests of cost cannot reach through public names."""

from typing import Any

import pytest
from bundled import each

import archspec
from archspec import Polynomial, Type
from archspec.analysis.cost.report import tree
from archspec.core.algebra import multiply_unexpanded, substitute, symbol
from archspec.ir.ops import OPS
from archspec.ir.work import body_work, operation_work
from archspec.pipeline.model import get_compilation


def sizes(model: archspec.Model, least: int = 3) -> dict[str, int]:
    """A different size for each dimension; samples are enough for a frame."""
    return {name: least + 2 * i + 600 * (name == "samples") for i, name in enumerate(archspec.cost(model).dims)}


def test_attention_of_bert_by_hand() -> None:
    batch, seq = symbol("batch"), symbol("seq")
    cost = archspec.cost("bert-base-uncased")
    assert cost.work.score_macs == cost.work.mix_macs == multiply_unexpanded([12, batch, seq, seq, 768])
    assert cost.work.macs == multiply_unexpanded([12, batch, seq, 768, 4 * 768 + 2 * 3072]) + (
        multiply_unexpanded([24, batch, seq, seq, 768]) + multiply_unexpanded([batch, 768, 768])
    )


def test_attention_across_sequences_by_hand() -> None:
    batch, source, target = symbol("batch"), symbol("source"), symbol("target")
    cost = archspec.cost("transformer-base")
    by_hand = multiply_unexpanded([6, batch, source, source, 512]) + multiply_unexpanded(
        [6, batch, target, target, 512]
    )
    by_hand = by_hand + multiply_unexpanded([6, batch, source, target, 512])
    assert cost.work.score_macs == cost.work.mix_macs == by_hand


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", each())
def test_modules_and_trees_sum_to_the_total(name: str) -> None:
    model = archspec.load(name)
    for dims in ({}, sizes(model)):
        cost = archspec.cost(model, dims=dims)
        whole = body_work(get_compilation(model).body)
        assert (cost.work.macs, cost.work.elementwise) == tuple(substitute(amount, dims) for amount in whole)
        for i, total in enumerate(cost.work):
            assert sum(module.own[i] for module in cost.modules) == total
        assert sum(module.parameters for module in cost.modules) == model.params.total
        assert sum(module.trainable for module in cost.modules) == model.params.trainable
        for fold in (True, False):
            first, *lines = tree(cost, fold=fold)
            assert (first.work, first.parameters) == (cost.work, model.params.total)
            root = cost.modules[0]  # with tensors and operations of its own, which are in no other row
            assert sum(line.parameters for line in lines if line.level == 0) + root.parameters == model.params.total
            macs = root.own.macs - root.own.score_macs - root.own.mix_macs
            assert sum(line.work.macs for line in lines if line.level == 0) + macs == cost.work.macs
            products = [line.work for line in lines if line.type == "matmul"]
            assert sum(work.macs for work in products) == cost.work.score_macs + cost.work.mix_macs


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", each())
def test_a_formula_with_values_put_in_is_the_number(name: str) -> None:
    model = archspec.load(name)
    formula = archspec.cost(model)
    values = sizes(model)
    for part, whole in zip(archspec.cost(model, dims=values).work, formula.work, strict=True):
        assert part == substitute(whole, values) == eval(str(whole), {}, dict(values))
    assert formula.dims == dict.fromkeys(values)
    for left_out, value in values.items():
        rest = {name: size for name, size in values.items() if name != left_out}
        partly = archspec.cost(model, dims=rest).work.macs
        assert isinstance(partly, Polynomial) and substitute(partly, {left_out: value}) == substitute(
            formula.work.macs, values
        )


def test_a_stack_is_summed_without_unrolling_its_work() -> None:
    one = archspec.cost(archspec.load("bert-base-uncased", layers=1)).work.macs
    two = archspec.cost(archspec.load("bert-base-uncased", layers=2)).work.macs
    many = archspec.load("bert-base-uncased", layers=2_000)
    assert body_work(get_compilation(many).body).macs == one + 1_999 * (two + -1 * one)


REAL, INT, BOOL = Type((2, 3, 4)), Type((2, 3, 4), "int"), Type((2, 3, 4), "bool")


EACH = 24


UNARY = "neg abs exp log sqrt sin cos tanh sigmoid erf"


BINARY = "add sub mul div floordiv mod pow min max"


BY_HAND: list[tuple[str, list[Type | None], dict[str, Any], int, int]] = [
    *((name, [REAL], {}, 0, EACH) for name in UNARY.split()),
    *((name, [REAL, Type((4,))], {}, 0, EACH) for name in BINARY.split()),
    *((name, [INT, INT], {}, 0, 0) for name in ("add", "mul", "max")),
    *((name, [REAL, REAL], {}, 0, 0) for name in ("eq", "lt", "ge")),
    *((name, [BOOL, BOOL], {}, 0, 0) for name in ("and", "or")),
    ("detach", [REAL], {}, 0, 0),
    ("div", [INT, INT], {}, 0, EACH),
    ("floor", [REAL], {}, 0, 0),
    ("real", [INT], {}, 0, 0),
    ("where", [BOOL, REAL, Type(())], {}, 0, EACH),
    ("where", [BOOL, INT, INT], {}, 0, 0),
    ("lowest", [REAL], {}, 0, 0),
    ("sum", [REAL], {"axis": 1}, 0, EACH),
    ("amax", [REAL], {"axis": (0, 1, 2)}, 0, EACH),
    ("cumsum", [REAL], {"axis": 1}, 0, EACH),
    ("cumsum", [INT], {"axis": 1}, 0, 0),
    ("softmax", [REAL], {"axis": -1}, 0, 5 * EACH),
    ("topk", [REAL], {"k": 2}, 0, EACH),
    ("argmax", [REAL], {}, 0, 0),
    ("fft", [REAL], {"axis": (1, 2)}, 0, 0),
    ("group_norm", [REAL], {"groups": 3, "eps": 0.0}, 0, 5 * EACH),
    ("group_norm", [REAL, Type((3,)), Type((3,))], {"groups": 3, "eps": 0.0}, 0, 7 * EACH),
    ("max_pool", [Type((2, 3, 8, 9))], {"kernel": (2, 3)}, 0, 2 * 3 * 8 * 9),
    ("max_pool", [Type((2, 3, 9))], {"kernel": 3, "stride": 1, "padding": 1}, 0, 2 * 3 * 9 * 3),
    ("mean_pool", [Type((2, 3, 8, 9))], {"kernel": 4, "stride": 2}, 0, 2 * 3 * 3 * 3 * 16),
    ("mean_pool", [Type((2, 3, 9), "int")], {"kernel": 4, "stride": 2}, 0, 2 * 3 * 3 * 4),
    ("layer_norm", [REAL], {"eps": 0.0}, 0, 5 * EACH),
    ("layer_norm", [REAL, Type((4,)), None], {"eps": 0.0}, 0, 6 * EACH),
    ("layer_norm", [REAL, Type((4,)), Type((4,))], {"eps": 0.0}, 0, 7 * EACH),
    ("matmul", [REAL, Type((4, 5))], {}, 2 * 3 * 4 * 5, 0),
    ("matmul", [Type((7, 1, 3, 4)), Type((2, 4, 5))], {}, 7 * 2 * 3 * 4 * 5, 0),
    ("forward_substitution", [Type((7, 4, 4)), Type((4, 5))], {}, 7 * (1 + 2 + 3) * 5, 0),
    ("linear", [REAL, Type((5, 4)), None], {}, 2 * 3 * 4 * 5, 0),
    ("linear", [REAL, Type((5, 4)), Type((5,))], {}, 2 * 3 * 4 * 5, 2 * 3 * 5),
    ("expert_linear", [REAL, Type((2, 3), "int"), Type((9, 5, 4)), None], {}, 2 * 3 * 4 * 5, 0),
    ("expert_linear", [Type((3, 1, 4)), Type((2,), "int"), Type((9, 5, 4)), Type((9, 5))], {}, 3 * 2 * 4 * 5, 30),
    ("conv", [Type((2, 6, 9)), Type((8, 6, 3)), None], {}, 2 * 8 * 7 * 6 * 3, 0),
    ("conv", [Type((2, 6, 9)), Type((8, 6, 3)), Type((8,))], {"padding": 1}, 2 * 8 * 9 * 6 * 3, 2 * 8 * 9),
    ("conv", [Type((2, 6, 9)), Type((9, 2, 3)), None], {"groups": 3, "stride": 2}, 2 * 9 * 4 * 2 * 3, 0),
    ("conv", [Type((2, 6, 9)), Type((6, 4, 3)), None], {"transposed": True}, 2 * 6 * 9 * 4 * 3, 0),
    ("conv", [Type((2, 6, 9)), Type((6, 4, 3)), None], {"transposed": True, "groups": 2}, 2 * 6 * 9 * 4 * 3, 0),
    ("embedding", [Type((2, 3), "int"), Type((9, 4))], {}, 0, 0),
    ("gather", [REAL, INT], {"axis": 2}, 0, 0),
    ("one_hot", [INT], {"count": 5}, 0, 0),
    ("float32", [REAL], {}, 0, 0),
    ("pad", [REAL], {"axis": 1, "before": 2}, 0, 0),
    ("roll", [REAL], {"shift": 1}, 0, 0),
    ("reshape", [REAL], {"shape": (6, 4)}, 0, 0),
    ("transpose", [REAL], {}, 0, 0),
    ("permute", [REAL], {"order": (2, 0, 1)}, 0, 0),
    ("expand", [REAL], {"shape": (7, 2, 3, 4)}, 0, 0),
    ("concat", [REAL, REAL], {"axis": 0}, 0, 0),
    ("stack", [REAL, REAL], {"axis": 0}, 0, 0),
    ("split", [REAL], {"sizes": (1, 3)}, 0, 0),
    ("slice", [REAL], {"axis": 2, "start": 1}, 0, 0),
    ("pick", [REAL], {"axis": 2, "index": 1}, 0, 0),
    ("arange", [], {"stop": 9}, 0, 0),
    ("full", [], {"shape": (2, 3), "value": 0.5}, 0, 0),
    ("table", [], {"values": (1, 2, 3)}, 0, 0),
    ("int", [REAL], {}, 0, 0),
    ("dropout", [REAL], {"rate": 0.1}, 0, 0),
    ("not", [BOOL], {}, 0, 0),
    ("ne", [REAL, REAL], {}, 0, 0),
    ("le", [REAL, REAL], {}, 0, 0),
    ("gt", [REAL, REAL], {}, 0, 0),
]


@pytest.mark.parametrize(("name", "inputs", "attributes", "macs", "elementwise"), BY_HAND)
def test_operations_by_hand(
    name: str, inputs: list[Type | None], attributes: dict[str, Any], macs: int, elementwise: int
) -> None:
    op = OPS[name]
    result = op.rule(inputs, attributes)[0]
    assert operation_work(op, inputs, result, attributes) == (macs, elementwise)


def test_every_operation_is_counted_by_hand() -> None:
    assert {name for name, *_ in BY_HAND} == set(OPS)
