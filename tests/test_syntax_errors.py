"""What is said about text that does not parse: one plain message a mistake, all of them in one run, and quickly."""

import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archspec.resources import specs_root
from archspec.source import Report, Source
from archspec.syntax import store, tree
from archspec.syntax.parse import parse

SPECS = [path.read_text(encoding="utf-8") for path in sorted(Path(specs_root()).rglob("*.arch"))]
BODY = "block A(h)(x [n, h]) -> [n, h] {\n%s\n}\n"


def parsed(text: str) -> tuple[tree.File, Report]:
    report = Report()
    return parse(Source("test.arch", text), report), report


def messages(text: str) -> list[str]:
    return [d.message for d in parsed(text)[1].diagnostics]


# Messages -------------------------------------------------------------------------------------------------------------

STATEMENTS = r"""
x =
x = a +
x = a b
x = a = b
x += 1
a, 3 = x
a.b = Linear(h, h)(x)
a.b := Linear(h, h)(x)
weight = param [h]
weight param [h]
weight: 3
weight: param
weight: param int = 3
weight: float param [h]
weight: frozen frozen param [h]
a..b: Linear(h)
a.""."x.y": Linear(h)
for.x: Linear(h)
in.weight: param [h]
x = for
for = 3
x = f(if = 3)
x = if a { 1 } else { 2 }
x = x.weight + 1
x = x[0:3]
x = f(a b)
x = f(a, , b)
x = f(a)(b)(c)
x = a < b < c
x = a && b
x = a || b
x = !a
x = a ? b : c
x = a ^ 2
x = a @ b
x = a; y = b
x = 1.
x = .5
x = 3x
x = 1e999
x = 1234567890123456789
x = 'text'
x = “text”
x = "a\n"
x = "text
x = naïve
x = ...
x = { a: 1 }
x = y -> z
x = a // 2 is a half
// the rest
return
retrun x
def f(x)
let x = 3
elif a { }
while a { }
if a = b { }
if a:
for i in range(n) { }
for i in n { }
for i = 0..n { }
x = a |>
x = x |> f f
x = x |> + a + b
x = x |> f else g
tie .a = .b
tie a: b
tie a
role
role norm for
require
require a = b
require a, b
w: param [h] = x |> f
dim k
import std { A }
""".strip().split("\n")


def test_slips_in_statements(golden: Callable[[str, str], None]) -> None:
    shown: list[str] = []
    for line in STATEMENTS:
        file, report = parsed(BODY % f"  before = x\n  {line}\n  return before")
        assert len(report.diagnostics) == 1, line
        kept = file.items[0]
        assert isinstance(kept, tree.Definition)
        assert isinstance(kept.body[0], tree.Bind) and isinstance(kept.body[-1], tree.Return), line
        assert len(file.broken) == 1 or "//" in line, line
        shown.append(report.diagnostics[0].render())
    golden("syntax/statements.txt", "\n\n".join(shown) + "\n")


ITEMS = """
fn f(x [n]) { return x }
fn f(x [n]) -> { return x }
fn f -> [n] { return x }
fn f(a b)(x [n]) -> [n] { return x }
fn f(a)(b)(x [n]) -> [n] { return x }
fn f(a, x [n])(y [n]) -> [n] { return x }
fn f(a)(x [n], y) -> [n] { return x }
fn f(x [n], y) -> [n] { return x }
fn f(a int)(x [n]) -> [n] { return x }
fn f(a)(..B) -> [n] { return x }
fn f(x [n] = 3) -> [n] { return x }
fn f(x float [n]) -> [n] { return x }
fn f(x [n]) -> n { return x }
fn f(x: [n]) -> [n] { return x }
fn f(x [n]) -> [n] = x
fn 3(x [n]) -> [n] { return x }
blok F(x [n]) -> [n] { return x }
def f(x [n]) -> [n] { return x }
class F(x [n]) -> [n] { return x }
import std
import std { A B }
import std { A as }
import std.norm { A }
from std import A
export { A }
dim a b
dim
model bert = Bert
model "bert" Bert
model "bert" = Bert { params == 3 }
model "bert" = Bert(1 2) { expect }
x = 3
return x
expect params == 3
)
""".strip().split("\n")


def test_slips_in_items(golden: Callable[[str, str], None]) -> None:
    shown: list[str] = []
    for line in ITEMS:
        file, report = parsed(f"dim before\n{line}\n\ndim after\n")
        assert [type(item) for item in (file.items[0], file.items[-1])] == [tree.Dims, tree.Dims], line
        assert report.failed, line
        shown.append("\n\n".join(d.render() for d in report.diagnostics))
    golden("syntax/items.txt", "\n\n".join(shown) + "\n")


