"""What a spec means, rule by rule: stored tensors and ties between them."""

from pathlib import Path

import numpy as np
import pytest
import torch_compare
from paths import read_spec
from reference import evaluate_model
from small import DENSE, load, shapes

import archspec

# Tensors -------------------------------------------------------------------------------------------------------------


CONST = read_spec("tensors_const")


def test_a_const_is_computed_and_not_stored() -> None:
    model = load(CONST)
    assert (model.params, model.buffers, shapes(model)) == ((8, 8, 0), (), {"a.weight": (4,), "b.weight": (4,)})
    assert [(n, d["kind"], d["params"]) for n, d in model.graph().nodes(data=True) if n == "shift"] == [
        ("shift", "const", 0)
    ]
    assert archspec.cost(model).memory.buffers == 4 * (4 + 4 + 1 + 4)
    x = np.arange(8.0).reshape(2, 4)
    given = {name: np.full(4, 3.0) for name in shapes(model)}
    expected = ((x * 3 + np.arange(4)) * 3 + np.arange(4)) * 0.5 + 1
    assert np.array_equal(evaluate_model(model, {"x": x}, given).outputs["output"], expected)


@pytest.mark.slow
def test_modules_compute_their_consts() -> None:
    pytest.importorskip("torch")
    torch_compare.agrees(load(CONST))


def test_what_a_const_holds_counts_in_diff_and_its_address_does_not(tmp_path: Path) -> None:
    def path(name: str, text: str) -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    one = path("one.arch", CONST)
    renamed = path("renamed.arch", CONST.replace("table", "other"))
    written_out = path(
        "out.arch", CONST.replace("  table:  const [n] = real(arange(n))\n", "").replace(".table", "arange(n)")
    )
    changed = path("changed.arch", CONST.replace("arange(n))", "arange(n)) * 2.0"))
    assert not archspec.diff(one, renamed).operations
    assert archspec.diff(one, changed).operations
    found = archspec.diff(one, written_out)  # adding an int makes it the real that is written in `one`
    assert not found.operations and found.unified


# Ties ----------------------------------------------------------------------------------------------------------------


def test_a_tie_makes_two_names_one_tensor() -> None:
    model = load(
        DENSE
        + """
layer Table(count, n)(ids int [...]) -> [..., n] {
  weight: param [count, n]
  return embedding(ids, .weight)
}
block Net()(ids int [seq]) -> [seq, 10] {
  tie head.weight = words.weight
  return ids |> words: Table(10, 4) |> head: Dense(4, 10, bias = false)
}
dim seq
"""
    )
    assert [(t.name, t.params, t.size, t.tied_to) for t in model.tensors] == [
        ("words.weight", 40, 40, None),
        ("head.weight", 0, 40, "words.weight"),
    ]
    nodes = model.graph().nodes
    assert (nodes["words"]["params"], nodes["head"]["params"]) == (40, 0)
    assert nodes["head"]["shared_with"] == ("words",)
