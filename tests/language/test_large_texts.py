"""Files as large as a file may be: deep, long, full of mistakes. What is said of them comes soon, and is not long."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from harm import try_out

MODEL = 'model "m" = B()\n'


def block(body: str, head: str = "(x [b]) -> [b]") -> str:
    """A model whose block has this body."""
    layer = "dim b\nlayer L(x [b]) -> [b] {\n  w: param [1]\n  return x * .w\n}\n"
    return f"{layer}block B{head} {{\n{body}\n}}\n{MODEL}"


# One mistake, or none (""): a construct that goes on and on
ENDLESS = {
    "parentheses": (block(f"return {'(' * 20_000}x{')' * 20_000}"), "budget"),
    "parentheses, not so many": (block(f"return {'(' * 60}x{')' * 60}"), ""),
    "minus signs": (block(f"return x + {'-' * 20_000}1"), "budget"),
    "not not": (block(f"return x if {'not ' * 20_000}true"), "budget"),
    "a sum": (block(f"return x{' + 1' * 10_000}"), "budget"),
    "a sum, not so long": (block(f"return x{' + full([1], 1.0)' * 30}"), ""),
    "powers of powers": (block(f"return x * 1{' ** 1' * 10_000}"), "budget"),
    "conditions": (block(f"return x * 1{' if true else 1' * 5000}"), "budget"),
    "else if": (block(f"if true {{ y = x }}{' else if true { y = x }' * 4000}\nreturn y"), "budget"),
    "if in if": (block("if true {\n" * 5000 + "y = x\n" + "}\n" * 5000 + "return y"), "budget"),
    "subscripts": (block(f"return x + n{'[0]' * 8000}", "(n = [1])(x [b]) -> [b]"), "budget"),
    "a chain": (block(f"return x{' |> + 1' * 10_000}"), ""),
    "an address": (block(f"return x |> a{'.a' * 10_000}: L"), "budget"),
    "an address of many numbers": (block(f"return x |> a{'[0]' * 8000}: L"), "budget"),
    "an address in a loop": (block(f"return x |> a{'.a' * 6000}[i]: L for i in 0..50_000"), "budget"),
    "a line": (block(f"return x{' ' * 200_000}+ y"), "unknown-name"),
    "a name": (block(f"return x + {'y' * 200_000}"), "unknown-name"),
    "the name of a model": (block("return x") + f'model "{"m" * 200_000}" = Ba()\n', "unknown-name"),
    "a file": ("# " + "a" * 300_000, "budget"),
    "noughts": ("\0" * 1000, "not-text"),
}

# Mistake after mistake
MANY = {
    "unknown names": block("".join(f"y{i} = z{i}\n" for i in range(2000)) + "return x"),
    "unknown functions": "".join(f"fn f{i}(x []) -> [] {{ return g{i}(x) }}\n" for i in range(1000)),
    "unknown imports": f"import std {{ {', '.join(f'Linear{i}' for i in range(5000))} }}\n",
    "unused hyperparameters": block("return x", f"({', '.join(f'a{i} = 1' for i in range(3000))})(x [b]) -> [b]"),
    "unused inputs": block("return a0", f"({', '.join(f'a{i} [b]' for i in range(5000))}) -> [b]"),
    "unused dimensions": f"dim {', '.join(f'd{i}' for i in range(8000))}\n",
    "dimensions of one name": f"dim {', '.join('d' for _ in range(10_000))}\n",
    "definitions of one name": "fn f() -> [] { return full([], 0.0) }\n" * 1000,
    "broken definitions": "block B(x [b]) -> [b] { return = }\n" * 1500,
    "open brackets": "block B(\n" * 20_000,
    "open quotes": '"\n' * 120_000,
    "signs of nothing": "\u00e9 \u200b \u2028" * 10_000,
    "comments of C": "/*\n" * 60_000 + "// a\n" * 10_000,
}


def often(cases: Mapping[str, Any], long: set[str]) -> list[Any]:
    return [pytest.param(case, marks=pytest.mark.slow if name in long else (), id=name) for name, case in cases.items()]


@pytest.mark.parametrize("case", often(ENDLESS, {"a chain", "else if"}))
def test_what_goes_on_and_on_is_one_mistake(tmp_path: Path, case: tuple[str, str]) -> None:
    text, code = case
    found = try_out(tmp_path, text)
    assert [d.code for d in found if d.severity == "error"] == ([code] if code else [])


@pytest.mark.parametrize("text", often(MANY, {"unknown functions", "unused hyperparameters", "broken definitions"}))
def test_many_mistakes_are_not_all_printed(tmp_path: Path, text: str) -> None:
    assert 0 < len(try_out(tmp_path, text)) <= 101
