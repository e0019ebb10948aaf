"""Steps of searches: operands of columns, formulas for many designs, processes, plots, and what is refused."""

import re
import signal
from concurrent.futures import Future
from fractions import Fraction
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from small import load

import archspec
from archspec import Assumption, Plot, PlotPoint, Source, Span
from archspec.analysis.search import api, compilations, plot, quantities, result, search
from archspec.analysis.search.columns import (
    Column,
    InexactError,
    apply_operator,
    column,
    flags,
    logical_not,
    negate,
    where,
)
from archspec.analysis.search.conditions import read_expression
from archspec.analysis.search.plot import draw, svg
from archspec.analysis.search.polynomials import evaluate_integers, evaluate_ratio, find_where_holds
from archspec.analysis.search.quantities import Quantity, measure
from archspec.analysis.search.report import page, rows
from archspec.analysis.search.search import _pack_values, find_pareto_front
from archspec.analysis.search.space import Designs, plain_value
from archspec.core.algebra import dim_max, dim_min, evaluate, multiply_unexpanded, symbol
from archspec.core.algebra.polynomial import ratio as quotient
from archspec.testing import main

numpy = pytest.importorskip("numpy")

# Columns --------------------------------------------------------------------------------------------------------------


def listed(found: Any) -> list[Any]:
    assert isinstance(found, Column)
    return found.values.tolist()


def truths(*values: bool) -> Column:
    return flags(numpy.array(values))


def test_operands_that_all_designs_share_are_on_either_side() -> None:
    numbers = column([1, 2, 3])
    assert listed(apply_operator("<", 2, numbers)) == listed(apply_operator(">", numbers, 2)) == [False, False, True]
    assert listed(apply_operator(">=", Fraction(5, 2), numbers)) == [True, True, False]
    assert listed(apply_operator("==", 2, numbers)) == [False, True, False]
    assert listed(apply_operator("!=", 2, numbers)) == [True, False, True]
    assert listed(apply_operator("-", 2, numbers)) == [1, 0, -1] and listed(negate(numbers)) == [-1, -2, -3]
    mixed = truths(True, False, True)
    for sign, other, expected in (
        ("and", False, [False] * 3),
        ("and", True, [True, False, True]),
        ("or", True, [True] * 3),
        ("or", False, [True, False, True]),
    ):
        assert listed(apply_operator(sign, mixed, other)) == listed(apply_operator(sign, other, mixed)) == expected
    assert listed(apply_operator("or", mixed, truths(False, False, True))) == [True, False, True]
    assert listed(apply_operator("and", mixed, truths(True, True, False))) == [True, False, False]
    assert listed(logical_not(mixed)) == [False, True, False] and logical_not(False) is True
    assert listed(where(mixed, numbers, 9)) == [1, 9, 3] and where(False, numbers, 9) == 9
    assert apply_operator("**", Fraction(1, 2), -2) == 4 and apply_operator("**", 2, 64) == 2**64
    assert apply_operator("and", True, False) is False and apply_operator("or", False, True) is True
    assert listed(apply_operator("**", numbers, 64)) == [1, 2**64, 3**64] and listed(
        apply_operator("**", numbers, 0)
    ) == [1, 1, 1]
    assert listed(apply_operator("**", 2, column([3, 3]))) == [8, 8] and listed(
        apply_operator("**", 2, column([0, 0]))
    ) == [1, 1]


NUMBERS, TRUTHS = (1, 2), (True, False)


