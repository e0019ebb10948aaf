"""What is said about text that does not parse: one plain message a mistake, all of them in one run."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import archspec
from archspec import Source
from archspec.core.diagnostics import Report
from archspec.core.resources import specs_root
from archspec.language.syntax import tree
from archspec.language.syntax.parse import parse
from archspec.pipeline.overrides import parse_override

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
x = a |> tanh + b
x = f(a |> tanh + 2)
x = a |> + (b) and c
x = a |> b / 2 if c
x = a |> b == c
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
        assert isinstance(kept.body[0], tree.Assign) and isinstance(kept.body[-1], tree.Return), line
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
        assert [type(item) for item in (file.items[0], file.items[-1])] == [
            tree.DimensionDeclaration,
            tree.DimensionDeclaration,
        ], line
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
    "a brace is missing before a definition": """
block A(h)(x [n, h])
  -> [n, h] {
  return x
block B(h)(x [n, h]) -> [n] {
  return x
}
block C(h)(x [n, h]) -> [n] {
  if h {
    y = x
  block D(h)(x [n, h]) -> [n] {
    return x
  }
}
""",
    "a brace at the beginning": """
} dim n
dim m
}  # another
dim k
} import std { A,
  B }
""",
    "brackets at the beginning": """
dim a) b]
dim c
""",
    "a brace in the first statement": """
dim a } , b
dim c
""",
    "a byte order mark": "\ufeffdim a",
    "a brace after an item with an error": """
dim a b
}
dim c
""",
    "commas before and after steps": """
block A(h)(x [n, h]) -> [n, h] {
  , x |> f
  y = x |> f, |> g
  .. Norm(n)
  return x |> f, , y
  return x |> f,
  return x |> f, |> g
  return x x, y y |> f
  y = x |> f, z z
}
""",
    "braces that follow no head": """
block A(h)(x [n, h]) -> [n, h] {  # open
  y = f {
    z = 3
block B(h)(x [n, h]) -> [n] {  # open
  return x
block C(h)(x [n, h]) -> [n] { return x }
""",
    "brackets that are nested too deeply": f"""
block A(h)(x [n, h]) -> [n, h] {{
  y = x)
  z = {"(" * 65}x{")" * 65}
  return y
    |> f(x
}}
block B(h)(x [n, h]) -> [n] {{ {"if h {" * 64} }}
""",
    "two errors in a statement": """
block A(h)(x [n, h]) -> [n, h] {
  ) f(x
  return x  # ( [
  y = z) + f(
    # not closed
  return y
}
""",
    "braces at the end of a statement": """
block A(h)(x [n, h]) -> [n, h] {
  y = z },
  s = f(x
    } + 1
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
        kept = [f"{type(item).__name__} {[*getattr(item, 'name', ('', '', ''))][2]}".strip() for item in file.items]
        shown.append(f"=== {title}; kept: {', '.join(kept) or 'nothing'}")
        shown += [d.render() for d in report.diagnostics]
        assert all(d.span is not None and d.span.start <= d.span.end for d in report.diagnostics)
        assert all(text.removeprefix("\n")[c.start : c.end] == c.text for c in file.comments)
    golden("syntax/files.txt", "\n\n".join(shown) + "\n")


# One mistake is told once, and nothing else is lost -------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [pytest.param(text, marks=pytest.mark.slow if i else (), id=str(i)) for i, text in enumerate(SPECS)]
)
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


@pytest.mark.parametrize(
    "line, count",
    {
        "?eturn x |> f, y": 1,
        "retrun x |> f, y |> g": 1,
        "return x |> f(a b) |> g, y": 1,
        "return x |> f, y |> g(a b)": 1,
        "return x |> f(a b), y |> g(c d), z z": 3,
        'require x |> f(a b), "it holds"': 1,
        "x = f(a b) |> g |> h(c d)": 2,
        "return x |> f,": 1,
        "return x |> f, , y": 1,
    }.items(),
)
def test_values_after_a_chain_are_parsed_by_themselves(line: str, count: int) -> None:
    assert len(messages(BODY % f"  {line}")) == count


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
            assert "expected  " not in message
            assert not re.search(r"\b(NAME|WORD|INT|REAL|STRING|BAD|_NL|END|ANON|[A-Z]{3,})\b", message), message


@pytest.mark.parametrize("number", ["1_.5", "1__2.0", "1_e5", "1__2", "12_", "1_0_e-3", "1_2_"])
def test_underscores_are_between_two_digits(number: str, tmp_path: Path) -> None:
    spec = tmp_path / "b.arch"
    text = 'dim batch\nblock B(n = 1)(x [batch]) -> [batch] {\n  return x * n * NUMBER\n}\nmodel "b" = B()\n'
    spec.write_text(text.replace("NUMBER", number))
    with pytest.raises(archspec.ArchError, match=r"expected a number or name, found `1") as caught:
        archspec.load(str(spec))
    (found,) = caught.value.diagnostics
    assert (found.code, found.help) == ("syntax", "put a single `_` between two digits")
    with pytest.raises(archspec.ArchError, match="invalid value for `n`"):
        parse_override(f"n={number}")


def test_values_of_overrides() -> None:
    values = {
        "6": 6,
        "-0.5": -0.5,
        "true": True,
        "none": None,
        "gelu": "gelu",
        '"a=b"': "a=b",
        "[1, [2.0]]": [1, [2.0]],
    }
    for text, value in values.items():
        assert parse_override(f"name={text}") == parse_override(f" name = {text} ") == ("name", value)
    for text in ("name", "=1", "a b=1", "a.b=1"):
        with pytest.raises(archspec.ArchError, match=r"bad-override.*expected name=value"):
            parse_override(text)


@pytest.mark.parametrize(("statement", "found"), [("x |> a.: A", "`:`"), ("x |> a.\n", "the end of the line")])
def test_what_follows_a_dot_is_a_name_or_number(statement: str, found: str) -> None:
    said = messages(f"block A(x []) -> [] {{\n  return {statement}\n}}\n")
    assert said[0] == f"expected a name or number after `.`, found {found}"


INPUT = "write an input as `x [batch, hidden]`, or with a type as `x int [batch]`"


@pytest.mark.parametrize(
    ("text", "message", "help"),
    [
        ("fn f(n)(x[0:n]) -> [n] { return x }", "expected `,` or `]` after `0`, found `:`", INPUT),
        ("fn f(n)(x [n, :]) -> [n] { return x }", "expected an expression after `,`, found `:`", INPUT),
        ("block f(n)(x[..., 0:1]) -> [n] { return x }", "expected `,` or `]` after `0`, found `:`", INPUT),
        ("fn f(n)(x [n]) -> [n] { return (n) + [0:1] }", "expected `,` or `]` after `0`, found `:`", None),
        ("fn f(n)(x [n]) -> [n] {\n  y = [0:1]\n  return y\n}", "expected `,` or `]` after `0`, found `:`", None),
        (
            "fn f(n)(x [n]) -> [n] {\n  return x[0:1]\n}",
            "cannot index a tensor with `[0:1]`",
            "write `slice(0, 0, 1)(x)`",
        ),
    ],
)
def test_only_tensors_are_indexed(text: str, message: str, help: str | None) -> None:
    assert [(each.message, each.help) for each in parsed(f"{text}\n")[1].diagnostics] == [(message, help)]
