"""Python code as it is laid out, simplified and pruned, statement by statement."""

import ast
from collections.abc import Callable
from typing import Any

import pytest

from archspec.codegen.python import layout
from archspec.codegen.python.simplification import returned, simplified, without_repeats
from archspec.codegen.python.trees import apply, literal, name, negated, partial, prune, py, reading, reads, stored


def lines(code: str, indent: int = 0) -> str:
    return "\n".join(layout.lines_of(ast.parse(code).body, indent))


def text(body: list[Any]) -> str:
    return "\n".join(ast.unparse(ast.fix_missing_locations(statement)) for statement in body)


BRANCHES = """\
if a:
    x = 1
elif b:
    x = 2
elif c:
    x = 3
else:
    x = 4"""


def test_branches_are_laid_out_without_steps() -> None:
    assert lines(BRANCHES) == BRANCHES
    assert lines(BRANCHES, 1) == "\n".join(f"    {line}" for line in BRANCHES.split("\n"))
    with pytest.raises(TypeError, match=r"^no layout for While\("):
        lines("while True:\n    x = 1")


def test_long_calls_keep_what_belongs_together() -> None:
    word = "a" * 30
    assert lines(f"f({word}, *{word}.b({word}), {word})") == (
        f"f(\n    {word},\n    *{word}.b({word}),\n    {word},\n)"
    )
    long = f"x = {word} + {word} * {word} if not {word} or {word} == {word} else -{word}"
    assert ast.dump(ast.parse(lines(long))) == ast.dump(ast.parse(long))
    assert max(map(len, lines(long).split("\n"))) <= layout.WIDTH


STATEMENTS = """\
x = alpha if beta else gamma if delta else (one if two else three)
x = (alpha if beta else gamma) if (delta if one else two) else three
x = alpha and beta and (gamma or delta) and not one
x = (alpha and beta or gamma and delta) or (one if two else three)
x = alpha - (beta - gamma) - delta
x = alpha * (beta / gamma) * (delta + one) + two
x = (alpha + beta) * (gamma - delta) % one // two
x = alpha ** (beta ** gamma) ** delta
x = (-alpha) ** beta ** -gamma
x = -alpha * ~beta + (not gamma)
x = alpha | beta & (gamma | delta) & one
x = (alpha | beta) == (gamma == delta)
x = (alpha < beta) == (gamma | delta)
x = (alpha or beta) is not (gamma if delta else one)
x = alpha.beta in gamma(delta) and one not in (two, three)
x = alpha < beta < gamma
x = alpha @ beta(gamma).delta @ (one @ two)
x = alpha + beta * gamma(delta, one, two=three)
x = alpha + beta(gamma, delta(one, two), *three, **four)
x = alpha * (beta + gamma(delta, one))
x = alpha + (beta + gamma)
x = alpha(beta).gamma(delta).one(two)[0].three
x = alpha(beta)[gamma, delta:one].two(three)
x = (alpha + beta).gamma(delta).one()
x = (alpha if beta else gamma)(delta)(one)
x = alpha.beta.gamma.delta.one.two.three
x = alpha[beta](gamma).delta.one(two)
x = alpha(beta).gamma
x = alpha(*beta(gamma, delta), **one(two, three))
x = nn.ModuleList((alpha(beta, gamma) for delta in range(one)))
x = alpha(beta(gamma) for delta in range(one(two, three)))
x = [alpha(beta), [gamma, delta], (one, two), ()]
x = (alpha + beta, gamma.delta(one) * two, *three)
x = [alpha if beta else gamma, alpha(beta).gamma(delta).one(two)]
x = alpha(beta + gamma * delta for one in range(two - three))
x = alpha.beta_gamma_delta(one for one in two)
x = alpha(beta)(one + two for one in three)
x = alpha_beta_gamma_delta
x = -alpha(beta)
x = alpha + beta(gamma).delta(one).two(three)
x = alpha + beta(gamma).delta(one)
x = (alpha,)
x = {alpha: beta}
x, self.y = alpha(beta), gamma(delta)
(x,) = alpha(beta, gamma)
self.x = alpha.beta(gamma).delta(one, two)
x[alpha] = beta(gamma, delta)
return alpha(beta, gamma), delta(one), two
return (alpha,)
return alpha + beta(gamma)
return alpha
raise ValueError(f"{alpha} is not {beta + gamma}, 'as' it must be {delta}")
alpha.beta.append(gamma(delta, one))
x = alpha(-(10 ** -5), 2 ** (-alpha.beta), (alpha + 1) ** 2, alpha[0] ** 2, alpha(1) ** 2, 2 ** alpha(1), 2 ** alpha[0])
x = alpha(1e-05, 1e+20, 1.5e-10, 1e-100, 'it', "it's")
for i, x in enumerate(alpha(beta, gamma), delta):
    if alpha(beta) and gamma(delta):
        x = alpha(beta, gamma)
    elif alpha < beta + gamma(delta):
        return alpha
    else:
        if alpha(beta) < gamma:
            x = beta
        y = gamma
"""
"""A statement of each kind, with operands that need parentheses and others that do not."""


