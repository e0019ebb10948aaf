"""Generated modules that call functions of numbers, and whose tensors begin as numbers."""

from typing import Any

import pytest
import torch_compare
from building import build
from paths import DATA
from small import load

import archspec

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
    exec(build(f"{FAULTS}/{name}"), namespace)
    made = namespace[namespace["build"].__annotations__["return"]]
    with torch_compare.default_dtype(torch.float64):
        torch.manual_seed(0)
        module = made(**arguments)
    assert torch_compare.computes(archspec.load(f"{FAULTS}/{name}", **arguments), module)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_lowest_is_that_of_the_type_of_the_tensor(dtype: str) -> None:
    model = load("layer It()(x [batch]) -> [batch] { return where(x > 0.0, x, lowest) }\ndim batch")
    x = torch.tensor([-1.0, 2.0], dtype=getattr(torch, dtype))
    result = archspec.to_torch(model)(x)
    assert result.dtype == x.dtype and result.tolist() == [torch.finfo(x.dtype).min, 2.0]
