"""Text to tree: what each form of the language becomes, and where it stands."""

from typing import Any

import pytest
from notation import body, expression, item, show, tree_of

# Expressions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a + b * c - d", "((a + (b * c)) - d)"),
        ("a / b // c % d", "(((a / b) // c) % d)"),
        ("-a ** -b ** c", "(- (a ** (- (b ** c))))"),
        ("not a == b and c or d", "(((not (a == b)) and c) or d)"),
        ("a - (b - c)", "(a - (b - c))"),
        ("a <= b", "(a <= b)"),
        ("a if b", "(a if b)"),
        ("a if b else c if d", "(a if b else (c if d))"),
        ("a if b or c else d", "(a if (b or c) else d)"),
        ("f(a)", "f(a)"),
        ("f(axis = -1)(a, b,)", "f(axis=(- 1))(a, b)"),
        ("f(..)(x)", "f(..)(x)"),
        ("f(.., a = 1)(x)", "f(.., a=1)(x)"),
        ("blocks[i + 1](a)(x)", "blocks<(i + 1)>(a)(x)"),
        ("f(a)[0]", "f(a)<0>"),
        ("[1, 2][i]", "[1, 2]<i>"),
        ("(f)(x)", "f(x)"),
        ("[..., n // 2]", "[..., (n // 2)]"),
        (".weight", "@weight"),
        (".a.0[i].self(x)", "@a/0/<i>/self(x)"),
        ('."for".in', "@for/in"),
        (".if", "@if"),
        ("true", "true"),
        ("[none, inf]", "[null, Infinity]"),
        (r'"a \"b\" \\"', r'"a \"b\" \\"'),
    ],
)
def test_expressions(text: str, meaning: str) -> None:
    assert expression(text) == meaning


@pytest.mark.parametrize(
    ("text", "value"),
    [("30_522", 30522), ("1e-12", 1e-12), ("0.5", 0.5), ("1.5e3", 1500.0), ("2E4", 20000.0), ("007", 7)],
)
def test_numbers(text: str, value: float) -> None:
    (statement,) = body(f"v = {text}")
    assert statement.value.value == value
    assert type(statement.value.value) is type(value)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("x |> gelu", "(x |> gelu)"),
        ("x |> a.b: Linear(h, h)", "(x |> {a/b: Linear(h, h)})"),
        ("x |> a: L(h)(_, mask) if c", "(x |> {a: L(h)(_, mask)} if c)"),
        ("x |> a: L(h) if c else b: M(h)", "(x |> {a: L(h)} if c else {b: M(h)})"),
        ("x |> e.layer[i]: L(h) for i in 0..n", "(x |> {e/layer/<i>: L(h)} for i in 0..n)"),
        ("x |> a[i]: L(h) if i > 0 for i in 1..n - 1", "(x |> {a/<i>: L(h)} if (i > 0) for i in 1..(n - 1))"),
        ("x |> + y * z |> * s", "(x |> +(y * z) |> *s)"),
        ("x |> - y if c |> / 2", "(x |> -y if c |> /2)"),
        ("x |> .shared |> .other(_, m)", "(x |> @shared |> @other(_, m))"),
        ("x |> (A if c else B)(_)", "(x |> (A if c else B)(_))"),
        ("a + b |> f", "((a + b) |> f)"),
        ("(x |> f) if c", "((x |> f) if c)"),
        ("x |> f if c", "(x |> f if c)"),
        ("a if c |> f", "((a if c) |> f)"),
        ("f(x |> g)", "f((x |> g))"),
    ],
)
def test_chains(text: str, meaning: str) -> None:
    assert expression(text) == meaning


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("q: Linear(h, h)(x)", "{q: Linear(h, h)(x)}"),
        ("q: frozen unused Linear(h)", "{q: frozen unused Linear(h)}"),
        ("q: Layer", "{q: Layer}"),
        ("layer.0.attention: L(h)", "{layer/0/attention: L(h)}"),
        ("layers[i].1.0.k: L(h)", "{layers/<i>/1/0/k: L(h)}"),
        ("grid[i][j]: L(h)", "{grid/<i>/<j>: L(h)}"),
        ('"for"."0".in: L(h)', "{for/0/in: L(h)}"),
        ('"a"[0]: L(h)', "{a/<0>: L(h)}"),
        ("b: Layers[i](h)(x)", "{b: Layers<i>(h)(x)}"),
        ("b: (A if c else B)(h)(x)", "{b: (A if c else B)(h)(x)}"),
        ("q: L(h)(x) + k: L(h)(x)", "({q: L(h)(x)} + {k: L(h)(x)})"),
    ],
)
def test_owning(text: str, meaning: str) -> None:
    assert expression(text) == meaning


