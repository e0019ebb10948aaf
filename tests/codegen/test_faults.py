"""Specs whose modules once had other tensors or computed something else: tests/data/faults."""

from typing import Any

import pytest
import torch_compare
from building import build
from paths import DATA
from small import load
from torch_texts import MODEL

import archspec

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

FAULTS = DATA / "faults"
MODELS = [
    f"{path.stem}:{model}" for path in sorted(FAULTS.glob("*.arch")) for model in MODEL.findall(path.read_text("utf-8"))
]


def fault(name: str, **overrides: Any) -> archspec.Model:
    return archspec.load(path_of(name), **overrides)


def path_of(name: str) -> str:
    file, _, model = name.partition(":")
    return f"{FAULTS / file}.arch:{model}"


@pytest.mark.parametrize("name", MODELS)
def test_tensors_and_values_are_those_of_the_spec(name: str) -> None:
    torch_compare.agrees(fault(name))


@pytest.mark.parametrize("name", [name for name in MODELS if name.split(":")[0].endswith("_table")])
def test_tables_have_memory_of_their_own(name: str) -> None:
    for tensor in archspec.to_torch(fault(name)).state_dict().values():
        assert tensor.is_contiguous()
        assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()


SAME = "fn same(x int [...]) -> int [...] { return x }\n"
PART = """
fn part(n) -> int [n // 2] {
  _, b = split([n // 2, n // 2])(arange(n))
  return b
}
"""
TABLES = {
    "stretched and reshaped": ("", "reshape([4])(expand([2, 2])(reshape([2, 1])(arange(2))))"),
    "one row": ("", "pick(axis = 0, index = 1)(reshape([2, 4])(arange(8)))"),
    "a slice": ("", "slice(axis = 0, start = 2, stop = 6)(arange(8))"),
    "one of two parts": (PART, "part(8)"),
    "what a function gives back": (SAME, "same(pick(axis = 0, index = 0)(reshape([2, 4])(arange(8))))"),
    "computed from what is turned": ("", "pick(axis = 1, index = 1)(transpose(reshape([2, 4])(arange(8))) * 2)"),
}