FILES = {
    "a bracket of a head is not closed": """
block A(h, n
       (x [n, h]) -> [n, h] {
  y = = 3
  return y
}
block B(h)(x [n, h]) -> [n] { return x }
""",
    "a bracket of a head is not closed on the line of its brace": """
block A(h, n(x [n, h]) -> [n, h] {
  return = x
}
""",
    "brackets in statements": """
block A(h)(x [n, h]) -> [n, h] {
  a = f(g(x)
    |> gelu
    |> + x
  b = g([1, 2)
  c = g((1, 2]
  d = e)
  if f(x { e = 3 }
  g = [1, 2
  return x }
""",
    "a brace is missing inside": """
block A(h)(x [n, h]) -> [n, h] {
  for i in 0..3 {
    y = 3
  return y

## Well documented.
block B(h)(x [n, h]) -> [n] { return x }
""",
    "a brace is missing at the end": """
block A(h)(x [n, h]) -> [n, h] {
  return x
""",
    "a brace too many": """
block A(h)(x [n, h]) -> [n, h] {
  y = x
  }
  z = y
  return z
}
block B(h)(x [n, h]) -> [n] { return x }
""",
    "a brace in a statement": """
block A(h)(x [n, h]) -> [n, h] {
  y = f(x, }, h)
  z = f({x})
  q = z } + 1
  return z
}
""",
    "a definition in a body": """
block A(h)(x [n, h]) -> [n, h] {
  layer B(h)(x [n, h]) -> [n, h] {
    w: param [h h]
    return x * .w
  }
  b: B(h)(x)
}
""",
    "an import is not closed": """
import std { A, B
dim n
""",
    "branches": """
block A(h)(x [n, h]) -> [n, h] {
  if x == {
    y = 3 3
  }
  if x {
    y = 4 4
  } elif y {
    y = = 3
  } else {
    y = 5
  }
  for i in 0.. {
    y = 6 6
  }
  return x
}
""",
    "an else of nothing": """
fn f(x [n]) -> [n] {
  y = x
  else { y = 1 }
  return y
}
""",
    "steps of one chain": """
block A(h)(x [n, h]) -> [n, h] {
  return x x
    |> a.b: Linear(h h)
    |> f
    |> c.d = Linear(h, h)
    |>
    |> + x
}
""",
    "comments of other languages": """
// A licence (c) "1999
// and more.
/* An explanation (
   of two lines. */
fn f(x [n]) -> [n] {
  return x // what came in
} // f
""",
    "strings": """
block A(h)(x [n, h]) -> [n, h] {
  require h > 0, "positive
  require h > 0, 'positive'
  require h > 0, "positive" "always"
  return x
}
""",
    "a model": """
model "m" = A(h = , n = 3) {
  expect params = 3
  expect
  params == 4
  expect params == 5
}
""",
}


def test_files_with_several_mistakes(golden: Callable[[str, str], None]) -> None:
    shown: list[str] = []
    for title, text in FILES.items():
        file, report = parsed(text.removeprefix("\n"))
        kept = [f"{type(item).__name__} {getattr(item, 'name', ('', '', ''))[2]}".strip() for item in file.items]
        shown.append(f"=== {title}; kept: {', '.join(kept) or 'nothing'}")
        shown += [d.render() for d in report.diagnostics]
    golden("syntax/files.txt", "\n\n".join(shown) + "\n")


# One mistake is told once, and nothing else is lost -------------------------------------------------------------------


@pytest.mark.parametrize("text", SPECS, ids=range(len(SPECS)))
def test_a_broken_statement_leaves_the_others(text: str) -> None:
    whole, _ = parsed(text)
    for item in whole.items:
        for statement in getattr(item, "body", ()):
            if isinstance(statement, tree.If | tree.For):
                continue
            spoilt = text[: statement.start] + "?" + text[statement.start + 1 :]
            file, report = parsed(spoilt)
            assert len(report.diagnostics) == 1
            assert [(b.start, b.end) for b in file.broken] == [(statement.start, statement.end)]
            (changed,) = (a for a, b in zip(file.items, whole.items, strict=True) if a != b)
            assert set(changed.body) == set(item.body) - {statement}


def test_broken_stretches_know_their_words() -> None:
    file, _ = parsed(BODY % "  a, b = f(x y)\n  q = a")
    assert file.broken[0].names == ("a", "b", "f", "x", "y")


def test_a_broken_head_loses_the_definition_but_not_the_mistakes_in_its_body() -> None:
    text = "block A(h)(x [n]) {\n  y = = 1\n  z = 2\n}\nblock B(x [n]) -> [n] { return x }\n"
    file, report = parsed(text)
    assert [d.message for d in report.diagnostics] == [
        "expected `->` after `)`, found `{`",
        "expected an expression after `=`, found `=`",
    ]
    assert [item.name.text for item in file.items if isinstance(item, tree.Definition)] == ["B"]
    assert [text[b.start : b.end] for b in file.broken] == [text[: text.index("\nblock B")]]


def test_twenty_mistakes_are_told() -> None:
    assert len(messages(BODY % "\n".join(["x = = 1"] * 50))) == 20