@pytest.mark.parametrize(
    ("compute", "problem", "text"),
    [
        (lambda n, t: logical_not(n), TypeError, "expected a boolean"),
        (lambda n, t: logical_not(3), TypeError, "expected a boolean"),
        (lambda n, t: where(n, 1, 2), TypeError, "expected a boolean"),
        (lambda n, t: apply_operator("<", n, True), TypeError, "expected two numbers"),
        (lambda n, t: apply_operator("<", t, 3), TypeError, "expected two numbers"),
        (lambda n, t: apply_operator("<", n, "text"), TypeError, "expected two numbers"),
        (lambda n, t: apply_operator("and", n, t), TypeError, "expected two booleans"),
        (lambda n, t: apply_operator("or", t, n), TypeError, "expected two booleans"),
        (lambda n, t: apply_operator("+", n, t), TypeError, "expected an integer, found a boolean"),
        (lambda n, t: apply_operator("+", n, True), TypeError, "expected an integer"),
        (lambda n, t: apply_operator("+", n, "text"), TypeError, "expected an integer"),
        (lambda n, t: apply_operator("+", "text", 1), TypeError, "expected a number"),
        (lambda n, t: apply_operator("+", True, 1), TypeError, "expected a number"),
        (lambda n, t: apply_operator("and", 1, True), TypeError, "expected a boolean"),
        (lambda n, t: apply_operator("*", n, Fraction(1, 2)), InexactError, "only integers can be combined"),
        (lambda n, t: apply_operator("/", n, 2), InexactError, "`/` is not exact"),
        (lambda n, t: apply_operator("**", 2, 65), InexactError, "expected an integer exponent up to 64"),
        (lambda n, t: apply_operator("**", 2, Fraction(1, 2)), InexactError, "expected an integer exponent up to 64"),
        (lambda n, t: apply_operator("**", n, 65), InexactError, "expected an exponent from 0 to 64"),
        (lambda n, t: apply_operator("**", n, -1), InexactError, "expected an exponent from 0 to 64"),
        (lambda n, t: apply_operator("**", 2, n), InexactError, "expected an exponent from 0 to 64"),
        (lambda n, t: apply_operator("//", n, 0), ZeroDivisionError, ""),
    ],
)
def test_operands_of_wrong_types_are_refused(compute: Any, problem: type[Exception], text: str) -> None:
    with pytest.raises(problem, match=f"^{text}".replace("/", "\\/")):
        compute(column(NUMBERS), truths(*TRUTHS))


def test_conditions_that_are_the_same_for_all_designs() -> None:
    designs = Designs(numpy.arange(2), {"n": column([3, 4])})
    assert len(designs.where(True)) == 2 and len(designs.where(False)) == 0
    assert designs.where(truths(False, True)).value("n").item(0) == 4
    for condition in (column([0, 1]), 1, None):
        with pytest.raises(TypeError, match="expected a condition"):
            designs.where(condition)


def test_values_of_single_designs() -> None:
    assert plain_value([column([3, 4]), Fraction(1, 2), True], 1) == [4, 0.5, True]
    assert plain_value(truths(False, True), 1) is True
    shared = Quantity("hyperparameter", "eps")
    assert (
        _pack_values(shared, [0.5, 0.5]) == Fraction(1, 2)
        and _pack_values(shared, ["a", "a"]) == _pack_values(shared, ["a"]) == "a"
    )
    assert listed(_pack_values(shared, [3, 4])) == [3, 4] and listed(_pack_values(shared, [True, False])) == [
        True,
        False,
    ]
    with pytest.raises(archspec.ArchError, match="`eps` is not an integer in all designs"):
        _pack_values(shared, [0.5, 0.25])


def test_a_front_of_nothing_is_empty() -> None:
    found, counts = find_pareto_front(numpy.zeros((0, 2), dtype=int), numpy.ones(0, dtype=int))
    assert found.tolist() == counts.tolist() == []