def test_the_text_of_statements(golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """In lines of any width, statements are the same program."""
    body = ast.parse(STATEMENTS).body
    pages: list[str] = []
    for width in (120, 44, 36, 30, 24, 18, 8):
        monkeypatch.setattr(layout, "WIDTH", width)
        pages.append(f"# {width}\n")
        for statement in body:
            code = "\n".join(layout.lines_of([statement], 0)) + "\n"
            assert ast.dump(ast.parse(code)) == ast.dump(ast.Module([statement], []))
            if code not in pages:
                pages.append(code)
    golden("torch/layout.txt", "".join(pages))


def test_operators_hold_together_as_in_python() -> None:
    weakest = ["a if b else c", "a or b", "not a", "a < b", "a | b", "a & b", "a + b", "a * b", "-a", "a ** b", "a.b"]
    found = [layout._strength(ast.parse(code, mode="eval").body) for code in weakest]
    assert found == sorted(set(found)) and found[0] == 0 and found[-1] == layout.STRONGEST


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("'a'", '"a"'),
        ("f('a', b'c') + r'd'", 'f("a", b"c") + r"d"'),
        ("'it\"s'", "'it\"s'"),
        ("'a\\n'", '"a\\n"'),
        ("'open", "'open"),
        ("(' a'", "(' a'"),
        ("x", "x"),
    ],
)
def test_quotes(code: str, expected: str) -> None:
    assert layout.double_quoted(code) == expected