@pytest.mark.parametrize("word", ["import", "export", "dim", "fn", "layer", "block", "model"])
def test_words_of_the_top_level_are_plain_words_in_bodies(word: str) -> None:
    bind, many, own, indexed, call, value = body(
        f"{word} = 1",
        f"{word}, b = f({word} = 2)",
        f"{word}.{word}: L({word})",
        f"{word}[0]: param [{word}]",
        f"a = {word}({word}) if {word}",
        f"return {word}",
    )
    assert bind.targets[0].text == many.targets[0].text == word
    assert show(own.value) == f"{{{word}/{word}: L({word})}}"
    assert show(indexed.address) == f"{word}/<0>"
    assert show(call.value) == f"({word}({word}) if {word})"
    assert show(value.values[0]) == word


KEYWORDS = [
    "import",
    "export",
    "dim",
    "fn",
    "layer",
    "block",
    "model",
    "if",
    "else",
    "for",
    "in",
    "return",
    "tie",
    "as",
]
KEYWORDS += [
    "require",
    "role",
    "param",
    "buffer",
    "const",
    "frozen",
    "unused",
    "expect",
    "and",
    "or",
    "not",
    "true",
    "false",
]
KEYWORDS += ["none", "inf"]


@pytest.mark.parametrize("word", KEYWORDS)
def test_every_word_may_be_a_later_segment(word: str) -> None:
    own, tie, role = body(f"a.{word}.b: L(.{word})", f"tie a.{word} = b.c.{word}", f"role norm for a.{word}")
    assert show(own.value) == f"{{a/{word}/b: L(@{word})}}"
    assert (show(tie.alias), show(tie.counted)) == (f"a/{word}", f"b/c/{word}")
    assert show(role.addresses[0]) == f"a/{word}"


# Statements -----------------------------------------------------------------------------------------------------------


def test_statements() -> None:
    bind, declare, tie, require, bare, role, some, give = body(
        "a, _ = f(x)",
        "layers[i]: L(h) if i > 0 for i in 0..n",
        "tie a[i].w = b.w if c for i in 0..2",
        'require h % n == 0, "h must divide"',
        "require h",
        "role attention",
        "role norm for a.b, c[i]",
        "return a, x |> f",
    )
    assert [t.text for t in bind.targets] == ["a", "_"]
    assert show(declare.value) == "{layers/<i>: L(h)}"
    assert (show(declare.condition), show(declare.loop)) == ("(i > 0)", " for i in 0..n")
    assert (show(tie.alias), show(tie.counted), show(tie.condition)) == ("a/<i>/w", "b/w", "c")
    assert (show(require.condition), require.message, bare.message) == ("((h % n) == 0)", "h must divide", None)
    assert (role.name, role.addresses) == ("attention", ())
    assert (some.name, [show(a) for a in some.addresses]) == ("norm", ["a/b", "c/<i>"])
    assert [show(v) for v in give.values] == ["a", "(x |> f)"]


def test_tensors() -> None:
    plain, table, scalar, start, bare = body(
        "weight: param [n, d] if c for i in 0..3",
        "a.b: frozen buffer int [n] = arange(n) if c",
        "unit: unused param []",
        "w: param [...] ~ normal(0.02, n)",
        "v: param bool [1] ~ zeros",
    )
    assert (plain.kind, plain.type, plain.modifiers, show(plain.shape)) == ("param", "", (), "[n, d]")
    assert (show(plain.condition), show(plain.loop)) == ("c", " for i in 0..3")
    assert (table.kind, table.type, table.modifiers, show(table.value)) == ("buffer", "int", ("frozen",), "arange(n)")
    assert show(table.condition) == "c"
    assert (scalar.modifiers, scalar.shape.items) == (("unused",), ())
    assert (start.initial.name, [show(a) for a in start.initial.arguments]) == ("normal", ["0.02", "n"])
    assert (bare.type, bare.initial.name, bare.initial.arguments, bare.value) == ("bool", "zeros", (), None)


def test_branches_and_loops() -> None:
    branch, loop = body(
        "if a and b { c = 1 } else if d { } else",
        "{",
        "  e = 2",
        "}",
        "for i in 1..2 * n {",
        "  if i > 0 { f = 1 }",
        "  else { f = 2 }",
        "}",
    )
    (inner,) = branch.otherwise
    assert (show(branch.condition), show(inner.condition)) == ("(a and b)", "d")
    assert (len(branch.body), inner.body, inner.otherwise[0].targets[0].text) == (1, (), "e")
    assert show(loop.loop) == " for i in 1..(2 * n)"
    assert len(loop.body[0].body) == len(loop.body[0].otherwise) == 1


