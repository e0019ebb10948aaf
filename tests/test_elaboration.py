"""Messages about definitions that are evaluated, each with its place, in a golden file."""

import re
from collections.abc import Callable

import pytest
from small import load

import archspec

MISTAKES: dict[str, str] = {
    "dots outside of shapes": """
block Net(n = 4)(x [..., n]) -> [..., n] {
  w: param [n]
  return x * .w * f(...)
}
fn f(a) { return a }
""",
    "an address twice": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x * .w + .u + .u
}
""",
    "another input of a module": """
layer L(n)(x [n]) -> [n] {
 w: param [n]
 return x * .w
}
block Net(n = 4)(x [n]) -> [n] {
  y = a: L(n)(x)
  return .a(y, y)
}
""",
    "a hyperparameter of a function": """
fn f(n)(x [...]) -> [...] { return x * n }
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return f(m = 3)(x * .w)
}
""",
    "a condition of a step": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x |> * .w |> * 2.0 if n |> + x
}
""",
    "tensors that are unused inside": """
layer L(n)(x [n]) -> [n] {
 w: unused param [n]
 v: param [n]
 u: param [n]
 return x * .u
}
block B(n)(x [n]) -> [n] {
 return x |> a: L(n) |> b: L(n)
}
block Net(n = 4)(x [n]) -> [n] {
  return x |> c: B(n)
}
""",
    "a condition of numbers": """
fn f(n) { if n { return 2 }
 return 3 }
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x * .w * f(n)
}
""",
    "a dimension in a function of numbers": """
dim batch
fn f(n) { return n * batch }
block Net(n = 4)(x [batch, n]) -> [batch, n] {
  w: param [n]
  return x * .w * f(n)
}
""",
    "an address in a function": """
fn f(n) { return .w(n) }
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x * .w * f(n)
}
""",
    "a hyperparameter of a function of numbers": """
fn f(n) { return n }
block Net(n = 4, m = f(k = 3))(x [n]) -> [n] {
  w: param [n]
  return x * .w * m
}
""",
    "a hyperparameter twice": """
layer L(n, m)(x [n]) -> [n] {
 w: param [n]
 return x * .w * m
}
block Net(n = 4)(x [n]) -> [n] {
  return x |> a: L(n, 3, n = 4)
}
""",
    "a bound hyperparameter": """
layer L(n, m)(x [n]) -> [n] {
 w: param [n]
 return x * .w * m
}
block Net(n = 4, P = L(m = 3))(x [n]) -> [n] {
  Q = P(m = 4)
  return x |> a: Q(n)
}
""",
    "a hyperparameter that is bound": """
layer L(n, m)(x [n]) -> [n] {
 w: param [n]
 return x * .w * m
}
block Net(n = 4, P = L(k = 3))(x [n]) -> [n] {
  return x |> a: P(n)
}
""",
    "a name in a condition": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x * .w if n > 3 and missing > 2 else x
}
""",
    "a large size": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x * .w + sum(axis = 1)(rearrange("(a b) -> a b", a = 9223372036854775807, b = 2)(x))
}
""",
    "elements of another type": """
block Net(n = 4)(x int [n]) -> [n] {
  w: param [n]
  return x
}
""",
    "no factor": """
dim seq
fn f(k)(x [k * seq]) -> [seq] { return sum(axis = 1)(reshape([seq, k])(x)) }
block Net(n = 4)(x [n]) -> [2] {
  w: param [n]
  return f(0)(x * .w)
}
""",
    "a factor of an unknown name": """
dim seq
fn f(k)(x [missing * seq]) -> [seq] { return x }
block Net(n = 4)(x [n]) -> [2] {
  w: param [n]
  return f(0)(x * .w)
}
""",
    "a shape in numbers": """
fn f(k)(x [k + 1, 3]) -> [3] { return sum(axis = 0)(x) }
block Net(n = 4)(x [n]) -> [3] {
  w: param [n]
  return f(2)(x * .w)
}
""",
    "an output that is never returned": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  if n > 9 { return "text" }
  return x * .w
}
""",
    "an input as a hyperparameter": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  p, q = split([2, 2])(x)
  return x * .w * f(a = .w)
}
fn f(a) { return a }
""",
    "a layer as a value": """
layer L(n)(x [n]) -> [n] {
 w: param [n]
 return x * .w
}
block Net(n = 4)(x [n]) -> [n] {
  y = a: L(n)(x)
  return y * .a
}
""",
    "a name in a loop over a dimension": """
dim seq
block Net(n = 4)(x [seq, n]) -> [seq, n] {
  w: param [n]
  for t in 0..seq { y = collect(axis = 0)(missing(t)) }
  return y * .w
}
""",
    "a name in what is collected": """
block Net(n = 4)(x [n]) -> [2, n] {
  w: param [n]
  for i in 0..2 { y = collect(axis = 0)(x * .w * missing) }
  return y
}
""",
}


def test_messages(golden: Callable[[str, str], None]) -> None:
    found: list[str] = []
    for name, text in MISTAKES.items():
        with pytest.raises(archspec.ArchError) as problem:
            load(text)
        found.append(f"-- {name}\n{re.sub(r' --> .*/spec.arch', ' --> spec.arch', str(problem.value))}\n")
    golden("elaboration.txt", "\n".join(found))
