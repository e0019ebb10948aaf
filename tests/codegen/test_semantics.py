"""The PyTorch modules compute what specs say: against the reference interpreter, whatever the language is used for."""

import ast
from pathlib import Path
from typing import Any

import pytest
import torch_compare
import torch_texts
from building import build
from bundled import SIZES_ONLY
from small import SCALE, load

import archspec

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

TEXTS = torch_texts.texts()
BUNDLED = torch_texts.bundled()


@pytest.mark.parametrize("text", TEXTS, ids=[text.name for text in TEXTS])
def test_modules_compute_what_the_spec_says(text: torch_texts.Text, tmp_path: Path) -> None:
    torch_compare.agrees(text.load(tmp_path))


@pytest.mark.parametrize("name", BUNDLED)
def test_modules_of_bundled_models_compute_what_the_spec_says(name: str) -> None:
    spec, small = BUNDLED[name]
    torch_compare.agrees(archspec.load(spec, **small))


@pytest.mark.parametrize("name", [name for name in SIZES_ONLY if name != "clip-vit-large-patch14"])
def test_models_that_are_left_out_have_only_other_sizes(name: str) -> None:
    """With the same sizes, they have the same code, but for the name in its first docstring.

    CLIP's sizes are those of its parts, which are not overridden.
    """
    small = torch_texts.small(name)
    sources = (build(each, **small) for each in (name, SIZES_ONLY[name]))
    one, other = (ast.dump(ast.Module(ast.parse(source).body[1:], [])) for source in sources)
    assert one == other


def test_ruff_finds_nothing_in_any_file(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for i, text in enumerate(TEXTS):
        (files / f"file_{i}.py").write_text(torch_compare.torch_source(text.load(tmp_path)), encoding="utf-8")
    assert torch_compare.lint(files) == ""


# Element types ------------------------------------------------------------------------------------------------------

HALVES = [text for text in TEXTS if text.name.split(":")[0] in ("attention", "everything", "shapes", "statements")]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("text", HALVES, ids=[text.name for text in HALVES])
def test_in_half_precision_what_comes_out_is_too(text: torch_texts.Text, dtype: str, tmp_path: Path) -> None:
    in_half_precision(text.load(tmp_path), getattr(torch, dtype))


@pytest.mark.parametrize("name", [name for name in BUNDLED if name != "transformer-big"])
def test_bundled_models_in_half_precision(name: str) -> None:
    spec, small = BUNDLED[name]
    in_half_precision(archspec.load(spec, **small), torch.bfloat16)


def in_half_precision(model: archspec.Model, dtype: Any) -> None:
    """Asserts that a module with its weights as they start out gives the same, but for the digits it has."""
    torch.manual_seed(0)
    whole = archspec.to_torch(model).double().eval()
    if not torch_compare.has_reals(model, whole):
        return
    module = archspec.to_torch(model)
    module.load_state_dict(whole.state_dict())
    module = module.to(dtype).eval()
    inputs = torch_compare.named_inputs(model, whole)
    halves = {name: x.to(dtype) if x.is_floating_point() else x for name, x in inputs.items()}
    with torch.no_grad():
        expected, got = whole(**inputs), module(**halves)
    for one, other in zip(as_tuple(expected), as_tuple(got), strict=True):
        assert other.dtype == (dtype if one.is_floating_point() else one.dtype)
        if one.is_floating_point() and bool(one.isfinite().all()) and float(one.abs().max()) < 1e3:
            assert bool(other.isfinite().all())


def as_tuple(outputs: Any) -> tuple[Any, ...]:
    return (outputs,) if isinstance(outputs, torch.Tensor) else tuple(outputs)


def test_tables_of_sines_are_exact_beside_half_precision() -> None:
    """Positions up to 4000 are not numbers of bfloat16; their sines would be those of others."""
    model = load(
        """
import std { sinusoids }
dim batch, seq
block Net(n = 4)(x [batch, seq, n]) -> [batch, seq, n] {
  return x + sinusoids(seq, n)
}
"""
    )
    module = archspec.to_torch(model).to(torch.bfloat16)
    found = module(torch.zeros(1, 4000, 4, dtype=torch.bfloat16)).double()
    expected = module(torch.zeros(1, 4000, 4, dtype=torch.float64))
    assert expected.dtype == torch.float64
    assert float((found - expected).abs().max()) < 2**-8


# What a class takes for granted -------------------------------------------------------------------------------------

SETTLED = {
    "a condition on a number": ("n = 4", "return x * n if n > 2 else x", {"n": 2}),
    "one on the rounds of a loop": (
        "layers = 3",
        "return x |> l[i]: Scale(4) if i % 5 < 4 for i in 0..layers |> + x",
        {"layers": 6},
    ),
    "a loop of no rounds": ("layers = 0", "return x |> + x for i in 0..layers", {"layers": 1}),
    "one that a value leads to": (
        "n = 4",
        "wide = 2 * n\n  return x |> s: Scale(4) |> * wide |> * 3 if wide > 10",
        {"n": 6},
    ),
    "one in a function": ("n = 4", "return x * n |> twice(n)", {"n": 1}),
    "one in a part": ("n = 4", "return x * n |> part: Part(n + 1)", {"n": 9}),
    "one in a part's default": ("n = 4", "return x |> part: Default(n)", {"n": 9}),
    "one half of a condition": ("n = 4, m = 1", "return x * n if n > 2 or m > 3 else x * m", {"n": 2}),
    "a statement": ("n = 4", "if n < 9 { y = x } else { y = x * 2.0 }\n  return y * n", {"n": 9}),
    "a requirement": ("n = 4", 'require n != 3, "three is bad"\n  return x * n', {"n": 3}),
    "whether a tensor is there": ("n = 4", "s: param [] if n < 9\n  return x * .s if n < 9 else x * n", {"n": 9}),
    "a tie": (
        "n = 4",
        "a: Scale(4)\n  b: Scale(4)\n  tie a.weight = b.weight if n > 3\n  return .a(.b(x)) * n",
        {"n": 3},
    ),
}


@pytest.mark.parametrize("case", SETTLED)
def test_a_class_refuses_numbers_that_it_was_not_written_for(case: str) -> None:
    """Where a model settles a condition, the code has one side of it only, and says so of other numbers."""
    hyper, body, other = SETTLED[case]
    source = build(
        f"""{SCALE}
fn twice(n)(x [...]) -> [...] {{
  return x * 2.0 if n > 1 else x
}}
block Part(m)(x [4]) -> [4] {{
  return x |> s: Scale(4) |> * 2.0 if m > 9
}}
block Default(n, m = 2 * n)(x [4]) -> [4] {{
  return x |> s: Scale(4) |> * 2.0 if m > 9 |> * n
}}
block Net({hyper})(x [4]) -> [4] {{
  {body}
}}
"""
    )
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    x = torch.zeros(4)
    namespace["Net"]()(x)
    with pytest.raises((ValueError, TypeError), match=r"three is bad|unexpected keyword"):
        namespace["Net"](**other)(x)
