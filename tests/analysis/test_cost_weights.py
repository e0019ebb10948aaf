"""What is computed from weights alone is neither work of a forward pass nor an activation."""

from typing import Any

import pytest

import archspec
from archspec.core.algebra import substitute
from archspec.drawing.api import build_plan

NET = """
dim batch, seq, rows, columns

fn twice(x [rows, columns]) -> [rows, columns] { return x + x |> * 2 }

block Scaled(n, m)(x [batch, seq, n], w [m, n]) -> [batch, seq, m] { return linear(x, w * 2) }

block Net(n = 4)(x [batch, seq, n]) -> [batch, seq, 6] {
  a: param [3, n]
  b: param [3, n]
  return %s
}

model "net" = Net
"""
PLAIN = "linear(x, %s)"
BATCH, SEQ = 2, 5
MACS, BYTES = BATCH * SEQ * 4 * 6, BATCH * SEQ * 6 * 4
JOINED = "concat(axis = 0)(.a, .b)"


def work(result: str) -> tuple[Any, Any, Any]:
    """The multiply-accumulates, elementwise operations and bytes of activations, which graph and picture confirm."""
    model = archspec.loads(NET % result)
    cost = archspec.cost(model, BATCH, SEQ).work
    for level in ("block", "layer", "op"):
        nodes = model.graph(level).nodes.values()
        for name, amount in (("macs", cost.macs), ("elementwise", cost.elementwise)):
            sizes = {"batch": BATCH, "seq": SEQ}
            assert substitute(sum(node[name] for node in nodes), sizes) == amount
    root, *nodes = build_plan(model).nodes
    figures = [substitute(amount, {"batch": BATCH, "seq": SEQ}) for amount in (root.macs, root.elementwise, root.bytes)]
    assert figures[:2] == [cost.macs, cost.elementwise]
    operations = [node.bytes for node in nodes if node.contents is None]
    assert substitute(sum(operations), {"batch": BATCH, "seq": SEQ}) == figures[2]
    return tuple(figures)


def test_products_of_weights_are_work_of_each_pass() -> None:
    """As PyTorch counts them: the second product has [4, 4] and [6, 4] results."""
    products, results = 4 * 6 * 4 + 6 * 4 * 4, 4 * (4 * 4 + 6 * 4)
    assert work(PLAIN % f"matmul({JOINED}, matmul(transpose({JOINED}), {JOINED}))") == (
        MACS + products, 0, BYTES + results
    )  # fmt: skip


def test_tables_of_numbers_are_work_but_not_what_weights_are_combined_with() -> None:
    assert work(PLAIN % f"{JOINED} + sin(real(arange(n)))") == (MACS, 4, BYTES + 4 * (8 + 4 + 4))


def test_weights_that_pytorch_saves_are_no_activations() -> None:
    pytest.importorskip("torch")

    def saved(weight: str) -> Any:
        activations = archspec.cost(archspec.loads(NET % (PLAIN % weight)), BATCH, SEQ, attention="math").activations
        assert activations is not None
        return activations.bytes

    assert saved(JOINED) == saved(f"exp({JOINED} * 3)") == BATCH * SEQ * 4 * 4
    assert saved(f"exp({JOINED} + sum(axis = [0, 1])(x))") == BATCH * SEQ * 4 * 4 + 6 * 4 * 4