@pytest.mark.parametrize("case", TABLES)
@pytest.mark.parametrize("kind", ["buffer int [4] = TABLE", "frozen param [4] = real(TABLE)", "buffer [4] = TABLE / 3"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tables_made_by_views(case: str, kind: str, dtype: str) -> None:
    functions, table = TABLES[case]
    model = load(
        f"""{functions}
layer Net()(x [4]) -> [4] {{
  w: {kind.replace("TABLE", table)}
  return x + real(.w)
}}
"""
    )
    torch_compare.agrees(model)
    with torch_compare.default_dtype(getattr(torch, dtype)):
        (tensor,) = archspec.to_torch(model).state_dict().values()
    assert tensor.is_contiguous() and tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()


def classes(name: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(build(path_of(name)), namespace)
    return namespace


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ({"n": 2}, "n is above 2"),
        ({"m": 3}, "n is above 2"),
        ({"n": 100}, "required: n < 100 and m < 100"),
        ({"m": 100}, "required: n < 100 and m < 100"),
        ({"n": 7}, "required: n != 7"),
        ({"m": 9}, "dims are n and m"),
        ({"dims": (4, 9)}, "dims are n and m"),
        ({"dims": (5, 8)}, "dims are n and m"),
        ({"dims": (4, 8, 9)}, "dims are n and m"),
    ],
)
def test_every_part_of_a_requirement_is_checked(numbers: dict[str, Any], told: str) -> None:
    made = classes("require_and:b")["B"]
    made()
    made(n=5, m=6, dims=(5, 6))
    with pytest.raises(ValueError, match=told):
        made(**numbers)


CONDITIONS = {
    "n > 2 or k > 3": [{"n": 1, "k": 2}],
    "not (n == 5 and k == 6)": [{"n": 5, "k": 6}],
    "n % 2 == 0 or not (k > 3 and n < 9)": [{"n": 3, "k": 4}],
    "n > 2 and (k > 3 or k == 1)": [{"n": 2}, {"k": 2}, {"k": 3}],
    "flag or not flag and n < 9": [{"flag": False, "n": 9}],
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_requirements_with_and_or_and_not(condition: str) -> None:
    text = f"""
layer Net(n = 4, k = 1, flag = true)(x [n]) -> [n] {{
  require {condition}, "as required"
  w: param [n]
  v: param [k]
  y = x * .w if flag else x + .w
  return y + sum(axis = 0)(.v)
}}
"""
    namespace: dict[str, Any] = {}
    exec(build(text), namespace)
    namespace["Net"]()
    for numbers in CONDITIONS[condition]:
        with pytest.raises(archspec.ArchError, match="as required"):
            load(text, **numbers)
        with pytest.raises((ValueError, TypeError), match=r"as required|unexpected keyword"):
            namespace["Net"](**numbers)


def test_inputs_have_the_sizes_that_the_spec_fixes() -> None:
    module = archspec.to_torch(fault("fixed_length:scan", seq=6))
    assert module(torch.zeros(2, 6, 4)).shape == (2, 4)
    for shape in ((2, 5, 4), (2, 7, 4), (2, 6, 5), (6, 4), (2, 2, 6, 4)):
        with pytest.raises(ValueError, match=r"x has shape .*, expected \[batch, 6, 4\]") as caught:
            module(torch.zeros(shape))
        assert str(list(shape)) in str(caught.value)


def test_sizes_are_checked_wherever_they_stand_and_whether_inputs_are_given() -> None:
    text = """
dim batch, length
block Net(n = 4, m = 2)(x [..., n, 3], y [n, batch, m] = none, z int [2 * n, batch, length] = none) -> [..., n, 3] {
  h = x + sum(axis = [0, 1, 2])(y) if y != none else x
  return h + real(sum(axis = [0, 1, 2])(z)) if z != none else h
}
"""
    module = archspec.to_torch(load(text))
    x, y, z = torch.zeros(5, 4, 3), torch.zeros(4, 7, 2), torch.zeros(8, 7, 9, dtype=torch.int64)
    for given in ((x,), (x, y), (x, y, z), (x[0],), (x[None],)):
        assert module(*given).shape == given[0].shape
    wrong = {"x": (x[:, :3],), "y": (x, y[:, :, :1]), "z": (x, y, z[:7])}
    for name, given in wrong.items():
        with pytest.raises(ValueError, match=f"^{name} has shape"):
            module(*given)
    with pytest.raises(ValueError, match=r"expected \[4, batch, 2\]"):
        module(x, y[:1])


PAIRS = """
dim batch, k
block Net(n = 4)(x [batch, n], y [k, n] = none, z [batch, k] = none) -> [batch, n] {
  h = x + matmul(z, y) if y != none and z != none else x
  g = h + sum(axis = 0)(y) if y != none else h
  return g + sum(axis = 1, keep = true)(z) if z != none else g
}
"""
SHARED = {
    "x [batch, seq, n], y [batch, seq, n]": ("x + y", [(2, 3, 4), (2, 1, 4)], "y", "[2, 3, 4]"),
    "x [batch, seq, n], y [batch, 2 * seq]": (
        "x + sum(axis = 2, keep = true)(reshape([batch, seq, 2])(y))",
        [(2, 3, 4), (2, 2)],
        "y",
        "[2, 6]",
    ),
    "x [batch, seq, n], y [batch, seq]": ("x + reshape([batch, seq, 1])(y)", [(2, 3, 4), (3, 2)], "y", "[2, 3]"),
    "x [batch, seq, seq]": ("x * real(n)", [(2, 3, 1)], "x", "[batch, seq, 3]"),
    "y [seq, n], x [batch, seq, n]": ("x + y", [(1, 4), (2, 3, 4)], "x", "[batch, 1, 4]"),
    "x [..., n], y [..., n]": ("x + y", [(2, 3, 4), (3, 4)], "y", "[2, 3, 4]"),
    "x [..., n], y [..., 1]": ("x + y", [(2, 3, 4), (2, 1, 1)], "y", "[*[2, 3], 1]"),
    "x [..., seq, n], y [seq]": ("x + reshape([seq, 1])(y)", [(2, 3, 4), (1,)], "y", "[3]"),
}


@pytest.mark.parametrize("inputs", SHARED)
def test_sizes_that_inputs_share_are_checked(inputs: str) -> None:
    value, given, name, expected = SHARED[inputs]
    dims = "dim batch, seq\n"
    output = inputs.partition("x ")[2].partition("]")[0]
    module = archspec.to_torch(load(f"{dims}block Net(n = 4)({inputs}) -> {output}] {{ return {value} }}"))
    index = [part.split()[0] for part in inputs.replace("], ", "];").split(";")].index(name)
    with pytest.raises(ValueError) as caught:
        module(*map(torch.zeros, given))
    assert str(caught.value) == f"{name} has shape {list(given[index])}, expected {expected}"


def test_sizes_that_optional_inputs_share_are_checked() -> None:
    module = archspec.to_torch(load(PAIRS))
    x, y, z = torch.zeros(2, 4), torch.zeros(3, 4), torch.zeros(2, 3)
    for given in ((x,), (x, y), (x, None, z), (x, y, z), (x, None, z[:, :1])):
        assert module(*given).shape == (2, 4)
    for given, message in (
        ((x, y, z[:, :1]), r"z has shape \[2, 1\], expected \[batch, 3\]"),
        ((x, None, z[:1]), r"z has shape \[1, 3\], expected \[2, k\]"),
        ((x, y[:, :1]), r"y has shape \[3, 1\], expected \[k, 4\]"),
    ):
        with pytest.raises(ValueError, match=message):
            module(*given)


def test_inputs_taken_over_are_checked_by_their_names() -> None:
    text = """
dim batch, seq
block In(n = 4)(x [batch, seq, n]) -> [batch, seq, n] { return x * 2.0 }
block Net(..In)(..In) -> [batch, seq, n] { return part: In(..)(..) }
"""
    with pytest.raises(ValueError, match=r"x has shape \[2, 3, 5\], expected \[batch, seq, 4\]"):
        archspec.to_torch(load(text))(torch.zeros(2, 3, 5))


def test_a_hyperparameter_without_effect_is_no_obstacle() -> None:
    module = archspec.to_torch(load("dim batch\nblock Net(n = 4)(x [batch]) -> [batch] { return x * 2.0 }"))
    assert module(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]