def test_quotes_at_the_end_of_documentation() -> None:
    assert layout.docstring(['say "it"'], 1) == ['    """say "it" """']
    assert layout.docstring([], 1) == layout.docstring([""], 1) == []
    assert layout.docstring(["one", "two"], 0) == ['"""one', "", "two", '"""']


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = 0 < y", "x = y > 0"),
        ("x = 0 >= y", "x = y <= 0"),
        ("x = 1 in y", "x = 1 in y"),
        ("x = 1 < 2", "x = 1 < 2"),
        ("x = True if c else False", "x = c"),
        ("x = False if c == d else True", "x = c != d"),
        ("x = False if c else True", "x = not c"),
        ("x = a if c else a", "x = a"),
        ("if c:\n    x = 1\nelse:\n    x = 2", "x = 1 if c else 2"),
        ("if c:\n    x = 1\nelse:\n    y = 2", "if c:\n    x = 1\nelse:\n    y = 2"),
        ("if c:\n    if d:\n        x = 1", "if c and d:\n    x = 1"),
        ("if a and b:\n    if c and d:\n        x = 1", "if a and b and c and d:\n    x = 1"),
        ("if a or b:\n    if c:\n        x = 1", "if (a or b) and c:\n    x = 1"),
        (f"if c:\n    x = {'a' * 48}\nelse:\n    x = {'b' * 47}", f"x = {'a' * 48} if c else {'b' * 47}"),
        (
            f"if c:\n    x = {'a' * 48}\nelse:\n    x = {'b' * 48}",
            f"if c:\n    x = {'a' * 48}\nelse:\n    x = {'b' * 48}",
        ),
        ("a = b\nc = a + d\nd = 3", "c = b + d\nd = 3"),
        ("a = b\nc = b\ne = d\nx = a + c * e", "x = b + b * d"),
        ("a = b\na = 2\nx = a", "a = b\na = 2\nx = a"),
        ("b = 1\na = b\nx = a", "b = 1\na = b\nx = a"),
        ("self.a = b\nx = c\nf(x, self.a)", "self.a = b\nf(c, self.a)"),
        (
            "if c:\n    if d:\n        x = 1\n    else:\n        f(x)",
            "if c:\n    if d:\n        x = 1\n    else:\n        f(x)",
        ),
    ],
)
def test_statements_are_simplified(code: str, expected: str) -> None:
    assert text(simplified(ast.parse(code).body)) == expected


@pytest.mark.parametrize(
    ("code", "needed", "expected", "before"),
    [
        ("pass\nx = a\ny = b", {"x"}, "x = a", {"a"}),
        ("x = a\npass", {"x"}, "x = a", {"a"}),
        ("self.x = a\ny = b", set[str](), "self.x = a", {"self", "a"}),
        ("x, self.y = a\nx = b", {"x"}, "x, self.y = a\nx = b", {"self", "x", "a", "b"}),
        ("x, _ = f(a)\ny, _ = g(a)", {"y"}, "y, _ = g(a)", {"g", "a"}),
        ("x = a\nx = x + b", {"x"}, "x = a\nx = x + b", {"a", "b"}),
        ("x = a\nif c:\n    x = b", {"x"}, "x = a\nif c:\n    x = b", {"a", "b", "c"}),
        ("x = a\nif c:\n    x = b\nelse:\n    x = d", {"x"}, "if c:\n    x = b\nelse:\n    x = d", {"b", "c", "d"}),
        ("for i in r:\n    x = x + i\n    y = i", {"x"}, "for i in r:\n    x = x + i", {"r", "x"}),
        ("for i in r:\n    x = x + a\n    y = i", {"x"}, "for _ in r:\n    x = x + a", {"r", "x", "a"}),
        ("for i, k in r:\n    x = x + a", {"x"}, "for i, k in r:\n    x = x + a", {"r", "x", "a"}),
        ("f(x)", {"y"}, "f(x)", {"f", "x", "y"}),
        ("x, y = f(a)", {"y"}, "_, y = f(a)", {"f", "a"}),
        ("if c:\n    x = a\nelse:\n    y = b", {"y"}, "if not c:\n    y = b", {"b", "c", "y"}),
        ("if c < d:\n    x = a\nelse:\n    y = b", {"y"}, "if c >= d:\n    y = b", {"b", "c", "d", "y"}),
        ("if c:\n    x = a\nelse:\n    y = b", {"x"}, "if c:\n    x = a", {"a", "c", "x"}),
        ("if c:\n    x = a\nelse:\n    y = b", {"z"}, "", {"z"}),
        ("for i in r:\n    x = a\n    y = x\n    a = i", {"y"}, "for i in r:\n    x = a\n    y = x\n    a = i", None),
        ("for i in r:\n    x = a", {"y"}, "", {"y"}),
    ],
)
def test_what_nothing_reads_is_left_out(code: str, needed: set[str], expected: str, before: set[str] | None) -> None:
    body, live = prune(ast.parse(code).body, needed)
    assert text(body) == expected and before in (None, live)


