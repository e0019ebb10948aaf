"""Steps of the code that the tests of search cannot reach through public names."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import read_spec
from test_search import IRREGULAR, TABLE, VARIANTS

import archspec
from archspec.analysis.search import columns, search
from archspec.analysis.search.columns import apply_operator, choose_extreme, column
from archspec.analysis.search.report import rows
from archspec.analysis.search.search import find_pareto_front
from archspec.testing import main

numpy = pytest.importorskip("numpy")


def compiled(spec: str, values: dict[str, Any], sizes: dict[str, int] | None) -> tuple[int, ...] | None:
    """The figures of one design from compiling it; None if the spec refuses it."""
    try:
        model = archspec.load(spec, **values)
        if sizes is None:
            return (model.params.total, 0, 0)
        work = archspec.cost(model, dims=sizes).work
    except archspec.ArchError:
        return None
    assert isinstance(work.flops, int) and isinstance(work.elementwise, int)
    return (model.params.total, work.flops, work.elementwise)


def check_exactly(spec: str, vary: dict[str, Any], sizes: dict[str, int] | None) -> archspec.SearchResult:
    """Compares a search for everything with compiling every design."""
    dims = ", ".join(f"{name} = {size}" for name, size in (sizes or {}).items())
    where = ["params >= 0"]
    if sizes is not None:
        where += [f"flops({dims}) >= 0", f"elementwise({dims}) >= 0"]
    found = archspec.search(spec, vary, where=where)
    expected: list[dict[str, Any]] = []
    for values in product(*vary.values()):
        named = dict(zip(vary, values, strict=True))
        figures = compiled(spec, named, sizes)
        if figures is not None:
            expected.append({**named, **dict(zip(found.figures, figures, strict=False))})
    assert sorted(map(repr, rows(found).rows if found.every is not None else [])) == sorted(map(repr, expected))
    assert found.tally.refused == found.tally.designs - len(expected)
    return found


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("specs")
    for name, text in (("variants", VARIANTS), ("irregular", IRREGULAR)):
        (made / f"{name}.arch").write_text(text)
    return made


def in_folder(folder: Path, spec: str) -> str:
    return str(folder / f"{spec}.arch") if spec.isalpha() else spec


SMALL: dict[str, tuple[dict[str, list[int]], dict[str, int]]] = {
    "variants": (
        {"hidden": [6, 8, 12, 15, 16], "heads": [1, 2, 3, 4], "layers": [0, 1, 2, 5], "positions": [3, 4, 5, 16]},
        {"batch": 1, "seq": 4},
    ),
    "irregular": (
        {"width": [1, 2, 7, 12, 13, 20], "layers": [0, 1, 2, 4], "growth": [1, 2, 5], "parts": [1, 2, 3, 5]},
        {"batch": 3},
    ),
    "specs/std/examples.arch:small-decoder": (
        {"hidden": [16, 24, 32, 40], "heads": [1, 2, 4], "layers": [1, 2, 3], "vocab": [10, 50]},
        {"batch": 2, "seq": 8},
    ),
    "specs/std/examples.arch:small-vision": (
        {"hidden": [16, 24, 48], "heads": [1, 2, 4], "layers": [1, 3]},
        {"batch": 2},
    ),
}


@pytest.mark.parametrize("spec", ["irregular", "specs/std/examples.arch:small-vision"])
@settings(max_examples=2, deadline=None)
@given(st.data())
def test_a_search_finds_what_compiling_each_design_gives(folder: Path, spec: str, data: st.DataObject) -> None:
    check_a_random_space(folder, spec, data, 3)


@pytest.mark.slow  # compiles thousands of designs
@pytest.mark.parametrize("spec", SMALL)
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_larger_searches_find_what_compiling_gives(folder: Path, spec: str, data: st.DataObject) -> None:
    check_a_random_space(folder, spec, data, 4)


def check_a_random_space(folder: Path, spec: str, data: st.DataObject, most: int) -> None:
    choices, sizes = SMALL[spec]
    names = data.draw(st.lists(st.sampled_from(sorted(choices)), min_size=most - 1, max_size=most, unique=True))
    vary = {
        name: data.draw(st.lists(st.sampled_from(choices[name]), min_size=1, max_size=3, unique=True)) for name in names
    }
    check_exactly(in_folder(folder, spec), vary, data.draw(st.sampled_from([sizes, None])))


def test_what_formulas_give_at_several_regions_is_what_compiling_gives(folder: Path) -> None:
    vary = {"width": [2, 7, 12, 13, 20], "layers": [0, 1, 4], "growth": [1, 5], "parts": [1, 3]}
    found = check_exactly(in_folder(folder, "irregular"), vary, {"batch": 3})
    assert 0 < found.tally.compiled < found.tally.designs  # some have formulas, some have not
    assert found.tally.refused


OPEN_INDEX = "no formula: an index depends on an open hyperparameter"


@pytest.mark.parametrize(
    ("lines", "refused", "compiled", "reason"),
    [
        ("return x + embedding(arange(seq), .table)", 4, 0, None),
        ("return x + embedding(arange(seq) + 1, .table)", 6, 0, None),
        ("return x + embedding(arange(seq) * 2, .table)", 8, 0, None),
        ("return x + embedding(min(arange(seq), d - 1), .table)", 0, 12, OPEN_INDEX),
        ("return x + embedding(arange(seq) + (seq - d), .table)", 10, 12, OPEN_INDEX),
        (
            "g = .state\n  for t in 0..d * seq { g = tanh(g) }\n  return x + g * pick(axis = 0, index = 0)(.table)",
            0,
            12,
            OPEN_INDEX,
        ),
        (
            "g = .state\n  for t in 0..seq { g = g + pick(axis = 0, index = t)(.table) }\n  return x + g",
            4,
            4,
            "no formula for some designs because of `pick(axis = 0, index = t)(.table)` ",
        ),
        (
            "return x |> a: Linear(n, n // d * d) |> + embedding(arange(1), .table)",
            8,
            8,
            "no formula for some designs because of `n // d` ",
        ),
    ],
)
def test_indices_and_sizes_that_some_designs_have(
    tmp_path: Path, lines: str, refused: int, compiled: int, reason: str | None
) -> None:
    path = tmp_path / "net.arch"
    path.write_text(TABLE.format(lines=lines))
    found = check_exactly(str(path), {"n": [2, 3], "d": [1, 2, 3, 4, 7, 8]}, {"batch": 1, "seq": 3})
    assert (found.tally.refused, found.tally.compiled) == (refused, compiled)
    assert (found.tally.reason or "").startswith(reason or "") and bool(found.tally.reason) is bool(reason)


@pytest.mark.parametrize(
    ("vary", "compiled", "reason"),
    [
        ({"n": [4, 6, 8], "d": [1, 2], "k": [3, 4, 5]}, 0, None),
        ({"n": [4, 6, 8], "d": [2, 4], "k": [3, 4, 5]}, 3, "no formula for some designs because of `n // d` "),
        ({"n": [4, 6], "d": [1, 2], "k": [1, 2, 3]}, 8, "no formula for some designs because of `for i in 0..k` "),
        ({"n": [4, 6], "d": [1, 2], "extra": [0, 1, 2]}, 4, None),  # those without any
    ],
)
def test_designs_for_which_a_formula_does_not_hold_are_compiled(
    tmp_path: Path, vary: dict[str, Any], compiled: int, reason: str | None
) -> None:
    path = tmp_path / "net.arch"
    path.write_text(
        """
