"""Steps of the code that the tests of active cannot reach through public names."""

import numpy as np
import pytest
import reference
from paths import read_spec
from test_active import MIXTURE

import archspec
from archspec import ActiveParameters
from archspec.ir.active import ActiveParts
from archspec.ir.ops import OPS
from archspec.pipeline.model import get_compilation


def active(model: archspec.Model) -> ActiveParameters | None:
    return model.count().table.active


TINY = read_spec("active_internals_tiny")


@pytest.mark.parametrize("joined", [False, True])
def test_all_others_do_not_affect_a_token(joined: bool) -> None:
    """In the reference interpreter, the output for one token is finite although what is not active is NaN."""
    model = archspec.loads(TINY, joined=joined)
    body = get_compilation(model).body
    rng = np.random.default_rng(0)
    weights = {t.name: rng.normal(size=t.shape) for t in model.tensors}
    ids = np.array([[3]])
    used = 0
    for name, value in weights.items():
        for row in range(len(value)):
            poisoned = value.copy()
            poisoned[row] = np.nan
            found = reference.evaluate(body, {"ids": ids}, weights | {name: poisoned}).outputs["output"]
            used += value[row].size * bool(np.isnan(found).any())
    found = active(model)
    assert found is not None and found.choices == ((2, 5), (1, 3))
    assert found.without_tables == used - 4  # of the table, the token reads one row
    assert found.total == found.without_tables + 7 * 4


PLAIN = "return expert_linear(y, chosen, .weight, .bias)"


REPEATED = "a = m[0]: Mixture()(x)\n b = m[1]: Mixture()(sum(axis = 2)(a))\n c = m[2]: Mixture()(sum(axis = 2)(b))\n "


@pytest.mark.parametrize(
    ("around", "unknown"),
    [
        (f"{REPEATED} return c", set()),
        (f"{REPEATED} return .m[1](sum(axis = 2)(c))", {"m.1"}),
        (f"{REPEATED} return c + sum(axis = 0)(.m[2].bias)", {"m.2"}),
        (f"tie m[1].weight = m[0].weight\n {REPEATED} return c", {"m.0"}),
    ],
)
def test_equal_modules_are_told_apart_by_what_reads_them(around: str, unknown: set[str]) -> None:
    model = get_compilation(archspec.loads(MIXTURE.format(statements=PLAIN, around=around)))
    tensors = model.table.tensors
    parts = zip(tensors.names(), ActiveParts(model.body).of_all(tensors), strict=True)
    assert {name[:3] for name, part in parts if part in ("unknown", "whole") and "gate" not in name} == unknown


@pytest.mark.parametrize("name", ["mixtral-8x7b", "qwen3-30b-a3b", "gpt-oss-20b"])
def test_parts_of_repeated_modules_are_those_by_name(name: str) -> None:
    model = get_compilation(archspec.load(name))
    parts, tensors = ActiveParts(model.body), model.table.tensors
    assert parts.of_all(tensors) == [parts.by_name.get(name) for name in tensors.names()]


def test_operations_that_rearrange_have_each_element_once() -> None:
    source = """
fn all(x [4, 6]) -> ([24], [6, 4], [6, 4], [8, 6], [2, 4, 6], [4, 2], [4, 4], [4, 6]) {
  a, b = split([2, 4])(x)
  turned = permute([1, 0])(x)
  return reshape([24])(x), transpose(x), turned, concat(axis = 0)(x, x), stack(axis = 0)(x, x), a, b, roll(1)(x)
}
layer All(n = 6)(x [4, n]) -> ([24], [6, 4], [6, 4], [8, 6], [2, 4, 6], [4, 2], [4, 4], [4, 6]) {
  weight: param [4, n]
  return all(x * .weight)
}
model "all" = All()
"""
    names = {name for name, op in OPS.items() if op.rearranges}
    assert names == {"reshape", "transpose", "permute", "concat", "stack", "split", "roll"}
    body = get_compilation(archspec.loads(source)).body
    x = np.arange(24.0).reshape(4, 6)
    found = reference.evaluate(body, {"x": x}, {"weight": np.ones((4, 6))}).outputs
    parts = list(found.values())
    for times, part in zip((1, 1, 1, 2, 2, 0, 0, 1), parts, strict=True):
        if times:
            assert sorted(part.ravel()) == sorted([*range(24)] * times)
    assert sorted([*parts[5].ravel(), *parts[6].ravel()]) == [*range(24)]