def test_what_is_bound_again_is_left_out() -> None:
    assert text(without_repeats(ast.parse("x = a\nx = a\na = 2\nx = a").body)) == "x = a\na = 2\nx = a"
    assert text(without_repeats(ast.parse("x = a\nb = c\nx = a\nb = c").body)) == "x = a\nb = c"
    assert text(without_repeats(ast.parse("x = a\nx = b\nx = a").body)) == "x = a\nx = b\nx = a"
    assert text(without_repeats(ast.parse("x = x + 1\nx = x + 1").body)) == "x = x + 1\nx = x + 1"
    assert text(without_repeats(ast.parse("x = a\nx, y = b\nx = a").body)) == "x = a\nx, y = b\nx = a"
    assert text(without_repeats(ast.parse("x = a\nself.y = b\nx = a").body)) == "x = a\nself.y = b"
    branch = "x = a\ny = b\nif c:\n    x = d\nx = a\ny = b"
    assert text(without_repeats(ast.parse(branch).body)) == branch.removesuffix("\ny = b")
    assert text(returned(ast.parse("x = a\ny = b\nreturn y").body)) == "x = a\nreturn b"
    assert text(returned(ast.parse("y = b\nreturn x").body)) == "y = b\nreturn x"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("inf"), "math.inf"),
        (float("-inf"), "-math.inf"),
        (-1, "-1"),
        (-0.5, "-0.5"),
        (0, "0"),
        (0.0, "0.0"),
        (2, "2"),
        (True, "True"),
        (False, "False"),
        (None, "None"),
        ("-1", "'-1'"),
    ],
)
def test_constants(value: Any, expected: str) -> None:
    assert ast.unparse(literal(value)) == expected
    assert not isinstance(value, int) or value >= 0 or isinstance(literal(value), ast.UnaryOp)


def test_arguments_that_are_bound_before_a_call() -> None:
    bound = partial(name("f"), {"a": py("1"), "b": py("2")})
    assert ast.unparse(bound) == "partial(f, a=1, b=2)"
    assert ast.unparse(partial(bound, {"b": py("3"), "c": py("4")})) == "partial(f, a=1, b=3, c=4)"
    assert ast.unparse(partial(name("f"), {})) == "f"
    assert ast.unparse(apply(bound, [name("x")], {"a": py("5")})) == "f(x, a=5, b=2)"
    assert ast.unparse(apply(bound, [name("x")])) == "f(x, a=1, b=2)"
    assert ast.unparse(apply(py("partial(f, g)"), [name("x")])) == "partial(f, g)(x)"


def test_what_statements_read() -> None:
    body = ast.parse("y = x.dtype\nz = f(self.a, b.self, self.c.d, self)").body
    assert reads(body, py("x.dtype")) and not reads(body, py("z.dtype")) and not reads(body, py("dtype"))
    assert reads(body, py("x")) and not reads(body, py("x.shape"))
    assert ast.unparse(reading(body[0], py("x.dtype"), py("kept"))) == "y = kept"
    assert ast.unparse(reading(body[0], py("x"), py("kept"))) == "y = kept.dtype"
    assert ast.unparse(body[0]) == "y = x.dtype"
    assert [*stored(body)] == ["a", "c"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a == b", "a != b"),
        ("a != b", "a == b"),
        ("a < b", "a >= b"),
        ("a <= b", "a > b"),
        ("a > b", "a <= b"),
        ("a >= b", "a < b"),
        ("a is b", "a is not b"),
        ("a is not b", "a is b"),
        ("a in b", "a not in b"),
        ("a not in b", "a in b"),
        ("not a", "a"),
        ("a", "not a"),
        ("-a", "not -a"),
        ("a < b < c", "not a < b < c"),
        ("a and b", "not (a and b)"),
    ],
)
def test_the_opposite_of_a_condition(condition: str, expected: str) -> None:
    assert ast.unparse(negated(py(condition))) == expected
