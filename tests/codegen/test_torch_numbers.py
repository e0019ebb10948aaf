"""Generated modules that call functions of numbers, and whose tensors begin as numbers."""

from typing import Any

import pytest
import torch_compare
from paths import DATA
from small import load

import archspec
from archspec.codegen.build import torch_source

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

FAULTS = DATA / "faults"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("functions_of_sizes.arch:m", {"hidden": 16}),
        ("functions_of_sizes.arch:m", {"hidden": 9}),
        ("functions_of_sizes.arch:m", {"hidden": 4}),
        ("functions_of_sizes.arch:m", {"layers": 6}),
        ("functions_of_sizes.arch:m", {"layers": 2}),
        ("functions_of_sizes.arch:n", {"hidden": 5}),
        ("functions.arch:whole", {"hidden": 12}),
        ("functions.arch:whole", {"hidden": 7}),
        ("functions.arch:late", {"k": 3}),
        ("functions.arch:late", {"k": 6}),
        ("functions.arch:ints", {"k": 5}),
        ("functions.arch:shape", {"k": 3}),
    ],
)
def test_a_class_computes_the_same_with_other_arguments(name: str, arguments: dict[str, Any]) -> None:
    namespace: dict[str, Any] = {}
    exec(torch_source(archspec.load(f"{FAULTS}/{name}")), namespace)
    made = namespace[namespace["build"].__annotations__["return"]]
    with torch_compare.default_dtype(torch.float64):
        torch.manual_seed(0)
        module = made(**arguments)
    assert torch_compare.computes(archspec.load(f"{FAULTS}/{name}", **arguments), module)


def test_calls_with_settled_arguments_are_their_values() -> None:
    text = """
fn scale(size, base = 10000.0) { return size / log(base) }
layer It(n = 4, size = 64)(x [n]) -> [n] { return x * scale(size) * scale(n) if size == 64 else x }
"""
    source = torch_source(load(text))
    assert "x * 6.948711710452028 * scale(self.n)" in source
    assert "def scale(size: Any, base: Any = 10000.0) -> Any:\n    return size / math.log(base)\n" in source


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_lowest_is_that_of_the_type_of_the_tensor(dtype: str) -> None:
    model = load("layer It()(x [batch]) -> [batch] { return where(x > 0.0, x, lowest) }\ndim batch")
    assert "torch.finfo(x.dtype).min" in torch_source(model)
    x = torch.tensor([-1.0, 2.0], dtype=getattr(torch, dtype))
    result = archspec.to_torch(model)(x)
    assert result.dtype == x.dtype and result.tolist() == [torch.finfo(x.dtype).min, 2.0]


def test_a_condition_on_a_number_that_becomes_a_tensor_is_refused() -> None:
    text = """
layer It(n = 4)(x [2]) -> [2] {
  h = 1
  for i in 0..n {
    g = x * 2.0 if i < 3 and h > 1 else x
    h = h + 1 if i < 2 else h + g
  }
  return h
}
"""
    with pytest.raises(archspec.ArchError, match="a tensor in one case and a number in another"):
        torch_source(load(text))