import std { Linear }
dim batch
block Net(n = 8, d = 2, k = 4, extra = 1)(x [batch, n]) -> [batch, n] {
  h = x |> a: Linear(n, n // d * d)
  for i in 0..k { l[i]: unused Linear(n, 1 if i < 2 else n) }
  for i in 0..extra { e[i]: unused Linear(n, i + 1) }
  return h
}
model "net" = Net()
"""
    )
    found = check_exactly(str(path), vary, {"batch": 1})
    assert found.tally.compiled == compiled
    assert reason is None or (found.tally.reason or "").startswith(reason)


def test_formulas_start_from_designs_if_the_model_has_no_integer(tmp_path: Path) -> None:
    path = tmp_path / "net.arch"
    path.write_text(
        """
import std { Linear }
dim batch
block Net(n = 4, inner = none, more = 0)(x [batch, n]) -> [batch, n] {
  wide = inner if inner != none else 4 * n
  return x |> up: Linear(n, wide + more) |> down: Linear(wide + more, n)
}
model "net" = Net()
"""
    )
    for vary in ({"n": [3, 4], "inner": [1, 5, 6]}, {"n": [3, 4], "more": [1, 2, 7]}):
        assert check_exactly(str(path), vary, {"batch": 2}).tally.compiled == 0


def test_what_is_required_in_one_case_is_not_required_in_others(tmp_path: Path) -> None:
    path = tmp_path / "net.arch"
    path.write_text(
        """
dim batch
block Net(n = 12, d = 4)(x [batch, n]) -> [batch, n] {
  if d > 2 {
    require n % d == 0
  }
  w: param [n]
  return x * .w
}
model "net" = Net()
"""
    )
    assert check_exactly(str(path), {"n": [3, 4, 6, 9], "d": [1, 2, 3, 4]}, None).tally.refused == 4


def test_a_warning_does_not_keep_a_design_from_being_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.arch"
    path.write_text(
        """
dim batch
block Net(n = 4, d = 2, spare = 1)(x [batch]) -> [batch] {
  require n % d == 0
  table: unused param [n, d]
  return x
}
model "net" = Net()
"""
    )
    assert check_exactly(str(path), {"n": [4, 6], "d": [1, 4]}, None).tally.refused == 1


def test_lists_booleans_blocks_and_expressions_vary(folder: Path) -> None:
    spec = in_folder(folder, "variants")
    found = archspec.search(
        spec,
        {
            "Layer": ["BertLayer", "PreNormLayer"],
            "hidden": "8..16:4",
            "pooler": [True, False],
            "heads": "hidden // 4 if pooler else 2",
            "layers": "0..2",
        },
        where="flops(batch = 1, seq = 4) >= 0",
    )
    table = rows(found).rows
    assert len(table) == 2 * 3 * 2 * 3 == found.tally.answers
    for row in table:
        assert row["heads"] == (row["hidden"] // 4 if row["pooler"] else 2)
        values = {name: row[name] for name in found.varied}
        figures = compiled(spec, values, {"batch": 1, "seq": 4})
        assert figures is not None and figures[:2] == (row["params"], row["flops(batch = 1, seq = 4)"])


SCANNED = read_spec("search_internals_scanned")


def macs(n: int, k: int) -> int:
    """The multiplications for two sequences of three positions: of 1 + ... + k layers and a head, and of a loop."""
    return 2 * 3 * (k * (k + 1) // 2 + 1) * n * n + 3 * n * n


@pytest.mark.parametrize(
    ("quantity", "value", "reason"),
    [
        ("params", lambda n, k: k * (k + 1) // 2 * (n * n + n) + n * n + 2 * n, None),
        ("frozen", lambda n, k: n, None),
        ("trainable", lambda n, k: k * (k + 1) // 2 * (n * n + n) + n * n + n, None),
        ("macs(batch = 2, seq = 3)", macs, None),
        ('params("stack.*")', lambda n, k: k * (k + 1) // 2 * (n * n + n), None),
        ('params("head.[bc]*")', lambda n, k: n, None),
        ('params("[a-s]*.weight")', None, "may select single iterations of a loop with an open iteration count"),
        ('params("stack.?.l.0.*")', None, "may select single iterations of a loop with an open iteration count"),
        ('params("stack.[1-9]*")', None, "may select single iterations of a loop with an open iteration count"),
        ('params("head*")', None, "selects an alias of a tied tensor, but not its canonical name"),
        ("active", lambda n, k: k * (k + 1) // 2 * (n * n + n) + n * n + 2 * n, None),
    ],
)
def test_sums_over_loops_are_those_of_compiling(
    tmp_path: Path, quantity: str, value: Callable[[int, int], int] | None, reason: str | None
) -> None:
    path = tmp_path / "net.arch"
    path.write_text(SCANNED)
    found = archspec.search(path, {"n": [3, 4, 6], "k": [1, 3]}, where=f"{quantity} >= 0")
    assert found.tally.answers == 6
    assert found.tally.compiled == (6 if reason else 0)
    assert (reason or "") in (found.tally.reason or "")
    for row in rows(found).rows:
        model = archspec.load(path, n=row["n"], k=row["k"])
        if value is not None:
            assert row[quantity] == value(row["n"], row["k"])
        if quantity.startswith("params("):
            selected = model.count(rules=[archspec.SelectionRule(True, quantity[8:-2])]).selection.total
            assert row[quantity] == selected


INTEGERS = st.one_of(st.integers(-9, 9), st.integers(-(2**70), 2**70), st.sampled_from([2**63 - 1, -(2**63), 2**62]))


SIGNS = ["+", "-", "*", "//", "%", "==", "!=", "<", "<=", ">", ">="]


@settings(deadline=None)
@given(
    st.lists(st.tuples(INTEGERS, INTEGERS), min_size=1, max_size=8),
    st.sampled_from(SIGNS),
    st.sampled_from(["", "left", "right"]),
)
def test_arithmetic_of_columns_is_exact(pairs: list[tuple[int, int]], sign: str, scalar: str) -> None:
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    if scalar == "left":
        left = [left[0]] * len(left)
    if scalar == "right":
        right = [right[0]] * len(right)
    if sign in ("//", "%"):
        right = [b or 7 for b in right]
    one = left[0] if scalar == "left" else column(left)
    found = apply_operator(sign, one, right[0] if scalar == "right" else column(right))
    expected = [eval(f"{a} {sign} {b}") for a, b in zip(left, right, strict=True)]
    assert isinstance(found, columns.Column) and found.values.tolist() == expected
    assert found.low <= min(expected) and max(expected) <= found.high


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(INTEGERS, INTEGERS, st.booleans()), min_size=1, max_size=8), st.integers(0, 4))
def test_choices_and_powers_of_columns_are_exact(rows: list[tuple[int, int, bool]], exponent: int) -> None:
    left, right, first = ([*values] for values in zip(*rows, strict=True))
    one, other, chosen = column(left), column(right), columns.flags(numpy.array(first))
    for found, expected in (
        (choose_extreme("min", [one, other]), [*map(min, left, right)]),
        (choose_extreme("max", [one, other, 5]), [max(*pair, 5) for pair in zip(left, right, strict=True)]),
        (columns.where(chosen, one, other), [a if is_first else b for a, b, is_first in rows]),
        (columns.concatenate([one, other]), left + right),
        (columns.negate(one), [-value for value in left]),
        (apply_operator("**", one, exponent), [value**exponent for value in left]),
    ):
        assert isinstance(found, columns.Column) and found.values.tolist() == expected
        assert found.low <= min(expected) and max(expected) <= found.high


@settings(deadline=None)
@given(st.integers(1, 4).flatmap(lambda k: st.lists(st.tuples(*[st.integers(0, 4)] * k), min_size=1, max_size=40)))
def test_a_front_is_what_no_other_exceeds(points: list[tuple[int, ...]]) -> None:
    def exceeds(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        return a != b and all(x >= y for x, y in zip(a, b, strict=True))

    best = [p for p in dict.fromkeys(points) if not any(exceeds(q, p) for q in points)]
    found, counts = find_pareto_front(numpy.array(points), numpy.ones(len(points), dtype=int))
    assert found.tolist() == [points.index(p) for p in best]
    assert counts.tolist() == [points.count(p) for p in best]


def test_the_best_designs_are_those_that_no_other_exceeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_BLOCK_DESIGNS", 7)
    vary = {"hidden": "64..192:16", "layers": "1..6", "heads": [1, 2, 4, 8]}
    conditions = ["params < 8M", "flops(batch = 1, seq = 32) < 60M"]
    best = ["layers", "-params", "heads * hidden"]
    found = archspec.search("bert-base-uncased", vary, where=conditions, best=best, all=True)
    every = [(row["layers"], -row["params"], row["heads"] * row["hidden"]) for row in rows(found).rows]
    assert len(every) == found.tally.answers

    def exceeds(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        return a != b and all(x >= y for x, y in zip(a, b, strict=True))

    expected = {p: every.count(p) for p in every if not any(exceeds(q, p) for q in every)}
    figures = [tuple({**d.values, **d.figures}[name] for name in best) for d in found.designs]
    assert dict(zip(figures, [d.equal for d in found.designs], strict=True)) == expected


def test_the_nearest_designs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_BLOCK_DESIGNS", 5)
    vary = {"hidden": "12..240:12", "layers": "1..5"}
    found = archspec.search("bert-base-uncased", vary, near="params = 5.1M")
    every = rows(archspec.search("bert-base-uncased", vary)).rows
    expected = sorted(abs(row["params"] - 5_100_000) for row in every)[:10]
    assert [abs(design.figures["params"] - 5_100_000) for design in found.designs] == expected


def test_a_number_that_compiling_does_not_confirm_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from archspec.analysis.search import api

    monkeypatch.setattr(api, "measure", lambda model, quantity: 5)
    with pytest.raises(archspec.ArchError, match="but the search found"):
        archspec.search("bert-base-uncased", {"layers": "1..9"}, best="layers")


def written(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(["search", *arguments]) == status, capsys.readouterr().err
    return capsys.readouterr().out


def test_numpy_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(columns, "import_module", missing)
    assert main(["search", "bert-base-uncased", "--vary", "layers=1..3"]) == 2
    assert "pip install 'archspec-dsl[search]'" in capsys.readouterr().err


def test_an_interrupted_search_prints_what_was_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(search, "MAX_BLOCK_DESIGNS", 4)
    examine = search._Search.examine  # pyright: ignore[reportPrivateUsage]
    calls: list[int] = []

    def interrupted(self: Any, *arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        examine(self, *arguments)

    monkeypatch.setattr(search._Search, "examine", interrupted)  # pyright: ignore[reportPrivateUsage]
    out = written(capsys, "bert-base-uncased", "--vary", "layers=1..20", "--best", "layers", status=130)
    assert (
        "\ninterrupted: the designs found so far are listed\n"
        "8 of 20 designs: 0 refused by the spec, 8 satisfying the conditions\n"
    ) in out
    assert 'model "bert-base-uncased-1" = Bert(layers = 8)' in out
