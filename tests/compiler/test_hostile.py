"""Short files that ask for very much: each ends soon, in little memory: in one finding, or in a small model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harm import MOST_TEXT, bounded, save, sound, try_out

from archspec import Diagnostic
from archspec.testing import check

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
PLAIN = "(x [b]) -> [b]"
LOWEST = "x |> a: L |> c: L"
ATTACKS: list[Any] = []

Text = Callable[[], str]


def attack(code: str, slow: bool = False) -> Callable[[Text], Text]:
    """Enters a text into the list, with the code of the one finding, or "" if there is nothing to find fault with."""

    def enter(text: Text) -> Text:
        marks = [pytest.mark.slow] if slow else []
        ATTACKS.append(pytest.param(text, code, id=text.__name__, marks=marks))
        return text

    return enter


def block(body: str, head: str = PLAIN, before: str = "") -> str:
    """A model whose block has this body."""
    return f"{HEAD}{before}block B{head} {{\n{body}\n}}\n{MODEL}"


def levels(count: int, result: str, lowest: str = LOWEST, before: str = "") -> str:
    """A model of `count` blocks A0, A1, ..., each written with the one before, which is `A-` in `result`."""
    found = [f"block A0{PLAIN} {{\n{before}\nreturn {lowest} }}\n"]
    for i in range(1, count):
        found.append(f"block A{i}{PLAIN} {{ {result.replace('A-', f'A{i - 1}')} }}\n")
    return block(f"return x |> a: A{count - 1}", before="".join(found))


def functions(count: int, result: str) -> str:
    """As `levels`, of functions f0, f1, ... with a hyperparameter `k`; `f-` is the one before."""
    found = ["fn f0(k)(x [b]) -> [b] { return x + k }\n"]
    for i in range(1, count):
        found.append(f"fn f{i}(k)(x [b]) -> [b] {{ return {result.replace('f-', f'f{i - 1}')} }}\n")
    return block(f"return f{count - 1}(1)(x)", before="".join(found))


def sizes(body: str) -> str:
    """A model that computes a symbolic size `n`."""
    end = "return full([n], 0.0) * sum(axis = [0, 1, 2])(x)"
    return f"dim p, q, r\nblock B(x [p, q, r]) -> [...] {{\n{body}\n{end}\n}}\n{MODEL}"


# Definitions in definitions -------------------------------------------------------------------------------------------


@attack("budget")
def blocks_that_own_the_one_before_twice() -> str:
    return levels(40, "return x |> a: A- |> c: A-")


@attack("budget")
def blocks_that_apply_the_one_before_twice() -> str:
    return levels(40, "return x |> a: A- |> .a")


@attack("budget")
def blocks_in_blocks() -> str:
    return levels(200, "return x |> a: A-")


@attack("")
def ties_of_all_that_is_below() -> str:
    return levels(15, "tie c = a\nreturn x |> a: A- |> c: A-")


@attack("unused-tensor")
def tensors_that_nothing_uses_everywhere() -> str:
    return levels(13, "return x |> a: A- |> c: A-", before="v: param [1]")


@attack("budget")
def long_names_in_deep_blocks() -> str:
    return levels(17, f"return x |> {'a' * 490}: A- |> {'c' * 490}: A-")


@attack("budget")
def functions_that_apply_the_one_before_twice() -> str:
    return functions(40, "f-(k)(x) + f-(k)(x)")


@attack("budget", slow=True)
def functions_that_apply_the_one_before_with_two_numbers() -> str:
    return functions(40, "f-(2 * k)(x) + f-(2 * k + 1)(x)")


@attack("budget")
def functions_in_functions() -> str:
    return functions(500, "f-(k)(x)")


@attack("")
def hyperparameters_taken_over() -> str:
    taking = [f"fn f{i}(..f{i - 1})(x [b]) -> [b] {{ return x + k }}\n" for i in range(1, 2000)]
    return block("return x", before="fn f0(k = 1)(x [b]) -> [b] { return x + k }\n" + "".join(taking))


@attack("budget")
def hyperparameters_taken_over_from_below() -> str:
    taking = [f"fn f{i}(..f{i + 1})(x [b]) -> [b] {{ return x + k }}\n" for i in range(2000)]
    return block("return x", before="".join(taking) + "fn f2000(k = 1)(x [b]) -> [b] { return x + k }\n")


@attack("definition-cycle")
def hyperparameters_taken_over_in_a_circle() -> str:
    return block("return x", f"(..C){PLAIN}", f"block C(..B){PLAIN} {{ return x }}\n")


@attack("definition-cycle")
def a_block_in_itself() -> str:
    return block("return x |> a: B")


@attack("definition-cycle")
def a_block_in_itself_with_another_number() -> str:
    return block("return x |> a: B(n + 1)", f"(n = 1){PLAIN}")


@attack("definition-cycle")
def blocks_in_each_other() -> str:
    return block("return x |> a: C", before=f"block C{PLAIN} {{ return x |> a: B }}\n")


@attack("definition-cycle")
def a_function_in_itself_with_another_number() -> str:
    return block("return f(0)(x)", before=f"fn f(n){PLAIN} {{ return f(n + 1)(x) }}\n")


@attack("definition-cycle")
def functions_in_each_other() -> str:
    return block("return f(x)", before=f"fn f{PLAIN} {{ return g(x) }}\nfn g{PLAIN} {{ return f(x) }}\n")


# Loops ----------------------------------------------------------------------------------------------------------------


def loop(body: str, rounds: str = "90_000", before: str = "") -> str:
    """A model with a loop that carries `h`."""
    return block(f"h = x\nfor i in 0..{rounds} {{\n{body}\n}}\nreturn h", before=before)


@attack("budget")
def a_loop_over_tensors() -> str:
    return loop("h = h + 1", "10 ** 18")


@attack("budget")
def a_loop_over_layers() -> str:
    return block("return x |> a[i]: L for i in 0..10 ** 18")


@attack("budget")
def a_loop_from_far_below() -> str:
    return block("return x |> a[i]: L for i in -10 ** 18..1")


@attack("budget")
def loops_in_loops() -> str:
    return loop("for j in 0..1000 { for k in 0..1000 { h = h + i * j * k } }", "1000")


@attack("budget")
def loops_in_loops_over_nothing() -> str:
    return loop("for j in 0..99_999 { for k in 0..99_999 { } }\nh = h + 1")


@attack("budget")
def a_loop_over_what_is_left_out() -> str:
    return block("for i in 0..10 ** 18 { if false { a[i]: unused L } }\nreturn x")


@attack("require")
def requirements_in_a_loop() -> str:
    return loop('require i < 5, "no"\nh = h + 1')


@attack("budget")
def a_loop_over_a_long_expression() -> str:
    return loop(f"h = h{' + 1' * 90}")


@attack("budget")
def a_loop_over_many_statements() -> str:
    return loop("h = h + 1\n" * 1000)


@attack("budget")
def a_loop_over_many_requirements() -> str:
    return loop("require i < 100_000 and i >= 0\n" * 1000 + "h = h + 1")


@attack("budget")
def a_loop_over_a_long_list() -> str:
    return loop(f"h = h + len([{'1,' * 9000}])")


@attack("budget")
def a_loop_over_an_operation_with_a_long_list() -> str:
    body = f"for i in 0..90_000 {{ {', '.join(['_'] * 9000)} = split(k, axis = 0)(x) }}\nreturn x"
    return block(body, f"(k = [{'1,' * 9000}])(x [9000]) -> [9000]")


@attack("budget", slow=True)
def many_instances() -> str:
    return loop("h = add(i)(h)")


@attack("budget", slow=True)
def many_instances_of_much() -> str:
    return loop("h = much(i)(h)", "9000", f"fn much(k){PLAIN} {{\nreturn x{' |> + k' * 1000}\n}}\n")


@attack("budget", slow=True)
def many_types_of_input() -> str:
    much = f"fn much(x [...]) -> [...] {{\nreturn x{' |> + 1' * 1000}\n}}\n"
    return loop("h = h + sum(axis = 0)(much(full([i + 1], 0.0)))", "9000", much)


@attack("")
def ties_in_a_row() -> str:
    return block("for i in 0..5000 { tie a[i + 1].w = a[i].w }\nreturn x |> a[i]: L for i in 0..5001")


@attack("")
def ties_in_a_row_from_the_end() -> str:
    return block("for i in 0..5000 { tie a[5000 - i].w = a[4999 - i].w }\nreturn x |> a[i]: L for i in 0..5001")


@attack("")
def roles_in_a_loop() -> str:
    return block("for i in 0..5000 { role norm for a[i] }\nreturn x |> a[i]: L for i in 0..5000")


@attack("budget", slow=True)
def many_models_that_own_much() -> str:
    models = "".join(f'model "m{i}" = Many({i})\n' for i in range(2000))
    own = "for i in 0..30_000 { a[i]: unused param [4] }\nreturn x + n"
    return f"{HEAD}block Many(n){PLAIN} {{\n{own}\n}}\n{models}"


# Numbers, lists and sizes ---------------------------------------------------------------------------------------------


def number(value: str) -> str:
    """A model with a hyperparameter `n` of this value."""
    return block("return x * n", f"(n = {value}){PLAIN}")


@attack("budget")
def a_power() -> str:
    return number("2 ** 10 ** 10")


@attack("budget")
def a_power_of_reals() -> str:
    return number("10.0 ** 10 ** 3")


@attack("budget")
def a_product() -> str:
    return number(" * ".join(["999_999_999"] * 90))


@attack("budget")
def digits() -> str:
    return number("1" + "0" * 200_000)


@attack("")
def digits_after_the_point() -> str:
    return number("0." + "1" * 200_000)


@attack("budget")
def digits_of_an_exponent() -> str:
    return number("1e" + "9" * 200_000)


@attack("budget")
def a_large_tensor() -> str:
    return block("return x |> a: Linear(n, n)", "(n = 10 ** 12)(x [b, n]) -> [b, n]")


@attack("budget")
def a_list_that_doubles() -> str:
    return block("y = n\nh = x\nfor i in 0..60 {\ny = [y, y]\nh = h + len(y)\n}\nreturn h", f"(n = [1]){PLAIN}")


@attack("budget")
def defaults_that_double() -> str:
    doubling = ", ".join(f"a{i} = [a{i - 1}, a{i - 1}]" for i in range(1, 60))
    return block("return x + len(a59)", f"(a0 = 1, {doubling}){PLAIN}")


@attack("budget")
def a_long_list() -> str:
    return block("return x + len(n)", f"(n = [{'1,' * 30_000}]){PLAIN}")


@attack("require")
def a_long_list_in_the_message() -> str:
    return block("require n == [1]\nreturn x", f"(n = [{'1,' * 9000}]){PLAIN}")


@attack("dimension")
def more_and_more_axes() -> str:
    return block(
        "h = x\nfor i in 0..9000 { h = f(h) }\nreturn h",
        "(x [b]) -> [...]",
        "fn f(x [...]) -> [1, ...] { return reshape([1, ...])(x) }\n",
    )


@attack("dimension")
def a_size_that_doubles() -> str:
    return block("h = x\nfor i in 0..90 { h = concat(axis = 0)(h, h) }\nreturn h", "(x [b]) -> [...]")


@attack("budget")
def powers_of_a_symbolic_size() -> str:
    return sizes("n = (p + q + r) ** 8 * (p + 2 * q + 3 * r + 4) ** 8")


@attack("budget")
def products_of_symbolic_sizes() -> str:
    return sizes("n = p\nfor i in 0..50_000 { n = n * (q + i) // (r + i) }")


@attack("budget")
def many_symbolic_sizes() -> str:
    return sizes("n = p\nfor i in 0..50_000 { n = n // 7 + (p + q + r + i) ** 3 % (r + i) }")


@attack("budget")
def maxima_of_minima() -> str:
    return sizes("n = p\nfor i in 0..3000 { n = max(min(n + q, p * i + r), n) }")


@attack("budget")
def remainders_of_quotients() -> str:
    return sizes("n = p\nfor i in 0..3000 { n = (n + q) // 2 % (p + i) + min(n, r) }")


# What is done to them -------------------------------------------------------------------------------------------------


def look(folder: Path, text: str) -> list[Diagnostic]:
    """What `check` finds, in bounds."""
    with bounded():
        found = check(save(folder, text))
        assert sum(len(sound(diagnostic)) for diagnostic in found) < MOST_TEXT
    return found


@pytest.mark.parametrize(("text", "code"), ATTACKS)
def test_attacks_end_in_one_finding(tmp_path: Path, text: Text, code: str) -> None:
    assert [d.code for d in look(tmp_path, text()) if d.severity == "error"] == ([code] if code else [])


@pytest.mark.slow
@pytest.mark.parametrize(("text", "code"), ATTACKS)
def test_attacks_are_counted_or_refused(tmp_path: Path, text: Text, code: str) -> None:
    found = try_out(tmp_path, text())
    assert any(diagnostic.severity == "error" for diagnostic in found) == bool(code)
