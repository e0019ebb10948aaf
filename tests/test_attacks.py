"""Short files that ask for very much: each ends soon, in little memory, in a finding or in a model that is not that large.

Named by what they ask for. What is expected: the code of the one finding, or "" if there is nothing to find fault with.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from harm import MOST_TEXT, bounded, save, sound, try_out

from archspec.pipeline import check
from archspec.source import Diagnostic

HEAD = """import std { Linear }
dim b
layer L(k = 1)(x [b]) -> [b] {
  w: param [1]
  return x * .w * k
}
fn add(k)(x [b]) -> [b] { return x + k }
block Use(x [b, 4]) -> [b, 4] { return x |> dense: Linear(4, 4) |> + x }
"""
MODEL = 'model "m" = B()\n'


def block(body: str, head: str = "(x [b]) -> [b]") -> str:
    """A model whose block has this body."""
    return f"{HEAD}block B{head} {{\n{body}\n}}\n{MODEL}"


def levels(count: int, level: Callable[[int], str], first: str) -> str:
    """A model of `count` definitions, each made from the one before; the last is B."""
    return f"{HEAD}{first}\n" + "".join(level(i) + "\n" for i in range(1, count)) + f"block B(x [b]) -> [b] {{ return x |> a: A{count - 1} }}\n{MODEL}"


def functions(count: int, level: Callable[[int], str]) -> str:
    """As `levels`, of functions with a hyperparameter `k`."""
    return (
        f"{HEAD}fn f0(k)(x [b]) -> [b] {{ return x + k }}\n"
        + "".join(f"fn f{i}(k)(x [b]) -> [b] {{ return {level(i - 1)} }}\n" for i in range(1, count))
        + f"block B(x [b]) -> [b] {{ return f{count - 1}(1)(x) }}\n{MODEL}"
    )


def sizes(body: str) -> str:
    """A model that does arithmetic on symbolic sizes, ending with `n`."""
    return (
        "dim p, q, r\n"
        f"block B(x [p, q, r]) -> [...] {{\n{body}\n  return full([n], 0.0) * sum(axis = [0, 1, 2])(x)\n}}\n{MODEL}"
    )


LAYERS = "block A0(x [b]) -> [b] { return x |> a: L |> c: L }"
DEEP = {
    "blocks that own the one before twice": (levels(40, lambda i: f"block A{i}(x [b]) -> [b] {{ return x |> a: A{i - 1} |> c: A{i - 1} }}", LAYERS), "budget"),
    "blocks that apply the one before twice": (levels(40, lambda i: f"block A{i}(x [b]) -> [b] {{ return x |> a: A{i - 1} |> .a }}", LAYERS), "budget"),
    "blocks in blocks": (levels(200, lambda i: f"block A{i}(x [b]) -> [b] {{ return x |> a: A{i - 1} }}", LAYERS), "budget"),
    "ties of all that is below": (levels(17, lambda i: f"block A{i}(x [b]) -> [b] {{\n tie c = a\n return x |> a: A{i - 1} |> c: A{i - 1} }}", LAYERS), ""),
    "tensors that nothing uses, everywhere": (levels(17, lambda i: f"block A{i}(x [b]) -> [b] {{ return x |> a: A{i - 1} |> c: A{i - 1} }}", LAYERS.replace("A0(x [b]) -> [b] {", "A0(x [b]) -> [b] { v: param [1]\n")), "unused-tensor"),
    "long names in deep blocks": (levels(17, lambda i: f"block A{i}(x [b]) -> [b] {{ return x |> {'a' * 490}: A{i - 1} |> {'c' * 490}: A{i - 1} }}", LAYERS), "budget"),
    "functions that apply the one before twice": (functions(40, lambda i: f"f{i}(k)(x) + f{i}(k)(x)"), "budget"),
    "functions that apply the one before with two numbers": (functions(40, lambda i: f"f{i}(2 * k)(x) + f{i}(2 * k + 1)(x)"), "budget"),
    "functions in functions": (functions(2000, lambda i: f"f{i}(k)(x)"), "budget"),
    "hyperparameters taken over, in order": (HEAD + "fn f0(k = 1)(x [b]) -> [b] { return x + k }\n" + "".join(f"fn f{i}(..f{i - 1})(x [b]) -> [b] {{ return x + k }}\n" for i in range(1, 4000)), "budget"),
    "hyperparameters taken over, backwards": (HEAD + "".join(f"fn f{i}(..f{i - 1})(x [b]) -> [b] {{ return x + k }}\n" for i in range(4000, 0, -1)) + "fn f0(k = 1)(x [b]) -> [b] { return x + k }\n", "budget"),
    "hyperparameters taken over in a circle": (HEAD + "block B(..C)(x [b]) -> [b] { return x }\nblock C(..B)(x [b]) -> [b] { return x }\n" + MODEL, "definition-cycle"),
    "a block in itself": (block("return x |> a: B"), "definition-cycle"),
    "a block in itself with another number": (block("return x |> a: B(n + 1)", "(n = 1)(x [b]) -> [b]"), "definition-cycle"),
    "blocks in each other": (block("return x |> c: C") + "block C(x [b]) -> [b] { return x |> b: B }\n", "definition-cycle"),
    "a function in itself with another number": (HEAD + "fn f(n)(x [b]) -> [b] { return f(n + 1)(x) }\nblock B(x [b]) -> [b] { return f(0)(x) }\n" + MODEL, "definition-cycle"),
    "functions in each other": (HEAD + "fn f(x [b]) -> [b] { return g(x) }\nfn g(x [b]) -> [b] { return f(x) }\nblock B(x [b]) -> [b] { return f(x) }\n" + MODEL, "definition-cycle"),
}  # fmt: skip

LOOPS = {
    "a loop over tensors": (block("h = x\nfor i in 0..10 ** 18 { h = h + 1 }\nreturn h"), "budget"),
    "a loop over layers": (block("return x |> a[i]: L for i in 0..10 ** 18"), "budget"),
    "a loop from far below": (block("return x |> a[i]: L for i in -10 ** 18..1"), "budget"),
    "loops in loops": (block("h = x\nfor i in 0..1000 { for j in 0..1000 { for k in 0..1000 { h = h + i * j * k } } }\nreturn h"), "budget"),
    "loops in loops over nothing": (block("for i in 0..99_999 { for j in 0..99_999 { for k in 0..99_999 { } } }\nreturn x"), "budget"),
    "a loop over what is left out": (block("for i in 0..10 ** 18 { if false { a[i]: unused L } }\nreturn x"), "budget"),
    "requirements in a loop": (block('for i in 0..90_000 { require i < 5, "no" }\nreturn x'), "require"),
    "a loop over a long expression": (block(f"h = x\nfor i in 0..90_000 {{ h = h{' + 1' * 90} }}\nreturn h"), "budget"),
    "a loop over many statements": (block(f"h = x\nfor i in 0..90_000 {{\n{'h = h + 1' + chr(10)}".replace("h = h + 1\n", "h = h + 1\n" * 1000) + "}\nreturn h"), "budget"),
    "a loop over many requirements": (block("for i in 0..90_000 {\n" + "require i < 100_000 and i >= 0\n" * 1000 + "}\nreturn x"), "budget"),
    "a loop over a long list": (block(f"h = x\nfor i in 0..90_000 {{ h = h + len([{'1,' * 9000}]) }}\nreturn h"), "budget"),
    "a loop over an operation with a long list": (block("for i in 0..90_000 { y = split(k, axis = 0)(x) }\nreturn x", f"(k = [{'1,' * 9000}])(x [9000]) -> [9000]"), ""),
    "many instances": (block("h = x\nfor i in 0..90_000 { h = add(i)(h) }\nreturn h"), "budget"),
    "many instances of much": (HEAD + "fn f(k)(x [b]) -> [b] {\nh = x\nfor i in 0..9 { h = h" + " + 1" * 90 + " }\nreturn h + k\n}\n" + block("h = x\nfor i in 0..9000 { h = f(i)(h) }\nreturn h").removeprefix(HEAD), "budget"),
    "many types of input": (HEAD + "fn f(x [...]) -> [...] {\n" + "".join(f"h{i} = {f'h{i - 1}' if i else 'x'} + 1\n" for i in range(2000)) + "return h1999\n}\n" + block("h = x\nfor i in 1..9000 { h = h + sum(axis = 0)(f(full([i], 0.0))) }\nreturn h").removeprefix(HEAD), "budget"),
    "ties in a row": (block("for i in 0..9000 { tie a[i + 1].w = a[i].w }\nreturn x |> a[i]: L for i in 0..9001"), ""),
    "ties in a row, backwards": (block("for i in 0..9000 { tie a[9000 - i].w = a[8999 - i].w }\nreturn x |> a[i]: L for i in 0..9001"), ""),
    "roles in a loop": (block("for i in 0..9000 { role norm for a[i] }\nreturn x |> a[i]: L for i in 0..9000"), ""),
    "many models that own much": (HEAD + "block B(n)(x [b]) -> [b] {\nfor i in 0..30_000 { a[i]: unused param [4] }\nreturn x + n\n}\n" + "".join(f'model "m{i}" = B({i})\n' for i in range(5000)), "budget"),
}  # fmt: skip

NUMBERS = {
    "a power": (block("return x * 2 ** 10 ** 10"), "budget"),
    "a power of ten": (block("return x * n", "(n = 10 ** 10 ** 10)(x [b]) -> [b]"), "budget"),
    "a real power": (block("return x * n", "(n = 10.0 ** 10 ** 3)(x [b]) -> [b]"), "budget"),
    "a product": (block("return x * n", f"(n = {' * '.join(['999_999_999'] * 90)})(x [b]) -> [b]"), "budget"),
    "digits": (block("return x * n", f"(n = 1{'0' * 200_000})(x [b]) -> [b]"), "budget"),
    "digits after the point": (block("return x * n", f"(n = 0.{'1' * 200_000})(x [b]) -> [b]"), ""),
    "digits of an exponent": (block("return x * n", f"(n = 1e{'9' * 200_000})(x [b]) -> [b]"), "budget"),
    "a large tensor": (block("return x |> a: Linear(n, n)", "(n = 10 ** 12)(x [b, n]) -> [b, n]"), "budget"),
    "a list that doubles": (block("y = n\nh = x\nfor i in 0..60 {\ny = [y, y]\nh = h + len(y)\n}\nreturn h", "(n = [1])(x [b]) -> [b]"), "budget"),
    "defaults that double": (HEAD + "fn f(a0 = 1, " + ", ".join(f"a{i} = [a{i - 1}, a{i - 1}]" for i in range(1, 60)) + ")(x [b]) -> [b] { return x + len(a59) }\nblock B(x [b]) -> [b] { return f(x) }\n" + MODEL, "budget"),
    "a long list": (block("return x + len(n)", f"(n = [{'1,' * 100_000}])(x [b]) -> [b]"), "budget"),
    "a list in the message": (block("require n == [1]\nreturn x", f"(n = [{'1,' * 9000}])(x [b]) -> [b]"), "require"),
    "more and more axes": (HEAD + "fn f(x [...]) -> [1, ...] { return reshape([1, ...])(x) }\n" + block("h = x\nfor i in 0..9000 { h = f(h) }\nreturn h", "(x [b]) -> [...]").removeprefix(HEAD), "dimension"),
    "powers of a symbolic size": (sizes("n = (p + q + r) ** 8 * (p + 2 * q + 3 * r + 4) ** 8"), "budget"),
    "products of symbolic sizes": (sizes("n = p\nfor i in 0..50_000 { n = n * (q + i) // (r + i) }"), "budget"),
    "many large symbolic sizes": (sizes("n = p\nfor i in 0..50_000 { n = n // 7 + (p + q + r + i) ** 3 % (r + i) }"), "budget"),
    "minima in maxima": (sizes("n = p\nfor i in 0..3000 { n = max(min(n + q, p * i + r), n) }"), "budget"),
    "remainders of quotients": (sizes("n = p\nfor i in 0..3000 { n = (n + q) // 2 % (p + i) + min(n, r) }"), "budget"),
    "a size that doubles": (block("h = x\nfor i in 0..90 { h = concat(axis = 0)(h, h) }\nreturn h", "(x [b]) -> [...]"), "dimension"),
}  # fmt: skip

TEXTS = {
    "parentheses": (block(f"return {'(' * 50_000}x{')' * 50_000}"), "budget"),
    "parentheses, not so many": (block(f"return {'(' * 60}x{')' * 60}"), ""),
    "lists in lists": (block("return x", f"(n = {'[' * 50_000})(x [b]) -> [b]"), "budget"),
    "minus signs": (block(f"return x + {'-' * 50_000}1"), "budget"),
    "not not": (block(f"return x if {'not ' * 50_000}true"), "budget"),
    "a long sum": (block(f"return x{' + 1' * 50_000}"), "budget"),
    "powers of powers": (block(f"return x * 1{' ** 1' * 30_000}"), "budget"),
    "conditions": (block(f"return x * 1{' if true else 1' * 10_000}"), "budget"),
    "else if": (block(f"if true {{ y = x }}{' else if true { y = x }' * 8000}\nreturn y"), "budget"),
    "if in if": (block("if true {\n" * 5000 + "y = x\n" + "}\n" * 5000 + "return y"), "budget"),
    "subscripts": (block(f"return x + n{'[0]' * 50_000}", "(n = [1])(x [b]) -> [b]"), "budget"),
    "a long chain": (block(f"return x{' |> + 1' * 10_000}"), ""),
    "a long address": (block(f"return x |> a{'.a' * 60_000}: L"), "budget"),
    "an address of many numbers": (block(f"return x |> a{'[0]' * 60_000}: L"), "budget"),
    "a long address in a loop": (block(f"return x |> a{'.a' * 6000}[i]: L for i in 0..50_000"), "budget"),
    "a long line": (block(f"return x{' ' * 200_000}+ y"), "unknown-name"),
    "a long name": (block(f"return x + {'y' * 200_000}"), "unknown-name"),
    "a long name of a model": (f'{HEAD}model "{"m" * 200_000}" = Usee()\n', "unknown-name"),
    "a large file": ("# " + "a" * 300_000, "budget"),
    "noughts": ("\0" * 1000, "not-text"),
}  # fmt: skip

MANY = {
    "unknown names": block("".join(f"y{i} = z{i}\n" for i in range(10_000)) + "return x"),
    "unknown functions": HEAD + "".join(f"fn f{i}(x [b]) -> [b] {{ return g{i}(x) }}\n" for i in range(4000)),
    "unknown imports": f"import std {{ {', '.join(f'Linear{i}' for i in range(20_000))} }}\n",
    "unused hyperparameters": block("return x", f"({', '.join(f'a{i} = 1' for i in range(15_000))})(x [b]) -> [b]"),
    "unused inputs": block("return a0", f"({', '.join(f'a{i} [b]' for i in range(20_000))}) -> [b]"),
    "unused dimensions": f"dim {', '.join(f'd{i}' for i in range(30_000))}\n",
    "dimensions of one name": f"dim {', '.join('d' for _ in range(60_000))}\n",
    "definitions of one name": "fn f() -> [] { return full([], 0.0) }\n" * 6000,
    "broken definitions": "block B(x [b]) -> [b] { return = }\n" * 6000,
    "open brackets": "block B(\n" * 20_000,
    "open quotes": '"\n' * 120_000,
    "signs of nothing": "\u00e9 \u200b \u2028" * 20_000,
    "comments of C": "/*\n" * 60_000 + "// a\n" * 10_000,
}


ALL = {**DEEP, **LOOPS, **NUMBERS, **TEXTS}


def look(folder: Path, text: str) -> list[Diagnostic]:
    """What `check` finds, in bounds."""
    with bounded():
        found = check(save(folder, text)).diagnostics
        assert sum(len(sound(diagnostic)) for diagnostic in found) < MOST_TEXT
    return found


@pytest.mark.parametrize(("text", "code"), ALL.values(), ids=ALL)
def test_attacks_end_in_one_finding(tmp_path: Path, text: str, code: str) -> None:
    assert [d.code for d in look(tmp_path, text) if d.severity == "error"] == ([code] if code else [])


@pytest.mark.parametrize("text", MANY.values(), ids=MANY)
def test_many_mistakes_are_not_all_printed(tmp_path: Path, text: str) -> None:
    assert 0 < len(look(tmp_path, text)) <= 101


@pytest.mark.slow
@pytest.mark.parametrize("text", [*(text for text, _ in ALL.values()), *MANY.values()], ids=[*ALL, *MANY])
def test_attacks_are_not_counted(tmp_path: Path, text: str) -> None:
    try_out(tmp_path, text)
