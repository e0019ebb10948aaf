"""Steps of searches: operands of columns, formulas for many designs, processes, plots, and what is refused."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small import load

import archspec
from archspec import Assumption, Plot, PlotPoint, Source, Span
from archspec.analysis.search import api, compilations, plot, quantities, result, search
from archspec.analysis.search.columns import column
from archspec.analysis.search.plot import draw, svg
from archspec.analysis.search.polynomials import evaluate_integers, find_where_holds
from archspec.analysis.search.quantities import Quantity, measure
from archspec.analysis.search.report import page, rows
from archspec.core.algebra import dim_max, dim_min, evaluate, multiply_unexpanded, symbol
from archspec.core.algebra.polynomial import ratio as quotient
from archspec.testing import main

numpy = pytest.importorskip("numpy")

# Formulas -------------------------------------------------------------------------------------------------------------

A, B = symbol("a"), symbol("b")
GRID = [(a, b) for a in range(1, 13) for b in range(1, 8)]
COLUMNS = {"a": column([a for a, _ in GRID]), "b": column([b for _, b in GRID])}


@pytest.mark.parametrize(
    "expr",
    [
        A * B - 3,
        A // B + A % B,
        (A + 2 * B) // (B + 1) * 3,
        (7 * A - 40) // B,
        (7 * A - 40) % B,
        dim_max(A, 2 * B) - dim_min(dim_min(A, 5), 3 * B - 7),
        quotient(A * (A + 1) * B, 2),
        multiply_unexpanded([A + 1, A + B, 3]) * B**3,
        A**5 - B**7,
    ],
    ids=str,
)
def test_values_for_many_designs_are_those_of_each(expr: Any) -> None:
    found = evaluate_integers(expr, COLUMNS, len(GRID))
    assert found.values.tolist() == [evaluate(expr, {"a": a, "b": b}) for a, b in GRID]
    assert found.low <= min(found.values) and max(found.values) <= found.high


@pytest.mark.parametrize("operator", ["==", "!=", "<", "<=", ">", ">=", "divisible"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (A, B),
        (A, 3),
        (12, B),
        (A * B, A + B),
        (quotient(A, B), 2),
        (A, quotient(B, 2)),
        (A - 3, B - 2),
        (A // (B - 2), 1),
        (A % B, 2),
    ],
    ids=str,
)
def test_assumptions_hold_for_many_designs_as_for_each(operator: str, left: Any, right: Any) -> None:
    assumption = Assumption(operator, left, right, Span(Source("", ""), 0, 0), False)

    def of_one(a: int, b: int) -> bool:
        try:
            return assumption.holds({"a": a, "b": b})
        except ZeroDivisionError:
            return False

    assert find_where_holds(assumption, COLUMNS, len(GRID)).tolist() == [of_one(a, b) for a, b in GRID]


def test_a_formula_without_an_integer_value_is_an_error() -> None:
    with pytest.raises(ArithmeticError, match="the value of a formula is not an integer"):
        evaluate_integers(quotient(A, B), COLUMNS, len(GRID))


# Searches -------------------------------------------------------------------------------------------------------------

NET = """
import std { Linear, relu }
dim batch
block Net(width = 8, layers = 2, wide = false, scale = 2.0, activation = none)(x [batch, width]) -> [batch, width] {
  inner = 2 * width if wide else width
  y = x |> layer[i]: Linear(width, width) for i in 0..layers |> up: Linear(width, inner)
  z = activation(y) if activation != none else y
  return z |> down: Linear(inner, width) |> * scale
}
model "net" = Net()
"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("search") / "net.arch"
    path.write_text(NET)
    return str(path)