def test_only_some_line_ends_end_statements() -> None:
    a, b, c, d, e = body(
        "a = x  # a comment",
        "  # and another",
        "",
        "  |> f(1,",
        "       2)  # (",
        '  |> g("# no comment (")',
        "b = [",
        "  1,",
        "  2,",
        "]",
        "c = y if z",
        "  else w",
        "d = f",
        "  (x)",
        "",
        "",
        "return d",
    )
    assert show(a.value) == '(x |> f(1, 2) |> g("# no comment ("))'
    assert (show(b.value), show(c.value), show(d.value), show(e.values[0])) == (
        "[1, 2]",
        "(y if z else w)",
        "f(x)",
        "d",
    )


def test_other_line_ends_and_a_byte_order_mark() -> None:
    text = "fn f(x [n]) -> [n] {\n  # c\n  a = x\n    |> g\n  return a\n}\n"
    plain, windows = item(text), tree_of("\ufeff" + text.replace("\n", "\r\n").replace("  ", "\t"))
    assert show(plain.body[0].value) == show(windows.items[0].body[0].value)
    assert windows.comments[0].text == "# c"


# Items ----------------------------------------------------------------------------------------------------------------


def test_imports() -> None:
    text = 'import std { A, B as C,\n  D, }\nexport "a/b.arch" { E }\nexport ops {}\n'
    std, path, ops = tree_of(text).items
    assert (std.export, std.source, std.path) == (False, "std", False)
    assert [(n.name, n.alias) for n in std.names] == [("A", "A"), ("B", "C"), ("D", "D")]
    assert (path.export, path.source, path.path) == (True, "a/b.arch", True)
    assert (ops.source, ops.names) == ("ops", ())


def test_dims() -> None:
    assert [n.text for n in item("dim batch, seq").names] == ["batch", "seq"]


HEADS = [
    ("fn f() -> [n] { }", "|||[n]"),
    ("fn f(x [n]) -> [n] { }", "|x [n]||[n]"),
    ("fn f(a, b = 1) -> [n] { }", "a, b =1|||[n]"),
    ("layer F(a)(x [n]) -> [n] { }", "a|x [n]||[n]"),
    (
        "block F(..G, a = 2,)(x int [n] = none, y bool [...],) -> [n] { }",
        ".. =G, a =2|x int [n] =null, y bool [...]||[n]",
    ),
    ("fn f()(x [n]) -> int [n] { }", "|x [n]||int [n]"),
    ("fn f(x [n]) -> (a [n], b int [], [2]) { }", "|x [n]||a [n], b int [], [2]"),
    ("fn f(x [n]) -> (int [n], [n],) { }", "|x [n]||int [n], [n]"),
    ("fn f(a, b)\n  # comment\n\n  (x [n], y [n])  # comment\n  -> [n] {\n\n}", "a, b|x [n], y [n]||[n]"),
    ("fn layer(block = model)(dim [n]) -> [n] { }", "block =model|dim [n]||[n]"),
]


@pytest.mark.parametrize(("text", "meaning"), HEADS)
def test_heads(text: str, meaning: str) -> None:
    def entries(found: tuple[Any, ...]) -> str:
        parts = [(e.name, e.type, show(e.shape), f"={show(e.default)}" if e.default else "") for e in found]
        return ", ".join(" ".join(filter(None, part)) for part in parts)

    found = item(text)
    outputs = ", ".join(" ".join(filter(None, (o.name, o.type, show(o.shape)))) for o in found.outputs)
    assert f"{entries(found.hyperparameters)}|{entries(found.inputs)}||{outputs}" == meaning


def test_models() -> None:
    bare, full = tree_of('model "a" = A\nmodel "b c" = B(h = 1) {\n  expect params == 3\n  expect x\n}').items
    assert (bare.name.value, bare.callee.text, bare.arguments, bare.expects) == ("a", "A", None, ())
    assert (full.name.value, show(full.arguments)) == ("b c", "(h=1)")
    assert [show(e.condition) for e in full.expects] == ["(params == 3)", "x"]


def test_docs_and_comments() -> None:
    text = """# a file
## not of f

## What f does,
##   in two lines.
fn f(x [n]) -> [n] { return x }  ## not of g
fn g(x [n]) -> [n] {
  ## not of any definition
  return x
}
## A model.
model "m" = g
"""
    file = tree_of(text)
    f, g, m = file.items
    assert (f.doc, g.doc, m.doc) == ("What f does,\nin two lines.", "", "A model.")
    assert [c.text for c in file.comments] == [line[line.index("#") :] for line in text.splitlines() if "#" in line]
    assert all(text[c.start : c.end] == c.text for c in file.comments)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment", "  \n# a\n\n  # b\n"])
def test_empty_files(text: str) -> None:
    assert tree_of(text).items == ()