def test_formulas_have_values_for_many_designs() -> None:
    a, b = symbol("a"), symbol("b")
    names = {"a": column([1, 6, 8]), "b": column([4, 2, 8])}
    assert evaluate_integers(dim_max(a, b) * 2 - dim_min(a, 5), names, 3).values.tolist() == [7, 7, 11]
    assert evaluate_integers(quotient(a * (a + 1), 2), names, 3).values.tolist() == [1, 21, 36]
    assert evaluate_integers(multiply_unexpanded([a + 1, a + b]) * b, names, 3).values.tolist() == [40, 112, 1152]
    assert evaluate_integers(5, names, 3).values.tolist() == [5] * 3
    with pytest.raises(ArithmeticError, match="the value of a formula is not an integer"):
        evaluate_integers(quotient(a, b), names, 3)
    found = evaluate_ratio(a // (b - 2) + a % (b - 2), names)
    assert found.undefined.tolist() == [False, True, False]


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


QUANTITIES = (
    "params, role_params, trainable, frozen, active, flops, macs, elementwise, "
    "weight_bytes, activation_bytes, cache_bytes"
)


@pytest.mark.parametrize(
    ("text", "at", "message", "help"),
    [
        ("min(3) < 4", "min(3)", "`min` expects two or more numbers", None),
        ("2 < max()", "max()", "`max` expects two or more numbers", None),
        ("max(1, a = 2) < 3", "max(1, a = 2)", "`max` expects two or more numbers", None),
        ("params(3)", "3", '`params` expects one pattern in quotes: `params("...")`', None),
        ('params("")', '""', '`params` expects one pattern in quotes: `params("...")`', None),
        ('params("a", "b")', '"b"', '`params` expects one pattern in quotes: `params("...")`', None),
        ("role_params", "role_params", '`role_params` expects one role in quotes: `role_params("...")`', None),
        ("role_params() < 3", "role_params()", '`role_params` expects one role in quotes: `role_params("...")`', None),
        ("trainable(3)", "3", "`trainable` expects named arguments", None),
        ("trainable(a = 3)", "a = 3", "unknown argument `a` of `trainable`", None),
        ('weight_bytes(dtyp = "fp8")', 'dtyp = "fp8"', "unknown argument `dtyp` of `weight_bytes`", None),
        ("flops(batch = 0)", "batch = 0", "`batch` expects a positive integer", None),
        ("flops(batch = true)", "batch = true", "`batch` expects a positive integer", None),
        ("flops(batch = 1.5)", "batch = 1.5", "`batch` expects a positive integer", None),
        ("flops(batch = hidden)", "batch = hidden", "`batch` expects a positive integer", None),
        ("cache_bytes", "cache_bytes", "`cache_bytes` expects a number of positions: `cache_bytes(past = 1024)`", None),
        ("cache_bytes(past = true)", "past = true", "`past` expects an integer of at least 0, found true", None),
        ("cache_bytes(past = -1)", "past = -1", "`past` expects an integer of at least 0, found -1", None),
        (
            "weight_bytes(dtype = int8)",
            "dtype = int8",
            "`dtype` is one of float64, float32, float16, bfloat16, fp8, int8, int4; found int8",
            None,
        ),
        (
            'activation_bytes(attention = "fast")',
            'attention = "fast"',
            "`attention` is one of flash, math; found fast",
            None,
        ),
        ("hiden < 3", "hiden", "unknown name `hiden`", "did you mean `hidden`?"),
        ("1 if true else z", "z", "unknown name `z`", f"hyperparameters: layers, hidden; quantities: {QUANTITIES}"),
        ("zz(3) < 1", "zz", "unknown quantity `zz`", f"quantities: {QUANTITIES}"),
        ("mins(3, 4) < 1", "mins", "unknown quantity `mins`", "did you mean `min`?"),
        ("layers[0] < 3", "layers[0]", "expected numbers, names, operators and quantities", None),
        ("layers = 3", "=", "expected the end of the line after `layers`, found `=`", "use `==` for equality"),
        ("1 < 30Q", "30Q", "expected a number or name, found `30Q`", "use K, M, G or B after a number, as in `30M`"),
        ("1 < 30 M", "M", "expected the end of the line after `30`, found `M`", None),
    ],
)
def test_what_is_wrong_with_an_expression(text: str, at: str, message: str, help: str | None) -> None:
    with pytest.raises(archspec.ArchError) as caught:
        read_expression(text, "--where", ["layers"], ["hidden"])
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.help) == ("usage", message, help)
    assert found.span is not None and found.span.source.text[found.span.start : found.span.end] == at