def test_as_many_designs_are_kept(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_COLLECTED_DESIGNS", 9)
    assert archspec.search(spec, {"width": range(4, 13)}).tally.answers == 9
    with pytest.raises(archspec.ArchError, match="too many designs satisfy the conditions: the limit is 9"):
        archspec.search(spec, {"width": range(4, 14)})


def test_some_of_many_designs_are_compiled_to_check_them(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MAX_COMPILED", 3)
    compiled = compilations.Compiler.compile
    seen: list[Any] = []

    def noted(self: Any, values: Any) -> Any:
        seen.append(values.get("width"))
        return compiled(self, values)

    monkeypatch.setattr(compilations.Compiler, "compile", noted)
    archspec.search(spec, {"width": range(1, 9)}, best="width", all=True)
    assert seen[-3:] == [1, 4, 7]


def test_some_designs_are_drawn(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_DOTS", 4)
    found = archspec.search(spec, {"width": range(1, 20)}, best="width")
    assert found.plotted is not None and [dot.x for dot in found.plotted.others] == [1, 9, 17]
    with monkeypatch.context() as patch:
        patch.setattr("archspec.analysis.search.search.MAX_BLOCK_DESIGNS", 3)
        found = archspec.search(spec, {"width": range(1, 36)}, best="width")
    assert found.plotted is not None and [dot.x for dot in found.plotted.others] == [1, 17, 33]
    monkeypatch.setattr(search, "MAX_DOTS", 5)
    found = archspec.search(spec, {"width": range(1, 20)}, best="width")
    assert found.plotted is not None and [dot.x for dot in found.plotted.others] == [1, 5, 9, 13, 17]


def test_names_of_statements_are_new(tmp_path: Path) -> None:
    path = tmp_path / "net.arch"
    path.write_text(f'{NET}model "net-1" = Net(width = 3)\nmodel "net-2" = Net(width = 5)\n')
    lines = [design.line for design in archspec.search(f"{path}:net", {"width": [6, 7]}).designs]
    assert [line.split(" = ")[0] for line in lines] == ['model "net-3"', 'model "net-4"']


def test_reports_of_all_and_of_the_nearest(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def text(found: archspec.SearchResult) -> tuple[str, list[Any]]:
        made = page(found)
        return made.heading, list(made.blocks)

    title, blocks = text(archspec.search(spec, {"width": [4, 6], "activation": ["relu"]}, near="params = 99"))
    assert title.endswith(": the nearest to params = 99")
    lines = next(block for block in blocks if isinstance(block, list) and "model" in block[-1])
    assert len(lines) == 2 and lines[0].startswith('1  model "net-1" = ')
    other = archspec.search(spec, {"width": [4, 6]}, near="params = 99")
    found = other.replace(imports=("gelu", "tanh"))
    lines = next(block for block in text(found)[1] if isinstance(block, list) and "model" in block[-1])
    assert lines[0] == "import std { gelu, tanh }" and len(lines) == 3
    many = other.replace(found=1234)
    assert "the first 2 of 1,234 are listed; use --format csv for all" in text(many)[1][-1]
    some = many.replace(best=("width",))
    assert "the first 2 of 1,234 are listed; use another --where for fewer" in text(some)[1][-1]
    assert rows(other).rows[0]["width"] == 4


INTERNAL = r"this is a bug in archspec; please report it$"


def test_what_compiling_does_not_confirm_is_an_error(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vary = {"width": range(1, 9)}
    with monkeypatch.context() as patch:
        patch.setattr("archspec.analysis.search.regions.evaluate", lambda *_: 7)
        with pytest.raises(
            archspec.ArchError, match=rf"^error\[internal\]: the formula of `params` is wrong.*{INTERNAL}"
        ):
            archspec.search(spec, vary)
    with monkeypatch.context() as patch:
        patch.setattr(api, "compile_text_in_folder", lambda *_: [archspec.load(spec, width=3)])
        with pytest.raises(archspec.ArchError, match=f"the statement of net does not compile to the model.*{INTERNAL}"):
            archspec.search(spec, vary, best="width")
    with monkeypatch.context() as patch:
        condition = api.evaluate_expression
        patch.setattr(api, "evaluate_expression", lambda expr, design: "<" not in expr.text and condition(expr, design))
        with pytest.raises(archspec.ArchError, match=f"`width < 7` does not hold for net.*{INTERNAL}"):
            archspec.search(spec, vary, where="width < 7", best="width")


def test_designs_that_formulas_refuse_are_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.arch"
    path.write_text(NET.replace("  inner", '  require width > 4, "too narrow"\n  inner'))
    found = archspec.search(str(path), {"width": range(1, 13)})
    assert (found.tally.refused, found.tally.answers, found.tally.compiled) == (4, 8, 0)
    model = archspec.load(str(path))
    compiled = compilations.Compiler.compile

    def accepting(self: Any, values: Any) -> Any:
        return model if values.get("width", 8) <= 4 else compiled(self, values)

    monkeypatch.setattr(compilations.Compiler, "compile", accepting)
    with pytest.raises(archspec.ArchError, match=f"the formulas of net refuse a design that compiles: .*{INTERNAL}"):
        archspec.search(str(path), {"width": range(1, 13)})


def test_quantities_that_are_measured_only(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(NET)
    found: list[dict[str, Any]] = []

    def cost(model: Any, **named: Any) -> Any:
        found.append(named)
        return SimpleNamespace(activations=SimpleNamespace(bytes=77))

    monkeypatch.setattr(quantities, "cost", cost)
    named = (("attention", "eager"), ("dtype", "float16"))
    assert measure(model, Quantity("activation_bytes", "", (("batch", 3),), named)) == 77
    assert found == [{"dims": {"batch": 3}, "dtype": "float16", "attention": "eager"}]


def test_parameters_whose_use_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantities, "has_choices", lambda body: True)
    monkeypatch.setattr(quantities.ActiveParts, "of_all", lambda self, tensors: ["unknown"])
    model = load(NET)
    with pytest.raises(archspec.ArchError, match="cannot count the parameters of net that are used for one token"):
        measure(model, Quantity("active"))


# Other packages -------------------------------------------------------------------------------------------------------


def missing(name: str) -> Any:
    raise ImportError(name)


def test_parquet_files_have_the_rows(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = {
        "pyarrow": SimpleNamespace(table=lambda columns: repr(columns)),
        "pyarrow.parquet": SimpleNamespace(write_table=lambda table, file: file.write(table.encode())),
    }
    monkeypatch.setattr(result, "import_module", written.__getitem__)
    file = tmp_path / "all.parquet"
    arguments = ["search", spec, "--vary", "width=4..5", "--format", "parquet", "-o", str(file)]
    assert main(arguments) == 0
    assert file.read_text() == "{'width': [4, 5], 'params': [80, 120]}"
    monkeypatch.setattr(result, "import_module", missing)
    assert main([*arguments, "--force"]) == 2
    error = capsys.readouterr().err
    assert "Parquet output requires pyarrow, which is not installed" in error and "archspec-dsl[parquet]" in error


@pytest.mark.parametrize(
    ("numbers", "ticks", "places"),
    [
        ([5], ["5", "6"], [84]),
        ([0, 1], ["0", "1"], [84, 694]),
        ([0, 5], ["0", "1", "2", "3", "4", "5"], [84, 694]),
        ([0, 6], ["0", "2", "4", "6"], [84, 694]),
        ([-7, 12], ["-10", "-5", "0", "5", "10", "15"], [157.2, 620.8]),
        ([3, 54], ["0", "20", "40", "60"], [114.5, 633]),
        ([1_000_000, 2_500_000], ["1M", "1.5M", "2M", "2.5M"], [84, 694]),
        ([999, 1000], ["999", "1K"], [84, 694]),
        ([-3_000_000_000, 0], ["-3G", "-2G", "-1G", "0"], [84, 694]),
        ([0, 10**13], ["0", "2T", "4T", "6T", "8T", "10T"], [84, 694]),
        ([10**18, 10**18 + 10**15], ["1,000P", "1,000.2P", "1,000.4P", "1,000.6P", "1,000.8P", "1,001P"], [84, 694]),
    ],
)
def test_plots_have_round_numbers_on_their_axes(numbers: list[int], ticks: list[str], places: list[float]) -> None:
    drawn = svg(
        Plot("", "x", "y", (PlotPoint(numbers[0], 3),), tuple([PlotPoint(number, 4, "") for number in numbers]))
    )
    assert re.findall(r'<text x="[^"]*" y="420"[^>]*>([^<]*)<', drawn) == ticks
    assert re.findall(r'<text x="76" y="([^"]*)"[^>]*>([^<]*)<', drawn) == [("406", "3"), ("62", "4")]
    dots = [(float(x), float(y)) for x, y in re.findall(r'cx="([^"]*)" cy="([^"]*)"', drawn)]
    assert dots == [(place, 58) for place in places]
    assert re.findall(r'd="M([^ ]*) ([^ ]*)h0"', drawn) == [(f"{places[0]:g}", "402")]
    assert 'width="720" height="460"' in drawn


def test_plots_are_drawn_with_matplotlib(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []

    class Axes:
        def __getattr__(self, name: str) -> Any:
            return lambda *given, **named: calls.append((name, *given, *named.values()))

    axes = Axes()
    others, chosen = (PlotPoint(1, 2, ""), PlotPoint(3, 4, "")), (PlotPoint(5, 6, "best"),)
    found = Plot("title", "across", "up", others, chosen)
    assert draw(found, axes) is axes
    assert calls == [
        ("scatter", [1, 3], [2, 4], 4, "0.6", "designs"),
        ("scatter", [5], [6], 24, "chosen"),
        ("set_title", "title"),
        ("set_xlabel", "across"),
        ("set_ylabel", "up"),
    ]
    library = SimpleNamespace(subplots=lambda: (None, axes))
    monkeypatch.setattr(plot, "import_module", {"matplotlib.pyplot": library}.__getitem__)
    assert archspec.search(spec, {"width": [4, 5]}, best="width").plot() is axes
    monkeypatch.setattr(plot, "import_module", missing)
    with pytest.raises(archspec.ArchError, match="a plot requires matplotlib, which is not installed"):
        draw(found)
    with pytest.raises(archspec.ArchError, match="there is nothing to draw: no design satisfies the conditions"):
        archspec.search(spec, {"width": [4, 5]}, where="width > 5").plot()
