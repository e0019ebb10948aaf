"""Numbers of parameters with hyperparameters left open: what compiling with numbers gives, or no formula."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from bundled import each
from paths import DATA
from small import DENSE, load

import archspec
from archspec.testing import main

EXAMPLES = [f"specs/std/examples.arch:small-{name}" for name in ("decoder", "vision", "speech")]
SIZES = [1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 48]


DECIDING = {
    "conv-bert-base": ["kernel", "ratio", "heads", "groups"],
    "poolformer-s12": ["stages", "pool"],
    "resnet-18": ["embedding", "shrinks"],
}
"""Kernels that must be odd, a number that is an index, and sizes that decide on heads or on a shortcut."""


def integers(spec: str) -> dict[str, int]:
    """The hyperparameters that can be left open: integers, but for a period, which decides what each round does, and
    those that decide which stages of Swin shift their windows or are multiplied by a real number there. In wav2vec 2.0,
    one size would have to be divisible by two others.
    """
    values = archspec.load(spec).hyperparameters
    closed = {"period", "dense_layers", *DECIDING.get(spec, ())}
    if "depths" in values:
        closed |= {"image", "patch", "window", "hidden"}
    if "position_groups" in values:
        closed |= {"hidden", "heads", "position_groups"}
    return {n: v for n, v in values.items() if type(v) is int and v > 0 and n not in closed}


# Small specs: the formula with hyperparameters open and what it assumes, or why there is none -------------------------

STAGE = (
    DENSE
    + """
block Stage(n, width, depth)(x [..., n]) -> [..., n] {
  for j in 0..depth { side[j]: unused Dense(n, width * (j + 1)) }
  return x |> l[j]: Dense(n) for j in 0..depth
}
"""
)


def write(folder: Path, definition: str) -> str:
    path = folder / "spec.arch"
    library = STAGE if "Stage(" in definition else DENSE if "Dense(" in definition else ""
    path.write_text(f'{library}\n{definition}\nmodel "it" = B()\n', encoding="utf-8")
    return str(path)


# The domain -----------------------------------------------------------------------------------------------------------

FAULTS = DATA / "faults"
KIN = [f"{FAULTS / 'formula_kin.arch'}:{name}" for name in ("topk", "pick", "conv", "slice")]
ROOM = str(FAULTS / "formula_room.arch")


def common_choices(spec: str) -> list[tuple[str, ...]]:
    """All hyperparameters open, each alone, and some at random."""
    names = list(integers(spec))
    rng = random.Random(spec)
    some = [rng.sample(names, min(len(names), k)) for k in (2, 3, 4)]
    return [tuple(names), *[(n,) for n in names], *map(tuple, some)]


LARGE = ("bart-base", "deberta-v3-base", "longformer-base-4096", "t5-small", "wav2vec2-base")


def small_ones() -> list[object]:
    """The parameters of a test of the bundled models, of which the large ones of every day are slow."""
    return [pytest.param(spec, marks=pytest.mark.slow) if spec in LARGE else spec for spec in each()]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("spec", [*small_ones(), *EXAMPLES, *KIN, ROOM])
def test_all_values_in_the_stated_domain_compile_and_agree(spec: str) -> None:
    rng = random.Random(spec)
    for names in common_choices(spec):
        formula = archspec.formula(spec, names)
        compared = 0
        for _ in range(200):
            values = {n: rng.choice([*SIZES, 7, 20, 32, 64, *[formula.open[n]] * 4]) for n in names}
            try:
                claimed = formula.at(**values)
            except ValueError:
                continue  # an assumption does not hold
            assert archspec.load(spec, **values).params.total == claimed, values
            compared += 1
            if compared == 2:
                break
        assert compared, names


@pytest.mark.parametrize(
    ("spec", "names", "assumed"),
    [
        (ROOM, "image patch", ["image >= patch"]),
        (ROOM, "image", ["image >= 16"]),
        (KIN[0], "experts k", ["experts >= k"]),
        (KIN[0], "n rotary", ["n >= rotary", "n >= rotary + 1"]),
        (KIN[1], "at d", ["d != 1", "6//(d - 1) >= 1", "at <= 5", "d >= 2"]),
        (KIN[2], "image kernel padding", ["image + 2*padding >= kernel"]),
        (KIN[3], "window", ["window <= 8", "window <= 6"]),
    ],
)
def test_what_only_has_to_be_large_enough_is_assumed(spec: str, names: str, assumed: list[str]) -> None:
    formula = archspec.formula(spec, names.split())
    assert [formula.format_assumption(a) for a in formula.assumptions] == assumed


def test_sums_over_uneven_rounds_in_reports(
    tmp_path: Path, golden: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every second round from the third on, and an index that has the name of what is open, by another name."""
    rounds = "for i in 2..k + 2 { u[i]: unused Dense(n, i + i % 2, bias = false) }"
    stages = "return x |> s: Stage(n, n, j) |> t[layer]: Stage(n, layer + 1, 1) for layer in 0..j"
    spec = write(tmp_path, f"block B(n = 4, j = 3, k = 4)(x [..., n]) -> [..., n] {{\n  {rounds}\n  {stages}\n}}")
    for format in ("text", "latex", "json"):
        assert main(["formula", spec, "--open", "n,j,k", "--format", format]) == 0
        golden(f"formula/uneven.{format}", capsys.readouterr().out)


def test_assumptions_in_latex() -> None:
    def assumptions(spec: str, *names: str) -> list[str]:
        return re.findall(r"assuming\} &\\quad (.*?)(?: \\\\)?\n", archspec.formula(spec, names).latex())

    assert assumptions(KIN[0], "experts", "k") == [r"\mathrm{experts} \geq k"]
    assert assumptions(KIN[1], "at", "d") == [
        r"d \neq 1",
        r"\left\lfloor \frac{6}{d - 1} \right\rfloor \geq 1",
        r"\mathrm{at} \leq 5",
        r"d \geq 2",
    ]
    assert assumptions("bert-base-uncased", "hidden") == [r"\mathrm{hidden} \text{ is divisible by } 12"]


def test_a_sum_over_layers_of_different_sizes() -> None:
    text = """
layer D(n, k)(x [..., n]) -> [..., n] {
  w: param [k]
  return x * sum(axis = 0)(.w)
}
block It(n = 4, layer_count = 3)(x [n]) -> [n] {
  return x |> l_x[i]: D(n, i + 1) for i in 0..layer_count
}
"""
    formula = archspec.formula(load(text), "layer_count")
    assert formula.at(layer_count=10) == 55
    count = r"\mathrm{layer\_count}"
    half = rf"\frac{{{count}^{{2}}}}{{2}} + \frac{{{count}}}{{2}}"
    assert rf"\text{{parameters}} &= {half} \\" in formula.latex()
    assert rf"\text{{l\_x.*}} &= \sum_{{i=0}}^{{{count} - 1}} \left( i + 1 \right) = {half}" in formula.latex()