# Budgets --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("+".join(["a"] * 99), None),
        ("+".join(["a"] * 200), "this expression is more than 100 levels deep"),
        ("**".join(["a"] * 200), "this expression is more than 100 levels deep"),
        ("-" * 200 + "a", "this expression is more than 100 levels deep"),
        ("not " * 200 + "a", "this expression is more than 100 levels deep"),
        ("a if b else " * 200 + "a", "this expression is more than 100 levels deep"),
        ("a" + "[0]" * 200, "this expression is more than 100 levels deep"),
        ("[" * 60 + "]" * 60, None),
        ("[" * 64 + "]" * 64, "brackets nest more than 64 levels deep"),
        ("f" + "(f" * 70 + ")" * 70, "brackets nest more than 64 levels deep"),
        ("9" * 18, None),
        ("9" * 19, "this integer has more than 18 digits"),
        ("1e400", "this number is too large to be represented"),
        ("1e-400", "this number is too small to be represented"),
        ("0e-400", None),
    ],
)
def test_budgets(value: str, message: str | None) -> None:
    for text in (BODY % f"  y = {value}\n  return y", f"fn f(a = {value}) -> [n] {{ return 1 }}"):
        _, report = parsed(text)
        assert [(d.code, d.message) for d in report.diagnostics] == ([("budget", message)] if message else [])


def test_nested_statements_have_a_budget() -> None:
    deep = "if a {\n" * 100 + "}\n" * 100
    assert messages(BODY % deep) == ["brackets nest more than 64 levels deep"]
    assert messages(BODY % ("if a { } " + "else if a { } " * 200)) == ["more than 100 `else if` in a row"]


SIZE = 60_000
HOSTILE = [
    *("(", "[(", "{", "(\n", "{\n", ")", ")\n", "}\n", '"', '"a\n', "'", "#", "## x\n", "\n", "\n ", "//\n", "/*\n"),
    *("import a {\n ", "(\nreturn\n", "fn f(x [n]) -> [n] {\n", "\0", "x = 1\r", "x = 1\n", "x = = 1\n", "1.", "a."),
    *("x = f({\n", "if a {\n", "} else {\n", "x }\n", "a[", "a+", "not ", "a if ", "x |> f f\n", "\\", "\u00e9"),
]


@pytest.mark.parametrize("piece", HOSTILE, ids=repr)
def test_hostile_files_are_refused_quickly(piece: str) -> None:
    repeated = piece * (SIZE // len(piece))
    start = time.process_time()
    for text in (repeated, BODY % repeated, BODY % f"  x = {repeated}a"):
        file, report = parsed(text)
        assert len(report.diagnostics) <= 20
        assert report.failed or not file.broken
        assert all(len(line) < 500 for d in report.diagnostics for line in d.render().split("\n"))
    assert time.process_time() - start < 8  # seconds for all three, on a slow machine; less than one as a rule


# Any text -------------------------------------------------------------------------------------------------------------

PIECES = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    "=",
    ":",
    ".",
    "..",
    "...",
    "->",
    "|>",
    "+",
    "-",
    "**",
    "/",
    "//",
    "==",
    "<",
]
PIECES += ["if", "else", "for", "in", "return", "param", "tie", "role", "layer", "fn", "model", "import", "dim", "none"]
PIECES += ["x", "1", "1.5", '"', '"a"', "#", "\n", "\n\n", "  ", "~", "?", "\u00e9"]


def mutated(text: str, chance: random.Random) -> str:
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        spans = [m.span() for m in re.finditer(r"\w+|\S|\n", text)] or [(0, 0)]
        (start, end), piece = chance.choice(spans), chance.choice(PIECES)
        swap = text[slice(*chance.choice(spans))]
        text = text[:start] + chance.choice(("", piece, f" {piece} {text[start:end]}", swap)) + text[end:]
    return text


def check_any(text: str) -> None:
    file, report = parsed(text)
    assert report.failed or not file.broken
    for found in report.diagnostics:
        assert found.span is not None
        assert 0 <= found.span.start <= found.span.end <= len(text)
        assert found.render()
    assert store.load(store.dump(file)) == file


@pytest.mark.parametrize("seed", range(8))
def test_mutated_specs(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        check_any(mutated(chance.choice(SPECS), chance))


@pytest.mark.parametrize("seed", range(4))
def test_random_words(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        check_any(" ".join(chance.choices(PIECES, k=chance.randrange(80))))


def test_random_characters() -> None:
    chance = random.Random(0)
    for limit in (0x80, 0x100, 0x110000):
        for _ in range(40):
            check_any("".join(chr(chance.randrange(limit)) for _ in range(200)))


def test_files_cut_off_anywhere() -> None:
    text = max(SPECS, key=len)
    for end in range(0, len(text), 37):
        check_any(text[:end])
        check_any(text[end:])


def test_diagnostics_are_in_the_order_of_the_text() -> None:
    text = BODY % "  a = = 1\n  b = (2\n  c = 3 3\n  d = 'x'\n  e = f(]"
    starts = [d.span.start for d in parsed(text)[1].diagnostics if d.span]
    assert len(starts) == 5
    assert starts == sorted(starts)


def test_no_message_names_a_terminal() -> None:
    texts: list[Any] = [BODY % f"  {line}" for line in STATEMENTS]
    texts += [*ITEMS, *FILES.values()]
    for text in texts:
        for message in messages(text):
            assert not re.search(r"\b(NAME|WORD|INT|REAL|STRING|BAD|_NL|END|ANON|[A-Z]{3,})\b", message), message