@pytest.mark.parametrize(
    ("text", "read", "varied", "used"),
    [
        ("3K + 2M < 1G or 1B == 1.5K", "3000 + 2000000 < 1000000000 or 1000000000 == 1500", [], []),
        ("0.0005K < 1", "0.5 < 1", [], []),
        ("layers if 1 < 2 else -layers", "layers if 1 < 2 else -layers", ["layers"], []),
        ("hidden in [layers, params, params]", "hidden in [layers, params, params]", ["layers"], ["hidden", "params"]),
        ("min(layers, flops(batch = 2)) < 3", None, ["layers"], ["flops(batch = 2)"]),
        ("cache_bytes(past = 0, batch = 1)", None, [], ["cache_bytes(batch = 1, past = 0)"]),
        ('weight_bytes(dtype = "float32") < weight_bytes', None, [], ["weight_bytes"]),
        (
            'activation_bytes(batch = 2, attention = "math", dtype = "float16")',
            None,
            [],
            ['activation_bytes(batch = 2, attention = "math", dtype = "float16")'],
        ),
    ],
)
def test_what_an_expression_uses(text: str, read: str | None, varied: list[str], used: list[str]) -> None:
    found = read_expression(f" {text} ", "--where", ["layers"], ["hidden"])
    assert (str(found), found.source.text) == (text, read or text)
    assert (found.names, [str(quantity) for quantity in found.quantities]) == (varied, used)


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


# Processes ------------------------------------------------------------------------------------------------------------


class Inline:
    """One process that computes what it is given at once, in the place of several."""

    def __init__(self, jobs: int) -> None:
        assert jobs == 2
        self._processes: dict[int, Any] = {}
        self.sizes: list[int] = []
        self.signals: set[Any] = set()
        self.calls: list[Any] = []

    def submit(self, function: Any, /, *args: Any) -> Future[Any]:
        self.sizes.append(len(args[1]))
        self.signals.add(signal.getsignal(signal.SIGINT))
        future: Future[Any] = Future()
        future.set_result(function(*args))
        return future

    def shutdown(self, wait: bool, cancel_futures: bool) -> None:
        self.calls.append((wait, cancel_futures))


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[Inline]:
    made: list[Inline] = []

    def executor(jobs: int) -> Inline:
        made.append(Inline(jobs))
        return made[-1]

    monkeypatch.setattr(compilations, "_create_executor", executor)
    return made


PARAMS = [Quantity("params")]


def test_processes_measure_the_same(spec: str, processes: list[Inline]) -> None:
    compiler = api.Compiler(archspec.pipeline.locate.locate(spec), {})
    designs = [{"width": width} for width in range(-1, 34)]
    expected = [compiler.measure(values, PARAMS) for values in designs]
    assert [type(row) for row in expected[:2]] == [compilations.Refusal] * 2 and expected[2:4] == [[8], [24]]
    before = signal.getsignal(signal.SIGINT)
    with compilations.open_pool(compiler, 2) as pool:
        assert list(pool.measure(designs[:16], PARAMS)) == expected[:16] and not processes
        assert list(pool.measure(designs, PARAMS)) == expected
        assert list(pool.measure(designs[:17], PARAMS)) == expected[:17]
    assert [made.sizes for made in processes] == [[16, 16, 3, 16, 1]]
    assert processes[0].calls == [(False, True)]
    assert processes[0].signals == {signal.SIG_IGN} and signal.getsignal(signal.SIGINT) == before
    with compilations.open_pool(compiler, 1) as pool:
        assert list(pool.measure(designs, PARAMS)) == expected and len(processes) == 1


def test_errors_of_processes_are_raised(spec: str, processes: list[Inline]) -> None:
    compiler = api.Compiler(archspec.pipeline.locate.locate(spec), {})
    designs: list[dict[str, Any]] = [{"width": width} for width in range(2, 20)] + [{"hight": 3}]
    with compilations.open_pool(compiler, 2) as pool, pytest.raises(archspec.ArchError, match="hight"):
        list(pool.measure(designs, PARAMS))


def test_signals_are_left_to_the_main_thread() -> None:
    before, found = signal.getsignal(signal.SIGINT), list[Any]()

    def inside() -> None:
        with compilations._interrupts_ignored():
            found.append(signal.getsignal(signal.SIGINT))

    thread = Thread(target=inside)
    thread.start()
    thread.join()
    inside()
    assert found == [before, signal.SIG_IGN] and signal.getsignal(signal.SIGINT) == before
    try:
        compilations._ignore_interrupts()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    executor: Any = compilations._create_executor(3)
    assert executor._max_workers == 3 and executor._initializer is compilations._ignore_interrupts
    assert executor._mp_context.get_start_method() == "spawn"
    executor.shutdown()


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
