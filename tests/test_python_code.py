"""Python code as it is laid out, simplified and pruned, statement by statement."""

import ast
from typing import Any

import pytest

from archspec.python_code import layout
from archspec.python_code.simplification import returned, simplified, without_repeats
from archspec.python_code.trees import prune


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
    assert text(returned(ast.parse("x = a\ny = b\nreturn y").body)) == "x = a\nreturn b"
    assert text(returned(ast.parse("y = b\nreturn x").body)) == "y = b\nreturn x"
